//! Memory that processes share: what there is, where its pages are, and its policy.

use nodewise_machine::{Bytes, NodeId};

/// A segment of System V shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    pub key: i32,
    pub id: u32,
    pub user: u32,
    /// The rights as of a file.
    pub mode: u32,
    pub size: Bytes,
    pub resident: Option<Bytes>,
    pub swapped: Option<Bytes>,
    pub attaches: u64,
}

/// A mounted file system in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    pub folder: String,
    /// `tmpfs` or `hugetlbfs`.
    pub kind: String,
    pub size: Option<Bytes>,
    pub policy: Option<String>,
    pub huge: Option<String>,
}

/// Shared memory of a system.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Shared {
    pub segments: Vec<Segment>,
    pub mounts: Vec<Mount>,
}

/// Pages of one policy, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyRange {
    /// Bytes from the beginning.
    pub offset: u64,
    pub length: u64,
    pub policy: String,
}

/// One segment or file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// `segment 5`, or the path of a file.
    pub name: String,
    pub size: Bytes,
    /// Memory on each node.
    pub nodes: Vec<(NodeId, Bytes)>,
    /// Memory that is not allocated, or swapped out.
    pub absent: Bytes,
    pub policies: Vec<PolicyRange>,
    /// Pages that are not where their policy wants them; `None` where it was not asked.
    pub misplaced: Option<Bytes>,
    /// Sentences on what was done.
    pub notes: Vec<String>,
}
