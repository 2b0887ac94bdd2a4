//! `nodewise balance`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use nodewise_machine::{Bytes, duration};

use super::migrate::{percent, rate};

/// Keeps processes and their memory on the same nodes, within limits, and shows what it would do unless --apply is given
///
/// It watches three windows. A process whose memory is on nodes where it does not run gets its pages moved; one whose
/// memory is on one node and whose threads run elsewhere gets its threads kept there. It never touches a process that
/// has a memory policy, CPUs or a cpuset of its own, that an orchestrator, a debugger or another placer manages, or that
/// cannot be examined. Every action is in a journal, and undo takes it back.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_value_name = "VERB",
    subcommand_help_heading = "Verbs",
    after_help = "\
Examples:
  nodewise balance                                    the plan, and why
  sudo nodewise balance --apply --for 1h
  sudo nodewise balance --apply --rate 50M/s --no-affinity
  sudo nodewise balance --evaluate --time 6h --metric-command './client'
  sudo nodewise balance undo --all

With --apply it runs until Ctrl-C or SIGTERM: then it finishes the batch, writes the journal, and gives threads their \
old CPUs back (--keep leaves them). Pages stay where they are; undo moves them back. It needs CAP_SYS_NICE and \
CAP_SYS_PTRACE.

With --evaluate it is on in one block of each pair and off in the other, which of them first is drawn, and says at the \
end whether the blocks with it are better. Before each block without it, what the block before moved is taken back.

Exit codes: 0 done; 1 an action made it worse and was taken back, or an evaluation shows that it harms; 2 wrong usage; \
3 a missing right, one node only, or another balance that runs."
)]
pub struct Balance {
    #[command(subcommand)]
    pub verb: Option<BalanceVerb>,
    /// Act; without it the plan is shown and nothing is changed
    #[arg(long)]
    pub apply: bool,
    /// Show what would be done, without doing it (the default)
    #[arg(long, conflicts_with_all = ["apply", "run_for", "keep", "evaluate"])]
    pub dry_run: bool,
    /// Switch itself on and off in blocks of time, and say whether it helps
    #[arg(long, conflicts_with_all = ["apply", "run_for", "keep"])]
    pub evaluate: bool,
    /// End after this time, with --apply, such as 1h [default: until Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = duration::parse, requires = "apply")]
    pub run_for: Option<Duration>,
    /// Leave threads on their new CPUs at the end
    #[arg(long, requires = "apply")]
    pub keep: bool,
    /// Time to watch, between two samples
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = duration::parse, help_heading = "Time")]
    pub window: Duration,
    /// Windows in a row in which a process must need an action
    #[arg(long, value_name = "COUNT", default_value = "3", value_parser = clap::value_parser!(u32).range(1..=1000),
        help_heading = "Time")]
    pub windows: u32,
    /// Time between an action and its judgement
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration::moment, help_heading = "Time")]
    pub settle: Duration,
    /// Rest of a process after an action, doubled after one that made no difference
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = duration::moment, help_heading = "Time")]
    pub rest: Duration,
    /// Time in which a process is not sent back to a node that it left
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = duration::moment, help_heading = "Time")]
    pub back_after: Duration,
    /// Least remote part of a process's memory, in percent
    #[arg(long, value_name = "PERCENT", default_value = "10", value_parser = percent, help_heading = "Processes")]
    pub act_at: f64,
    /// Least memory of a process
    #[arg(long, value_name = "SIZE", default_value = "300M", value_parser = super::size, help_heading = "Processes")]
    pub min_size: Bytes,
    /// Least CPU time of a process, in percent of one CPU
    #[arg(long, value_name = "PERCENT", default_value = "50", value_parser = percent, help_heading = "Processes")]
    pub min_cpu: f64,
    /// Least age of a process
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration::moment,
        help_heading = "Processes")]
    pub min_age: Duration,
    /// Move pages only: never narrow the CPUs of threads
    #[arg(long, help_heading = "Processes")]
    pub no_affinity: bool,
    /// Speed limit of moving pages, such as 100M/s
    #[arg(long, value_name = "RATE", default_value = "100M/s", value_parser = rate, help_heading = "Limits")]
    pub rate: Bytes,
    /// Most bytes moved in an hour
    #[arg(long, value_name = "SIZE", default_value = "10G", value_parser = super::size, help_heading = "Limits")]
    pub per_hour: Bytes,
    /// Part of a node that must stay available, in percent
    #[arg(long, value_name = "PERCENT", default_value = "16", value_parser = percent, help_heading = "Limits")]
    pub keep_available: f64,
    /// Memory pressure (PSI some avg10) in percent above which nothing moves
    #[arg(long, value_name = "PERCENT", default_value = "10", value_parser = percent, help_heading = "Limits")]
    pub pause_psi: f64,
    #[command(flatten)]
    pub evaluation: Evaluation,
    #[command(flatten)]
    pub output: JournalOptions,
}

