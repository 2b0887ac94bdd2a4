//! Results as lines with commas, a line per cell or placement, for spreadsheets and scripts.

mod acpi;
mod bandwidth;
mod c2c;
mod compare;
mod doctor;
mod facts;
mod figures;
mod file;
mod hugepages;
mod io;
mod latency;
mod loaded;
mod maps;
mod maps_comparison;
mod perftest;
pub mod stat;
mod stat_comparison;
mod sweep;
mod timeline;
mod tune;
mod walk;
mod zones;

use nodewise_measure::cell::{PageKind, Placed};
use nodewise_measure::survey::{CellReport, Figure};

use crate::digest::running::fact::FactUnit;

pub use acpi::acpi;
pub use bandwidth::bandwidth;
pub use c2c::c2c;
pub use compare::{compare, suite};
pub use doctor::doctor;
pub use facts::{diff, machine};
pub use figures::tool_figures;
pub use file::file;
pub use hugepages::hugepages;
pub use io::io;
pub use latency::latency;
pub use loaded::loaded;
pub use maps::maps;
pub use maps_comparison::maps_comparison;
pub use perftest::perftest;
pub use stat::stat;
pub use stat_comparison::stat_comparison;
pub use sweep::sweep;
pub use timeline::timeline;
pub use tune::tune;
pub use walk::walk;
pub use zones::{zonelist, zones};

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

/// A number to six decimals: beyond that it is noise.
fn decimal(value: f64) -> String {
    format!("{value:.6}")
}

/// The value of a fact: bytes are whole.
fn fact_value(unit: FactUnit, value: f64) -> String {
    match unit {
        FactUnit::Bytes => format!("{value:.0}"),
        FactUnit::Share | FactUnit::PerSecond => decimal(value),
    }
}

/// A text as a field: in quotes where it holds what separates fields (RFC 4180), without what could drive a
/// terminal, and with a `'` before what a spreadsheet would take for a formula.
pub fn quoted(text: &str) -> String {
    let text = nodewise_machine::printable::printable(text);
    let mark = if is_formula(&text) { "'" } else { "" };
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{mark}{}\"", text.replace('"', "\"\""))
    } else {
        format!("{mark}{text}")
    }
}

/// Whether a spreadsheet may compute a text instead of showing it. Words that look like options
/// (`--membind=0 --huge=never`) can neither call a function nor name a program, and stay as they are for scripts.
fn is_formula(text: &str) -> bool {
    let option = |c: char| c.is_ascii_alphanumeric() || "-=,.:_/ ".contains(c);
    match text.trim_start().chars().next() {
        Some('-') => !(text.starts_with("--") && text.chars().all(option)),
        Some('=' | '+' | '@') => true,
        _ => text.starts_with(['\t', '\r']),
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

    #[test]
    fn a_text_that_a_spreadsheet_would_compute_is_marked() {
        for text in ["=1+2", "@SUM(A1)", "+1", "-1", "  =A1", "--cmd|'/c calc'!A1", "-cmd"] {
            assert_eq!(quoted(text), format!("'{text}"), "{text}");
        }
        assert_eq!(quoted("=HYPERLINK(\"a\",\"b\")"), "\"'=HYPERLINK(\"\"a\"\",\"\"b\"\")\"");
        for text in ["--membind=0 --huge=never", "0-3", "default", "", "a=b", "1-2+x"] {
            assert_eq!(quoted(text), text);
        }
    }
}
