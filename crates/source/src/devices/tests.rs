use nodewise_machine::{Origin, spec};

use super::host::{PacketRoute, interface};
use super::*;
use crate::sysfs;
use crate::tree::Memory;

/// Two nodes; an NVMe disk on node 1, a SATA disk behind a bridge of node 0, a card without a node,
/// and what is stacked upon them.
fn tree() -> Tree {
    let pci = "/sys/devices/pci0000:00";
    let files = [0, 1].into_iter().fold(Memory::new(), |files, node| {
        files.file(&format!("/sys/devices/system/node/node{node}/cpumap"), format!("{node}\n"))
    });
    let files = files
        .file(&format!("{pci}/0000:00:01.0/numa_node"), "0\n")
        .file(&format!("{pci}/0000:00:01.0/0000:01:00.0/numa_node"), "-1\n")
        .file(&format!("{pci}/0000:00:02.0/numa_node"), "1\n")
        .file(&format!("{pci}/0000:00:03.0/numa_node"), "-1\n")
        .file(&format!("{pci}/0000:00:04.0/numa_node"), "1\n")
        .file(&format!("{pci}/0000:00:04.0/class"), "0x030200\n");
    let link = |files: Memory, class: &str, name: &str, path: &str| {
        files.directory(path).link_to(&format!("/sys/class/{class}/{name}"), path)
    };
    let sata = format!("{pci}/0000:00:01.0/0000:01:00.0/ata1/host0/target0:0:0/0:0:0:0/block/sda");
    let nvme = format!("{pci}/0000:00:02.0/nvme/nvme0/nvme0n1");
    let virt = "/sys/devices/virtual";
    let files = link(files, "block", "sda", &sata);
    let files = link(files, "block", "sda1", &format!("{sata}/sda1"));
    let files = link(files, "block", "nvme0n1", &nvme);
    let files = link(files, "block", "nvme0n1p1", &format!("{nvme}/nvme0n1p1"));
    let files = link(files, "block", "dm-0", &format!("{virt}/block/dm-0"));
    let files = link(files, "block", "dm-1", &format!("{virt}/block/dm-1"));
    let files = link(files, "block", "md0", &format!("{virt}/block/md0"));
    let files = link(files, "block", "md0p1", &format!("{virt}/block/md0/md0p1"));
    let files = link(files, "block", "loop0", &format!("{virt}/block/loop0"));
    let files = link(files, "net", "eth0", &format!("{pci}/0000:00:03.0/net/eth0"));
    let files = link(files, "net", "eth1", &format!("{pci}/0000:00:02.0/net/eth1"));
    let files = link(files, "net", "bond0", &format!("{virt}/net/bond0"));
    let files = link(files, "net", "lo", &format!("{virt}/net/lo"));
    Tree::memory(
        files
            .link_to("/sys/bus/pci/devices/0000:00:04.0", "../../../devices/pci0000:00/0000:00:04.0")
            .link_to(&format!("{virt}/block/dm-0/slaves/nvme0n1p1"), &format!("{nvme}/nvme0n1p1"))
            .link_to(&format!("{virt}/block/dm-1/slaves/dm-0"), &format!("{virt}/block/dm-0"))
            .link_to(&format!("{virt}/block/md0/slaves/sda1"), &format!("{sata}/sda1"))
            .link_to(&format!("{virt}/block/md0/slaves/nvme0n1"), &nvme)
            .link_to(&format!("{virt}/net/bond0/lower_eth1"), &format!("{pci}/0000:00:02.0/net/eth1"))
            .link_to(&format!("{virt}/net/lo/lower_lo"), &format!("{virt}/net/lo")),
    )
}

fn look_up(tree: Option<&Tree>, machine: &Machine, device: &str) -> Result<u32, String> {
    node_of_device(tree, machine, &device.parse().unwrap())
        .map(NodeId::number)
        .map_err(|error| error.to_string())
}

#[test]
fn devices_lead_to_their_node() {
    let tree = tree();
    let machine = sysfs::load(&tree, Origin::Live, Detail::Full);
    for (device, node) in [
        ("block:sda", 0),
        ("block:sda1", 0),
        ("block:/dev/nvme0n1", 1),
        ("block:nvme0n1p1", 1),
        ("block:dm-0", 1),
        ("block:dm-1", 1),
        ("net:eth1", 1),
        ("net:bond0", 1),
        ("pci:00:04.0", 1),
        ("pci:01:00.0", 0),
        ("gpu:0", 1),
    ] {
        assert_eq!(look_up(Some(&tree), &machine, device), Ok(node), "{device}");
    }
}

