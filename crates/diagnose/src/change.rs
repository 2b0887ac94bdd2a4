//! The change between two samples: counts, and the time in which they arose.
//!
//! A counter that ran backwards, or that only one of the samples has, has no change: never 0, never a negative
//! number. A process is matched by its number and its start, so that a successor is another process.

pub mod load;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::{CpuId, CpuSet, NodeCounters, NodeId};
use nodewise_source::parse::counters::Counters;
use nodewise_source::parse::pressure::{Pressure, Stall};
use nodewise_source::sample::{
    BandwidthSample, ControllerSample, GroupSample, Identity, InterruptSample, NodeSample, PressureSample,
    ProcessSample, Sample, TaskSample,
};
use thiserror::Error;

use crate::attribution::{self, CpuTime, Places};
pub use load::CpuLoad;

/// A younger process has no share of a CPU since its start: that and its time are counted in ticks of 10 ms.
const YOUNG: Duration = Duration::from_millis(200);

/// The time in which changes arose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// Between two samples.
    Interval(Duration),
    /// Since the system started; `None` where it is not known when that was.
    SinceBoot(Option<Duration>),
}

impl Window {
    /// Its length, if it is known and not 0.
    pub fn length(self) -> Option<Duration> {
        match self {
            Self::Interval(length) => Some(length),
            Self::SinceBoot(length) => length.filter(|length| !length.is_zero()),
        }
    }

    /// Events per second.
    pub fn rate(self, count: Option<u64>) -> Option<f64> {
        Some(count? as f64 / self.length()?.as_secs_f64())
    }

    /// Time as a share of the window: 1 is one CPU.
    pub fn share(self, time: Option<Duration>) -> Option<f64> {
        Some(time?.as_secs_f64() / self.length()?.as_secs_f64())
    }
}

/// Why two samples have no change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DeltaError {
    #[error("both samples are of the same moment: rates need time between them")]
    SameMoment,
    #[error("the second sample is {} ms older than the first: rates need samples in their order", .0.as_millis())]
    ClockWentBack(Duration),
}

/// The change between two samples, or since boot.
#[derive(Clone, Debug, PartialEq)]
pub struct Delta {
    pub window: Window,
    /// The nodes of the later sample.
    pub nodes: Vec<NodeChange>,
    /// The CPUs of all nodes together.
    pub cpus: Option<CpuLoad>,
    /// Events of the whole system.
    pub events: Counts,
    /// The processes of the later sample.
    pub processes: Vec<ProcessChange>,
    /// Processes that began in between.
    pub born: Vec<Identity>,
    /// Processes that ended in between.
    pub gone: Vec<Identity>,
    pub interrupts: Vec<InterruptChange>,
    pub pressure: PressureChange,
    pub bandwidth: Vec<BandwidthChange>,
    pub controllers: Vec<ControllerChange>,
    pub groups: Vec<GroupChange>,
    /// CPUs whose idle time ran backwards, as it does in some releases: it counts as 0.
    pub idle_went_back: usize,
}

/// Events by the kernel's names. Counters without a change are left out.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Counts(BTreeMap<String, u64>);

impl Counts {
    fn between(before: Option<&Counters>, now: &Counters) -> Self {
        let earlier: Option<BTreeMap<&str, u64>> = before.map(|before| before.iter().collect_map());
        let change = |(name, value): (&str, u64)| {
            let count = match &earlier {
                Some(earlier) => value.checked_sub(*earlier.get(name)?)?,
                None => value,
            };
            Some((name.to_owned(), count))
        };
        Self(now.iter().filter_map(change).collect_map())
    }

    /// The events with a name.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.0.get(name).copied()
    }

    /// The sum of those of several counters that this kernel has; `None` without any.
    pub fn sum(&self, names: &[&str]) -> Option<u64> {
        let known = names.iter().filter_map(|name| self.get(name));
        known.fold(None, |sum: Option<u64>, count| Some(sum.unwrap_or(0).saturating_add(count)))
    }
}

/// A node's change.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeChange {
    pub node: NodeId,
    /// `None` without CPUs, or where their times are not known.
    pub cpus: Option<CpuLoad>,
    pub allocations: NodeCounters<Option<u64>>,
    /// Events of `nodeN/vmstat`.
    pub events: Counts,
}

