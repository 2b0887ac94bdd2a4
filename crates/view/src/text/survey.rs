//! How a text about a survey ends: how it was measured, what was not, and what it shows.

use crate::digest::survey::{Ending, FindingSentence};
use crate::style::Ink;
use crate::text::line::{Line, Page};

/// Writes it, a section for each part that is there; what says that figures may not repeat stands out.
pub(super) fn write(ending: &Ending, page: &mut Page) {
    let line = |ink, text: &str| Line::from("  ").with(ink, text);
    let how = ending.how.iter().map(|text| line(Ink::Plain, text));
    section("How", how, page);
    let refused = ending.not_measured.iter();
    let refused = refused.map(|(place, why)| line(Ink::Notable, place).with(Ink::Plain, format!(": {why}")));
    section("Not measured", refused, page);
    let ink = |told: &FindingSentence| if told.is_noise { Ink::Notable } else { Ink::Plain };
    let findings = ending.findings.iter().map(|told| line(ink(told), &told.sentence));
    section("Findings", findings, page);
}

fn section(heading: &str, lines: impl Iterator<Item = Line>, page: &mut Page) {
    for (at, line) in lines.enumerate() {
        if at == 0 {
            page.heading(heading, "");
        }
        page.line(4, &line);
    }
}