#[test]
fn what_has_no_node_is_told_why() {
    let tree = tree();
    let machine = sysfs::load(&tree, Origin::Live, Detail::Full);
    for (device, message) in [
        (
            "net:eth0",
            "the kernel does not know the node of net:eth0: neither it nor a bridge above it has a numa_node, and its local CPUs are not those of one node",
        ),
        ("net:lo", "net:lo has no node: it is made by software, without a device behind it"),
        ("block:loop0", "block:loop0 has no node: it is made by software, without a device behind it"),
        ("block:md0", "block:md0 spans nodes 0-1"),
        ("block:md0p1", "block:md0p1 spans nodes 0-1"),
        ("net:eth9", "net:eth9 does not exist: this machine has net:bond0, net:eth0, net:eth1"),
        ("ib:mlx5_0", "ib:mlx5_0 does not exist: this machine has none of its kind"),
        ("gpu:1", "gpu:1 does not exist: this machine has gpu:0"),
        (
            "pci:ff:00.0",
            "pci:0000:ff:00.0 does not exist: this machine has pci:0000:00:02.0, pci:0000:00:03.0, pci:0000:00:04.0, pci:0000:01:00.0",
        ),
        ("file:/etc/passwd", "file:/etc/passwd can only be looked up on the running system"),
        ("ip:192.0.2.1", "ip:192.0.2.1 can only be looked up on the running system"),
    ] {
        assert_eq!(look_up(Some(&tree), &machine, device), Err(message.to_owned()));
    }
}

#[test]
fn a_machine_without_files_knows_the_devices_it_holds() {
    let machine = spec::machine("2x(1c 1G); dev=net:eth0@1; dev=gpu:0@0").unwrap();
    assert_eq!(look_up(None, &machine, "net:eth0"), Ok(1));
    assert_eq!(look_up(None, &machine, "gpu:0"), Ok(0));
    assert_eq!(
        look_up(None, &machine, "net:eth1"),
        Err("net:eth1 does not exist: this machine has net:eth0".to_owned())
    );
}

#[test]
fn a_disk_of_several_paths_lies_where_its_controllers_are() {
    let subsystem = "/sys/devices/virtual/nvme-subsystem/nvme-subsys0";
    let controller = "/sys/devices/pci0000:80/0000:80:01.0/nvme/nvme0";
    let tree = Tree::memory(
        Memory::new()
            .file("/sys/devices/system/node/node3/cpumap", "1\n")
            .file("/sys/devices/pci0000:80/0000:80:01.0/numa_node", "3\n")
            .directory(&format!("{subsystem}/nvme0n1/nvme0n1p1"))
            .directory(controller)
            .link_to(&format!("{subsystem}/nvme0"), "../../../pci0000:80/0000:80:01.0/nvme/nvme0")
            .link_to("/sys/class/block/nvme0n1", "../../devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1")
            .link_to(
                "/sys/class/block/nvme0n1p1",
                "../../devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1/nvme0n1p1",
            ),
    );
    let machine = sysfs::load(&tree, Origin::Live, Detail::Full);
    assert_eq!(machine.devices[0].name_in(DeviceClass::Block), Some("nvme0n1"));
    assert_eq!(machine.devices[0].node, Some(NodeId::new(3)));
    assert_eq!(look_up(Some(&tree), &machine, "block:nvme0n1"), Ok(3));
    assert_eq!(look_up(Some(&tree), &machine, "block:nvme0n1p1"), Ok(3));
}

#[test]
fn routes_lead_to_an_interface() {
    let word = |address: [u8; 4]| format!("{:08X}", u32::from_ne_bytes(address));
    let tree = Tree::memory(
        Memory::new()
            .file("/proc/net/fib_trie", "  |-- 192.0.2.2\n     /32 host LOCAL\n")
            .file("/proc/net/route", format!("Iface\neth0 {} 0 0001 0 0 0 {}\n", word([192, 0, 2, 0]), word([255, 255, 255, 0])))
            .file(
                "/proc/net/ipv6_route",
                "fd000000000000000000000000000000 40 0 00 0 00000100 1 0 00000001 eth1\nfd000000000000000000000000000002 80 0 00 0 00000000 3 0 80200001 eth1\n",
            ),
    );
    for (address, way) in [
        ("192.0.2.77", PacketRoute::Through("eth0".into())),
        ("192.0.2.2", PacketRoute::Own),
        ("127.0.0.9", PacketRoute::Own),
        ("0.0.0.0", PacketRoute::Own),
        ("198.51.100.1", PacketRoute::None),
        ("fd00::9", PacketRoute::Through("eth1".into())),
        ("fd00::2", PacketRoute::Own),
        ("::1", PacketRoute::Own),
        ("2001:db8::1", PacketRoute::None),
    ] {
        assert_eq!(interface(&tree, address.parse().unwrap()), Ok(way), "{address}");
    }
}

#[test]
fn files_and_hosts_of_this_system_are_looked_up() {
    let tree = Tree::live();
    let machine = sysfs::load(&tree, Origin::Live, Detail::Overview);
    let lost = look_up(Some(&tree), &machine, "file:/no/such/file").unwrap_err();
    assert_eq!(lost, "cannot find the device of /no/such/file: no such file or directory");
    let proc = look_up(Some(&tree), &machine, "file:/proc/version").unwrap_err();
    assert_eq!(proc, "/proc/version lies on a file system, which has no block device of its own");
    let own = look_up(Some(&tree), &machine, "ip:127.0.0.1").unwrap_err();
    assert_eq!(
        own,
        "ip:127.0.0.1 is an address of this machine: it is reached through lo, which has no node"
    );
    assert_eq!(look_up(Some(&tree), &machine, "ip:[::1]").unwrap_err(), own.replace("127.0.0.1", "[::1]"));
}
