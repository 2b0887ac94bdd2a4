//! The outcome of a step.

use std::time::Duration;

use nodewise_machine::NodeId;

use super::act::Skipped;
use super::limits::GroupLimit;
use super::placement::{Owner, Placement};
use crate::errno::Errno;
use crate::walk::OutOfMemory;

/// A measure that the kernel took to have room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relief {
    /// Pages of 4 KiB of caches were given up.
    Dropped { node: NodeId, pages: u64 },
    /// Pages of 4 KiB went to a disk.
    Swapped { node: NodeId, pages: u64 },
    /// Pages of 4 KiB went to slower memory.
    Demoted { node: NodeId, to: NodeId, pages: u64 },
}

/// Why a program was killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The OOM killer chose it (`SIGKILL`).
    OutOfMemory(OutOfMemory),
    /// A control group has met its largest size, with this many pages missing: the kernel kills one of it.
    GroupLimit { group: String, missing: u64 },
    /// Another program of this group was killed, and `memory.oom.group` ends them together.
    WholeGroup { group: String },
    /// No huge page was left for one that it touched (`SIGBUS`).
    NoHugePage,
}

/// The end of it where a control group has met a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitOutcome {
    /// There was room after pages of the group had been dropped or swapped out.
    Fits,
    /// Nothing more could be swapped out: its programs are slowed down from there on.
    Throttled,
    /// The same, and one of it was killed.
    Killed,
    /// The same, and none of it may be killed: the program waits without end.
    NoVictim,
}

/// A limit of a control group that was met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitMet {
    pub group: String,
    pub limit: GroupLimit,
    /// The limit in pages of 4 KiB.
    pub size: u64,
    /// Page cache of the group that was dropped for it, by node.
    pub dropped: Vec<(NodeId, u64)>,
    /// Pages of the group that went to swap for it, by node.
    pub swapped: Vec<(NodeId, u64)>,
    pub outcome: LimitOutcome,
}

/// A program that was killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Killed {
    pub program: String,
    pub cause: Cause,
    /// Pages of 4 KiB that it had, by node.
    pub had: Vec<(NodeId, u64)>,
    /// Pages that were free just before, by node.
    pub free: Vec<(NodeId, u64)>,
    /// Its `oom_score_adj`.
    pub adjustment: i32,
    /// The program that the OOM killer would choose next.
    pub next: Option<String>,
}

/// How much of the memory that follows a CPU is local after a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalAfter {
    /// CPU time of the program.
    pub time: Duration,
    /// Parts of a thousand between which nine of ten draws are, however the program was started.
    pub low_permille: u16,
    pub high_permille: u16,
}

/// The outcome of a step.
///
/// # Units
/// Pages of 4 KiB.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Step {
    /// The pages that were taken, by node, in the order in which the nodes were first used.
    pub taken: Vec<(NodeId, u64)>,
    /// Pages that were moved.
    pub moved: u64,
    /// Those of them that went up to faster memory.
    pub promoted: u64,
    /// Where a time was given and pages of 4 KiB were moved; of promoted ones where `numa_balancing` is 2 and touches are at random.
    pub local_after: Option<LocalAfter>,
    /// Pages that were to move and stay, for want of room or since others have them too.
    pub stayed: u64,
    /// Pages that came back from a disk.
    pub swapped_in: u64,
    /// The answer of a call that the kernel refused. Others of its pages may have been changed.
    pub refused: Option<Errno>,
    /// The pages that could not be given, and why, where there is no one to kill.
    pub missing: Option<OutOfMemory>,
    /// The measures that were taken to have room, in order.
    pub reliefs: Vec<Relief>,
    /// Page cache that kswapd may have dropped beside what was wanted, by node: up to this many pages.
    pub ahead: Vec<(NodeId, u64)>,
    /// Pages of files that were taken elsewhere and may be on these full nodes instead, if their memory is fragmented: raised watermarks
    /// make kswapd drop page cache there.
    pub raised: Vec<(NodeId, u64)>,
    /// Pages that `drop_caches` left in the page cache, for they are not on the disk.
    pub unwritten: u64,
    /// Limits of control groups that were met, in order.
    pub limits: Vec<LimitMet>,
    /// Who was killed, in order.
    pub killed: Vec<Killed>,
    pub skipped: Option<Skipped>,
    /// Whose memory is elsewhere now, and where; `None` for who is gone.
    pub changed: Vec<(Owner, Option<Placement>)>,
}

