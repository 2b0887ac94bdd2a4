//! Nodes named by a device: `netdev:eth0`, `block:sda`, `file:/data`, `ip:10.0.0.1`, `pci:21:00.0`.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::printable::printable;
use nodewise_machine::{DeviceRef, Machine, Node, NodeSet, Origin, PciAddress};
use nodewise_notation::device::{Device, DeviceKind, Dots, PciFunction, class_name, pci_function};
use nodewise_notation::number;
use nodewise_notation::warning::{self, Warning};
use nodewise_source::devices::{self, NoNode};
use nodewise_source::facts::{self, DeviceEntry};
use nodewise_source::tree::Tree;
use rustix::fs::{FileType, major, minor, stat};

use crate::nodestring::Invalid;
use crate::warning::Warnings;

/// The node of a device as a set; `None` for a kind that the originals do not know. What is wrong is written in
/// libnuma's words.
///
/// `strict` refuses PCI functions behind a bridge and names with a dot, as the originals do.
pub fn nodes(
    device: Device<'_>,
    tree: &Tree,
    there: &NodeSet,
    strict: bool,
    warnings: &mut Warnings<'_>,
) -> Option<Result<NodeSet, Invalid>> {
    if !device.original {
        return None;
    }
    let finder = Finder { tree, there, strict };
    let name = String::from_utf8_lossy(device.name);
    let found = match device.kind {
        DeviceKind::Net => finder.named(&name, "net", DeviceRef::Net),
        DeviceKind::Block => finder.named(&name, "block", DeviceRef::Block),
        DeviceKind::File => finder.file(Path::new(&*name)),
        DeviceKind::Host => finder.host(&name),
        DeviceKind::Pci => finder.function(&name),
        DeviceKind::Infiniband | DeviceKind::Gpu => return None,
    };
    Some(found.map_err(|Refusal { warning, arguments }| {
        let arguments: Vec<&dyn Display> =
            arguments.iter().map(|argument| argument as &dyn Display).collect();
        warnings.warn(warning, &arguments);
        Invalid
    }))
}

/// Why a device has no node: a warning and its arguments.
struct Refusal {
    warning: Warning,
    arguments: Vec<String>,
}

impl Refusal {
    fn new<const N: usize>(warning: Warning, arguments: [&str; N]) -> Self {
        Self { warning, arguments: arguments.map(str::to_owned).into() }
    }
}

struct Finder<'a> {
    tree: &'a Tree,
    there: &'a NodeSet,
    strict: bool,
}

