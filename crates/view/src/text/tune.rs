//! A study as `nodewise tune` prints it: the table, the noise, and the one thing to do.

mod also;

use nodewise_measure::candidates::LeftOut;
use nodewise_measure::cooling::CoolDown;
use nodewise_measure::executor::Unprepared;
use nodewise_measure::journal;
use nodewise_measure::metric::{Direction, Metric};
use nodewise_measure::placement::Scope;
use nodewise_measure::race::Rules;
use nodewise_measure::schedule::ArmId;
use nodewise_measure::study::{Dropped, End, Rounds, Study};
use nodewise_measure::verdict::{Advice, Analysis, ArmResult, SMALLEST_EFFECT, Verdict};

use crate::digest::change::{change_words, range_words, stolen_words};
use crate::digest::counts::{by_count, plural};
use crate::digest::evidence::{Counted, Medians};
use crate::digest::study::{
    command_lines, duration, fidelity_words, load_words, metric_name, metric_value, pages_words,
};
use crate::digest::survey::by_reason;
use crate::style::{Ink, Style};
use crate::text::line::{Line, Page};
use crate::text::table::{Align, Column, Keep, Table};

/// Writes a study and what is concluded from it.
///
/// `scope` is what the program could choose from, `left_out` what was not tried and why.
pub fn tune(
    study: &Study,
    analysis: &Analysis,
    scope: &Scope,
    left_out: &[LeftOut],
    style: &Style,
) -> String {
    let mut page = Page::new(*style);
    page.line(2, &head(study).as_str().into());
    if let (Some(text), 0) = (nothing_works(study), study.blocks_begun()) {
        page.line(2, &Line::new().with(Ink::Notable, text));
        return page.finish();
    }
    page.line(0, &Line::new());
    tables(study, analysis, &mut page);
    page.line(0, &Line::new());
    advice(study, analysis, scope, &mut page);
    if !left_out.is_empty() {
        page.heading("Not tried", "");
        for one in left_out {
            page.line(4, &format!("  {}: {}", one.name, one.why).as_str().into());
        }
    }
    page.finish()
}

/// Why there are no results at all, where that is so from the beginning on.
fn nothing_works(study: &Study) -> Option<String> {
    match &study.end {
        End::BaselineFailed(dropped) => {
            Some(format!("the program fails without any placement too: {}", reason(dropped)))
        }
        End::PreparationFailed(why) => Some(format!("the preparation failed: {}", unprepared(study, why))),
        _ => None,
    }
}

/// Which command failed before a run, and how.
fn unprepared(study: &Study, why: &Unprepared) -> String {
    format!("{} {why}", journal::words(study.prepare.as_deref().unwrap_or_default()))
}

/// What was done: how many placements and rounds, how long, what counts.
fn head(study: &Study) -> String {
    let arms = study.plan.arms().len();
    let rounds = study.blocks_begun();
    let better = match study.plan.metric.direction() {
        Direction::LowerIsBetter => "less",
        Direction::HigherIsBetter => "more",
    };
    let what = format!("{}, {better} is better", metric_name(&study.plan.metric));
    let (placements, rounds) = (plural(arms, "placement"), plural(rounds, "round"));
    format!("{placements}, {rounds} in {}, seed {}: {what}", duration(study.took), study.plan.seed)
}

/// From this width on the pages stand beside the verdicts; below, in a table of their own.
const ONE_TABLE: usize = 104;

fn tables(study: &Study, analysis: &Analysis, page: &mut Page) {
    let beside = page.width() >= ONE_TABLE;
    results(study, analysis, beside).write(page);
    notes(study, analysis, page);
    if !beside {
        whereabouts(study, analysis, page);
    }
    also::also(study, analysis, page);
    evidence(study, analysis, page);
}

/// Where pages were, and how far each arm ran as it asks, where anything was seen of it.
fn whereabouts(study: &Study, analysis: &Analysis, page: &mut Page) {
    if !analysis.arms.iter().any(|result| study.residency(result.arm).is_some()) {
        return;
    }
    page.heading("Pages", "by node, when the program had most of them");
    let mut columns = vec![Column { head: "placement", align: Align::Left, keep: Keep::Always }];
    let asked = tells_fidelity(analysis);
    columns.extend(asked.then_some(AS_ASKED));
    columns.push(Column { head: "pages on node", align: Align::Left, keep: Keep::Always });
    let mut table = Table::new(columns);
    for result in &analysis.arms {
        let mut row: Vec<Line> = vec![study.plan.arm(result.arm).name.as_str().into()];
        row.extend(asked.then(|| Line::from(fidelity_words(result))));
        row.push(pages(study, result));
        table.row(row);
    }
    table.write(page);
}

/// How far the program ran as the placement asks.
const AS_ASKED: Column = Column { head: "as asked", align: Align::Right, keep: Keep::Always };

