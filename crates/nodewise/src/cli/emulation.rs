//! `nodewise emulation`.

use std::path::PathBuf;

use clap::Subcommand;
use nodewise_machine::{Bytes, KernelRelease};

/// Emulates NUMA nodes: status, plan, enable, disable, undo, verify
///
/// A kernel that is started with numa=fake= cuts memory into nodes. On boards with one memory
/// controller, such as a Raspberry Pi 4 or 5, interleaving over them keeps more banks of the memory
/// busy; elsewhere they serve for tests.
#[derive(Debug, clap::Args)]
#[command(
    subcommand_value_name = "WHAT",
    subcommand_help_heading = "Verbs",
    after_help = "\
Examples:
  nodewise emulation status
  nodewise emulation plan --count 4
  nodewise emulation enable --count 4 --dry-run
  nodewise emulation verify --against before.json"
)]
pub struct Emulation {
    #[command(subcommand)]
    pub kind: EmulationStep,
}

/// A step of emulation.
#[derive(Debug, Subcommand)]
pub enum EmulationStep {
    /// Shows the kernel's support, the requested emulation, and the active one
    Status(Status),
    /// Shows the nodes that a kernel would make: ranges, CPUs, distances, fallback orders
    Plan(Plan),
    /// Enables emulation at the next boot, in the boot loader's files
    Enable(Enable),
    /// Disables emulation at the next boot
    Disable(Disable),
    /// Undoes the last change of the boot loader's files, byte for byte
    Undo(Undo),
    /// Checks that the requested emulation works
    Verify(Verify),
}

/// How memory is to be cut.
#[derive(Clone, Copy, Debug, clap::Args)]
#[group(id = "cut", multiple = false)]
pub struct Cut {
    /// Number of nodes [default: on a Raspberry Pi 4 two, on a Raspberry Pi 5 eight]
    #[arg(long = "count", alias = "nodes", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub nodes: Option<u32>,
    /// Size of each node
    #[arg(long = "node-size", alias = "size", value_name = "SIZE", value_parser = super::size)]
    pub size: Option<Bytes>,
    /// Number of nodes per hardware node
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub per_node: Option<u32>,
}

/// Where boot files are, and whether they are to be written.
#[derive(Clone, Debug, clap::Args)]
pub struct Target {
    /// Directory to use as /, such as a mounted image
    #[arg(long, value_name = "DIR", default_value = "/", hide_default_value = true)]
    pub root: PathBuf,
    /// Read to be refused: boot files are those of this system or of --root
    #[arg(long, value_name = "M", hide = true)]
    pub machine: Option<String>,
    /// Show what would be done, without doing it: the changes to files
    #[arg(long)]
    pub dry_run: bool,
    /// Print JSON (schema nodewise.emulation-change/1)
    #[arg(long)]
    pub json: bool,
}

/// Options of `status`.
#[derive(Debug, clap::Args)]
pub struct Status {
    /// Directory to use as /, whose boot files are shown
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Print JSON (schema nodewise.emulation-status/1)
    #[arg(long)]
    pub json: bool,
}

/// Options of `plan`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  nodewise emulation plan --count 8 --machine \"(4c 8G); arch=aarch64\"
  nodewise emulation plan --per-node 2 --kernel 6.1
  nodewise emulation plan --count 2 --distances 10,30,30,10 --machine \"1x(4c 8G)\"")]
pub struct Plan {
    #[command(flatten)]
    pub cut: Cut,
    /// Distances between the emulated nodes, row by row [default: those of the hardware nodes]
    #[arg(long, value_name = "D00,D01,...", value_delimiter = ',', value_parser = clap::value_parser!(u8).range(10..))]
    pub distances: Vec<u8>,
    /// Kernel release to model, such as 6.18
    #[arg(long, value_name = "R", value_parser = super::explain::release)]
    pub kernel: Option<KernelRelease>,
    /// Print JSON (schema nodewise.emulation-plan/1)
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub supplied: super::Supplied,
}

/// Options of `enable`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  nodewise emulation enable --count 4 --dry-run
  nodewise emulation enable --count 8 --root /mnt/image

Changed are cmdline.txt of a Raspberry Pi, or /etc/default/grub, /etc/kernel/cmdline and the entries of \
a boot loader. The old file is kept beside each; undo brings it back.")]
pub struct Enable {
    #[command(flatten)]
    pub cut: Cut,
    /// Default policy of Raspberry Pi kernels; none removes it [default: interleave on a
    /// Raspberry Pi, elsewhere as it is]
    #[arg(long, value_name = "POLICY")]
    pub policy: Option<String>,
    /// Set SDRAM_BANKLOW in the EEPROM of a Raspberry Pi 4 or 5, from 0 to 4, with rpi-eeprom-config
    #[arg(long, value_name = "BITS", value_parser = clap::value_parser!(u8).range(0..=4))]
    pub banklow: Option<u8>,
    #[command(flatten)]
    pub target: Target,
}

/// Options of `disable`.
#[derive(Debug, clap::Args)]
pub struct Disable {
    #[command(flatten)]
    pub target: Target,
}

/// Options of `undo`.
#[derive(Debug, clap::Args)]
pub struct Undo {
    #[command(flatten)]
    pub target: Target,
}

/// Options of `verify`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes: 0 it works, 1 it does not.")]
pub struct Verify {
    /// Compare with FILE, the state before the change: output of nodewise show --json, or of nodewise compare
    /// --save
    #[arg(long, value_name = "FILE")]
    pub against: Option<String>,
    /// Print JSON (schema nodewise.emulation-verify/1)
    #[arg(long)]
    pub json: bool,
}
