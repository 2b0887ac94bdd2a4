use nodewise_machine::{Machine, Origin};

use super::*;
use crate::sysfs::{self, Detail};
use crate::tree::ReadCause;

const UUID: &str = "f8b3781a-1e82-4818-a1c3-63d806ec15bb";

/// A memory module with a serial number, and the end.
fn dmi() -> Vec<u8> {
    let mut bytes = vec![0x11, 0x1b, 1, 0, 0, 0x10, 0xfe, 0xff, 72, 0, 64, 0, 0, 4, 9, 0, 1, 0, 0x18, 0, 0];
    bytes.extend(b"\x40\x06\x02\x03\x04\x05DIMM_A1\0MAKER\0SERIAL\0SERIAL\0PART\0\0\x7f\x04\xff\xfe\0\0");
    bytes
}

/// A machine whose files say a lot about its owner.
fn talkative() -> Memory {
    let pci = "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0";
    let bus = format!("/sys/devices/vmbus/{UUID}");
    [0, 1]
        .into_iter()
        .fold(Memory::new(), |files, node| {
            let root = format!("/sys/devices/system/node/node{node}");
            files
                .file(&format!("{root}/cpumap"), format!("{}\n", 1 << node))
                .file(&format!("{root}/cpulist"), format!("{node}\n\0"))
                .file(&format!("{root}/distance"), if node == 0 { "10 21\n" } else { "21 10\n" })
                .file(&format!("{root}/meminfo"), format!("Node {node} MemTotal: 8192 kB\n"))
                .file(&format!("{root}/numastat"), "numa_hit 1\n")
                .file(&format!("{root}/hugepages/hugepages-2048kB/nr_hugepages"), "3\n")
                .file(&format!("{root}/access0/initiators/read_latency"), "80\n")
                .link_to(&format!("{root}/access0/initiators/node0"), "../../../node0")
                .directory(&format!("{root}/memory12"))
        })
        .file("/sys/devices/system/node/online", "0-1\n")
        .file("/sys/devices/system/node/possible", "0-1\n")
        .file("/sys/devices/system/cpu/present", "0-1\n")
        .file("/sys/devices/system/cpu/online", "0-1\n")
        .file("/sys/devices/system/cpu/cpu0/topology/core_id", "0\n")
        .file("/sys/devices/system/cpu/cpu0/cache/index0/level", "1\n")
        .file("/sys/devices/system/cpu/cpu0/cache/index0/type", "Data\n")
        .file(&format!("{pci}/class"), "0x020000\n")
        .file(&format!("{pci}/numa_node"), "-1\n")
        .file(&format!("{pci}/config"), "SERIAL")
        .file(&format!("{pci}/net/eth0/address"), "00:11:22:33:44:55\n")
        .file("/sys/devices/pci0000:00/0000:00:01.0/numa_node", "1\n")
        .link_to("/sys/bus/pci/devices/0000:01:00.0", "../../../devices/pci0000:00/0000:00:01.0/0000:01:00.0")
        .link_to("/sys/class/net/eth0", "../../devices/pci0000:00/0000:00:01.0/0000:01:00.0/net/eth0")
        .directory(&format!("{bus}/net/enx001122334455"))
        .file(&format!("{bus}/numa_node"), "0\n")
        .link_to("/sys/class/net/enx001122334455", &format!("../../devices/vmbus/{UUID}/net/enx001122334455"))
        .directory("/sys/devices/virtual/net/br-office")
        .link_to("/sys/class/net/br-office", "../../devices/virtual/net/br-office")
        .file("/sys/devices/virtual/dmi/id/product_name", "R820\n")
        .file("/sys/devices/virtual/dmi/id/product_serial", "SERIAL\n")
        .file("/sys/devices/virtual/dmi/id/product_uuid", UUID)
        .link_to("/sys/class/dmi/id", "../../devices/virtual/dmi/id")
        .file("/sys/firmware/dmi/tables/DMI", dmi())
        .file("/sys/firmware/dmi/entries/17-0/raw", dmi())
        .file("/sys/firmware/dmi/entries/1-0/raw", "SERIAL")
        .file("/sys/firmware/acpi/tables/SLIT", b"SLIT\xff\x00")
        .file("/sys/firmware/acpi/tables/MSDM", "SERIAL")
        .unreadable("/sys/firmware/acpi/tables/SRAT", ReadCause::System(13))
        .file("/proc/cmdline", format!("root=UUID={UUID} numa=fake=2 user=alice ro\n"))
        .file("/proc/version", "Linux version 6.12.1-foo (alice@office) (gcc) #1\n")
        .file("/proc/self/status", "Name:\talice\nCpus_allowed_list:\t0\nMems_allowed_list:\t0-1\n")
        .file("/proc/self/cgroup", "0::/user.slice/alice\n")
        .file("/proc/self/environ", "USER=alice")
        .file("/proc/mounts", "/dev/sda1 /home/alice ext4 rw 0 0\n")
        .file("/proc/cpuinfo", "processor : 0\nSerial : SERIAL\n")
        .file("/proc/hwloc-nofile-info", "HostName: office\nArchitecture: x86_64\nPageSize: 4096\n")
        .file("/proc/zoneinfo", "Node 0, zone Normal\n")
        .file(
            "/dev/kmsg",
            "5,0,0,-;Linux version 6.12.1 (alice@office)\n5,1,0,-;Fallback order for Node 0: 0 1 \n\
             6,2,0,-;DMI: SERIAL\n5,3,0,-;Unknown kernel command line parameters \"user=alice numa_x\"\n",
        )
        .file("/proc/sys/kernel/hostname", "office\n")
        .file("/proc/sys/kernel/numa_balancing", "1\n")
        .file("/proc/sys/vm/swappiness", "60\n")
}