fn tells_fidelity(analysis: &Analysis) -> bool {
    analysis.arms.iter().any(|result| result.fidelity.is_some())
}

/// What was counted, as far as it says something, and which runs others spoilt.
fn evidence(study: &Study, analysis: &Analysis, page: &mut Page) {
    let told = Medians::told(study, analysis.arms.iter().map(|result| result.arm));
    let spoilt: Vec<(usize, usize)> = analysis.arms.iter().map(|result| study.spoilt(result.arm)).collect();
    let (repeated, kept) = spoilt.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    if !told.is_empty() || repeated > 0 {
        page.heading("Counted", "medians of the runs");
        let mut columns = vec![Column { head: "placement", align: Align::Left, keep: Keep::Always }];
        columns.extend(told.iter().map(|one| column_of(one.counted)));
        columns.push(Column { head: "repeated", align: Align::Left, keep: Keep::Always });
        let mut table = Table::new(columns);
        for (at, (result, (aside, _))) in analysis.arms.iter().zip(&spoilt).enumerate() {
            let mut row: Vec<Line> = vec![study.plan.arm(result.arm).name.as_str().into()];
            row.extend(told.iter().map(|one| Line::from(one.words(at))));
            row.push(if *aside > 0 { aside.to_string().into() } else { Line::new() });
            table.row(row);
        }
        table.write(page);
    }
    if repeated > 0 || kept > 0 {
        page.line(4, &Line::new().with(Ink::Faint, format!("  {}", spoilt_words(repeated, kept))));
    }
    if !study.not_counted.is_empty() {
        page.line(4, &Line::new().with(Ink::Faint, format!("  not counted: {}", not_counted(study))));
    }
}

/// Those that are counted of every program go first where there is no room.
const fn column_of(counted: Counted) -> Column {
    let keep = match counted {
        Counted::CpuTime | Counted::MaxRss => 0,
        Counted::MinorFaults | Counted::MajorFaults => 1,
        Counted::Others | Counted::Stolen => 2,
        Counted::Event(_) => 3,
        Counted::Moved | Counted::Interleaved => 4,
        Counted::Local | Counted::Hit | Counted::Missed | Counted::Foreign | Counted::Balanced => 5,
    };
    Column { head: counted.head(), align: Align::Right, keep: Keep::Unless(keep) }
}

/// How many runs others spoilt, and what became of them.
fn spoilt_words(repeated: usize, kept: usize) -> String {
    let all = repeated + kept;
    let what = match (repeated, kept) {
        (_, 0) => "repeated".to_owned(),
        (0, _) => "counted all the same".to_owned(),
        _ => format!("{repeated} repeated, {kept} counted all the same"),
    };
    let runs = format!("{} {}", plural(all, "run"), by_count(&all, "was", "were"));
    format!("{runs} spoilt by other programs or the hypervisor: {what}")
}

/// Events that are not counted here, those with the same reason together.
fn not_counted(study: &Study) -> String {
    let reasons = by_reason(study.not_counted.iter().map(|(counter, why)| (why.as_str(), counter.name())));
    let reason = |(why, names): &(&str, Vec<&str>)| format!("{} ({why})", names.join(", "));
    reasons.iter().map(reason).collect::<Vec<_>>().join("; ")
}

fn pages(study: &Study, result: &ArmResult) -> Line {
    study.residency(result.arm).as_ref().map_or(String::new(), pages_words).as_str().into()
}

