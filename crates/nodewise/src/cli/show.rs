//! `nodewise show`.

use crate::output::Destination;

/// Shows where memory is: nodes, CPUs, memory slots, distances, caches, devices, settings
///
/// Text is fitted to the terminal (or to COLUMNS). Oddities of the machine come last.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("picture").args(["svg", "png"]).multiple(true))]
#[command(group = clap::ArgGroup::new("facts").args(["json", "csv"]))]
#[command(after_help = "\
Examples:
  nodewise show
  nodewise show --json > this.json          a machine file for --machine
  nodewise show --svg machine.svg --caches
  nodewise show --machine capture.tar.gz
  nodewise show --machine \"2x(10c2t 64G); dist=21\"")]
pub struct Show {
    /// Print JSON, a machine file with all known facts (schema nodewise.machine/1)
    #[arg(long, conflicts_with_all = ["svg", "png"])]
    pub json: bool,
    /// Print CSV, one line per fact and node, CPU or device that it is about, named as in diff --csv
    #[arg(long, conflicts_with_all = ["svg", "png"])]
    pub csv: bool,
    /// Keep what identifies the machine: every boot parameter in JSON and CSV; otherwise those that can identify it are
    /// left out, as in a capture
    #[arg(long, requires = "facts")]
    pub with_identity: bool,
    /// Draw an SVG picture into FILE: the machine, instead of the text; replaces an existing file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<Destination>,
    /// Draw a PNG picture into FILE: the machine, instead of the text; replaces an existing file
    #[arg(long, value_name = "FILE")]
    pub png: Option<Destination>,
    /// List the caches of all levels in the picture, not only the last-level ones
    #[arg(long, requires = "picture")]
    pub caches: bool,
    #[command(flatten)]
    pub supplied: super::Supplied,
}