/// A process's change.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessChange {
    pub identity: Identity,
    /// The time in which it arose: between the readings of this process, which are rarer while it is idle, or
    /// since its start.
    pub window: Window,
    pub cpu: Option<CpuTime>,
    pub major_faults: Option<u64>,
    /// Pages that automatic balancing moved for its threads.
    pub migrated_pages: Option<u64>,
    /// Its threads, where both samples have them.
    pub tasks: Vec<TaskChange>,
}

/// A thread's change.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskChange {
    pub identity: Identity,
    pub cpu: Option<CpuTime>,
    pub migrated_pages: Option<u64>,
}

/// The interrupts of a device, by the node of the CPU that took them.
#[derive(Clone, Debug, PartialEq)]
pub struct InterruptChange {
    pub device: String,
    /// The node of the device.
    pub node: Option<NodeId>,
    pub by_node: BTreeMap<NodeId, u64>,
    /// All of them, those of CPUs without a node included.
    pub count: u64,
}

impl InterruptChange {
    /// The share that CPUs of other nodes took; `None` where the device has no node, or there were none.
    pub fn wrong_share(&self) -> Option<f64> {
        let own = self.by_node.get(&self.node?).copied().unwrap_or(0);
        (self.count > 0).then(|| 1.0 - own as f64 / self.count as f64)
    }
}

/// Shares of the window in which tasks waited for a resource.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct PressureChange {
    /// Some task waited for a CPU.
    pub cpu_some: Option<f64>,
    pub memory_some: Option<f64>,
    /// All tasks waited for memory.
    pub memory_full: Option<f64>,
    pub io_some: Option<f64>,
    pub io_full: Option<f64>,
}

/// A control group's change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupChange {
    pub path: Arc<str>,
    /// Between the readings of this group, which are rarer while it is idle.
    pub window: Window,
    pub cpu: Option<Duration>,
}

/// Bytes that hardware counted for a last-level cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BandwidthChange {
    pub domain: u32,
    pub total_bytes: Option<u64>,
    pub local_bytes: Option<u64>,
}

/// Bytes that the memory controllers of a die counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerChange {
    pub cpus: CpuSet,
    pub read_bytes: Option<u64>,
    pub written_bytes: Option<u64>,
}

impl Delta {
    /// The change between two samples.
    ///
    /// # Errors
    /// Samples of the same moment, or in the wrong order.
    pub fn between(before: &Sample, now: &Sample) -> Result<Self, DeltaError> {
        let (then, later) = (before.moment.since_boot, now.moment.since_boot);
        let length = later.checked_sub(then).ok_or(DeltaError::ClockWentBack(then.saturating_sub(later)))?;
        if length.is_zero() {
            return Err(DeltaError::SameMoment);
        }
        let mut delta = Self::new(Some(before), now, Window::Interval(length));
        let known = |sample: &Sample, identity| sample.process(identity).is_some();
        let all = |sample: &Sample| sample.processes.iter().map(|p| p.identity).collect::<Vec<_>>();
        delta.born = all(now).into_iter().filter(|identity| !known(before, *identity)).collect();
        delta.gone = all(before).into_iter().filter(|identity| !known(now, *identity)).collect();
        Ok(delta)
    }

    /// The change since boot: all that a sample has counted. Processes count since their start.
    pub fn since_boot(now: &Sample) -> Self {
        let length = Some(now.moment.since_boot).filter(|length| !length.is_zero());
        Self::new(None, now, Window::SinceBoot(length))
    }

