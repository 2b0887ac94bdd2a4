//! Devices and the nodes they hang on.

use nodewise_machine::{CpuSet, Device};

use super::load;
use super::machines::{plain, with_pci};

fn names(device: &Device) -> Vec<String> {
    device.names.iter().map(|name| format!("{} {}", name.class.word(), name.name)).collect()
}

#[test]
fn devices_have_names_classes_and_the_node_of_a_bridge_above() {
    let machine = load(with_pci(plain()));
    let found: Vec<(String, Option<u32>, Vec<String>)> = machine
        .devices
        .iter()
        .map(|device| {
            (
                device.pci.map_or_else(String::new, |pci| pci.to_string()),
                device.node.map(|node| node.number()),
                names(device),
            )
        })
        .collect();
    let strings = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(
        found,
        [
            ("0000:00:01.0".to_owned(), Some(1), vec![]),
            ("0000:00:02.0".to_owned(), Some(0), strings(&["gpu card0"])),
            ("0000:01:00.0".to_owned(), Some(1), strings(&["net eth0", "infiniband mlx5_0"])),
            ("0000:01:00.1".to_owned(), Some(1), strings(&["block nvme0n1", "nvme nvme0"])),
            (String::new(), Some(1), strings(&["net eth1"])),
        ]
    );
    assert_eq!(machine.devices[1].vendor, Some(0x10de));
    assert_eq!(machine.devices[1].local_cpus, CpuSet::from([0, 1]));
    assert!(machine.oddities.is_empty(), "{:?}", machine.oddities);
}

#[test]
fn a_capture_without_classes_has_the_names_below_its_functions() {
    let files = with_pci(plain()).without("/sys/class");
    let machine = load(files);
    assert_eq!(names(&machine.devices[2]), ["net eth0", "infiniband mlx5_0"]);
}

#[test]
fn a_device_on_a_node_that_is_not_there_is_told() {
    let machine = load(with_pci(plain()).file("/sys/devices/pci0000:00/0000:00:02.0/numa_node", "7\n"));
    assert_eq!(machine.devices[1].node, None);
    assert_eq!(
        machine.oddities[0].to_string(),
        "/sys/devices/pci0000:00/0000:00:02.0/numa_node: it says node 7, and this machine has nodes 0-1"
    );
}
