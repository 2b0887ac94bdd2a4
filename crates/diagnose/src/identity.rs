//! Sums that must hold, with the differences that reading itself makes.
//!
//! Reading `numastat` perturbs it: a reader takes the counters of other CPUs while their owners add to them
//! without a lock, and a race loses or doubles a batch. In 5 s with one reading the drift was 0 over 200,000
//! allocations, with 24,000 to 34,000 readings 2 and 8; a busy host had drifted by 428 since boot. So counters are
//! compared by their change, with a tolerance that grows with the readings and the allocations. `nodeN/vmstat` has the
//! same counters under other names, and a sampler reads one of the two files.

use std::collections::BTreeMap;
use std::time::Duration;

use nodewise_machine::{Bytes, NodeCounters, NodeId};
use nodewise_source::sample::{GroupSample, Sample};

use crate::change::Delta;
use crate::locality::MemoryUse;

/// Counts that a reading may lose or double: the batch of a CPU.
const BATCH: u64 = 64;
/// The drift that allocations in between may cause: one in this many.
const DRIFT: u64 = 10_000;
/// Sizes of nodes and of the system agree to one in this many, and so do the parts of a node's memory.
const SIZES: u64 = 100;
/// Pages that each CPU may keep from a group's counters.
const GROUP_BATCH: u64 = 64;
/// The page that batches of groups are counted in, where none is known: the largest that Linux uses.
const LARGEST_PAGE: Bytes = Bytes::from_kib(64);

/// The unit of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Pages,
    Bytes,
    Milliseconds,
}

/// A sum that was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityCheck {
    /// The sum in words: `node 0: hit + miss = local + other`. Paths of groups are as they were read.
    pub name: String,
    pub holds: bool,
    pub difference: u64,
    pub tolerance: u64,
    pub unit: Unit,
}

impl IdentityCheck {
    fn new(name: String, difference: u64, tolerance: u64, unit: Unit) -> Self {
        Self { name, holds: difference <= tolerance, difference, tolerance, unit }
    }
}

/// An interval with the number of readings in it.
#[derive(Clone, Copy, Debug)]
pub struct Interval<'a> {
    pub delta: &'a Delta,
    pub readings: u64,
}

/// Checks every sum whose parts are known; those of counters need an interval.
pub fn check(now: &Sample, interval: Option<Interval<'_>>) -> Vec<IdentityCheck> {
    let mut checks = Vec::new();
    if let Some(interval) = interval {
        checks.extend(allocations(interval));
        checks.extend(cpu_time(interval));
    }
    checks.extend(system_memory(now));
    checks.extend(uses(now));
    checks.extend(groups(now));
    checks
}

fn allocated(counters: &NodeCounters<Option<u64>>) -> u64 {
    counters.hit.unwrap_or(0).saturating_add(counters.miss.unwrap_or(0))
}

fn allocations(interval: Interval<'_>) -> Vec<IdentityCheck> {
    let nodes = &interval.delta.nodes;
    let tolerance = |count: u64| (BATCH.saturating_mul(interval.readings)).max(count / DRIFT);
    let mut checks: Vec<IdentityCheck> = nodes
        .iter()
        .filter_map(|node| {
            let counters = &node.allocations;
            let given = counters.hit?.saturating_add(counters.miss?);
            let by_cpus = counters.local?.saturating_add(counters.other?);
            let name = format!("node {}: hit + miss = local + other", node.node);
            Some(IdentityCheck::new(name, given.abs_diff(by_cpus), tolerance(given), Unit::Pages))
        })
        .collect();
    let sum = |of: fn(&NodeCounters<Option<u64>>) -> Option<u64>| {
        nodes.iter().map(|node| of(&node.allocations)).sum::<Option<u64>>()
    };
    if let (Some(miss), Some(foreign)) = (sum(|counters| counters.miss), sum(|counters| counters.foreign)) {
        let all = nodes.iter().map(|node| allocated(&node.allocations)).sum();
        let name = "all nodes: miss = foreign".to_owned();
        // A node alone has neither.
        if !nodes.is_empty() {
            checks.push(IdentityCheck::new(name, miss.abs_diff(foreign), tolerance(all), Unit::Pages));
        }
    }
    checks
}

