//! What pictures of curves have alike: a plot with lines and numbers along both scales, and how curves are
//! drawn.

use crate::svg::frame::{Anchor, Frame, Label, Pen, Role, Stroke, Tone};
use crate::svg::sheet::SMALL;

/// The room above a plot, and that of the scale below.
const ABOVE: f64 = 10.0;
const BELOW: f64 = 18.0;
/// Room for the scale on the left.
const LEFT: f64 = 64.0;
/// Radius of a point on a curve, and of the ring around a knee.
pub(super) const POINT: f64 = 1.2;
pub(super) const KNEE: f64 = 6.0;

/// Where a plot lies in its frame, px.
#[derive(Clone, Copy)]
pub(super) struct Plot {
    /// The width of the frame, scale and room on the right included.
    pub(super) frame: f64,
    /// Its height.
    pub(super) height: f64,
    /// Room on its right, for the rings of points at its edge.
    pub(super) right: f64,
}

impl Plot {
    /// A frame for it and its scales.
    pub(super) const fn frame(self) -> Frame {
        Frame::new(Role::Group, self.frame, ABOVE + self.height + BELOW)
    }

    /// Its width.
    pub(super) fn width(self) -> f64 {
        self.frame - LEFT - self.right
    }

    /// The point at these parts of its width, from the left, and of its height, from below.
    pub(super) fn point(self, across: f64, up: f64) -> (f64, f64) {
        (LEFT + across * self.width(), ABOVE + self.height - up * self.height)
    }

    /// A line from its top to its bottom, with what it stands for below.
    pub(super) fn column(self, x: f64, text: &str, frame: &mut Frame) {
        let points = vec![(x, ABOVE), (x, ABOVE + self.height)];
        frame.strokes.push(Stroke { points, pen: Pen::Grid, ring: 0.0 });
        let label = Label::new(text, SMALL, x, (ABOVE + self.height + 4.0, BELOW - 4.0));
        frame.labels.push(label.anchored(Anchor::Middle).toned(Tone::Faint));
    }

    /// A line from its left to its right, with what it stands for on the left.
    pub(super) fn row(self, y: f64, text: &str, frame: &mut Frame) {
        let points = vec![(LEFT, y), (self.frame - self.right, y)];
        frame.strokes.push(Stroke { points, pen: Pen::Grid, ring: 0.0 });
        let label = Label::new(text, SMALL, LEFT - 8.0, (y - SMALL.size / 2.0, SMALL.size));
        frame.labels.push(label.anchored(Anchor::End).toned(Tone::Faint));
    }
}

/// A scale that begins at 0, with lines at steps of 1, 2 or 5 of a decade.
#[derive(Clone, Copy)]
pub(super) struct Axis {
    end: f64,
    step: f64,
}

impl Axis {
    /// The scale that holds a value: four to eight steps.
    pub(super) fn holding(value: f64) -> Self {
        let least = value.max(1e-3) / 8.0;
        let decade = 10_f64.powf(least.log10().floor());
        let step = [1.0, 2.0, 5.0].map(|of| of * decade).into_iter().find(|step| *step >= least);
        let step = step.unwrap_or(10.0 * decade);
        Self { end: (value / step * 1.0001).ceil().max(1.0) * step, step }
    }

    /// The part of the scale at which a value stands: 1 for its end.
    pub(super) fn part(self, value: f64) -> f64 {
        value / self.end
    }

    /// The values at its lines, and how they are written.
    pub(super) fn lines(self) -> impl Iterator<Item = (f64, String)> {
        let value = move |at| f64::from(at) * self.step;
        (0..=(self.end / self.step).round() as u32).map(value).map(|value| (value, short(value)))
    }
}

/// A number of a scale.
fn short(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// How the curve with this number is drawn; colours come again after the last.
pub(super) fn pen(at: usize) -> Pen {
    Pen::Series(u8::try_from(at % usize::from(Pen::SERIES)).unwrap_or(0))
}
