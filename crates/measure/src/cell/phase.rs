//! Work between samples that may take its time, for whoever watches.

use std::fmt;

use nodewise_machine::{Bytes, NodeId};

use crate::kernel::bandwidth::Kernel;

/// Work between samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Looking for the last-level cache.
    LastLevel,
    /// Writing to every page of new memory.
    Filling { size: Bytes, node: NodeId },
    /// Asking the kernel where the pages of a node's memory are.
    Locating { node: NodeId },
    /// Drawing the random order of a chase.
    Drawing {
        /// The size of what is chased.
        size: Bytes,
    },
    /// Writing the order of a chase into memory.
    Laying {
        /// The node of the memory.
        node: NodeId,
    },
    /// Looking for the fastest variant of a kernel.
    Contest { kernel: Kernel },
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LastLevel => f.write_str("finding the last-level cache"),
            Self::Filling { size, node } => write!(f, "filling {size} on node {node}"),
            Self::Locating { node } => write!(f, "locating pages on node {node}"),
            Self::Drawing { size } => write!(f, "drawing a chase of {size}"),
            Self::Laying { node } => write!(f, "laying a chase on node {node}"),
            Self::Contest { kernel } => write!(f, "choosing the loop for {kernel}"),
        }
    }
}
