//! A sample: the running system at one moment.
//!
//! A [`Sample`] is plain data. It comes from the running system, a capture, a recording, or a test's hands, and
//! its readers do not know which. It holds raw counters as the kernel keeps them, since boot or since a
//! process began; changes between two samples are the business of the crate `diagnose`, and text is that of
//! the views.
//!
//! Missing is missing: a file that this kernel lacks, or that this user may not read, leaves `None` or an
//! empty list, and a line in [`Sample::unread`] says why, once for each kind of fact and reason.
//!
//! # Modules
//!
//! - `sampler.rs` a sample after the other, from any tree, for little; in `sample/` also the facts of the machine and
//!   its nodes (`system.rs`), of processes (`processes.rs`), their threads (`tasks.rs`) and control groups
//!   (`groups.rs`); `pages.rs` where the memory of processes is, within a budget;
//!   `interrupts.rs` devices and the CPUs that serve them, `queues.rs` the CPUs that their queues name,
//!   `bandwidth.rs` counters of last-level caches, `controllers.rs` those of memory controllers, `users.rs` names of
//!   users
//! - `due.rs` when idle objects are read again; `rest.rs` whether a process has run since then;
//!   `reading.rs` and `missing.rs` a file and why it gave nothing, `refusal.rs` what would open it; `clock.rs` the moment; `limit.rs` how many files may
//!   be open

mod bandwidth;
mod clock;
mod controllers;
mod due;
mod groups;
mod interrupts;
mod limit;
mod missing;
mod pages;
mod processes;
mod queues;
mod reading;
mod refusal;
mod rest;
mod sampler;
mod system;
mod tasks;
mod users;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use nodewise_machine::mapping::ProcessMappings;
use nodewise_machine::{Bytes, CpuId, CpuSet, MeminfoField, NodeCounters, NodeId, NodeSet};

use crate::parse::counters::Counters;
use crate::parse::pid_stat;
use crate::parse::pressure::Pressure;
use crate::parse::proc_stat::CpuTimes;
use crate::paths;
use crate::process::Pid;
use crate::tree::Tree;

pub use crate::parse::cgroup_name::{GroupKind, GroupName, name as group_name, names_up as group_names_up};
pub use bandwidth::BandwidthScope;
pub use controllers::{EventCount, EventCounter, EventOpener, EventRefusal, PmuEvent};
pub use pages::{DrawnPages, PageDrawer, PageOptions};
pub use sampler::{InterruptScope, ProcessScope, SampleOptions, Sampler, ThreadScope};

/// The running system at one moment.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Sample {
    pub moment: Moment,
    /// Online nodes by id.
    pub nodes: Vec<NodeSample>,
    /// Times of the online CPUs by id.
    pub cpus: Vec<(CpuId, CpuTimes)>,
    /// `MemTotal` of `/proc/meminfo`. The nodes' sizes can lag behind it.
    pub memory: Option<Bytes>,
    /// Events of the whole system since boot: `/proc/vmstat`. Empty where it was not read.
    pub events: Counters,
    pub pressure: PressureSample,
    /// Forks since boot: `processes` of `/proc/stat`. Unchanged means that no process was born.
    pub forks: Option<u64>,
    /// Processes by number. Those that ended while they were read are missing. A process that was idle is not
    /// read each time: then this is what the sample before holds, and [`ProcessSample::polled`] says since when.
    pub processes: Vec<Arc<ProcessSample>>,
    /// Names of their users, where `/etc/passwd` has them: not fit for a terminal.
    pub users: BTreeMap<u32, Arc<str>>,
    /// Control groups by path: the ones that hold a process of the sample, and their parents.
    pub groups: Vec<GroupSample>,
    /// Mappings of the processes for which someone asked, by process. Not read with the rest of a sample, because
    /// that walks their pages.
    pub mappings: Vec<MappingsSample>,
    /// Devices with interrupts of their own. Empty unless asked for: the file is dear to read.
    pub interrupts: Vec<InterruptSample>,
    /// Bandwidth that hardware counts for each last-level cache. Empty where there is none.
    pub bandwidth: Vec<BandwidthSample>,
    /// Traffic that memory controllers count, by die. Empty where it is not counted.
    pub controllers: Vec<ControllerSample>,
    /// Missing facts, each with its reason.
    pub unread: Vec<Unread>,
}

/// The moment of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Moment {
    /// `CLOCK_BOOTTIME`: for rates. It runs on while the machine sleeps and never goes back.
    pub since_boot: Duration,
    /// Time since the beginning of 1970: for people. The administrator can set it back.
    pub wall: Duration,
}