fn machine(tree: &Tree) -> Machine {
    sysfs::load(tree, Origin::Capture("x".into()), Detail::Full)
}

/// A capture's paths, links and contents in one text.
fn everything(capture: &Capture) -> String {
    format!(
        "{:?}",
        capture
            .entries
            .iter()
            .map(|(path, entry)| match entry {
                Entry::File(contents) => format!("{path} {}", String::from_utf8_lossy(contents)),
                Entry::Link(target) => format!("{path} -> {target}"),
                Entry::Folder => path.clone(),
            })
            .collect::<Vec<_>>()
    )
}

#[test]
fn nothing_in_a_capture_identifies() {
    let text = everything(&Capture::from_tree(&Tree::memory(talkative()), Identity::Without));
    for secret in
        ["SERIAL", "alice", "office", "00:11:22", "001122334455", UUID, "b3781a", "environ", "cgroup"]
    {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
    for needed in [
        "read_latency",
        "SLIT",
        "zoneinfo",
        "Fallback order for Node 0: 0 1",
        "numastat",
        "R820",
        "root=… numa=fake=2 user=… ro",
        "/enx",
    ] {
        assert!(text.contains(needed), "{needed} not in {text}");
    }
}

#[test]
fn with_identity_everything_of_the_list_is_let_in() {
    let text = everything(&Capture::from_tree(&Tree::memory(talkative()), Identity::With));
    for told in
        ["product_serial SERIAL", "alice@office", "/user.slice/alice", "HostName: office", "br-office", UUID]
    {
        assert!(text.contains(told), "{told} not in {text}");
    }
    for never in ["config", "MSDM", "00:11:22:33:44:55", "environ"] {
        assert!(!text.contains(never), "{never}");
    }
}

#[test]
fn a_capture_loads_to_the_same_machine() {
    let tree = Tree::memory(talkative());
    let before = machine(&tree);
    assert_eq!(machine(&Capture::from_tree(&tree, Identity::With).tree()), before);
    let mut without = machine(&Capture::from_tree(&tree, Identity::Without).tree());
    let device = |machine: &Machine| machine.devices.iter().position(|device| device.pci.is_none()).unwrap();
    let (at, was) = (device(&without), device(&before));
    assert_eq!(without.devices[at].node, before.devices[was].node);
    without.devices[at].names = before.devices[was].names.clone();
    without.settings.command_line = before.settings.command_line.clone();
    assert_eq!(without, before);
}

#[test]
fn links_that_lead_through_links_make_no_impossible_capture() {
    let tree = Tree::memory(
        talkative()
            .directory("/sys/devices/virtual/dmi/id/inside")
            .link_to("/sys/class/infiniband/a", "../dmi/id/inside")
            .link_to("/sys/class/infiniband/b", "../net/eth0")
            .link_to("/sys/class/infiniband/c", "c")
            .link_to("/sys/class/infiniband/d", "/"),
    );
    for identity in [Identity::With, Identity::Without] {
        let capture = Capture::from_tree(&tree, identity);
        let unpacked = Tree::from_archive(&capture.to_tar()).unwrap();
        assert!(unpacked.notes().is_empty(), "{:?}", unpacked.notes());
        assert_eq!(machine(&unpacked), machine(&capture.tree()));
    }
}

#[test]
fn what_could_not_be_read_is_told() {
    let capture = Capture::from_tree(&Tree::memory(talkative()), Identity::Without);
    let told: Vec<String> = capture.unreadable().iter().map(ToString::to_string).collect();
    assert_eq!(told, ["cannot read /sys/firmware/acpi/tables/SRAT: permission denied"]);
}

#[test]
fn every_form_is_read_back_and_equal_input_gives_equal_bytes() {
    let tree = Tree::memory(talkative());
    let capture = Capture::from_tree(&tree, Identity::Without);
    assert_eq!(capture, Capture::from_tree(&tree, Identity::Without));
    let expected = machine(&capture.tree());
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.tar", "a.tar.gz", "a.tar.bz2", "folder"] {
        let path = folder.path().join(name);
        let written = capture.write(&path, Overwrite::Refuse).unwrap();
        assert_eq!(written.files, capture.len());
        assert_eq!(machine(&Tree::open(&path).unwrap()), expected, "{name}");
        assert!(capture.write(&path, Overwrite::Refuse).is_err(), "{name} is not replaced");
        if path.is_file() {
            let first = std::fs::read(&path).unwrap();
            assert_eq!(written.bytes, first.len() as u64);
            capture.write(&path, Overwrite::Replace).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), first);
        }
    }
    assert_eq!(
        capture.write(&folder.path().join("folder"), Overwrite::Replace).unwrap_err().to_string(),
        format!(
            "{}/folder is a folder with files in it, which is never replaced: nothing was written",
            folder.path().display()
        )
    );
    let zip = folder.path().join("a.zip");
    assert!(
        capture.write(&zip, Overwrite::Refuse).unwrap_err().to_string().contains("cannot derive the format")
    );
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 4, "nothing is left behind");
}

#[test]
fn a_capture_of_this_machine_loads_to_this_machine() {
    let live = Tree::live();
    let capture = Capture::from_tree(&live, Identity::With);
    let before = sysfs::load(&live, Origin::Live, Detail::Full);
    let after = sysfs::load(&capture.tree(), Origin::Live, Detail::Full);
    // Free memory and the like move between two readings; what does not must be equal.
    assert_eq!(after.node_ids(), before.node_ids());
    assert_eq!(
        (&after.cpus, &after.caches, &after.distances),
        (&before.cpus, &before.caches, &before.distances)
    );
    assert_eq!(
        (&after.devices, &after.tiers, &after.accesses),
        (&before.devices, &before.tiers, &before.accesses)
    );
    assert_eq!(
        (after.kernel, after.architecture, after.page_size),
        (before.kernel, before.architecture, before.page_size)
    );
    assert_eq!((after.allowed_cpus, after.allowed_nodes), (before.allowed_cpus, before.allowed_nodes));
    assert_eq!(after.settings, before.settings);
}
