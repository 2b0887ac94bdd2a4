//! `nodewise tune`.

use std::ffi::OsString;

/// Runs a program under many placements and says which is best
///
/// Every round runs the program once under each placement, in an order drawn anew, and twice under
/// the default: the difference between those two is this machine's noise. A placement is called
/// faster only when the interval, the test and the noise agree. Without a command a built-in
/// workload is tuned.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  nodewise tune -- ./solver input.dat
  nodewise tune --placement 'interleave=all' --placement 'cpunodebind=0 membind=0' -- ./server-test
  nodewise tune --metric 'Triad: +([0-9.]+)' --higher-is-better -- ./stream
  nodewise tune --time 10m --json -- make -j8 > study.json")]
pub struct Tune {
    /// A placement to try, as options of `nodewise run` without the dashes, separated by blanks;
    /// may be repeated [default: every one that makes sense here]
    #[arg(long, value_name = "P")]
    pub placement: Vec<String>,
    /// Rounds to run
    #[arg(long, value_name = "N")]
    pub runs: Option<u32>,
    /// Time to spend at most, as 90s, 10m or 2h
    #[arg(long, value_name = "BUDGET")]
    pub time: Option<String>,
    /// What to compare: wall (seconds), or a regular expression whose first group is a number that
    /// the program prints
    #[arg(long, value_name = "wall|REGEX", default_value = "wall")]
    pub metric: String,
    /// More of the metric is better
    #[arg(long)]
    pub higher_is_better: bool,
    /// End a run that takes longer than this
    #[arg(long, value_name = "TIME")]
    pub run_limit: Option<String>,
    /// Seed of the order of runs [default: from the clock, and printed]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Print every sample and the circumstances as JSON
    #[arg(long)]
    pub json: bool,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, value_name = "PROGRAM")]
    pub command: Vec<OsString>,
}