/// A node at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeSample {
    pub node: NodeId,
    /// Its online CPUs.
    pub cpus: CpuSet,
    /// `nodeN/meminfo` in the kernel's order; empty where it was not read.
    pub memory: Vec<MeminfoField>,
    /// `nodeN/vmstat`; empty where it was not read.
    pub counters: Counters,
    /// Allocations since boot, of `nodeN/vmstat`, or of `nodeN/numastat` where that lacks them: both give the same
    /// counters, and each reading disturbs them. All zero, or constant, while `vm.numa_stat` is 0.
    pub allocations: NodeCounters<Option<u64>>,
    /// Pools of huge pages by page size.
    pub pools: Vec<PoolSample>,
    /// Memory that the zones span and that exists: `present` of `/proc/zoneinfo`. Read once in a while.
    pub present: Option<Bytes>,
    /// The sum of the zones' high watermarks, from `/proc/zoneinfo`. Read once in a while.
    pub high_watermark: Option<Bytes>,
}

/// A pool of huge pages of one node, in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PoolSample {
    pub page_size: Bytes,
    pub total: u64,
    pub free: Option<u64>,
    pub surplus: Option<u64>,
}

impl PoolSample {
    /// Pages that programs have; `None` where the free ones are not known.
    pub fn used(&self) -> Option<u64> {
        Some(self.total.saturating_sub(self.free?))
    }
}

/// Stalls since boot, by resource: `/proc/pressure/`, Linux 4.20.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct PressureSample {
    pub cpu: Option<Pressure>,
    pub memory: Option<Pressure>,
    pub io: Option<Pressure>,
}

/// A process, and not another one that has its number later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    pub pid: Pid,
    /// When it began, in ticks since boot: field 22 of `/proc/PID/stat`.
    pub started_ticks: u64,
}

impl Identity {
    /// Reads which process has this number now; `None` where none has, or it cannot be read.
    ///
    /// # Source
    /// `/proc/PID/stat`.
    pub fn read(tree: &Tree, pid: Pid) -> Option<Self> {
        let text = tree.read_text(&format!("{}/stat", paths::process(pid))).ok().flatten()?;
        let stat = pid_stat::parse(&text).ok()?;
        Some(Self { pid, started_ticks: stat.started_ticks })
    }

    /// Whether the process still runs. A file that cannot be read does not mean an end.
    ///
    /// # Source
    /// `/proc/PID/stat`.
    pub fn life(self, tree: &Tree) -> Life {
        match tree.read_text(&format!("{}/stat", paths::process(self.pid))) {
            Ok(None) => Life::Ended,
            Err(error) if error.is_of_ended() => Life::Ended,
            Err(_) => Life::Unknown,
            Ok(Some(text)) => match pid_stat::parse(&text) {
                Err(_) => Life::Unknown,
                Ok(stat) if stat.started_ticks == self.started_ticks => Life::Runs,
                Ok(_) => Life::Ended,
            },
        }
    }
}

/// Whether a process still runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    Runs,
    Ended,
    /// It cannot be read.
    Unknown,
}

/// A process at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessSample {
    pub identity: Identity,
    /// When it was read last: rates count from there, not from the sample.
    pub polled: Moment,
    /// The name that it chose itself: not fit for a terminal.
    pub name: Arc<str>,
    pub parent: Option<Pid>,
    /// Its effective user, where `/proc/PID/status` was read.
    pub user: Option<u32>,
    /// Its state: `R`, `S`, `D`, `Z` and so on.
    pub state: char,
    /// A thread of the kernel has no memory of its own.
    pub kernel_thread: bool,
    pub threads: u32,
    /// CPU time of all its threads since it began, in ticks.
    pub cpu_ticks: u64,
    /// The CPU that its main thread ran on last.
    pub processor: Option<CpuId>,
    /// Its resident memory, as the kernel's imprecise counters have it.
    pub resident: Option<Bytes>,
    /// Page faults that waited for a disk, since it began.
    pub major_faults: u64,
    /// CPUs and nodes that it may use, where `/proc/PID/status` was read.
    pub allowed: Option<Allowed>,
    /// The path of its group in the hierarchy that counts memory.
    pub group: Option<Arc<str>>,
    /// Its threads; `None` where they were not looked at.
    pub tasks: Option<Vec<TaskSample>>,
    /// Where its memory is, as it was last seen; `None` where it was not looked at, or the kernel refused.
    pub pages: Option<PageSample>,
    /// Why its pages are not known, where somebody looked.
    pub denied: Option<Denied>,
}

/// CPUs and memory nodes that a task may use.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Allowed {
    pub cpus: Option<CpuSet>,
    pub nodes: Option<NodeSet>,
}

/// Why a fact of a process is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Denied {
    /// Only its owner and root may look (`EACCES`, `EPERM`).
    Rights,
    /// This kernel was built without the file.
    NoFile,
    /// The file is there, and reading it failed otherwise.
    Unreadable,
}

