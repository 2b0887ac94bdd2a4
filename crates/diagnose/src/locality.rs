//! Memory against the places where it is used: a process's pages and the nodes where it runs, the uses of a
//! node's memory, and sizes of nodes where the kernel has several.

use std::collections::BTreeMap;

use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::{Bytes, Machine, MeminfoField, Node, NodeId, NodeSet, Origin};
use nodewise_source::sample::{NodeSample, PageSample, Sample};

use crate::attribution::{CpuTime, Places};

/// Where a process's memory is in relation to where it runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Locality {
    /// All memory that was found.
    pub size: Bytes,
    /// The share of the memory that is on the nodes where the CPU time was spent, from 0 to 1: the sum over nodes
    /// of the share of CPU time times the share of memory. Only certain time counts. `None` without any, or
    /// without memory. A process interleaved over all nodes has 1/nodes; it is not a share of accesses.
    pub local_index: Option<f64>,
    /// Memory on nodes with CPUs where it did not run; `None` where that is not known.
    pub stranded: Option<Stranded>,
}

/// Memory on nodes where its process does not run. Memory on nodes without CPUs is not counted: no process runs
/// there.
#[derive(Clone, Debug, PartialEq)]
pub struct Stranded {
    pub size: Bytes,
    /// The share of the process's memory, from 0 to 1.
    pub share: f64,
    pub nodes: NodeSet,
}

impl Locality {
    /// Compares pages with CPU time, and where no time was used in this window, or none of its readings says within
    /// which nodes, with the nodes that the process may run on.
    pub fn new(pages: &PageSample, cpu: Option<&CpuTime>, reach: Option<&NodeSet>, places: &Places) -> Self {
        let size: Bytes = pages.nodes.values().map(|share| share.size).sum();
        let part =
            |size_of: Bytes| if size.get() == 0 { 0.0 } else { size_of.get() as f64 / size.get() as f64 };
        let certain: f64 =
            cpu.map_or(0.0, |cpu| cpu.certain.values().map(std::time::Duration::as_secs_f64).sum());
        let local_index = cpu.filter(|_| certain > 0.0 && size.get() > 0).map(|cpu| {
            let of = |node: &NodeId| pages.nodes.get(node).map_or(0.0, |share| part(share.size));
            cpu.certain.iter().map(|(node, time)| time.as_secs_f64() / certain * of(node)).sum()
        });
        let ran = cpu.filter(|cpu| !cpu.used.is_zero());
        let runs_on = |node: NodeId| match (ran, reach) {
            // Threads are looked at while they are busy only: of those of a process that begins to work, or hardly
            // does, the time is unsure.
            (Some(cpu), Some(reach)) if cpu.within.is_none() => {
                Some(cpu.certain.contains_key(&node) || reach.contains(node))
            }
            (Some(cpu), _) => Some(cpu.may_include(node)),
            (None, reach) => reach.map(|reach| reach.contains(node)),
        };
        let candidates = places.with_cpus();
        let away: Option<Vec<(NodeId, Bytes)>> = pages
            .nodes
            .iter()
            .filter(|(node, share)| share.size.get() > 0 && candidates.contains(**node))
            .map(|(node, share)| Some((*node, share.size, runs_on(*node)?)))
            .filter(|known| known.is_none_or(|(_, _, runs)| !runs))
            .map(|known| known.map(|(node, size, _)| (node, size)))
            .collect();
        let stranded = away.filter(|_| size.get() > 0).map(|away| {
            let size: Bytes = away.iter().map(|(_, size)| *size).sum();
            Stranded { size, share: part(size), nodes: away.into_iter().map(|(node, _)| node).collect() }
        });
        Self { size, local_index, stranded }
    }
}

/// The uses of a node's memory. The parts and the rest sum up to the total, unless the kernel's own counts
/// exceed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryUse {
    pub total: Bytes,
    pub free: Bytes,
    /// Anonymous memory of programs.
    pub anonymous: Option<Bytes>,
    /// Page cache of files.
    pub file: Option<Bytes>,
    /// Shared memory and tmpfs.
    pub shared: Option<Bytes>,
    pub slab: Option<Bytes>,
    pub page_tables: Option<Bytes>,
    pub stacks: Option<Bytes>,
    /// Pools of huge pages, whether used or free.
    pub huge_pools: Option<Bytes>,
    /// Everything else: drivers, per-CPU data, what the kernel does not count by node.
    pub rest: Bytes,
    /// Memory by which the parts exceed the total: the kernel reads its counts one after the other.
    pub excess: Bytes,
}

