//! `nodewise doctor`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Subcommand, ValueEnum};
use nodewise_machine::duration;

/// Finds what is wrong with the memory placement of the running system, and shows proof, cause and remedy
///
/// It watches for 10 seconds (--window), and changes nothing. A finding rests on where pages are and on what the kernel
/// counted in that time, not on settings alone. Rules that lack a fact are listed as not examined. Ctrl-C ends the
/// window early.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_value_name = "VERB",
    subcommand_help_heading = "Verbs",
    after_help = "\
Examples:
  nodewise doctor
  nodewise doctor --window 60s --unit postgresql
  nodewise doctor --once                      at once, by the rules that need no rates
  nodewise doctor --rule swap-while-free      one rule again, after its remedy
  nodewise doctor --thresholds site.toml      with other numbers
  nodewise doctor --ignore memory-stranded:java --fail-on critical --brief
  nodewise doctor --from night.nwr --at 90m
  nodewise doctor --machine capture.tar.gz
  nodewise doctor rules memory-stranded

SUBJECT of --ignore is a list of nodes (0 or 0-3), a PID, the name of a process, of its service or of its container, a \
device (net:eth0), or machine.

Exit codes: 0 no finding of the severity of --fail-on or above; 1 findings; 2 wrong usage; 3 nothing could be examined."
)]
pub struct Doctor {
    #[command(subcommand)]
    pub verb: Option<DoctorVerb>,
    /// Time to watch, such as 10s or 5m [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = duration::parse, conflicts_with_all = ["once", "from"],
        help_heading = "Time")]
    pub window: Option<Duration>,
    /// Read the system once: only rules that need no rates are examined
    #[arg(long, conflicts_with = "from", help_heading = "Time")]
    pub once: bool,
    /// Read FILE instead of this machine: a recording of nodewise record, from its first sample to its last
    #[arg(long, value_name = "FILE", help_heading = "Time")]
    pub from: Option<PathBuf>,
    /// Moment of the recording, as time since its beginning; rates are since the sample before
    #[arg(long, value_name = "TIME", value_parser = duration::moment, requires = "from", help_heading = "Time")]
    pub at: Option<Duration>,
    /// Only this process, by number (may be repeated); findings that are not about processes stay
    #[arg(long, value_name = "PID", help_heading = "Processes")]
    pub pid: Vec<u32>,
    /// Only this systemd unit, such as postgresql or user.slice; findings that are not about processes stay
    #[arg(long, value_name = "NAME", help_heading = "Processes")]
    pub unit: Option<String>,
    /// Only this container, by the beginning of its identifier; findings that are not about processes stay
    #[arg(long, value_name = "ID", help_heading = "Processes")]
    pub container: Option<String>,
    /// Examine only this rule (may be repeated)
    #[arg(long, value_name = "RULE", help_heading = "Rules")]
    pub rule: Vec<String>,
    /// Replace thresholds of rules by the numbers in this TOML file: a table for each rule, a key for each number
    ///
    /// `nodewise doctor rules RULE` lists a rule's thresholds with units and defaults. Findings name those that were
    /// replaced.
    #[arg(long, value_name = "FILE", help_heading = "Rules")]
    pub thresholds: Option<PathBuf>,
    /// Count findings of a rule, or those about one subject, instead of showing them (may be repeated)
    #[arg(long, value_name = "RULE[:SUBJECT]", help_heading = "Rules")]
    pub ignore: Vec<String>,
    /// Least severity for exit code 1: info, note, warning or critical
    #[arg(
        long,
        value_name = "SEVERITY",
        default_value = "warning",
        hide_possible_values = true,
        help_heading = "Rules"
    )]
    pub fail_on: FailOn,
    /// Show everything: every finding, not only the first ten
    #[arg(long, help_heading = "Output")]
    pub all: bool,
    /// Print one line, for health checkers
    #[arg(long, conflicts_with_all = ["json", "csv"], help_heading = "Output")]
    pub brief: bool,
    /// Print metrics for Prometheus: nodewise_finding for each finding, nodewise_rules for how many rules were examined
    #[arg(long, conflicts_with_all = ["json", "csv", "brief"], help_heading = "Output")]
    pub metrics: bool,
    /// Print JSON (schema nodewise.doctor/1)
    #[arg(long, conflicts_with = "csv", help_heading = "Output")]
    pub json: bool,
    /// Print CSV, one line per finding, without evidence and remedies
    #[arg(long, help_heading = "Output")]
    pub csv: bool,
}

/// Verbs of `doctor`.
#[derive(Debug, Subcommand)]
pub enum DoctorVerb {
    /// Lists the rules, or shows one: its sign, thresholds, traps and sources
    Rules(Rules),
}

/// Options of `rules`.
#[derive(Debug, clap::Args)]
pub struct Rules {
    /// Rule to show
    #[arg(value_name = "RULE")]
    pub id: Option<String>,
    /// Print JSON (schema nodewise.rules/1)
    #[arg(long)]
    pub json: bool,
}

/// A severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    Info,
    Note,
    Warning,
    Critical,
}
