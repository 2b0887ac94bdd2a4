//! Changes as bars on both sides of a middle line, each with a thin bar below it for its interval.

use nodewise_stats::Interval;

use crate::digest::change::change_words;
use crate::svg::frame::{Anchor, Frame, Label, Pen, Role, Stroke};
use crate::svg::plot::category;
use crate::svg::sheet::SMALL;

/// Height of a bar, and of the strip for its interval.
pub(super) const BAR: f64 = 12.0;
pub(super) const STRIP: f64 = 3.0;
/// Length of the tip of an interval that extends beyond the scale, and half its height.
const TIP: (f64, f64) = (5.0, 3.0);
/// Room for the number at either end of a bar.
const NUMBERS: f64 = 64.0;

/// A change to draw: in which colour, and whether it is shown beyond doubt; otherwise it is an outline.
pub(super) struct Bar {
    pub(super) colour: usize,
    pub(super) ratio: f64,
    pub(super) interval: Option<Interval>,
    pub(super) shown: bool,
}

/// Changes to places: in logarithms, so that a gain is as long as the loss that undoes it.
pub(super) struct Scale {
    low: f64,
    high: f64,
    left: f64,
    width: f64,
}

impl Scale {
    /// From the smallest to the largest change, with its interval as long as that leaves room for the bars;
    /// `left` and `width` are of the place for the bars and their numbers.
    pub(super) fn from_bars<'a>(
        bars: impl Iterator<Item = &'a Bar> + Clone,
        (left, width): (f64, f64),
    ) -> Self {
        let widest = bars.clone().map(|bar| bar.ratio.ln().abs()).fold(0.02, f64::max).min(5.0);
        let ends = |bar: &Bar| {
            let interval = bar.interval.unwrap_or(Interval { low: bar.ratio, high: bar.ratio });
            [bar.ratio, interval.low, interval.high].map(|end| end.ln().clamp(-1.5 * widest, 1.5 * widest))
        };
        let (low, high) = bars
            .flat_map(ends)
            .fold((0.0, 0.0), |(low, high): (f64, f64), end| (low.min(end), high.max(end)));
        // So far apart at least that the middle line is inside.
        Self { low: low.min(-0.1 * widest), high: high.max(0.1 * widest), left, width }
    }

    /// Whether an interval extends below and above the range of the scale.
    fn cuts(&self, interval: Interval) -> [bool; 2] {
        [interval.low.ln() < self.low, interval.high.ln() > self.high]
    }

    /// Where a ratio lies; farther than the scale reaches is at its end.
    fn x(&self, ratio: f64) -> f64 {
        let share = (ratio.ln().clamp(self.low, self.high) - self.low) / (self.high - self.low);
        self.left + NUMBERS + share * (self.width - 2.0 * NUMBERS)
    }
}

/// How an interval ends that is longer than its picture, for the words below a title; `None` where none is.
pub(super) fn cut_words<'a>(mut bars: impl Iterator<Item = &'a Bar>, scale: &Scale) -> Option<&'static str> {
    let cut = |bar: &Bar| bar.interval.is_some_and(|interval| scale.cuts(interval).contains(&true));
    bars.any(cut).then_some("arrow: the interval extends beyond the chart")
}

/// An arrow head at the end of a strip, whose point lies beyond it.
fn tip(end: f64, direction: f64, middle: f64) -> Stroke {
    let (length, half) = TIP;
    let points = [(0.0, -half), (length, 0.0), (0.0, half)];
    let points = points.map(|(along, across)| (end + direction * along, middle + across)).into();
    Stroke { points, pen: Pen::Arrow, ring: 0.0 }
}

/// Draws a bar whose upper edge is at `y`.
pub(super) fn draw(frame: &mut Frame, bar: &Bar, scale: &Scale, y: f64) {
    let (middle, end) = (scale.x(1.0), scale.x(bar.ratio));
    let colour = category(bar.colour);
    let role = if bar.shown { Role::Category(colour) } else { Role::OutlinedCategory(colour) };
    // The middle line, with the bar beside it.
    frame.children.push(Frame::new(Role::Rest, 1.0, BAR).moved(middle - 0.5, y));
    let (left, right) = if bar.ratio < 1.0 {
        (end.min(middle - 1.5), middle - 0.5)
    } else {
        (middle + 0.5, end.max(middle + 1.5))
    };
    frame.children.push(Frame::new(role, right - left, BAR).moved(left, y));
    if let Some(interval) = bar.interval {
        let (low, high) = (scale.x(interval.low), scale.x(interval.high));
        let strip = Frame::new(Role::Rest, (high - low).max(1.0), STRIP);
        frame.children.push(strip.moved(low, y + BAR + 0.5));
        let [below, above] = scale.cuts(interval);
        let middle = y + BAR + 0.5 + STRIP / 2.0;
        frame.strokes.extend(below.then(|| tip(low, -1.0, middle)));
        frame.strokes.extend(above.then(|| tip(high, 1.0, middle)));
    }
    let text = change_words(bar.ratio, 1);
    let text = if bar.shown { text } else { format!("({text})") };
    let (x, anchor) = if bar.ratio < 1.0 { (left - 4.0, Anchor::End) } else { (right + 5.0, Anchor::Start) };
    frame.labels.push(Label::new(&text, SMALL, x, (y, BAR)).anchored(anchor));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(ratio: f64, low: f64, high: f64) -> Bar {
        Bar { colour: 0, ratio, interval: Some(Interval { low, high }), shown: false }
    }

    fn tips(bars: &[Bar]) -> (Vec<f64>, Option<&'static str>) {
        let scale = Scale::from_bars(bars.iter(), (0.0, 400.0));
        let mut frame = Frame::new(Role::Group, 400.0, 100.0);
        bars.iter().for_each(|bar| draw(&mut frame, bar, &scale, 10.0));
        (frame.strokes.iter().map(|stroke| stroke.points[1].0).collect(), cut_words(bars.iter(), &scale))
    }

    #[test]
    fn an_interval_that_the_picture_cuts_ends_in_an_arrow_and_the_legend_says_so() {
        // The scale reaches 1.5 times the widest change.
        let (at, words) = tips(&[bar(1.1, 0.5, 1.12)]);
        assert_eq!(at.len(), 1);
        assert!(at[0] < NUMBERS, "{at:?}: to the left of the scale");
        assert_eq!(words, Some("arrow: the interval extends beyond the chart"));
        let (at, _) = tips(&[bar(1.1, 0.5, 2.0), bar(1.05, 1.0, 1.1)]);
        assert!(at.len() == 2 && at[0] < NUMBERS && at[1] > 400.0 - NUMBERS, "{at:?}");
        assert_eq!(tips(&[bar(1.1, 1.05, 1.15), bar(0.9, 0.87, 0.95)]), (vec![], None));
    }
}
