//! Notes below the table of a study: noise, failures, other programs, how it ended.

use nodewise_experiment::cooling::CoolDown;
use nodewise_experiment::journal;
use nodewise_experiment::race::Rules;
use nodewise_experiment::study::{End, Record, Study};
use nodewise_experiment::verdict::{Advice, Analysis, SMALLEST_EFFECT, Verdict};
use nodewise_stats::Direction;

use super::conclusion::share;
use super::evidence::spoilt_words;
use super::unprepared;
use crate::digest::change::{change_words, range_words, stolen_words};
use crate::digest::counts::{by_count, plural};
use crate::digest::study::{duration, load_words};
use crate::style::Ink;
use crate::text::line::{Line, Page};

/// Writes them, a line each.
pub(super) fn write(study: &Study, analysis: &Analysis, page: &mut Page) {
    if let Some(text) = failures(study, analysis) {
        page.line(4, &Line::new().with(Ink::Notable, format!("  {text}")));
    }
    if let Some(command) = &study.prepare {
        let text = format!("  before every run: {}", journal::words(command));
        page.line(4, &Line::new().with(Ink::Faint, text));
    }
    if let Some(text) = study.cool_down.as_ref().and_then(cool_down) {
        page.line(4, &Line::new().with(Ink::Faint, format!("  {text}")));
    }
    if let Some(control) = analysis.control {
        let text = format!(
            "  noise today: default against itself {} ({})",
            change_words(control.ratio, 1),
            range_words(control.interval)
        );
        page.line(4, &Line::new().with(Ink::Faint, text));
    }
    if let Some(text) = power_words(study, analysis) {
        page.line(4, &Line::new().with(Ink::Faint, format!("  {text}")));
    }
    for result in &analysis.arms {
        if let Verdict::NotAsAsked(fidelity) = &result.verdict {
            let arm = study.plan.arm(result.arm);
            let why = fidelity.why(&arm.placement).unwrap_or_default();
            let text = format!("  {} did not run as asked: {why}", arm.name);
            page.line(4, &Line::new().with(Ink::Notable, text));
        }
    }
    if let Some(text) = load_words(&study.conditions) {
        page.line(4, &Line::new().with(Ink::Notable, format!("  {text}")));
    }
    let shares = study.records.iter().filter_map(|record| record.run.surroundings.steal_share);
    if let Some(text) = stolen_words(shares) {
        page.line(4, &Line::new().with(Ink::Notable, format!("  {text}")));
    }
    if let Some(text) = spoilt_words(study, analysis) {
        page.line(4, &Line::new().with(Ink::Faint, format!("  {text}")));
    }
    if let Some(crossed) = &study.race.crossed {
        let best = &study.plan.arm(crossed.best).name;
        let text = format!(
            "  after {} {best} was the best of what was tried alone: it went on with {}",
            plural(crossed.block.number(), "round"),
            plural(crossed.arms.len() as u64, "combination"),
        );
        page.line(4, &Line::new().with(Ink::Faint, text));
    }
    // Of one placement alone nothing is known to be the best.
    let rules = study.plan.race.filter(|_| analysis.advice != Advice::NothingToCompare);
    if let Some(text) = rules.and_then(|rules| race(study, &rules)) {
        page.line(4, &Line::new().with(Ink::Faint, format!("  {text}")));
    }
    let end = match &study.end {
        End::Completed | End::Settled => None,
        End::Interrupted => Some("ended before its time: these are the results so far".to_owned()),
        // The time that was given is the plan, and a race that is undecided says so by itself.
        End::BudgetSpent => {
            study.plan.race.is_none().then(|| "the time was up before the last round".to_owned())
        }
        End::BudgetTooShort(_) => Some("the time is too short for a round".to_owned()),
        End::BaselineFailed(_) => Some("the program does not work without any placement either".to_owned()),
        End::AllDropped => Some("the program failed under every placement but the default".to_owned()),
        End::PreparationFailed(why) => Some(format!(
            "the preparation failed, and these are the results until then: {}",
            unprepared(study, why)
        )),
    };
    if let Some(end) = end {
        page.line(4, &Line::new().with(Ink::Notable, format!("  {end}")));
    }
}

