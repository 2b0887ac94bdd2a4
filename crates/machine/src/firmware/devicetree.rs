//! Nodes in a device tree.
//!
//! # Source
//! `Documentation/devicetree/bindings/numa.txt`: the property `numa-node-id` of CPUs and memory, and
//! the node `distance-map`.

/// A value that should be one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeProperty {
    Missing,
    /// It is, and is not a number of 32 bits.
    Malformed,
    /// The number of a node.
    Id(u32),
}

/// A CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeCpu {
    /// Its path. Foreign text.
    pub path: String,
    /// Its own `numa-node-id`.
    pub own: NodeProperty,
    /// Its own, or that of the nearest parent that has one: so the kernel looks for it.
    pub inherited: NodeProperty,
    /// Whether its `status` lets it be used.
    pub enabled: bool,
}

/// A range of memory, as the property `reg` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reg {
    /// The first byte.
    pub start: u64,
    /// This many bytes.
    pub size: u64,
}

impl Reg {
    /// The first byte behind it; `None` when that lies beyond all addresses.
    pub const fn end(&self) -> Option<u64> {
        self.start.checked_add(self.size)
    }
}

/// A node of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeMemory {
    /// Its path. Foreign text.
    pub path: String,
    /// Its `numa-node-id`.
    pub node: NodeProperty,
    /// Its `reg`; `None` where that is missing or no list of ranges.
    pub ranges: Option<Vec<Reg>>,
}

/// The node `distance-map`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DistanceMap {
    /// Whether its `compatible` is the one that the kernel knows.
    pub is_known: bool,
    /// `distance-matrix`: from, to, distance; `None` where it is missing or not made of triples.
    pub triples: Option<Vec<[u32; 3]>>,
}

/// The facts of a device tree about nodes, in the order of the tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NumaTree {
    /// `model` of the machine. Foreign text.
    pub model: Option<String>,
    pub cpus: Vec<TreeCpu>,
    pub memory: Vec<TreeMemory>,
    pub distance_map: Option<DistanceMap>,
}
