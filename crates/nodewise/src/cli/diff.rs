//! `nodewise diff`.

/// Compares two machines, or two moments of one, fact by fact
///
/// A fact that only one side knows is not a difference; it is listed. Facts that change by themselves, such as free
/// memory, are left out unless --all is given.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  nodewise diff before.json                    what changed on this machine since then
  nodewise diff web7.tar.gz web8.tar.gz
  nodewise diff web7.json web7-new.json --json
  nodewise diff \"2x(8c 64G)\" live --all

Exit codes: 0 no difference; 1 differences; 2 wrong usage, or a machine that cannot be read.")]
pub struct Diff {
    /// First machine, as --machine takes it: live, a machine file, a capture, tables of the firmware, an output of
    /// another tool, or a spec
    #[arg(value_name = "A")]
    pub a: String,
    /// Second machine [default: this machine, or that of --machine]
    #[arg(value_name = "B")]
    pub b: Option<String>,
    /// Show everything: facts that change by themselves, too, and each line and name of long lists
    #[arg(long)]
    pub all: bool,
    /// Keep what identifies the machine: the values of all boot parameters; otherwise those that can identify it are
    /// left out, as in a capture
    #[arg(long)]
    pub with_identity: bool,
    /// Print JSON (schema nodewise.diff/1)
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// Print CSV, one line per differing fact and node, CPU or device that it is about
    #[arg(long)]
    pub csv: bool,
}