/// A thread at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskSample {
    pub identity: Identity,
    /// The name that it chose itself: not fit for a terminal.
    pub name: Arc<str>,
    /// CPU time since it began, in ticks.
    pub cpu_ticks: u64,
    /// CPU time since it began: `schedstat`, finer than the ticks.
    pub run: Option<Duration>,
    /// The CPU that it ran on last.
    pub processor: Option<CpuId>,
    pub allowed: Option<Allowed>,
    /// How often it changed CPUs: `se.nr_migrations` of `sched`. Unchanged means that it ran on one CPU.
    pub cpu_changes: Option<u64>,
    pub balancing: Option<BalancingSample>,
}

/// The state of automatic balancing for a thread: `/proc/PID/task/TID/sched`.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct BalancingSample {
    /// Passes over the address space.
    pub scans: Option<u64>,
    /// Pages that its faults moved, since it began.
    pub migrated_pages: Option<u64>,
    /// The node where it faults most; `None` before the kernel has chosen one.
    pub preferred: Option<NodeId>,
    /// Faults by node of the page. Decayed averages, halved at each scan: never a rate.
    pub faults: BTreeMap<NodeId, BalancingFaults>,
}

/// Hint faults on the pages of one node, decayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct BalancingFaults {
    /// The same thread touched the page last.
    pub private: u64,
    /// Another thread did.
    pub shared: u64,
}

/// Where the pages of a process are, and how that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct PageSample {
    /// When somebody looked; earlier than the sample where the price forbids to look each time.
    pub seen: Moment,
    pub method: PageMethod,
    pub nodes: BTreeMap<NodeId, PageShare>,
}

/// The mappings of a process, as they were last read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappingsSample {
    pub identity: Identity,
    /// When they were read; earlier than the sample where the price forbids to read them each time.
    pub seen: Moment,
    pub mappings: Arc<ProcessMappings>,
}

/// How pages were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageMethod {
    /// Every page: `numa_maps`.
    Exact,
    /// This number of pages was drawn and the kernel asked for each (`move_pages`).
    Drawn(u32),
}

/// The memory of a process on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PageShare {
    pub size: Bytes,
    /// The ends of the 95 % interval; both are the size where every page was seen.
    pub low: Bytes,
    pub high: Bytes,
    /// The part that is the process's own: memory without a file, and pages of pools and shared memory that no other
    /// process maps. `None` where the method does not show it.
    pub own: Option<Bytes>,
}

/// A control group at one moment.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct GroupSample {
    /// Its path in the hierarchy, as it was read.
    pub path: Arc<str>,
    /// When it was read last; earlier than the sample where it was idle.
    pub polled: Moment,
    /// CPU time since it was made.
    pub cpu: Option<Duration>,
    /// Memory that it is charged for, by kind and node: `memory.numa_stat`.
    pub memory: BTreeMap<String, BTreeMap<NodeId, Bytes>>,
    /// CPUs and nodes that it may use.
    pub allowed: Allowed,
    pub memory_pressure: Option<Pressure>,
}

/// The interrupts of a device.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct InterruptSample {
    /// The device as users name it: `net:eth0`, `block:nvme0n1`.
    pub device: String,
    /// `None`: the firmware does not say.
    pub node: Option<NodeId>,
    /// Its interrupt lines.
    pub lines: Vec<u32>,
    /// Interrupts since boot by the CPU that took them.
    pub by_cpu: Vec<(CpuId, u64)>,
    /// CPUs that may serve each line; empty where they were not read. Recordings do not hold them.
    pub allowed: Vec<(u32, CpuSet)>,
    /// The queues of a network device: those that receive, then those that transmit. Empty where they were not read.
    pub queues: Vec<QueueSample>,
}

/// A queue of a network device.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct QueueSample {
    /// The kernel's name: `rx-0`, `tx-3`.
    pub name: String,
    /// CPUs that process what it received (RPS), or whose packets it transmits (XPS); empty where packets are not
    /// steered, `None` where the kernel does not say.
    pub cpus: Option<CpuSet>,
    /// Flows whose packets it hands to the CPU of their program (RFS); 0 where it does not.
    pub flows: Option<u64>,
}

impl QueueSample {
    /// Whether packets arrive in it; otherwise they leave by it.
    pub fn receives(&self) -> bool {
        self.name.starts_with("rx-")
    }

    /// The name of the file with its CPUs.
    pub fn steering_file(&self) -> &'static str {
        if self.receives() { "rps_cpus" } else { "xps_cpus" }
    }
}

/// Bytes that hardware counted for one last-level cache: resctrl's `mon_data`.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct BandwidthSample {
    /// The number of the cache, as `cache/index3/id` has it; with sub-NUMA clusters the node's part.
    pub domain: u32,
    /// CPUs below it; empty where no cache has this number.
    pub cpus: CpuSet,
    /// Bytes to and from memory since the file system was mounted, of all its groups: less than before where a group
    /// was removed.
    pub total_bytes: Option<u64>,
    /// The part of it that went to memory of the cache's own node.
    pub local_bytes: Option<u64>,
}

