//! Limits of control groups, and the size of groups.

use super::run::Run;

/// A group, in the order in which they were made.
pub(super) type GroupId = u32;

/// Limits and protection of a group.
///
/// # Units
/// Pages of 4 KiB; `None` where the file says `max`, and for `low` and `min` where it says 0.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct GroupLimits {
    pub max: Option<u64>,
    pub high: Option<u64>,
    pub low: Option<u64>,
    pub min: Option<u64>,
    pub swap_max: Option<u64>,
    /// `memory.oom.group`.
    pub kills_all: bool,
}

/// A limit of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupLimit {
    Max,
    High,
}

/// Memory of a group, and how often something happened to it (`memory.events`; those of groups below it included).
///
/// # Units
/// Pages of 4 KiB.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct GroupState {
    pub parent: Option<String>,
    pub limits: GroupLimits,
    /// Pages in memory.
    pub memory: u64,
    pub swap: u64,
    /// The most that it had in memory after any step.
    pub peak: u64,
    /// Programs that were killed at a limit or for want of memory (`oom_kill`).
    pub killed: u64,
    /// Times that a limit found no page to swap out (`oom`).
    pub ooms: u64,
}

/// Which protection a pass over the pages respects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protection {
    Low,
    Min,
}

/// Pages of a group and of those below it, in memory and in swap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Charged {
    pub memory: u64,
    pub swap: u64,
}

impl Charged {
    /// Those of runs.
    pub fn from_runs<'r>(runs: impl IntoIterator<Item = &'r Run>) -> Self {
        runs.into_iter().fold(Self::default(), |sum, run| {
            let memory = run.count(|held| held.node().is_some());
            let swap = (run.pages.end - run.pages.start).saturating_sub(memory);
            Self { memory: sum.memory + memory, swap: sum.swap + swap }
        })
    }
}
