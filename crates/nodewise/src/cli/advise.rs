//! `nodewise advise`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use nodewise_machine::{Bytes, duration};

use super::migrate::rate;

/// Names the placement that a program should have, from evidence: the reason, the commands, and what would change it
///
/// A running process is watched for 10 seconds (--window), on a machine with one node not at all, and nothing is changed without
/// --apply. Memory size and growth, threads, sharing and what places it already decide by a table; its name adds only its own
/// option. A fact that cannot be read is named with its reason. Where evidence cannot decide, the nodewise tune command that can
/// is printed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "\
Examples:
  nodewise advise 4711
  nodewise advise postgres --window 60s
  nodewise advise --unit mysqld --check       exit code 1 if the unit is not placed so
  nodewise advise 4711 --tune study.json      the placement that tune measured as the best
  nodewise advise 4711 --apply --dry-run      the steps that --apply would take
  nodewise advise -- ./solver input.dat       without starting it: little is known
  nodewise advise --trial 30s -- ./solver input.dat

Of several processes of a name or a unit, the one with the most memory is taken. The program of --trial reads an empty \
input, its output is not shown, and it is ended after that time with all processes of its group.

--apply changes a running process only by what nodewise balance undo takes back: its policy stays, and new pages follow \
it. It needs CAP_SYS_NICE and CAP_SYS_PTRACE for a process of another user, and root to write a drop-in.

Exit codes: 0 done; 1 with --check, the placement in force differs; 1 with --apply, only a part was applied; 2 wrong usage; \
3 no such process, a program that cannot be started or ends at once, --check cannot say, or --apply could do nothing.",
    override_usage = "nodewise advise [OPTIONS] <PID|NAME>\n       nodewise advise [OPTIONS] --unit <NAME>\n       \
                      nodewise advise [OPTIONS] -- PROGRAM [ARGUMENT]..."
)]
pub struct Advise {
    /// Process: its number or its name
    #[arg(value_name = "PID|NAME", conflicts_with_all = ["unit", "command"])]
    pub process: Option<String>,
    /// Only this systemd unit, such as mysqld: the one to advise about
    #[arg(long, value_name = "NAME", conflicts_with = "command")]
    pub unit: Option<String>,
    /// Time to watch, such as 10s or 5m [default: 10s; on a machine with one node none]
    #[arg(long, value_name = "TIME", value_parser = duration::parse, conflicts_with = "command")]
    pub window: Option<Duration>,
    /// Start the program, watch it for this time, and end it
    #[arg(long, value_name = "TIME", value_parser = duration::parse, requires = "command")]
    pub trial: Option<Duration>,
    /// Time over which growth is counted: memory that grows must still fit then [default: 10m]
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    pub horizon: Option<Duration>,
    /// Take the advice of a study of this program on this machine, the saved result of nodewise tune --json: what was measured
    /// overrides the table
    #[arg(long, value_name = "FILE")]
    pub tune: Option<PathBuf>,
    /// Check and set the exit code: 1 if the placement in force differs from the advice
    #[arg(long)]
    pub check: bool,
    /// Act: move the pages of the process, keep its threads on CPUs, and with --unit write a drop-in; the part that can
    /// be taken back
    #[arg(long, conflicts_with_all = ["command", "check"], help_heading = "Apply")]
    pub apply: bool,
    /// Show what would be done, without doing it: the steps of --apply
    #[arg(long, requires = "apply", help_heading = "Apply")]
    pub dry_run: bool,
    /// Take the last drop-in of --unit back
    #[arg(long, requires = "unit", conflicts_with_all = ["process", "apply", "check", "window", "horizon", "tune", "json"],
        help_heading = "Apply")]
    pub revert: bool,
    /// Speed limit of moving pages, such as 100M/s
    #[arg(long, value_name = "RATE", default_value = "100M/s", value_parser = rate, help_heading = "Apply")]
    pub rate: Bytes,
    /// Journal in FILE: what was done to processes [default: that of nodewise balance]
    #[arg(long, value_name = "FILE", requires = "apply", help_heading = "Apply")]
    pub journal: Option<PathBuf>,
    /// Print JSON (schema nodewise.advice/1)
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// The program and its arguments
    #[arg(last = true, value_name = "PROGRAM")]
    pub command: Vec<OsString>,
}
