//! Common parts of pictures of curves: a plot with lines and numbers along both scales, and how curves are
//! drawn.

use crate::svg::frame::{Anchor, Frame, Label, Pen, Role, Stroke, Tone};
use crate::svg::sheet::SMALL;

/// Height of the title of an axis.
const TITLE: f64 = 16.0;
/// The room above a plot, with the title of the axis on the left, and that of the scale below, with its own.
const ABOVE: f64 = TITLE + 10.0;
const SCALE: f64 = 18.0;
const BELOW: f64 = SCALE + TITLE;
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
    pub(super) height: f64,
    /// Room on its right, for the rings of points at its edge.
    pub(super) right: f64,
}

impl Plot {
    /// A frame for it and its scales.
    pub(super) const fn frame(self) -> Frame {
        Frame::new(Role::Group, self.frame, ABOVE + self.height + BELOW)
    }

    /// The titles of its axes: of the one on the left above it, of the one below under its numbers.
    pub(super) fn titles(self, up: &str, across: &str, frame: &mut Frame) {
        let up = Label::new(up, SMALL, LEFT - 8.0 - SMALL.width("000"), (0.0, TITLE));
        let middle = LEFT + self.width() / 2.0;
        let across = Label::new(across, SMALL, middle, (ABOVE + self.height + SCALE, TITLE));
        frame.labels.extend([up, across.anchored(Anchor::Middle)]);
    }

    /// Its width.
    pub(super) fn width(self) -> f64 {
        self.frame - LEFT - self.right
    }

    /// The point at these parts of its width, from the left, and of its height, from below.
    pub(super) fn point(self, across: f64, up: f64) -> (f64, f64) {
        (LEFT + across * self.width(), ABOVE + self.height - up * self.height)
    }

    /// A line from its top to its bottom, with what it is for below.
    pub(super) fn column(self, x: f64, text: &str, frame: &mut Frame) {
        let points = vec![(x, ABOVE), (x, ABOVE + self.height)];
        frame.strokes.push(Stroke { points, pen: Pen::Grid, ring: 0.0 });
        self.mark(x, text, frame);
    }

    /// A number at the axis below.
    pub(super) fn mark(self, x: f64, text: &str, frame: &mut Frame) {
        let label = Label::new(text, SMALL, x, (ABOVE + self.height + 4.0, SCALE - 4.0));
        frame.labels.push(label.anchored(Anchor::Middle).toned(Tone::Faint));
    }

    /// A line from its left to its right, with what it is for on the left, if that is written.
    pub(super) fn row(self, y: f64, text: &str, frame: &mut Frame) {
        let points = vec![(LEFT, y), (self.frame - self.right, y)];
        frame.strokes.push(Stroke { points, pen: Pen::Grid, ring: 0.0 });
        if !text.is_empty() {
            let label = Label::new(text, SMALL, LEFT - 8.0, (y - SMALL.size / 2.0, SMALL.size));
            frame.labels.push(label.anchored(Anchor::End).toned(Tone::Faint));
        }
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

    /// The place of a value on the scale: 1 for its end.
    pub(super) fn part(self, value: f64) -> f64 {
        value / self.end
    }

    /// The values at its lines, and how they are written.
    pub(super) fn lines(self) -> impl Iterator<Item = (f64, String)> {
        let value = move |at| f64::from(at) * self.step;
        (0..=(self.end / self.step).round() as u32).map(value).map(|value| (value, short(value)))
    }
}

/// A logarithmic scale, with lines at 1, 2 and 5 of each decade.
#[derive(Clone, Copy)]
pub(super) struct LogAxis {
    /// The ends as logarithms of 10.
    low: f64,
    high: f64,
}

/// Where the lines of a decade are.
const MARKS: [f64; 3] = [1.0, 2.0, 5.0];
/// Up to this many decades every line has its number; beyond, only that of the decade itself.
const NUMBERED_DECADES: f64 = 4.0;

impl LogAxis {
    /// The scale that holds the values from the least to the most, from one line to another; both are above 0.
    pub(super) fn holding(least: f64, most: f64) -> Self {
        // A value on a line, but for rounding, needs no further one.
        const SLACK: f64 = 1e-9;
        let marks = |decade: f64| MARKS.map(|mark| decade + mark.log10());
        let (least, most) = (least.log10(), most.max(least).log10());
        let below = marks(least.floor()).into_iter().rfind(|mark| *mark <= least + SLACK);
        let low = below.unwrap_or_else(|| least.floor());
        let above = marks(most.floor()).into_iter().find(|mark| *mark >= most - SLACK && *mark > low + SLACK);
        Self { low, high: above.unwrap_or_else(|| most.floor() + 1.0) }
    }

