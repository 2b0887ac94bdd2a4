//! The running system: nodes, the processes that matter, and findings, from a sample and the change before it.

pub mod comparison;
pub mod fact;
pub mod finding;
pub mod process;
pub mod service;
pub mod words;

use std::collections::BTreeMap;

use nodewise_diagnose::change::{
    BandwidthChange, ControllerChange, CpuLoad, InterruptChange, PressureChange,
};
use nodewise_diagnose::locality::{NodeSize, sizes};
use nodewise_diagnose::sample::{BandwidthSample, ControllerSample, InterruptSample, PoolSample, Sample};
use nodewise_diagnose::steering::steered_queues;
use nodewise_diagnose::{Delta, IdentityCheck, MemoryUse, Places};
use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::order::Order as _;
use nodewise_machine::{Bytes, CpuSet, NodeCounters, NodeId, NodeSet};

/// Types of its fields, for crates that may not use the samples.
pub use nodewise_diagnose::sample::{BalancingFaults, Denied, Identity, Moment, PageMethod, Remedy, Unread};
pub use nodewise_diagnose::steering::SteeredQueue;
pub use nodewise_diagnose::{CpuTime, Window};

pub use finding::{RunningFinding, findings};
pub use process::{ProcessRow, Sort, TaskRow};
pub use service::ServiceRow;

/// A device is notable when this share of its interrupts is on other nodes,
const WRONG_SHARE: f64 = 0.5;
/// and it has this many of them in a second.
const WRONG_RATE: f64 = 100.0;
/// Hint faults below this number say little about their local share.
const FAULTS_FOR_A_SHARE: u64 = 100;
/// Moves of pages to a faster tier and to a slower one, by the kernel's names; a release has some of them.
pub(crate) const PROMOTED: [&str; 1] = ["pgpromote_success"];
pub(crate) const DEMOTED: [&str; 4] =
    ["pgdemote_kswapd", "pgdemote_direct", "pgdemote_khugepaged", "pgdemote_proactive"];

/// Processes to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// None: the nodes alone.
    None,
    /// Those that use CPU time or memory worth a line, or have memory where they do not run.
    Notable,
    /// All of the sample.
    All,
}

/// The form of a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    pub shown: Shown,
    pub sort: Sort,
    /// The most processes to list.
    pub top: usize,
    /// List the threads.
    pub threads: bool,
    /// List every counter.
    pub raw: bool,
    /// List services and containers.
    pub services: bool,
}

impl Default for Choice {
    fn default() -> Self {
        Self {
            shown: Shown::Notable,
            sort: Sort::default(),
            top: 20,
            threads: false,
            raw: false,
            services: false,
        }
    }
}

impl Choice {
    /// Every process with its threads, in an order that does not change: for those who choose later.
    pub fn every_process() -> Self {
        Self { shown: Shown::All, sort: Sort::Pid, top: usize::MAX, threads: true, ..Self::default() }
    }
}

/// The running system, in numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Running {
    pub moment: Moment,
    pub window: Window,
    pub nodes: Vec<NodeRow>,
    /// The CPUs of all nodes together.
    pub cpus: Option<CpuLoad>,
    pub balancing: Balancing,
    pub pressure: PressureChange,
    /// Processes in their order, at most as many as were asked for.
    pub processes: Vec<ProcessRow>,
    /// Processes that were looked at.
    pub process_count: usize,
    /// Processes that would be listed if there were room.
    pub processes_left_out: usize,
    pub born: usize,
    pub gone: usize,
    pub devices: Vec<DeviceRow>,
    pub bandwidth: Vec<BandwidthRow>,
    pub controllers: Vec<ControllerRow>,
    /// Control groups; `None` where no one asked for them.
    pub services: Option<Vec<ServiceRow>>,
    /// Groups that would be listed if there were room.
    pub services_left_out: usize,
    pub checks: Vec<IdentityCheck>,
    /// Every counter, where that was asked for.
    pub raw: Vec<RawCounter>,
    pub unread: Vec<Unread>,
}

/// A node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeRow {
    pub node: NodeId,
    pub cpus: CpuSet,
    pub load: Option<CpuLoad>,
    pub size: Option<NodeSize>,
    pub memory: Option<MemoryUse>,
    pub high_watermark: Option<Bytes>,
    pub allocations: NodeCounters<Option<u64>>,
    /// Pages that came from a slower tier.
    pub promoted: Option<u64>,
    /// Pages that went to a slower tier.
    pub demoted: Option<u64>,
    pub pools: Vec<PoolSample>,
}

