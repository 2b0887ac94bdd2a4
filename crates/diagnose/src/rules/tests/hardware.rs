//! Rules about the machine: memory that the firmware misplaces, kernels without nodes, guests, devices.

use nodewise_machine::memory_slot::{MemoryModule, MemorySlot, SlotPlace, SlotState};
use nodewise_machine::{CpuId, Origin, PackageId, PciLink};

use super::thresholds::{Case, Outcome::Silent, case};
use super::*;
use crate::thresholds;

/// Two packages with a node each; the second node has no memory, and one module is in each of its package's slots.
fn misplaced() -> Fixture {
    let mut fixture = Fixture::new("2x(2c 16G)");
    let second = fixture.machine.nodes.values_mut().nth(1).unwrap();
    second.meminfo = vec![nodewise_machine::MeminfoField::total(Bytes::default())];
    let module = |package| MemorySlot {
        package: Some(PackageId::new(package)),
        place: Some(SlotPlace::SocketName),
        state: SlotState::Installed(MemoryModule::default()),
        ..MemorySlot::default()
    };
    fixture.machine.memory_slots.slots = vec![module(0), module(1), module(1)];
    fixture.meminfo(1, "MemTotal", Bytes::default());
    fixture
}

#[test]
fn modules_of_a_package_without_memory() {
    let rule = &memory_on_one_node::RULE;
    assert_eq!(misplaced().machine.packages().len(), 2);
    let found = one(&misplaced(), rule);
    assert_eq!((found.severity, &found.subject), (Severity::Warning, &Subject::Nodes(nodes("1"))));
    assert_eq!(found.summary, "2 modules in the slots of 1 package, and no memory on node 1");
    // The slots are empty, or known by the addresses that are in question.
    let mut fixture = misplaced();
    fixture.machine.memory_slots.slots[1].state = SlotState::Empty;
    fixture.machine.memory_slots.slots[2].place = Some(SlotPlace::Addresses);
    silent(&fixture, rule);
    let mut fixture = Fixture::new("2x(2c 16G)");
    fixture.machine.memory_slots = misplaced().machine.memory_slots;
    silent(&fixture, rule);
    fixture.machine.memory_slots.slots.clear();
    assert_eq!(rule.lacks(&fixture.situation())[0].fact, "memory slots");
}

#[test]
fn a_node_of_a_package_that_has_memory_elsewhere_has_empty_channels() {
    let mut fixture = misplaced();
    for cpu in fixture.machine.cpus.values_mut() {
        cpu.package = Some(PackageId::new(1));
    }
    silent(&fixture, &memory_on_one_node::RULE);
}

#[test]
fn a_kernel_that_shows_no_nodes() {
    let rule = &kernel_without_numa::RULE;
    let mut fixture = Fixture::new("2x(2c 16G)");
    fixture.machine.nodes.clear();
    assert_eq!(rule.lacks(&fixture.situation())[0].fact, "the running system", "a capture may lack them");
    fixture.machine.origin = Origin::Live;
    assert_eq!(one(&fixture, rule).severity, Severity::Note, "perhaps a virtual machine");
    fixture.virtual_machine = Some(false);
    assert_eq!(one(&fixture, rule).severity, Severity::Warning);
    for cpu in fixture.machine.cpus.values_mut() {
        cpu.package = Some(PackageId::new(0));
    }
    silent(&fixture, rule);
}

#[test]
fn a_guest_of_several_packages_and_one_node() {
    let rule = &guest_one_node_of_many::RULE;
    let mut fixture = Fixture::new("(2p4c 64G)");
    assert_eq!(rule.lacks(&fixture.situation())[0].fact, "whether the machine is a virtual one");
    fixture.virtual_machine = Some(true);
    assert_eq!(one(&fixture, rule).severity, Severity::Info);
    fixture.virtual_machine = Some(false);
    silent(&fixture, rule);
    fixture.virtual_machine = Some(true);
    fixture.machine.settings.command_line = Some("numa=off".to_owned());
    silent(&fixture, rule);
    fixture.machine.settings.command_line = None;
    // A package for each CPU is what some hypervisors make up.
    fixture.machine.caches.clear();
    for (cpu, at) in fixture.machine.cpus.values_mut().zip(0..) {
        cpu.package = Some(PackageId::new(at));
    }
    assert!(fixture.machine.cpus.contains_key(&CpuId::new(1)));
    silent(&fixture, rule);
}

/// Devices with these names, each with a link of 16 lanes.
fn devices(text: &str) -> Fixture {
    let mut fixture = Fixture::new(&format!("2x(2c 16G); {text}"));
    for device in &mut fixture.machine.devices {
        device.link = Some(PciLink { max_speed: Some(16_000), max_width: Some(16), ..PciLink::default() });
    }
    fixture
}

#[test]
fn devices_that_all_hang_on_one_node() {
    let rule = &devices_lopsided::RULE;
    let four = "dev=net:eth0@1; dev=net:eth1@1; dev=net:eth2@1; dev=net:eth3@1";
    let found = one(&devices(four), rule);
    assert_eq!(
        (found.severity, found.summary.as_str()),
        (Severity::Info, "all 4 fast devices hang on node 1")
    );
    silent(&devices(&four.replace("eth3@1", "eth3@0")), rule);
    silent(&devices(four.rsplit_once(';').unwrap().0), rule);
    // Adapters on the board have a lane of little speed.
    let mut slow = devices(four);
    slow.machine.devices[0].link =
        Some(PciLink { max_speed: Some(5_000), max_width: Some(1), ..PciLink::default() });
    silent(&slow, rule);
    let mut nowhere = devices(four);
    nowhere.machine.devices.clear();
    assert_eq!(rule.lacks(&nowhere.situation())[0].fact, "devices");
}

#[test]
fn accelerators_and_adapters_on_different_nodes() {
    let rule = &devices_lopsided::RULE;
    let mut fixture = devices("dev=net:eth0@0; dev=net:eth1@1");
    fixture.machine.devices[0].class_code = Some(0x12_00_00);
    silent(&fixture, rule);
    let names = &mut fixture.machine.devices[1].names;
    names[0].class = nodewise_machine::device::DeviceClass::Infiniband;
    assert_eq!(one(&fixture, rule).summary, "accelerators hang on node 0, RDMA adapters on node 1");
    fixture.machine.devices[0].node = fixture.machine.devices[1].node;
    silent(&fixture, rule);
}

/// Each threshold of these rules over the measured value.
pub(super) fn cases() -> Vec<Case> {
    let four = devices("dev=net:eth0@1; dev=net:eth1@1; dev=net:eth2@1; dev=net:eth3@1");
    vec![case(&thresholds::LOPSIDED_DEVICES, &devices_lopsided::RULE, 5.0, Silent, four)]
}
