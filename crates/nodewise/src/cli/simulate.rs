//! `nodewise simulate`.

use nodewise_machine::KernelRelease;

use crate::output::Destination;

/// Simulates programs that allocate memory over time, and shows the node of each allocation
///
/// Nothing is allocated: a model of the kernel's allocator plays the scenario, which is a file (grammar in
/// docs/simulate.md) or one of the scenarios that come with nodewise.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Scenarios: database, database-interleaved, jvm, hpc, pi5, cxl, pods, fork,
  calls

Examples:
  nodewise simulate database
  nodewise simulate scenario.toml --machine capture.tar.gz
  nodewise simulate cxl --svg cxl.svg
  nodewise simulate hpc --zones
  nodewise simulate database --source > mine.toml")]
pub struct Simulate {
    /// A file, or the name of a scenario that comes with nodewise
    #[arg(value_name = "SCENARIO")]
    pub scenario: String,
    /// Kernel release to model, such as 6.18
    #[arg(long, value_name = "R", value_parser = super::explain::release)]
    pub kernel: Option<KernelRelease>,
    /// Print a file that comes with nodewise: the scenario
    #[arg(long, conflicts_with_all = ["json", "csv", "svg", "png"])]
    pub source: bool,
    /// Show zones and counters after every step
    #[arg(long, conflicts_with_all = ["json", "csv", "svg", "png", "source"])]
    pub zones: bool,
    /// Print JSON (schema nodewise.simulation/2)
    #[arg(long, conflicts_with_all = ["csv", "svg", "png"])]
    pub json: bool,
    /// Print CSV, one line per step and per node that it changed
    #[arg(long, conflicts_with_all = ["svg", "png"])]
    pub csv: bool,
    /// Draw an SVG picture into FILE: the nodes over time, instead of the text
    #[arg(long, value_name = "FILE")]
    pub svg: Option<Destination>,
    /// Draw a PNG picture into FILE: the nodes over time, instead of the text
    #[arg(long, value_name = "FILE")]
    pub png: Option<Destination>,
    #[command(flatten)]
    pub supplied: super::Supplied,
}