/// Options of `--evaluate`.
#[derive(Debug, clap::Args)]
pub struct Evaluation {
    /// Time limit, such as 2h; the evaluation ends earlier when the answer is known
    #[arg(long, value_name = "TIME", default_value = "4h", value_parser = duration::parse, requires = "evaluate",
        help_heading = "Evaluation")]
    pub time: Duration,
    /// Length of a block
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = duration::parse, requires = "evaluate",
        help_heading = "Evaluation")]
    pub block: Duration,
    /// Beginning of each block that does not count, in which pages move and go back [default: a third of the block]
    #[arg(long, value_name = "TIME", value_parser = duration::moment, requires = "evaluate",
        help_heading = "Evaluation")]
    pub wash_out: Option<Duration>,
    /// Command to run again and again in each block, whose time is compared; its words are split at blanks [default:
    /// none, the remote share of programs is compared, which says nothing about speed]
    #[arg(long, value_name = "CMD", requires = "evaluate", help_heading = "Evaluation")]
    pub metric_command: Option<String>,
    /// Compare a number that the command prints: a regular expression with one group, the last match counts
    #[arg(long, value_name = "REGEX", requires = "metric_command", help_heading = "Evaluation")]
    pub metric_regex: Option<String>,
    /// More of the metric is better
    #[arg(long, requires = "metric_regex", help_heading = "Evaluation")]
    pub higher_is_better: bool,
    /// Random seed: the order of blocks [default: from the clock, and printed]
    #[arg(long, value_name = "N", requires = "evaluate", help_heading = "Evaluation")]
    pub seed: Option<u64>,
}

/// Options of the journal.
#[derive(Debug, clap::Args)]
pub struct JournalOptions {
    /// Journal in FILE: every action [default: balance.journal in /var/lib/nodewise, or in $XDG_STATE_HOME/nodewise
    /// if not root]
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub journal: Option<PathBuf>,
    /// Print JSON, one line for each step (schema nodewise.balance/1)
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

/// Verbs of `balance`.
#[derive(Debug, Subcommand)]
pub enum BalanceVerb {
    /// Takes actions back: threads get their old CPUs, and pages go to where they were
    Undo(Undo),
}

/// Options of `undo`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A thread whose CPUs another program has changed in the meantime is left alone, and so is a process that has ended.

Exit codes: 0 taken back, 1 some pages or threads were not, 2 wrong usage, 3 nothing to take back, or a missing right.")]
pub struct Undo {
    /// Number of the action [default: the last one]
    #[arg(value_name = "ID", conflicts_with = "all")]
    pub id: Option<u64>,
    /// Take back every action of the journal, the last first
    #[arg(long)]
    pub all: bool,
    /// Speed limit of moving pages, such as 100M/s
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub rate: Option<Bytes>,
    #[command(flatten)]
    pub output: JournalOptions,
}