/// Bytes that the memory controllers of a die counted, whichever node they belong to.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ControllerSample {
    /// CPUs of the die.
    pub cpus: CpuSet,
    /// How many controllers, or channels of them, were added up.
    pub controllers: u32,
    /// Bytes since the first sample. `None` where a counter did not run all the time.
    pub read_bytes: Option<u64>,
    pub written_bytes: Option<u64>,
}

/// A fact that is missing, with its reason, in words fit for a terminal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unread {
    /// The fact: `memory of processes by node`.
    pub fact: String,
    /// The reason: `permission denied`.
    pub reason: String,
    /// How many objects lack it.
    pub objects: usize,
    pub remedy: Option<Remedy>,
}

/// A step that gives a missing fact.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Remedy {
    /// The fact is closed to this user.
    Root,
    /// Another step, in words fit for a terminal.
    Step(Cow<'static, str>),
}

impl Remedy {
    const ROOT: &'static str = "run as root";
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Root => Self::ROOT,
            Self::Step(words) => words,
        })
    }
}

impl<T: Into<Cow<'static, str>>> From<T> for Remedy {
    /// The remedy in these words, which a recording keeps.
    fn from(words: T) -> Self {
        let words = words.into();
        if words == Self::ROOT { Self::Root } else { Self::Step(words) }
    }
}

impl Sample {
    /// The node of a CPU at this moment.
    pub fn node_with_cpu(&self, cpu: CpuId) -> Option<NodeId> {
        self.nodes.iter().find(|node| node.cpus.contains(cpu)).map(|node| node.node)
    }

    /// The node, if it was online.
    pub fn node(&self, node: NodeId) -> Option<&NodeSample> {
        self.nodes.iter().find(|sample| sample.node == node)
    }

    /// The interrupts of a device, if it had some.
    pub fn interrupts_of(&self, device: &str) -> Option<&InterruptSample> {
        self.interrupts.iter().find(|sample| sample.device == device)
    }

    /// The process, if it was there.
    pub fn process(&self, identity: Identity) -> Option<&ProcessSample> {
        let process = &self.processes[self.processes.partition_point(|p| p.identity < identity)..];
        process.first().map(Arc::as_ref).filter(|process| process.identity == identity)
    }
}

impl ProcessSample {
    /// A process with its identity, and nothing else known.
    pub fn new(identity: Identity) -> Self {
        Self {
            identity,
            polled: Moment::default(),
            name: "".into(),
            parent: None,
            user: None,
            state: '?',
            kernel_thread: false,
            threads: 1,
            cpu_ticks: 0,
            processor: None,
            resident: None,
            major_faults: 0,
            allowed: None,
            group: None,
            tasks: None,
            pages: None,
            denied: None,
        }
    }
}

impl NodeSample {
    /// A node with its number, and nothing else known.
    pub fn new(node: NodeId) -> Self {
        Self {
            node,
            cpus: CpuSet::default(),
            memory: Vec::new(),
            counters: Counters::default(),
            allocations: NodeCounters::default(),
            pools: Vec::new(),
            present: None,
            high_watermark: None,
        }
    }

    /// A size of `nodeN/meminfo` by the kernel's name.
    pub fn size(&self, name: &str) -> Option<Bytes> {
        let field = self.memory.iter().find(|field| field.name == name)?;
        match field.value {
            nodewise_machine::MeminfoValue::Size(size) => Some(size),
            nodewise_machine::MeminfoValue::Count(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, started_ticks: u64) -> Arc<ProcessSample> {
        Arc::new(ProcessSample::new(Identity { pid: Pid::new(pid), started_ticks }))
    }

    #[test]
    fn a_process_is_not_its_successor_of_the_same_number() {
        let sample = Sample { processes: vec![process(7, 3), process(8, 5)], ..Sample::default() };
        let found = |pid, started_ticks| {
            let identity = Identity { pid: Pid::new(pid), started_ticks };
            sample.process(identity).map(|process| process.identity.pid.number())
        };
        assert_eq!((found(8, 5), found(8, 4), found(8, 6), found(9, 5)), (Some(8), None, None, None));
    }

    #[test]
    fn a_cpu_that_is_offline_has_no_node() {
        let mut node = NodeSample::new(NodeId::new(2));
        node.cpus.insert(CpuId::new(4));
        let sample = Sample { nodes: vec![node], ..Sample::default() };
        assert_eq!(sample.node_with_cpu(CpuId::new(4)), Some(NodeId::new(2)));
        assert_eq!(sample.node_with_cpu(CpuId::new(5)), None);
        assert_eq!(sample.nodes[0].size("MemTotal"), None, "unknown is not 0");
    }
}
