//! `nodewise.stat/1`: the running system in a window.

mod bandwidth;
mod queue;
mod service;

use std::collections::BTreeMap;
use std::time::Duration;

use nodewise_diagnose::change::CpuLoad;
use nodewise_diagnose::identity::Unit;
use nodewise_diagnose::sample::{Denied, PageMethod, PageSample};
use nodewise_diagnose::{CpuTime, IdentityCheck, Window};
use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::{Bytes, NodeCounters, NodeId};
use serde::Serialize;

use super::{compact, pretty, rounded};
use crate::digest::running::{DeviceRow, NodeRow, ProcessRow, RawCounter, Running, TaskRow, findings};
use bandwidth::{BandwidthJson, ControllerJson};
use queue::QueueJson;
use service::ServiceJson;

/// Writes it for a reader of one document.
pub fn stat(running: &Running) -> String {
    pretty(&StatJson::from_running(running))
}

/// Writes it as a line of many.
pub fn stat_line(running: &Running) -> String {
    compact(&stat(running)) + "\n"
}

#[derive(Serialize)]
struct StatJson {
    schema: &'static str,
    /// Seconds since the beginning of 1970.
    taken_at_s: f64,
    since_boot_s: f64,
    /// Missing: since boot.
    #[serde(skip_serializing_if = "Option::is_none")]
    interval_s: Option<f64>,
    nodes: Vec<NodeJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpus: Option<LoadJson>,
    balancing: BalancingJson,
    pressure: PressureJson,
    process_count: usize,
    processes_left_out: usize,
    born: usize,
    gone: usize,
    processes: Vec<ProcessJson>,
    /// Missing where they were not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    services: Option<Vec<ServiceJson>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    services_left_out: Option<usize>,
    devices: Vec<DeviceJson>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    bandwidth: Vec<BandwidthJson>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    memory_controllers: Vec<ControllerJson>,
    checks: Vec<CheckJson>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    counters: Vec<CounterJson>,
    findings: Vec<FindingJson>,
    unread: Vec<UnreadJson>,
}

#[derive(Serialize)]
struct LoadJson {
    cpus: usize,
    busy_share: f64,
    user_share: f64,
    system_share: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    interrupts_share: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting_share: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stolen_share: Option<f64>,
    busiest_cpu: u32,
    busiest_share: f64,
}

#[derive(Serialize)]
struct NodeJson {
    id: u32,
    cpus: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    load: Option<LoadJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    present_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uninitialised_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    free_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    high_watermark_bytes: Option<u64>,
    /// The parts of MemTotal in use: `anon_bytes`, ..., `rest_bytes`.
    used_by: BTreeMap<String, u64>,
    /// Pages, in the window.
    allocations: BTreeMap<&'static str, u64>,
    rates: BTreeMap<String, f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    promoted_pages: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    demoted_pages: Option<u64>,
    huge_page_pools: Vec<PoolJson>,
}

#[derive(Serialize)]
struct PoolJson {
    page_size_bytes: u64,
    total_pages: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    free_pages: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    surplus_pages: Option<u64>,
}

#[derive(Serialize)]
struct BalancingJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    hint_faults: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint_faults_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    local_share: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    migrated_pages: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    migrated_pages_per_s: Option<f64>,
}

#[derive(Serialize)]
struct PressureJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_some_share: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_some_share: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_full_share: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    io_some_share: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    io_full_share: Option<f64>,
}

#[derive(Serialize)]
struct ProcessJson {
    pid: u32,
    started_at_ticks: u64,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    threads: u32,
    /// The time in which its CPU time arose; that of an idle process is longer than the interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    window_s: Option<f64>,
    #[serde(flatten)]
    cpu: CpuJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    resident_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<MemoryJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_unread: Option<&'static str>,
    /// Nodes that it may run on.
    #[serde(skip_serializing_if = "Option::is_none")]
    may_run_on: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    local_index: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stranded_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stranded_share: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stranded_nodes: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    migrated_pages: Option<u64>,
    preferred_nodes: Vec<PreferredJson>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tasks: Vec<TaskJson>,
}

