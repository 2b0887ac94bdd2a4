//! Thresholds of rules: every number from which on a rule finds something, in one place.
//!
//! Edges that the kernel itself acts on, such as its watermarks, are not among them: nothing can be gained by another
//! value. `read.rs` reads a file that replaces some.

mod read;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use nodewise_machine::Bytes;

pub use read::{MOST_BYTES, ThresholdsError, read};

/// The table of thresholds that several rules share.
pub const ALL_RULES: &str = "all-rules";

/// The origin of a threshold that a file replaced.
pub const REPLACED: &str = "the file of --thresholds";

/// The origin of thresholds that are nodewise's own.
pub const OWN: &str = "nodewise's threshold";

/// A younger process still starts: its growth says nothing about what follows.
pub const STARTS: Duration = Duration::from_secs(60);

const NUMAD: &str = "numad's target of 90 % on the process's nodes";
const NUMAD_SIZE: &str = "numad 0.5+20150602: MEMORY_THRESHOLD";
const FAULT_GUESS: &str = "nodewise's guess, to be measured on the machine";

/// The unit of a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThresholdUnit {
    /// A part of the whole: 1 is all of it.
    Share,
    Mib,
    /// A factor.
    Times,
    Seconds,
    Microseconds,
    /// Events a second, with their name.
    PerSecond(&'static str),
    /// Events or objects, with their name.
    Count(&'static str),
}

impl ThresholdUnit {
    /// Its word, in text and JSON; none for shares and factors.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Share => "share",
            Self::Mib => "MiB",
            Self::Times => "times",
            Self::Seconds => "s",
            Self::Microseconds => "us",
            Self::PerSecond(events) | Self::Count(events) => events,
        }
    }
}

/// A number of MiB as a size.
pub fn mib(number: f64) -> Bytes {
    Bytes::new((number * 1024.0 * 1024.0) as u64)
}

/// A number from which on a rule finds something.
#[derive(Debug, PartialEq)]
pub struct RuleThreshold {
    /// The rule, or [`ALL_RULES`].
    pub table: &'static str,
    /// Its name in the table, with its unit.
    pub key: &'static str,
    pub unit: ThresholdUnit,
    pub default: f64,
    pub least: f64,
    pub most: f64,
    pub about: &'static str,
    pub origin: &'static str,
}

impl RuleThreshold {
    /// Its name where rules share it: `all-rules.significant_mib`.
    pub fn name(&self) -> String {
        if self.table == ALL_RULES { format!("{}.{}", self.table, self.key) } else { self.key.to_owned() }
    }
}

/// A threshold that a file replaced, with its new value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReplacedThreshold {
    pub threshold: &'static RuleThreshold,
    pub value: f64,
}

/// The values of thresholds: the default where none replaces it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Thresholds {
    replaced: BTreeMap<(&'static str, &'static str), ReplacedThreshold>,
}

impl Thresholds {
    /// The value of one.
    pub fn get(&self, of: &RuleThreshold) -> f64 {
        self.replaced.get(&(of.table, of.key)).map_or(of.default, |replaced| replaced.value)
    }

    /// The value of one in MiB, as a size.
    pub fn size(&self, of: &RuleThreshold) -> Bytes {
        mib(self.get(of))
    }

    /// Who says so.
    pub fn origin(&self, of: &RuleThreshold) -> &'static str {
        if self.replaced.contains_key(&(of.table, of.key)) { REPLACED } else { of.origin }
    }

    /// Replaces one.
    pub fn set(&mut self, threshold: &'static RuleThreshold, value: f64) {
        self.replaced.insert((threshold.table, threshold.key), ReplacedThreshold { threshold, value });
    }

    /// Those that are replaced, by table and key.
    pub fn replaced(&self) -> impl Iterator<Item = ReplacedThreshold> {
        self.replaced.values().copied()
    }

    /// The file that replaces the same ones.
    pub fn to_toml(&self) -> String {
        let (mut text, mut table) = (String::new(), "");
        for ReplacedThreshold { threshold, value } in self.replaced() {
            if threshold.table != table {
                table = threshold.table;
                let _ = writeln!(text, "[{table}]");
            }
            // A float of TOML has a point or an exponent.
            let _ = writeln!(text, "{} = {value:?}", threshold.key);
        }
        text
    }
}

