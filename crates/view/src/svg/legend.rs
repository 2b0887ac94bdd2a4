//! What the colours of a picture stand for: the entries of a legend.

use crate::svg::frame::{Anchor, Frame, Label, Role, Stroke};
use crate::svg::plot::{POINT, pen};
use crate::svg::sheet::SMALL;

/// Height of an entry.
const HEIGHT: f64 = 16.0;
/// Room on both sides of words that stand on their colour.
const SIDE: f64 = 6.0;
/// A square beside words, and the room that it takes.
const SQUARE: f64 = 10.0;
const BESIDE: f64 = 15.0;

/// Words on their colour: for colours that leave them legible.
pub(super) fn swatch(role: Role, text: &str) -> Frame {
    let label = Label::new(text, SMALL, 0.0, (0.0, HEIGHT)).anchored(Anchor::Middle);
    let width = label.area().width + 2.0 * SIDE;
    let mut swatch = Frame::new(role, width, HEIGHT);
    swatch.labels.push(Label { x: width / 2.0, ..label });
    swatch
}

/// Words beside a square of their colour.
pub(super) fn square(role: Role, text: &str) -> Frame {
    let label = Label::new(text, SMALL, BESIDE, (0.0, HEIGHT));
    let mut entry = Frame::new(Role::Group, label.area().right() + 3.0, HEIGHT);
    entry.children.push(Frame::new(role, SQUARE, SQUARE).moved(0.0, (HEIGHT - SQUARE) / 2.0));
    entry.labels.push(label);
    entry
}

/// Words beside a piece of the curve with this number.
pub(super) fn curve(at: usize, text: &str) -> Frame {
    let label = Label::new(text, SMALL, 25.0, (0.0, HEIGHT));
    let mut entry = Frame::new(Role::Group, label.area().right() + 13.0, HEIGHT);
    entry.strokes.push(Stroke { points: vec![(1.0, 8.0), (19.0, 8.0)], pen: pen(at), ring: POINT });
    entry.labels.push(label);
    entry
}
