//! The parts of each node that go into the guest, and their order.

use std::collections::BTreeSet;

use nodewise_machine::check::node_names;
use nodewise_machine::order::Order as _;
use nodewise_machine::{Bytes, Cpu, CpuSet, Machine, Node, NodeId, NodeSet, PackageId};

/// A node of the machine on its way into the guest.
pub(super) struct Part {
    pub node: NodeId,
    /// How many online CPUs belong to it.
    pub cpus: u32,
    /// How many threads its cores have, each number once.
    pub threads: BTreeSet<u32>,
    /// The packages of its CPUs, ascending; empty where they are not known.
    pub packages: Vec<PackageId>,
    /// Whether the node has memory, of a known size or not.
    pub has_memory: bool,
    /// The size of its memory where that is known.
    pub memory: Option<Bytes>,
}

/// The nodes that the guest gets, in the order in which it will number them.
pub(super) fn guest_nodes(machine: &Machine, notes: &mut Vec<String>) -> Vec<Part> {
    let memory_nodes = machine.memory_nodes();
    let mut parts: Vec<Part> =
        machine.nodes.values().map(|node| part(machine, node, memory_nodes.contains(node.id))).collect();
    if parts.is_empty() {
        notes.push("the machine describes no nodes: the guest has one".to_owned());
        let mut whole = part(machine, &Node::new(NodeId::new(0)), true);
        whole.cpus = machine.online_cpus().len() as u32;
        parts.push(whole);
    } else {
        note_cpus(machine, notes);
    }
    if parts.iter().all(|part| part.cpus == 0) {
        if let Some(first) = parts.iter_mut().find(|part| part.has_memory) {
            notes.push(format!("no node has an online CPU: node {} has one here", first.node));
            first.cpus = 1;
        }
    }
    let empty: NodeSet =
        parts.iter().filter(|part| part.cpus == 0 && !part.has_memory).map(|part| part.node).collect();
    if !empty.is_empty() {
        notes.push(format!("left out, being without CPUs and without memory: {}", node_names(&empty)));
        parts.retain(|part| !empty.contains(part.node));
    }
    // A stable sort: inside both groups the machine's order stays.
    parts.order_by_key(|part| part.cpus == 0);
    note_numbers(&parts, notes);
    parts
}

fn part(machine: &Machine, node: &Node, has_memory: bool) -> Part {
    let cpus: Vec<&Cpu> =
        machine.cpus.values().filter(|cpu| cpu.online && machine.node_of(cpu.id) == Some(node.id)).collect();
    let mut packages: Vec<PackageId> = cpus.iter().filter_map(|cpu| cpu.package).collect();
    packages.order();
    packages.dedup();
    let online = machine.online_cpus();
    let threads = cpus.iter().map(|cpu| cpu.siblings.intersection(&online).len().max(1) as u32).collect();
    let memory = machine.ram_of(node.id);
    Part {
        node: node.id,
        cpus: cpus.len() as u32,
        threads,
        packages,
        // A node whose size alone is unknown may well have memory; one of size 0 has none.
        has_memory: has_memory || memory.is_none(),
        memory,
    }
}

/// Says which CPUs cannot be where the machine has them.
fn note_cpus(machine: &Machine, notes: &mut Vec<String>) {
    let online = machine.online_cpus();
    let mut seen = CpuSet::new();
    let mut shared = CpuSet::new();
    for node in machine.nodes.values() {
        shared = shared.union(&seen.intersection(&node.cpus));
        seen = seen.union(&node.cpus);
    }
    let shared = shared.intersection(&online);
    if !shared.is_empty() {
        notes.push(format!("CPUs {shared} are listed by several nodes: here each is in the first of them"));
    }
    let stray: CpuSet = online.iter().filter(|cpu| machine.node_of(*cpu).is_none()).collect();
    if !stray.is_empty() {
        notes.push(format!("CPUs {stray} are in no node and left out"));
    }
}

fn note_numbers(parts: &[Part], notes: &mut Vec<String>) {
    let mut renumbered = (0u32..).zip(parts).filter(|(at, part)| part.node.number() != *at);
    if let Some((at, part)) = renumbered.next() {
        let mut note = format!("node {} of the machine is node {at} of the guest", part.node);
        for (at, part) in renumbered {
            note.push_str(&format!(", node {} is node {at}", part.node));
        }
        notes.push(note);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::{CpuId, MeminfoValue, spec};

    fn check(spec: &str, change: impl FnOnce(&mut Machine), expected: &[(u32, u32, bool)], notes: &[&str]) {
        let mut machine = spec::machine(spec).unwrap();
        change(&mut machine);
        let mut said = Vec::new();
        let found: Vec<_> = guest_nodes(&machine, &mut said)
            .iter()
            .map(|part| (part.node.number(), part.cpus, part.has_memory))
            .collect();
        assert_eq!(found, expected, "{spec}");
        assert_eq!(said, notes, "{spec}");
    }

    fn node(machine: &mut Machine, number: u32) -> &mut Node {
        machine.nodes.get_mut(&NodeId::new(number)).unwrap()
    }

    #[test]
    fn emulated_nodes_leave_their_cpus_to_the_first() {
        check(
            "(4c 1G) 2x(1G)",
            |machine| {
                machine.nodes.values_mut().for_each(|node| node.cpus = CpuSet::from([0, 1, 2, 3]));
            },
            &[(0, 4, true), (1, 0, true), (2, 0, true)],
            &["CPUs 0-3 are listed by several nodes: here each is in the first of them"],
        );
    }

    #[test]
    fn offline_and_stray_cpus_are_not_built() {
        check(
            "2x(2c 1G)",
            |machine| {
                machine.cpus.get_mut(&CpuId::new(1)).unwrap().online = false;
                machine.cpus.get_mut(&CpuId::new(3)).unwrap().node = None;
                node(machine, 1).cpus.remove(CpuId::new(3));
            },
            &[(0, 1, true), (1, 1, true)],
            &["CPUs 3 are in no node and left out"],
        );
    }

    #[test]
    fn an_empty_node_is_left_out_and_one_of_unknown_size_is_not() {
        check(
            "(2c 1G) (1G) (1G)",
            |machine| {
                node(machine, 1).meminfo[0].value = MeminfoValue::Size(Bytes::new(0));
                node(machine, 2).meminfo.clear();
            },
            &[(0, 2, true), (2, 0, true)],
            &[
                "left out, being without CPUs and without memory: node 1",
                "node 2 of the machine is node 1 of the guest",
            ],
        );
    }

    #[test]
    fn a_machine_of_which_nothing_is_known_becomes_one_node_with_one_cpu() {
        check(
            "(1c 1G)",
            |machine| *machine = Machine::new(machine.origin.clone()),
            &[(0, 1, true)],
            &[
                "the machine describes no nodes: the guest has one",
                "no node has an online CPU: node 0 has one here",
            ],
        );
    }
}
