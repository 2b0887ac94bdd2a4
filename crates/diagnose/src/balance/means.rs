//! Means to bring a process and its memory together, the least first: its pages move to where it runs, its threads
//! stay where its memory is, or both.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use nodewise_machine::order::Order as _;
use nodewise_machine::{Bytes, CpuSet, NodeId, NodeSet};
use nodewise_source::sample::Identity;

use super::limits::Limits;
use super::plan::Hold;
use super::room::Room;
use crate::situation::{ProcessState, Situation};

/// Pages of a process that leave a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageMove {
    pub from: NodeId,
    pub to: NodeId,
    pub size: Bytes,
}

/// Why a process needs an action.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Need {
    /// This part of its memory is on nodes where it does not run.
    Stranded(f64),
    /// Its memory is on one node, and threads run elsewhere: the part that is remote to uniform accesses.
    Scattered(f64),
    /// Someone asked for the placement that `advise` names; this part of its memory is elsewhere.
    Advised(f64),
}

impl Need {
    /// The part of the memory, from 0 to 1.
    pub const fn share(self) -> f64 {
        match self {
            Self::Stranded(share) | Self::Scattered(share) | Self::Advised(share) => share,
        }
    }
}

/// An action's means.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Means {
    /// Pages move; nothing else is tried where this is enough.
    pub pages: Vec<PageMove>,
    /// Its threads are narrowed to these CPUs, of these nodes.
    pub cpus: Option<(CpuSet, NodeSet)>,
    /// Its pages are spread, instead of `pages`.
    pub spread: Option<Spread>,
}

/// Pages of a process that are spread over nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spread {
    /// Nodes that its pages are on now.
    pub from: NodeSet,
    pub over: NodeSet,
    /// The most bytes that move.
    pub size: Bytes,
}

impl Means {
    /// Bytes that move.
    pub fn size(&self) -> Bytes {
        let spread = self.spread.as_ref().map_or(Bytes::new(0), |spread| spread.size);
        self.pages.iter().map(|pages| pages.size).sum::<Bytes>() + spread
    }

    /// Whether nothing is to be done.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty() && self.cpus.is_none() && self.spread.is_none()
    }

    /// The nodes that pages go to.
    pub fn targets(&self) -> NodeSet {
        let to = self.pages.iter().map(|pages| pages.to);
        to.chain(self.spread.iter().flat_map(|spread| spread.over.iter())).collect()
    }
}

/// The part of a process's memory that is remote to its threads, if each uses all of it alike, from 0 to 1; `None`
/// where it was idle or none of its time is certain.
pub fn remote_share(process: &ProcessState<'_>) -> Option<f64> {
    let certain = &process.cpu()?.certain;
    let all: f64 = certain.values().map(Duration::as_secs_f64).sum();
    if all <= 0.0 || process.size().get() == 0 {
        return None;
    }
    let share = |node: &NodeId| process.memory.get(node).map_or(0.0, |size| process.share(*size));
    let local: f64 = certain.iter().map(|(node, time)| time.as_secs_f64() / all * share(node)).sum();
    Some((1.0 - local).clamp(0.0, 1.0))
}

/// CPU time of programs, and the part of it that went to remote memory if each uses all of its memory alike.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct RemoteTime {
    /// In CPU seconds.
    pub remote: f64,
    pub all: f64,
}

impl RemoteTime {
    /// The time of all processes of a size whose memory and CPU time are known, of those that are left alone as well.
    pub(super) fn of_all(situation: &Situation<'_>, least: Bytes) -> Self {
        let mut sum = Self::default();
        for process in situation.processes.iter().filter(|process| process.size() >= least) {
            let used = process.cpu().map_or(0.0, |cpu| cpu.certain.values().map(Duration::as_secs_f64).sum());
            if let Some(share) = remote_share(process) {
                sum.add(Self { remote: share * used, all: used });
            }
        }
        sum
    }

