//! `nodewise tune`.

use std::ffi::OsString;

/// Runs a program under many placements and says which is best
///
/// Every round runs the program once under each placement, in an order drawn anew, and twice under
/// the default: the difference between those two is this machine's noise. A placement that is worse
/// than another beyond doubt drops out; the rest go on until one is known to be within 2 % of the
/// best. A placement is called faster only when the interval, the test and the noise agree. Without
/// a program a built-in workload is tuned. A program reads an empty input, and its output is kept aside. Ctrl-C ends the study with the
/// results so far.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "\
Examples:
  nodewise tune -- ./solver input.dat
  nodewise tune --placement 'cpunodebind=0 membind=0' -- ./bench
  nodewise tune --metric 'Triad: +([0-9.]+)' --higher-is-better -- ./stream
  nodewise tune --time 10m --json -- make -j8 > study.json
  nodewise tune --emit systemd -- /usr/sbin/server --benchmark

Exit codes: 0 when there is a result, also after Ctrl-C; 2 wrong usage; 3 when the program fails \
without any placement too.",
    override_usage = "nodewise tune [OPTIONS] [--] [PROGRAM [ARGUMENT]...]"
)]
pub struct Tune {
    /// A placement to try, as options of `nodewise run` separated by blanks (dashes can be left out);
    /// may be repeated [default: every one that makes sense here]
    #[arg(long, value_name = "P", allow_hyphen_values = true)]
    pub placement: Vec<String>,
    /// Rounds to run at most [default: 40, or as many as --time allows; 10 with --no-race]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: Option<u32>,
    /// Run every placement in every round, also those that are worse beyond doubt
    #[arg(long)]
    pub no_race: bool,
    /// Time to spend at most, as 90s, 10m or 2h
    #[arg(long, value_name = "BUDGET")]
    pub time: Option<String>,
    /// What to compare: wall (time from start to end), or a regular expression with one group,
    /// which is a number that the program prints (the last match counts) [default: wall]
    #[arg(long, value_name = "wall|REGEX", default_value = "wall", hide_default_value = true)]
    pub metric: String,
    /// More of the metric is better
    #[arg(long)]
    pub higher_is_better: bool,
    /// End a run that takes longer than this, as 500ms, 90s or 10m, and count it as failed
    #[arg(long, value_name = "TIME")]
    pub run_limit: Option<String>,
    /// Seed of the order of runs; the same seed gives the same order [default: from the clock, and
    /// printed]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Write the best placement in the words of another tool too, as `nodewise run --emit` does
    #[arg(long, value_name = "TOOL")]
    pub emit: Option<String>,
    /// Print every sample and the circumstances as JSON
    #[arg(long)]
    pub json: bool,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, value_name = "PROGRAM")]
    pub command: Vec<OsString>,
}
