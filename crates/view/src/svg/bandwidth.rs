//! Bandwidths as a heat map.

use nodewise_measure::bandwidth::{Report, findings};

use crate::digest::bandwidth::{COUNTED, matrix, method, sentence};
use crate::digest::survey::{platform, proof, refusals};
use crate::svg::frame::Frame;
use crate::svg::heatmap::page;
use crate::svg::paint::paint;
use crate::svg::palette::Theme;

/// Draws a report of bandwidths as an SVG document.
///
/// # Units
/// Lengths in px; at most 980 wide.
pub fn bandwidth_svg(report: &Report, theme: Theme) -> String {
    let (title, page) = bandwidth_page(report);
    paint(&page, &title, &method(report), theme)
}

/// Lays out the picture: its title, and the page.
pub fn bandwidth_page(report: &Report) -> (String, Frame) {
    let nodes = report.targets().len().max(report.sources().len());
    let title = format!("Memory bandwidth, {nodes} node{}", if nodes == 1 { "" } else { "s" });
    let subtitle = platform(&report.account.conditions);
    let mut foot = vec![method(report), COUNTED.to_owned()];
    foot.extend(proof(report.cells(), report.size));
    let mut notes: Vec<String> =
        refusals(report.cells()).into_iter().map(|(place, why)| format!("{place}: {why}")).collect();
    notes.extend(findings(report).iter().map(sentence));
    let page = page(&title, &subtitle, &[matrix(report)], &foot, &notes);
    (title, page)
}
