//! Options that the verbs share which measure memory.

use std::str::FromStr;
use std::time::Duration;

use nodewise_machine::Bytes;
use nodewise_machine::printable::quote;
use nodewise_measure::cell::{HugePageSize, PageKind};

use crate::output::Destination;

/// How much and where to measure, and how to print it.
#[derive(Clone, Debug, clap::Args)]
pub struct MeasureOptions {
    /// Measure less: within 15 s on one node, 60 s on eight or more; on a slow or busy machine some samples, rounds
    /// and cells are skipped and named
    #[arg(long, conflicts_with = "thorough", help_heading = "Measuring")]
    pub quick: bool,
    /// Measure with more rounds and samples, however long that takes
    #[arg(long, help_heading = "Measuring")]
    pub thorough: bool,
    /// Number of rounds, each with at least one sample per cell; lifts the time limit of --quick. An interval needs 6
    /// [default: 9; 6 with --quick, 15 with --thorough]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000), help_heading = "Measuring")]
    pub rounds: Option<u32>,
    /// Run on these CPUs only, such as 0-3,8 [default: all allowed CPUs]
    #[arg(long, value_name = "CPUS", help_heading = "Measuring")]
    pub cpus: Option<String>,
    /// Measure CPUs and memory of these nodes only, such as 0,2 [default: all]
    #[arg(long, value_name = "NODES", help_heading = "Measuring")]
    pub nodes: Option<String>,
    /// Random seed: the order of samples [default: from the clock, and printed]
    #[arg(long, value_name = "N", help_heading = "Measuring")]
    pub seed: Option<u64>,
    /// Print JSON: all figures, the nodes of the pages, and the conditions
    #[arg(long, conflicts_with = "csv", help_heading = "Output")]
    pub json: bool,
    /// Print CSV, one line per cell
    #[arg(long, help_heading = "Output")]
    pub csv: bool,
    /// Draw an SVG picture into FILE: the result
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub svg: Option<Destination>,
    /// Draw a PNG picture into FILE: the result
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub png: Option<Destination>,
    /// Time for all of it with `--quick`, in place of its usual limit: a report measures several things within a minute.
    #[arg(skip)]
    pub limit: Option<Duration>,
}

/// The pages of buffers, for verbs whose buffers are large enough for huge ones.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct PageOptions {
    /// Huge pages beside small ones: never, thp (transparent), 2M or 1G (from that pool) [default: thp]
    #[arg(long = "huge-pages", alias = "huge", value_name = "KIND", help_heading = "Measuring")]
    pub huge: Option<Huge>,
}

/// Pages that are measured beside small ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Huge {
    /// Nothing.
    Never,
    /// Huge pages of this kind.
    Pages(PageKind),
}

impl FromStr for Huge {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "never" => Ok(Self::Never),
            "thp" => Ok(Self::Pages(PageKind::TransparentHuge)),
            size => size
                .parse::<Bytes>()
                .ok()
                .and_then(HugePageSize::new)
                .map(|size| Self::Pages(PageKind::Hugetlb(size)))
                .ok_or_else(|| {
                    format!(
                        "{} is not a kind of huge page: expected never, thp, or a size such as 2M or 1G",
                        quote(text)
                    )
                }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_huge_pages_are_words_or_sizes() {
        let pool = |size| Ok(Huge::Pages(PageKind::Hugetlb(size)));
        for (text, expected) in [
            ("never", Ok(Huge::Never)),
            ("thp", Ok(Huge::Pages(PageKind::TransparentHuge))),
            ("2M", pool(HugePageSize::MIB_2)),
            ("1G", pool(HugePageSize::GIB_1)),
            ("512M", pool(HugePageSize::new(Bytes::from_mib(512)).unwrap())),
        ] {
            assert_eq!(text.parse(), expected, "{text}");
        }
        for text in ["", "3M", "4K", "always", "-1", "99999999999999999999G"] {
            assert!(text.parse::<Huge>().is_err(), "{text}");
        }
    }
}
