//! A study as bars: a row for each placement with its change against the default, to the right of the middle
//! line where there is more of the metric, and below each bar a thin one for its interval.

use nodewise_experiment::metric::Metric;
use nodewise_stats::Direction;

use crate::digest::placements::{PlacementRow, Placements, VerdictKind};
use crate::digest::study::{metric_name, metric_value};
use crate::digest::survey::caption;
use crate::svg::changes::{BAR, Bar, STRIP, Scale, cut_words, draw};
use crate::svg::font::Font;
use crate::svg::frame::{Anchor, Frame, Label, Role, Stack, Tone};
use crate::svg::paint::paint;
use crate::svg::palette::Theme;
use crate::svg::sheet::{self, HEAD, MARGIN, SMALL, TEXT, WIDTH};

/// Room for names on the left, for medians beside them, and for verdicts on the right.
const NAMES: f64 = 200.0;
const MEDIANS: f64 = 80.0;
const VERDICTS: f64 = 260.0;
/// Height of a row.
const ROW: f64 = BAR + STRIP + 7.0;
/// Most rows that are drawn: a picture of more is not a picture.
const MOST_ROWS: usize = 60;

/// Draws a study as an SVG document.
///
/// # Units
/// Lengths in px.
pub fn tune_svg(study: &Placements, theme: Theme) -> String {
    paint(&tune_page(study), &title(study), &study.words(), theme)
}

fn title(study: &Placements) -> String {
    let metric = match &study.metric {
        Metric::Printed(pattern, _) => format!("\"{}\"", pattern.text()),
        metric => metric_name(metric),
    };
    format!("Change of {metric} by placement: {}", study.program())
}

/// Lays out the picture.
pub fn tune_page(study: &Placements) -> Frame {
    let mut stack = Stack::new(Role::Page, WIDTH + 2.0 * MARGIN, MARGIN);
    sheet::begin(&title(study), &caption(&study.conditions), &mut stack);
    stack.text(&study.words(), TEXT, Tone::Faint, 2);
    stack.gap(10.0);
    stack.text(&study.conclusion, HEAD, Tone::Plain, 3);
    let (left, right) = match study.metric.direction() {
        Direction::LowerIsBetter => ("better", "worse"),
        Direction::HigherIsBetter => ("worse", "better"),
    };
    let how = format!(
        "change against the default; to the left: less, {left}; to the right: more, {right}; outlined and in \
         parentheses: no difference detected; thin bar: 95 % confidence interval"
    );
    let (chart, cut) = chart(study);
    let how = cut.map_or_else(|| how.clone(), |words| format!("{how}; {words}"));
    stack.text(&how, SMALL, Tone::Faint, 2);
    stack.gap(6.0);
    stack.frame(chart);
    sheet::more(study.rows.len(), MOST_ROWS, "placement", &mut stack);
    stack.finish()
}

/// A row of the picture.
struct Row {
    name: String,
    median: String,
    bar: Option<Bar>,
    verdict: (String, Tone),
}

impl Row {
    fn from_placement(row: &PlacementRow, metric: &Metric) -> Self {
        let bar = row.change.map(|change| Bar {
            colour: 0,
            ratio: change.ratio,
            interval: change.interval,
            shown: matches!(row.verdict, VerdictKind::Better | VerdictKind::Worse),
        });
        Self {
            name: row.name.clone(),
            median: row.median.map_or(String::new(), |median| metric_value(median, metric)),
            bar,
            verdict: (row.verdict_words(metric), tone(row.verdict)),
        }
    }

    /// The default against itself: as much as this is noise.
    fn of_noise(study: &Placements) -> Option<Self> {
        let (ratio, interval) = study.noise?;
        let bar = Bar { colour: 0, ratio, interval: Some(interval), shown: false };
        Some(Self {
            name: "default against itself".to_owned(),
            median: String::new(),
            bar: Some(bar),
            verdict: ("noise".to_owned(), Tone::Faint),
        })
    }
}

const fn tone(verdict: VerdictKind) -> Tone {
    match verdict {
        VerdictKind::Baseline | VerdictKind::Out => Tone::Faint,
        VerdictKind::Better | VerdictKind::NoDifference | VerdictKind::TooFewRounds => Tone::Plain,
        VerdictKind::Worse | VerdictKind::NotAsAsked | VerdictKind::Failed => Tone::Notable,
    }
}

/// The rows, the noise last; and the words on intervals that are cut, where one is.
fn chart(study: &Placements) -> (Frame, Option<&'static str>) {
    let placements = study.rows.iter().take(MOST_ROWS).map(|row| Row::from_placement(row, &study.metric));
    let rows: Vec<Row> = placements.chain(Row::of_noise(study)).collect();
    let left = NAMES + MEDIANS;
    let bars = || rows.iter().filter_map(|row| row.bar.as_ref());
    let scale = Scale::from_bars(bars(), (left, WIDTH - left - VERDICTS));
    let mut frame = Frame::new(Role::Group, WIDTH, rows.len() as f64 * ROW);
    for (at, row) in rows.iter().enumerate() {
        let y = at as f64 * ROW;
        let line = (y, BAR + STRIP);
        let name = Label::new(&TEXT.fit(&row.name, NAMES - 10.0), TEXT, NAMES - 8.0, line);
        frame.labels.push(name.anchored(Anchor::End));
        cell(&row.median, (left - 8.0, MEDIANS - 10.0), line, (Anchor::End, Tone::Faint), &mut frame);
        if let Some(bar) = &row.bar {
            draw(&mut frame, bar, &scale, y);
        }
        let (verdict, tone) = &row.verdict;
        cell(verdict, (WIDTH - VERDICTS + 8.0, VERDICTS - 8.0), line, (Anchor::Start, *tone), &mut frame);
    }
    (frame, cut_words(bars(), &scale))
}

/// Adds a text that is as long as its room, where there is one.
fn cell(text: &str, (x, room): (f64, f64), line: (f64, f64), look: (Anchor, Tone), frame: &mut Frame) {
    const FONT: Font = SMALL;
    if !text.is_empty() {
        let label = Label::new(&FONT.fit(text, room), FONT, x, line);
        frame.labels.push(label.anchored(look.0).toned(look.1));
    }
}
