//! Devices in the XML of hwloc: PCI functions, and devices of the system that hang on them or elsewhere.

use nodewise_machine::order::Order as _;
use nodewise_machine::{Device, DeviceClass, DeviceName};
use roxmltree::Node as Element;

use super::hwloc_xml::{Reader, around};
use crate::limits::MOST_CPUS;
use crate::parse::number::hex_digits;

/// Reads an object, if it is a device.
pub(super) fn read(reader: &mut Reader<'_, '_>, object: Element<'_, '_>) {
    let is_bridge = object.attribute("type") == Some("Bridge") && object.attribute("pci_busid").is_some();
    match object.attribute("type") {
        Some("PCIDev") => function(reader, object),
        Some("Bridge") if is_bridge => function(reader, object),
        Some("OSDev") if !around(object).any(is_function) => {
            let names: Vec<DeviceName> = name(object).into_iter().collect();
            if !names.is_empty() {
                let device = Device { names, ..Device::default() };
                add(reader, object, device);
            }
        }
        _ => {}
    }
}

fn is_function(object: Element<'_, '_>) -> bool {
    object.attribute("type") == Some("PCIDev")
}

fn function(reader: &mut Reader<'_, '_>, object: Element<'_, '_>) {
    let text = object.attribute("pci_busid").unwrap_or("");
    let Ok(address) = text.parse() else {
        return reader.problem(object, "a PCI address such as 0000:01:00.0 as pci_busid", text);
    };
    let mut device = Device { pci: Some(address), ..Device::default() };
    if let Some(text) = object.attribute("pci_type") {
        match identity(text) {
            Some((class, vendor, number)) => {
                // hwloc keeps class and subclass, and not the interface below them.
                device.class_code = Some(u32::from(class) << 8);
                (device.vendor, device.device) = (Some(vendor), Some(number));
            }
            None => reader.problem(object, "a pci_type such as 0200 [15b3:1017] [15b3:0020] 00", text),
        }
    }
    let inner = object.children().filter(|inner| inner.attribute("type") == Some("OSDev"));
    // The names below a bridge are those of the functions behind it.
    if is_function(object) {
        device.names = inner.filter_map(name).take(16).collect();
        device.names.order();
    }
    add(reader, object, device);
}

/// Class, vendor and device of `0200 [15b3:1017] [15b3:0020] 00`.
fn identity(text: &str) -> Option<(u16, u16, u16)> {
    let hex = |digits: &str| hex_digits(digits).and_then(|number| u16::try_from(number).ok());
    let (class, rest) = text.split_once(" [")?;
    let (vendor, rest) = rest.split_once(':')?;
    let (device, _) = rest.split_once(']')?;
    Some((hex(class)?, hex(vendor)?, hex(device)?))
}

/// The kernel's name of a device of the system; `None` for names that only a library gives.
fn name(object: Element<'_, '_>) -> Option<DeviceName> {
    let name = object.attribute("name").filter(|name| !name.is_empty())?;
    let class = match object.attribute("osdev_type")? {
        "0" | "6" if name.starts_with("dax") => DeviceClass::Dax,
        "0" => DeviceClass::Block,
        "1" if name.starts_with("card") => DeviceClass::Gpu,
        "2" => DeviceClass::Net,
        "3" => DeviceClass::Infiniband,
        _ => return None,
    };
    Some(DeviceName { class, name: name.to_owned() })
}

/// Adds a device with its place: that of the nearest object around it that has CPUs.
fn add(reader: &mut Reader<'_, '_>, object: Element<'_, '_>, mut device: Device) {
    let outer = around(object).find(|outer| outer.attribute("cpuset").is_some());
    if let Some(cpus) = outer.and_then(|outer| reader.cpus(outer, "cpuset")) {
        device.local_cpus = cpus.intersection(&reader.machine.cpu_ids());
        device.node = reader.machine.home_of(&device);
    }
    if reader.machine.devices.len() < 8 * MOST_CPUS as usize {
        reader.machine.devices.push(device);
    }
}
