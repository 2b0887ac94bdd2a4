//! A comparison as bars: for each benchmark one per number of threads, to the right of the middle line
//! where it is faster; below each bar a thin one for its interval.

use nodewise_experiment::compare::{Change, Table, Verdict};

use crate::digest::compare::{
    Shown, benchmarks, changed, difference_words, missing, row, threads, threads_words,
};
use crate::digest::survey::caption;
use crate::svg::changes::{BAR, Bar, STRIP, Scale, cut_words, draw};
use crate::svg::font::Font;
use crate::svg::frame::{Anchor, Frame, Label, Role, Stack, Tone};
use crate::svg::legend::square;
use crate::svg::paint::paint;
use crate::svg::palette::Theme;
use crate::svg::plot::category;
use crate::svg::sheet::{self, MARGIN, SMALL, TEXT, WIDTH};

const HEAD: Font = Font::bold(13.0);
/// Room for names on the left.
const NAMES: f64 = 150.0;
/// Height of the room between benchmarks.
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
        let (chart, cut) = chart(table);
        let how = "to the right: faster; outlined and in parentheses: no difference detected; thin bar: 95 % confidence interval";
        stack.text(
            &cut.map_or_else(|| how.to_owned(), |words| format!("{how}; {words}")),
            SMALL,
            Tone::Faint,
            2,
        );
        stack.gap(6.0);
        stack.frame(chart);
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

fn bars(table: &Table, name: &str) -> Vec<Bar> {
    let bar = |(at, threads): (usize, u32)| {
        let row = row(table, name, threads)?;
        let Change { ratio, interval, .. } = row.change?;
        // Figures without an interval cannot show anything; they are drawn as what they are.
        let shown = matches!(row.verdict, Verdict::Better | Verdict::Worse) || interval.is_none();
        Some(Bar { colour: at, ratio, interval, shown })
    };
    threads(table).into_iter().enumerate().filter_map(bar).collect()
}

fn mean_bars(table: &Table) -> Vec<Bar> {
    let threads = threads(table);
    let bar = |mean: &nodewise_experiment::compare::Mean| {
        let at = threads.iter().position(|threads| *threads == mean.threads)?;
        let shown = mean.interval.is_none_or(|interval| !interval.contains(1.0));
        Some(Bar { colour: at, ratio: mean.ratio, interval: mean.interval, shown })
    };
    table.means.iter().filter_map(bar).collect()
}

/// The rows of bars, the geometric mean last; and the words on intervals that are cut, where one is.
fn chart(table: &Table) -> (Frame, Option<&'static str>) {
    let names = benchmarks(table).into_iter().take(MOST_ROWS);
    let mut rows: Vec<(String, Vec<Bar>)> = names.map(|name| (name.to_owned(), bars(table, name))).collect();
    rows.push(("geometric mean".to_owned(), mean_bars(table)));
    let all = || rows.iter().flat_map(|(_, bars)| bars);
    let scale = Scale::from_bars(all(), (NAMES, WIDTH - NAMES));
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
    (frame, cut_words(all(), &scale))
}
