//! `nodewise maps`.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use nodewise_machine::duration;

use super::recording::{self, RecordedMoment};
use crate::output::Destination;

/// Shows which nodes the memory of a process is on: by kind, policy and mapping
///
/// Counting every page of a large process takes long and delays its system calls on memory. If it would take more than
/// 20 ms of CPU time, pages are sampled at random, and shares have 95 % intervals; --exact counts every page.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  nodewise maps 4121
  nodewise maps postgres --all --who
  nodewise maps 4121 --by file --sample 50000
  nodewise maps 4121 --range 7f2c00000000-7f2c00200000
  nodewise maps 4121 --svg postgres.svg
  nodewise maps postgres --from db.nwr --at 90m
  nodewise maps postgres --from db.nwr --at 6h --against @1h      what changed

Exit codes: 0 done; 2 wrong usage, or a name that several processes have; 3 no such process, no permission to \
read it, or no memory.")]
pub struct Maps {
    /// Process: its number, or its name if no other has it
    #[arg(value_name = "PID|NAME")]
    pub process: String,
    /// Show everything: every mapping, not only the largest
    #[arg(long)]
    pub all: bool,
    /// Rows of the table: kind, file or policy
    #[arg(long, value_name = "GROUP", default_value = "kind", hide_possible_values = true)]
    pub by: By,
    /// List the other processes that map the same files and shared memory
    #[arg(long)]
    pub who: bool,
    /// Range, in hexadecimal: addresses between which to show the node of each page, adjacent pages on one node
    /// together
    #[arg(long, value_name = "A-B", value_parser = super::range,
        conflicts_with_all = ["all", "by", "who", "exact", "sample", "csv"])]
    pub range: Option<(u64, u64)>,
    /// Read FILE instead of this machine: a recording of nodewise record --maps, the mappings of its last sample
    #[arg(long, value_name = "FILE", help_heading = "Time",
        conflicts_with_all = ["who", "range", "exact", "sample", "seed"])]
    pub from: Option<PathBuf>,
    /// Moment of the recording, as time since its beginning
    #[arg(long, value_name = "TIME", value_parser = duration::moment, requires = "from", help_heading = "Time")]
    pub at: Option<Duration>,
    /// Compare with FILE: another recording, or a moment of one as FILE@TIME; @TIME is another moment of the same
    /// recording
    #[arg(long, value_name = "FILE", value_parser = recording::recorded_moment, requires = "from",
        conflicts_with = "by", help_heading = "Time")]
    pub against: Option<RecordedMoment>,
    /// Count every page, however long it takes
    #[arg(long, help_heading = "Reading", conflicts_with = "sample")]
    pub exact: bool,
    /// Maximum number of pages to sample, and to count in small mappings
    #[arg(long, value_name = "N", help_heading = "Reading", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub sample: Option<u64>,
    /// Random seed: the sampled pages [default: from the clock, and printed]
    #[arg(long, value_name = "N", help_heading = "Reading")]
    pub seed: Option<u64>,
    /// Print JSON (schema nodewise.maps/1; with --range nodewise.page_runs/1, with --against
    /// nodewise.maps-comparison/1)
    #[arg(long, conflicts_with = "csv", help_heading = "Output")]
    pub json: bool,
    /// Draw an SVG picture into FILE: the mappings by node
    #[arg(long, value_name = "FILE", help_heading = "Output", conflicts_with_all = ["range", "against"])]
    pub svg: Option<Destination>,
    /// Draw a PNG picture into FILE: the mappings by node
    #[arg(long, value_name = "FILE", help_heading = "Output", conflicts_with_all = ["range", "against"])]
    pub png: Option<Destination>,
    /// Print CSV, one line per mapping and node
    #[arg(long, help_heading = "Output")]
    pub csv: bool,
}

/// The rows of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// Heap, stack, anonymous memory, shared memory, files
    Kind,
    /// Each file
    File,
    /// Each policy
    Policy,
}
