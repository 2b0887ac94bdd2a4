//! `nodewise latency`.

use std::path::PathBuf;

use nodewise_machine::Bytes;

use super::measure_options::MeasureOptions;

/// Measures what a load from each node's memory costs, from the CPUs of each node
///
/// One load waits for the one before: a chain leads through a buffer in random order, in huge pages
/// and in small ones; the difference is what looking up pages costs. Where the pages are is asked of
/// the kernel before and after. Samples of all cells are interleaved; a cell shows the median of its
/// rounds with a 95% interval, and the best sample. Ctrl-C ends it with the figures so far.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  nodewise latency                         every node to every node
  nodewise latency --quick --svg heat.svg  and as a picture
  nodewise latency --nodes 0,1 --huge 2M   huge pages from the pool
  nodewise latency --sweep                 caches, found by measuring
  nodewise latency --table                 sizes and strides, local and remote
  nodewise latency --json > before.json    to draw later, with --from

Exit codes: 0 when there are figures, also after Ctrl-C; 2 wrong usage; 3 when no cell could be \
measured.")]
pub struct Latency {
    #[command(flatten)]
    pub measure: MeasureOptions,
    /// Size of each buffer, as 256M [default: four times the last-level cache, 64M to 512M]
    #[arg(long, value_name = "SIZE", help_heading = "Measuring")]
    pub size: Option<Bytes>,
    /// Measure sizes from 4K on instead of nodes: the staircase of caches, and the caches it shows
    #[arg(long, conflicts_with_all = ["size", "from"], help_heading = "Measuring")]
    pub sweep: bool,
    /// Measure a table of sizes and ways instead: in random order, and in steps of 1, 32 and 64
    /// elements of 8 bytes, local and remote
    #[arg(long, conflicts_with_all = ["sweep", "size", "from"], help_heading = "Measuring")]
    pub table: bool,
    /// Sizes of the table, or the largest one of the sweep [default: 2K,8K,32K,128K,512K,2M,8M,32M,128M]
    #[arg(long, value_name = "SIZES", value_delimiter = ',', help_heading = "Measuring")]
    pub sizes: Vec<Bytes>,
    /// Print a result that --json has written instead of measuring
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["quick", "thorough", "huge", "cpus", "nodes", "seed", "size"],
        help_heading = "Output"
    )]
    pub from: Option<PathBuf>,
}
