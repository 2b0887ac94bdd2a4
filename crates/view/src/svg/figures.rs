//! Figures that other tools printed: matrices as heat maps, latency under load as a curve, lists as lines.

use nodewise_measure::figures::{FigureUnit, LoadedFigure, ToolFigures};

use crate::digest::figures::{ShownTable, count_words, ending, tables, tool_words, value_words};
use crate::svg::frame::{Frame, Role, Stack, Stroke, Tone};
use crate::svg::heatmap::{panel, sheet_of};
use crate::svg::paint::paint;
use crate::svg::palette::Theme;
use crate::svg::plot::{Axis, POINT, Plot, pen};
use crate::svg::sheet::{HEAD, SMALL, TEXT};

const PLOT: Plot = Plot { frame: 520.0, height: 220.0, right: 20.0 };
/// Width of a list, and of its numbers.
const LIST: f64 = 420.0;
/// Up to this many figures of a list are written.
const MOST: usize = 24;

/// Draws figures of another tool as an SVG document.
///
/// # Units
/// Lengths in px; at most 980 wide.
pub fn figures_svg(figures: &ToolFigures, theme: Theme) -> String {
    let (title, page) = figures_page(figures);
    paint(&page, &title, &count_words(figures), theme)
}

/// Lays out the picture: its title, and the page.
pub fn figures_page(figures: &ToolFigures) -> (String, Frame) {
    let title = format!("Figures of {}", tool_words(figures));
    let panels = tables(figures).iter().map(table_panel).collect();
    let page = sheet_of(&title, &count_words(figures), panels, &[], &ending(figures));
    (title, page)
}

fn table_panel(table: &ShownTable<'_>) -> Frame {
    match table {
        ShownTable::Memory(matrix) => panel(matrix),
        ShownTable::Caches(matrix) => panel(matrix),
        ShownTable::List { title, unit, figures } => list(title, *unit, figures),
        ShownTable::Loaded { title, points } => curve(title, points),
    }
}

/// Figures under their names, a line for each.
fn list(title: &str, unit: FigureUnit, figures: &[(String, f64)]) -> Frame {
    let mut stack = Stack::new(Role::Group, LIST, 0.0);
    stack.text(title, HEAD, Tone::Plain, 1);
    stack.text(unit.name(), SMALL, Tone::Faint, 1);
    stack.gap(4.0);
    for (name, value) in figures.iter().take(MOST) {
        stack.text(&format!("{}  {name}", value_words(*value)), TEXT, Tone::Plain, 1);
    }
    if let Some(left) = figures.len().checked_sub(MOST).filter(|left| *left > 0) {
        stack.text(&format!("and {left} more; --csv has all"), SMALL, Tone::Faint, 1);
    }
    stack.gap(10.0);
    stack.finish()
}

/// Latency against bandwidth, in the order of the text.
fn curve(title: &str, points: &[LoadedFigure]) -> Frame {
    let mut stack = Stack::new(Role::Group, PLOT.frame, 0.0);
    stack.text(title, HEAD, Tone::Plain, 1);
    stack.text(
        "one load while other CPUs move data, with delays from none to long ones",
        SMALL,
        Tone::Faint,
        2,
    );
    stack.gap(4.0);
    let most = |of: fn(&LoadedFigure) -> f64| points.iter().map(of).fold(0.0, f64::max);
    let (rate, ns) =
        (Axis::holding(most(|point| point.gb_per_s)), Axis::holding(most(|point| point.latency_ns)));
    let place = |(gb_per_s, latency): (f64, f64)| PLOT.point(rate.part(gb_per_s), ns.part(latency));
    let mut frame = PLOT.frame();
    PLOT.titles("latency, ns per load", "traffic, GB/s", &mut frame);
    for (value, text) in rate.lines() {
        PLOT.column(place((value, 0.0)).0, &text, &mut frame);
    }
    for (value, text) in ns.lines() {
        PLOT.row(place((0.0, value)).1, &text, &mut frame);
    }
    let points = points.iter().map(|point| place((point.gb_per_s, point.latency_ns))).collect();
    frame.strokes.push(Stroke { points, pen: pen(0), ring: POINT });
    stack.frame(frame);
    stack.gap(10.0);
    stack.finish()
}