impl Finder<'_> {
    fn node(&self, device: &DeviceRef) -> Result<NodeSet, NoNode> {
        let mut machine = Machine::new(Origin::Live);
        machine.nodes = self.there.iter().map(|id| (id, Node::new(id))).collect_map();
        let find = if self.strict { devices::node_as_stated } else { devices::node_of_device };
        let node = find(Some(self.tree), &machine, device)?;
        Ok(std::iter::once(node).collect())
    }

    /// A device of a class, which is also the word for it in a warning.
    fn named(&self, name: &str, class: &str, device: fn(String) -> DeviceRef) -> Result<NodeSet, Refusal> {
        let dots = if self.strict { Dots::Refused } else { Dots::Accepted };
        let legal = class_name(name.as_bytes(), dots).and_then(|legal| std::str::from_utf8(legal).ok());
        let unpadded = String::from_utf8_lossy(number::unpadded(name.as_bytes()));
        let shown = printable(&unpadded);
        let Some(name) = legal else { return Err(Refusal::new(warning::DEVICE_NAME, [&shown])) };
        let entry = if class == "net" { DeviceEntry::Net(name) } else { DeviceEntry::Block(name) };
        if let Some(answer) = self.outermost(entry) {
            return answer;
        }
        self.node(&device(name.to_owned())).map_err(|error| match error {
            NoNode::NotKnown(_) => self.unknown(entry),
            _ => Refusal::new(warning::NODE_UNREADABLE, [class, &shown]),
        })
    }

    /// Strictly only the outermost PCI function is asked, and believed; `None` for devices below none.
    fn outermost(&self, entry: DeviceEntry<'_>) -> Option<Result<NodeSet, Refusal>> {
        let path = facts::outermost_function(self.tree, entry).filter(|_| self.strict)?;
        let node = facts::stated_node(self.tree, &path).map(|node| std::iter::once(node).collect());
        Some(node.ok_or_else(|| self.unknown(entry)))
    }

    /// Where the kernel does not say the node of a device.
    fn unknown(&self, entry: DeviceEntry<'_>) -> Refusal {
        let path = facts::outermost_function(self.tree, entry).unwrap_or_default();
        Refusal::new(warning::NODE_UNKNOWN, ["", "", &format!("{}/", printable(&path))])
    }

    fn function(&self, name: &str) -> Result<NodeSet, Refusal> {
        let shown = printable(name);
        let Some(function) = pci_function(name.as_bytes()) else {
            return Err(Refusal::new(warning::PCI_ADDRESS, [&shown]));
        };
        // The originals have no word for the class of a PCI function, only the blanks around it.
        let unreadable = || Refusal::new(warning::NODE_UNREADABLE, ["", &shown]);
        let Ok(PciFunction { domain, bus, device, function }) = function else { return Err(unreadable()) };
        let address = PciAddress { domain, bus, device, function };
        if self.strict && !facts::is_on_root_bus(self.tree, address) {
            return Err(unreadable());
        }
        self.node(&DeviceRef::Pci(address)).map_err(|error| match error {
            NoNode::NotKnown(_) => Refusal::new(warning::NODE_UNKNOWN, ["", "", &shown]),
            _ => unreadable(),
        })
    }

    fn file(&self, path: &Path) -> Result<NodeSet, Refusal> {
        let shown = printable(&path.to_string_lossy()).into_owned();
        let Ok(status) = stat(path) else { return Err(Refusal::new(warning::NO_FILE, [&shown])) };
        let is_device = matches!(
            FileType::from_raw_mode(status.st_mode),
            FileType::BlockDevice | FileType::CharacterDevice
        );
        let device = if is_device { status.st_rdev } else { status.st_dev };
        let entry = DeviceEntry::BlockNumber(major(device), minor(device));
        if let Some(answer) = self.outermost(entry) {
            return answer;
        }
        self.node(&DeviceRef::File(PathBuf::from(path))).map_err(|error| match error {
            NoNode::NotKnown(_) => self.unknown(entry),
            _ => {
                // The originals print what they looked at last, which is nothing.
                let (major, minor) = if self.strict { (0, 0) } else { (major(device), minor(device)) };
                let (major, minor) = (major.to_string(), minor.to_string());
                Refusal::new(warning::NO_BLOCK_DEVICE, [&major, &minor, &shown])
            }
        })
    }

    fn host(&self, host: &str) -> Result<NodeSet, Refusal> {
        let shown = printable(host);
        self.node(&DeviceRef::Ip(host.to_owned())).map_err(|error| match error {
            NoNode::OwnAddress(_) => Refusal::new(warning::NODE_UNREADABLE, ["net", "lo"]),
            NoNode::Host { cause, .. } => {
                let cause = cause.strip_prefix("failed to lookup address information: ").unwrap_or(&cause);
                Refusal::new(warning::NO_HOST, [&shown, cause])
            }
            NoNode::NotKnown(device) => {
                self.unknown(DeviceEntry::Net(device.strip_prefix("net:").unwrap_or(&device)))
            }
            other => Refusal::new(warning::NO_NODE_OF_HOST, [&shown, &other.to_string()]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_source::tree::Memory;

    /// Two nodes; a network card behind a bridge on node 1, a root port that says -1.
    fn tree() -> Tree {
        let port = "/sys/devices/pci0000:20/0000:20:00.0";
        let card = format!("{port}/0000:21:00.0");
        let files = Memory::new()
            .file(&format!("{port}/numa_node"), "-1\n")
            .file(&format!("{port}/class"), "0x060400\n")
            .file(&format!("{card}/numa_node"), "1\n")
            .file(&format!("{card}/class"), "0x020000\n")
            .file(&format!("{card}/net/eth0/ifindex"), "2\n")
            .link_to("/sys/bus/pci/devices/0000:20:00.0", "../../../devices/pci0000:20/0000:20:00.0")
            .link_to(
                "/sys/bus/pci/devices/0000:21:00.0",
                "../../../devices/pci0000:20/0000:20:00.0/0000:21:00.0",
            )
            .link_to("/sys/class/net/eth0", "../../devices/pci0000:20/0000:20:00.0/0000:21:00.0/net/eth0")
            .file("/sys/devices/virtual/net/lo/ifindex", "1\n")
            .link_to("/sys/class/net/lo", "../../devices/virtual/net/lo");
        Tree::memory(files)
    }

    fn device(text: &str) -> Device<'_> {
        nodewise_notation::device::split(text.as_bytes()).expect(text)
    }

    fn check(text: &str, strict: bool, expected: Result<u32, &str>) {
        let mut err = Vec::new();
        let found =
            nodes(device(text), &tree(), &NodeSet::from([0, 1]), strict, &mut Warnings::new(&mut err))
                .unwrap();
        let err = String::from_utf8(err).unwrap();
        match expected {
            Ok(node) => assert_eq!((found, err), (Ok(NodeSet::from([node])), String::new()), "{text}"),
            Err(warning) => {
                assert_eq!((found, err), (Err(Invalid), format!("libnuma: Warning: {warning}\n")), "{text}");
            }
        }
    }

    #[test]
    fn devices_lead_to_their_node() {
        check("netdev:eth0", false, Ok(1));
        check("netdev: eth0", false, Ok(1));
        check("pci:21:00.0", false, Ok(1));
        check("pci:0000:21:00", false, Ok(1));
        check("pci:\t21:00.0", false, Ok(1));
        check("pci:000000:0x21:0.00,0", false, Ok(1));
    }

    #[test]
    fn a_strict_answer_finds_nothing_behind_a_bridge() {
        check("pci:21:00.0", true, Err("Cannot read node mask for  device `21:00.0'"));
        let port = "Kernel does not know node mask for device `/devices/pci0000:20/0000:20:00.0/'";
        check("netdev:eth0", true, Err(port));
        check("netdev:eth0.5", true, Err("Illegal characters in `eth0.5' specification"));
    }

    #[test]
    fn what_is_wrong_with_a_device_is_said_in_libnumas_words() {
        check("netdev:lo", false, Err("Cannot read node mask for net device `lo'"));
        check("netdev:nosuch", false, Err("Cannot read node mask for net device `nosuch'"));
        check("netdev:", false, Err("Cannot read node mask for net device `'"));
        check("netdev:a/b", false, Err("Illegal characters in `a/b' specification"));
        check("block:nosuch", false, Err("Cannot read node mask for block device `nosuch'"));
        check("pci:zz", false, Err("Cannot parse PCI device `zz'"));
        check("pci:20:00.0", true, Err("Kernel does not know node mask for device `20:00.0'"));
        check("pci:00:1f.7", false, Err("Cannot read node mask for  device `00:1f.7'"));
        // Device 0x20, which no bus has.
        for strict in [false, true] {
            check("pci:20:020", strict, Err("Cannot read node mask for  device `20:020'"));
            check("pci:20:00.8", strict, Err("Cannot read node mask for  device `20:00.8'"));
        }
        check("pci:000000:20:00.0", true, Err("Kernel does not know node mask for device `000000:20:00.0'"));
        check("pci:\t", false, Err("Cannot parse PCI device `\\t'"));
        check("file:/nosuch", false, Err("Cannot stat file /nosuch"));
        check("file: /", false, Err("Cannot stat file  /"));
    }

    #[test]
    fn kinds_that_the_originals_do_not_know_are_no_devices() {
        for text in ["net:eth0", "gpu:0", "ib:mlx5_0"] {
            let mut err = Vec::new();
            let found = nodes(device(text), &tree(), &NodeSet::new(), false, &mut Warnings::new(&mut err));
            assert_eq!((found, err), (None, Vec::new()), "{text}");
        }
    }

    #[test]
    fn warnings_of_two_devices_come_once_for_each_number() {
        let mut err = Vec::new();
        let mut warnings = Warnings::new(&mut err);
        for text in ["pci:zz", "file:/nosuch", "pci:yy"] {
            let found = nodes(device(text), &tree(), &NodeSet::from([0, 1]), false, &mut warnings);
            assert_eq!(found, Some(Err(Invalid)), "{text}");
        }
        let expected =
            "libnuma: Warning: Cannot parse PCI device `zz'\nlibnuma: Warning: Cannot stat file /nosuch\n";
        assert_eq!(String::from_utf8(err).unwrap(), expected);
    }
}
