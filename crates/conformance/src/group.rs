//! Programs in a control group with limits, as data, and in words.

mod draw;
mod simpler;

use nodewise_machine::{MemPolicy, NodeId, NodeSet};

pub use draw::drawn;

/// Limits of a group, in pages of 4 KiB; `None` where the file says `max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Limits {
    pub max: Option<u64>,
    pub high: Option<u64>,
    pub swap_max: Option<u64>,
    /// `memory.oom.group`.
    pub kills_all: bool,
}

/// A limit that a step writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    Max,
    High,
}

/// A program that writes to memory of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupProgram {
    /// The node of its CPU.
    pub cpu_node: NodeId,
    /// The policy of its memory, if it has one.
    pub policy: Option<MemPolicy>,
    /// Whether the program is in the group, or beside it.
    pub is_inside: bool,
}

/// A step of a program, or a file of the group that is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupStep {
    /// A program writes to this many pages that it has not written to before.
    Take(usize, u64),
    Limit(Limit, Option<u64>),
    /// `cpuset.mems` of the group.
    Allow(NodeSet),
    /// `oom_score_adj` of a program.
    Adjust(usize, i32),
}

/// A group with its programs, for so long as the steps take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupScript {
    pub limits: Limits,
    /// `cpuset.mems` at the beginning.
    pub mems: NodeSet,
    /// Whether there is a disk for pages of programs.
    pub has_swap: bool,
    pub programs: Vec<GroupProgram>,
    pub steps: Vec<GroupStep>,
}

impl GroupScript {
    /// Pages that a program takes in all steps, at least one.
    pub fn pages_of(&self, program: usize) -> u64 {
        let taken = self.steps.iter().map(|step| match step {
            GroupStep::Take(own, pages) if *own == program => *pages,
            _ => 0,
        });
        taken.sum::<u64>().max(1)
    }

    /// The group in words.
    pub fn text(&self) -> String {
        let mut words = vec![format!("in a group with {}", self.limits.text(self.has_swap))];
        words.push(format!("cpuset.mems = {}", self.mems));
        let programs = self.programs.iter().enumerate().map(|(number, program)| {
            let policy = program.policy.as_ref().map(|policy| format!(" with {policy}")).unwrap_or_default();
            let place = if program.is_inside { "" } else { " beside the group" };
            format!("p{number} on a CPU of node {}{policy}{place}", program.cpu_node)
        });
        let programs = programs.collect::<Vec<_>>().join(", ");
        let steps = self.steps.iter().map(GroupStep::text).collect::<Vec<_>>().join("; ");
        format!("{}: {programs}: {steps}", words.join(", "))
    }
}

impl Limits {
    fn text(&self, has_swap: bool) -> String {
        let mut words = vec![Limit::Max.text(self.max)];
        words.extend(self.high.map(|high| Limit::High.text(Some(high))));
        words.push(if has_swap { written("memory.swap.max", self.swap_max) } else { "no swap".to_owned() });
        words.extend(self.kills_all.then(|| "memory.oom.group = 1".to_owned()));
        words.join(", ")
    }
}

impl Limit {
    /// Its file.
    pub const fn file(self) -> &'static str {
        match self {
            Self::Max => "memory.max",
            Self::High => "memory.high",
        }
    }

    fn text(self, pages: Option<u64>) -> String {
        written(self.file(), pages)
    }
}

fn written(file: &str, pages: Option<u64>) -> String {
    pages.map_or_else(|| format!("{file} = max"), |pages| format!("{file} = {pages} pages"))
}

impl GroupStep {
    /// The step in words.
    pub fn text(&self) -> String {
        match self {
            Self::Take(program, pages) => format!("p{program} writes to {pages} more pages"),
            Self::Limit(limit, pages) => limit.text(*pages),
            Self::Allow(nodes) => format!("cpuset.mems = {nodes}"),
            Self::Adjust(program, value) => format!("oom_score_adj of p{program} = {value}"),
        }
    }
}
