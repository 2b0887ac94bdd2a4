//! Nodes named by a device: `netdev:eth0`, `block:sda`, `file:/data`, `ip:10.0.0.1`, `pci:21:00.0`.

use std::path::{Path, PathBuf};

use nodewise_machine::printable::printable;
use nodewise_machine::{DeviceRef, Machine, Node, NodeSet, Origin, PciAddress};
use nodewise_source::devices::{self, NoNode};
use nodewise_source::facts::{self, DeviceEntry};
use nodewise_source::tree::Tree;
use rustix::fs::{FileType, major, minor, stat};

use crate::nodestring::Invalid;
use crate::number::{self, Base};
use crate::warning::{Kind, Warnings};

/// The node of a device as a set; `None` when the text begins like no device. The whole text is the
/// device's name. What is wrong is written in libnuma's words.
///
/// `strict` refuses PCI functions behind a bridge and names with a dot, as the originals do.
pub fn nodes(
    text: &str,
    tree: &Tree,
    there: &NodeSet,
    strict: bool,
    warnings: &mut Warnings<'_>,
) -> Option<Result<NodeSet, Invalid>> {
    let (kind, name) = text.split_once(':')?;
    let finder = Finder { tree, there, strict };
    let unpadded = number::unpadded(name);
    let found = match kind {
        "netdev" => finder.named(unpadded, "net", DeviceRef::Net(unpadded.to_owned())),
        "block" => finder.named(unpadded, "block", DeviceRef::Block(unpadded.to_owned())),
        "file" => finder.file(Path::new(name)),
        "ip" => finder.host(name),
        "pci" => finder.function(name),
        _ => return None,
    };
    Some(found.map_err(|text| {
        warnings.warn(Kind::Device, &text);
        Invalid
    }))
}

/// Hexadecimal numbers at the beginning of a text, with these characters between them, as `sscanf(3)` finds them.
fn fields(text: &str, separators: &[char]) -> Vec<u32> {
    let mut found = Vec::new();
    let mut rest = Some(text);
    while let Some((number, behind)) = rest.and_then(|rest| number::leading(rest, Base::Hexadecimal)) {
        // An `unsigned int` of C.
        found.push(number as u32);
        rest = separators.get(found.len() - 1).and_then(|separator| behind.strip_prefix(*separator));
    }
    found
}

/// The address at the beginning of a text, whatever follows it; `None` where there is none.
fn leading_address(text: &str) -> Option<Result<PciAddress, OutOfRange>> {
    let [domain, bus, device, function] = match fields(text, &[':', ':', '.'])[..] {
        [domain, bus, device, function] => [domain, bus, device, function],
        [domain, bus, device] => [domain, bus, device, 0],
        _ => match fields(text, &[':', '.'])[..] {
            [bus, device, function] => [0, bus, device, function],
            [bus, device] => [0, bus, device, 0],
            _ => return None,
        },
    };
    let byte = |number: u32, limit: u8| u8::try_from(number).ok().filter(|number| *number <= limit);
    let address = || {
        let (bus, device, function) = (byte(bus, 0xff)?, byte(device, 0x1f)?, byte(function, 7)?);
        Some(PciAddress { domain, bus, device, function })
    };
    Some(address().ok_or(OutOfRange))
}

/// Numbers that no PCI function has.
struct OutOfRange;

struct Finder<'a> {
    tree: &'a Tree,
    there: &'a NodeSet,
    strict: bool,
}

impl Finder<'_> {
    fn node(&self, device: &DeviceRef) -> Result<NodeSet, NoNode> {
        let mut machine = Machine::new(Origin::Live);
        machine.nodes = self.there.iter().map(|id| (id, Node::new(id))).collect();
        let find = if self.strict { devices::node_as_stated } else { devices::node_of_device };
        let node = find(Some(self.tree), &machine, device)?;
        Ok(std::iter::once(node).collect())
    }

    /// A device of a class, which is also the word for it in a warning.
    fn named(&self, name: &str, class: &str, device: DeviceRef) -> Result<NodeSet, String> {
        let shown = printable(name);
        if name.contains('/') || (self.strict && name.contains('.')) {
            return Err(format!("Illegal characters in `{shown}' specification"));
        }
        let entry = if class == "net" { DeviceEntry::Net(name) } else { DeviceEntry::Block(name) };
        if let Some(answer) = self.outermost(entry) {
            return answer;
        }
        self.node(&device).map_err(|error| match error {
            NoNode::NotKnown(_) => self.unknown(entry),
            _ => format!("Cannot read node mask for {class} device `{shown}'"),
        })
    }

    /// Strictly only the outermost PCI function is asked, and believed; `None` for devices below none.
    fn outermost(&self, entry: DeviceEntry<'_>) -> Option<Result<NodeSet, String>> {
        let path = facts::outermost_function(self.tree, entry).filter(|_| self.strict)?;
        let node = facts::stated_node(self.tree, &path).map(|node| std::iter::once(node).collect());
        Some(node.ok_or_else(|| self.unknown(entry)))
    }

    /// Where the kernel does not say the node of a device.
    fn unknown(&self, entry: DeviceEntry<'_>) -> String {
        let path = facts::outermost_function(self.tree, entry).unwrap_or_default();
        format!("Kernel does not know node mask for device `{}/'", printable(&path))
    }

    fn function(&self, name: &str) -> Result<NodeSet, String> {
        let shown = printable(name);
        let Some(address) = leading_address(name) else {
            return Err(format!("Cannot parse PCI device `{shown}'"));
        };
        // The originals have no word for the class of a PCI function, only the blanks around it.
        let unreadable = || format!("Cannot read node mask for  device `{shown}'");
        let Ok(address) = address else { return Err(unreadable()) };
        if self.strict && !facts::is_on_root_bus(self.tree, address) {
            return Err(unreadable());
        }
        self.node(&DeviceRef::Pci(address)).map_err(|error| match error {
            NoNode::NotKnown(_) => format!("Kernel does not know node mask for device `{shown}'"),
            _ => unreadable(),
        })
    }

    fn file(&self, path: &Path) -> Result<NodeSet, String> {
        let shown = printable(&path.to_string_lossy()).into_owned();
        let Ok(status) = stat(path) else { return Err(format!("Cannot stat file {shown}")) };
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
                format!("Cannot find block device {major}:{minor} in sysfs for `{shown}'")
            }
        })
    }

    fn host(&self, host: &str) -> Result<NodeSet, String> {
        let shown = printable(host);
        self.node(&DeviceRef::Ip(host.to_owned())).map_err(|error| match error {
            NoNode::OwnAddress(_) => "Cannot read node mask for net device `lo'".to_owned(),
            NoNode::Host { cause, .. } => {
                let cause = cause.strip_prefix("failed to lookup address information: ").unwrap_or(&cause);
                format!("Cannot resolve {shown}: {cause}")
            }
            NoNode::NotKnown(device) => {
                self.unknown(DeviceEntry::Net(device.strip_prefix("net:").unwrap_or(&device)))
            }
            other => format!("Cannot find the node of {shown}: {other}"),
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

    fn check(text: &str, strict: bool, expected: Result<u32, &str>) {
        let mut err = Vec::new();
        let found =
            nodes(text, &tree(), &NodeSet::from([0, 1]), strict, &mut Warnings::new(&mut err)).unwrap();
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
    fn other_words_are_no_devices() {
        let mut err = Vec::new();
        let found = nodes("foo:bar", &tree(), &NodeSet::new(), false, &mut Warnings::new(&mut err));
        assert_eq!((found, err), (None, Vec::new()));
    }
}
