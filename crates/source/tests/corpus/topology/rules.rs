//! Where a peer and we differ, and why. Every rule that names a machine must be needed.

use nodewise_machine::{CpuId, Machine, NodeId};

use Side::{Ours, Theirs};

/// Who alone says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Theirs,
    Ours,
}

/// A difference that is known.
pub struct Rule {
    /// The capture; `*` for all.
    pub machine: &'static str,
    pub peer: &'static str,
    side: Side,
    /// How the fact begins.
    start: &'static str,
    /// Whether the machine is one where this holds.
    when: fn(&Machine, &str) -> bool,
    pub why: &'static str,
}

impl Rule {
    pub fn is_for(&self, machine: &str, peer: &str) -> bool {
        (self.machine == "*" || self.machine == machine) && self.peer == peer
    }

    pub fn explains(&self, side: Side, fact: &str, machine: &Machine) -> bool {
        self.side == side && fact.starts_with(self.start) && (self.when)(machine, fact)
    }
}

const fn rule(
    (machine, peer): (&'static str, &'static str),
    side: Side,
    start: &'static str,
    when: fn(&Machine, &str) -> bool,
    why: &'static str,
) -> Rule {
    Rule { machine, peer, side, start, when, why }
}

const fn always(_: &Machine, _: &str) -> bool {
    true
}

/// Whether a fact about CPUs names those of a core or of a cache.
fn is_of_a_core_or_cache(machine: &Machine, fact: &str) -> bool {
    let cpus = fact.rsplit(' ').next().unwrap_or_default();
    let mut known =
        machine.cores().into_values().chain(machine.caches.iter().map(|cache| cache.cpus.clone()));
    known.any(|set| set.to_string() == cpus)
}

/// Whether a fact is of a node that has no online CPU.
fn is_of_a_node_without_cpus(machine: &Machine, fact: &str) -> bool {
    let node = fact.split(' ').nth(1).and_then(|word| word.parse().ok()).map(NodeId::new);
    node.is_some_and(|node| machine.nodes.contains_key(&node) && machine.cpus_of(node).is_empty())
}

/// Whether a machine has no node, and the fact is of all CPUs or of the whole memory.
fn is_the_whole_machine(machine: &Machine, fact: &str) -> bool {
    let size = machine.system_memory.map(|size| size.get().to_string());
    let whole = fact.rsplit(' ').next().unwrap_or_default();
    machine.nodes.is_empty() && (whole == machine.online_cpus().to_string() || size.as_deref() == Some(whole))
}

/// Whether a fact is of a bridge.
fn is_a_bridge(machine: &Machine, fact: &str) -> bool {
    let address = fact.split(' ').nth(1).unwrap_or_default();
    let device =
        machine.devices.iter().find(|device| device.pci.is_some_and(|pci| pci.to_string() == address));
    device.and_then(|device| device.class_code).is_some_and(|class| class >> 8 == 0x0604)
}

/// Whether the kernel says nothing of the siblings of a CPU.
fn has_no_siblings(machine: &Machine, fact: &str) -> bool {
    let cpu = fact.rsplit(' ').next().and_then(|word| word.parse().ok()).map(CpuId::new);
    cpu.and_then(|cpu| machine.cpus.get(&cpu)).is_some_and(|cpu| cpu.siblings.is_empty())
}

/// Whether some CPUs are offline.
fn has_offline_cpus(machine: &Machine, _: &str) -> bool {
    machine.online_cpus().len() < machine.cpus.len()
}

const KUNPENG: &str = "128arm-2pa2n8cluster4co";
const S390: &str = "20s390-2g6s4c";
const DEVICES: &str = "32em64t-2n8c+dax+nvme+mic+dimms";
const INITIATORS: &str = "fakememinitiators-1np2c+1npp+gi";
const BUGGY: &str = "8em64t-2s2ca2c-buggynuma";

pub const RULES: &[Rule] = &[
    rule(
        ("*", "hwloc"),
        Ours,
        "cluster",
        is_of_a_core_or_cache,
        "hwloc leaves out a group that holds the CPUs of a core or cache and nothing else",
    ),
    rule(
        ("*", "hwloc"),
        Theirs,
        "node",
        is_of_a_node_without_cpus,
        "hwloc gives a node without CPUs those that are nearest to it",
    ),
    rule(("*", "hwloc"), Ours, "node", is_of_a_node_without_cpus, "the other side of the same"),
    rule(
        ("*", "hwloc"),
        Theirs,
        "node 0",
        is_the_whole_machine,
        "hwloc makes a node of a machine without any",
    ),
    rule(("*", "hwloc"), Ours, "pci", is_a_bridge, "bridges are objects of another type in hwloc"),
    rule(
        ("*", "hwloc"),
        Ours,
        "core",
        has_no_siblings,
        "where no file gives threads of a core, hwloc knows no cores; we take each CPU for one",
    ),
    rule(
        ("*", "lscpu"),
        Theirs,
        "cache-size",
        has_offline_cpus,
        "lscpu multiplies by all CPUs that exist; offline CPUs have no caches in the files",
    ),
    rule(("*", "lscpu"), Ours, "cache-size", has_offline_cpus, "the other side of the same"),
    rule((KUNPENG, "lscpu"), Theirs, "model Kunpeng-920", always, "the chip; later releases name the core"),
    rule((KUNPENG, "lscpu"), Ours, "model TaiShan-v110", always, "the core, by its part number"),
    rule((KUNPENG, "hwloc"), Ours, "model", always, "hwloc does not decode part numbers of arm"),
    rule(("2arm-2c", "hwloc"), Theirs, "model", always, "the version of the architecture"),
    rule(("2arm-2c", "hwloc"), Ours, "model", always, "the core, by its part number"),
    rule((S390, "hwloc"), Ours, "model", always, "hwloc does not name types of machine"),
    rule((S390, "lscpu"), Ours, "model", always, "lscpu knows fewer types of machine"),
    rule(
        (BUGGY, "hwloc"),
        Ours,
        "node",
        always,
        "hwloc drops nodes that share their CPUs; an oddity says so",
    ),
    rule((BUGGY, "hwloc"), Ours, "distance", always, "hwloc drops these nodes, and so their distances"),
    rule(
        (DEVICES, "hwloc"),
        Ours,
        "device dax1.4",
        always,
        "hwloc leaves out what the driver kmem has made memory",
    ),
    rule(
        (DEVICES, "hwloc"),
        Ours,
        "device scif0",
        always,
        "hwloc leaves out the RDMA device of a coprocessor",
    ),
    rule(
        (INITIATORS, "hwloc"),
        Ours,
        "device dax",
        always,
        "hwloc leaves out what the driver kmem has made memory",
    ),
    rule(
        (INITIATORS, "lscpu"),
        Ours,
        "core",
        always,
        "lscpu looks for thread_siblings; this capture has core_cpus in its place",
    ),
    rule((INITIATORS, "lscpu"), Ours, "package", always, "as for cores"),
];
