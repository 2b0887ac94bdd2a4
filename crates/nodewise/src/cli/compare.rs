//! `nodewise compare`.

use std::path::PathBuf;

use clap::ArgGroup;

use crate::output::Destination;

/// Runs a suite of benchmarks before and after a change and compares the results
///
/// A suite is run and saved; then anything is changed (a kernel parameter, firmware, a policy, a reboot); then
/// it is run again against what was saved. Or several placements are compared in one run. Every round runs each
/// benchmark twice, in a new random order: the difference between the two is this machine's noise. A change is
/// reported only when the interval, the test over all rows and the noise agree. The geometric mean follows the
/// rows. Benchmarks that are not installed are named and skipped. Ctrl-C ends it with the results so far, which
/// are saved too.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "\
Examples:
  nodewise compare --suite board --list
  nodewise compare --suite board --save before.json
  nodewise compare --suite board --against before.json --svg change.svg
  nodewise compare --suite my.toml --placements default,interleave=all
  nodewise compare --before before.json --after after.json

Exit codes: 0 done, also after Ctrl-C; 1 a benchmark became slower; 2 wrong usage; 3 no benchmark \
can be run here.",
    override_usage = "nodewise compare [OPTIONS] --suite <NAME|FILE>
       nodewise compare --before <FILE> --after <FILE>",
    group = ArgGroup::new("what").args(["suite", "before"]).required(true)
)]
pub struct Compare {
    /// Suite: board, server, or your own TOML file
    #[arg(long, value_name = "NAME|FILE")]
    pub suite: Option<String>,
    /// Save into FILE: the results, as JSON
    #[arg(long, value_name = "FILE", requires = "suite")]
    pub save: Option<Destination>,
    /// Compare with FILE: results of --save
    #[arg(long, value_name = "FILE", requires = "suite", conflicts_with = "placements")]
    pub against: Option<PathBuf>,
    /// Compare these placements with the first of them in one run: options of nodewise run without
    /// dashes, with commas between placements, such as default,interleave=all
    #[arg(long, value_name = "LIST", requires = "suite")]
    pub placements: Option<String>,
    /// Results saved before the change; runs nothing
    #[arg(long, value_name = "FILE", requires = "after", conflicts_with = "suite")]
    pub before: Option<PathBuf>,
    /// Results saved after the change
    #[arg(long, value_name = "FILE", requires = "before")]
    pub after: Option<PathBuf>,
    /// Benchmark of the suite, instead of all (may be repeated)
    #[arg(long = "benchmark", alias = "only", value_name = "NAME")]
    pub only: Vec<String>,
    /// List the benchmarks and what is missing here
    #[arg(long, requires = "suite", conflicts_with_all = ["source", "csv", "svg", "png", "install"], help_heading = "Suites")]
    pub list: bool,
    /// Print a file that comes with nodewise: the suite
    #[arg(long, requires = "suite", conflicts_with_all = ["json", "csv", "svg", "png", "install"], help_heading = "Suites")]
    pub source: bool,
    /// Install missing Debian packages with apt-get, as root; removes nothing
    #[arg(long, requires = "suite", help_heading = "Suites")]
    pub install: bool,
    /// Rounds to run, at most 200; each runs every benchmark twice [default: 7; with --placements as many as the
    /// rows need]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=200), help_heading = "Measuring")]
    pub runs: Option<u32>,
    /// Time limit, such as 90s, 30m or 2h
    #[arg(long, value_name = "TIME", help_heading = "Measuring")]
    pub time: Option<String>,
    /// Measure less: three rounds for a first look, too few to show a difference
    #[arg(long, conflicts_with = "runs", help_heading = "Measuring")]
    pub quick: bool,
    /// Random seed: the order of runs [default: from the clock, and printed]
    #[arg(long, value_name = "N", help_heading = "Measuring")]
    pub seed: Option<u64>,
    /// Print JSON: the comparison, every sample where there is none, or what --list lists
    #[arg(long, conflicts_with = "csv", help_heading = "Output")]
    pub json: bool,
    /// Print CSV, one line per row, or per sample without a comparison
    #[arg(long, help_heading = "Output")]
    pub csv: bool,
    /// Draw an SVG picture into FILE: the comparison
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub svg: Option<Destination>,
    /// Draw a PNG picture into FILE: the comparison
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub png: Option<Destination>,
}