fn results(study: &Study, analysis: &Analysis, with_pages: bool) -> Table {
    let column = |head, align, keep| Column { head, align, keep };
    let mut columns = vec![
        column("placement", Align::Left, Keep::Always),
        column("median", Align::Right, Keep::Unless(1)),
        column("change", Align::Right, Keep::Always),
        column("95 % interval", Align::Right, Keep::Unless(2)),
    ];
    let asked = with_pages && tells_fidelity(analysis);
    columns.extend(asked.then_some(AS_ASKED));
    if with_pages {
        columns.push(column("pages on node", Align::Left, Keep::Always));
    }
    columns.push(column("verdict", Align::Left, Keep::Always));
    let mut table = Table::new(columns);
    for result in &analysis.arms {
        let effect = result.effect;
        let median = result.summary.map_or(String::new(), |s| metric_value(s.median, &study.plan.metric));
        let change = effect.map_or(String::new(), |effect| change_words(effect.ratio, 1));
        let mut row: Vec<Line> = vec![
            study.plan.arm(result.arm).name.as_str().into(),
            median.as_str().into(),
            change.as_str().into(),
            effect.map_or(String::new(), |effect| range_words(effect.interval)).as_str().into(),
        ];
        row.extend(asked.then(|| Line::from(fidelity_words(result))));
        if with_pages {
            row.push(pages(study, result));
        }
        row.push(verdict(result, &study.plan.metric));
        table.row(row);
    }
    table
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

/// How a program failed, with the last line it complained with.
fn reason(dropped: &Dropped) -> String {
    dropped.ending.with_complaint(dropped.complaint.as_deref())
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
fn share(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn notes(study: &Study, analysis: &Analysis, page: &mut Page) {
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
    let detectable = analysis.arms.iter().filter(|arm| arm.verdict == Verdict::NoDifference);
    let detectable: Vec<f64> = detectable.filter_map(|arm| Some(arm.effect?.smallest_detectable)).collect();
    if let Some(most) = detectable.into_iter().reduce(f64::max) {
        let text = format!(
            "  no difference: none was shown; one of {} or {} would have been, four times in five{}",
            change_words(1.0 / (1.0 + most), 1),
            change_words(1.0 + most, 1),
            rounds_words(study, analysis)
        );
        page.line(4, &Line::new().with(Ink::Faint, text));
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
        End::BudgetSpent => Some("the time was up before all rounds were run".to_owned()),
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

/// How long was waited for the CPUs to cool down, where anything was.
fn cool_down(cool_down: &CoolDown) -> Option<String> {
    let CoolDown { waited, still_hot, .. } = *cool_down;
    let hot = match still_hot {
        0 => String::new(),
        many => format!("; before {} they were still hotter than in the beginning", plural(many, "run")),
    };
    (!waited.is_zero()).then(|| format!("waited {} in all for the CPUs to cool down{hot}", duration(waited)))
}

/// How many rounds a difference of one percent would take, where a study showed none and has fewer.
fn rounds_words(study: &Study, analysis: &Analysis) -> String {
    const MANY: u64 = 100_000;
    let same = analysis.arms.iter().filter(|arm| arm.verdict == Verdict::NoDifference);
    let most = same.filter_map(|arm| arm.effect?.blocks_for_smallest).max();
    let smallest = share(SMALLEST_EFFECT);
    match most.filter(|rounds| *rounds > study.blocks_begun().into()) {
        Some(rounds) if rounds > MANY => format!("; one of {smallest} would take more than {MANY} rounds"),
        Some(rounds) => format!("; one of {smallest} would take about {}", plural(rounds, "round")),
        None => String::new(),
    }
}

/// How a race stands at its end.
fn race(study: &Study, rules: &Rules) -> Option<String> {
    let margin = share(rules.margin);
    match (study.race.settled, &study.end) {
        (Some(best), _) => Some(format!(
            "settled: {} is within {margin} of the best ({:.0} % sure)",
            study.plan.arm(best).name,
            (1.0 - rules.error) * 100.0
        )),
        (None, End::Completed | End::BudgetSpent) if study.blocks_begun() >= rules.first_look => {
            let out = study.race.out.len();
            let left = study.plan.arms().len() - study.dropped.len() - out;
            Some(format!("not settled: {left} placements may be the best by more than {margin}"))
        }
        _ => None,
    }
}

fn advice(study: &Study, analysis: &Analysis, scope: &Scope, page: &mut Page) {
    let names = |arms: &[ArmId]| {
        arms.iter().map(|arm| study.plan.arm(*arm).name.clone()).collect::<Vec<_>>().join(", ")
    };
    match &analysis.advice {
        Advice::Use { best, as_good } => {
            let lines = command_lines(study, *best, scope);
            match lines.split_first() {
                Some((first, others)) => {
                    page.line(5, &Line::from("use: ").with(Ink::Accent, first));
                    for other in others {
                        page.line(5, &format!("or:  {other}").as_str().into());
                    }
                }
                None => page.line(5, &format!("use: {}", study.plan.arm(*best).name).as_str().into()),
            }
            if !as_good.is_empty() {
                page.line(2, &format!("not shown to be worse than it: {}", names(as_good)).as_str().into());
            }
        }
        Advice::Keep { smallest_detectable, .. } => {
            let least = smallest_detectable.map_or(String::new(), |least| {
                format!(
                    " (a gain below {} can have been missed)",
                    share(gain(least, study.plan.metric.direction()))
                )
            });
            page.line(2, &format!("no placement is better than the default{least}").as_str().into());
        }
        Advice::TooFewRounds { blocks, needed } => {
            let more = match study.plan.rounds {
                Rounds::Exactly(_) => format!("--runs={needed}"),
                Rounds::Within { .. } => "a longer --time".to_owned(),
            };
            let text =
                format!("too few rounds to say which is best: {blocks} of the {needed} it takes ({more})");
            page.line(2, &text.as_str().into());
        }
        Advice::BaselineFailed(dropped) => {
            page.line(2, &Line::new().with(Ink::Notable, failed(dropped)));
        }
        Advice::NothingToCompare => {
            let strayed = analysis.arms.iter().any(|arm| matches!(arm.verdict, Verdict::NotAsAsked(_)));
            let end = if strayed { " as asked" } else { "" };
            let text = format!("nothing to compare: only the default placement could be run{end}");
            page.line(2, &text.as_str().into());
        }
    }
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
