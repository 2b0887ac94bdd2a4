//! `nodewise acpi`.

use std::path::PathBuf;

use nodewise_machine::KernelRelease;

/// Shows what the firmware says of nodes: SRAT, SLIT, HMAT, CEDT and MSCT, and what Linux makes of it
///
/// Without files the tables are those of this machine (open to root only), or those of the
/// machine that --machine names: a capture, or acpi:DIR. With --machine acpi:DIR every other verb
/// takes the machine that Linux would make of the tables.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sudo nodewise acpi
  nodewise acpi acpidump.txt --ram iomem.txt
  nodewise acpi SRAT.dat SLIT.dat --json
  nodewise show --machine acpi:/sys/firmware/acpi/tables

Exit codes: 0 done, 1 something is wrong with a table or Linux rejects it, 2 wrong usage, 3 this \
machine has no tables or they cannot be read.")]
pub struct Acpi {
    /// Tables as the firmware has them, or as text of acpidump; or a folder of such files
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Where RAM is, which the tables do not say: a copy of /proc/iomem, or of the log's BIOS-e820 lines
    ///
    /// Without it: what this machine or the capture says, or the file iomem in the folder of the tables. It
    /// tells RAM that no table covers, and tables that Linux accepts and does not boot with.
    #[arg(long, value_name = "FILE")]
    pub ram: Option<PathBuf>,
    /// What a kernel of this release makes of the tables, as 6.18
    #[arg(long, value_name = "R", value_parser = super::explain::release)]
    pub kernel: Option<KernelRelease>,
    /// Print JSON with every field (schema nodewise.acpi/1)
    #[arg(long)]
    pub json: bool,
}
