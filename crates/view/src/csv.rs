//! Results as lines with commas, a line per cell or placement, for spreadsheets and scripts.

mod bandwidth;
mod c2c;
mod compare;
mod file;
mod hugepages;
mod io;
mod latency;
mod loaded;
mod maps;
mod perftest;
mod sweep;
mod tune;

use nodewise_measure::cell::{PageKind, Placed};
use nodewise_measure::survey::{CellReport, Figure};

pub use bandwidth::bandwidth;
pub use c2c::c2c;
pub use compare::{compare, suite};
pub use file::file;
pub use hugepages::hugepages;
pub use io::io;
pub use latency::latency;
pub use loaded::loaded;
pub use maps::maps;
pub use perftest::perftest;
pub use sweep::sweep;
pub use tune::tune;

/// Which cell it is: nodes, CPUs, pages.
fn names(cell: &CellReport) -> Vec<String> {
    let pages = match cell.pages {
        PageKind::Small => "small".to_owned(),
        PageKind::TransparentHuge => "transparent_huge".to_owned(),
        PageKind::Hugetlb(size) => format!("hugetlb_{}", size.bytes().get()),
    };
    vec![cell.from.to_string(), quoted(&cell.cpus.to_string()), cell.memory.to_string(), pages]
}

/// A median, its interval, and the best of all samples.
fn figures(figure: Option<&Figure>) -> [String; 4] {
    let interval = figure.and_then(|figure| figure.interval);
    [
        known(figure.map(|figure| figure.median)),
        known(interval.map(|interval| interval.low)),
        known(interval.map(|interval| interval.high)),
        known(figure.map(|figure| figure.best)),
    ]
}

/// From how much a figure comes: rounds and samples.
fn extent(figure: Option<&Figure>) -> [String; 2] {
    [known(figure.map(|figure| figure.rounds)), known(figure.map(|figure| figure.samples))]
}

/// Returns the fields behind a cell's figure: how often it was measured, how quietly, and how many pages were
/// in place.
fn backing(cell: &CellReport) -> Vec<String> {
    let mut fields = extent(cell.figure.as_ref()).to_vec();
    fields.extend([
        cell.marks.disturbed.to_string(),
        cell.disturbed.to_string(),
        known(cell.before.as_ref().and_then(Placed::share)),
        known(cell.after.as_ref().and_then(Placed::share)),
    ]);
    fields
}

/// A text that may be missing.
fn optional(text: Option<&str>) -> String {
    text.map(quoted).unwrap_or_default()
}

fn known(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// A text as a field: in quotes where it holds what separates fields (RFC 4180), and without what
/// could drive a terminal.
pub fn quoted(text: &str) -> String {
    let text = nodewise_machine::printable::printable(text);
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_holds_what_separates_fields_is_quoted() {
        assert_eq!(quoted("0-3"), "0-3");
        assert_eq!(quoted("0,2"), "\"0,2\"");
        assert_eq!(quoted("the \"pool\""), "\"the \"\"pool\"\"\"");
        assert!(!quoted("a\x1b[2Jb").contains('\x1b'));
    }
}
