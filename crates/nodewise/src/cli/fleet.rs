//! `nodewise fleet`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Subcommand, ValueEnum};
use nodewise_machine::duration;

use super::survey::SurveyParts;
use crate::output::Destination;

/// Surveys many machines on the site's own scheduler, and compares those that are identical
///
/// plan writes scripts for Slurm, ssh or Kubernetes that an administrator can read and change; run starts them and follows;
/// report groups machines by structure and names outliers, unusual facts, changes, and the machines to look at first; check
/// holds one machine against its group.
#[derive(Debug, clap::Args)]
#[command(
    subcommand_value_name = "VERB",
    subcommand_help_heading = "Verbs",
    after_help = "\
Examples:
  nodewise fleet plan --slurm compute -o survey && nodewise fleet run survey
  nodewise fleet plan --ssh hosts.txt -o survey
  nodewise fleet plan --k8s --image registry.example.org/nodewise:0.1 -o survey
  nodewise fleet report survey --html fleet.html
  nodewise fleet report survey --json > reference.json
  nodewise fleet check --reference reference.json

Exit codes: 0; 1 findings; 2 wrong usage; 3 this machine cannot do it. Those of check depend on --style."
)]
pub struct Fleet {
    #[command(subcommand)]
    pub verb: FleetVerb,
}

/// Verbs of `fleet`.
#[derive(Debug, Subcommand)]
pub enum FleetVerb {
    /// Writes scripts that survey many machines
    Plan(FleetPlan),
    /// Starts the scripts of a plan and follows until every host has answered
    Run(FleetRun),
    /// Reports on surveys: groups, outliers, unusual facts, what is missing, what changed
    Report(FleetReportOptions),
    /// Checks this machine against its group, in one line
    Check(FleetCheck),
}

/// Options of `plan`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  nodewise fleet plan --slurm compute -o survey              a partition
  nodewise fleet plan --slurm 'n[1-64]' -o survey            a list of nodes
  nodewise fleet plan --slurm compute --option=--account=ops -o survey
  nodewise fleet plan --ssh hosts.txt --parallel 64 -o survey
  nodewise fleet plan --k8s --image registry.example.org/nodewise:0.1 -o survey

DIR/submit.sh starts a plan; surveys go to DIR/results.")]
pub struct FleetPlan {
    /// Slurm: a partition, or a list of nodes
    #[arg(long, value_name = "PARTITION|NODES", help_heading = "Engine", required_unless_present_any = ["ssh", "k8s"], conflicts_with_all = ["ssh", "k8s"])]
    pub slurm: Option<String>,
    /// ssh: a file with a host on each line, as ssh takes them
    #[arg(long, value_name = "FILE", help_heading = "Engine", conflicts_with = "k8s")]
    pub ssh: Option<PathBuf>,
    /// Kubernetes: a DaemonSet for every node, and a Job for some
    #[arg(long, help_heading = "Engine", requires = "image")]
    pub k8s: bool,
    /// Directory for the scripts; it is made where it is missing
    #[arg(short, long, value_name = "DIR", help_heading = "Output")]
    pub output: PathBuf,
    /// Name of the run [default: the time, as in 20261126-231500]
    #[arg(long, value_name = "NAME", help_heading = "Survey")]
    pub run: Option<String>,
    #[command(flatten)]
    pub parts: SurveyParts,
    /// Path of nodewise on the hosts: one static file [default: the path of this program; with --ssh and --k8s nodewise]
    #[arg(long, value_name = "PATH", help_heading = "Survey")]
    pub program: Option<String>,
    /// ssh: hosts at once [default: 32]
    #[arg(long, value_name = "N", requires = "ssh", value_parser = clap::value_parser!(u32).range(1..=10_000), help_heading = "Survey")]
    pub parallel: Option<u32>,
    /// Slurm: the latest start of a survey, as time after the submission; a host that is down until then has no answer
    #[arg(long, value_name = "TIME", value_parser = duration::parse, default_value = "30m", help_heading = "Slurm")]
    pub deadline: Duration,
    /// Slurm: one more option of sbatch, such as --option=--account=ops (may be repeated)
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true, help_heading = "Slurm")]
    pub option: Vec<String>,
    /// Kubernetes: the image that holds nodewise
    #[arg(long, value_name = "IMAGE", help_heading = "Kubernetes")]
    pub image: Option<String>,
    /// Kubernetes: the namespace of the objects
    #[arg(long, value_name = "NAME", default_value = "default", help_heading = "Kubernetes")]
    pub namespace: String,
    /// Number of nodes, each surveyed once by the Job
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000), help_heading = "Kubernetes")]
    pub count: u32,
}

