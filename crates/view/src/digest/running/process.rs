//! A process: where its memory is, where it runs, and how the two agree.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use nodewise_diagnose::attribution::reach;
use nodewise_diagnose::change::TaskChange;
use nodewise_diagnose::sample::{
    BalancingFaults, Denied, Identity, PageMethod, PageSample, ProcessSample, Sample, TaskSample,
};
use nodewise_diagnose::{CpuTime, Delta, Locality, Places, Window};
use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::order::Order as _;
use nodewise_machine::{Bytes, CpuId, NodeId, NodeSet};

use super::{Choice, Shown};

/// CPU time that is worth a line, as a share of one CPU.
const NOTABLE_CPU: f64 = 0.01;
/// Memory that is worth a line: one part in this many of the system's.
const NOTABLE_MEMORY: u64 = 100;
/// Stranded memory that is worth a line: less than this is text and data of libraries.
const NOTABLE_STRANDED: Bytes = Bytes::from_mib(16);
/// The share of a process's memory from which its stranded part is worth a line.
const NOTABLE_STRANDED_SHARE: f64 = 0.1;

/// The order of processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Sort {
    /// Those with stranded memory first, then by CPU time, then by memory.
    #[default]
    Notable,
    Cpu,
    Memory,
    Stranded,
    /// Pages that balancing moved.
    Moved,
    Pid,
}

/// A process in a window.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessRow {
    pub identity: Identity,
    /// As it was read: not fit for a terminal.
    pub name: Arc<str>,
    pub user: Option<u32>,
    /// As it was read: not fit for a terminal.
    pub user_name: Option<Arc<str>>,
    /// As it was read: not fit for a terminal.
    pub group: Option<Arc<str>>,
    pub threads: u32,
    pub kernel_thread: bool,
    pub window: Window,
    pub cpu: Option<CpuTime>,
    /// CPU time as a share of one CPU.
    pub cpu_share: Option<f64>,
    pub resident: Option<Bytes>,
    pub pages: Option<PageSample>,
    pub denied: Option<Denied>,
    /// Nodes that it may run on.
    pub reach: Option<NodeSet>,
    pub locality: Option<Locality>,
    /// Pages that balancing moved in the window.
    pub migrated_pages: Option<u64>,
    /// Threads by the node that the kernel prefers for them.
    pub preferred: BTreeMap<NodeId, usize>,
    pub tasks: Vec<TaskRow>,
}

/// A thread in a window.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskRow {
    pub identity: Identity,
    /// As it was read: not fit for a terminal.
    pub name: Arc<str>,
    pub cpu: Option<CpuTime>,
    pub cpu_share: Option<f64>,
    /// The CPU that it ran on last, and its node.
    pub processor: Option<CpuId>,
    pub node: Option<NodeId>,
    pub preferred: Option<NodeId>,
    pub migrated_pages: Option<u64>,
    /// Decayed hint faults by node of the page.
    pub faults: BTreeMap<NodeId, BalancingFaults>,
}

impl ProcessRow {
    /// Stranded memory that is worth a line.
    pub fn notably_stranded(&self) -> Option<Bytes> {
        let stranded = self.locality.as_ref()?.stranded.as_ref()?;
        (stranded.size >= NOTABLE_STRANDED && stranded.share >= NOTABLE_STRANDED_SHARE)
            .then_some(stranded.size)
    }

    /// Whether its pages were drawn, and not counted one by one.
    pub fn is_drawn(&self) -> bool {
        self.pages.as_ref().is_some_and(|pages| matches!(pages.method, PageMethod::Drawn(_)))
    }

    /// The shares of its memory by node; empty where none is resident, `None` where nothing says.
    pub fn memory_shares(&self) -> Option<Vec<(NodeId, f64)>> {
        let nodes = &self.pages.as_ref()?.nodes;
        let all: f64 = nodes.values().map(|share| share.size.get() as f64).sum();
        let share = |size: Bytes| size.get() as f64 / all;
        Some(if all == 0.0 {
            Vec::new()
        } else {
            nodes.iter().map(|(node, of)| (*node, share(of.size))).collect()
        })
    }

    /// The share of its memory on nodes where it did not run.
    pub fn stranded_share(&self) -> Option<f64> {
        Some(self.locality.as_ref()?.stranded.as_ref()?.share)
    }
}

