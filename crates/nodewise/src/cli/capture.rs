//! `nodewise capture`.

use std::path::PathBuf;

/// Saves this machine's description for inspection elsewhere
///
/// Writes the raw files of /sys, /proc and ACPI that nodewise reads into a directory or an archive,
/// or everything that was read from them into a machine file, by the ending of the name: none,
/// .tar, .tar.gz, .tar.bz2 or .json. Serial numbers, addresses, host and user names stay out.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  nodewise capture -o web7.tar.gz
  nodewise show --machine web7.tar.gz
  ssh web7 nodewise capture -o - > web7.tar
  nodewise capture --machine old.tar.bz2 -o old.json")]
pub struct Capture {
    /// File to write, or directory; - writes a .tar archive to standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Overwrite existing files; a directory that is not empty is never replaced
    #[arg(long)]
    pub force: bool,
    /// Keep what identifies the machine: serial numbers, addresses, host and user names
    #[arg(long)]
    pub with_identity: bool,
}
