//! What pictures of curves have alike: a plot with lines and numbers along both scales, and the entries of
//! its legend.

use crate::svg::font::Font;
use crate::svg::frame::{Anchor, Frame, Label, Pen, Role, Stroke, Tone};
use crate::svg::sheet::{SMALL, WIDTH};

/// The room above a plot, and that of the scale below.
const ABOVE: f64 = 10.0;
const BELOW: f64 = 18.0;
/// Room for the scale on the left.
const LEFT: f64 = 64.0;
/// Radius of a point on a curve.
pub(super) const POINT: f64 = 1.2;
const FONT: Font = SMALL;

/// Where a plot lies in its frame, px.
#[derive(Clone, Copy)]
pub(super) struct Plot {
    /// Its height.
    pub(super) height: f64,
    /// Room on its right, for the rings of points at its edge.
    pub(super) right: f64,
}

impl Plot {
    /// A frame for it and its scales.
    pub(super) const fn frame(self) -> Frame {
        Frame::new(Role::Group, WIDTH, ABOVE + self.height + BELOW)
    }

    /// Its width.
    pub(super) fn width(self) -> f64 {
        WIDTH - LEFT - self.right
    }

    /// The point at these parts of its width, from the left, and of its height, from below.
    pub(super) fn point(self, across: f64, up: f64) -> (f64, f64) {
        (LEFT + across * self.width(), ABOVE + self.height - up * self.height)
    }

    /// A line from its top to its bottom, with what it stands for below.
    pub(super) fn column(self, x: f64, text: String, frame: &mut Frame) {
        let points = vec![(x, ABOVE), (x, ABOVE + self.height)];
        frame.strokes.push(Stroke { points, pen: Pen::Grid, ring: 0.0 });
        let y = Label::baseline(FONT.size, ABOVE + self.height + 4.0, BELOW - 4.0);
        frame.labels.push(label(x, y, Anchor::Middle, text));
    }

    /// A line from its left to its right, with what it stands for on the left.
    pub(super) fn row(self, y: f64, text: String, frame: &mut Frame) {
        let points = vec![(LEFT, y), (WIDTH - self.right, y)];
        frame.strokes.push(Stroke { points, pen: Pen::Grid, ring: 0.0 });
        let y = Label::baseline(FONT.size, y - FONT.size / 2.0, FONT.size);
        frame.labels.push(label(LEFT - 8.0, y, Anchor::End, text));
    }
}

const fn label(x: f64, y: f64, anchor: Anchor, text: String) -> Label {
    Label { x, y, font: FONT, anchor, tone: Tone::Faint, text }
}

/// How the curve with this number is drawn; colours come again after the last.
pub(super) fn pen(at: usize) -> Pen {
    Pen::Series(u8::try_from(at % usize::from(Pen::SERIES)).unwrap_or(0))
}

/// The entry of a curve in the legend.
pub(super) fn entry(at: usize, text: String) -> Frame {
    let mut entry = Frame::new(Role::Group, 26.0 + FONT.width(&text) + 12.0, 16.0);
    entry.strokes.push(Stroke { points: vec![(1.0, 8.0), (19.0, 8.0)], pen: pen(at), ring: POINT });
    let y = Label::baseline(FONT.size, 0.0, 16.0);
    entry.labels.push(Label { tone: Tone::Plain, ..label(25.0, y, Anchor::Start, text) });
    entry
}