/// CPU time: a share of one CPU, and the shares of that time by node.
#[derive(Serialize, Default)]
struct CpuJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_share: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_by_node: Option<Vec<CertainJson>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_unsure_share: Option<f64>,
}

#[derive(Serialize)]
struct CertainJson {
    node: u32,
    certain_share: f64,
}

#[derive(Serialize)]
struct PreferredJson {
    node: u32,
    threads: usize,
}

#[derive(Serialize)]
struct MemoryJson {
    method: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pages_drawn: Option<u32>,
    age_s: f64,
    by_node: Vec<SizeJson>,
}

#[derive(Serialize)]
struct SizeJson {
    node: u32,
    size_bytes: u64,
    low_bytes: u64,
    high_bytes: u64,
}

#[derive(Serialize)]
struct TaskJson {
    tid: u32,
    name: String,
    #[serde(flatten)]
    cpu: CpuJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_cpu: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    preferred_node: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    migrated_pages: Option<u64>,
    hint_faults_decayed: Vec<FaultsJson>,
}

#[derive(Serialize)]
struct FaultsJson {
    node: u32,
    private: u64,
    shared: u64,
}

#[derive(Serialize)]
struct DeviceJson {
    device: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<u32>,
    interrupts: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    interrupts_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    other_nodes_share: Option<f64>,
    by_node: Vec<CountJson>,
    lines: Vec<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    queues: Vec<QueueJson>,
}

#[derive(Serialize)]
struct CountJson {
    node: u32,
    interrupts: u64,
}

#[derive(Serialize)]
struct CheckJson {
    name: String,
    holds: bool,
    difference: u64,
    tolerance: u64,
    unit: &'static str,
}

#[derive(Serialize)]
struct CounterJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<u32>,
    name: String,
    value: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<u64>,
}

#[derive(Serialize)]
struct FindingJson {
    kind: &'static str,
    sentence: String,
}

