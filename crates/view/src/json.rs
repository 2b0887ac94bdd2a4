//! The JSON twins of what is shown as text.
//!
//! Every document names its schema and version; units are in the names of fields; what is not
//! known is left out. The machine file, the twin of `show`, is in the crate `source`, because it is
//! read back there.

pub mod acpi;
pub mod advice;
pub mod bandwidth;
pub mod benchmarks;
pub mod c2c;
mod cells;
pub mod compare;
mod conditions;
pub mod conformance;
pub mod costs;
pub mod diff;
pub mod doctor;
pub mod emulation;
pub mod figures;
pub mod file;
pub mod fleet;
pub mod hugepages;
pub mod io;
pub mod latency;
pub mod line_counts;
pub mod loaded;
pub mod maps;
mod maps_comparison;
pub mod migrate;
mod peak;
pub mod perftest;
mod published;
pub mod ranking;
mod reading;
pub mod shm;
pub mod stat;
mod stat_comparison;
pub mod suite;
pub mod survey;
pub mod sweep;
pub mod timeline;
pub mod tune;
pub mod walk;
pub mod workload;
pub mod zones;

pub use acpi::acpi;
pub use advice::advice;
pub use bandwidth::bandwidth;
pub use benchmarks::benchmarks;
pub use c2c::c2c;
pub use compare::compare;
pub use conformance::conformance;
pub use diff::diff;
pub use doctor::doctor;
pub use figures::tool_figures;
pub use file::file;
pub use fleet::fleet;
pub use io::io;
pub use latency::latency;
pub use line_counts::line_counts;
pub use loaded::loaded;
pub use maps_comparison::maps_comparison;
pub use perftest::perftest;
pub use ranking::ranking;
pub use reading::Saved;
pub use stat::{stat, stat_line};
pub use stat_comparison::stat_comparison;
pub use survey::survey;
pub use tune::tune;

use nodewise_stats::Interval;
use serde::Serialize;

/// A document as JSON, indented, with a line end.
fn pretty(document: &impl Serialize) -> String {
    let mut text =
        serde_json::to_string_pretty(document).expect("the document holds no map with foreign keys");
    text.push('\n');
    text
}

/// A JSON text without the blanks around its parts; those within texts stay.
pub(crate) fn compact(document: &str) -> String {
    let mut text = String::with_capacity(document.len());
    let (mut is_text, mut is_escaped) = (false, false);
    for letter in document.chars() {
        if !is_text && matches!(letter, ' ' | '\t' | '\n' | '\r') {
            continue;
        }
        is_text ^= letter == '"' && !is_escaped;
        is_escaped = is_text && letter == '\\' && !is_escaped;
        text.push(letter);
    }
    text
}

/// A number to six decimals: beyond that it is noise.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

/// An interval as a list of its two ends.
fn ends(interval: Interval) -> [f64; 2] {
    [interval.low, interval.high]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::compact;

    proptest! {
        #[test]
        fn a_shorter_text_means_the_same(text in ".*", number in any::<i32>()) {
            let value = serde_json::json!({ "a b": text, "c": [number, { "d": "x  y" }] });
            let pretty = serde_json::to_string_pretty(&value).expect("values are JSON");
            prop_assert_eq!(compact(&pretty), value.to_string());
        }
    }
}
