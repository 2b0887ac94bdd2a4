//! CPU time of a process by node.
//!
//! The kernel does not keep it: no file of `/proc` splits the time of a task by CPU. Between two readings of a
//! thread it is known in three cases: only one node has CPUs, the thread may run on one node only, or it did not
//! change CPUs. The time of all other threads is unsure. A thread that was bound elsewhere in between and back is
//! known by its changes of CPU where it may use one CPU; where it may use several of a node, such a change is taken
//! for one between them. The share of a node therefore lies between its certain time and that time plus all that is
//! unsure.
//!
//! `se.nr_migrations` is 0 when a thread is made, rises by one with every change of CPU, and remains as it is
//! while the thread stays where it is (Linux 6.12 and 6.18).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::{CpuId, CpuSet, NodeId, NodeSet};
use nodewise_source::sample::{Allowed, Identity, ProcessSample, Sample, TaskSample};

/// `utime` and `stime` are each rounded down to a tick, at both readings.
const ROUNDING: Duration = Duration::from_millis(20);

/// Time of this number of ticks of `/proc/PID/stat`: `USER_HZ` is 100 on every current architecture.
pub fn ticks(count: u64) -> Duration {
    Duration::from_millis(count.saturating_mul(10))
}

/// The whole ticks of a time, the other way round.
pub fn to_ticks(time: Duration) -> u64 {
    u64::try_from(time.as_millis() / 10).unwrap_or(u64::MAX)
}

/// Nodes of CPUs.
#[derive(Clone, Debug, Default)]
pub struct Places {
    nodes: BTreeMap<CpuId, NodeId>,
    /// The only node with CPUs, if it has all that are online: all CPU time is spent there.
    only: Option<NodeId>,
}

impl Places {
    /// The nodes of the CPUs that are online in one of these samples.
    pub fn new<'a>(samples: impl IntoIterator<Item = &'a Sample>) -> Self {
        let (mut nodes, mut online) = (BTreeMap::new(), BTreeSet::new());
        for sample in samples {
            online.extend(sample.cpus.iter().map(|(cpu, _)| *cpu));
            for node in &sample.nodes {
                nodes.extend(node.cpus.iter().map(|cpu| (cpu, node.node)));
            }
        }
        let first = nodes.values().next().copied();
        let is_only = |first: &NodeId| {
            nodes.values().all(|node| node == first) && online.iter().all(|cpu| nodes.contains_key(cpu))
        };
        Self { only: first.filter(is_only), nodes }
    }

    /// The node of a CPU, if it was online.
    pub fn node(&self, cpu: CpuId) -> Option<NodeId> {
        self.nodes.get(&cpu).copied()
    }

    /// The nodes of several CPUs; those that are offline have none.
    pub fn nodes(&self, cpus: &CpuSet) -> NodeSet {
        self.nodes.iter().filter(|(cpu, _)| cpus.contains(**cpu)).map(|(_, node)| *node).collect()
    }

    /// The nodes that have CPUs.
    pub fn with_cpus(&self) -> NodeSet {
        self.nodes.values().copied().collect()
    }

    fn allowed(&self, allowed: Option<&Allowed>) -> Option<NodeSet> {
        let nodes = self.nodes(allowed?.cpus.as_ref()?);
        (!nodes.is_empty()).then_some(nodes)
    }

    /// The nodes of the CPUs that a task may use; `None` where those are others than before, as then it may have
    /// been bound more than once in between, or where it ran elsewhere, as then they are out of date.
    fn confined<const READINGS: usize>(&self, readings: [Bounds<'_>; READINGS]) -> Option<NodeSet> {
        let mut all = None;
        for (allowed, processor) in readings {
            let cpus = allowed?.cpus.as_ref()?;
            let is_inside = processor.is_none_or(|cpu| cpus.contains(cpu));
            if !is_inside || all.is_some_and(|all| all != cpus) {
                return None;
            }
            all = Some(cpus);
        }
        let nodes = self.nodes(all?);
        (!nodes.is_empty()).then_some(nodes)
    }
}

