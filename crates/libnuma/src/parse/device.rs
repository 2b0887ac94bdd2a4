//! Nodes by a device that is near them: `netdev:eth0`, `block:sda`, `file:/data`, `pci:21:00.0`,
//! `ip:10.0.0.1`.
//!
//! The kernel says the node of a PCI function in its `numa_node`; other devices hang below one. It
//! is looked for from the device upwards, so a device behind bridges is found, and one whose own
//! node is not known takes that of the bridge above it.

use core::ffi::CStr;

use nodewise_notation::device::{self, Device, DeviceKind, Dots, PciFunction};
use nodewise_notation::number::{self, Base};

use super::{Message, route};
use crate::error::{self, Arguments, warning};
use crate::kernel;
use crate::system::{self, FILE_BYTES, Path, Text};

/// The node of a device; `None` when it is not known, which was warned of.
pub fn node(device: Device<'_>) -> Option<usize> {
    let Device { kind, name, .. } = device;
    match kind {
        DeviceKind::Net => of_class(c"net", name),
        DeviceKind::Block => of_class(c"block", name),
        DeviceKind::File => of_file(name),
        DeviceKind::Host => of_class(c"net", route::interface(name)?.bytes()),
        DeviceKind::Pci => of_pci(name),
        // The originals have no words for these, so none comes here.
        DeviceKind::Infiniband | DeviceKind::Gpu => None,
    }
}

/// The kernel's facts about a device's place.
enum Place {
    Node(usize),
    /// No device on the way up to the root has a node; the bytes of the path of the first that
    /// could have.
    Unknown(usize),
    /// No device on the way is of a kind that has nodes.
    Nowhere,
}

/// Looks for the node of a device and of those above it. The path is that below `/sys`, such as
/// `/devices/pci0000:00/0000:00:03.0/virtio0`.
fn place(path: &[u8]) -> Place {
    let mut rest = path;
    let mut first = None;
    while rest.len() > b"/devices".len() {
        let file = Path::new().push(b"/sys").push(rest).push(b"/numa_node");
        let mut buffer = [0; FILE_BYTES];
        if let Ok(number) = system::read(file.c_str(), &mut buffer) {
            match number::leading(number, Base::Prefixed) {
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
    let Some(name) = device::class_name(name, Dots::Refused) else {
        let name = Message::new().push(number::unpadded(name));
        error::warn(warning::DEVICE_NAME, Arguments::Text(name.c_str()));
        return None;
    };
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
    error::warn(warning::NODE_UNKNOWN, Arguments::ThreeTexts(c"", c"", device.c_str()));
    None
}

fn warn_unreadable(class: &CStr, name: &[u8]) -> Option<usize> {
    let name = Message::new().push(name);
    error::warn(warning::NODE_UNREADABLE, Arguments::Texts(class, name.c_str()));
    None
}

/// A PCI function, `[domain:]bus:device[.function]` in hexadecimal digits.
fn of_pci(address: &[u8]) -> Option<usize> {
    let Some(function) = device::pci_function(address) else {
        let address = Message::new().push(address);
        error::warn(warning::PCI_ADDRESS, Arguments::Text(address.c_str()));
        return None;
    };
    let Ok(function) = function else { return warn_unreadable(c"", address) };
    let link = Path::new().push(b"/sys/bus/pci/devices/").push(kernel_name(function).bytes());
    match followed(&link).map(|path| place(path.bytes())) {
        Some(Place::Node(node)) => Some(node),
        Some(Place::Unknown(_)) => warn_unknown(address),
        Some(Place::Nowhere) | None => warn_unreadable(c"", address),
    }
}

/// The name that the kernel has for a function: `0000:21:00.0`.
fn kernel_name(function: PciFunction) -> Text<32> {
    let PciFunction { domain, bus, device, function } = function;
    let text = Text::new().hexadecimal(domain, 4).push(b":").hexadecimal(bus.into(), 2).push(b":");
    text.hexadecimal(device.into(), 2).push(b".").hexadecimal(function.into(), 1)
}

/// The disk of a file, of a block device's file, or of the file system that a file is on.
fn of_file(name: &[u8]) -> Option<usize> {
    let Some(device) = device_number(name) else {
        let name = Message::new().push(name);
        error::warn(warning::NO_FILE, Arguments::Text(name.c_str()));
        return None;
    };
    let (major, minor) = device;
    let numbers = Text::<32>::new().number(major.into()).push(b":").number(minor.into());
    let link = Path::new().push(b"/sys/dev/block/").push(numbers.bytes());
    if system::link(link.c_str()).is_none() {
        let name = Message::new().push(name);
        error::warn(warning::NO_BLOCK_DEVICE, Arguments::Device(major, minor, name.c_str()));
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
    use super::*;
    use proptest::prelude::{prop_assert_eq, proptest};
    use std::format;

    proptest! {
        #[test]
        fn functions_have_the_kernels_names(domain: u32, bus: u8, device in 0u8..32, function in 0u8..8) {
            let name = kernel_name(PciFunction { domain, bus, device, function });
            let expected = format!("{domain:04x}:{bus:02x}:{device:02x}.{function}");
            prop_assert_eq!(name.bytes(), expected.as_bytes());
        }
    }
}
