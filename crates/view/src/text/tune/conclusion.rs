//! The conclusion of a study: what to do, by how much it helps, and what that rests on.

use nodewise_experiment::metric::Metric;
use nodewise_experiment::study::{Rounds, Study};
use nodewise_experiment::verdict::{Advice, Analysis, Effect, Verdict};
use nodewise_machine::placement::Scope;
use nodewise_stats::Direction;

use super::reason;
use crate::digest::counts::plural;
use crate::digest::study::{command_lines, duration, metric_name};
use crate::digest::why::Why;
use crate::style::Ink;
use crate::text::line::{Line, Page};

/// Writes it, and what was done.
pub(super) fn write(study: &Study, analysis: &Analysis, scope: &Scope, page: &mut Page) {
    advice(study, analysis, scope, page);
    page.line(2, &Line::new().with(Ink::Faint, head(study)));
}

fn advice(study: &Study, analysis: &Analysis, scope: &Scope, page: &mut Page) {
    page.line(5, &in_one_line(study, analysis, scope));
    let Advice::Use { best, as_good } = &analysis.advice else {
        return;
    };
    for other in command_lines(study, *best, scope).iter().skip(1) {
        page.line(5, &format!("or:  {other}").as_str().into());
    }
    page.line(0, &Line::new());
    if let Some(effect) = analysis.arm(*best).and_then(|arm| arm.effect) {
        page.line(2, &gained(study, &effect).into());
    }
    why(study, analysis, page);
    if !as_good.is_empty() {
        let names: Vec<&str> = as_good.iter().map(|arm| study.plan.arm(*arm).name.as_str()).collect();
        page.line(2, &format!("not shown to be worse than it: {}", names.join(", ")).as_str().into());
    }
}

/// Writes its first line once more, below a page that pushed the first off a screen.
pub(super) fn repeat(study: &Study, analysis: &Analysis, scope: &Scope, page: &mut Page) {
    page.line(0, &Line::new());
    page.line(5, &in_one_line(study, analysis, scope));
}

/// The placement to use, or the reason why none is named.
fn in_one_line(study: &Study, analysis: &Analysis, scope: &Scope) -> Line {
    match &analysis.advice {
        Advice::Use { best, .. } => match command_lines(study, *best, scope).first() {
            Some(command) => Line::from("use: ").with(Ink::Accent, command),
            None => format!("use: {}", study.plan.arm(*best).name).into(),
        },
        Advice::Keep { smallest_detectable, .. } => {
            let least = smallest_detectable.map_or(String::new(), |least| {
                let least = share(gain(least, study.plan.metric.direction()));
                format!(": a gain above {least} would have been detected (80 % power)")
            });
            format!("no placement helps{least}").into()
        }
        Advice::TooFewRounds { blocks, needed } => {
            let more = match study.plan.rounds {
                Rounds::Exactly(_) => format!("--runs={needed}"),
                Rounds::Within { .. } => "a longer --time".to_owned(),
            };
            format!("too few rounds to say which is best: {blocks} of the {needed} it takes ({more})").into()
        }
        Advice::BaselineFailed(dropped) => {
            Line::new().with(Ink::Notable, format!("failed: {}", reason(dropped)))
        }
        Advice::NothingToCompare => {
            let strayed = analysis.arms.iter().any(|arm| matches!(arm.verdict, Verdict::NotAsAsked(_)));
            let end = if strayed { " as asked" } else { "" };
            format!("nothing to compare: only the default placement could be run{end}").into()
        }
    }
}

/// Which evidence carries the advice, in one line, where a placement is named.
pub(super) fn why(study: &Study, analysis: &Analysis, page: &mut Page) {
    if let Some(why) = Why::from_study(study, analysis) {
        page.line(5, &format!("Why: {}", why.sentence()).as_str().into());
    }
}

/// By how much the best placement is better than the default, with the interval.
fn gained(study: &Study, effect: &Effect) -> String {
    let word = if effect.ratio < 1.0 { "less" } else { "more" };
    let what = match &study.plan.metric {
        Metric::Printed(..) => format!("{word} of {}", metric_name(&study.plan.metric)),
        metric => format!("{word} {}", metric_name(metric)),
    };
    let interval = effect.interval.map_or(String::new(), |interval| {
        // The smaller end first, both without a sign.
        let ends = [interval.low, interval.high].map(|ratio| (ratio - 1.0) * 100.0);
        let (low, high) = if effect.ratio < 1.0 { (-ends[1], -ends[0]) } else { (ends[0], ends[1]) };
        format!(" (95 % interval: {low:.1} to {high:.1} %)")
    });
    let size = share((effect.ratio - 1.0).abs());
    format!("{size} {what} than the default{interval}")
}

/// Describes the study: how many placements and rounds, how long, what counts.
pub(super) fn head(study: &Study) -> String {
    let better = match study.plan.metric.direction() {
        Direction::LowerIsBetter => "less",
        Direction::HigherIsBetter => "more",
    };
    format!("{}: {}, {better} is better", done(study), metric_name(&study.plan.metric))
}

/// The same without what counts.
pub(super) fn done(study: &Study) -> String {
    let placements = plural(study.plan.arms().len(), "placement");
    let rounds = plural(study.blocks_begun(), "round");
    format!("{placements}, {rounds} in {}, seed {}", duration(study.took), study.plan.seed)
}

/// The change for the better that is as far from none as a `change` upwards. Half the time is as far
/// as twice the time: where less is better, no gain reaches 100 %.
fn gain(change: f64, direction: Direction) -> f64 {
    match direction {
        Direction::LowerIsBetter => change / (1.0 + change),
        Direction::HigherIsBetter => change,
    }
}

/// A share without a sign: 0.03 is `3 %`.
pub(super) fn share(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_gain_takes_all_the_time_there_is() {
        let check = |change, direction, expected: &str| assert_eq!(share(gain(change, direction)), expected);
        check(0.01, Direction::LowerIsBetter, "1.0 %");
        check(1.0, Direction::LowerIsBetter, "50.0 %");
        check(9.0, Direction::LowerIsBetter, "90.0 %");
        check(9.0, Direction::HigherIsBetter, "900.0 %");
    }
}