impl MemoryUse {
    /// Reads it off `nodeN/meminfo`; `None` without its total and its free memory.
    pub fn from_node(node: &NodeSample) -> Option<Self> {
        let size = |name: &str| node.size(name);
        let (total, free) = (size("MemTotal")?, size("MemFree")?);
        let sum = |parts: &[Option<Bytes>]| {
            let known: Vec<Bytes> = parts.iter().flatten().copied().collect();
            (!known.is_empty()).then(|| known.into_iter().sum::<Bytes>())
        };
        let shared = size("Shmem");
        // FilePages holds shared memory and the swap cache, whose pages AnonPages counts as well.
        let not_files = sum(&[shared, size("SwapCached")]).unwrap_or_default();
        let pools = node.pools.iter().map(|pool| pool.page_size.times(pool.total)).sum();
        let mut memory = Self {
            total,
            free,
            anonymous: size("AnonPages"),
            file: size("FilePages").map(|files| Bytes::new(files.get().saturating_sub(not_files.get()))),
            shared,
            slab: size("Slab").or_else(|| sum(&[size("SReclaimable"), size("SUnreclaim")])),
            page_tables: sum(&[size("PageTables"), size("SecPageTables")]),
            stacks: size("KernelStack"),
            huge_pools: (!node.pools.is_empty()).then_some(pools),
            rest: Bytes::default(),
            excess: Bytes::default(),
        };
        let counted = memory.parts().iter().filter_map(|(_, size)| *size).sum::<Bytes>() + free;
        memory.rest = Bytes::new(total.get().saturating_sub(counted.get()));
        memory.excess = Bytes::new(counted.get().saturating_sub(total.get()));
        Some(memory)
    }

    /// The names of the parts in use.
    pub const PARTS: [&'static str; 7] =
        ["anon", "file", "shmem", "slab", "page_tables", "stacks", "hugetlb"];

    /// The parts in use, with their names; without free memory and the rest.
    pub fn parts(&self) -> [(&'static str, Option<Bytes>); 7] {
        let sizes = [
            self.anonymous,
            self.file,
            self.shared,
            self.slab,
            self.page_tables,
            self.stacks,
            self.huge_pools,
        ];
        std::array::from_fn(|at| (Self::PARTS[at], sizes[at]))
    }
}

/// Sizes of a node: what its allocator manages can lag behind what is present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeSize {
    /// `MemTotal`, and what is not initialised yet.
    pub size: Bytes,
    pub free: Option<Bytes>,
    pub present: Option<Bytes>,
    /// The part that `/proc/meminfo` counts and no node does.
    pub uninitialised: Bytes,
}

/// The sizes of all nodes that have one, by the rule that [`Machine::memory_of`] has for a machine.
pub fn sizes(sample: &Sample) -> BTreeMap<NodeId, NodeSize> {
    let machine = machine(sample);
    let size = |node: &NodeSample| {
        let size = NodeSize {
            size: machine.memory_of(node.node)?,
            free: machine.free_of(node.node),
            present: node.present,
            uninitialised: machine.uninitialised_of(node.node),
        };
        Some((node.node, size))
    };
    sample.nodes.iter().filter_map(size).collect_map()
}

/// The part of a machine that decides sizes.
fn machine(sample: &Sample) -> Machine {
    let mut machine = Machine::new(Origin::Live);
    machine.system_memory = sample.memory;
    // An offline node may hold what the others do not count.
    if let Some(last) = sample.nodes.last() {
        machine.possible_nodes = NodeSet::range(NodeId::new(0), last.node);
    }
    for sample in &sample.nodes {
        let mut node = Node::new(sample.node);
        node.meminfo = sizes_of(sample);
        node.present = sample.present;
        machine.nodes.insert(sample.node, node);
    }
    machine
}

fn sizes_of(node: &NodeSample) -> Vec<MeminfoField> {
    let wanted = |field: &&MeminfoField| matches!(field.name.as_str(), "MemTotal" | "MemFree");
    node.memory.iter().filter(wanted).cloned().collect()
}

#[cfg(test)]
mod tests;
