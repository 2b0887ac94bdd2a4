//! Where the memory of each node lies in the physical address space.

use crate::id::NodeId;

/// A range of addresses. The end is the first byte behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemoryRange {
    /// The first byte.
    pub start: u64,
    /// The first byte behind it.
    pub end: u64,
    /// The node it belongs to.
    pub node: NodeId,
}

/// The ranges of a machine. Empty where the source does not say.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct MemoryMap {
    /// RAM, from the lowest address.
    pub ram: Vec<MemoryRange>,
    /// The ranges of the nodes as the firmware has them, holes included.
    pub nodes: Vec<MemoryRange>,
}