    /// Adds another window's.
    pub fn add(&mut self, other: Self) {
        self.remote += other.remote;
        self.all += other.all;
    }

    /// The remote part, from 0 to 1; `None` where nothing was at work.
    pub fn share(self) -> Option<f64> {
        (self.all > 0.0).then(|| (self.remote / self.all).clamp(0.0, 1.0))
    }
}

/// The part that is stranded; 0 where the process is at work and none is. `None` where that is not known.
pub fn stranded_share(process: &ProcessState<'_>, with_cpus: &NodeSet) -> Option<f64> {
    if !process.is_at_work() || process.earlier.is_none() {
        return None;
    }
    Some(process.stranded(with_cpus).map_or(0.0, |(size, _)| process.share(size)))
}

/// Whether a process needs an action.
pub(super) fn need(process: &ProcessState<'_>, situation: &Situation<'_>, limits: &Limits) -> Option<Need> {
    if process.cpu_share()? < limits.least_cpu {
        return None;
    }
    let with_cpus = situation.places.with_cpus();
    let stranded = stranded_share(process, &with_cpus)?;
    if stranded >= limits.act_at {
        return Some(Need::Stranded(stranded));
    }
    let remote = remote_share(process)?;
    let (home, size) = most(process)?;
    let is_home = process.share(size) >= 1.0 - limits.act_at && with_cpus.contains(home);
    (limits.affinity && is_home && remote >= limits.act_at).then_some(Need::Scattered(remote))
}

/// The node that holds most of a process's memory.
fn most(process: &ProcessState<'_>) -> Option<(NodeId, Bytes)> {
    process.memory.iter().map(|(node, size)| (*node, *size)).max_by_key(|(_, size)| *size)
}

/// The least means against a need. Nodes that it left a short time ago are not its targets.
pub(super) fn choose(
    process: &ProcessState<'_>,
    need: Need,
    situation: &Situation<'_>,
    room: &Room,
    left: &BTreeSet<NodeId>,
    limits: &Limits,
) -> Result<Means, Hold> {
    if let Need::Scattered(_) = need {
        let (home, _) = most(process).ok_or(Hold::NoTarget)?;
        return stay(process, home, situation, room, left, limits);
    }
    let (_, away) = process.stranded(&situation.places.with_cpus()).ok_or(Hold::NoTarget)?;
    let targets = process.runs_on();
    let without = move_pages(process, &away, &targets, situation, room, left, limits);
    if without.is_ok() || !limits.affinity {
        return without;
    }
    let Some((home, size)) = most(process) else { return without };
    let Ok(mut both) = stay(process, home, situation, room, left, limits) else { return without };
    if process.share(size) >= 1.0 - limits.act_at {
        return Ok(both);
    }
    // What is on nodes without CPUs was put there by the kernel, or on purpose.
    let with_cpus = situation.places.with_cpus();
    let others = process.memory.keys().copied().filter(|node| *node != home && with_cpus.contains(*node));
    let others: NodeSet = others.collect();
    let target = NodeSet::from_iter([home]);
    let Ok(pages) = move_pages(process, &others, &target, situation, room, left, limits) else {
        return without;
    };
    both.pages = pages.pages;
    Ok(both)
}

