//! Nodes by a device that is near them: `netdev:eth0`, `block:sda`, `file:/data`, `pci:21:00.0`,
//! `ip:10.0.0.1`.
//!
//! The kernel says the node of a PCI function in its `numa_node`; other devices hang below one. It
//! is looked for from the device upwards, so a device behind bridges is found, and one whose own
//! node is not known takes that of the bridge above it.

use core::ffi::CStr;

use super::{Message, route};
use crate::error::{self, Arguments, warning};
use crate::kernel;
use crate::system::{self, FILE_BYTES, Path, Text};
use crate::text;

/// A device as a list of nodes names it.
pub enum Device<'a> {
    /// A network interface.
    Net(&'a [u8]),
    /// A disk or partition.
    Block(&'a [u8]),
    /// The disk that a file or file system is on.
    File(&'a [u8]),
    /// The interface through which a host is reached.
    Host(&'a [u8]),
    /// A PCI function.
    Pci(&'a [u8]),
}

impl<'a> Device<'a> {
    /// A device from its kind and name; blanks before the name are skipped.
    pub fn parse(text: &'a [u8]) -> Option<Self> {
        let colon = text.iter().position(|byte| *byte == b':')?;
        let (kind, name) = text.split_at_checked(colon)?;
        let name = name.get(1..)?.trim_ascii_start();
        Some(match kind {
            b"netdev" => Self::Net(name),
            b"block" => Self::Block(name),
            b"file" => Self::File(name),
            b"ip" => Self::Host(name),
            b"pci" => Self::Pci(name),
            _ => return None,
        })
    }

    /// The node; `None` when it is not known, which was warned of.
    pub fn node(&self) -> Option<usize> {
        match self {
            Self::Net(name) => of_class(c"net", name),
            Self::Block(name) => of_class(c"block", name),
            Self::File(path) => of_file(path),
            Self::Host(name) => of_class(c"net", route::interface(name)?.bytes()),
            Self::Pci(address) => of_pci(address),
        }
    }
}

/// What the kernel says of a device's place.
enum Place {
    /// This node.
    Node(usize),
    /// No device on the way up to the root has a node; the bytes of the path of the first that
    /// could have.
    Unknown(usize),
    /// No device on the way is of a kind that has nodes.
    Nowhere,
}

/// Looks for the node of a device and of those above it. The path is that behind `/sys`, as
/// `/devices/pci0000:00/0000:00:03.0/virtio0`.
fn place(path: &[u8]) -> Place {
    let mut rest = path;
    let mut first = None;
    while rest.len() > b"/devices".len() {
        let file = Path::new().push(b"/sys").push(rest).push(b"/numa_node");
        let mut buffer = [0; FILE_BYTES];
        if let Ok(number) = system::read(file.c_str(), &mut buffer) {
            match text::c_number(number) {
                Some((node, _)) if node < system::NODE_LIMIT as u64 => return Place::Node(node as usize),
                _ if first.is_none() => first = Some(rest.len()),
                _ => {}
            }
        }
        let parent = rest.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
        rest = rest.get(..parent).unwrap_or_default();
    }
    first.map_or(Place::Nowhere, Place::Unknown)
}

/// The path behind `/sys` to which a link in one of its classes leads.
fn followed(link: &Path) -> Option<Path> {
    let target = system::link(link.c_str())?;
    let at = target.bytes().windows(9).position(|part| part == b"/devices/")?;
    Some(Path::new().push(target.bytes().get(at..)?))
}

fn of_class(class: &CStr, name: &[u8]) -> Option<usize> {
    if name.iter().any(|byte| matches!(byte, b'/' | b'.')) {
        let name = Message::new().push(name);
        let format = c"Illegal characters in `%s' specification";
        error::warn(warning::DEVICE_NAME, format, Arguments::Text(name.c_str()));
        return None;
    }
    let link = Path::new().push(b"/sys/class/").push(class.to_bytes()).push(b"/").push(name);
    of_link(&link, class, name)
}

fn of_link(link: &Path, class: &CStr, name: &[u8]) -> Option<usize> {
    let Some(path) = followed(link) else { return warn_unreadable(class, name) };
    match place(path.bytes()) {
        Place::Node(node) => Some(node),
        Place::Unknown(length) => {
            let device = path.bytes().get(..length).unwrap_or_default();
            warn_unknown(Path::new().push(device).push(b"/").bytes())
        }
        Place::Nowhere => warn_unreadable(class, name),
    }
}

fn warn_unknown(device: &[u8]) -> Option<usize> {
    let device = Message::new().push(device);
    // The first two are the device's class and the blank before it, which are not known here.
    let format = c"Kernel does not know node mask for%s%s device `%s'";
    error::warn(warning::NODE_UNKNOWN, format, Arguments::ThreeTexts(c"", c"", device.c_str()));
    None
}

fn warn_unreadable(class: &CStr, name: &[u8]) -> Option<usize> {
    let name = Message::new().push(name);
    let format = c"Cannot read node mask for %s device `%s'";
    error::warn(warning::NODE_UNREADABLE, format, Arguments::Texts(class, name.c_str()));
    None
}

/// A PCI function, `[segment:]bus:device[.function]` in hexadecimal digits.
fn of_pci(address: &[u8]) -> Option<usize> {
    let Some(function) = pci_function(address) else {
        let address = Message::new().push(address);
        error::warn(warning::PCI_ADDRESS, c"Cannot parse PCI device `%s'", Arguments::Text(address.c_str()));
        return None;
    };
    let link = Path::new().push(b"/sys/bus/pci/devices/").push(function.bytes());
    match followed(&link).map(|path| place(path.bytes())) {
        Some(Place::Node(node)) => Some(node),
        Some(Place::Unknown(_)) => warn_unknown(address),
        Some(Place::Nowhere) | None => warn_unreadable(c"", address),
    }
}

/// The name that the kernel has for a function: `0000:21:00.0`.
fn pci_function(address: &[u8]) -> Option<Text<32>> {
    let (address, function) = match address.iter().position(|byte| *byte == b'.') {
        Some(dot) => (address.get(..dot)?, address.get(dot + 1..)?),
        None => (address, &b"0"[..]),
    };
    let mut parts = address.rsplit(|byte| *byte == b':');
    let device = parts.next()?;
    let bus = parts.next()?;
    let segment = parts.next().unwrap_or(b"0");
    let text = padded(Text::new(), segment, 4)?.push(b":");
    let text = padded(text, bus, 2)?.push(b":");
    let text = padded(text, device, 2)?.push(b".");
    parts.next().is_none().then_some(padded(text, function, 1)?)
}

/// Adds hexadecimal digits, with zeros before them.
fn padded(text: Text<32>, digits: &[u8], width: usize) -> Option<Text<32>> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let zeros = digits.iter().take_while(|digit| **digit == b'0').count().min(digits.len() - 1);
    let digits = digits.get(zeros..)?;
    let text = text.push(b"000".get(..width.checked_sub(digits.len())?)?);
    Some(digits.iter().fold(text, |text, digit| text.push(&[digit.to_ascii_lowercase()])))
}

/// The disk of a file, of a block device's file, or of the file system that a file is on.
fn of_file(name: &[u8]) -> Option<usize> {
    let Some(device) = device_number(name) else {
        let name = Message::new().push(name);
        error::warn(warning::NO_FILE, c"Cannot stat file %s", Arguments::Text(name.c_str()));
        return None;
    };
    let (major, minor) = device;
    let numbers = Text::<32>::new().number(major.into()).push(b":").number(minor.into());
    let link = Path::new().push(b"/sys/dev/block/").push(numbers.bytes());
    if system::link(link.c_str()).is_none() {
        let name = Message::new().push(name);
        let format = c"Cannot find block device %u:%u in sysfs for `%s'";
        error::warn(warning::NO_BLOCK_DEVICE, format, Arguments::Device(major, minor, name.c_str()));
        return None;
    }
    of_link(&link, c"block", name)
}

/// The numbers of the device that a file is, or is on.
fn device_number(name: &[u8]) -> Option<(u32, u32)> {
    // Longer than any path that the kernel takes would be cut.
    let status = kernel::status(Text::<4096>::exactly(name)?.c_str())?;
    let is_device = matches!(u32::from(status.stx_mode) & libc::S_IFMT, libc::S_IFBLK | libc::S_IFCHR);
    Some(match is_device {
        true => (status.stx_rdev_major, status.stx_rdev_minor),
        false => (status.stx_dev_major, status.stx_dev_minor),
    })
}

#[cfg(test)]
mod tests {
    use super::pci_function;
    use proptest::prelude::{any, prop_assert_eq, proptest};
    use std::format;
    use std::vec::Vec;

    fn check(address: &str, expected: Option<&str>) {
        let found = pci_function(address.as_bytes()).map(|name| name.bytes().to_vec());
        assert_eq!(found, expected.map(Vec::from), "{address:?}");
    }

    #[test]
    fn functions_have_the_kernels_names() {
        check("21:00.0", Some("0000:21:00.0"));
        check("0:1F.7", Some("0000:00:1f.7"));
        check("1:2:3", Some("0001:02:03.0"));
        check("000021:00", Some("0000:21:00.0"));
        check("10000:21:00.0", None);
        check("21:00.10", None);
        check("1:2:3:4", None);
        check("21", None);
        check(":", None);
        check("zz:00.0", None);
    }

    proptest! {
        #[test]
        fn any_function_comes_back(segment in any::<u16>(), bus in any::<u8>(), device in 0u8..32, function in 0u8..8) {
            let name = format!("{segment:04x}:{bus:02x}:{device:02x}.{function}");
            let short = format!("{segment:x}:{bus:X}:{device:x}.{function}");
            for text in [&name, &short] {
                let found = pci_function(text.as_bytes()).map(|name| name.bytes().to_vec());
                prop_assert_eq!(found, Some(name.clone().into_bytes()));
            }
        }

        #[test]
        fn any_bytes_are_parsed_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..20)) {
            pci_function(&bytes);
        }
    }
}
