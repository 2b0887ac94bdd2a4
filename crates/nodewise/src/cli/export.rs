//! `nodewise export`.

use clap::ValueEnum;

use crate::output::Destination;

/// Writes a machine in the formats that other programs read
///
/// Facts that the machine does not give are left out. docs/export.md says what each format holds, and which programs
/// read it in the tests.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  nodewise export hwloc -o web7.xml         then lstopo --input web7.xml

Exit codes: 0; 2 wrong usage; 3 the machine lacks a fact without which the format says nothing, or FILE cannot be written.")]
pub struct Export {
    /// Format of the output
    #[arg(value_name = "FORMAT")]
    pub format: Format,
    /// File to write, whole or not at all, instead of standard output; replaces an existing file
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<Destination>,
    #[command(flatten)]
    pub supplied: super::Supplied,
}

/// A format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// XML of hwloc 2, for lstopo, Open MPI and every program with hwloc
    Hwloc,
}
