//! `nodewise stat`.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use nodewise_machine::duration;

use super::recording::{self, RecordedMoment};

/// Shows the running system by node: memory, allocations, CPU load, and the processes that matter
///
/// Without an interval it shows everything since boot, and where the memory of processes is now. With one it
/// shows rates, and where processes ran: CPU time counts for a node only if that is certain. Stranded memory
/// is on nodes where its process does not run. Ctrl-C ends it with the figures so far.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  nodewise stat                       since boot
  nodewise stat 1                     every second, until Ctrl-C
  nodewise stat 5 3                   three times five seconds, then all of it
  nodewise stat 4121                  a process
  nodewise stat postgres --every 1s --per-thread
  nodewise stat --unit postgresql --every 10s --count 6 --json
  nodewise stat --check               do the kernel's counters add up?
  nodewise stat --machine capture.tar.gz
  nodewise stat --from night.nwr      all of a recording
  nodewise stat --from night.nwr --at 90m postgres
  nodewise stat --from night.nwr --at 6h --against @1h        what changed in five hours
  nodewise stat --from new.nwr --against old.nwr --csv

INTERVAL and COUNT must be the only arguments, as for vmstat; a first number below 300 is seconds. Any other \
number is a PID, because Linux gives numbers below 300 only to processes that start with the system. \
For a process with a small number use --pid, for an interval beside processes --every.

Exit codes: 0; 1 when --check finds a sum that does not hold; 2 wrong usage; 3 no such process, or no \
NUMA nodes.")]
pub struct Stat {
    /// INTERVAL [COUNT], or PIDs and names of processes
    #[arg(value_name = "INTERVAL|PID|NAME")]
    pub words: Vec<String>,
    /// Time between two samples, such as 500ms, 5s or 10m
    #[arg(long, value_name = "TIME", value_parser = duration::parse, help_heading = "Time")]
    pub every: Option<Duration>,
    /// Number of intervals [default: until Ctrl-C]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Time")]
    pub count: Option<u64>,
    /// Read FILE instead of this machine: a recording of nodewise record, the change from its first sample to its
    /// last
    #[arg(long, value_name = "FILE", conflicts_with_all = ["every", "count"], help_heading = "Time")]
    pub from: Option<PathBuf>,
    /// Moment of the recording, as time since its beginning; shown is the change since the sample before
    #[arg(long, value_name = "TIME", value_parser = duration::moment, requires = "from", help_heading = "Time")]
    pub at: Option<Duration>,
    /// Compare with FILE: another recording, or a moment of one as FILE@TIME; @TIME is another moment of the same
    /// recording
    #[arg(long, value_name = "FILE", value_parser = recording::recorded_moment, requires = "from",
        conflicts_with_all = ["check", "raw", "irq", "mbm", "uncore", "services", "threads", "sort"], help_heading = "Time")]
    pub against: Option<RecordedMoment>,
    /// Only this process, by number, also a small one (may be repeated)
    #[arg(long, value_name = "PID", help_heading = "Processes")]
    pub pid: Vec<u32>,
    /// Only this control group and those below it, by path
    #[arg(long, value_name = "PATH", help_heading = "Processes")]
    pub cgroup: Option<PathBuf>,
    /// Only this systemd unit, such as postgresql or user.slice
    #[arg(long, value_name = "NAME", help_heading = "Processes")]
    pub unit: Option<String>,
    /// Only this container, by the beginning of its identifier
    #[arg(long, value_name = "ID", help_heading = "Processes")]
    pub container: Option<String>,
    /// List the threads: CPU time, node, preferred node, hint faults by node
    #[arg(long = "per-thread", alias = "threads", help_heading = "Processes")]
    pub threads: bool,
    /// Order of processes: notable (stranded memory first), cpu, memory, stranded, moved or pid
    #[arg(
        long,
        value_name = "ORDER",
        default_value = "notable",
        hide_default_value = true,
        hide_possible_values = true,
        help_heading = "Processes"
    )]
    pub sort: SortBy,
    /// Maximum number of processes to list
    #[arg(long, value_name = "N", default_value_t = 20, help_heading = "Processes")]
    pub top: usize,
    /// List services, containers and other control groups: CPU time, and the memory that is charged to them by node
    #[arg(long, help_heading = "Output")]
    pub services: bool,
    /// Include the interrupts of devices, the share that CPUs of other nodes take, and the CPUs that queues of network
    /// devices name
    #[arg(long, help_heading = "Output")]
    pub irq: bool,
    /// Show the memory bandwidth of each last-level cache (MBM, counted by the CPU for resctrl), over one second if no
    /// interval is given
    #[arg(long, help_heading = "Output")]
    pub mbm: bool,
    /// Show the traffic that memory controllers count (uncore PMUs), over one second if no interval is given
    #[arg(long, help_heading = "Output")]
    pub uncore: bool,
    /// Check and set the exit code: sums that must hold, over one second if no interval is given
    #[arg(long, help_heading = "Output")]
    pub check: bool,
    /// List every counter of the system and of each node
    #[arg(long, help_heading = "Output")]
    pub raw: bool,
    /// Print JSON (schema nodewise.stat/1, one line per interval where there are several; with --against
    /// nodewise.stat-comparison/1)
    #[arg(long, conflicts_with = "csv", help_heading = "Output")]
    pub json: bool,
    /// Print CSV, one line per fact
    #[arg(long, help_heading = "Output")]
    pub csv: bool,
}

/// The order of processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SortBy {
    Notable,
    Cpu,
    Memory,
    Stranded,
    Moved,
    Pid,
}
