//! Tables of perftest as curves: the value by the size of messages, both scales logarithmic, a curve per
//! side, a ring around each kink.

use nodewise_machine::Bytes;
use nodewise_measure::perftest::{Comparison, Side};

use crate::digest::perftest::{kink_sizes, problems, remark, sentences, short, title};
use crate::svg::frame::{Frame, Role, Stack, Stroke, Tone};
use crate::svg::legend;
use crate::svg::paint::paint;
use crate::svg::palette::Theme;
use crate::svg::plot::{POINT, Plot, pen};
use crate::svg::sheet::{self, HEAD, MARGIN, SMALL, TITLE, WIDTH};

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
        stack.flow(comparison.sides().iter().enumerate().map(|(at, side)| entry(at, side)).collect(), 6.0);
        stack.gap(4.0);
        let shown = sentences(comparison).into_iter().map(|sentence| (Tone::Plain, sentence));
        let problems = problems(comparison).into_iter().map(|problem| (Tone::Notable, problem));
        sheet::some(&shown.chain(problems).collect::<Vec<_>>(), 2, stack);
    }
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
        PLOT.point(part(size, self.sizes), part(value, self.values))
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
    let mut frame = PLOT.frame();
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
    let column = PLOT.width() / doublings;
    let widest = SMALL.width("512K") + 6.0;
    for size in whole(scale.sizes, (widest / column).ceil() as usize) {
        let (x, _) = scale.point((size, scale.values.0));
        PLOT.column(x, &short(Bytes::new(size.exp2() as u64)), frame);
    }
    for value in whole(scale.values, 1) {
        PLOT.row(scale.point((scale.sizes.0, value)).1, &decade(value), frame);
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

/// A side's colour and name.
fn entry(at: usize, side: &Side) -> Frame {
    legend::curve(at, &SMALL.fit(&side.label, WIDTH - 60.0))
}
