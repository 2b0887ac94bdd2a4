//! Machines to tables and back.

use nodewise_machine::firmware::{TableHeader, Tables};
use nodewise_machine::{AccessClass, Origin, spec};
use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, proptest};

use super::super::{Setting, boot};
use super::*;

/// The machine that a kernel makes of the tables, and the notes.
fn there_and_back(machine: &Machine, hardware: &Hardware) -> (Machine, Vec<String>) {
    let composed = compose(machine, hardware).unwrap();
    let tables = composed.tables.into_iter().chain([hardware.madt()]).collect();
    let tables = Tables { tables, findings: Vec::new() };
    let booted = boot(&tables, &Setting { ram: Some(hardware.ram.clone()), ..Setting::default() });
    assert!(booted.is_accepted, "{:?}", booted.notes);
    (booted.machine(Origin::Live), composed.notes)
}

fn check(text: &str, expected: &[&str]) -> Machine {
    let machine = spec::machine(text).unwrap();
    let (back, notes) = there_and_back(&machine, &Hardware::virtual_pc(&machine));
    assert_eq!(notes, expected, "{text}");
    back
}

#[test]
fn nodes_distances_and_costs_come_back() {
    let text = "2x(4c 6G) (16G) (2G); dist=10,21,17,28/21,10,28,17/17,28,10,28/28,17,28,10; \
                access=0>0:100ns/100G; access=1>1:100ns/100G; access=0>2:300ns,350ns/20G; access=1>3:400ns/10G";
    let (machine, back) = (spec::machine(text).unwrap(), check(text, &[]));
    assert_eq!(back.distances, machine.distances);
    for node in machine.nodes.keys() {
        assert_eq!(back.ram_of(*node), machine.ram_of(*node), "{node}");
        assert_eq!(back.nodes[node].cpus, machine.nodes[node].cpus, "{node}");
        let access = |machine: &Machine| machine.access(*node, AccessClass::Any).cloned();
        assert_eq!(access(&back), access(&machine), "{node}");
    }
}

#[test]
fn deviations_are_noted() {
    let mut machine = spec::machine("(4G) (2c 2G); dist=20; ids=0,8").unwrap();
    let (zero, eight) = (NodeId::new(0), NodeId::new(8));
    machine.distances.set(zero, eight, 300);
    machine.distances.set(eight, zero, 5);
    let (back, notes) = there_and_back(&machine, &Hardware::virtual_pc(&machine));
    assert_eq!(
        notes,
        [
            "node 8 of the machine is node 0 here, node 0 of the machine is node 1 here",
            "distances of 2 pairs of nodes are not legal in a table, which has the nearest",
        ]
    );
    assert_eq!(back.ram_of(NodeId::new(1)), Some(Bytes::from_gib(4)));
    assert_eq!(back.distances.get(NodeId::new(0), NodeId::new(1)), Some(&11));
}

#[test]
fn other_hardware_is_shared_and_its_own_tables_are_outdone() {
    let machine = spec::machine("3x(8c 64G); dist=21").unwrap();
    let own = TableHeader {
        oem_id: *b"VENDOR",
        oem_table_id: *b"SERVER 1",
        oem_revision: 7,
        ..TableHeader::new(srat::SIGNATURE, 3)
    };
    let hardware = Hardware {
        ram: vec![(4096, 0x9_f000), (1 << 20, 1 << 30), (4 << 30, 6 << 30)],
        cpus: [0, 2, 300, 301].map(CpuName::Apic).to_vec(),
        own: vec![own, TableHeader::new(*b"HMAT", 2)],
    };
    let composed = compose(&machine, &hardware).unwrap();
    let headers: Vec<_> = composed
        .tables
        .iter()
        .map(|table| {
            let header = table.header();
            (header.name(), header.oem_id, header.oem_revision)
        })
        .collect();
    assert_eq!(
        headers,
        [("SRAT".into(), *b"VENDOR", 8), ("SLIT".into(), *b"NODEWI", 1), ("HMAT".into(), *b"NODEWI", 2)]
    );
    let (back, notes) = there_and_back(&machine, &hardware);
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert_eq!(back.nodes.len(), 3);
    let sizes: Vec<u64> = back.nodes.keys().map(|node| back.ram_of(*node).unwrap().mib()).collect();
    assert_eq!(sizes, [1024, 1024, 1023]);
    assert!(back.nodes.values().all(|node| !node.cpus.is_empty()));
}

#[test]
fn what_cannot_be_written_is_refused() {
    let refuse = |text: &str, change: fn(&mut Machine, &mut Hardware), expected: &str| {
        let mut machine = spec::machine(text).unwrap();
        let mut hardware = Hardware::virtual_pc(&machine);
        change(&mut machine, &mut hardware);
        assert_eq!(compose(&machine, &hardware).unwrap_err().to_string(), expected);
    };
    let forget = |machine: &mut Machine, _: &mut Hardware| {
        machine.nodes.values_mut().for_each(|node| node.meminfo.clear());
    };
    refuse(
        "2x(1c 1G)",
        forget,
        "the size of nodes 0-1 is not known: tables name the addresses of all memory",
    );
    refuse("2x(1c)", |_, _| {}, "no node has memory: tables need a range for a kernel to run in");
    refuse(
        "2x(1c 1G)",
        |_, hardware| hardware.cpus.truncate(1),
        "2 nodes have CPUs, and the hardware has 1: expected at least one CPU for each",
    );
    refuse(
        "2x(1c 1G)",
        |_, hardware| hardware.ram = vec![(0, 4096)],
        "2 nodes have memory, and the hardware has 4 KiB: expected at least 4 KiB for each",
    );
}

/// Specs of machines: nodes with CPUs, with memory, with both.
fn any_spec() -> impl Strategy<Value = String> {
    let node = (0u32..5, any::<bool>(), 1u64..9);
    proptest::collection::vec(node, 0..8).prop_map(|nodes| {
        let mut text = String::from("(1c 1G)");
        for (cores, has_memory, gib) in nodes {
            let cpus = if cores > 0 { format!("{cores}c") } else { String::new() };
            let size = if has_memory || cores == 0 { format!("{gib}G") } else { String::new() };
            text.push_str(&format!(" ({cpus} {size})"));
        }
        text + "; dist=17"
    })
}

proptest! {
    #[test]
    fn a_kernel_comes_up_with_the_nodes_of_any_machine(text in any_spec()) {
        let machine = spec::machine(&text).unwrap();
        let (back, _) = there_and_back(&machine, &Hardware::virtual_pc(&machine));
        let parts = shares::parts(&machine);
        prop_assert_eq!(back.nodes.len(), parts.len());
        for (node, part) in back.nodes.values().zip(&parts) {
            prop_assert_eq!(node.cpus.len(), part.cpus.len());
            prop_assert_eq!(back.ram_of(node.id).map_or(0, Bytes::get), part.memory);
        }
    }

    #[test]
    fn any_hardware_is_survived(
        ram in proptest::collection::vec((any::<u64>(), any::<u64>()), 0..6),
        cpus in proptest::collection::vec(any::<u32>(), 0..12),
        text in any_spec(),
    ) {
        let machine = spec::machine(&text).unwrap();
        let cpus = cpus.into_iter().map(CpuName::Apic).collect();
        if let Ok(composed) = compose(&machine, &Hardware { ram, cpus, own: Vec::new() }) {
            prop_assert!(composed.tables.len() >= 2);
        }
    }
}
