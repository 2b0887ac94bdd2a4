//! Latency by the size of what is chased, as steps: a bar for each size, both scales logarithmic.

use nodewise_machine::Bytes;
use nodewise_measure::latency::sweep::{ChaseReport, SweepReport, levels};

use crate::digest::counts::each_once;
use crate::digest::survey::{pages_words, platform};
use crate::digest::sweep::{ending, method, nodes_with_memory, pattern_words, short};
use crate::svg::frame::{Anchor, Frame, Label, Role, Stack, Tone};
use crate::svg::legend::square;
use crate::svg::paint::paint;
use crate::svg::palette::Theme;
use crate::svg::sheet::{self, HEAD, MARGIN, SMALL, TEXT, WIDTH};

/// Height of the bars, of the room above them for a number, and of the sizes below.
const PLOT: f64 = 200.0;
const ABOVE: f64 = 16.0;
const BELOW: f64 = 16.0;
/// Room for the scale on the left.
const LEFT: f64 = 64.0;
/// How the bars of several series look.
const ROLES: [Role; 4] = [Role::Thread, Role::SlowThread, Role::Used, Role::Distance(4)];

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
    sheet::begin(TITLE, &platform(&report.account.conditions), &mut stack);
    for node in nodes_with_memory(report) {
        let of_node: Vec<&ChaseReport> =
            report.chases.iter().filter(|chase| chase.cell.memory == node).collect();
        let series = series(&of_node);
        stack.gap(14.0);
        stack.text(&format!("Memory of node {node}"), HEAD, Tone::Plain, 1);
        stack.text(
            "ns per load by size, best of all samples; both scales logarithmic",
            SMALL,
            Tone::Faint,
            1,
        );
        stack.gap(4.0);
        if let Some(plot) = plot(&series) {
            stack.frame(plot);
        }
        stack.gap(6.0);
        stack.flow(series.iter().zip(ROLES).map(|(one, role)| square(role, &one.name)).collect(), 6.0);
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
    names.into_iter().take(ROLES.len()).map(of).collect()
}

/// The bars of all series, side by side for each size; `None` without any.
fn plot(series: &[Series]) -> Option<Frame> {
    let mut sizes: Vec<Bytes> =
        series.iter().flat_map(|one| one.points.iter().map(|point| point.0)).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let values = || series.iter().flat_map(|one| one.points.iter().map(|point| point.1));
    let (least, most) = (values().reduce(f64::min)?, values().reduce(f64::max)?);
    // From a decade's beginning to a decade's end, so that bars have a height to compare.
    let (low, high) = (least.log10().floor(), (most.log10() + 1e-9).ceil());
    let decades = (high - low).max(1.0);
    let height = |ns: f64| ((ns.log10() - low) / decades * PLOT).clamp(1.0, PLOT);
    let column = (WIDTH - LEFT) / sizes.len() as f64;
    let bar = ((column - 3.0) / series.len() as f64).max(0.5);
    let mut frame = Frame::new(Role::Group, WIDTH, ABOVE + PLOT + BELOW);
    for decade in 0..=decades as i32 {
        let ns = 10_f64.powi(low as i32 + decade);
        let y = ABOVE + PLOT - f64::from(decade) / decades * PLOT;
        let label = Label::new(&ns.to_string(), SMALL, LEFT - 6.0, (y - SMALL.size / 2.0, SMALL.size));
        frame.labels.push(label.anchored(Anchor::End).toned(Tone::Faint));
    }
    // As many sizes below as fit.
    let widest = sizes.iter().map(|size| SMALL.width(&short(*size))).fold(0.0, f64::max) + 4.0;
    let every = (widest / column).ceil().max(1.0) as usize;
    for (at, size) in sizes.iter().enumerate() {
        let left = LEFT + at as f64 * column;
        if at % every == 0 && left + column / 2.0 + widest / 2.0 <= WIDTH {
            let below = (ABOVE + PLOT + 2.0, BELOW - 2.0);
            let label = Label::new(&short(*size), SMALL, left + column / 2.0, below);
            frame.labels.push(label.anchored(Anchor::Middle).toned(Tone::Faint));
        }
        for (place, (one, role)) in series.iter().zip(ROLES).enumerate() {
            let Some((_, ns)) = one.points.iter().find(|(known, _)| known == size) else { continue };
            let bar_frame = Frame::new(role, bar, height(*ns));
            frame.children.push(bar_frame.moved(left + place as f64 * bar, ABOVE + PLOT - height(*ns)));
        }
    }
    Some(frame)
}