/// Certain CPU time of processes on a node against the busy time of its CPUs, which are read at other moments.
fn cpu_time(interval: Interval<'_>) -> Vec<IdentityCheck> {
    let mut certain: BTreeMap<NodeId, Duration> = BTreeMap::new();
    for cpu in interval.delta.processes.iter().filter_map(|process| process.cpu.as_ref()) {
        for (node, time) in &cpu.certain {
            *certain.entry(*node).or_default() += *time;
        }
    }
    let Some(window) = interval.delta.window.length() else { return Vec::new() };
    let check = |(node, time): (NodeId, Duration)| {
        let load = interval.delta.node(node)?.cpus?;
        let cpus = window.mul_f64(load.cpus as f64);
        let busy = cpus.mul_f64(load.busy.clamp(0.0, 1.0));
        let over = milliseconds(time.saturating_sub(busy));
        let ticks = Duration::from_millis(20 * load.cpus as u64);
        let tolerance = milliseconds(cpus.mul_f64(0.05) + ticks);
        let name = format!("node {node}: CPU time of processes <= busy time of its CPUs");
        Some(IdentityCheck::new(name, over, tolerance, Unit::Milliseconds))
    };
    certain.into_iter().filter_map(check).collect()
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn system_memory(now: &Sample) -> Option<IdentityCheck> {
    let nodes: Option<Vec<Bytes>> = now.nodes.iter().map(|node| node.size("MemTotal")).collect();
    let nodes = nodes.filter(|nodes| !nodes.is_empty())?.into_iter().sum::<Bytes>().get();
    let system = now.memory?.get();
    let name = "sum of MemTotal over nodes = MemTotal of the system".to_owned();
    Some(IdentityCheck::new(name, nodes.abs_diff(system), system / SIZES, Unit::Bytes))
}

fn uses(now: &Sample) -> Vec<IdentityCheck> {
    let check = |(node, memory): (NodeId, MemoryUse)| {
        let name = format!("node {node}: free memory + its uses <= MemTotal");
        IdentityCheck::new(name, memory.excess.get(), memory.total.get() / SIZES, Unit::Bytes)
    };
    now.nodes.iter().filter_map(|node| Some((node.node, MemoryUse::from_node(node)?))).map(check).collect()
}

/// Kinds of memory that are charged to one group, and so to all above it.
const CHARGED: [&str; 2] = ["anon", "file"];

/// Each parent against the sum of its children. A group's counters lag by batches of each CPU.
fn groups(now: &Sample) -> Vec<IdentityCheck> {
    let charged = |group: &GroupSample| {
        let known: Vec<u64> = CHARGED
            .iter()
            .filter_map(|kind| group.memory.get(*kind))
            .map(|nodes| nodes.values().map(|size| size.get()).sum())
            .collect();
        (!known.is_empty()).then(|| known.into_iter().sum::<u64>())
    };
    let parent = |path: &str| Some(path.rsplit_once('/')?.0).filter(|_| path != "/").map(str::to_owned);
    let mut children: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for group in &now.groups {
        if let (Some(parent), Some(size)) = (parent(&group.path), charged(group)) {
            let entry = children.entry(if parent.is_empty() { "/".to_owned() } else { parent }).or_default();
            *entry = (entry.0.saturating_add(size), entry.1 + 1);
        }
    }
    let cpus = now.cpus.len().max(1) as u64;
    let check = |group: &GroupSample| {
        // The root's own files do not count as those of other groups do.
        let (sum, count) = children.get(&*group.path).filter(|_| &*group.path != "/")?;
        let batches = LARGEST_PAGE.times(GROUP_BATCH * cpus).times(count + 1);
        let name = format!("group {}: its children <= itself", group.path);
        Some(IdentityCheck::new(name, sum.saturating_sub(charged(group)?), batches.get(), Unit::Bytes))
    };
    now.groups.iter().filter_map(check).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{at, moment, node, process, size, task};
    use nodewise_machine::CpuId;
    use nodewise_source::parse::proc_stat::CpuTimes;

    fn sample(seconds: u64) -> Sample {
        Sample { moment: moment(seconds), nodes: vec![node(0, &[0]), node(1, &[1])], ..Sample::default() }
    }

    fn counted(hit: u64, miss: u64, foreign: u64, local: u64, other: u64) -> NodeCounters<Option<u64>> {
        NodeCounters {
            hit: Some(hit),
            miss: Some(miss),
            foreign: Some(foreign),
            interleave_hit: Some(0),
            local: Some(local),
            other: Some(other),
        }
    }

    fn checks(before: &Sample, now: &Sample) -> Vec<(String, bool, u64)> {
        let delta = Delta::between(before, now).unwrap();
        let checks = check(now, Some(Interval { delta: &delta, readings: 1 }));
        checks.into_iter().map(|check| (check.name, check.holds, check.difference)).collect()
    }

    #[test]
    fn counters_are_compared_by_their_change() {
        let (mut before, mut now) = (sample(1), sample(2));
        // They had drifted by 428 before.
        before.nodes[0].allocations = counted(1000, 0, 5, 1428, 0);
        before.nodes[1].allocations = counted(100, 5, 0, 105, 0);
        now.nodes[0].allocations = counted(18_000, 0, 305, 18_420, 0);
        now.nodes[1].allocations = counted(200, 305, 0, 105, 310);
        assert_eq!(
            checks(&before, &now),
            [
                ("node 0: hit + miss = local + other".to_owned(), true, 8),
                ("node 1: hit + miss = local + other".to_owned(), false, 90),
                ("all nodes: miss = foreign".to_owned(), true, 0),
            ]
        );
    }

    #[test]
    fn programs_cannot_use_more_than_the_cpus_of_their_node() {
        let (mut before, mut now) = (sample(1), sample(2));
        let times = |user, idle| CpuTimes { user, idle, ..CpuTimes::default() };
        before.cpus = vec![(CpuId::new(0), times(0, 0))];
        now.cpus = vec![(CpuId::new(0), times(30, 70))];
        let spent = |seconds, ticks| {
            let (mut process, mut task) = (process(7, ticks), task(7, ticks));
            (task.processor, task.cpu_changes) = (Some(CpuId::new(0)), Some(1));
            process.tasks = Some(vec![task]);
            at(seconds, process)
        };
        before.processes = vec![spent(1, 0)];
        now.processes = vec![spent(2, 32)];
        let name = "node 0: CPU time of processes <= busy time of its CPUs".to_owned();
        assert_eq!(checks(&before, &now)[0], (name.clone(), true, 20));
        now.processes = vec![spent(2, 90)];
        assert_eq!(checks(&before, &now)[0], (name, false, 600));
    }

    #[test]
    fn sizes_that_lag_and_parts_that_exceed_the_whole_are_found_without_an_interval() {
        let mut now = sample(1);
        now.memory = Some(Bytes::from_gib(24));
        for node in &mut now.nodes {
            node.memory = vec![
                size("MemTotal", Bytes::from_gib(8)),
                size("MemFree", Bytes::from_gib(3)),
                size("AnonPages", Bytes::from_gib(5)),
            ];
        }
        now.nodes[1].memory[2] = size("AnonPages", Bytes::from_gib(6));
        let failed: Vec<String> =
            check(&now, None).into_iter().filter(|check| !check.holds).map(|check| check.name).collect();
        assert_eq!(
            failed,
            [
                "sum of MemTotal over nodes = MemTotal of the system",
                "node 1: free memory + its uses <= MemTotal"
            ]
        );
    }

    #[test]
    fn children_are_not_charged_for_more_than_their_parent() {
        let group = |path: &str, mib| GroupSample {
            path: path.into(),
            memory: BTreeMap::from([(
                "anon".to_owned(),
                BTreeMap::from([(NodeId::new(0), Bytes::from_mib(mib))]),
            )]),
            ..GroupSample::default()
        };
        let mut now = sample(1);
        now.groups = vec![group("/", 1), group("/a", 100), group("/a/b", 60), group("/a/c", 45)];
        let checked = check(&now, None);
        assert_eq!((checked.len(), checked[0].holds), (1, true), "{checked:?}");
        now.groups[3] = group("/a/c", 145);
        assert!(!check(&now, None)[0].holds);
        now.groups[1].memory.clear();
        assert!(check(&now, None).is_empty(), "what is not known is not checked");
    }
}
