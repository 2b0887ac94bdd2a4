//! The table of a study: what each placement costs and what is concluded about it.

use nodewise_experiment::metric::Metric;
use nodewise_experiment::study::{Dropped, Study};
use nodewise_experiment::verdict::{Analysis, ArmResult, Verdict};

use super::{Extent, reason};
use crate::digest::change::{change_words, range_words};
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
    let column = |head, align, keep| Column { head, align, keep };
    let mut table = Table::new(vec![
        column("placement", Align::Left, Keep::Always),
        column("median", Align::Right, Keep::Unless(2)),
        column("change", Align::Right, Keep::Always),
        column("95 % interval", Align::Right, Keep::Unless(1)),
        column("verdict", Align::Left, Keep::Always),
    ])
    .naming_omitted();
    let arms = analysis.arms.iter().enumerate().filter(|(at, _)| !folded.contains(at));
    for (_, result) in arms {
        let effect = result.effect;
        let median = result.summary.map_or(String::new(), |s| metric_value(s.median, &study.plan.metric));
        let change = effect.map_or(String::new(), |effect| change_words(effect.ratio, 1));
        table.row(vec![
            study.plan.arm(result.arm).name.as_str().into(),
            median.as_str().into(),
            change.as_str().into(),
            effect.and_then(|effect| effect.interval).map_or(String::new(), range_words).as_str().into(),
            verdict(result, &study.plan.metric),
        ]);
    }
    table.write(page);
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

fn verdict(result: &ArmResult, metric: &Metric) -> Line {
    let timed = matches!(metric, Metric::Wall);
    match &result.verdict {
        Verdict::Baseline => Line::new().with(Ink::Faint, "baseline"),
        Verdict::Better => Line::new().with(Ink::Accent, if timed { "faster" } else { "better" }),
        Verdict::Worse => Line::new().with(Ink::Notable, if timed { "slower" } else { "worse" }),
        Verdict::NoDifference => "no difference".into(),
        Verdict::TooFewRounds { blocks, needed } => {
            format!("too few rounds: {blocks}/{needed}").as_str().into()
        }
        Verdict::Out(out) => Line::new().with(Ink::Faint, format!("out in round {}", out.block.number())),
        Verdict::NotAsAsked(_) => Line::new().with(Ink::Notable, "not as asked"),
        Verdict::Failed(dropped) => Line::new().with(Ink::Notable, failed(dropped)),
    }
}

fn failed(dropped: &Dropped) -> String {
    format!("failed: {}", reason(dropped))
}
