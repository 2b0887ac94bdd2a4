//! `nodewise hugepages`.

use std::path::PathBuf;

use clap::Subcommand;
use nodewise_machine::Bytes;

/// Shows pools of huge pages per node, and sets them: what the kernel gave, not what was asked
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

Exit codes: 0 done; 1 fewer pages than were asked for; 2 wrong usage; 3 no pools, or no right to set them."
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
    /// Sets the pools of some nodes, reads back what the kernel gave, and compacts memory where that is less
    Set(Set),
    /// Restores the pools as they were before the last change
    Undo(Undo),
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
pub struct Changing {
    /// File with the old values of settings [default: settings.journal in /var/lib/nodewise, or in
    /// $XDG_STATE_HOME/nodewise for others than root]
    #[arg(long, value_name = "FILE")]
    pub journal: Option<PathBuf>,
    /// Show the values that would be written, without writing them
    #[arg(long)]
    pub dry_run: bool,
    /// Print JSON (schema nodewise.hugepages-change/1)
    #[arg(long)]
    pub json: bool,
}

/// Options of `set`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  nodewise hugepages set 0=512,1=512
  nodewise hugepages set 0-3=128 --dry-run
  nodewise hugepages set total=1024          in proportion to the memory of the nodes
  nodewise hugepages set all=0

The kernel reports success when it finds fewer pages than asked. Where that happens, the node's memory is compacted \
and the value written again, up to three times. Caches are never dropped.

Exit codes: 0 as many pages as asked, 1 fewer or more, 2 wrong usage, 3 no pools, or no right to set them.")]
pub struct Set {
    /// Pages per node: 0=512,1=512, 0-3=128, all=64, or total=1024 divided by the memory of the nodes
    #[arg(value_name = "NODES=PAGES")]
    pub pages: String,
    /// Size of a huge page, such as 2M [default: the kernel's default size]
    #[arg(long, alias = "size", value_name = "SIZE", value_parser = super::size)]
    pub huge_page_size: Option<Bytes>,
    /// Put the pools back as they were where not all pages can be had
    #[arg(long)]
    pub all_or_nothing: bool,
    #[command(flatten)]
    pub changing: Changing,
}

/// Options of `undo`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A pool that somebody else changed since is left alone, and both values are named; --force restores it anyway.

Exit codes: 0 restored, 1 not all pages, 2 wrong usage, 3 nothing to restore, or no right to.")]
pub struct Undo {
    /// Restore also what somebody else changed since
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub changing: Changing,
}
