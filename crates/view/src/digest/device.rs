//! Devices by node, under the names by which `--near` finds them.

use std::collections::BTreeMap;

use nodewise_machine::printable::quote;
use nodewise_machine::{Device, DeviceClass, DeviceRef, Machine, NodeId};

/// A device with the names a reader can use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownDevice<'a> {
    pub device: &'a Device,
    /// Its names, best first: `gpu:0`, `net:eth0`. Foreign text: kernel names.
    pub names: Vec<String>,
    /// Maker and model as far as is known: `NVIDIA 10de:2330`; of a DAX device its size and the node that its
    /// memory would be: `744.2 GiB for node 7`.
    pub model: Option<String>,
}

/// The devices of a node.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct DevicesOfNode<'a> {
    /// Those with a name, and those that compute.
    pub shown: Vec<ShownDevice<'a>>,
    /// How many others there are: bridges, and functions without a driver.
    pub others: usize,
}

/// Devices by node; `None` holds those that the kernel does not place.
pub fn devices_by_node(machine: &Machine) -> BTreeMap<Option<NodeId>, DevicesOfNode<'_>> {
    let gpus = machine.gpus();
    let mut nodes: BTreeMap<Option<NodeId>, DevicesOfNode<'_>> = BTreeMap::new();
    for device in &machine.devices {
        let gpu = gpus.iter().position(|gpu| std::ptr::eq(*gpu, device));
        let of_node = nodes.entry(machine.home_of(device)).or_default();
        if device.names.is_empty() && gpu.is_none() && !is_named_by_hand(device) {
            of_node.others += 1;
        } else {
            of_node.shown.push(ShownDevice { device, names: names(device, gpu), model: model(device) });
        }
    }
    nodes
}

/// A PCI function with nothing but its address known was named by someone in a spec.
fn is_named_by_hand(device: &Device) -> bool {
    device.pci.is_some() && device.class_code.is_none() && device.vendor.is_none()
}

fn names(device: &Device, gpu: Option<usize>) -> Vec<String> {
    let mut names: Vec<String> = gpu.map(|index| DeviceRef::Gpu(index).to_string()).into_iter().collect();
    let has_block = device.name_in(DeviceClass::Block).is_some();
    for class in DeviceClass::ALL {
        for name in device.names.iter().filter(|name| name.class == class) {
            // A name of blanks, which no kernel gives, would not be seen.
            let text = if name.name.trim().is_empty() { quote(&name.name) } else { name.name.clone() };
            names.push(match class {
                DeviceClass::Net => DeviceRef::Net(text).to_string(),
                DeviceClass::Block => DeviceRef::Block(text).to_string(),
                DeviceClass::Infiniband => DeviceRef::Infiniband(text).to_string(),
                // The controller is found through its disk; alone it is all there is.
                DeviceClass::Nvme if has_block => continue,
                DeviceClass::Nvme => DeviceRef::Block(text).to_string(),
                DeviceClass::Gpu | DeviceClass::Accelerator | DeviceClass::Dax => text,
            });
        }
    }
    if names.is_empty() {
        names.extend(device.pci.map(|address| DeviceRef::Pci(address).to_string()));
    }
    names
}

/// Makers of what people place programs near to, by PCI vendor id (PCI SIG member list).
const MAKERS: [(u16, &str); 14] = [
    (0x1000, "Broadcom"),
    (0x1002, "AMD"),
    (0x1022, "AMD"),
    (0x10de, "NVIDIA"),
    (0x1344, "Micron"),
    (0x144d, "Samsung"),
    (0x14e4, "Broadcom"),
    (0x15b3, "NVIDIA Mellanox"),
    (0x19e5, "Huawei"),
    (0x1af4, "virtio"),
    (0x1c5c, "SK hynix"),
    (0x1d0f, "Amazon"),
    (0x1da3, "Habana"),
    (0x8086, "Intel"),
];

