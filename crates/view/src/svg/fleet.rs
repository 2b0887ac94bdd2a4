//! A group of identical machines: how many are how much slower than usual, with the limit of the rule for outliers.

use nodewise_fleet::group::{Group, GroupFigure};
use nodewise_fleet::survey::Quantity;
use nodewise_machine::order::Order as _;

use crate::digest::counts::plural;
use crate::digest::fleet::usual_words;
use crate::svg::frame::{Anchor, Frame, Label, Pen, Rect, Role, Stack, Stroke, Tone};
use crate::svg::paint::paint;
use crate::svg::palette::Theme;
use crate::svg::plot::{Axis, Plot};
use crate::svg::sheet::{HEAD, MARGIN, SMALL, begin};

const PLOT: Plot = Plot { frame: 440.0, height: 150.0, right: 24.0 };
/// Bars of a picture.
const BARS: usize = 40;
/// The least range that is drawn, and the end of the largest; what is slower is in the last bar.
const RANGE: (f64, f64) = (0.9, 1.1);
const END: f64 = 2.0;
/// Outliers whose names are written.
const MOST_NAMES: usize = 6;
/// Room between panels, and between bars.
const GUTTER: f64 = 24.0;
const GAP: f64 = 1.0;

/// Draws the figures of a group as an SVG document. The picture of a group without figures is empty.
///
/// # Units
/// Lengths in px; at most 980 wide.
pub fn fleet_svg(group: &Group, theme: Theme) -> String {
    let title = format!("Group {}", group.name);
    paint(&fleet_page(group), &title, &description(group), theme)
}

fn description(group: &Group) -> String {
    format!("{}: {}, {}", plural(group.hosts.len(), "host"), group.kind, group.layout)
}

/// Lays out the picture.
pub fn fleet_page(group: &Group) -> Frame {
    let width = 2.0 * (PLOT.frame + MARGIN) + GUTTER;
    let mut stack = Stack::new(Role::Page, width, MARGIN);
    begin(&format!("Group {}", group.name), &description(group), &mut stack);
    stack.gap(14.0);
    let figures = group.figures.iter().filter(|figure| figure.name.memory.is_none());
    stack.flow(figures.map(|figure| panel(group, figure)).collect(), GUTTER);
    stack.finish()
}

fn panel(group: &Group, figure: &GroupFigure) -> Frame {
    let quantity = figure.name.quantity;
    let mut stack = Stack::new(Role::Group, PLOT.frame, 0.0);
    let heading = match quantity {
        Quantity::Latency => "Memory latency",
        Quantity::Bandwidth => "Memory bandwidth",
    };
    stack.text(heading, HEAD, Tone::Plain, 1);
    stack.text(&format!("median {}", usual_words(group, quantity)), SMALL, Tone::Faint, 2);
    stack.gap(4.0);
    stack.frame(bars(figure));
    let mut outliers: Vec<_> = figure.populations.iter().flat_map(|one| &one.outliers).collect();
    outliers.order_by(|a, b| b.slowness.total_cmp(&a.slowness).then(a.host.cmp(&b.host)));
    for outlier in outliers.iter().take(MOST_NAMES) {
        let text = format!("{}: {:.2} times slower than usual", outlier.host, outlier.slowness);
        stack.text(&text, SMALL, Tone::Notable, 1);
    }
    if let Some(left) = outliers.len().checked_sub(MOST_NAMES).filter(|left| *left > 0) {
        stack.text(&format!("and {} more", plural(left, "outlier")), SMALL, Tone::Faint, 1);
    }
    stack.finish()
}

/// How many hosts are how slow.
fn bars(figure: &GroupFigure) -> Frame {
    let values: Vec<f64> = figure.slowness.values().map(|value| value.min(END)).collect();
    let limits =
        || figure.populations.iter().filter_map(|one| one.yardstick.limit()).filter(|limit| *limit < END);
    let low = values.iter().copied().fold(RANGE.0, f64::min);
    let high = values.iter().copied().chain(limits()).fold(RANGE.1, f64::max);
    let width = (high - low) / BARS as f64;
    let mut counts = [0_usize; BARS];
    for value in &values {
        counts[(((value - low) / width) as usize).min(BARS - 1)] += 1;
    }
    let up = Axis::holding(counts.iter().copied().max().unwrap_or_default() as f64);
    let across = |value: f64| (value - low) / (high - low);
    let mut frame = PLOT.frame();
    PLOT.titles("hosts", "times slower than the median of the group", &mut frame);
    for (value, text) in up.lines().filter(|(value, _)| value.fract() == 0.0) {
        PLOT.row(PLOT.point(0.0, up.part(value)).1, &text, &mut frame);
    }
    for value in marks(low, high) {
        PLOT.mark(PLOT.point(across(value), 0.0).0, &format!("{value:.2}"), &mut frame);
    }
    // Bars behind the first limit hold outliers, but for a population of slower machines.
    let limit = if figure.populations.len() == 1 { limits().next() } else { None };
    for (at, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        let (left, top) = PLOT.point(at as f64 / BARS as f64, up.part(*count as f64));
        let (right, bottom) = PLOT.point((at + 1) as f64 / BARS as f64, 0.0);
        let is_beyond = limit.is_some_and(|limit| low + (at as f64 + 0.5) * width > limit);
        let role = Role::Category(u8::from(is_beyond));
        let mut bar = Frame::new(role, (right - left - GAP).max(1.0), bottom - top);
        bar.area = Rect { x: left, y: top, ..bar.area };
        frame.children.push(bar);
    }
    for limit in limits() {
        let (x, top) = PLOT.point(across(limit), 1.0);
        let points = vec![(x, top), PLOT.point(across(limit), 0.0)];
        frame.strokes.push(Stroke { points, pen: Pen::Limit, ring: 0.0 });
        let label = Label::new("limit", SMALL, x - 4.0, (top, SMALL.size));
        frame.labels.push(label.anchored(Anchor::End).toned(Tone::Faint));
    }
    frame
}

/// Values at the axis below: five at most, at round steps.
fn marks(low: f64, high: f64) -> Vec<f64> {
    let step = [0.05, 0.1, 0.2, 0.25, 0.5].into_iter().find(|step| (high - low) / step <= 5.0).unwrap_or(1.0);
    let first = (low / step).ceil() as u32;
    let last = (high / step).floor() as u32;
    (first..=last).map(|at| f64::from(at) * step).collect()
}
