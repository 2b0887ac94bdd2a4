use std::time::Duration;

use super::*;
use crate::suite::definition::Definition;
use crate::suite::session::{End, Sample, Skipped};
use nodewise_machine::conditions::Conditions;
use nodewise_stats::random::Random;

/// A record of a benchmark: its rounds, each with the values of its runs.
pub(crate) fn record(name: &str, threads: u32, arms: &[&[&[f64]]]) -> CaseRecord {
    let samples = |rounds: &&[&[f64]]| {
        let of_round = |(round, values): (usize, &&[f64])| {
            let sample = move |(replicate, value): (usize, &f64)| Sample {
                round: round as u32 + 1,
                replicate: replicate as u8,
                value: *value,
                steal_share: None,
            };
            values.iter().enumerate().map(sample).collect::<Vec<_>>()
        };
        let samples = rounds.iter().enumerate().flat_map(of_round).collect();
        ArmRecord { samples, ..ArmRecord::default() }
    };
    CaseRecord {
        benchmark: name.to_owned(),
        threads,
        unit: "x".to_owned(),
        direction: Direction::HigherIsBetter,
        memory_traffic: true,
        definition: None,
        arms: arms.iter().map(samples).collect(),
    }
}

/// A session of these records.
pub(crate) fn session(cases: &[CaseRecord], placements: usize) -> Session {
    let names = ["default", "interleave all", "other"];
    Session {
        suite: "drawn".to_owned(),
        origin: None,
        conditions: Conditions::default(),
        settings: Default::default(),
        tools: Default::default(),
        seed: 1,
        rounds: 7,
        end: End::Completed,
        took: Duration::from_secs(1),
        placements: names[..placements].iter().map(|name| (*name).to_owned()).collect(),
        cases: cases.to_vec(),
        skipped: Vec::new(),
    }
}

/// A benchmark with a mean and the noise of its runs, as a share.
pub(super) fn drawn(name: &str, mean: f64, noise: f64, rounds: usize, random: &mut Random) -> CaseRecord {
    let mut run = || mean * (noise * random.normal()).exp();
    let rounds: Vec<[f64; 2]> = (0..rounds).map(|_| [run(), run()]).collect();
    let rounds: Vec<&[f64]> = rounds.iter().map(|round| &round[..]).collect();
    record(name, 1, &[&rounds])
}

fn percent(ratio: f64) -> f64 {
    ((ratio - 1.0) * 1e4).round() / 100.0
}

#[test]
fn a_clear_change_is_shown_with_its_size_and_direction() {
    let mut random = Random::new(5);
    let before =
        session(&[drawn("a", 10.0, 0.005, 7, &mut random), drawn("b", 3.0, 0.005, 7, &mut random)], 1);
    let mut after =
        session(&[drawn("a", 11.0, 0.005, 7, &mut random), drawn("b", 3.3, 0.005, 7, &mut random)], 1);
    let table = &Comparison::between(&before, &after).tables[0];
    let words: Vec<&Verdict> = table.rows.iter().map(|row| &row.verdict).collect();
    assert_eq!(words, [&Verdict::Better, &Verdict::Better]);
    let change = table.rows[0].change.unwrap();
    assert!((change.ratio - 1.1).abs() < 0.01, "{change:?}");
    assert!(change.interval.unwrap().contains(1.1), "{change:?}");
    assert!((table.means[0].ratio - 1.1).abs() < 0.01 && table.means[0].rows == 2, "{:?}", table.means);
    // The same numbers as times: more is worse.
    let mut before = before;
    for session in [&mut before, &mut after] {
        session.cases.iter_mut().for_each(|case| case.direction = Direction::LowerIsBetter);
    }
    let slower = Comparison::between(&before, &after);
    assert!(slower.is_lost());
    let ratio = slower.tables[0].rows[0].change.unwrap().ratio;
    assert!((ratio * change.ratio - 1.0).abs() < 1e-12, "the same change the other way round");
}

#[test]
fn nothing_is_lost_where_nothing_changed() {
    let same = session(
        &[record("a", 1, &[&[&[1.0, 1.01], &[1.02, 1.0], &[1.0, 1.03], &[1.01, 1.0], &[1.0, 1.0]]])],
        1,
    );
    let comparison = Comparison::between(&same, &same);
    assert_eq!(comparison.tables[0].rows[0].verdict, Verdict::NoDifference);
    assert!(!comparison.is_lost());
    assert_eq!(comparison.tables[0].rows[0].change.unwrap().ratio, 1.0);
    assert_eq!(Comparison::between(&same, &same), comparison, "the same sessions give the same words");
}