macro_rules! catalogue {
    ($($name:ident = [$table:expr] $key:literal, $unit:expr, $default:expr, $least:literal..=$most:literal,
       $about:literal, $origin:expr;)*) => {
        $(pub static $name: RuleThreshold = RuleThreshold {
            table: $table, key: $key, unit: $unit, default: $default, least: $least, most: $most,
            about: $about, origin: $origin,
        };)*

        /// Every threshold, by table.
        pub static ALL: &[&RuleThreshold] = &[$(&$name),*];
    };
}

use ThresholdUnit::{Count, Mib, Microseconds, PerSecond, Seconds, Share, Times};

catalogue! {
    SIGNIFICANT = [ALL_RULES] "significant_mib", Mib, 300.0, 0.0..=1_048_576.0,
        "own memory from which a process is examined", NUMAD_SIZE;
    SIGNIFICANT_SHARE = [ALL_RULES] "significant_share", Share, 0.05, 0.0..=1.0,
        "the same as a part of the smallest node, where that is less", OWN;
    SEGMENT = [ALL_RULES] "segment_mib", Mib, 1024.0, 0.0..=1_048_576.0,
        "size from which a shared segment or a file is examined; significant_share limits it, too", OWN;
    RUNS = [ALL_RULES] "runs_share", Share, 0.05, 0.0..=1.0,
        "part of a process's CPU time from which it runs on a node", OWN;
    AT_WORK = [ALL_RULES] "at_work_share", Share, 0.05, 0.0..=1.0,
        "CPU time, as a part of one CPU, from which a process is at work", OWN;

    MEMORY_STRANDED = ["memory-stranded"] "stranded_share", Share, 0.1, 0.0..=1.0,
        "part of the process's own memory on nodes where it does not run", NUMAD;
    FIRST_TOUCH_ON_ONE = ["first-touch-on-one"] "on_one_share", Share, 0.8, 0.0..=1.0,
        "part of the memory on one node", OWN;
    FIRST_TOUCH_TIMES = ["first-touch-on-one"] "even_times", Times, 1.5, 1.0..=1024.0,
        "CPU time of that node at most, in even shares", OWN;
    FIRST_TOUCH_CPU = ["first-touch-on-one"] "node_cpu_share", Share, 0.1, 0.0..=1.0,
        "part of the CPU time from which a node counts", OWN;
    POLICY_OFF = ["policy-too-late"] "off_share", Share, 0.1, 0.0..=1.0,
        "distance of a node's part from an even one under interleaving", OWN;
    POLICY_ENOUGH = ["policy-too-late"] "enough_mib", Mib, 39.0625, 0.0..=1_048_576.0,
        "memory under one policy that is judged: 10,000 pages of 4 KiB", OWN;
    SEGMENT_ON_ONE = ["shared-segment-on-one"] "on_one_share", Share, 0.8, 0.0..=1.0,
        "part of the segment on one node", OWN;
    SMALL_FITS = ["interleaved-but-small"] "node_share", Share, 0.5, 0.0..=1.0,
        "part of the smallest node that the process fills at most", OWN;
    SMALL_INTERLEAVED = ["interleaved-but-small"] "interleaved_share", Share, 0.5, 0.0..=1.0,
        "part of its memory that is interleaved", OWN;
    SMALL_ALONE = ["interleaved-but-small"] "one_node_cpu_share", Share, 0.9, 0.0..=1.0,
        "part of its CPU time on one node", OWN;
    INHERITED_STRANDED = ["inherited-policy"] "stranded_share", Share, 0.1, 0.0..=1.0,
        "part of the child's memory on nodes where it does not run", NUMAD;
    FILE_AWAY = ["file-cache-far"] "away_share", Share, 0.5, 0.0..=1.0,
        "part of the file on nodes where the process does not run", OWN;
    WEIGHTS_SIZE = ["cpu-inference-one-node"] "weights_mib", Mib, 8192.0, 0.0..=1_048_576.0,
        "weights in memory from which they count", OWN;
    WEIGHTS_ON_ONE = ["cpu-inference-one-node"] "on_one_share", Share, 0.8, 0.0..=1.0,
        "part of the weights on one node", OWN;
    WEIGHTS_CPU = ["cpu-inference-one-node"] "node_cpu_share", Share, 0.1, 0.0..=1.0,
        "part of the CPU time from which a node counts", OWN;
    STAGING = ["gpu-staging-interleaved"] "locked_mib", Mib, 64.0, 0.0..=1_048_576.0,
        "locked or pinned memory from which it counts", OWN;
    WANDER_RATE = ["thread-wanders"] "changes_per_s", PerSecond("changes of CPU"), 1.0, 0.0..=1e9,
        "changes of CPU in a second from which a thread wanders", OWN;
    WANDER_CPU = ["thread-wanders"] "thread_cpu_share", Share, 0.1, 0.0..=1.0,
        "CPU time, as a part of one CPU, from which a thread is busy", OWN;
    WANDER_THREADS = ["thread-wanders"] "threads_share", Share, 0.5, 0.0..=1.0,
        "part of the busy threads that wander", OWN;
    WANDER_MEMORY = ["thread-wanders"] "on_one_share", Share, 0.8, 0.0..=1.0,
        "part of the process's memory on one node", OWN;
    WANDER_FAULTS = ["thread-wanders"] "faults_share", Share, 0.6, 0.0..=1.0,
        "part of a thread's hint faults on one node from which its home is known", OWN;
    VM_STRANDED = ["vm-memory-stranded"] "stranded_share", Share, 0.1, 0.0..=1.0,
        "part of the machine's memory on nodes where its CPUs do not run", NUMAD;
    VM_SPANS = ["vm-spans"] "node_share", Share, 0.1, 0.0..=1.0,
        "part of the machine's CPU time, and of its memory, from which a node counts", OWN;
    VM_FITS = ["vm-spans"] "fits_share", Share, 0.8, 0.0..=1.0,
        "part of a node's memory and CPUs that the machine takes at most, so that it fits", OWN;

    WATERMARK_ELSEWHERE = ["node-at-watermark"] "elsewhere_share", Share, 0.1, 0.0..=1.0,
        "part of the machine's memory that is available on other nodes", OWN;
    WATERMARK_SHORT = ["node-at-watermark"] "short_share", Share, 0.1, 0.0..=1.0,
        "part of the node that is available at most, for a warning instead of a note", OWN;
    WATERMARK_LITTLE = ["node-at-watermark"] "free_share", Share, 0.01, 0.0..=1.0,
        "part of the node that is free at most, where watermarks are not known", OWN;
    WATERMARK_ROOM = ["node-at-watermark"] "other_free_share", Share, 0.1, 0.0..=1.0,
        "part of another node that is free at least, where watermarks are not known", OWN;
    SWAP_ROOM = ["swap-while-free"] "room_mib", Mib, 1024.0, 0.0..=1_048_576.0,
        "memory available on another node", OWN;
    SWAP_ROOM_SHARE = ["swap-while-free"] "room_share", Share, 0.05, 0.0..=1.0,
        "the same as a part of that node, where that is more", OWN;
    SWAP_ROOM_SMALL = ["swap-while-free"] "small_room_share", Share, 0.25, 0.0..=1.0,
        "part of a small node that is enough, where that is less than both", OWN;
    SWAP_SHORT = ["swap-while-free"] "short_share", Share, 0.1, 0.0..=1.0,
        "part of a node that is available at most, so that it is short", OWN;
    SWAP_MARKS = ["swap-while-free"] "watermark_times", Times, 2.0, 0.0..=1024.0,
        "free memory of a short node at most, in sums of its zones' high watermarks", OWN;
    BIND_SOON = ["bind-too-small"] "full_in_s", Seconds, 3600.0, 0.0..=31_536_000.0,
        "time until the nodes are full at the pace of the window, at most", OWN;
    BIND_GROWTH = ["bind-too-small"] "growth_share", Share, 0.01, 0.0..=1.0,
        "growth in the window, as a part of the process's memory", OWN;
    BIND_YOUNGEST = ["bind-too-small"] "age_s", Seconds, STARTS.as_secs() as f64, 0.0..=31_536_000.0,
        "age from which growth is judged", OWN;
    STRICT_ROOM = ["libvirt-strict"] "room_share", Share, 0.05, 0.0..=1.0,
        "part of each bound node that is available at most", OWN;
    OOM_ON_SHORT = ["oom-while-free"] "on_short_share", Share, 0.9, 0.0..=1.0,
        "part of the lost process's memory on nodes that were short", OWN;
    OOM_SHORT = ["oom-while-free"] "short_share", Share, 0.1, 0.0..=1.0,
        "part of a node that was available at most, so that it was short", OWN;
    OOM_MARKS = ["oom-while-free"] "watermark_times", Times, 2.0, 0.0..=1024.0,
        "free memory of a short node at most, in sums of its zones' high watermarks", OWN;
    OOM_ELSEWHERE = ["oom-while-free"] "elsewhere_share", Share, 0.1, 0.0..=1.0,
        "part of the machine's memory that is available on other nodes", OWN;
    CACHE_FILLS = ["cache-fills-node"] "cache_share", Share, 0.6, 0.0..=1.0,
        "part of the node that is page cache", OWN;
    CACHE_FOREIGN = ["cache-fills-node"] "foreign_share", Share, 0.01, 0.0..=1.0,
        "part of the pages meant for the node that other nodes gave in the window", OWN;
    CACHE_MARKS = ["cache-fills-node"] "watermark_times", Times, 2.0, 0.0..=1024.0,
        "free memory of the node at most, in sums of its zones' high watermarks", OWN;
    SMALL_STALLS = ["reserve-too-small"] "stalls_per_s", PerSecond("allocations"), 1.0, 0.0..=1e9,
        "allocations in a second that reclaim memory themselves", OWN;
    SMALL_RESERVE = ["reserve-too-small"] "reserve_share", Share, 0.0012, 0.0..=1.0,
        "part of a node below its zones' high watermarks, at most",
        "mm/page_alloc.c, Linux 6.12: 0.2 % and more with the default watermark_scale_factor";
    SMALL_KSWAPD = ["reserve-too-small"] "kswapd_share", Share, 0.2, 0.0..=1.0,
        "part of a CPU that its kswapd uses at most", OWN;
    SMALL_FREE = ["reserve-too-small"] "free_share", Share, 0.02, 0.0..=1.0,
        "free part of the node at most, so that allocations can have waited there", OWN;
    RESERVE = ["reserve-too-large"] "reserve_share", Share, 0.075, 0.0..=1.0,
        "part of a node below its zones' high watermarks",
        "the kernel's cap for its own minimum, and half as much";
    KSWAPD_BUSY = ["kswapd-one-node"] "busy_share", Share, 0.2, 0.0..=1.0,
        "part of a CPU that one node's kswapd uses", OWN;
    KSWAPD_ASLEEP = ["kswapd-one-node"] "asleep_share", Share, 0.02, 0.0..=1.0,
        "part of a CPU that the others use at most", OWN;
    KSWAPD_ROOM = ["kswapd-one-node"] "room_share", Share, 0.1, 0.0..=1.0,
        "part of the node that is available, for a note instead of a warning", OWN;
    KERNEL_TIMES = ["kernel-memory-lopsided"] "fair_times", Times, 3.0, 1.0..=1024.0,
        "part of the kernel's memory on one node, in fair shares", OWN;
    KERNEL_SHARE = ["kernel-memory-lopsided"] "kernel_share", Share, 0.9, 0.0..=1.0,
        "the same as a part of the kernel's memory, where that is less", OWN;
    KERNEL_PART = ["kernel-memory-lopsided"] "node_share", Share, 0.05, 0.0..=1.0,
        "part of the node that this memory fills", OWN;

    POOL_SHORT = ["hugepages-uneven"] "mean_share", Share, 0.9, 0.0..=1.0,
        "part of the mean that a short node has at most", OWN;
    POOL_IDLE = ["hugepages-idle"] "idle_share", Share, 0.1, 0.0..=1.0,
        "part of the node in free pages of pools", OWN;
    HUGETLB_STRANDED = ["hugetlb-stays"] "stranded_share", Share, 0.1, 0.0..=1.0,
        "part of the process's own memory on nodes where it does not run", NUMAD;
    HUGETLB_POOLS = ["hugetlb-stays"] "pool_share", Share, 0.8, 0.0..=1.0,
        "part of its memory in pools", OWN;

    BALANCING_OFF_STRANDED = ["balancing-off-nobody-places"] "stranded_share", Share, 0.1, 0.0..=1.0,
        "part of a process's own memory on nodes where it does not run", NUMAD;
    BALANCING_COST = ["balancing-costly"] "cost_share", Share, 0.03, 0.0..=1.0,
        "part of the CPU time in hint faults and moves",
        "kernel/sched/fair.c, Linux 6.12: scanning is capped at as much";
    BALANCING_FAULT = ["balancing-costly"] "fault_us", Microseconds, 1.0, 0.0..=1_000_000.0,
        "time of a hint fault", FAULT_GUESS;
    BALANCING_MOVE = ["balancing-costly"] "move_us", Microseconds, 3.0, 0.0..=1_000_000.0,
        "time of a page that moves", FAULT_GUESS;
    PING_PONG_MOVED = ["balancing-ping-pong"] "moved_share", Share, 0.01, 0.0..=1e9,
        "memory that moves in a minute, as a part of the process's memory", OWN;
    PING_PONG_NET = ["balancing-ping-pong"] "settled_share", Share, 0.1, 0.0..=1.0,
        "part of the moved memory that is on other nodes afterwards, at most", OWN;
    SCAN_PASS = ["scan-too-slow"] "pass_s", Seconds, 300.0, 0.0..=31_536_000.0,
        "time of one pass over the process's memory", OWN;
    SCAN_STRANDED = ["scan-too-slow"] "stranded_share", Share, 0.1, 0.0..=1.0,
        "part of the process's own memory on nodes where it does not run", NUMAD;
    BALANCING_CANNOT_STRANDED = ["balancing-cannot"] "stranded_share", Share, 0.1, 0.0..=1.0,
        "part of the process's own memory on nodes where it does not run", NUMAD;
    PLACED_SHARE = ["balancing-on-but-placed"] "placed_share", Share, 0.9, 0.0..=1.0,
        "part of the memory under policies or in cpusets of one node", OWN;
    PLACED_UPDATES = ["balancing-on-but-placed"] "updates_per_s", PerSecond("page table entries"), 1000.0, 0.0..=1e12,
        "page table entries that balancing changes in a second", OWN;
    COUNTERS_TAKEN = ["counters-off"] "taken_count", Count("pages"), 100_000.0, 0.0..=1e18,
        "pages that the system took since boot", OWN;
    TIERS_UNLIKE = ["tiers-flat"] "slower_times", Times, 1.3, 1.0..=1024.0,
        "latency of the slow node, or bandwidth of the fastest, in those of the other", OWN;
    TIER_TRAFFIC = ["promotion-unlimited"] "mib_per_s", PerSecond("MiB"), 1024.0, 0.0..=1e9,
        "promoted and demoted memory in a second", OWN;
    WEIGHTS_UNLIKE = ["weights-not-set"] "unlike_times", Times, 1.3, 1.0..=1024.0,
        "bandwidth of the fastest node, in bandwidths of the slowest", OWN;
    CPUSET_STRANDED = ["cpus-without-mems"] "stranded_share", Share, 0.1, 0.0..=1.0,
        "part of the process's own memory on nodes where it does not run", NUMAD;
    MEMS_ELSEWHERE = ["mems-without-cpus"] "elsewhere_share", Share, 0.1, 0.0..=1.0,
        "part of the CPU time on nodes without its memory", OWN;
    IRQ_SHARE = ["irq-remote"] "remote_share", Share, 0.2, 0.0..=1.0,
        "part of the device's interrupts on other nodes", OWN;
    IRQ_RATE = ["irq-remote"] "interrupts_per_s", PerSecond("interrupts"), 1000.0, 0.0..=1e12,
        "interrupts of the device in a second", OWN;
    MOVED_RATE = ["irqbalance-against-you"] "interrupts_per_s", PerSecond("interrupts"), 100.0, 0.0..=1e12,
        "interrupts of the device in a second, from which its lines matter", OWN;
    QUOTA_NODE = ["quota-spans-nodes"] "node_share", Share, 0.1, 0.0..=1.0,
        "part of the program's CPU time, and of its memory, from which a node counts", OWN;
    POD_STRANDED = ["kubelet-cpu-only"] "stranded_share", Share, 0.1, 0.0..=1.0,
        "part of the process's own memory on nodes where it does not run", NUMAD;
    DEVICE_CPU = ["device-user-remote"] "near_share", Share, 0.2, 0.0..=1.0,
        "part of the CPU time on the device's node, below which the program is remote", OWN;
    LOPSIDED_DEVICES = ["devices-lopsided"] "devices_count", Count("devices"), 4.0, 0.0..=1_048_576.0,
        "fast devices from which a machine is judged", OWN;
    SELF_BOUND = ["affinity-intersects-to-one"] "cpus_share", Share, 0.25, 0.0..=1.0,
        "part of the cpuset's CPUs that the process may use", OWN;
    SELF_BOUND_THREAD = ["affinity-intersects-to-one"] "thread_cpu_share", Share, 0.02, 0.0..=1.0,
        "CPU time, as a part of one CPU, from which a thread is busy", OWN;
    SELF_BOUND_FULL = ["affinity-intersects-to-one"] "used_share", Share, 0.8, 0.0..=1.0,
        "part of its CPUs that the process uses", OWN;

    JVM_HEAP = ["jvm-numa-unused"] "node_share", Share, 0.25, 0.0..=1.0,
        "its memory, as a part of the smallest node", OWN;
    JVM_CPU = ["jvm-numa-unused"] "node_cpu_share", Share, 0.1, 0.0..=1.0,
        "part of the CPU time from which a node counts", OWN;
    GO_SIZE = ["go-across-nodes"] "node_share", Share, 0.1, 0.0..=1.0,
        "its memory, as a part of the smallest node", OWN;
    GO_CPU = ["go-across-nodes"] "node_cpu_share", Share, 0.1, 0.0..=1.0,
        "part of the CPU time from which a node counts", OWN;
    HALF_BUSY = ["server-on-half"] "used_share", Share, 0.8, 0.0..=1.0,
        "part of the node's CPUs that the server uses", OWN;
    RANKS_CPUS = ["ranks-on-one-core"] "cpus_count", Count("CPUs"), 2.0, 0.0..=8192.0,
        "CPUs that a rank may use at most", OWN;
    RANKS_THREADS = ["ranks-on-one-core"] "threads_count", Count("threads"), 4.0, 0.0..=1_048_576.0,
        "busy threads of a rank", OWN;
    RANKS_THREAD = ["ranks-on-one-core"] "thread_cpu_share", Share, 0.02, 0.0..=1.0,
        "CPU time, as a part of one CPU, from which a thread is busy", OWN;
    RANKS_FULL = ["ranks-on-one-core"] "used_share", Share, 0.8, 0.0..=1.0,
        "part of the rank's CPUs that it uses", OWN;
    MONGOD_PART = ["mongod-start"] "memory_share", Share, 0.1, 0.0..=1.0,
        "part of its memory on the short node", OWN;
    MONGOD_SHORT = ["mongod-start"] "short_share", Share, 0.1, 0.0..=1.0,
        "part of that node that is available at most", OWN;
    MYSQL_SIZE = ["mysqld-interleave"] "node_share", Share, 0.5, 0.0..=1.0,
        "its memory, as a part of the smallest node", OWN;
    MYSQL_SKEW = ["mysqld-interleave"] "skew_share", Share, 0.2, 0.0..=1.0,
        "part of its memory on one node, above an even part", OWN;
}

#[cfg(test)]
mod tests;
