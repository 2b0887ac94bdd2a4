//! Texts that a person read before they were accepted. `SNAPSHOTS=overwrite` writes them again.

use std::path::Path;

use nodewise_machine::{
    CpuId, CpuSet, Device, DeviceClass, DeviceName, Machine, MeminfoField, MeminfoValue, NodeId, NodeSet,
    Oddity, OddityKind, spec,
};
use nodewise_view::Style;
use nodewise_view::text::{overview, overview::HINTS, show};

pub(crate) fn check(name: &str, text: String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(format!("{name}.txt"));
    let expected = snapbox::Data::read_from(&path, None).raw();
    snapbox::Assert::new().action_env(snapbox::assert::DEFAULT_ACTION_ENV).eq(text, expected);
}

fn check_spec(name: &str, spec: &str, widths: &[usize]) {
    let machine = spec::machine(spec).expect("the spec is one");
    for width in widths {
        check(&format!("{name}-{width}"), show(&machine, &Style::plain(*width)));
    }
}

#[test]
fn laptop() {
    check_spec("laptop", "(4c2t 16G l1d=48K l1i=32K l2=1280K l3=8M/4c); arch=x86_64; kernel=6.12.5", &[80]);
}

#[test]
fn two_sockets() {
    check_spec("two-sockets", "2x(10c2t 64G l3=25M/10c); dist=21; dev=net:eth0@0", &[60, 100]);
}

#[test]
fn two_packages_of_two_nodes() {
    check_spec("four-nodes", "2x(2x(24c 126G l3=32M/6c)); dist=11,20", &[60, 80, 140]);
}

#[test]
fn a_pi_with_emulated_nodes() {
    check_spec("pi", "(4c 1G) 7x(1G); arch=aarch64; kernel=6.12.20-rpi", &[40, 80]);
}

#[test]
fn cxl_memory_in_tiers() {
    let spec = "2x(16c2t 256G tier=4) (512G tier=22 huge=2M:512) (512G tier=22); \
                dist=10,21,14,24/21,10,24,14/14,24,10,26/24,14,26,10; \
                access=0>0:90ns/200G; access=1>1:90ns/200G; access=0-1>2:250ns,300ns/30G; \
                access=0-1>3:250ns,300ns/30G; weights=0:5,1:5,2:1,3:1";
    check_spec("cxl", spec, &[60, 100]);
}

#[test]
fn sixty_four_nodes_alike() {
    check_spec("nodes-64", "32x(2x(4c 8G)); dist=16,40", &[80]);
}

/// Twenty nodes in five groups whose distances no sentence says: a ring.
fn ring() -> Machine {
    let mut machine = spec::machine("20x(2c 4G)").expect("the spec is one");
    for (from, to) in (0u32..20).flat_map(|from| (0u32..20).map(move |to| (from, to))) {
        let around = (from / 4).abs_diff(to / 4);
        let distance = match (from == to, around.min(5 - around)) {
            (true, _) => 10,
            (_, 0) => 12,
            (_, 1) => 21,
            _ => 31,
        };
        machine.distances.set(NodeId::new(from), NodeId::new(to), distance);
    }
    machine
}

#[test]
fn nodes_in_a_ring_stand_in_classes_or_in_a_list() {
    for width in [40, 60, 140] {
        check(&format!("ring-{width}"), show(&ring(), &Style::plain(width)));
    }
}

fn size(name: &str, mib: u64) -> MeminfoField {
    let value = MeminfoValue::Size(nodewise_machine::Bytes::from_mib(mib));
    MeminfoField { name: name.to_owned(), value }
}

fn device(
    pci: &str,
    class_code: u32,
    vendor: u16,
    names: &[(DeviceClass, &str)],
    node: Option<u32>,
) -> Device {
    let name = |(class, name): &(DeviceClass, &str)| DeviceName { class: *class, name: (*name).to_owned() };
    Device {
        pci: pci.parse().ok(),
        class_code: Some(class_code),
        vendor: Some(vendor),
        device: Some(0x1234),
        names: names.iter().map(name).collect(),
        node: node.map(NodeId::new),
        local_cpus: CpuSet::new(),
        link: None,
        dax: None,
    }
}

/// A server in use, in a container, with a little of everything that can be unusual.
fn server() -> Machine {
    let spec = "2x(8c2t 64G l1d=32K l2=1M l3=32M/8c huge=2M:1024) (64G); \
                dist=10,21,17/21,10,28/17,27,10; arch=x86_64; kernel=6.12.107+deb13-amd64";
    let mut machine = spec::machine(spec).expect("the spec is one");
    for (node, free) in [(0u32, 49_251), (1, 410), (2, 65_000)] {
        let node = machine.nodes.get_mut(&NodeId::new(node)).expect("three nodes");
        node.meminfo.push(size("MemFree", free));
    }
    machine.devices = vec![
        device("17:00.0", 0x03_02_00, 0x10de, &[], Some(0)),
        device(
            "31:00.0",
            0x02_07_00,
            0x15b3,
            &[(DeviceClass::Infiniband, "mlx5_0"), (DeviceClass::Net, "ibp0")],
            Some(1),
        ),
        device(
            "41:00.0",
            0x01_08_02,
            0x144d,
            &[(DeviceClass::Block, "nvme0n1"), (DeviceClass::Nvme, "nvme0")],
            Some(1),
        ),
        device("42:00.0", 0x06_04_00, 0x8086, &[], Some(1)),
        device("none", 0, 0, &[(DeviceClass::Block, "zram0"), (DeviceClass::Net, "tun\u{1b}[31m")], None),
    ];
    machine.settings.numa_balancing = Some(1);
    machine.settings.zone_reclaim_mode = Some(0);
    machine.settings.transparent_hugepage = Some("madvise".to_owned());
    machine.settings.demotion_enabled = Some(false);
    machine.settings.swappiness = Some(60);
    machine.settings.command_line = Some("ro quiet hugepages=2048 numa_balancing=enable".to_owned());
    machine.allowed_cpus = Some(CpuSet::range(CpuId::new(0), CpuId::new(7)));
    machine.allowed_nodes = Some(NodeSet::from([0]));
    machine.oddities.insert(
        0,
        Oddity::in_file(
            OddityKind::Unparseable,
            "/sys/devices/system/node/node1/hugepages/hugepages-2048kB/free_hugepages",
            "expected a number, found \"12x\"",
        ),
    );
    machine
}

#[test]
fn a_server_in_use() {
    for width in [40, 60, 80, 140] {
        check(&format!("server-{width}"), show(&server(), &Style::plain(width)));
    }
}

#[test]
fn the_overview_of_a_server() {
    for width in [40, 80] {
        check(&format!("overview-{width}"), overview(&server(), &HINTS, &Style::plain(width)));
    }
}
