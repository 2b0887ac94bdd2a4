//! CPU time of a process by node.
//!
//! The kernel does not keep it: no file of `/proc` splits the time of a task by CPU. Between two readings of a
//! thread it is known in three cases: only one node has CPUs, the thread may run on one node only, or it did not
//! change CPUs. The time of
//! all other threads is unsure. A thread that was bound elsewhere in between and back is known by its changes of CPU
//! where it may use one CPU; where it may use several of a node, such a change is taken for one between them. The share of a node therefore lies between its certain time and that time plus
//! all that is unsure.
//!
//! `se.nr_migrations` is 0 when a thread is made, rises by one with every change of CPU, and remains as it is
//! while the thread stays where it is (Linux 6.12 and 6.18).

use std::collections::BTreeMap;
use std::time::Duration;

use nodewise_machine::{CpuId, CpuSet, NodeId, NodeSet};
use nodewise_source::sample::{Allowed, Identity, ProcessSample, Sample, TaskSample};

/// `utime` and `stime` are each rounded down to a tick, at both readings.
const ROUNDING: Duration = Duration::from_millis(20);

/// Time of this number of ticks of `/proc/PID/stat`: `USER_HZ` is 100 on every current architecture.
pub fn ticks(count: u64) -> Duration {
    Duration::from_millis(count.saturating_mul(10))
}

/// Nodes of CPUs.
#[derive(Clone, Debug, Default)]
pub struct Places {
    nodes: BTreeMap<CpuId, NodeId>,
}

impl Places {
    /// The nodes of the CPUs that are online in one of these samples.
    pub fn new<'a>(samples: impl IntoIterator<Item = &'a Sample>) -> Self {
        let mut nodes = BTreeMap::new();
        for node in samples.into_iter().flat_map(|sample| &sample.nodes) {
            nodes.extend(node.cpus.iter().map(|cpu| (cpu, node.node)));
        }
        Self { nodes }
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

    /// The only node with CPUs: all CPU time is spent there.
    fn only(&self) -> Option<NodeId> {
        let first = self.nodes.values().next()?;
        self.nodes.values().all(|node| node == first).then_some(*first)
    }

    fn allowed(&self, allowed: Option<&Allowed>) -> Option<NodeSet> {
        let nodes = self.nodes(allowed?.cpus.as_ref()?);
        (!nodes.is_empty()).then_some(nodes)
    }
}

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

    fn add(&mut self, other: Self) {
        for (node, time) in other.certain {
            self.add_certain(node, time);
        }
        self.add_unsure(other.unsure, other.within);
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
    match node_of_task(before, now, places) {
        Some(node) => time.add_certain(node, used),
        None => time.add_unsure(used, within(before, now, places)),
    }
    Some(time)
}

/// The only node that a thread can have run on.
fn node_of_task(before: Option<&TaskSample>, now: &TaskSample, places: &Places) -> Option<NodeId> {
    if let Some(only) = places.only() {
        return Some(only);
    }
    let changes = before.map_or(Some(0), |task| task.cpu_changes);
    let is_still = now.cpu_changes.is_some() && now.cpu_changes == changes;
    let has_moved = before.is_some_and(|before| before.processor != now.processor);
    if is_still && !has_moved {
        if let Some(node) = now.processor.and_then(|cpu| places.node(cpu)) {
            return Some(node);
        }
    }
    let nodes = within(before, now, places)?;
    nodes.first().filter(|_| nodes.len() == 1)
}

/// The nodes that a thread can have run on; `None` where that is not known.
///
/// Without an earlier reading it may have been bound only now. One that may use other CPUs than before was bound
/// in between, perhaps more than once, and so was one that may use a single CPU and has changed CPUs nevertheless.
fn within(before: Option<&TaskSample>, now: &TaskSample, places: &Places) -> Option<NodeSet> {
    let before = before?;
    let (then, allowed) = (before.allowed.as_ref()?.cpus.as_ref()?, now.allowed.as_ref()?.cpus.as_ref()?);
    let has_changed = before.cpu_changes != now.cpu_changes || before.processor != now.processor;
    if then != allowed || allowed.len() == 1 && has_changed {
        return None;
    }
    places.allowed(now.allowed.as_ref())
}

/// Threads by who they are.
pub(crate) fn by_identity(tasks: &[TaskSample]) -> BTreeMap<Identity, &TaskSample> {
    tasks.iter().map(|task| (task.identity, task)).collect()
}

/// CPU time of a process between two readings, or since it was made; `None` where its clock went back.
///
/// Time of threads that ended in between, or that were not looked at, is unsure.
pub fn of_process(before: Option<&ProcessSample>, now: &ProcessSample, places: &Places) -> Option<CpuTime> {
    let used = ticks(now.cpu_ticks.checked_sub(before.map_or(0, |process| process.cpu_ticks))?);
    let mut time = CpuTime::none();
    if let Some(only) = places.only() {
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
            // One that may use other CPUs than before was bound in between, perhaps more than once.
            let same = before.filter(|process| process.allowed == now.allowed);
            let within = same.and_then(|process| places.allowed(process.allowed.as_ref()));
            match within
                .as_ref()
                .and_then(NodeSet::first)
                .filter(|_| within.as_ref().is_some_and(|w| w.len() == 1))
            {
                Some(node) => time.add_certain(node, used),
                None => time.add_unsure(used, within),
            }
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
        // Threads that are not looked at may be bound elsewhere; that is rare, and said nowhere but in `tasks`.
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
