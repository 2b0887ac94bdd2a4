//! `nodewise maps`.

use clap::ValueEnum;
use nodewise_machine::printable::quote;

/// Shows on which nodes the memory of a process is: by kind, policy and mapping
///
/// Reading all of a large process takes long and holds up its system calls on memory, so above 20 ms of CPU time
/// pages are drawn at random and shares get 95 % intervals; --exact counts every page.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  nodewise maps 4121
  nodewise maps postgres --all --who
  nodewise maps 4121 --by file --sample 50000
  nodewise maps 4121 --range 7f2c00000000-7f2c00200000

Exit codes: 0 done; 2 wrong usage, also a name of several processes; 3 no such process, no right to \
look into it, or no memory.")]
pub struct Maps {
    /// Process: its number, or its name if no other has it
    #[arg(value_name = "PID|NAME")]
    pub process: String,
    /// Name every mapping, not only the largest
    #[arg(long)]
    pub all: bool,
    /// Rows of the table: kind, file or policy
    #[arg(long, value_name = "GROUP", default_value = "kind", hide_possible_values = true)]
    pub by: By,
    /// Name the other processes that map the same files and shared memory
    #[arg(long)]
    pub who: bool,
    /// Show the node of each page between two addresses (hexadecimal), neighbours on one node together
    #[arg(long, value_name = "A-B", value_parser = range,
        conflicts_with_all = ["all", "by", "who", "exact", "sample", "csv"])]
    pub range: Option<(u64, u64)>,
    /// Count every page, however long it takes
    #[arg(long, help_heading = "Reading", conflicts_with = "sample")]
    pub exact: bool,
    /// Number of pages to draw at most, and of pages of small mappings to count
    #[arg(long, value_name = "N", help_heading = "Reading", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub sample: Option<u64>,
    /// Random seed, which fixes the pages that are drawn [default: from the clock, and printed]
    #[arg(long, value_name = "N", help_heading = "Reading")]
    pub seed: Option<u64>,
    /// Print JSON (schema nodewise.maps/1; with --range nodewise.page_runs/1)
    #[arg(long, conflicts_with = "csv", help_heading = "Output")]
    pub json: bool,
    /// Print CSV, one line per mapping and node
    #[arg(long, help_heading = "Output")]
    pub csv: bool,
}

/// The rows of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// Heap, stack, anonymous memory, shared memory, files
    Kind,
    /// Each file
    File,
    /// Each policy
    Policy,
}

/// Two addresses in hexadecimal, the lower one first.
fn range(text: &str) -> Result<(u64, u64), String> {
    let expected =
        || format!("{} is not a range: expected two addresses as in 7f2c00000000-7f2c00200000", quote(text));
    let (from, to) = text.split_once('-').ok_or_else(expected)?;
    let address = |text: &str| {
        let digits = text.strip_prefix("0x").unwrap_or(text);
        let is_plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        u64::from_str_radix(digits, 16).ok().filter(|_| is_plain)
    };
    let (from, to) = address(from).zip(address(to)).ok_or_else(expected)?;
    if from < to { Ok((from, to)) } else { Err(expected()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_two_addresses_in_order() {
        assert_eq!(range("1000-2000"), Ok((0x1000, 0x2000)));
        assert_eq!(range("0x1000-0x2000"), Ok((0x1000, 0x2000)));
        for text in ["", "1000", "2000-1000", "1000-1000", "-1000", "x-y", "+1-2", "1-10000000000000000"] {
            assert!(range(text).unwrap_err().contains("is not a range"), "{text}");
        }
    }
}
