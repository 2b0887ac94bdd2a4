//! Latencies as heat maps.

use nodewise_measure::latency::LatencyReport;

use crate::digest::counts::plural;
use crate::digest::latency::{Shown, ending, matrix, method, page_walks};
use crate::digest::matrix::Matrix;
use crate::digest::survey::caption;
use crate::svg::frame::Frame;
use crate::svg::heatmap::page;
use crate::svg::paint::paint;
use crate::svg::palette::Theme;

/// Draws a report of latencies as an SVG document.
///
/// # Units
/// Lengths in px; at most 980 wide.
pub fn latency_svg(report: &LatencyReport, theme: Theme) -> String {
    let (title, page) = latency_page(report);
    paint(&page, &title, &method(report), theme)
}

/// Lays out the picture of a report of latencies: its title, and the page.
pub fn latency_page(report: &LatencyReport) -> (String, Frame) {
    let mut matrices: Vec<Matrix> =
        report.page_kinds().into_iter().map(|pages| matrix(report, pages, Shown::Median)).collect();
    matrices.extend(page_walks(report));
    let nodes = report.targets().len().max(report.sources().len());
    let title = format!("Memory latency, {}", plural(nodes, "node"));
    let caption = caption(&report.account.conditions);
    let page = page(&title, &caption, &matrices, &[], &ending(report));
    (title, page)
}