#[derive(Serialize)]
struct UnreadJson {
    fact: String,
    reason: String,
    objects: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

impl StatJson {
    fn from_running(running: &Running) -> Self {
        let rate = |count| running.rate(count).map(rounded);
        let (balancing, pressure) = (&running.balancing, &running.pressure);
        let finding = |finding: &crate::digest::running::RunningFinding| FindingJson {
            kind: finding.kind(),
            sentence: finding.sentence(),
        };
        Self {
            schema: "nodewise.stat/1",
            taken_at_s: seconds(running.moment.wall),
            since_boot_s: seconds(running.moment.since_boot),
            interval_s: match running.window {
                Window::Interval(length) => Some(seconds(length)),
                Window::SinceBoot(_) => None,
            },
            nodes: running.nodes.iter().map(|row| NodeJson::from_row(row, running)).collect(),
            cpus: running.cpus.map(LoadJson::from_load),
            balancing: BalancingJson {
                hint_faults: balancing.hint_faults,
                hint_faults_per_s: rate(balancing.hint_faults),
                local_share: balancing.local_share.map(rounded),
                migrated_pages: balancing.migrated_pages,
                migrated_pages_per_s: rate(balancing.migrated_pages),
            },
            pressure: PressureJson {
                cpu_some_share: pressure.cpu_some.map(rounded),
                memory_some_share: pressure.memory_some.map(rounded),
                memory_full_share: pressure.memory_full.map(rounded),
                io_some_share: pressure.io_some.map(rounded),
                io_full_share: pressure.io_full.map(rounded),
            },
            process_count: running.process_count,
            processes_left_out: running.processes_left_out,
            born: running.born,
            gone: running.gone,
            processes: running.processes.iter().map(|row| ProcessJson::from_row(row, running)).collect(),
            services: running.services.as_ref().map(|rows| rows.iter().map(ServiceJson::from_row).collect()),
            services_left_out: running.services.as_ref().map(|_| running.services_left_out),
            devices: running.devices.iter().map(|row| DeviceJson::from_row(row, running)).collect(),
            bandwidth: running.bandwidth.iter().map(|row| BandwidthJson::from_row(row, running)).collect(),
            memory_controllers: running
                .controllers
                .iter()
                .map(|row| ControllerJson::from_row(row, running))
                .collect(),
            checks: running.checks.iter().map(CheckJson::from_check).collect(),
            counters: running.raw.iter().map(CounterJson::from_counter).collect(),
            findings: findings(running).iter().map(finding).collect(),
            unread: running
                .unread
                .iter()
                .map(|unread| UnreadJson {
                    fact: unread.fact.clone(),
                    reason: unread.reason.clone(),
                    objects: unread.objects,
                    remedy: unread.remedy.as_ref().map(ToString::to_string),
                })
                .collect(),
        }
    }
}

fn seconds(time: Duration) -> f64 {
    rounded(time.as_secs_f64())
}

impl LoadJson {
    fn from_load(load: CpuLoad) -> Self {
        Self {
            cpus: load.cpus,
            busy_share: rounded(load.busy),
            user_share: rounded(load.user),
            system_share: rounded(load.system),
            interrupts_share: load.interrupts.map(rounded),
            waiting_share: load.waiting.map(rounded),
            stolen_share: load.stolen.map(rounded),
            busiest_cpu: load.busiest.0.number(),
            busiest_share: rounded(load.busiest.1),
        }
    }
}

impl NodeJson {
    fn from_row(row: &NodeRow, running: &Running) -> Self {
        let size = |of: fn(&nodewise_diagnose::locality::NodeSize) -> Option<Bytes>| {
            row.size.as_ref().and_then(of).map(Bytes::get)
        };
        let mut used_by = BTreeMap::new();
        if let Some(memory) = row.memory {
            let parts = memory.parts().into_iter().chain([("rest", Some(memory.rest))]);
            used_by.extend(parts.filter_map(|(name, size)| Some((format!("{name}_bytes"), size?.get()))));
        }
        let allocations = counters(&row.allocations);
        let per_second = |(name, count): (&&'static str, &u64)| {
            Some((format!("{name}_per_s"), rounded(running.rate(Some(*count))?)))
        };
        let rates = allocations.iter().filter_map(per_second).collect_map();
        Self {
            id: row.node.number(),
            cpus: row.cpus.to_string(),
            load: row.load.map(LoadJson::from_load),
            size_bytes: size(|size| Some(size.size)),
            present_bytes: size(|size| size.present),
            uninitialised_bytes: size(|size| Some(size.uninitialised).filter(|size| size.get() > 0)),
            free_bytes: size(|size| size.free),
            high_watermark_bytes: row.high_watermark.map(Bytes::get),
            used_by,
            allocations,
            rates,
            promoted_pages: row.promoted,
            demoted_pages: row.demoted,
            huge_page_pools: row
                .pools
                .iter()
                .map(|pool| PoolJson {
                    page_size_bytes: pool.page_size.get(),
                    total_pages: pool.total,
                    free_pages: pool.free,
                    surplus_pages: pool.surplus,
                })
                .collect(),
        }
    }
}

fn counters(counters: &NodeCounters<Option<u64>>) -> BTreeMap<&'static str, u64> {
    let named = [
        ("hit", counters.hit),
        ("miss", counters.miss),
        ("foreign", counters.foreign),
        ("interleave_hit", counters.interleave_hit),
        ("local", counters.local),
        ("other", counters.other),
    ];
    named.into_iter().filter_map(|(name, count)| Some((name, count?))).collect_map()
}

impl CpuJson {
    fn new(cpu: Option<&CpuTime>, share: Option<f64>, window: Window) -> Self {
        let mut json = Self { cpu_share: share.map(rounded), ..Self::default() };
        // Since boot a thread may have been anywhere before it was bound.
        let cpu = cpu.filter(|cpu| !cpu.used.is_zero() && matches!(window, Window::Interval(_)));
        if let Some(cpu) = cpu {
            let certain = cpu.certain.iter().filter_map(|(node, time)| {
                Some(CertainJson { node: node.number(), certain_share: rounded(cpu.share(*time)?) })
            });
            json.cpu_by_node = Some(certain.collect());
            json.cpu_unsure_share = cpu.share(cpu.unsure).map(rounded);
        }
        json
    }
}

