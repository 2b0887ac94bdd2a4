//! `nodewise shm`.

use clap::Subcommand;

/// Shows shared memory and its policies: System V segments, files and mounts of tmpfs; sets and verifies policies
///
/// A policy on shared memory belongs to it, not to a process: it holds for every program that uses it, and stays when
/// the program that set it is gone.
#[derive(Debug, clap::Args)]
#[command(
    subcommand_value_name = "VERB",
    subcommand_help_heading = "Verbs",
    after_help = "\
Examples:
  nodewise shm list
  nodewise shm show 5
  nodewise shm show /dev/shm/buffers
  nodewise shm policy 5 interleave:0-1 --move --verify"
)]
pub struct Shm {
    #[command(subcommand)]
    pub kind: SharedAction,
}

/// A step.
#[derive(Debug, Subcommand)]
pub enum SharedAction {
    /// Lists segments of System V, and mounts of tmpfs and hugetlbfs
    List(List),
    /// Shows the nodes of the pages of a segment or file, and its policies
    Show(Show),
    /// Sets the policy of a segment or file
    Policy(Policy),
}

/// Options of `list`.
#[derive(Debug, clap::Args)]
pub struct List {
    /// Print JSON (schema nodewise.shm/1)
    #[arg(long)]
    pub json: bool,
}

/// Options of `show`.
#[derive(Debug, clap::Args)]
pub struct Show {
    /// Segment by its id, or a file of tmpfs or hugetlbfs
    #[arg(value_name = "ID|FILE")]
    pub object: String,
    /// Print JSON (schema nodewise.shm-object/1)
    #[arg(long)]
    pub json: bool,
}

/// Options of `policy`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  nodewise shm policy 5 bind:1
  nodewise shm policy /dev/shm/buffers interleave:0-3 --move --verify
  nodewise shm policy 5 default

POLICY is default, local, bind:NODES, preferred:NODE, interleave:NODES, weighted-interleave:NODES or \
preferred-many:NODES.

Exit codes: 0 done; 1 --verify found pages elsewhere; 2 wrong usage; 3 no such object, or no right to it.")]
pub struct Policy {
    /// Segment by its id, or a file of tmpfs or hugetlbfs
    #[arg(value_name = "ID|FILE")]
    pub object: String,
    /// Policy, such as interleave:0-1
    #[arg(value_name = "POLICY")]
    pub policy: String,
    /// Range, in hexadecimal: bytes from the beginning, such as 0-40000000 [default: all of it]
    #[arg(long, value_name = "A-B", value_parser = super::range)]
    pub range: Option<(u64, u64)>,
    /// Move pages that are already allocated; those of other processes need CAP_SYS_NICE
    #[arg(long = "move")]
    pub moves: bool,
    /// Compare where pages are with the policy
    #[arg(long)]
    pub verify: bool,
    /// Show what would be done, without doing it
    #[arg(long)]
    pub dry_run: bool,
    /// Print JSON (schema nodewise.shm-object/1)
    #[arg(long)]
    pub json: bool,
}