    /// The same from the beginning of its first decade on.
    pub(super) fn down_to_decade(self) -> Self {
        Self { low: self.low.floor(), ..self }
    }

    /// The place of a value on the scale: 1 for its end.
    pub(super) fn part(self, value: f64) -> f64 {
        (value.log10() - self.low) / (self.high - self.low)
    }

    /// The values at its lines, and how they are written; nothing where there are many.
    pub(super) fn lines(self) -> impl Iterator<Item = (f64, String)> {
        const SLACK: f64 = 1e-9;
        let all = self.high - self.low <= NUMBERED_DECADES;
        let decades = self.low.floor() as i32..=self.high.ceil() as i32;
        let marks = decades.flat_map(|decade| MARKS.map(|mark| (decade, mark)));
        marks.filter_map(move |(decade, mark)| {
            let place = f64::from(decade) + mark.log10();
            let inside = place >= self.low - SLACK && place <= self.high + SLACK;
            let value = mark * 10_f64.powi(decade);
            let text = if all || mark == 1.0 { of_decade(mark, decade) } else { String::new() };
            inside.then_some((value, text))
        })
    }
}

/// A digit of a decade as it is written on a scale: `0.05`, `200`, `1e9`.
fn of_decade(mark: f64, decade: i32) -> String {
    if decade.abs() <= 6 {
        let decimals = usize::try_from(-decade).unwrap_or(0);
        format!("{:.decimals$}", mark * 10_f64.powi(decade))
    } else {
        format!("{mark}e{decade}")
    }
}

/// A number of a scale.
fn short(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// How the curve with this number is drawn; colours come again after the last.
pub(super) fn pen(at: usize) -> Pen {
    Pen::Series(category(at))
}

/// The colour of the thing with this number; colours come again after the last.
pub(super) fn category(at: usize) -> u8 {
    u8::try_from(at % usize::from(Role::CATEGORIES)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(least: f64, most: f64, expected: &[&str]) {
        let axis = LogAxis::holding(least, most);
        let lines: Vec<(f64, String)> = axis.lines().collect();
        let texts: Vec<&str> = lines.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, expected, "{least} to {most}");
        assert!(axis.part(least) >= -1e-9 && axis.part(most) <= 1.0 + 1e-9);
        assert!(axis.part(lines[0].0).abs() < 1e-9, "begins at a line");
        assert!((axis.part(lines[lines.len() - 1].0) - 1.0).abs() < 1e-9, "ends at a line");
    }

    #[test]
    fn a_logarithmic_axis_has_lines_in_each_decade_and_ends_at_lines() {
        check(1.7, 3.0, &["1", "2", "5"]);
        check(0.06, 90.0, &["0.05", "0.1", "0.2", "0.5", "1", "2", "5", "10", "20", "50", "100"]);
        check(20.0, 20.0, &["20", "50"]);
        check(100.0, 1000.0, &["100", "200", "500", "1000"]);
        check(1e7, 3e7, &["1e7", "2e7", "5e7"]);
        let many = ["1", "", "", "10", "", "", "100", "", "", "1000", "", "", "10000", "", "", "100000"];
        check(1.0, 100_000.0, &many);
    }
}
