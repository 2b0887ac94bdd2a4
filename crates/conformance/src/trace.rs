//! The parts of a play that a program needs to repeat it: addresses, and what the model predicts.

use nodewise_machine::{MemPolicy, NodeId, NodeSet};

use crate::counters::{Background, Counted};
use crate::nodes::Nodes;
use crate::script::{MappingKind, Member};
use crate::tally::Tally;

/// The model's answer to a call: nothing, or the name of an error.
pub type Answer = Result<(), String>;

/// Writes an answer: the name of the error, or `success`.
pub fn answer_text(answer: &Answer) -> &str {
    answer.as_ref().map_or_else(String::as_str, |()| "success")
}

/// A mapping as it was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MadeMapping {
    pub kind: MappingKind,
    pub address: usize,
    pub pages: u64,
    /// The inode's number, of a file.
    pub inode: Option<u64>,
}

/// A predicted state after a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    pub policy: MemPolicy,
    pub allowed: NodeSet,
    /// By mapping.
    pub nodes: Vec<Nodes>,
    /// Mapping, page, and the policy there.
    pub policies: Vec<(usize, u64, MemPolicy)>,
}

/// Pages from pools.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ExpectedPool {
    /// `None` where nothing could be mapped.
    pub address: Option<usize>,
    pub nodes: Nodes,
    pub free: Vec<(NodeId, u64)>,
}

/// All of a play.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Trace {
    /// The model's answers, in the order in which calls and steps were answered.
    pub answers: Vec<Answer>,
    pub mappings: Vec<MadeMapping>,
    /// First page and predicted nodes of each program that was started.
    pub programs: Vec<(u64, Nodes)>,
    /// Predicted nodes of the last look at each child: mapping, member and nodes.
    pub forks: Vec<Vec<(usize, Member, Nodes)>>,
    pub pools: Vec<ExpectedPool>,
    /// The gains of the counters by the last pages that were touched.
    pub gains: Option<Counted>,
    /// Room for what the kernel counted beside.
    pub background: Background,
    /// After the last call that was looked at.
    pub expected: Option<Expected>,
    /// Calls that were begun.
    pub played: usize,
    /// Steps that were left out, and intervals.
    pub tally: Tally,
}