    fn new(before: Option<&Sample>, now: &Sample, window: Window) -> Self {
        let places = Places::new(before.into_iter().chain([now]));
        let loads = load::Times::between(before.map(|sample| sample.cpus.as_slice()), &now.cpus);
        let node = |node: &NodeSample| {
            let earlier = before.map(|sample| sample.node(node.node));
            let absent = earlier.is_some_and(|earlier| earlier.is_none());
            let (allocations, events) = match earlier.flatten() {
                Some(earlier) => (
                    node.allocations.since(earlier.allocations),
                    Counts::between(Some(&earlier.counters), &node.counters),
                ),
                None if absent => Default::default(),
                None => (node.allocations, Counts::between(None, &node.counters)),
            };
            NodeChange { node: node.node, cpus: loads.load(&node.cpus), allocations, events }
        };
        let devices = before.map(|sample| {
            sample.interrupts.iter().map(|device| (device.device.as_str(), device)).collect_map()
        });
        let all = now.cpus.iter().map(|(cpu, _)| *cpu).collect();
        let process = |process: &Arc<ProcessSample>| process_change(before, process, window, &places);
        Self {
            window,
            nodes: now.nodes.iter().map(node).collect(),
            cpus: loads.load(&all),
            events: Counts::between(before.map(|sample| &sample.events), &now.events),
            processes: now.processes.iter().map(process).collect(),
            born: Vec::new(),
            gone: Vec::new(),
            interrupts: now
                .interrupts
                .iter()
                .filter_map(|device| interrupts(devices.as_ref(), device, &places))
                .collect(),
            pressure: pressure(before.map(|sample| &sample.pressure), &now.pressure, window),
            bandwidth: now.bandwidth.iter().map(|cache| bandwidth(before, cache)).collect(),
            controllers: now.controllers.iter().map(|die| controllers(before, die)).collect(),
            groups: groups(before, now, window),
            idle_went_back: loads.idle_went_back,
        }
    }

    /// The change of a node.
    pub fn node(&self, node: NodeId) -> Option<&NodeChange> {
        self.nodes.iter().find(|change| change.node == node)
    }

    /// The change of a process.
    pub fn process(&self, identity: Identity) -> Option<&ProcessChange> {
        self.processes.iter().find(|change| change.identity == identity)
    }
}

fn process_change(
    before: Option<&Sample>,
    now: &ProcessSample,
    window: Window,
    places: &Places,
) -> ProcessChange {
    let began = attribution::ticks(now.identity.started_ticks);
    let read = now.polled.since_boot;
    let earlier = before.map(|before| (before, before.process(now.identity)));
    let (window, earlier) = match earlier {
        None => {
            let age = read.saturating_sub(began);
            let is_known = window.length().is_some() && age >= YOUNG;
            (Window::SinceBoot(Some(age).filter(|_| is_known)), Some(None))
        }
        // An idle process is not read each time: its window is that of its own readings.
        Some((_, Some(earlier))) => match read.checked_sub(earlier.polled.since_boot) {
            Some(length) if !length.is_zero() => (Window::Interval(length), Some(Some(earlier))),
            _ => (window, None),
        },
        // It began in between: all that it counted is of this window. Otherwise it was not looked at.
        Some((before, None)) if began >= before.moment.since_boot => (window, Some(None)),
        Some((_, None)) => (window, None),
    };
    let since = |now: u64, then: fn(&ProcessSample) -> u64| now.checked_sub(earlier?.map_or(0, then));
    let tasks = match (now.tasks.as_deref(), earlier) {
        (Some(tasks), Some(earlier)) => task_changes(earlier, tasks, places),
        _ => Vec::new(),
    };
    ProcessChange {
        identity: now.identity,
        window,
        cpu: earlier.and_then(|earlier| attribution::of_process(earlier, now, places)),
        major_faults: since(now.major_faults, |process| process.major_faults),
        migrated_pages: tasks
            .iter()
            .filter_map(|task| task.migrated_pages)
            .fold(None, |sum: Option<u64>, pages| Some(sum.unwrap_or(0).saturating_add(pages))),
        tasks,
    }
}

fn task_changes(before: Option<&ProcessSample>, tasks: &[TaskSample], places: &Places) -> Vec<TaskChange> {
    let then = before.map(|process| process.tasks.as_deref());
    if then == Some(None) {
        return Vec::new();
    }
    let then = attribution::by_identity(then.flatten().unwrap_or_default());
    let change = |task: &TaskSample| {
        let earlier = then.get(&task.identity).copied();
        let moved = |task: &TaskSample| task.balancing.as_ref()?.migrated_pages;
        let migrated_pages = match earlier {
            Some(earlier) => moved(task).zip(moved(earlier)).and_then(|(now, then)| now.checked_sub(then)),
            None => moved(task),
        };
        TaskChange {
            identity: task.identity,
            cpu: attribution::of_task(earlier, task, places),
            migrated_pages,
        }
    };
    tasks.iter().map(change).collect()
}

