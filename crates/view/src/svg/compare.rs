//! A comparison as bars: for each benchmark one per number of threads, to the right of the middle line
//! where it is faster; below each bar a thin one for its interval.

use nodewise_experiment::compare::{Change, Table, Verdict};
use nodewise_stats::Interval;

use crate::digest::change::change_words;
use crate::digest::compare::{
    Shown, benchmarks, changed, difference_words, missing, row, threads, threads_words,
};
use crate::digest::survey::caption;
use crate::svg::font::Font;
use crate::svg::frame::{Anchor, Frame, Label, Role, Stack, Tone};
use crate::svg::legend::square;
use crate::svg::paint::paint;
use crate::svg::palette::Theme;
use crate::svg::plot::category;
use crate::svg::sheet::{self, MARGIN, SMALL, TEXT, WIDTH};

const HEAD: Font = Font::bold(13.0);
/// Room for names on the left, and for numbers at both ends of the bars.
const NAMES: f64 = 150.0;
const NUMBERS: f64 = 64.0;
/// Height of a bar, of the strip for its interval, and of the room between benchmarks.
const BAR: f64 = 12.0;
const STRIP: f64 = 3.0;
const GAP: f64 = 8.0;
/// Most rows that are drawn: a picture of more is not a picture.
const MOST_ROWS: usize = 60;

/// Draws a comparison as an SVG document.
///
/// # Units
/// Lengths in px.
pub fn compare_svg(shown: &Shown<'_>, theme: Theme) -> String {
    paint(&compare_page(shown), &title(shown), &shown.head(), theme)
}

fn title(shown: &Shown<'_>) -> String {
    format!("Change of speed: {}", shown.before.suite)
}

/// Lays out the picture.
pub fn compare_page(shown: &Shown<'_>) -> Frame {
    let mut stack = Stack::new(Role::Page, WIDTH + 2.0 * MARGIN, MARGIN);
    let after = shown.after.unwrap_or(shown.before);
    let origin = after.origin.clone().unwrap_or_else(|| caption(&after.conditions));
    sheet::begin(&title(shown), &origin, &mut stack);
    for table in &shown.comparison.tables {
        stack.gap(14.0);
        stack.text(&format!("{} against {}", table.subject, table.reference), HEAD, Tone::Plain, 1);
        stack.text(
            "to the right: faster; outlined and in parentheses: no difference detected; thin bar: 95 % confidence interval",
            SMALL,
            Tone::Faint,
            1,
        );
        stack.gap(6.0);
        stack.frame(chart(table));
        stack.gap(6.0);
        let legend = |(at, threads)| square(Role::Category(category(at)), &threads_words(threads));
        stack.flow(threads(table).into_iter().enumerate().map(legend).collect(), 10.0);
        for one in changed(table).iter().take(8) {
            stack.text(&format!("changed itself: {one}"), SMALL, Tone::Notable, 2);
        }
        for one in missing(table).iter().take(8) {
            stack.text(&format!("missing: {one}"), SMALL, Tone::Notable, 2);
        }
    }
    stack.gap(8.0);
    for one in shown.differences().iter().take(12) {
        stack.text(&format!("{}: {}", one.what, difference_words(one)), SMALL, Tone::Faint, 2);
    }
    stack.finish()
}

/// A bar: which number of threads it is of, its change, and whether that is shown beyond doubt.
struct Bar {
    threads: usize,
    ratio: f64,
    interval: Option<Interval>,
    shown: bool,
}

fn bars(table: &Table, name: &str) -> Vec<Bar> {
    let bar = |(at, threads): (usize, u32)| {
        let row = row(table, name, threads)?;
        let Change { ratio, interval, .. } = row.change?;
        // Figures without an interval cannot show anything; they are drawn as what they are.
        let shown = matches!(row.verdict, Verdict::Better | Verdict::Worse) || interval.is_none();
        Some(Bar { threads: at, ratio, interval, shown })
    };
    threads(table).into_iter().enumerate().filter_map(bar).collect()
}

fn mean_bars(table: &Table) -> Vec<Bar> {
    let threads = threads(table);
    let bar = |mean: &nodewise_experiment::compare::Mean| {
        let at = threads.iter().position(|threads| *threads == mean.threads)?;
        let shown = mean.interval.is_none_or(|interval| !interval.contains(1.0));
        Some(Bar { threads: at, ratio: mean.ratio, interval: mean.interval, shown })
    };
    table.means.iter().filter_map(bar).collect()
}

/// The rows of bars, the geometric mean last.
fn chart(table: &Table) -> Frame {
    let names = benchmarks(table).into_iter().take(MOST_ROWS);
    let mut rows: Vec<(String, Vec<Bar>)> = names.map(|name| (name.to_owned(), bars(table, name))).collect();
    rows.push(("geometric mean".to_owned(), mean_bars(table)));
    let scale = Scale::of(rows.iter().flat_map(|(_, bars)| bars.iter()));
    let mut frame = Frame::new(Role::Group, WIDTH, 0.0);
    let mut y = 0.0;
    for (name, bars) in &rows {
        let height = (bars.len().max(1) as f64) * (BAR + STRIP + 3.0);
        let name = Label::new(&TEXT.fit(name, NAMES - 10.0), TEXT, NAMES - 8.0, (y, BAR + STRIP));
        frame.labels.push(name.anchored(Anchor::End));
        if bars.is_empty() {
            frame.labels.push(Label::new("missing", SMALL, NAMES, (y, BAR + STRIP)).toned(Tone::Notable));
        }
        for (at, bar) in bars.iter().enumerate() {
            draw(&mut frame, bar, &scale, y + at as f64 * (BAR + STRIP + 3.0));
        }
        y += height + GAP;
    }
    frame.area.height = y;
    frame
}

/// Changes to places: in logarithms, so that a gain is as long as the loss that undoes it.
struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    /// From the smallest to the largest change, with its interval as long as that leaves room for the bars.
    fn of<'a>(bars: impl Iterator<Item = &'a Bar> + Clone) -> Self {
        let widest = bars.clone().map(|bar| bar.ratio.ln().abs()).fold(0.02, f64::max).min(5.0);
        let ends = |bar: &Bar| {
            let interval = bar.interval.unwrap_or(Interval { low: bar.ratio, high: bar.ratio });
            [bar.ratio, interval.low, interval.high].map(|end| end.ln().clamp(-1.5 * widest, 1.5 * widest))
        };
        let (low, high) = bars
            .flat_map(ends)
            .fold((0.0, 0.0), |(low, high): (f64, f64), end| (low.min(end), high.max(end)));
        // So far apart at least that the middle line is inside.
        Self { low: low.min(-0.1 * widest), high: high.max(0.1 * widest) }
    }

    /// Where a ratio lies; farther than the scale reaches is at its end.
    fn x(&self, ratio: f64) -> f64 {
        let share = (ratio.ln().clamp(self.low, self.high) - self.low) / (self.high - self.low);
        NAMES + NUMBERS + share * (WIDTH - NAMES - 2.0 * NUMBERS)
    }
}

fn draw(frame: &mut Frame, bar: &Bar, scale: &Scale, y: f64) {
    let (middle, end) = (scale.x(1.0), scale.x(bar.ratio));
    let colour = category(bar.threads);
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
    }
    let text = change_words(bar.ratio, 1);
    let text = if bar.shown { text } else { format!("({text})") };
    let (x, anchor) = if bar.ratio < 1.0 { (left - 4.0, Anchor::End) } else { (right + 5.0, Anchor::Start) };
    frame.labels.push(Label::new(&text, SMALL, x, (y, BAR)).anchored(anchor));
}
