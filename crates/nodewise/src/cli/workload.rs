//! `nodewise workload`.

use clap::Subcommand;
use nodewise_machine::Bytes;
use nodewise_machine::printable::quote;
use nodewise_measure::kernel::stream::Operation;

/// Runs a built-in program whose speed depends on memory
///
/// For trying run and tune: it works on memory well beyond the last-level cache and prints its speed.
#[derive(Debug, clap::Args)]
#[command(
    subcommand_value_name = "WORKLOAD",
    subcommand_help_heading = "Workloads",
    after_help = "\
Examples:
  nodewise workload stream
  nodewise run --interleave=all -- nodewise workload chase --size=1G"
)]
pub struct Workload {
    #[command(subcommand)]
    pub kind: WorkloadProgram,
}

/// The built-in programs.
#[derive(Debug, Subcommand)]
pub enum WorkloadProgram {
    /// Reads two arrays and writes a third, from start to end, with all threads: bandwidth
    Stream(Stream),
    /// Follows one chain of pointers in random order: latency
    Chase(Chase),
    /// Runs both for a few tenths of a second, over half of their memory: a first look
    Both(Both),
}

/// Options of `both`.
#[derive(Debug, clap::Args)]
pub struct Both {
    #[command(flatten)]
    pub common: Common,
}

/// Options of `stream`.
#[derive(Debug, clap::Args)]
pub struct Stream {
    /// Size of memory: the three arrays together [default: each four times the last-level caches, within bounds]
    #[arg(long, value_name = "SIZE", value_parser = super::size)]
    pub size: Option<Bytes>,
    /// Operation, on each element: copy (a = b), add (a = b + c) or triad (a = b + s c) [default: triad]
    #[arg(long, value_name = "NAME", value_parser = operation)]
    pub operation: Option<Operation>,
    /// Number of threads [default: one for each CPU that it may use]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub threads: Option<u32>,
    /// Passes over the arrays that are timed [default: about a second's worth on one core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub passes: Option<u32>,
    #[command(flatten)]
    pub common: Common,
}

/// Options of `chase`.
#[derive(Debug, clap::Args)]
pub struct Chase {
    /// Size of memory: the chain [default: four times the last-level cache, within bounds]
    #[arg(long, value_name = "SIZE", value_parser = super::size)]
    pub size: Option<Bytes>,
    /// Samples of 65,536 loads [default: 32]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub samples: Option<u32>,
    #[command(flatten)]
    pub common: Common,
}

/// Options of every workload.
#[derive(Debug, clap::Args)]
pub struct Common {
    /// Random seed: contents and order
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

fn operation(name: &str) -> Result<Operation, String> {
    let known = Operation::ALL.map(Operation::name).join(", ");
    Operation::from_name(name)
        .ok_or_else(|| format!("{} is not an operation: expected one of {known}", quote(name)))
}
