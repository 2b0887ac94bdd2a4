//! Scripts of system calls, as data.

use nodewise_machine::{MemPolicy, NodeId, NodeSet};
use nodewise_syscall::arguments::BindOptions;

use crate::cache::CacheScript;
use crate::group::GroupScript;

/// Who of a program and its child does something.
pub use nodewise_model::oracle::task::family::Member;

/// Small pages in a huge one.
pub const BLOCK: u64 = 512;

/// The parts of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MappingKind {
    Small,
    /// Transparent huge pages.
    Huge,
    /// A file of tmpfs, from this page of it on.
    File(u64),
    /// Memory without advice, with this many pages before the first place of a huge one.
    Plain(u64),
}

impl MappingKind {
    /// Whether a part of a mapping of this kind begins or ends where huge pages do.
    pub const fn has_edge(self, page: u64, pages: u64) -> bool {
        match self {
            Self::Huge => page % BLOCK == 0,
            Self::Plain(lead) => page == 0 || page == pages || page % BLOCK == lead,
            Self::Small | Self::File(_) => true,
        }
    }
}

/// A step while a program has a child that shares its memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    RunOn(Member, NodeId),
    /// Write to these pages of a mapping, in this order.
    Write(Member, usize, Vec<u64>),
    /// The policy of the parent.
    SetPolicy(MemPolicy),
    /// The policy of the parent's mapping, without a look at what is there.
    Bind(Part, MemPolicy),
}

/// A part of a mapping, in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The number of the mapping, from 0.
    pub mapping: usize,
    pub first: u64,
    pub count: u64,
}

/// One step of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// Go to a CPU of this node.
    RunOn(NodeId),
    SetPolicy(MemPolicy),
    /// A mapping of this many small pages.
    Map(MappingKind, u64),
    /// Touch these pages of a mapping, in this order.
    Touch(usize, Vec<u64>),
    Bind(Part, MemPolicy, BindOptions),
    SetHome(Part, NodeId),
    /// `cpuset.mems`.
    Restrict(NodeSet),
    Migrate(NodeSet, NodeSet),
    /// Each page to the node beside it.
    Move(usize, Vec<(u64, NodeId)>),
    /// Start a program that touches this many pages.
    Program(u64),
    /// `transparent_hugepage/enabled` and `transparent_hugepage/defrag`.
    HugePages(&'static str, &'static str),
    /// Go on in the thread with this number, which the thread so far starts where there is none yet; 0 is the first.
    Thread(usize),
    /// Keep a mapping from children, from now on.
    Keep(usize),
    /// Have a child for so long.
    Fork(Vec<Step>),
    /// With this many pages in the nodes' pools of huge pages, map some for so long.
    Pool {
        pools: Vec<(NodeId, u64)>,
        pages: u64,
        steps: Vec<PoolStep>,
    },
    /// Have a control group with limits, and programs in it.
    Group(GroupScript),
    /// Have files on a disk, and programs that use them.
    Cache(CacheScript),
}

/// A step while a program has memory from the pools; pages are numbered from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PoolStep {
    Touch(u64),
    Bind(MemPolicy, BindOptions),
    Move(u64, NodeId),
    Migrate(NodeSet, NodeSet),
    /// Write the number of pages of the pool, or of a node's part of it.
    Resize(Option<NodeId>, u64),
}

/// A script, and the weights that nodes have while it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    pub weights: Vec<(NodeId, u32)>,
    pub calls: Vec<Call>,
}
