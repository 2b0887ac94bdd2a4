//! Tables of perftest as curves: the value by the size of messages, both scales logarithmic, a curve per
//! side, a ring around each kink.

use nodewise_machine::Bytes;
use nodewise_measure::perftest::{Comparison, Side};

use crate::digest::perftest::{axis, kink_sizes, problems, remark, sentences, short, title};
use crate::svg::frame::{Frame, Role, Stack, Stroke, Tone};
use crate::svg::legend;
use crate::svg::paint::paint;
use crate::svg::palette::Theme;
use crate::svg::plot::{LogAxis, POINT, Plot, pen};
use crate::svg::sheet::{self, HEAD, MARGIN, SMALL, TEXT, TITLE, WIDTH};

const PLOT: Plot = Plot { frame: WIDTH, height: 280.0, right: 16.0 };
/// Radius of the ring around a kink.
const KINK: f64 = 6.0;

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
    stack.text("output of perftest, which names neither its machine nor a date", TEXT, Tone::Faint, 2);
    panels(comparisons, &mut stack);
    stack.finish()
}

/// Adds a plot for each comparison, with what it shows.
pub(super) fn panels(comparisons: &[Comparison], stack: &mut Stack) {
    for comparison in comparisons {
        stack.gap(14.0);
        stack.text(title(comparison.kind()), HEAD, Tone::Plain, 1);
        let scales = "both axes logarithmic; a ring marks a kink";
        stack.text(&format!("{}; {scales}", remark(comparison.kind())), SMALL, Tone::Faint, 2);
        stack.gap(4.0);
        if let Some(scale) = Scale::from_comparison(comparison) {
            stack.frame(plot(comparison, &scale));
        }
        stack.gap(6.0);
        stack.flow(comparison.sides().iter().enumerate().map(|(at, side)| entry(at, side)).collect(), 6.0);
        stack.gap(4.0);
        let shown = sentences(comparison).into_iter().map(|sentence| (Tone::Plain, sentence));
        let problems = problems(comparison).into_iter().map(|problem| (Tone::Notable, problem));
        sheet::some(&shown.chain(problems).collect::<Vec<_>>(), 2, stack);
    }
}

/// The axes: sizes from one doubling to another, as logarithms of 2, and values.
struct Scale {
    sizes: (f64, f64),
    values: LogAxis,
}

impl Scale {
    /// Around all points; `None` without points.
    fn from_comparison(comparison: &Comparison) -> Option<Self> {
        let points: Vec<(f64, f64)> = comparison.sides().iter().flat_map(places).collect();
        let ends = |of: fn(&(f64, f64)) -> f64| {
            let low = points.iter().map(of).reduce(f64::min)?;
            Some((low, points.iter().map(of).reduce(f64::max)?))
        };
        let ((low, high), (least, most)) = (ends(|point| point.0)?, ends(|point| point.1)?);
        // At least one step, so that there is an axis.
        let sizes = (low.floor(), high.ceil().max(low.floor() + 1.0));
        Some(Self { sizes, values: LogAxis::holding(least, most) })
    }

    /// The point of a size, as a logarithm, and a value, px.
    fn point(&self, (size, value): (f64, f64)) -> (f64, f64) {
        let (low, high) = self.sizes;
        PLOT.point((size - low) / (high - low), self.values.part(value))
    }
}

/// The sizes, as logarithms of 2, and the values; those of 0 have no place.
fn places(side: &Side) -> Vec<(f64, f64)> {
    let curve = side.table.curve().into_iter().filter(|(size, value)| size.get() > 0 && *value > 0.0);
    curve.map(|(size, value)| (octaves(size), value)).collect()
}

fn octaves(size: Bytes) -> f64 {
    (size.get() as f64).log2()
}

fn plot(comparison: &Comparison, scale: &Scale) -> Frame {
    let mut frame = PLOT.frame();
    PLOT.titles(axis(comparison.kind()), "message size, bytes", &mut frame);
    grid(scale, &mut frame);
    for (at, side) in comparison.sides().iter().enumerate() {
        let points = places(side).into_iter().map(|place| scale.point(place)).collect();
        frame.strokes.push(Stroke { points, pen: pen(at), ring: POINT });
        for size in kink_sizes(side) {
            let value = side.table.value(size).filter(|value| *value > 0.0);
            let points = value.map(|value| scale.point((octaves(size), value)));
            frame.strokes.push(Stroke { points: points.into_iter().collect(), pen: pen(at), ring: KINK });
        }
    }
    frame
}

/// The lines of both scales, with their numbers: every doubling, or as many as have room.
fn grid(scale: &Scale, frame: &mut Frame) {
    let (low, high) = scale.sizes;
    let column = PLOT.width() / (high - low);
    let widest = SMALL.width("512K") + 6.0;
    let every = (widest / column).ceil().max(1.0) as usize;
    for size in (low as i32..=high as i32).step_by(every).map(f64::from) {
        let x = PLOT.point((size - low) / (high - low), 0.0).0;
        PLOT.column(x, &short(Bytes::new(size.exp2() as u64)), frame);
    }
    for (value, text) in scale.values.lines() {
        PLOT.row(scale.point((low, value)).1, &text, frame);
    }
}

/// A side's colour and name.
fn entry(at: usize, side: &Side) -> Frame {
    legend::curve(at, &SMALL.fit(&side.label, WIDTH - 60.0))
}
