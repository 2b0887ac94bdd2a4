//! Latency by the size of what is chased, as steps: a bar for each size, both scales logarithmic.

use nodewise_machine::Bytes;
use nodewise_measure::latency::sweep::{ChaseReport, SweepReport, levels};

use crate::digest::counts::each_once;
use crate::digest::survey::{caption, pages_words};
use crate::digest::sweep::{ending, method, nodes_with_memory, pattern_words, short};
use crate::svg::frame::{Frame, Role, Stack, Tone};
use crate::svg::legend::square;
use crate::svg::paint::paint;
use crate::svg::palette::Theme;
use crate::svg::plot::{LogAxis, Plot, category};
use crate::svg::sheet::{self, HEAD, MARGIN, SMALL, TEXT, WIDTH};

const PLOT: Plot = Plot { frame: WIDTH, height: 220.0, right: 10.0 };
/// Most series that are drawn.
const MOST_SERIES: usize = Role::CATEGORIES as usize;

const TITLE: &str = "Memory latency by size";

/// Bars of one kind: what they show, and a value for each size.
struct Series {
    name: String,
    points: Vec<(Bytes, f64)>,
}

/// Draws a sweep or a table as an SVG document.
///
/// # Units
/// Lengths in px.
pub fn sweep_svg(report: &SweepReport, theme: Theme) -> String {
    paint(&sweep_page(report), TITLE, &method(report), theme)
}

/// Lays out the picture.
pub fn sweep_page(report: &SweepReport) -> Frame {
    let mut stack = Stack::new(Role::Page, WIDTH + 2.0 * MARGIN, MARGIN);
    sheet::begin(TITLE, &caption(&report.account.conditions), &mut stack);
    for node in nodes_with_memory(report) {
        let of_node: Vec<&ChaseReport> =
            report.chases.iter().filter(|chase| chase.cell.memory == node).collect();
        let series = series(&of_node);
        stack.gap(14.0);
        stack.text(&format!("Memory of node {node}"), HEAD, Tone::Plain, 1);
        stack.text("best of all samples; both axes logarithmic", SMALL, Tone::Faint, 1);
        stack.gap(4.0);
        if let Some(plot) = plot(&series) {
            stack.frame(plot);
        }
        stack.gap(6.0);
        let entry = |(at, one): (usize, &Series)| square(Role::Category(category(at)), &one.name);
        stack.flow(series.iter().enumerate().map(entry).collect(), 6.0);
    }
    stack.gap(10.0);
    for line in levels_words(report) {
        stack.text(&line, TEXT, Tone::Plain, 2);
    }
    sheet::end(&ending(report), &mut stack);
    stack.finish()
}

/// The levels of the first series, where one goes through sizes in random order.
fn levels_words(report: &SweepReport) -> Vec<String> {
    let Some(first) = report.chases.first() else { return Vec::new() };
    if report.chases.iter().any(|chase| chase.pattern != first.pattern) {
        return Vec::new();
    }
    let found = levels(&report.staircase(first.cell.memory, first.cell.pages));
    let words = |level: &nodewise_measure::latency::sweep::Level| {
        let more = if level.is_last { " and more" } else { "" };
        let claim = report.claim_of(level).map_or_else(String::new, |claimed| {
            format!(" (the system claims {} of {})", claimed.name, claimed.size)
        });
        format!("up to {}{more}: {:.1} ns{claim}", level.holds, level.ns)
    };
    found.iter().map(words).collect()
}

/// The bars, by kind of page or by way.
fn series(chases: &[&ChaseReport]) -> Vec<Series> {
    let several_pages = chases.iter().any(|chase| chase.cell.pages != chases[0].cell.pages);
    let name = |chase: &ChaseReport| match several_pages {
        true => pages_words(chase.cell.pages),
        false => pattern_words(chase.pattern),
    };
    let point = |chase: &ChaseReport| {
        let best = chase.cell.figure.as_ref()?.best;
        (best > 0.0).then_some((chase.size, best))
    };
    let of = |one: String| {
        let chases = chases.iter().filter(|chase| name(chase) == one);
        Series { points: chases.filter_map(|chase| point(chase)).collect(), name: one }
    };
    let names = each_once(chases.iter().map(|chase| name(chase)));
    names.into_iter().take(MOST_SERIES).map(of).collect()
}

/// The bars of all series, side by side for each size; `None` without any.
fn plot(series: &[Series]) -> Option<Frame> {
    let mut sizes: Vec<Bytes> =
        series.iter().flat_map(|one| one.points.iter().map(|point| point.0)).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let values = || series.iter().flat_map(|one| one.points.iter().map(|point| point.1));
    let (least, most) = (values().reduce(f64::min)?, values().reduce(f64::max)?);
    // From the beginning of a decade, so that bars have a height to compare.
    let axis = LogAxis::holding(least, most).down_to_decade();
    let mut frame = PLOT.frame();
    PLOT.titles("latency, ns per load", "size of what is read", &mut frame);
    for (ns, text) in axis.lines() {
        PLOT.row(PLOT.point(0.0, axis.part(ns)).1, &text, &mut frame);
    }
    let column = PLOT.width() / sizes.len() as f64;
    let bar = ((column - 3.0) / series.len() as f64).max(0.5);
    // As many sizes below as fit.
    let widest = sizes.iter().map(|size| SMALL.width(&short(*size))).fold(0.0, f64::max) + 4.0;
    let every = (widest / column).ceil().max(1.0) as usize;
    for (at, size) in sizes.iter().enumerate() {
        let left = PLOT.point(0.0, 0.0).0 + at as f64 * column;
        if at % every == 0 && left + column / 2.0 + widest / 2.0 <= WIDTH {
            PLOT.mark(left + column / 2.0, &short(*size), &mut frame);
        }
        for (place, one) in series.iter().enumerate() {
            let Some((_, ns)) = one.points.iter().find(|(known, _)| known == size) else { continue };
            let ((_, top), (_, bottom)) = (PLOT.point(0.0, axis.part(*ns)), PLOT.point(0.0, 0.0));
            let height = (bottom - top).max(1.0);
            let bar_frame = Frame::new(Role::Category(category(place)), bar, height);
            frame.children.push(bar_frame.moved(left + place as f64 * bar, bottom - height));
        }
    }
    Some(frame)
}