/// Pages go from each node to the nearest target that has room.
fn move_pages(
    process: &ProcessState<'_>,
    from: &NodeSet,
    targets: &NodeSet,
    situation: &Situation<'_>,
    room: &Room,
    left: &BTreeSet<NodeId>,
    limits: &Limits,
) -> Result<Means, Hold> {
    let mut targets = targets.intersection(&situation.memory_nodes());
    if let Some(allowed) = process.allowed_nodes() {
        targets = targets.intersection(allowed);
    }
    if targets.is_empty() {
        return Err(Hold::NoTarget);
    }
    let targets: Vec<NodeId> = targets.iter().filter(|node| !left.contains(node)).collect();
    if targets.is_empty() {
        return Err(Hold::LeftRecently);
    }
    let mut taken: BTreeMap<NodeId, Bytes> = BTreeMap::new();
    let mut means = Means::default();
    let mut hold = None;
    let size = |node: NodeId| process.memory.get(&node).copied().unwrap_or_default();
    let mut from: Vec<NodeId> = from.iter().filter(|node| size(*node).get() > 0).collect();
    from.order_by_key(|node| (std::cmp::Reverse(size(*node)), *node));
    for node in from {
        let mut nearest: Vec<NodeId> = targets.iter().copied().filter(|target| *target != node).collect();
        nearest
            .order_by_key(|target| (situation.machine.distance(node, *target).unwrap_or(u32::MAX), *target));
        let fits = |target: &NodeId| match room.left(*target, limits) {
            None => Err(Hold::RoomUnknown(*target)),
            Some(free) => {
                let taken = taken.get(target).copied().unwrap_or_default();
                let is_enough = free.get().saturating_sub(taken.get()) >= size(node).get();
                is_enough.then_some(*target).ok_or(Hold::NoRoom(*target))
            }
        };
        let tried: Vec<Result<NodeId, Hold>> = nearest.iter().map(fits).collect();
        match tried.iter().find_map(|fits| fits.as_ref().ok()) {
            Some(to) => {
                *taken.entry(*to).or_default() += size(node);
                means.pages.push(PageMove { from: node, to: *to, size: size(node) });
            }
            None => hold = hold.or_else(|| tried.into_iter().find_map(Result::err)),
        }
    }
    // Less than what makes a process a candidate is not worth the trouble.
    if process.share(means.size()) >= limits.act_at {
        return Ok(means);
    }
    Err(hold.unwrap_or(Hold::NoTarget))
}

/// Threads stay on the node that holds the memory, where its CPUs have time for them.
fn stay(
    process: &ProcessState<'_>,
    home: NodeId,
    situation: &Situation<'_>,
    room: &Room,
    left: &BTreeSet<NodeId>,
    limits: &Limits,
) -> Result<Means, Hold> {
    if left.contains(&home) {
        return Err(Hold::LeftRecently);
    }
    let allowed = process.allowed_cpus().ok_or(Hold::NoTarget)?;
    let cpus = situation.machine.cpus_of(home).intersection(allowed);
    let used = process.cpu_share().ok_or(Hold::NoTarget)?;
    let load = situation.delta.as_ref().and_then(|delta| {
        delta.nodes.iter().find(|node| node.node == home).and_then(|node| node.cpus.as_ref())
    });
    let Some(load) = load.filter(|_| !cpus.is_empty()) else { return Err(Hold::CpusUnknown(home)) };
    let free = load.cpus as f64 * (1.0 - load.busy) - room.taken_time(home);
    let wanted = used / limits.cpu_use;
    if (cpus.len() as f64) < wanted || free < more_time(process, home, limits) {
        return Err(Hold::NoCpus(home));
    }
    Ok(Means { cpus: Some((cpus, NodeSet::from_iter([home]))), ..Means::default() })
}

/// The CPU time that a process wants on a node beside what it has there, in CPUs.
pub(super) fn more_time(process: &ProcessState<'_>, node: NodeId, limits: &Limits) -> f64 {
    let used = process.cpu_share().unwrap_or(0.0);
    used / limits.cpu_use - process.least_on(node).unwrap_or(0.0) * used
}

/// The scans of the kernel's balancing over a process; `None` where they are not counted.
pub(super) fn scans(process: &ProcessState<'_>) -> Option<u64> {
    let tasks = process.process.tasks.iter().flatten();
    tasks.filter_map(|task| task.balancing.as_ref()?.scans).max()
}

/// A process as events name it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Named {
    pub identity: Identity,
    /// The name that it chose itself: not fit for a terminal.
    pub name: String,
}

impl Named {
    pub(super) fn new(process: &ProcessState<'_>) -> Self {
        Self { identity: process.process.identity, name: process.process.name.as_ref().to_owned() }
    }
}
