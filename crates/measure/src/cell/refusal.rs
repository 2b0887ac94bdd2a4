//! Why a cell has no value.

use nodewise_machine::{Bytes, CpuId, NodeId, NodeSet};
use nodewise_syscall::{CallError, HugePageSize, PageKind};

/// Why a cell has no value. The other cells are measured anyway.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The node has too little memory to spare; taking it would call the OOM killer.
    #[error("node {node} has {available} to spare, {needed} are needed: try a smaller --size")]
    TooLittleMemory {
        node: NodeId,
        /// Memory that can be had there.
        available: Bytes,
        /// The needs of the cell, with what is left for others.
        needed: Bytes,
    },
    /// The control group of this process has a limit that is too near.
    #[error(
        "this process may take {available} more before the limit of its control group, {needed} are \
         needed: try a smaller --size"
    )]
    NearLimit {
        available: Bytes,
        /// The needs of the cell.
        needed: Bytes,
    },
    /// The node's memory may not be used here.
    #[error("node {node} is outside of this cpuset's memory nodes {allowed}")]
    Forbidden {
        node: NodeId,
        /// Those that may be used.
        allowed: NodeSet,
    },
    /// The pool of huge pages of the node is too small.
    #[error(
        "node {node} has {free} free huge pages of {}, {needed} are needed: reserve them in its pool \
         (nr_hugepages), or use --huge-pages=thp",
        size.bytes()
    )]
    TooFewHugePages {
        node: NodeId,
        /// The size of the pages.
        size: HugePageSize,
        /// Free pages in the pool.
        free: u64,
        /// Pages that the cell needs.
        needed: u64,
    },
    /// The kernel gave none, or too few, transparent huge pages.
    #[error("only {got} of {wanted} came in transparent huge pages: the system gives none, or has none free")]
    NotHuge {
        /// Memory that came in huge pages.
        got: Bytes,
        wanted: Bytes,
    },
    /// Not all pages are on the node: nothing is measured there.
    #[error("only {on_node} of {pages} pages came to node {node}")]
    Elsewhere {
        /// The node they should be on.
        node: NodeId,
        /// How many of them are.
        on_node: u64,
        /// All pages.
        pages: u64,
    },
    /// The CPU cannot be used, or could not be kept.
    #[error("CPU {cpu} is not online, or not allowed to this process any more")]
    CpuLost { cpu: CpuId },
    /// No CPU of the node may be used.
    #[error("no CPU of node {node} may be used by this process")]
    NoCpu { node: NodeId },
    /// A call was refused; `nodewise_syscall::explain` says what is behind it.
    #[error("{0}")]
    Call(CallError),
    /// The memory could not be had from this process's address space.
    #[error("no memory for {needed}: expected a smaller --size")]
    NoMemory { needed: Bytes },
    /// It took less time than the clock can show.
    #[error("a sample is too short for the clock: expected a larger --size")]
    TooShort,
    /// A check of the work failed: the memory, the compiler or nodewise is wrong.
    #[error("the work was not done as it should be: {what}")]
    Wrong {
        /// The checks that do not hold.
        what: String,
    },
    /// The measurement ended before it was the turn of the cell: no reason of its own.
    #[error("the measurement ended before")]
    Stopped,
    /// Another reason, in words fit to be shown.
    #[error("{0}")]
    Other(String),
}

impl From<CallError> for Refusal {
    fn from(error: CallError) -> Self {
        Self::Call(error)
    }
}

impl Refusal {
    /// The refusal of a node whose memory is not allowed.
    pub fn forbidden(node: NodeId, allowed: &NodeSet) -> Self {
        Self::Forbidden { node, allowed: allowed.clone() }
    }

    /// The refusal of a pool with too few pages; `None` for memory that comes from no pool.
    pub fn of_pool(node: NodeId, pages: PageKind, free: u64, needed: u64) -> Option<Self> {
        match pages {
            PageKind::Hugetlb(size) if free < needed => {
                Some(Self::TooFewHugePages { node, size, free, needed })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(refusal: &Refusal, expected: &str) {
        assert_eq!(refusal.to_string(), expected);
    }

    #[test]
    fn a_refusal_names_the_figure_and_what_would_do() {
        let node = NodeId::new(3);
        check(
            &Refusal::TooLittleMemory { node, available: Bytes::from_mib(96), needed: Bytes::from_mib(512) },
            "node 3 has 96 MiB to spare, 512 MiB are needed: try a smaller --size",
        );
        check(
            &Refusal::forbidden(node, &NodeSet::from([0, 1])),
            "node 3 is outside of this cpuset's memory nodes 0-1",
        );
        let pool = Refusal::of_pool(node, PageKind::Hugetlb(HugePageSize::MIB_2), 4, 64).unwrap();
        check(
            &pool,
            "node 3 has 4 free huge pages of 2 MiB, 64 are needed: reserve them in its pool (nr_hugepages), or use --huge-pages=thp",
        );
        assert_eq!(Refusal::of_pool(node, PageKind::Hugetlb(HugePageSize::MIB_2), 64, 64), None);
        assert_eq!(Refusal::of_pool(node, PageKind::Small, 0, 64), None);
    }
}