/// The processes to show, in their order.
pub(super) fn rows(sample: &Sample, delta: &Delta, places: &Places, choice: Choice) -> Vec<ProcessRow> {
    if choice.shown == Shown::None {
        return Vec::new();
    }
    let changes: BTreeMap<Identity, _> =
        delta.processes.iter().map(|change| (change.identity, change)).collect_map();
    let least = sample.memory.map(|memory| Bytes::new(memory.get() / NOTABLE_MEMORY));
    let is_notable = |row: &ProcessRow| {
        row.cpu_share.is_some_and(|share| share >= NOTABLE_CPU)
            || row.resident.zip(least).is_some_and(|(resident, least)| resident >= least)
            || row.notably_stranded().is_some()
    };
    let row = |process: &Arc<ProcessSample>| {
        let change = changes.get(&process.identity);
        let window = change.map_or(delta.window, |change| change.window);
        let cpu = change.and_then(|change| change.cpu.clone());
        let reach = reach(process, places);
        // Since boot a process may have been bound only later: where it may run now decides.
        let ran = cpu.as_ref().filter(|_| matches!(window, Window::Interval(_)));
        let tasks = process.tasks.as_deref().unwrap_or_default();
        // Where it ran last outside of the CPUs that it may use, those are out of date.
        let processors = tasks.iter().map(|task| task.processor).chain([process.processor]);
        let last: NodeSet = processors.filter_map(|cpu| places.node(cpu?)).collect();
        let is_bounded = ran.is_none_or(|cpu| cpu.within.is_some());
        let usable = reach.as_ref().map(|reach| if is_bounded { reach.clone() } else { reach.union(&last) });
        let locality = process.pages.as_ref().map(|pages| Locality::new(pages, ran, usable.as_ref(), places));
        let mut preferred = BTreeMap::new();
        for node in tasks.iter().filter_map(|task| task.balancing.as_ref()?.preferred) {
            *preferred.entry(node).or_insert(0) += 1;
        }
        let row = ProcessRow {
            identity: process.identity,
            name: Arc::clone(&process.name),
            user: process.user,
            user_name: process.user.and_then(|user| sample.users.get(&user)).map(Arc::clone),
            group: process.group.clone(),
            threads: process.threads,
            kernel_thread: process.kernel_thread,
            window,
            cpu_share: window.share(cpu.as_ref().map(|cpu| cpu.used)),
            cpu,
            resident: process.resident,
            pages: process.pages.clone(),
            denied: process.denied,
            reach,
            locality,
            migrated_pages: change.and_then(|change| change.migrated_pages),
            preferred,
            tasks: Vec::new(),
        };
        let wanted = choice.shown == Shown::All || !process.kernel_thread && is_notable(&row);
        let changes = change.map(|change| change.tasks.as_slice()).unwrap_or_default();
        wanted.then(|| ProcessRow {
            tasks: if choice.threads { task_rows(tasks, changes, window, places) } else { Vec::new() },
            ..row
        })
    };
    let mut rows: Vec<ProcessRow> = sample.processes.iter().filter_map(row).collect();
    sort(&mut rows, choice.sort);
    rows
}

fn sort(rows: &mut [ProcessRow], sort: Sort) {
    let cpu = |row: &ProcessRow| (row.cpu_share.unwrap_or(-1.0) * 1e6) as i64;
    let stranded = |row: &ProcessRow| row.locality.as_ref().and_then(|l| Some(l.stranded.as_ref()?.size));
    rows.order_by_key(|row| row.identity);
    match sort {
        Sort::Notable => rows.order_by_key(|row| Reverse((row.notably_stranded(), cpu(row), row.resident))),
        Sort::Cpu => rows.order_by_key(|row| Reverse(cpu(row))),
        Sort::Memory => rows.order_by_key(|row| Reverse(row.resident)),
        Sort::Stranded => rows.order_by_key(|row| Reverse(stranded(row))),
        Sort::Moved => rows.order_by_key(|row| Reverse(row.migrated_pages)),
        Sort::Pid => (),
    }
}

fn task_rows(tasks: &[TaskSample], changes: &[TaskChange], window: Window, places: &Places) -> Vec<TaskRow> {
    let changes: BTreeMap<Identity, &TaskChange> =
        changes.iter().map(|change| (change.identity, change)).collect_map();
    let row = |task: &TaskSample| {
        let change = changes.get(&task.identity);
        let cpu = change.and_then(|change| change.cpu.clone());
        TaskRow {
            identity: task.identity,
            name: Arc::clone(&task.name),
            cpu_share: window.share(cpu.as_ref().map(|cpu| cpu.used)),
            cpu,
            processor: task.processor,
            node: task.processor.and_then(|cpu| places.node(cpu)),
            preferred: task.balancing.as_ref().and_then(|balancing| balancing.preferred),
            migrated_pages: change.and_then(|change| change.migrated_pages),
            faults: task.balancing.as_ref().map(|balancing| balancing.faults.clone()).unwrap_or_default(),
        }
    };
    let mut rows: Vec<TaskRow> = tasks.iter().map(row).collect();
    rows.order_by_key(|row| Reverse((row.cpu_share.unwrap_or(-1.0) * 1e6) as i64));
    rows
}
