//! Core-to-core latencies as heat maps.

use nodewise_measure::c2c::C2cReport;

use crate::digest::c2c::{Row, ending, home_words, matrices, method, rows};
use crate::digest::counts::plural;
use crate::digest::survey::caption;
use crate::svg::frame::Frame;
use crate::svg::heatmap::page;
use crate::svg::paint::paint;
use crate::svg::palette::Theme;

/// Draws a report of core-to-core latencies as an SVG document.
///
/// # Units
/// Lengths in px; at most 980 wide.
pub fn c2c_svg(report: &C2cReport, theme: Theme) -> String {
    let (title, page) = c2c_page(report);
    paint(&page, &title, &method(report), theme)
}

/// Lays out the picture: its title, and the page.
pub fn c2c_page(report: &C2cReport) -> (String, Frame) {
    let title = format!("Core-to-core latency, {}", plural(report.cpus().len(), "CPU"));
    let transfers = report.transfers();
    let group = |row: &Row| {
        let values: Vec<String> = transfers
            .iter()
            .zip(&row.groups)
            .filter_map(|(transfer, group)| {
                Some(format!("{} {:.0} ns", transfer.name(), group.as_ref()?.median_ns))
            })
            .collect();
        format!("{}, {}: {}", row.relation.words(), home_words(row.home), values.join(", "))
    };
    let groups: Vec<String> = rows(report).iter().map(group).collect();
    let caption = caption(&report.account.conditions);
    let page = page(&title, &caption, &matrices(report), &groups, &ending(report));
    (title, page)
}