#[test]
fn figures_without_repeats_have_no_interval_and_no_verdict() {
    let one = |value: f64| session(&[record("a", 1, &[&[&[value]]])], 1);
    let table = &Comparison::between(&one(100.0), &one(108.0)).tables[0];
    let row = &table.rows[0];
    assert_eq!(row.verdict, Verdict::TooFewRounds { rounds: 1, needed: 4 });
    let change = row.change.unwrap();
    assert_eq!((percent(change.ratio), change.interval, change.adjusted_p), (8.0, None, None));
    assert_eq!((percent(table.means[0].ratio), table.means[0].interval), (8.0, None));
}

#[test]
fn more_rows_need_more_rounds() {
    let rows = |count: usize, rounds: usize| {
        let mut random = Random::new(1);
        let names: Vec<String> = (0..count).map(|at| at.to_string()).collect();
        let cases: Vec<CaseRecord> =
            names.iter().map(|name| drawn(name, 1.0, 0.001, rounds, &mut random)).collect();
        let found = Comparison::between(&session(&cases, 1), &session(&cases, 1));
        found.tables[0].rows[0].verdict.clone()
    };
    assert_eq!(rows(1, 4), Verdict::NoDifference);
    assert_eq!(rows(2, 4), Verdict::TooFewRounds { rounds: 4, needed: 5 });
    assert_eq!(rows(20, 5), Verdict::TooFewRounds { rounds: 5, needed: 6 });
    assert_eq!(rows(20, 6), Verdict::NoDifference);
}

#[test]
fn what_is_missing_is_said_with_its_reason() {
    let mut before = session(&[record("a", 1, &[&[&[1.0]]]), record("b", 1, &[&[&[1.0]]])], 1);
    let mut after = session(&[record("a", 1, &[&[&[1.0]]]), record("c", 1, &[&[&[1.0]]])], 1);
    let skip =
        |name: &str, why: &str| Skipped { benchmark: name.to_owned(), threads: Some(1), why: why.to_owned() };
    before.skipped.push(skip("d", "no d here"));
    after.skipped.extend([skip("b", "not installed"), skip("d", "no d here")]);
    after.cases[0].arms[0] =
        ArmRecord { failed: Some("ended with exit code 1".to_owned()), ..ArmRecord::default() };
    let table = &Comparison::between(&before, &after).tables[0];
    let words: Vec<(&str, &Verdict)> =
        table.rows.iter().map(|row| (row.benchmark.as_str(), &row.verdict)).collect();
    let missing = |why: &str| Verdict::Missing(why.to_owned());
    assert_eq!(
        words,
        [
            ("a", &missing("after: ended with exit code 1")),
            ("b", &missing("after: not installed")),
            ("d", &missing("no d here")),
            ("c", &missing("before: not run")),
        ]
    );
    assert!(table.means.is_empty());
}

#[test]
fn a_benchmark_that_has_changed_itself_gets_no_verdict_and_no_part_in_the_mean() {
    let values: [&[f64]; 7] = [&[1.0, 1.01]; 7];
    let faster: [&[f64]; 7] = [&[2.0, 2.02]; 7];
    let mut before = session(&[record("a", 1, &[&values]), record("b", 1, &[&values])], 1);
    let mut after = session(&[record("a", 1, &[&faster]), record("b", 1, &[&faster])], 1);
    let definition = |command: &str| {
        Some(Definition {
            command: command.to_owned(),
            prepare: None,
            prepare_each: None,
            metric: "wall".to_owned(),
            inputs: Default::default(),
        })
    };
    before.cases.iter_mut().for_each(|case| case.definition = definition("sleep 0.05"));
    after.cases[0].definition = definition("sleep 0.06");
    after.cases[1].definition = definition("sleep 0.05");
    let table = &Comparison::between(&before, &after).tables[0];
    let how = "its command was \"sleep 0.05\" and is \"sleep 0.06\"";
    assert_eq!(table.rows[0].verdict, Verdict::Changed(how.to_owned()));
    assert_eq!((table.rows[0].change, table.rows[0].after), (None, Some(2.01)));
    assert_eq!(table.rows[1].verdict, Verdict::Better);
    assert_eq!(table.means[0].rows, 1);
    // What was saved before definitions were noted is compared as it was.
    before.cases[0].definition = None;
    assert_eq!(Comparison::between(&before, &after).tables[0].rows[0].verdict, Verdict::Better);
}

