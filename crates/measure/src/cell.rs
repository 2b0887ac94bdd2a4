//! A cell of a matrix: which CPUs reach for the memory of which node, in pages of which kind.
//!
//! What every measurement of memory shares, whatever it times: memory that is proven to be where its
//! cell says ([`memory`]), a thread that is proven to run where its cell says ([`seat`]), what prevents
//! either ([`Refusal`]), and what is asked about the system meanwhile ([`Facts`]). The loop over the cells is
//! in [`crate::survey`].

pub mod facts;
pub(crate) mod memories;
pub mod memory;
pub mod phase;
pub mod refusal;
pub mod seat;

use nodewise_machine::{CpuSet, NodeId};
pub use nodewise_syscall::{HugePageSize, PageKind};

pub use facts::{Facts, Glance};
pub use memory::{Placed, PlacedMemory};
pub use phase::Phase;
pub use refusal::Refusal;
pub use seat::{Probe, Seat};

/// Who reaches for which memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cell {
    /// The node of the CPUs.
    pub from: NodeId,
    /// The CPUs that a measurement may use: those of the node that are online and allowed.
    pub cpus: CpuSet,
    /// The node of the memory.
    pub memory: NodeId,
    /// The parts of the memory.
    pub pages: PageKind,
}