impl ProcessJson {
    fn from_row(row: &ProcessRow, running: &Running) -> Self {
        let stranded = row.locality.as_ref().and_then(|locality| locality.stranded.as_ref());
        Self {
            pid: row.identity.pid.number(),
            started_at_ticks: row.identity.started_ticks,
            name: row.name.to_string(),
            user: row.user,
            user_name: row.user_name.as_ref().map(ToString::to_string),
            group: row.group.as_ref().map(ToString::to_string),
            threads: row.threads,
            window_s: row.window.length().map(seconds),
            cpu: CpuJson::new(row.cpu.as_ref(), row.cpu_share, row.window),
            resident_bytes: row.resident.map(Bytes::get),
            memory: row.pages.as_ref().map(|pages| MemoryJson::from_pages(pages, running)),
            memory_unread: row.denied.map(|denied| match denied {
                Denied::Rights => "permission denied",
                Denied::NoFile => "this kernel has no numa_maps",
                Denied::Unreadable => "unreadable",
            }),
            may_run_on: row.reach.as_ref().map(ToString::to_string),
            local_index: row.locality.as_ref().and_then(|locality| locality.local_index).map(rounded),
            stranded_bytes: stranded.map(|stranded| stranded.size.get()),
            stranded_share: stranded.map(|stranded| rounded(stranded.share)),
            stranded_nodes: stranded.map(|stranded| stranded.nodes.to_string()),
            migrated_pages: row.migrated_pages,
            preferred_nodes: row
                .preferred
                .iter()
                .map(|(node, threads)| PreferredJson { node: node.number(), threads: *threads })
                .collect(),
            tasks: row.tasks.iter().map(|task| TaskJson::from_task(task, row.window)).collect(),
        }
    }
}

impl MemoryJson {
    fn from_pages(pages: &PageSample, running: &Running) -> Self {
        let (method, pages_drawn) = match pages.method {
            PageMethod::Exact => ("exact", None),
            PageMethod::Drawn(count) => ("sampled", Some(count)),
        };
        Self {
            method,
            pages_drawn,
            age_s: seconds(running.moment.since_boot.saturating_sub(pages.seen.since_boot)),
            by_node: pages
                .nodes
                .iter()
                .map(|(node, share)| SizeJson {
                    node: node.number(),
                    size_bytes: share.size.get(),
                    low_bytes: share.low.get(),
                    high_bytes: share.high.get(),
                })
                .collect(),
        }
    }
}

impl TaskJson {
    fn from_task(task: &TaskRow, window: Window) -> Self {
        let faults = task.faults.iter().map(|(node, faults)| FaultsJson {
            node: node.number(),
            private: faults.private,
            shared: faults.shared,
        });
        Self {
            tid: task.identity.pid.number(),
            name: task.name.to_string(),
            cpu: CpuJson::new(task.cpu.as_ref(), task.cpu_share, window),
            last_cpu: task.processor.map(|cpu| cpu.number()),
            node: task.node.map(NodeId::number),
            preferred_node: task.preferred.map(NodeId::number),
            migrated_pages: task.migrated_pages,
            hint_faults_decayed: faults.collect(),
        }
    }
}

impl DeviceJson {
    fn from_row(row: &DeviceRow, running: &Running) -> Self {
        let change = &row.change;
        Self {
            device: change.device.clone(),
            node: change.node.map(NodeId::number),
            interrupts: change.count,
            interrupts_per_s: running.rate(Some(change.count)).map(rounded),
            other_nodes_share: change.wrong_share().map(rounded),
            by_node: change
                .by_node
                .iter()
                .map(|(node, count)| CountJson { node: node.number(), interrupts: *count })
                .collect(),
            lines: row.lines.clone(),
            queues: row.queues.iter().map(QueueJson::from).collect(),
        }
    }
}

impl CheckJson {
    fn from_check(check: &IdentityCheck) -> Self {
        Self {
            name: check.name.clone(),
            holds: check.holds,
            difference: check.difference,
            tolerance: check.tolerance,
            unit: match check.unit {
                Unit::Pages => "pages",
                Unit::Bytes => "bytes",
                Unit::Milliseconds => "ms",
            },
        }
    }
}

impl CounterJson {
    fn from_counter(counter: &RawCounter) -> Self {
        Self {
            node: counter.node.map(NodeId::number),
            name: counter.name.clone(),
            value: counter.value,
            change: counter.count,
        }
    }
}