fn model(device: &Device) -> Option<String> {
    if let Some(dax) = device.dax {
        let size = dax.size.map(|size| size.to_string());
        // The node exists only once the device is ordinary memory.
        let node = dax.node.map(|node| format!("for node {node}"));
        return Some(size.into_iter().chain(node).collect::<Vec<_>>().join(" "))
            .filter(|text| !text.is_empty());
    }
    let vendor = device.vendor?;
    let maker = MAKERS.iter().find(|(id, _)| *id == vendor).map(|(_, maker)| format!("{maker} "));
    let maker = maker.unwrap_or_default();
    Some(match device.device {
        Some(device) => format!("{maker}{vendor:04x}:{device:04x}"),
        None => format!("{maker}{vendor:04x}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::{Bytes, CpuSet, DaxMemory, DeviceName, Origin};

    fn device(pci: &str, class_code: u32, names: &[(DeviceClass, &str)], node: Option<u32>) -> Device {
        Device {
            pci: Some(pci.parse().unwrap()),
            class_code: Some(class_code),
            vendor: Some(0x10de),
            device: Some(0x2330),
            names: names
                .iter()
                .map(|(class, name)| DeviceName { class: *class, name: (*name).to_owned() })
                .collect(),
            node: node.map(NodeId::new),
            local_cpus: CpuSet::new(),
            link: None,
            dax: None,
        }
    }

    #[test]
    fn a_name_of_blanks_is_quoted() {
        let device = device("17:00.0", 0x03_00_00, &[(DeviceClass::Gpu, " ")], None);
        assert_eq!(names(&device, None), ["\" \""]);
    }

    #[test]
    fn dax_devices_tell_their_size_and_their_node_to_be() {
        let dax = |node: Option<u32>, size: Option<u64>| {
            let dax = DaxMemory { node: node.map(NodeId::new), size: size.map(Bytes::from_gib) };
            model(&Device { dax: Some(dax), ..Device::default() })
        };
        assert_eq!(dax(Some(7), Some(64)).as_deref(), Some("64 GiB for node 7"));
        assert_eq!(dax(None, Some(64)).as_deref(), Some("64 GiB"));
        assert_eq!(dax(None, None), None);
    }

    #[test]
    fn devices_carry_the_names_that_near_takes() {
        let mut machine = Machine::new(Origin::Live);
        machine.devices = vec![
            device("17:00.0", 0x03_02_00, &[], Some(0)),
            device(
                "18:00.0",
                0x02_00_00,
                &[(DeviceClass::Infiniband, "mlx5_0"), (DeviceClass::Net, "eth0")],
                Some(0),
            ),
            device(
                "19:00.0",
                0x01_08_02,
                &[(DeviceClass::Block, "nvme0n1"), (DeviceClass::Nvme, "nvme0")],
                Some(1),
            ),
            device("1a:00.0", 0x01_08_02, &[(DeviceClass::Nvme, "nvme1")], Some(1)),
            device("1b:00.0", 0x06_04_00, &[], Some(1)),
            device("1c:00.0", 0x02_00_00, &[(DeviceClass::Net, "eth1")], None),
        ];
        let written: Vec<String> = devices_by_node(&machine)
            .iter()
            .map(|(node, devices)| {
                let names: Vec<String> = devices.shown.iter().map(|shown| shown.names.join("+")).collect();
                format!("{:?} {} +{}", node.map(NodeId::number), names.join(" "), devices.others)
            })
            .collect();
        assert_eq!(
            written,
            [
                "None net:eth1 +0",
                "Some(0) gpu:0 ib:mlx5_0+net:eth0 +0",
                "Some(1) block:nvme0n1 block:nvme1 +1"
            ]
        );
        let devices = devices_by_node(&machine);
        assert_eq!(devices[&None].shown[0].model.as_deref(), Some("NVIDIA 10de:2330"));
    }
}
