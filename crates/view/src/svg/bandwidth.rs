//! Bandwidths as a heat map, and as a curve of threads.

use nodewise_measure::bandwidth::BandwidthReport;

use crate::digest::bandwidth::{ending, matrix, method, share_words};
use crate::digest::counts::plural;
use crate::digest::survey::caption;
use crate::svg::frame::Frame;
use crate::svg::heatmap::{panel, sheet_of};
use crate::svg::paint::paint;
use crate::svg::palette::Theme;
use crate::svg::threads;

/// Draws a report of bandwidths as an SVG document.
///
/// # Units
/// Lengths in px; at most 980 wide.
pub fn bandwidth_svg(report: &BandwidthReport, theme: Theme) -> String {
    let (title, page) = bandwidth_page(report);
    paint(&page, &title, &method(report), theme)
}

/// Lays out the picture: its title, and the page.
pub fn bandwidth_page(report: &BandwidthReport) -> (String, Frame) {
    let nodes = report.targets().len().max(report.sources().len());
    let title = format!("Memory bandwidth, {}", plural(nodes, "node"));
    let caption = caption(&report.account.conditions);
    let panels = [panel(&matrix(report))].into_iter().chain(threads::panel(report)).collect();
    let about: Vec<String> = share_words(report).into_iter().collect();
    let page = sheet_of(&title, &caption, panels, &about, &ending(report));
    (title, page)
}