/// `None` where the device has no earlier reading, or one of its CPUs counted backwards.
fn interrupts(
    before: Option<&BTreeMap<&str, &InterruptSample>>,
    now: &InterruptSample,
    places: &Places,
) -> Option<InterruptChange> {
    let earlier = match before {
        Some(devices) => Some(devices.get(now.device.as_str())?),
        None => None,
    };
    let mut change =
        InterruptChange { device: now.device.clone(), node: now.node, by_node: BTreeMap::new(), count: 0 };
    let then: BTreeMap<CpuId, u64> =
        earlier.map(|earlier| earlier.by_cpu.iter().copied().collect()).unwrap_or_default();
    for (cpu, count) in &now.by_cpu {
        // A CPU that came online in between had none.
        let count = count.checked_sub(then.get(cpu).copied().unwrap_or(0))?;
        change.count = change.count.saturating_add(count);
        if let Some(node) = places.node(*cpu) {
            *change.by_node.entry(node).or_default() += count;
        }
    }
    Some(change)
}

fn pressure(before: Option<&PressureSample>, now: &PressureSample, window: Window) -> PressureChange {
    type Of = fn(&PressureSample) -> Option<Pressure>;
    type Kind = fn(&Pressure) -> Option<Stall>;
    let share = |of: Of, kind: Kind| {
        let total = |sample: &PressureSample| Some(kind(&of(sample)?)?.total_us);
        let then = before.map_or(Some(0), total)?;
        window.share(Some(Duration::from_micros(total(now)?.checked_sub(then)?)))
    };
    PressureChange {
        cpu_some: share(|sample| sample.cpu, |pressure| pressure.some),
        memory_some: share(|sample| sample.memory, |pressure| pressure.some),
        memory_full: share(|sample| sample.memory, |pressure| pressure.full),
        io_some: share(|sample| sample.io, |pressure| pressure.some),
        io_full: share(|sample| sample.io, |pressure| pressure.full),
    }
}

/// Groups have no age: without an earlier reading nothing says in which time their CPU time arose.
fn groups(before: Option<&Sample>, now: &Sample, window: Window) -> Vec<GroupChange> {
    let then: BTreeMap<&str, &GroupSample> =
        before.iter().flat_map(|sample| &sample.groups).map(|group| (&*group.path, group)).collect_map();
    let change = |group: &GroupSample| {
        let earlier = then.get(&*group.path);
        let length = earlier.and_then(|then| group.polled.since_boot.checked_sub(then.polled.since_boot));
        let length = length.filter(|length| !length.is_zero());
        let cpu = earlier.and_then(|then| group.cpu?.checked_sub(then.cpu?));
        GroupChange {
            path: Arc::clone(&group.path),
            window: length.map_or(window, Window::Interval),
            cpu: cpu.filter(|_| length.is_some()),
        }
    };
    now.groups.iter().map(change).collect()
}

fn bandwidth(before: Option<&Sample>, now: &BandwidthSample) -> BandwidthChange {
    let earlier = before.map(|sample| sample.bandwidth.iter().find(|earlier| earlier.domain == now.domain));
    let since = |of: fn(&BandwidthSample) -> Option<u64>| match earlier {
        // The counters began when the file system was mounted, and not with the system.
        None | Some(None) => None,
        Some(Some(earlier)) => of(now)?.checked_sub(of(earlier)?),
    };
    BandwidthChange {
        domain: now.domain,
        total_bytes: since(|cache| cache.total_bytes),
        local_bytes: since(|cache| cache.local_bytes),
    }
}

fn controllers(before: Option<&Sample>, now: &ControllerSample) -> ControllerChange {
    let earlier =
        before.and_then(|sample| sample.controllers.iter().find(|earlier| earlier.cpus == now.cpus));
    // The counters began with the first sample, and not with the system.
    let since = |of: fn(&ControllerSample) -> Option<u64>| of(now)?.checked_sub(of(earlier?)?);
    ControllerChange {
        cpus: now.cpus.clone(),
        read_bytes: since(|die| die.read_bytes),
        written_bytes: since(|die| die.written_bytes),
    }
}

#[cfg(test)]
mod tests;
