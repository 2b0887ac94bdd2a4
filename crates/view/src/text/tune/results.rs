//! The table of a study: what each placement costs and what is concluded about it.

use nodewise_experiment::metric::Metric;
use nodewise_experiment::study::Study;
use nodewise_experiment::verdict::{Analysis, ArmResult, Verdict};
use nodewise_stats::Interval;

use super::{Extent, reason};
use crate::digest::change::{change_words, range_words};
use crate::digest::placements::VerdictKind;
use crate::digest::study::metric_value;
use crate::style::Ink;
use crate::text::line::{Line, Page};
use crate::text::table::{Align, Column, Keep, Table};

/// The most rows of a table that is not to be scrolled through: the arms that are distinguished from the
/// default come first into it, those that are not as far as there is room.
const MOST_ROWS: usize = 12;

/// Writes it.
pub(super) fn write(study: &Study, analysis: &Analysis, extent: Extent, page: &mut Page) {
    let folded = folded(analysis, extent);
    let arms = analysis.arms.iter().enumerate().filter(|(at, _)| !folded.contains(at));
    let rows = arms.map(|(_, result)| Row {
        name: &study.plan.arm(result.arm).name,
        median: result.summary.map(|summary| summary.median),
        change: result.effect.map(|effect| (effect.ratio, effect.interval)),
        kind: VerdictKind::from_verdict(&result.verdict),
        verdict: verdict(&result.verdict, &study.plan.metric),
    });
    table(rows, &study.plan.metric).write(page);
    if !folded.is_empty() {
        let text =
            format!("  {} more without a difference from the default (--all shows them)", folded.len());
        page.line(4, &Line::new().with(Ink::Faint, text));
    }
}

/// The places of arms that are left out of the table: those without a difference, the last ones first.
fn folded(analysis: &Analysis, extent: Extent) -> Vec<usize> {
    if extent == Extent::All || analysis.arms.len() <= MOST_ROWS {
        return Vec::new();
    }
    let is_dull = |result: &ArmResult| matches!(result.verdict, Verdict::NoDifference | Verdict::Out(_));
    let dull = analysis.arms.iter().enumerate().rev().filter(|(_, result)| is_dull(result));
    dull.map(|(at, _)| at).take(analysis.arms.len() - MOST_ROWS).collect()
}

/// A verdict, shorter than [`PlacementRow::verdict_words`], and with the complaint of a program that failed.
///
/// [`PlacementRow::verdict_words`]: crate::digest::placements::PlacementRow::verdict_words
fn verdict(verdict: &Verdict, metric: &Metric) -> String {
    let word = VerdictKind::from_verdict(verdict).word(metric);
    match verdict {
        Verdict::TooFewRounds { blocks, needed } => format!("{word}: {blocks}/{needed}"),
        Verdict::Out(out) => format!("{word} in round {}", out.block.number()),
        Verdict::Failed(dropped) => format!("{word}: {}", reason(dropped)),
        _ => word.to_owned(),
    }
}

/// A row of the table.
pub(super) struct Row<'a> {
    pub name: &'a str,
    pub median: Option<f64>,
    /// The ratio to the default, with its 95 % interval.
    pub change: Option<(f64, Option<Interval>)>,
    pub kind: VerdictKind,
    /// The verdict in words.
    pub verdict: String,
}

/// The table of a study, whether it was made now or read from a file.
pub(super) fn table<'a>(rows: impl Iterator<Item = Row<'a>>, metric: &Metric) -> Table {
    let column = |head, align, keep| Column { head, align, keep };
    let mut table = Table::new(vec![
        column("placement", Align::Left, Keep::Always),
        column("median", Align::Right, Keep::Unless(2)),
        column("change", Align::Right, Keep::Always),
        column("95 % interval", Align::Right, Keep::Unless(1)),
        column("verdict", Align::Left, Keep::Always),
    ])
    .naming_omitted();
    for Row { name, median, change, kind, verdict } in rows {
        let interval = change.and_then(|(_, interval)| interval);
        table.row(vec![
            name.into(),
            median.map_or(String::new(), |median| metric_value(median, metric)).as_str().into(),
            change.map_or(String::new(), |(ratio, _)| change_words(ratio, 1)).as_str().into(),
            interval.map_or(String::new(), range_words).as_str().into(),
            inked(kind, verdict),
        ]);
    }
    table
}

fn inked(kind: VerdictKind, words: String) -> Line {
    match kind {
        VerdictKind::Baseline | VerdictKind::Out => Line::new().with(Ink::Faint, words),
        VerdictKind::Better => Line::new().with(Ink::Accent, words),
        VerdictKind::Worse | VerdictKind::NotAsAsked | VerdictKind::Failed => {
            Line::new().with(Ink::Notable, words)
        }
        VerdictKind::NoDifference | VerdictKind::TooFewRounds => words.as_str().into(),
    }
}