#[test]
fn figures_of_different_metrics_are_not_compared() {
    let before = session(&[record("a", 1, &[&[&[1.0]]])], 1);
    let mut after = before.clone();
    after.cases[0].unit = "y".to_owned();
    let row = &Comparison::between(&before, &after).tables[0].rows[0];
    assert_eq!(row.verdict, Verdict::Changed("the two are of different metrics".to_owned()));
}

#[test]
fn placements_are_compared_round_by_round() {
    // The machine gets slower from round to round; what is compared in a round is 5 % apart.
    let slow = |round: i32| 0.7_f64.powi(round);
    let first: Vec<[f64; 2]> = (0..8).map(|round| [slow(round), slow(round) * 1.001]).collect();
    let second: Vec<[f64; 1]> = (0..8).map(|round| [slow(round) * 1.05]).collect();
    let first: Vec<&[f64]> = first.iter().map(|round| &round[..]).collect();
    let second: Vec<&[f64]> = second.iter().map(|round| &round[..]).collect();
    let paired = session(&[record("a", 1, &[&first, &second])], 2);
    let table = &Comparison::from_placements(&paired).tables[0];
    assert_eq!((table.subject.as_str(), table.reference.as_str()), ("interleave all", "default"));
    assert_eq!(table.rows[0].verdict, Verdict::Better);
    assert!((table.rows[0].change.unwrap().ratio - 1.05).abs() < 0.002);
    // As two sessions nothing of it could be seen.
    let apart = Comparison::between(
        &session(&[record("a", 1, &[&first])], 1),
        &session(&[record("a", 1, &[&second])], 1),
    );
    assert_eq!(apart.tables[0].rows[0].verdict, Verdict::NoDifference);
}

#[test]
fn the_rows_of_all_placements_are_adjusted_for_each_other() {
    let mut random = Random::new(9);
    let mut rounds =
        |gain: f64| -> Vec<[f64; 1]> { (0..8).map(|_| [(gain + 0.001 * random.normal()).exp()]).collect() };
    let (first, second, better) = (rounds(0.0), rounds(0.0), rounds(0.02));
    let pairs: Vec<[f64; 2]> = first.iter().zip(&second).map(|(a, b)| [a[0], b[0]]).collect();
    let reference: Vec<&[f64]> = pairs.iter().map(|round| &round[..]).collect();
    let better: Vec<&[f64]> = better.iter().map(|round| &round[..]).collect();
    let p = |arms: &[&[&[f64]]]| {
        let comparison = Comparison::from_placements(&session(&[record("a", 1, arms)], arms.len()));
        comparison.tables[0].rows[0].change.unwrap().adjusted_p.unwrap()
    };
    let (alone, beside) = (p(&[&reference, &better]), p(&[&reference, &better, &better]));
    assert!((beside - 2.0 * alone).abs() < 1e-12, "{alone} and {beside}");
}

#[test]
fn a_gain_without_memory_traffic_must_clear_all_the_noise() {
    // Two runs of the same differ by 0.2 %, and once by 4 %; the second session is 3.5 % faster.
    let rounds = |gain: f64| -> Vec<[f64; 2]> {
        let at = |round: i32| match round {
            3 => [gain, gain * 1.04],
            odd if odd % 2 == 1 => [gain, gain * 1.002],
            _ => [gain * 1.002, gain],
        };
        (0..10).map(at).collect()
    };
    let sessions = |gain: f64, memory_traffic: bool| {
        let values = rounds(gain);
        let values: Vec<&[f64]> = values.iter().map(|round| &round[..]).collect();
        session(&[CaseRecord { memory_traffic, ..record("a", 1, &[&values]) }], 1)
    };
    let verdict = |gain, traffic| {
        let found = Comparison::between(&sessions(1.0, traffic), &sessions(gain, traffic));
        found.tables[0].rows[0].verdict.clone()
    };
    assert_eq!(verdict(1.035, true), Verdict::Better);
    assert_eq!(verdict(1.035, false), Verdict::NoDifference);
    assert_eq!(verdict(1.25, false), Verdict::Better, "beyond the noise it is told, whatever changed");
}