impl NodeRow {
    /// Whether its free memory is below the watermark up to which the kernel reclaims.
    pub fn is_low(&self) -> bool {
        self.memory.zip(self.high_watermark).is_some_and(|(memory, high)| memory.free < high)
    }
}

/// Automatic balancing in the window.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Balancing {
    pub hint_faults: Option<u64>,
    /// The share of faults on local pages, where there are enough of them.
    pub local_share: Option<f64>,
    pub migrated_pages: Option<u64>,
}

/// A device and its interrupts.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceRow {
    pub change: InterruptChange,
    pub lines: Vec<u32>,
    /// Queues of a network device, where they were read.
    pub queues: Vec<SteeredQueue>,
}

impl DeviceRow {
    /// Whether one of its queues names CPUs, or hands flows to their programs.
    pub fn is_steered(&self) -> bool {
        let names = |steered: &SteeredQueue| steered.queue.cpus.as_ref().is_some_and(|cpus| !cpus.is_empty());
        let follows = |steered: &SteeredQueue| steered.queue.flows.is_some_and(|flows| flows > 0);
        self.queues.iter().any(|steered| names(steered) || follows(steered))
    }

    /// The share of its interrupts that CPUs of other nodes take, where that share and their rate are worth a finding.
    pub fn notably_wrong(&self, window: Window) -> Option<f64> {
        let rate = window.rate(Some(self.change.count))?;
        self.change.wrong_share().filter(|share| *share >= WRONG_SHARE && rate >= WRONG_RATE)
    }
}

/// The memory bandwidth of a last-level cache in the window.
#[derive(Clone, Debug, PartialEq)]
pub struct BandwidthRow {
    /// The number of the cache, or that of a node where the kernel counts by node.
    pub domain: u32,
    pub cpus: CpuSet,
    /// The nodes of its CPUs.
    pub nodes: NodeSet,
    pub total_bytes: Option<u64>,
    /// The part from and to memory of its own node.
    pub local_bytes: Option<u64>,
}

impl BandwidthRow {
    /// The part from and to memory of other nodes. The two counters are read one after the other.
    pub fn other_bytes(&self) -> Option<u64> {
        Some(self.total_bytes?.saturating_sub(self.local_bytes?))
    }
}

/// The traffic of the memory controllers of a die in the window.
#[derive(Clone, Debug, PartialEq)]
pub struct ControllerRow {
    pub cpus: CpuSet,
    /// The nodes of its CPUs: several where a die is split into nodes, which its counters do not distinguish.
    pub nodes: NodeSet,
    /// How many controllers were added up.
    pub controllers: u32,
    pub read_bytes: Option<u64>,
    pub written_bytes: Option<u64>,
}

impl ControllerRow {
    /// Reads and writes together.
    pub fn total_bytes(&self) -> Option<u64> {
        self.read_bytes?.checked_add(self.written_bytes?)
    }
}

/// A counter as the kernel has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawCounter {
    /// `None`: of the whole system.
    pub node: Option<NodeId>,
    pub name: String,
    pub value: u64,
    /// Its change in the window.
    pub count: Option<u64>,
}

impl Running {
    /// Works it out.
    pub fn new(sample: &Sample, delta: &Delta, choice: Choice) -> Self {
        let sizes = sizes(sample);
        let places = Places::new([sample]);
        let nodes = sample.nodes.iter().map(|node| {
            let change = delta.node(node.node);
            let events = change.map(|change| &change.events);
            NodeRow {
                node: node.node,
                cpus: node.cpus.clone(),
                load: change.and_then(|change| change.cpus),
                size: sizes.get(&node.node).copied(),
                memory: MemoryUse::from_node(node),
                high_watermark: node.high_watermark,
                allocations: change.map(|change| change.allocations).unwrap_or_default(),
                promoted: events.and_then(|events| events.sum(&PROMOTED)),
                demoted: events.and_then(|events| events.sum(&DEMOTED)),
                pools: node.pools.clone(),
            }
        });
        let nodes: Vec<NodeRow> = nodes.collect();
        let mut processes = process::rows(sample, delta, &places, choice);
        let processes_left_out = processes.len().saturating_sub(choice.top);
        processes.truncate(choice.top);
        let mut services = choice.services.then(|| service::rows(sample, delta));
        let services_left_out = services.as_ref().map_or(0, |rows| rows.len().saturating_sub(choice.top));
        if let Some(rows) = &mut services {
            rows.truncate(choice.top);
        }
        Self {
            moment: sample.moment,
            window: delta.window,
            nodes,
            cpus: delta.cpus,
            balancing: balancing(delta),
            pressure: delta.pressure,
            processes,
            process_count: sample.processes.len(),
            processes_left_out,
            born: delta.born.len(),
            gone: delta.gone.len(),
            devices: devices(sample, delta),
            bandwidth: bandwidth(sample, delta, &places),
            controllers: controllers(sample, delta, &places),
            services,
            services_left_out,
            checks: Vec::new(),
            raw: if choice.raw { raw(sample, delta) } else { Vec::new() },
            unread: sample.unread.clone(),
        }
    }

