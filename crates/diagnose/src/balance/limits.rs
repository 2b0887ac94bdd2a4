//! The numbers that bound the controller, each with its origin.

use std::time::Duration;

use nodewise_machine::Bytes;

/// Windows in a row in which a process must need an action: our choice, against reactions to a phase.
pub const WINDOWS: u32 = 3;
/// Stranded or remote part of the memory from which the controller acts: numad's target is 90 % local.
pub const ACT_AT: f64 = 0.10;
/// Least memory of a process: numad's `MEMORY_THRESHOLD`, 300 MB.
pub const LEAST_SIZE: Bytes = Bytes::from_mib(300);
/// Least CPU time as a share of one CPU: numad's `CPU_THRESHOLD`, half a CPU.
pub const LEAST_CPU: f64 = 0.5;
/// Least age of a process: our choice, the time in which most programs fill their memory.
pub const LEAST_AGE: Duration = Duration::from_secs(60);
/// Bytes moved per second: the default mover of memtierd has 100 MB/s.
pub const RATE: Bytes = Bytes::from_mib(100);
/// Bytes moved in an hour: our choice.
pub const PER_HOUR: Bytes = Bytes::from_gib(10);
/// Bytes moved of one process in a day, in sizes of its memory: our choice.
pub const PER_DAY: f64 = 3.0;
/// Time between an action and its judgement: two scan periods of the kernel's balancing, 30 s at least.
pub const SETTLE: Duration = Duration::from_secs(30);
/// First rest of a process after an action: numad's 5 minutes.
pub const REST: Duration = Duration::from_secs(300);
/// Time in which a process is not sent back to a node that it left: numad's 30 minutes for interleaved processes.
pub const RETURN: Duration = Duration::from_secs(30 * 60);
/// Part of a node that stays available after pages arrive: memtierd's policy avoid-oom, 16 %.
pub const KEEP_AVAILABLE: f64 = 0.16;
/// Free memory that a node keeps, in sizes of its high watermark, up to which the kernel reclaims: our choice.
pub const KEEP_HIGH: f64 = 1.25;
/// Locked or pinned part of a process's memory above which it is left alone: our choice.
pub const LOCKED: f64 = 0.10;
/// Part of `memory.max` that must be unused: our choice.
pub const BELOW_LIMIT: f64 = 0.10;
/// Memory pressure (PSI some avg10) in percent above which nothing moves: the pause of `nodewise migrate`.
pub const PRESSURE: f64 = 10.0;
/// Part of the memory that may fail to move before the rest is given up: our choice.
pub const FAILED: f64 = 0.05;
/// Scans of the kernel's balancing that are waited for: faults of two scans must agree before it moves a page.
pub const SCANS: u64 = 2;
/// The wait where scans are not counted: two of `numa_balancing_scan_period_max_ms`, 60 s.
pub const SCANS_TIME: Duration = Duration::from_secs(120);
/// CPU time that is wanted for a CPU second used: numad's 85 % utilisation.
pub const USED: f64 = 0.85;

/// The numbers that bound the controller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// [`WINDOWS`].
    pub windows: u32,
    /// [`ACT_AT`].
    pub act_at: f64,
    /// [`LEAST_SIZE`].
    pub least_size: Bytes,
    /// [`LEAST_CPU`].
    pub least_cpu: f64,
    /// [`LEAST_AGE`].
    pub least_age: Duration,
    /// [`RATE`], per second.
    pub rate: Bytes,
    /// [`PER_HOUR`].
    pub per_hour: Bytes,
    /// [`PER_DAY`].
    pub per_day: f64,
    /// [`SETTLE`].
    pub settle: Duration,
    /// [`REST`].
    pub rest: Duration,
    /// [`RETURN`].
    pub back_after: Duration,
    /// [`KEEP_AVAILABLE`].
    pub keep_available: f64,
    /// [`KEEP_HIGH`].
    pub keep_high: f64,
    /// [`LOCKED`].
    pub locked: f64,
    /// [`BELOW_LIMIT`].
    pub below_limit: f64,
    /// [`PRESSURE`].
    pub pressure: f64,
    /// [`FAILED`].
    pub failed: f64,
    /// [`SCANS`].
    pub scans: u64,
    /// [`SCANS_TIME`].
    pub scans_time: Duration,
    /// [`USED`].
    pub cpu_use: f64,
    /// Whether the CPUs of threads may be narrowed; pages may always move.
    pub affinity: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            windows: WINDOWS,
            act_at: ACT_AT,
            least_size: LEAST_SIZE,
            least_cpu: LEAST_CPU,
            least_age: LEAST_AGE,
            rate: RATE,
            per_hour: PER_HOUR,
            per_day: PER_DAY,
            settle: SETTLE,
            rest: REST,
            back_after: RETURN,
            keep_available: KEEP_AVAILABLE,
            keep_high: KEEP_HIGH,
            locked: LOCKED,
            below_limit: BELOW_LIMIT,
            pressure: PRESSURE,
            failed: FAILED,
            scans: SCANS,
            scans_time: SCANS_TIME,
            cpu_use: USED,
            affinity: true,
        }
    }
}
