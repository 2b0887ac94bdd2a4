//! `nodewise migrate`.

use std::path::PathBuf;

use nodewise_machine::Bytes;

/// Moves pages of a running process to other nodes, in chunks, and says why some stayed
///
/// The kernel is asked where each page is, before and after: its report on a failed call is unreliable.
/// Memory of the program itself moves: heap, stacks, anonymous and shared memory, huge pages of pools. Pages of files
/// move where --only names them. The policy of the process stays as it is.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  nodewise migrate 4711 --to 1
  nodewise migrate postgres --from-nodes 0 --to 1 --only shmem --shared
  nodewise migrate 4711 --to 0=2,1=3 --rate 1G/s --save before.moved
  nodewise migrate 4711 --to interleave:0-3 --dry-run
  nodewise migrate --undo before.moved

--to takes a list (the first source node moves to the first target, and so on), pairs such as 0=1,2=3, or \
interleave:0-3. Ctrl-C finishes the chunk; the same command resumes there.

Exit codes: 0 all moved, 1 some pages stayed, 2 wrong usage, 3 nothing could be moved.")]
pub struct Migrate {
    /// Process: its number, or its name where one process has it
    #[arg(value_name = "PID|NAME", required_unless_present = "undo")]
    pub process: Option<String>,
    /// Nodes to move pages to: 1, 2-3, 0=1,2=3 or interleave:0-3
    #[arg(long, value_name = "NODES", required_unless_present = "undo")]
    pub to: Option<String>,
    /// Nodes whose pages move [default: all others]
    #[arg(long = "from-nodes", alias = "from", value_name = "NODES")]
    pub from: Option<String>,
    /// Kinds of memory to move: heap, stack, anon, shmem, file, hugetlb [default: all but file]
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Move also pages that other processes map, which needs CAP_SYS_NICE
    #[arg(long)]
    pub shared: bool,
    /// Range, in hexadecimal: addresses to move, such as 7f2c00000000-7f2c40000000
    #[arg(long, value_name = "A-B", value_parser = super::range)]
    pub range: Option<(u64, u64)>,
    /// Speed limit of moving pages, such as 1G/s
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub rate: Option<Bytes>,
    /// Memory pressure (PSI some avg10) in percent above which it pauses, until half of it is left
    #[arg(long, value_name = "PERCENT", default_value = "10", value_parser = percent)]
    pub pause_psi: f64,
    /// Show what would be done, without doing it: the pages to move
    #[arg(long)]
    pub dry_run: bool,
    /// Save into FILE: where the moved pages were, for --undo
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// Move pages back to where FILE says they were
    #[arg(long, value_name = "FILE",
          conflicts_with_all = ["process", "to", "from", "only", "range", "save"])]
    pub undo: Option<PathBuf>,
    /// Print JSON (schema nodewise.migrate/1)
    #[arg(long)]
    pub json: bool,
}

pub(super) fn rate(text: &str) -> Result<Bytes, String> {
    let size = super::size(text.strip_suffix("/s").unwrap_or(text))?;
    if size < Bytes::MIB { Err("expected 1M/s or more".to_owned()) } else { Ok(size) }
}

pub(super) fn percent(text: &str) -> Result<f64, String> {
    let percent: Option<f64> = text.trim_end_matches('%').parse().ok();
    percent
        .filter(|percent| *percent > 0.0 && *percent <= 100.0)
        .ok_or_else(|| "expected a percentage above 0 and up to 100".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::range;

    #[test]
    fn rates_ranges_and_percentages_are_read() {
        assert_eq!(rate("1G/s"), Ok(Bytes::GIB));
        assert_eq!(rate("64M"), Ok(Bytes::from_mib(64)));
        assert!(rate("64").is_err() && rate("x/s").is_err() && rate("1K/s").is_err());
        assert_eq!(range("7f0000000000-0x7f0000001000"), Ok((0x7f00_0000_0000, 0x7f00_0000_1000)));
        assert!(range("2-1").is_err() && range("g-h").is_err() && range("1").is_err());
        assert_eq!(percent("12.5%"), Ok(12.5));
        assert!(percent("0").is_err() && percent("nan").is_err() && percent("101").is_err());
    }
}
