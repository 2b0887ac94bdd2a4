//! Devices and the nodes they hang on.

use nodewise_machine::{Bytes, CpuSet, DaxMemory, Device, Machine, Origin};
use nodewise_source::devices::node_of_device;
use nodewise_source::tree::{Memory, Tree};
use nodewise_source::{Detail, sysfs};

use super::machines::{PCI, plain, with_pci};
use super::{load, n};

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
fn a_device_has_its_link() {
    let files = |speed: &str, width: &str| {
        let folder = "/sys/devices/pci0000:00/0000:00:02.0";
        with_pci(plain())
            .file(&format!("{folder}/current_link_speed"), speed)
            .file(&format!("{folder}/current_link_width"), width)
            .file(&format!("{folder}/max_link_speed"), "16.0 GT/s PCIe\n")
            .file(&format!("{folder}/max_link_width"), "16\n")
    };
    let link = |machine: &Machine| machine.devices[1].link.map(|link| link.to_string());
    let machine = load(files("8.0 GT/s PCIe\n", "8\n"));
    assert_eq!(link(&machine).as_deref(), Some("8 of 16 GT/s x8 of x16"));
    assert!(machine.oddities.is_empty(), "{:?}", machine.oddities);
    let machine = load(files("Unknown\n", "0\n"));
    assert_eq!(link(&machine).as_deref(), Some(""), "no link is up");
    let machine = load(files("6.0 GT/s PCIe\n", "8\n"));
    assert_eq!(link(&machine).as_deref(), Some("x8 of x16"));
    let text = "expected a link speed, as in 16.0 GT/s PCIe, found \"6.0 GT/s PCIe\"";
    assert!(machine.oddities[0].to_string().ends_with(text), "{:?}", machine.oddities);
    assert_eq!(load(with_pci(plain())).devices[1].link, None);
}

#[test]
fn a_number_of_a_device_that_lost_a_digit_is_told() {
    let path = "/sys/devices/pci0000:00/0000:00:02.0/vendor";
    let machine = load(with_pci(plain()).file(path, "0x1de\n"));
    assert_eq!(machine.devices[1].vendor, None);
    let text = format!("{path}:1: expected 0x and 4 hexadecimal digits, found \"0x1de\"");
    assert_eq!(machine.oddities.iter().map(ToString::to_string).collect::<Vec<_>>(), [text]);
}

#[test]
fn a_device_on_a_node_that_is_not_there_is_told() {
    let machine = load(with_pci(plain()).file("/sys/devices/pci0000:00/0000:00:02.0/numa_node", "7\n"));
    assert_eq!(machine.devices[1].node, Some(n(0)), "where its local CPUs are");
    assert_eq!(
        machine.oddities[0].to_string(),
        "/sys/devices/pci0000:00/0000:00:02.0/numa_node: it says node 7, and this machine has nodes 0-1"
    );
}

#[test]
fn a_device_with_node_minus_one_is_where_its_local_cpus_are_and_every_way_to_ask_agrees() {
    let folder = "/sys/devices/pci0000:80/0000:80:02.0";
    let name = format!("{folder}/net/eth7");
    let files = |list: &str, mask: &str| {
        with_pci(plain())
            .file(&format!("{folder}/numa_node"), "-1\n")
            .file(&format!("{folder}/class"), "0x020000\n")
            .file(&format!("{folder}/local_cpulist"), list)
            .file(&format!("{folder}/local_cpus"), mask)
            .link_to(
                &format!("{PCI}/0000:80:02.0"),
                &format!("../../..{}", folder.trim_start_matches("/sys")),
            )
            .directory(&name)
            .link_to("/sys/class/net/eth7", &format!("../..{}", name.trim_start_matches("/sys")))
    };
    let homes = |files: Memory| {
        let tree = Tree::memory(files);
        let machine = sysfs::load(&tree, Origin::Capture("test".to_owned()), Detail::Full);
        let shown = machine.device(&"net:eth7".parse().unwrap()).unwrap().node;
        for name in ["net:eth7", "pci:80:02.0"] {
            let reference = name.parse().unwrap();
            assert_eq!(node_of_device(Some(&tree), &machine, &reference).ok(), shown, "{name}");
            assert_eq!(node_of_device(None, &machine, &reference).ok(), shown, "{name} without files");
            // An overview holds no functions without names, and no attributes of those with names.
            let bare = Machine { devices: Vec::new(), ..machine.clone() };
            assert_eq!(node_of_device(Some(&tree), &bare, &reference).ok(), shown, "{name} by its files");
        }
        let told: Vec<String> = machine.oddities.iter().map(ToString::to_string).collect();
        (shown, told)
    };
    assert_eq!(homes(files("2-3\n", "c\n")), (Some(n(1)), vec![]));
    assert_eq!(homes(files("0-3\n", "f\n")), (None, vec![]));
    assert_eq!(
        homes(files("2-3\n", "3\n")),
        (
            Some(n(1)),
            vec![format!(
                "{folder}/local_cpus: it names CPUs 0-1, but local_cpulist names CPUs 2-3: local_cpulist is believed"
            )]
        )
    );
}

#[test]
fn dax_devices_have_a_node_now_and_one_for_their_memory() {
    let folder = "/sys/devices/LNXSYSTM:00/ndbus0/region0/dax0.1/dax0.0";
    let files = plain()
        .file(&format!("{folder}/numa_node"), "1\n")
        .file(&format!("{folder}/target_node"), "4\n")
        .file(&format!("{folder}/size"), "799063146496\n")
        .link_to("/sys/bus/dax/devices/dax0.0", &format!("../../..{}", folder.trim_start_matches("/sys")));
    let machine = load(files);
    let [device] = &machine.devices[..] else { panic!("{:?}", machine.devices) };
    assert_eq!((names(device), device.node), (vec!["dax dax0.0".to_owned()], Some(n(1))));
    let dax = DaxMemory { node: Some(n(4)), size: Some(Bytes::new(799_063_146_496)) };
    assert_eq!(device.dax, Some(dax));
    assert!(machine.oddities.is_empty(), "{:?}", machine.oddities);
}