/// The CPUs that a task may use, and the one that it ran on last, at one reading.
type Bounds<'a> = (Option<&'a Allowed>, Option<CpuId>);

/// CPU time by node.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct CpuTime {
    /// All of it.
    pub used: Duration,
    /// The time that was certainly spent on a node.
    pub certain: BTreeMap<NodeId, Duration>,
    /// The time that cannot be attributed.
    pub unsure: Duration,
    /// Nodes that the unsure part may have been spent on; `None`: any.
    pub within: Option<NodeSet>,
}

impl CpuTime {
    /// No time at all.
    fn none() -> Self {
        Self { within: Some(NodeSet::new()), ..Self::default() }
    }

    fn add_certain(&mut self, node: NodeId, time: Duration) {
        self.used += time;
        if !time.is_zero() {
            *self.certain.entry(node).or_default() += time;
        }
    }

    fn add_unsure(&mut self, time: Duration, within: Option<NodeSet>) {
        if time.is_zero() {
            return;
        }
        self.used += time;
        self.unsure += time;
        self.within = match (self.within.take(), within) {
            (Some(so_far), Some(more)) => Some(so_far.union(&more)),
            _ => None,
        };
    }

    /// Adds time that was spent within these nodes: it is certain where they are one.
    fn add_within(&mut self, time: Duration, within: Option<NodeSet>) {
        match within.as_ref().and_then(NodeSet::first) {
            Some(node) if within.as_ref().is_some_and(|within| within.len() == 1) => {
                self.add_certain(node, time);
            }
            _ => self.add_unsure(time, within),
        }
    }

    fn add(&mut self, other: Self) {
        for (node, time) in other.certain {
            self.add_certain(node, time);
        }
        self.add_unsure(other.unsure, other.within);
    }

    /// Attributes the unsure part as time was seen on nodes by whoever looked often, where that saw at least half of all time:
    /// an estimate, which counts as certain from here on.
    pub fn attribute(&mut self, seen: &BTreeMap<NodeId, Duration>) {
        let all: Duration = seen.values().sum();
        if self.unsure.is_zero() || all < self.used / 2 {
            return;
        }
        let unsure = std::mem::take(&mut self.unsure);
        for (node, time) in seen {
            let part = unsure.mul_f64(time.as_secs_f64() / all.as_secs_f64());
            *self.certain.entry(*node).or_default() += part;
        }
        self.within = Some(NodeSet::new());
    }

    /// The least and the most time that was spent on a node.
    pub fn bounds(&self, node: NodeId) -> (Duration, Duration) {
        let certain = self.certain.get(&node).copied().unwrap_or_default();
        let possible = self.within.as_ref().is_none_or(|within| within.contains(node));
        (certain, if possible { certain + self.unsure } else { certain })
    }

    /// Whether part of it may have been spent on a node.
    pub fn may_include(&self, node: NodeId) -> bool {
        self.bounds(node).1 > Duration::ZERO
    }

    /// A part of the time as a share; `None` where there is no time.
    pub fn share(&self, part: Duration) -> Option<f64> {
        (!self.used.is_zero()).then(|| part.as_secs_f64() / self.used.as_secs_f64())
    }
}

/// CPU time of a thread between two readings, or since it was made. `None` where it is not known, or its clock
/// went back.
pub fn of_task(before: Option<&TaskSample>, now: &TaskSample, places: &Places) -> Option<CpuTime> {
    let used = match (before, now.run) {
        (None, Some(run)) => run,
        (None, None) => ticks(now.cpu_ticks),
        (Some(TaskSample { run: Some(before), .. }), Some(run)) => run.checked_sub(*before)?,
        (Some(before), _) => ticks(now.cpu_ticks.checked_sub(before.cpu_ticks)?),
    };
    let mut time = CpuTime::none();
    match places.only.or_else(|| node_of_still_task(before, now, places)) {
        Some(node) => time.add_certain(node, used),
        None => time.add_within(used, within(before, now, places)),
    }
    Some(time)
}

