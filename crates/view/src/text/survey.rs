//! How a text about a survey ends: how it was measured, what was not, and what it shows.

use crate::style::Ink;
use crate::text::line::{Line, Page};

/// How it was measured: a line each.
pub(super) fn how(lines: impl IntoIterator<Item = String>, page: &mut Page) {
    page.heading("How", "");
    lines.into_iter().for_each(|line| page.line(4, &Line::from(format!("  {line}"))));
}

/// What could not be measured: where, why.
pub(super) fn not_measured(refusals: Vec<(String, String)>, page: &mut Page) {
    if refusals.is_empty() {
        return;
    }
    page.heading("Not measured", "");
    for (place, why) in refusals {
        page.line(4, &Line::from("  ").with(Ink::Notable, place).with(Ink::Plain, format!(": {why}")));
    }
}

/// What it shows: sentences, each with its ink.
pub(super) fn findings(findings: Vec<(Ink, String)>, page: &mut Page) {
    if findings.is_empty() {
        return;
    }
    page.heading("Findings", "");
    for (ink, sentence) in findings {
        page.line(4, &Line::from("  ").with(ink, sentence));
    }
}

/// Findings that say that figures may not repeat stand out.
pub(super) const fn ink(is_noise: bool) -> Ink {
    if is_noise { Ink::Notable } else { Ink::Plain }
}
