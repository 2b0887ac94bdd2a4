//! `nodewise bandwidth`.

use std::path::PathBuf;

use nodewise_machine::Bytes;
use nodewise_machine::printable::quote;
use nodewise_measure::kernel::bandwidth::Kernel;

use super::measure_options::{MeasureOptions, PageOptions};

/// Measures memory bandwidth from the CPUs of each node to the memory of each node
///
/// A matrix of nodes with a thread on every CPU; every kernel near its memory with one thread and with all;
/// more and more threads; and all nodes at once. Before that a short contest finds the fastest way to run each
/// kernel here (instructions, streams, prefetching), which is named. The kernel confirms the node of every page
/// before and after. Ctrl-C ends it with the figures so far.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  nodewise bandwidth                       every node to every node
  nodewise bandwidth --operation copy-NT   copies in the matrix
  nodewise bandwidth --quick --svg map.svg
  nodewise bandwidth --file             what dd and cp get on /dev/shm
  nodewise bandwidth --apply-weights old.weights
                                           weights for weighted interleaving
  nodewise bandwidth --undo-weights old.weights
  nodewise bandwidth --json > before.json  to draw later, with --from

Operations: read, write, copy, scale, add, triad; write-NT, copy-NT, triad-NT write past the caches; \
3:1, 2:1, 1:1 read and write in that proportion.

Exit codes: 0 when there are figures, also after Ctrl-C; 2 wrong usage; 3 when no way could be \
measured, or weights cannot be set.")]
pub struct Bandwidth {
    #[command(flatten)]
    pub measure: MeasureOptions,
    #[command(flatten)]
    pub pages: PageOptions,
    /// Operation, for the matrix and the curve of threads [default: read]
    #[arg(
        long = "operation",
        alias = "kernel",
        value_name = "NAME",
        default_value = "read",
        hide_default_value = true,
        value_parser = kernel,
        help_heading = "Measuring"
    )]
    pub kernel: Kernel,
    /// Measure the matrix alone: no other operations, no curve of threads
    #[arg(long, help_heading = "Measuring")]
    pub matrix: bool,
    /// Measure files in memory (tmpfs) instead: a first write, an overwrite and a read, with pages on each
    /// node; in DIR, such as /dev/shm, or without a mount
    #[arg(
        long,
        value_name = "DIR",
        num_args = 0..=1,
        require_equals = true,
        conflicts_with_all = ["kernel", "matrix", "huge", "apply_weights", "undo_weights"],
        help_heading = "Measuring"
    )]
    pub file: Option<Option<PathBuf>>,
    /// Size of memory: the buffer on each node, such as 256M [default: four times the last-level caches of a node,
    /// 64M to 2G]
    #[arg(long, value_name = "SIZE", help_heading = "Measuring", value_parser = super::size)]
    pub size: Option<Bytes>,
    /// Set the proposed weights for weighted interleaving, and save the old ones in FILE
    #[arg(long, value_name = "FILE", help_heading = "Weights")]
    pub apply_weights: Option<PathBuf>,
    /// Set the weights in FILE instead of measuring
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["apply_weights", "quick", "thorough", "huge", "cpus", "nodes", "seed", "size",
                              "matrix", "json", "csv", "svg", "png", "kernel"],
        help_heading = "Weights"
    )]
    pub undo_weights: Option<PathBuf>,
    /// Show what would be done, without doing it: the weights to set
    #[arg(long, help_heading = "Weights")]
    pub dry_run: bool,
    /// Read FILE instead of this machine: a result of --json, or output of Intel Memory Latency Checker, STREAM or
    /// perf; measures nothing
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["quick", "thorough", "huge", "cpus", "nodes", "seed", "size", "kernel", "matrix",
                              "file", "apply_weights", "undo_weights", "dry_run"],
        help_heading = "Output"
    )]
    pub from: Option<PathBuf>,
}

/// A kernel by its name.
///
/// # Errors
/// A name of none, with those that there are.
pub(super) fn kernel(text: &str) -> Result<Kernel, String> {
    Kernel::from_name(text).ok_or_else(|| {
        let names: Vec<&str> = Kernel::ALL.into_iter().map(Kernel::name).collect();
        format!("{} is not an operation: expected one of {}", quote(text), names.join(", "))
    })
}
