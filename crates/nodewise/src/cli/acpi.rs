//! `nodewise acpi`.

use std::path::PathBuf;

use nodewise_machine::KernelRelease;

use crate::output::Destination;

/// Shows the firmware's tables of nodes (SRAT, SLIT, HMAT, CEDT, MSCT) and how Linux reads them
///
/// Without files the tables are those of this machine (open to root only), or those of the
/// machine that --machine names: a capture, or acpi:DIR. With --machine acpi:DIR every other verb
/// works on the machine that Linux would build from the tables.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sudo nodewise acpi
  nodewise acpi --write tables --initrd tables.cpio --machine \"2x(4c 8G); dist=21\"
  sudo nodewise acpi --write tables --initrd tables.cpio --target live --machine web7.tar.gz
  nodewise acpi acpidump.txt --ram iomem.txt
  nodewise acpi SRAT.dat SLIT.dat --json
  nodewise show --machine acpi:/sys/firmware/acpi/tables

Exit codes: 0 done, 1 a table is wrong or Linux rejects it, 2 wrong usage, 3 this \
machine has no tables, they cannot be read, or none can be written.")]
pub struct Acpi {
    /// Tables as binary files or as text of acpidump, or a directory of such files
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Map of RAM, which the tables do not give: a copy of /proc/iomem, or of the log's BIOS-e820 lines
    ///
    /// Without it: what this machine or the capture says, or the file iomem in the folder of the tables. With
    /// it, RAM that no table covers is reported, and tables that Linux accepts but cannot boot with.
    #[arg(long, value_name = "FILE")]
    pub ram: Option<PathBuf>,
    /// Write SRAT, SLIT and HMAT of the machine that --machine names into this directory; no file in it is replaced
    ///
    /// The machine may be any: a spec, a capture, live. The tables are for the hardware of --target, and shown as Linux
    /// reads them there.
    #[arg(long, value_name = "DIR", conflicts_with = "files", help_heading = "Writing")]
    pub write: Option<PathBuf>,
    /// Hardware that is to boot with the tables: live, a capture, or acpi:DIR [default: a virtual PC as large as the
    /// machine]
    ///
    /// The tables name its CPUs and addresses, and take the place of its own. The virtual PC is QEMU's q35.
    #[arg(
        long,
        value_name = "MACHINE",
        requires = "write",
        conflicts_with = "files",
        help_heading = "Writing"
    )]
    pub target: Option<String>,
    /// Archive with the tables to write, which goes in front of an initial file system (initrd); replaces an existing
    /// file
    #[arg(long, value_name = "FILE", requires = "write", conflicts_with = "files", help_heading = "Writing")]
    pub initrd: Option<Destination>,
    /// Kernel release to model, such as 6.18
    #[arg(long, value_name = "R", value_parser = super::explain::release)]
    pub kernel: Option<KernelRelease>,
    /// Print JSON, with every field (schema nodewise.acpi/1)
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// Print CSV, one line per field of a table
    #[arg(long)]
    pub csv: bool,
}
