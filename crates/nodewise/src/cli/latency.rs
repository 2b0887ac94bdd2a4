//! `nodewise latency`.

use std::path::PathBuf;

use nodewise_machine::id::Id as _;
use nodewise_machine::{Bytes, NodeId};
use nodewise_measure::kernel::bandwidth::Kernel;

use super::measure_options::{MeasureOptions, PageOptions};

/// Measures memory latency from the CPUs of each node to the memory of each node
///
/// One load waits for the one before: a chain leads through a buffer in random order, in huge pages and in
/// small ones; the difference is the cost of address translation. The kernel confirms the node of every page
/// before and after. Samples of all cells are interleaved; a cell shows the median of its rounds with a 95%
/// interval, and the best sample. Ctrl-C ends it with the figures so far.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  nodewise latency                         every node to every node
  nodewise latency --quick --svg heat.svg  and as a picture
  nodewise latency --nodes 0,1 --huge-pages 2M
                                           huge pages from the pool
  nodewise latency --sweep                 caches, found by measuring
  nodewise latency --table                 sizes and strides, local and remote
  nodewise latency --loaded                against the bandwidth that others use
  nodewise latency --loaded --chase 0:0 --traffic 1:0
                                           and that of another node's CPUs
  nodewise latency --json > before.json    to draw later, with --from

Exit codes: 0 when there are figures, also after Ctrl-C; 2 wrong usage; 3 when no cell could be \
measured.")]
pub struct Latency {
    #[command(flatten)]
    pub measure: MeasureOptions,
    #[command(flatten)]
    pub pages: PageOptions,
    /// Size of memory: each buffer, such as 256M; with --loaded, the chase and the traffic [default: four times the
    /// last-level cache, 64M to 512M]
    #[arg(long, value_name = "SIZE", help_heading = "Measuring", value_parser = super::size)]
    pub size: Option<Bytes>,
    /// Measure sizes from 4K on instead of nodes: the staircase of caches, and the caches it shows
    #[arg(long, conflicts_with_all = ["size", "from"], help_heading = "Measuring")]
    pub sweep: bool,
    /// Measure a table of sizes and ways instead: in random order, and in steps of 1, 32 and 64
    /// elements of 8 bytes, local and remote
    #[arg(long, conflicts_with_all = ["sweep", "size", "from"], help_heading = "Measuring")]
    pub table: bool,
    /// Sizes of the table, or the largest one of the sweep [default: 2K,8K,32K,128K,512K,2M,8M,32M,128M]
    #[arg(long, value_name = "SIZES", value_delimiter = ',', help_heading = "Measuring", value_parser = super::size)]
    pub sizes: Vec<Bytes>,
    /// Measure while other CPUs move data, with shorter and shorter pauses: latency against bandwidth,
    /// and the knee
    #[arg(long, conflicts_with_all = ["sweep", "table", "sizes", "from"], help_heading = "Under load")]
    pub loaded: bool,
    /// Nodes of the chase, CPU:memory, such as 0:1 [default: the first node with its own memory, and with the
    /// farthest]
    #[arg(long, value_name = "NODE:NODE", requires = "loaded", value_parser = pair, help_heading = "Under load")]
    pub chase: Option<(NodeId, NodeId)>,
    /// Nodes of the traffic, CPUs:memory [default: those of the chase]
    #[arg(long, value_name = "NODE:NODE", requires = "loaded", value_parser = pair, help_heading = "Under load")]
    pub traffic: Option<(NodeId, NodeId)>,
    /// Operations of the traffic, named as in nodewise bandwidth [default: read,2:1,1:1,copy-NT]
    #[arg(
        long,
        value_name = "NAMES",
        requires = "loaded",
        value_delimiter = ',',
        value_parser = super::bandwidth::kernel,
        help_heading = "Under load"
    )]
    pub mix: Vec<Kernel>,
    /// Pauses after each 4 KiB, ns [default: 19 of them, from 0 to 20000]
    #[arg(
        long,
        value_name = "NS",
        requires = "loaded",
        value_delimiter = ',',
        value_parser = clap::value_parser!(u32).range(..=MOST_PAUSE),
        help_heading = "Under load"
    )]
    pub pauses: Vec<u32>,
    /// Read FILE instead of this machine: a result of --json, or output of Intel Memory Latency Checker; measures
    /// nothing
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["quick", "thorough", "huge", "cpus", "nodes", "seed", "size"],
        help_heading = "Output"
    )]
    pub from: Option<PathBuf>,
}

/// The longest pause, ns: a burst takes four of them.
const MOST_PAUSE: i64 = 1_000_000;

/// Two nodes: that of the CPUs, and that of the memory.
fn pair(text: &str) -> Result<(NodeId, NodeId), String> {
    let both = text.split_once(':').and_then(|(cpus, memory)| Some((node(cpus)?, node(memory)?)));
    both.ok_or_else(|| {
        format!(
            "{} is not a pair of nodes: expected CPUs:memory, such as 0:1",
            nodewise_machine::printable::quote(text)
        )
    })
}

fn node(text: &str) -> Option<NodeId> {
    let number: u32 = text.parse().ok()?;
    (number < NodeId::LIMIT).then(|| NodeId::new(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_is_two_nodes_with_a_colon() {
        let pair_of = |cpus, memory| Ok((NodeId::new(cpus), NodeId::new(memory)));
        assert_eq!(pair("0:1"), pair_of(0, 1));
        assert_eq!(pair("12:0"), pair_of(12, 0));
        for text in ["", "0", "0:", ":1", "0:1:2", "a:b", "0:-1", "0:99999999999", "0:4000000000"] {
            let refused = pair(text).unwrap_err();
            assert!(
                refused.ends_with("is not a pair of nodes: expected CPUs:memory, such as 0:1"),
                "{refused}"
            );
        }
    }
}
