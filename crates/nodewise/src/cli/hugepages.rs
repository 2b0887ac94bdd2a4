//! `nodewise hugepages`.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};
use nodewise_machine::Bytes;

/// Shows huge page pools per node; sets them and reports what the kernel allocated
///
/// Without a verb it shows each pool with its total, free and surplus pages, and the pages that fit into free blocks
/// now.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_value_name = "VERB",
    subcommand_help_heading = "Verbs",
    after_help = "\
Examples:
  nodewise hugepages
  nodewise hugepages set 0=512,1=512
  nodewise hugepages set --huge-page-size 1G total=8 --all-or-nothing
  nodewise hugepages undo
  nodewise hugepages persist 0=512,1=512 --dry-run

Exit codes: 0 done; 1 fewer pages than requested; 2 wrong usage; 3 no pools, or no permission to set them."
)]
pub struct HugePages {
    #[command(flatten)]
    pub show: Show,
    #[command(subcommand)]
    pub kind: Option<PoolAction>,
}

/// A step.
#[derive(Debug, Subcommand)]
pub enum PoolAction {
    /// Sets the pools of some nodes, reads back what the kernel allocated, and compacts memory if that is less
    Set(Set),
    /// Restores the pools as they were before the last change
    Undo(Undo),
    /// Reserves huge pages at every boot, through the kernel's command line or systemd
    Persist(Persist),
}

/// Options of showing.
#[derive(Debug, clap::Args)]
pub struct Show {
    /// Print JSON (schema nodewise.hugepages/1)
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// Print CSV, one line per node and page size
    #[arg(long)]
    pub csv: bool,
}

/// Options of every change.
#[derive(Debug, clap::Args)]
#[command(arg(hidden_machine()))]
pub struct Changing {
    /// Journal in FILE: the old values of settings [default: settings.journal in /var/lib/nodewise, or in
    /// $XDG_STATE_HOME/nodewise if not root]
    #[arg(long, value_name = "FILE")]
    pub journal: Option<PathBuf>,
    /// Show what would be done, without doing it: the values to write
    #[arg(long)]
    pub dry_run: bool,
    /// Print JSON (schema nodewise.hugepages-change/1)
    #[arg(long)]
    pub json: bool,
}

/// The global `--machine`, hidden: a change refuses it, and says why.
fn hidden_machine() -> clap::Arg {
    clap::Arg::new("machine").long("machine").value_name("M").hide(true)
}

/// Options of `set`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  nodewise hugepages set 0=512,1=512
  nodewise hugepages set 0-3=128 --dry-run
  nodewise hugepages set total=1024          in proportion to the memory of the nodes
  nodewise hugepages set all=0

The kernel reports success even if it finds fewer pages than requested. The node's memory is then compacted and the \
value written again, up to three times. The page cache is never dropped.

Exit codes: 0 as many pages as requested, 1 fewer or more, 2 wrong usage, 3 no pools, or no permission to set them.")]
pub struct Set {
    /// Pages per node: 0=512,1=512, 0-3=128, all=64, or total=1024 divided by the memory of the nodes
    #[arg(value_name = "NODES=PAGES")]
    pub pages: String,
    /// Size of a huge page, such as 2M [default: the kernel's default size]
    #[arg(long, alias = "size", value_name = "SIZE", value_parser = super::size)]
    pub huge_page_size: Option<Bytes>,
    /// Restore the pools if the kernel cannot provide every page
    #[arg(long)]
    pub all_or_nothing: bool,
    #[command(flatten)]
    pub changing: Changing,
}

/// Options of `undo`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A pool that something else has changed in the meantime is left alone, and both values are shown; --force restores it \
anyway.

Exit codes: 0 restored, 1 not all pages, 2 wrong usage, 3 nothing to restore, or no permission.")]
pub struct Undo {
    /// Also restore pools that something else has changed in the meantime
    #[arg(long)]
    pub force: bool,
    /// Undo the last change of persist instead, byte for byte; --json then prints nodewise.hugepages-boot/1
    #[arg(long, conflicts_with_all = ["force", "journal"])]
    pub boot: bool,
    /// Directory to use as /, such as a mounted image
    #[arg(long, value_name = "DIR", default_value = "/", hide_default_value = true, requires = "boot")]
    pub root: PathBuf,
    #[command(flatten)]
    pub changing: Changing,
}

/// Options of `persist`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  nodewise hugepages persist                           the current pools
  nodewise hugepages persist 0=512,1=512 --dry-run
  nodewise hugepages persist --huge-page-size 1G 0=4 --root /mnt/image
  nodewise hugepages persist all=0                     no pools of this size
  nodewise hugepages undo --boot

The kernel reads its command line before memory is fragmented; on most machines this is the only way to reserve pages \
of 1 GiB. Numbers per node need Linux 5.16 or newer. With --through systemd, /etc/tmpfiles.d/nodewise-hugepages.conf \
sets the pools early at every boot. The old version of each changed file is kept next to it; hugepages undo --boot \
restores it.

Exit codes: 0 done; 2 wrong usage; 3 a boot file that nodewise cannot change, or no permission.")]
pub struct Persist {
    /// Pages per node: 0=512,1=512, 0-3=128, all=64, or total=1024 divided by the memory of the nodes [default: the
    /// current pools]
    #[arg(value_name = "NODES=PAGES")]
    pub pages: Option<String>,
    /// Size of a huge page, such as 2M [default: the kernel's default size]
    #[arg(long, alias = "size", value_name = "SIZE", value_parser = super::size)]
    pub huge_page_size: Option<Bytes>,
    /// Mechanism that reserves the pages: cmdline (the kernel's command line) or systemd
    #[arg(long, value_name = "WAY", default_value = "cmdline", hide_possible_values = true)]
    pub through: Through,
    /// Directory to use as /, such as a mounted image
    #[arg(long, value_name = "DIR", default_value = "/", hide_default_value = true)]
    pub root: PathBuf,
    /// Show what would be done, without doing it: the changes to files
    #[arg(long)]
    pub dry_run: bool,
    /// Print JSON (schema nodewise.hugepages-boot/1)
    #[arg(long)]
    pub json: bool,
}

/// A way to pools at boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Through {
    Cmdline,
    Systemd,
}
