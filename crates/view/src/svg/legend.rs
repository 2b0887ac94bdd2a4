//! The meanings of the colours of a picture: the entries of a legend.

use crate::svg::frame::{Anchor, Frame, Label, Role, Stroke, Tone};
use crate::svg::plot::{POINT, pen};
use crate::svg::sheet::SMALL;

/// Height of an entry.
const HEIGHT: f64 = 16.0;
/// Room on both sides of words that are on their colour.
const SIDE: f64 = 6.0;
/// A square beside words, and the room that it takes.
const SQUARE: f64 = 10.0;
const BESIDE: f64 = 15.0;

/// Words on their colour: for colours that leave them legible.
pub(super) fn swatch(role: Role, text: &str) -> Frame {
    let label = Label::new(text, SMALL, 0.0, (0.0, HEIGHT)).anchored(Anchor::Middle);
    let width = label.area().width + 2.0 * SIDE;
    let mut swatch = Frame::new(role, width, HEIGHT);
    swatch.labels.push(Label { x: width / 2.0, ..label }.toned(Tone::on(role)));
    swatch
}

/// A colour bar: the colours side by side, with the values at their edges and the unit below. There is one
/// value more than there are colours.
pub(super) fn colour_bar(colours: &[Role], values: &[String], unit: &str) -> Frame {
    const BAR: f64 = 10.0;
    const APART: f64 = 10.0;
    let widths = || values.iter().map(|value| SMALL.width(value));
    let side = widths().next().unwrap_or_default() / 2.0;
    let each = widths().fold(30.0, f64::max) + APART;
    let end = side + colours.len() as f64 * each;
    let unit =
        Label::new(unit, SMALL, end + widths().next_back().unwrap_or_default() / 2.0 + 5.0, (BAR, HEIGHT));
    let mut bar = Frame::new(Role::Group, unit.area().right() + 1.0, BAR + HEIGHT);
    for (at, colour) in (0_u32..).zip(colours) {
        bar.children.push(Frame::new(*colour, each, BAR).moved(side + f64::from(at) * each, 0.0));
    }
    for (at, value) in (0_u32..).zip(values) {
        let label = Label::new(value, SMALL, side + f64::from(at) * each, (BAR, HEIGHT));
        bar.labels.push(label.anchored(Anchor::Middle));
    }
    bar.labels.push(unit);
    bar
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