/// How many runs failed of arms that were not given up for it.
fn failures(study: &Study, analysis: &Analysis) -> Option<String> {
    let arms = analysis.arms.iter().filter(|arm| study.dropped(arm.arm).is_none() && arm.failures > 0);
    let (mut failed, mut runs) = (0, 0);
    for arm in arms {
        failed += arm.failures;
        runs += study.measured(arm.arm).count();
    }
    let of_failed = |record: &&Record| {
        study.dropped(record.slot.arm).is_none() && record.run.ending.is_failure() && !record.set_aside
    };
    let last = study.records.iter().rfind(of_failed)?;
    let why = last.run.ending.with_complaint(last.run.complaint.as_deref());
    (failed > 0).then(|| {
        format!(
            "{failed} of {} failed and {} not counted; the last {why}",
            plural(runs, "run"),
            by_count(&failed, "is", "are")
        )
    })
}

/// How long was waited for the CPUs to cool down, where anything was.
fn cool_down(cool_down: &CoolDown) -> Option<String> {
    let CoolDown { waited, still_hot, .. } = *cool_down;
    let hot = match still_hot {
        0 => String::new(),
        many => format!("; before {} they were still hotter than in the beginning", plural(many, "run")),
    };
    (!waited.is_zero()).then(|| format!("waited {} in all for the CPUs to cool down{hot}", duration(waited)))
}

/// How large a change would have been detected, where none was of some arm. A race that is settled ends
/// before it has shown which arms are worse: there the words are of gains.
fn power_words(study: &Study, analysis: &Analysis) -> Option<String> {
    let same = || analysis.arms.iter().filter(|arm| arm.verdict == Verdict::NoDifference);
    let most = same().filter_map(|arm| arm.effect?.smallest_detectable).reduce(f64::max)?;
    let direction = study.plan.metric.direction();
    let what = match (study.plan.race, direction) {
        (None, _) => {
            format!("change of {} or {}", change_words(1.0 / (1.0 + most), 1), change_words(1.0 + most, 1))
        }
        (Some(_), Direction::LowerIsBetter) => format!("change of {}", change_words(1.0 / (1.0 + most), 1)),
        (Some(_), Direction::HigherIsBetter) => format!("change of {}", change_words(1.0 + most, 1)),
    };
    let margin = share(study.plan.race.map_or(2.0 * SMALLEST_EFFECT, |rules| rules.margin));
    let rounds = same().filter_map(|arm| arm.effect?.blocks_for_target).max();
    let rounds =
        rounds.filter(|rounds| *rounds > study.blocks_begun().into() && study.race.settled.is_none());
    let more = rounds
        .map_or(String::new(), |rounds| format!("; one of {margin} takes about {}", plural(rounds, "round")));
    Some(format!("no difference detected (a {what} would be, with 80 % power{more})"))
}

/// How a race is at its end.
fn race(study: &Study, rules: &Rules) -> Option<String> {
    let margin = share(rules.margin);
    match (study.race.settled, &study.end) {
        (Some(best), _) => Some(format!(
            "settled: {} is within {margin} of the best ({:.0} % sure)",
            study.plan.arm(best).name,
            (1.0 - rules.error) * 100.0
        )),
        (None, End::Completed | End::BudgetSpent) if study.blocks_begun() >= study.plan.rounds_needed() => {
            let out = study.race.out.len();
            let left = study.plan.arms().len() - study.dropped.len() - out;
            Some(match left {
                1 => format!("undecided: the placement that is left may gain less than {margin}"),
                _ => format!("undecided: {left} placements may be within {margin} of the best"),
            })
        }
        _ => None,
    }
}
