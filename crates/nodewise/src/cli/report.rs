//! `nodewise report`.

use std::path::PathBuf;

use clap::ValueEnum;

use crate::output::Destination;

/// Writes one HTML file about this machine: findings first, then pictures, measurements, and all figures
///
/// The file needs nothing beside it: no network, no server, and no script to be read. Its figures are inside as JSON, and
/// --extract takes them out again.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  nodewise report
  nodewise report --quick -o web7.html
  nodewise report --with doctor,latency,loaded,bandwidth,c2c,io --thorough
  nodewise report --machine capture.tar.gz -o old-server.html
  nodewise report --from latency.json --from bandwidth.json
  nodewise report --quick --against before.html -o after.html
  nodewise report --extract web7.html --into web7

Exit codes: 0 done; 1 done, but something that was asked for could not be measured; 2 wrong usage; 3 the file cannot be \
written.")]
pub struct ReportOptions {
    /// File to write; a file of that name is replaced
    #[arg(short, long, value_name = "FILE", default_value = "nodewise-report.html")]
    pub output: Destination,
    /// Measure less: 60 s in all, also on eight nodes
    #[arg(long, conflicts_with = "thorough", help_heading = "Measuring")]
    pub quick: bool,
    /// Measure with more rounds and samples, however long that takes
    #[arg(long, help_heading = "Measuring")]
    pub thorough: bool,
    /// Pages beside that of the machine: doctor, latency, loaded (latency under load), bandwidth, c2c, io [default: doctor,latency,bandwidth,c2c; of another
    /// machine doctor alone]
    #[arg(
        long,
        value_name = "PAGES",
        value_delimiter = ',',
        hide_possible_values = true,
        help_heading = "Measuring"
    )]
    pub with: Vec<ReportPage>,
    /// Read FILE instead of this machine: a result that a verb wrote with --json, or output of Intel Memory Latency
    /// Checker, STREAM or perf (may be repeated)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["quick", "thorough", "with"], help_heading = "Results from elsewhere")]
    pub from: Vec<PathBuf>,
    /// Compare with FILE, another report: a page of the figures that both have
    #[arg(long, value_name = "FILE", help_heading = "Results from elsewhere")]
    pub against: Option<PathBuf>,
    /// Write the JSON documents that are in REPORT, a file for each
    #[arg(long, value_name = "REPORT", conflicts_with_all = ["output", "quick", "thorough", "with", "from", "against"],
        help_heading = "Results from elsewhere")]
    pub extract: Option<PathBuf>,
    /// Directory for the documents; it is made where it is missing, and no file in it is replaced
    #[arg(
        long,
        value_name = "DIR",
        requires = "extract",
        default_value = ".",
        hide_default_value = true,
        help_heading = "Results from elsewhere"
    )]
    pub into: PathBuf,
}

/// A page that a report can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum ReportPage {
    Doctor,
    Latency,
    Loaded,
    Bandwidth,
    C2c,
    Io,
}

impl ReportPage {
    /// Those without `--with`, on the running machine.
    pub const USUAL: [Self; 4] = [Self::Doctor, Self::Latency, Self::Bandwidth, Self::C2c];

    /// Its name in a report, and in the name of its document.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Doctor => "doctor",
            Self::Latency => "latency",
            Self::Loaded => "loaded",
            Self::Bandwidth => "bandwidth",
            Self::C2c => "c2c",
            Self::Io => "io",
        }
    }
}
