//! Bandwidths of files in memory as heat maps, one per operation.

use nodewise_measure::bandwidth::file::FileReport;

use crate::digest::file::{ending, matrices, method};
use crate::digest::survey::caption;
use crate::svg::frame::Frame;
use crate::svg::heatmap::page;
use crate::svg::paint::paint;
use crate::svg::palette::Theme;

const TITLE: &str = "Bandwidth of files in memory";

/// Draws a report of files as an SVG document.
///
/// # Units
/// Lengths in px; at most 980 wide.
pub fn file_svg(report: &FileReport, theme: Theme) -> String {
    paint(&file_page(report), TITLE, &method(report), theme)
}

/// Lays out the picture.
pub fn file_page(report: &FileReport) -> Frame {
    page(TITLE, &caption(&report.account.conditions), &matrices(report), &[], &ending(report))
}