/// Options of `run`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  nodewise fleet run survey
  nodewise fleet run survey --for 20m
  nodewise fleet run --follow results        follow what Ansible or pdsh brings

Exit codes: 0 every host has answered; 1 some have not; 2 wrong usage; 3 the scripts cannot be started.")]
pub struct FleetRun {
    /// Directory of a plan
    #[arg(value_name = "DIR", required_unless_present = "follow", conflicts_with = "follow")]
    pub plan: Option<PathBuf>,
    /// Follow DIR, which others fill, and start nothing
    #[arg(long, value_name = "DIR")]
    pub follow: Option<PathBuf>,
    /// End after this time, though hosts have not answered
    #[arg(long = "for", value_name = "TIME", value_parser = duration::parse, default_value = "1h")]
    pub limit: Duration,
}

/// Options of `report`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  nodewise fleet report survey
  nodewise fleet report survey --html fleet.html
  nodewise fleet report november --against october
  nodewise fleet report survey --json > reference.json

DIR is that of a plan, or any directory with surveys: files NAME.json from nodewise survey; NAME.failed with the reason \
why a host has none; and hosts, a list of the hosts that are expected.

Exit codes: 0 nothing found; 1 an outlier, an unusual fact, a warning, or a host without a survey; 2 wrong usage; 3 no \
survey was found.")]
pub struct FleetReportOptions {
    /// Directory with surveys
    #[arg(value_name = "DIR")]
    pub from: PathBuf,
    /// Compare with DIR, earlier surveys: show what changed since then
    #[arg(long, value_name = "DIR")]
    pub against: Option<PathBuf>,
    /// Name of the run, where the directory has several [default: that which began last]
    #[arg(long, value_name = "NAME")]
    pub run: Option<String>,
    /// Write an HTML report into FILE, too
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub html: Option<Destination>,
    /// Print JSON (schema nodewise.fleet/1): all figures, and the reference for check
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

/// Options of `check`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  nodewise fleet check                                        findings of doctor alone
  nodewise fleet check --reference /etc/nodewise/fleet.json   and facts of the group
  nodewise fleet check --reference fleet.json --measure       and figures, within a minute
  nodewise fleet check --reference fleet.json --survey web7.json
  nodewise fleet check --reference fleet.json --style slurm

Exit codes by --style: plain 0 healthy, 1 findings, 3 unknown; slurm always 0, unless --fail is given; npd 0 healthy, \
1 findings, 2 unknown; nagios 0 healthy, 1 warning, 2 critical, 3 unknown. 2 is wrong usage.")]
pub struct FleetCheck {
    /// Report on the fleet, from nodewise fleet report --json
    #[arg(long, value_name = "FILE")]
    pub reference: Option<PathBuf>,
    /// Measure latency and bandwidth, too: within a minute, and only on an idle machine
    #[arg(long, conflicts_with = "survey")]
    pub measure: bool,
    /// Check the survey in FILE instead of this machine now
    #[arg(long, value_name = "FILE")]
    pub survey: Option<PathBuf>,
    /// Caller: plain, slurm (HealthCheckProgram), npd (node-problem-detector), nagios
    #[arg(long, value_name = "STYLE", default_value = "plain", hide_possible_values = true)]
    pub style: CheckStyle,
    /// With --style slurm: exit with 1 on findings
    #[arg(long)]
    pub fail: bool,
}

/// The program that reads a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CheckStyle {
    Plain,
    Slurm,
    Npd,
    Nagios,
}
