//! Tables of perftest as curves: the value by the size of messages, both scales logarithmic, a curve per
//! side, a ring around each kink.

use nodewise_machine::Bytes;
use nodewise_measure::perftest::{Comparison, Side};

use crate::digest::perftest::{kink_sizes, problems, remark, sentences, short, title};
use crate::svg::font::Font;
use crate::svg::frame::{Anchor, Frame, Label, Pen, Role, Stack, Stroke, Tone};
use crate::svg::paint::paint;
use crate::svg::palette::Theme;

const WIDTH: f64 = 940.0;
const MARGIN: f64 = 24.0;
const TITLE: Font = Font::bold(18.0);
const HEAD: Font = Font::bold(12.0);
const TEXT: Font = Font::regular(12.0);
const SMALL: Font = Font::regular(10.0);
/// Height of the plot, of the room above it, and of the scale below.
const PLOT: f64 = 280.0;
const ABOVE: f64 = 10.0;
const BELOW: f64 = 18.0;
/// Room for the scale on the left, and for rings on the right.
const LEFT: f64 = 64.0;
const RIGHT: f64 = 16.0;
/// Radius of a point, and of a kink.
const POINT: f64 = 1.2;
const KINK: f64 = 6.0;
/// At most so many sentences stand below a plot.
const MOST_SENTENCES: usize = 12;

/// Draws comparisons as an SVG document.
///
/// # Units
/// Lengths in px.
pub fn perftest_svg(comparisons: &[Comparison], theme: Theme) -> String {
    let about = "latency and bandwidth of an RDMA device by the size of messages";
    paint(&perftest_page(comparisons), "perftest side by side", about, theme)
}

/// Lays out the picture.
pub fn perftest_page(comparisons: &[Comparison]) -> Frame {
    let mut stack = Stack::new(Role::Page, WIDTH + 2.0 * MARGIN, MARGIN);
    stack.text("perftest side by side", TITLE, Tone::Plain, 1);
    panels(comparisons, &mut stack);
    stack.finish()
}

/// Adds a plot for each comparison, with what it shows.
pub(super) fn panels(comparisons: &[Comparison], stack: &mut Stack) {
    for comparison in comparisons {
        stack.gap(14.0);
        stack.text(title(comparison.kind()), HEAD, Tone::Plain, 1);
        let scales = "by size in bytes; both scales logarithmic; a ring marks a kink";
        stack.text(&format!("{}; {scales}", remark(comparison.kind())), SMALL, Tone::Faint, 2);
        stack.gap(4.0);
        if let Some(scale) = Scale::of(comparison) {
            stack.frame(plot(comparison, &scale));
        }
        stack.gap(6.0);
        stack.flow(comparison.sides().iter().enumerate().map(|(at, side)| legend(at, side)).collect(), 6.0);
        stack.gap(4.0);
        let told = sentences(comparison).into_iter().chain(problems(comparison));
        for sentence in told.take(MOST_SENTENCES) {
            stack.text(&printable(&sentence), TEXT, Tone::Plain, 2);
        }
    }
}

fn printable(text: &str) -> String {
    nodewise_machine::printable::printable(text).into_owned()
}

/// What the axes go from and to, as logarithms: of 2 for sizes, of 10 for values.
struct Scale {
    sizes: (f64, f64),
    values: (f64, f64),
}

impl Scale {
    /// Whole doublings and decades around all points; `None` without points.
    fn of(comparison: &Comparison) -> Option<Self> {
        let points: Vec<(f64, f64)> = comparison.sides().iter().flat_map(places).collect();
        let ends = |of: fn(&(f64, f64)) -> f64| {
            let low = points.iter().map(of).reduce(f64::min)?;
            let high = points.iter().map(of).reduce(f64::max)?;
            // At least one step, so that there is an axis.
            Some((low.floor(), high.ceil().max(low.floor() + 1.0)))
        };
        Some(Self { sizes: ends(|point| point.0)?, values: ends(|point| point.1)? })
    }

