//! NUMA nodes, their memory, and what the firmware says it costs to reach it.

use crate::id::{NodeId, TierId};
use crate::machine::Machine;
use crate::set::{CpuSet, NodeSet};
use crate::units::Bytes;

/// A value in a node's meminfo: sizes carry `kB` in the file, counts carry nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeminfoValue {
    Size(Bytes),
    /// A plain number, as of `HugePages_Total`.
    Count(u64),
}

/// One line of `/sys/devices/system/node/nodeN/meminfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeminfoField {
    /// The kernel's name: `MemTotal`, `Active(anon)`.
    pub name: String,
    pub value: MeminfoValue,
}

impl MeminfoField {
    /// `MemTotal`: the memory of a node.
    pub fn total(size: Bytes) -> Self {
        Self { name: "MemTotal".to_owned(), value: MeminfoValue::Size(size) }
    }
}

/// A pool of huge pages of one size on one node. `None`: the kernel does not say.
///
/// # Source
/// `/sys/devices/system/node/nodeN/hugepages/hugepages-<size>kB/`, Linux 2.6.32.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HugePool {
    /// Size of one page.
    pub page_size: Bytes,
    /// `nr_hugepages`: pages in the pool.
    pub total: Option<u64>,
    /// `free_hugepages`: those not in use.
    pub free: Option<u64>,
    /// `surplus_hugepages`: pages above the pool's own number.
    pub surplus: Option<u64>,
}

impl HugePool {
    /// Size of the pages that a malloc is set to take: the smallest with a free page in a pool of a node that
    /// this process may use. `None` where none has.
    pub fn of_malloc(machine: &Machine) -> Option<Bytes> {
        let may_use =
            |node: NodeId| machine.allowed_nodes.as_ref().is_none_or(|allowed| allowed.contains(node));
        let usable = machine.nodes.iter().filter(|(node, _)| may_use(**node));
        let pools = usable.flat_map(|(_, node)| &node.huge_pools);
        pools.filter(|pool| pool.free.is_some_and(|free| free > 0)).map(|pool| pool.page_size).min()
    }
}

/// A cache in front of a node's memory (as in front of persistent memory).
///
/// # Source
/// `/sys/devices/system/node/nodeN/memory_side_cache/indexM/`, from the HMAT, Linux 5.2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemorySideCache {
    /// 1 is nearest to the memory's users.
    pub level: u8,
    pub size: Option<Bytes>,
    /// Bytes per line.
    pub line_size: Option<u32>,
    /// `indexing`: 0 direct mapped, 1 complex, 2 other.
    pub indexing: Option<u32>,
    /// `write_policy`: 0 write back, 1 write through, 2 other.
    pub write_policy: Option<u32>,
}

/// A NUMA node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its number: `nodeN`.
    pub id: NodeId,
    /// CPUs that the kernel counts to this node. Empty: a memory-only node. Emulated nodes may
    /// all list the same CPUs.
    pub cpus: CpuSet,
    /// Every line of its meminfo in the kernel's order; empty when the file is missing.
    pub meminfo: Vec<MeminfoField>,
    /// RAM of the node, whether its allocator manages it or not: the pages present in its zones
    /// (`/proc/zoneinfo`). Which size is right for what: [`size`](crate::size).
    pub present: Option<Bytes>,
    /// Huge page pools by page size, ascending.
    pub huge_pools: Vec<HugePool>,
    /// Caches in front of its memory.
    pub memory_side_caches: Vec<MemorySideCache>,
    /// Whether the node holds an initiator that is not a CPU (`has_generic_initiator`), Linux 5.10.
    pub generic_initiator: Option<bool>,
}

impl Node {
    /// A node with nothing but its number known.
    pub const fn new(id: NodeId) -> Self {
        Self {
            id,
            cpus: CpuSet::new(),
            meminfo: Vec::new(),
            present: None,
            huge_pools: Vec::new(),
            memory_side_caches: Vec::new(),
            generic_initiator: None,
        }
    }

    /// The size in a meminfo field; `None` when the field is missing or is a count.
    pub fn size_of(&self, field: &str) -> Option<Bytes> {
        self.meminfo.iter().find(|line| line.name == field).and_then(|line| match line.value {
            MeminfoValue::Size(size) => Some(size),
            MeminfoValue::Count(_) => None,
        })
    }

    /// `MemTotal`: the pages that the kernel manages on this node.
    pub fn memory_total(&self) -> Option<Bytes> {
        self.size_of("MemTotal")
    }

    /// `MemFree`.
    pub fn memory_free(&self) -> Option<Bytes> {
        self.size_of("MemFree")
    }

    /// Sets how much of it is free, and how much is clean page cache. What else it has is used by programs.
    pub fn set_use(&mut self, free: Bytes, cache: Bytes) {
        let sizes = [
            ("MemFree", free),
            ("FilePages", cache),
            ("Active(file)", Bytes::new(0)),
            ("Inactive(file)", cache),
            ("SReclaimable", Bytes::new(0)),
        ];
        self.meminfo.retain(|field| field.name == "MemTotal");
        let fields = sizes.into_iter().map(|(name, size)| (name.to_owned(), MeminfoValue::Size(size)));
        self.meminfo.extend(fields.map(|(name, value)| MeminfoField { name, value }));
    }

    /// Whether the node is known to have memory.
    pub fn has_memory(&self) -> bool {
        self.memory_total().is_some_and(|size| size > Bytes::new(0))
    }
}

/// Which initiators an [`Access`] speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AccessClass {
    /// `access0`: the best initiators of any kind.
    Any,
    /// `access1`: the best initiators that have CPUs. Linux 5.8.
    Cpu,
}

impl AccessClass {
    /// The number in the name of the kernel's folder.
    pub const fn number(self) -> u8 {
        match self {
            Self::Any => 0,
            Self::Cpu => 1,
        }
    }
}

/// The firmware's facts about reaching a node's memory from its best initiators.
///
/// # Source
/// `/sys/devices/system/node/nodeN/access{0,1}/initiators/`, from the HMAT, Linux 5.2.
///
/// # Units
/// Latency in ns, bandwidth in MB/s (10^6), as the kernel prints them. 0 in the kernel's file
/// means unknown and is `None` here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The node whose memory is reached.
    pub target: NodeId,
    /// The initiators that they are of.
    pub class: AccessClass,
    /// The nodes from which it is reached best.
    pub initiators: NodeSet,
    /// Read latency, ns.
    pub read_latency_ns: Option<u32>,
    /// Write latency, ns.
    pub write_latency_ns: Option<u32>,
    /// Read bandwidth, MB/s.
    pub read_bandwidth_mb_per_s: Option<u32>,
    /// Write bandwidth, MB/s.
    pub write_bandwidth_mb_per_s: Option<u32>,
}

/// A memory tier; a smaller id is faster memory.
///
/// # Source
/// `/sys/devices/virtual/memory_tiering/memory_tierN/nodelist`, Linux 6.1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tier {
    pub id: TierId,
    pub nodes: NodeSet,
}