/// Pages that were taken on a node in a part of a step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    pub node: NodeId,
    pub pages: u64,
    /// Pages of caches there that went for them.
    pub dropped: u64,
}

impl Step {
    pub(super) fn refused(errno: Errno) -> Self {
        Self { refused: Some(errno), ..Self::default() }
    }

    pub(super) fn skipped(why: Skipped) -> Self {
        Self { skipped: Some(why), ..Self::default() }
    }

    /// Whether a group is slowed down by its `memory.high` in this step.
    pub(super) fn is_throttled(&self, group: &str) -> bool {
        let is_it = |met: &LimitMet| met.group == group && met.outcome == LimitOutcome::Throttled;
        self.limits.iter().any(is_it)
    }

    /// Counts pages that were taken.
    pub(super) fn take(&mut self, node: NodeId, pages: u64) {
        add(&mut self.taken, node, pages);
    }

    /// The pages that were taken and dropped so far.
    pub(super) fn counts(&self) -> Self {
        Self { taken: self.taken.clone(), reliefs: self.reliefs.clone(), ..Self::default() }
    }

    /// Pages that were taken since the step was this, and those that were dropped for them on the same node.
    pub(super) fn taken_since(&self, before: &Self) -> Vec<Taken> {
        let since = |(node, taken): &(NodeId, u64)| {
            let had = before.taken.iter().find(|(own, _)| own == node).map_or(0, |(_, had)| *had);
            Taken {
                node: *node,
                pages: taken - had,
                dropped: self.dropped_of(*node) - before.dropped_of(*node),
            }
        };
        self.taken.iter().map(since).filter(|taken| taken.pages > 0).collect()
    }

    /// Pages of caches that were given up on a node.
    fn dropped_of(&self, of: NodeId) -> u64 {
        let dropped = self.reliefs.iter().filter_map(|relief| match relief {
            Relief::Dropped { node, pages } if *node == of => Some(*pages),
            _ => None,
        });
        dropped.sum()
    }

    /// Counts pages of caches that were given up.
    pub(super) fn drop_caches(&mut self, from: NodeId, count: u64) {
        let dropped = self.reliefs.iter_mut().find_map(|relief| match relief {
            Relief::Dropped { node, pages } if *node == from => Some(pages),
            _ => None,
        });
        match dropped {
            Some(pages) => *pages += count,
            None => self.reliefs.push(Relief::Dropped { node: from, pages: count }),
        }
    }

    /// Notes pages that kswapd may free beside what is wanted.
    pub(super) fn free_ahead(&mut self, from: NodeId, count: u64) {
        match self.ahead.iter_mut().find(|(node, _)| *node == from) {
            Some((_, pages)) => *pages = count.max(*pages),
            None if count > 0 => self.ahead.push((from, count)),
            None => {}
        }
    }

    /// Notes pages that may be on a full node instead.
    pub(super) fn raise(&mut self, node: NodeId, pages: u64) {
        if pages > 0 {
            add(&mut self.raised, node, pages);
        }
    }

    /// Counts pages that went to a disk.
    pub(super) fn swap(&mut self, from: NodeId, count: u64) {
        let swapped = self.reliefs.iter_mut().find_map(|relief| match relief {
            Relief::Swapped { node, pages } if *node == from => Some(pages),
            _ => None,
        });
        match swapped {
            Some(pages) => *pages += count,
            None => self.reliefs.push(Relief::Swapped { node: from, pages: count }),
        }
    }

    /// Counts pages that went to slower memory.
    pub(super) fn demote(&mut self, from: NodeId, target: NodeId, count: u64) {
        let demoted = self.reliefs.iter_mut().find_map(|relief| match relief {
            Relief::Demoted { node, to, pages } if (*node, *to) == (from, target) => Some(pages),
            _ => None,
        });
        match demoted {
            Some(pages) => *pages += count,
            None => self.reliefs.push(Relief::Demoted { node: from, to: target, pages: count }),
        }
    }
}

/// Adds to the pages of a node.
fn add(nodes: &mut Vec<(NodeId, u64)>, node: NodeId, pages: u64) {
    match nodes.iter_mut().find(|(own, _)| *own == node) {
        Some((_, sum)) => *sum += pages,
        None => nodes.push((node, pages)),
    }
}
