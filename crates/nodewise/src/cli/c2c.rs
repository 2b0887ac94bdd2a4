//! `nodewise c2c`.

use std::path::PathBuf;

use nodewise_machine::printable::quote;
use nodewise_measure::c2c::Transfer;

use super::measure_options::MeasureOptions;

/// Measures the time to transfer a cache line between two CPUs
///
/// Three things for every pair of CPUs, both ways: handing over a line that both write (half a round trip),
/// loading lines that the other CPU has written (dirty), and lines that it has only read (clean). The memory of
/// the lines is on the node of either CPU, or elsewhere. Pairs are grouped by what they share: a core, a
/// cluster, a cache, a node, a package. On a large machine a sample of CPUs is measured.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  nodewise c2c                          all kinds of pairs
  nodewise c2c --cpus 0-7               all pairs of these CPUs
  nodewise c2c --transfer dirty --svg cores.svg
  nodewise c2c --json > cores.json      to draw later, with --from

Exit codes: 0 when there are figures, also after Ctrl-C; 2 wrong usage; 3 when no pair could be \
measured.")]
pub struct C2c {
    #[command(flatten)]
    pub measure: MeasureOptions,
    /// Transfers to time: hand-over, dirty, clean, or several with commas [default: all]
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        value_parser = transfer,
        help_heading = "Measuring"
    )]
    pub transfer: Vec<Transfer>,
    /// Read FILE instead of this machine: a result of --json; measures nothing
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["quick", "thorough", "cpus", "nodes", "seed", "transfer"],
        help_heading = "Output"
    )]
    pub from: Option<PathBuf>,
}

fn transfer(text: &str) -> Result<Transfer, String> {
    Transfer::from_name(text).ok_or_else(|| {
        let names: Vec<&str> = Transfer::ALL.into_iter().map(Transfer::name).collect();
        format!("{} is not a transfer: expected {}", quote(text), names.join(", "))
    })
}
