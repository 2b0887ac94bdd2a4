//! The personalities as verbs, and `nodewise links`.

use std::ffi::OsString;
use std::path::PathBuf;

/// The words of a personality, which reads them itself.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub struct Words {
    /// Arguments of the tool
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORD")]
    pub words: Vec<OsString>,
}

/// Creates links named numactl, numastat, migratepages, migspeed and memhog in a directory
///
/// Called by one of these names, nodewise behaves as that tool.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  nodewise links /usr/local/bin
  nodewise links ~/bin --force

Exit codes: 0 done, 2 wrong usage, 3 a link could not be made.")]
pub struct Links {
    /// Directory for the links
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Overwrite existing files, those of these names
    #[arg(long)]
    pub force: bool,
}