    /// Events per second.
    pub fn rate(&self, count: Option<u64>) -> Option<f64> {
        self.window.rate(count)
    }

    /// The sum of a size over all nodes; `None` where no node has it.
    pub fn total(&self, size: impl Fn(&NodeRow) -> Option<Bytes>) -> Option<Bytes> {
        let known: Vec<Bytes> = self.nodes.iter().filter_map(size).collect();
        (!known.is_empty()).then(|| known.into_iter().sum())
    }

    /// The sum of a count over all nodes; `None` where a node lacks it.
    pub fn count(&self, count: impl Fn(&NodeRow) -> Option<u64>) -> Option<u64> {
        let counts: Option<Vec<u64>> = self.nodes.iter().map(count).collect();
        counts
            .filter(|counts| !counts.is_empty())
            .map(|counts| counts.into_iter().fold(0, u64::saturating_add))
    }
}

fn balancing(delta: &Delta) -> Balancing {
    let faults = delta.events.get("numa_hint_faults");
    let local = delta.events.get("numa_hint_faults_local");
    let enough = faults.filter(|faults| *faults >= FAULTS_FOR_A_SHARE);
    Balancing {
        hint_faults: faults,
        local_share: enough.zip(local).map(|(faults, local)| (local as f64 / faults as f64).min(1.0)),
        migrated_pages: delta.events.get("numa_pages_migrated"),
    }
}

fn devices(sample: &Sample, delta: &Delta) -> Vec<DeviceRow> {
    let known: BTreeMap<&str, &InterruptSample> =
        sample.interrupts.iter().map(|device| (device.device.as_str(), device)).collect_map();
    let row = |change: &InterruptChange| {
        let device = known.get(change.device.as_str());
        DeviceRow {
            change: change.clone(),
            lines: device.map(|device| device.lines.clone()).unwrap_or_default(),
            queues: device.map(|device| steered_queues(device, change, sample)).unwrap_or_default(),
        }
    };
    let mut rows: Vec<DeviceRow> = delta.interrupts.iter().map(row).collect();
    rows.order_by(|one, other| {
        other.change.count.cmp(&one.change.count).then(one.change.device.cmp(&other.change.device))
    });
    rows
}

fn bandwidth(sample: &Sample, delta: &Delta, places: &Places) -> Vec<BandwidthRow> {
    let changes = sample.bandwidth.iter().zip(&delta.bandwidth);
    let row = |(cache, change): (&BandwidthSample, &BandwidthChange)| BandwidthRow {
        domain: cache.domain,
        cpus: cache.cpus.clone(),
        nodes: places.nodes(&cache.cpus),
        total_bytes: change.total_bytes,
        local_bytes: change.local_bytes,
    };
    changes.map(row).collect()
}

fn controllers(sample: &Sample, delta: &Delta, places: &Places) -> Vec<ControllerRow> {
    let changes = sample.controllers.iter().zip(&delta.controllers);
    let row = |(die, change): (&ControllerSample, &ControllerChange)| ControllerRow {
        cpus: die.cpus.clone(),
        nodes: places.nodes(&die.cpus),
        controllers: die.controllers,
        read_bytes: change.read_bytes,
        written_bytes: change.written_bytes,
    };
    changes.map(row).collect()
}

fn raw(sample: &Sample, delta: &Delta) -> Vec<RawCounter> {
    let own = sample.events.iter().map(|(name, value)| RawCounter {
        node: None,
        name: name.to_owned(),
        value,
        count: delta.events.get(name),
    });
    let of_nodes = sample.nodes.iter().flat_map(|node| {
        let change = delta.node(node.node);
        node.counters.iter().map(move |(name, value)| RawCounter {
            node: Some(node.node),
            name: name.to_owned(),
            value,
            count: change.and_then(|change| change.events.get(name)),
        })
    });
    own.chain(of_nodes).collect()
}