/// The node of a thread that did not change CPUs.
fn node_of_still_task(before: Option<&TaskSample>, now: &TaskSample, places: &Places) -> Option<NodeId> {
    let changes = before.map_or(Some(0), |task| task.cpu_changes);
    let is_still = now.cpu_changes.is_some() && now.cpu_changes == changes;
    let has_moved = before.is_some_and(|before| before.processor != now.processor);
    now.processor.filter(|_| is_still && !has_moved).and_then(|cpu| places.node(cpu))
}

/// The nodes that a thread can have run on; `None` where that is not known.
///
/// Without an earlier reading it may have been bound only now. One that may use a single CPU and has changed CPUs
/// nevertheless was bound in between.
fn within(before: Option<&TaskSample>, now: &TaskSample, places: &Places) -> Option<NodeSet> {
    let before = before?;
    let has_changed = before.cpu_changes != now.cpu_changes || before.processor != now.processor;
    if has_changed && now.allowed.as_ref()?.cpus.as_ref()?.len() == 1 {
        return None;
    }
    places.confined([before, now].map(|task| (task.allowed.as_ref(), task.processor)))
}

/// Threads by who they are.
pub(crate) fn by_identity(tasks: &[TaskSample]) -> BTreeMap<Identity, &TaskSample> {
    tasks.iter().map(|task| (task.identity, task)).collect_map()
}

/// CPU time of a process between two readings, or since it was made; `None` where its clock went back.
///
/// Time of threads that ended in between, or that were not looked at, is unsure.
pub fn of_process<'a>(
    before: Option<&'a ProcessSample>,
    now: &'a ProcessSample,
    places: &Places,
) -> Option<CpuTime> {
    let used = ticks(now.cpu_ticks.checked_sub(before.map_or(0, |process| process.cpu_ticks))?);
    let mut time = CpuTime::none();
    if let Some(only) = places.only {
        time.add_certain(only, used);
        return Some(time);
    }
    match (before.map(|process| process.tasks.as_deref()), now.tasks.as_deref()) {
        (None, Some(tasks)) => {
            for part in tasks.iter().filter_map(|task| of_task(None, task, places)) {
                time.add(part);
            }
        }
        (Some(Some(before)), Some(tasks)) => {
            let before = by_identity(before);
            for task in tasks {
                if let Some(part) = of_task(before.get(&task.identity).copied(), task, places) {
                    time.add(part);
                }
            }
        }
        // A process of one thread is its main thread, whose affinity is that of the process.
        (Some(_), _) if now.threads == 1 && before.is_some_and(|process| process.threads == 1) => {
            let bounds = |process: &'a ProcessSample| (process.allowed.as_ref(), process.processor);
            let within = before.and_then(|before| places.confined([bounds(before), bounds(now)]));
            time.add_within(used, within);
        }
        _ => time.add_unsure(used, None),
    }
    let rest = used.saturating_sub(time.used);
    if rest > ROUNDING {
        time.add_unsure(rest, None);
    }
    Some(time)
}

/// Nodes with CPUs that some thread of a process may use; `None` where it is not known.
pub fn reach(process: &ProcessSample, places: &Places) -> Option<NodeSet> {
    let own = places.allowed(process.allowed.as_ref());
    match process.tasks.as_deref() {
        // Threads that are not looked at may be bound elsewhere; that is rare, and whoever counts `tasks` knows.
        None | Some([]) => own,
        Some(tasks) => {
            let each: Option<Vec<NodeSet>> = tasks
                .iter()
                .map(|task| places.allowed(task.allowed.as_ref()).or_else(|| own.clone()))
                .collect();
            Some(each?.iter().fold(NodeSet::new(), |all, nodes| all.union(nodes)))
        }
    }
}

#[cfg(test)]
mod tests;