    /// The point of two logarithms, px.
    fn point(&self, (size, value): (f64, f64)) -> (f64, f64) {
        let part = |of: f64, (low, high): (f64, f64)| (of - low) / (high - low);
        let (across, up) = (part(size, self.sizes), part(value, self.values));
        (LEFT + across * (WIDTH - LEFT - RIGHT), ABOVE + PLOT - up * PLOT)
    }
}

/// The logarithms of sizes and values; those of 0 have none.
fn places(side: &Side) -> Vec<(f64, f64)> {
    let curve = side.table.curve().into_iter().filter(|(size, value)| size.get() > 0 && *value > 0.0);
    curve.map(|(size, value)| place(size, value)).collect()
}

fn place(size: Bytes, value: f64) -> (f64, f64) {
    ((size.get() as f64).log2(), value.log10())
}

fn plot(comparison: &Comparison, scale: &Scale) -> Frame {
    let mut frame = Frame::new(Role::Group, WIDTH, ABOVE + PLOT + BELOW);
    grid(scale, &mut frame);
    for (at, side) in comparison.sides().iter().enumerate() {
        let points = places(side).into_iter().map(|place| scale.point(place)).collect();
        frame.strokes.push(Stroke { points, pen: pen(at), ring: POINT });
        for size in kink_sizes(side) {
            let points = side.table.value(size).map(|value| scale.point(place(size, value)));
            frame.strokes.push(Stroke { points: points.into_iter().collect(), pen: pen(at), ring: KINK });
        }
    }
    frame
}

/// The lines of both scales, with their numbers: every doubling, or as many as have room.
fn grid(scale: &Scale, frame: &mut Frame) {
    let whole = |(low, high): (f64, f64), every: usize| {
        (low as i32..=high as i32).step_by(every.max(1)).map(f64::from)
    };
    let doublings = scale.sizes.1 - scale.sizes.0;
    let column = (WIDTH - LEFT - RIGHT) / doublings;
    let widest = SMALL.width("512K") + 6.0;
    for size in whole(scale.sizes, (widest / column).ceil() as usize) {
        let (x, _) = scale.point((size, scale.values.0));
        let points = vec![(x, ABOVE), (x, ABOVE + PLOT)];
        frame.strokes.push(Stroke { points, pen: Pen::Grid, ring: 0.0 });
        let y = Label::baseline(SMALL.size, ABOVE + PLOT + 4.0, BELOW - 4.0);
        frame.labels.push(label(x, y, Anchor::Middle, short(Bytes::new(size.exp2() as u64))));
    }
    for value in whole(scale.values, 1) {
        let (_, y) = scale.point((scale.sizes.0, value));
        frame.strokes.push(Stroke { points: vec![(LEFT, y), (WIDTH - RIGHT, y)], pen: Pen::Grid, ring: 0.0 });
        let y = Label::baseline(SMALL.size, y - SMALL.size / 2.0, SMALL.size);
        frame.labels.push(label(LEFT - 8.0, y, Anchor::End, decade(value)));
    }
}

/// A power of ten as it is written on a scale.
fn decade(power: f64) -> String {
    if power.abs() <= 6.0 {
        let decimals = (-power).max(0.0) as usize;
        format!("{:.decimals$}", 10_f64.powf(power))
    } else {
        format!("1e{power}")
    }
}

const fn label(x: f64, y: f64, anchor: Anchor, text: String) -> Label {
    Label { x, y, font: SMALL, anchor, tone: Tone::Faint, text }
}

fn pen(at: usize) -> Pen {
    Pen::Series(u8::try_from(at % usize::from(Pen::SERIES)).unwrap_or(0))
}

/// A side's colour and name.
fn legend(at: usize, side: &Side) -> Frame {
    let text = SMALL.fit(&printable(&side.label), WIDTH - 60.0);
    let mut entry = Frame::new(Role::Group, 26.0 + SMALL.width(&text) + 12.0, 16.0);
    entry.strokes.push(Stroke { points: vec![(1.0, 8.0), (19.0, 8.0)], pen: pen(at), ring: POINT });
    let y = Label::baseline(SMALL.size, 0.0, 16.0);
    entry.labels.push(Label { tone: Tone::Plain, ..label(25.0, y, Anchor::Start, text) });
    entry
}
