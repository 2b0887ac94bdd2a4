//! Hundreds of comparisons, and in how many of them the rows are right.

use super::tests::{drawn, record, session};
use super::*;
use crate::synthetic::disturbance::Disturbance;
use nodewise_stats::random::Random;
use nodewise_stats::share::share_interval;

/// Resamples of an interval: what is shown has four times as many.
const FEW: u32 = 1000;

// A run against the mean of two, which the signed-rank test takes to be centred on zero, has p below 5 % in
// 23 of 100 comparisons with this noise.
#[test]
fn equal_placements_have_a_p_value_below_5_percent_in_5_of_100_comparisons_with_skewed_noise() {
    let mut noise = Disturbance::Pareto.begin(4);
    let comparisons = 200;
    let is_below = |_: &u32| {
        let mut runs = |count: usize| -> Vec<Vec<f64>> {
            (0..100).map(|_| (0..count).map(|_| noise.next_run().exp()).collect()).collect()
        };
        let (first, second) = (runs(2), runs(1));
        let [first, second] =
            [&first, &second].map(|rounds| rounds.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let session = session(&[record("a", 1, &[&first, &second])], 2);
        let comparison = Comparison::from_placements_with(&session, 10);
        comparison.tables[0].rows[0].change.unwrap().adjusted_p.unwrap() < 0.05
    };
    let below = (0..comparisons).filter(is_below).count() as u32;
    let (low, high) = share_interval(below, comparisons);
    assert!(low <= 0.05 && high >= 0.05, "{below} of {comparisons}");
}

#[test]
fn the_same_thing_twice_is_called_different_in_at_most_five_tables_of_a_hundred() {
    let mut random = Random::new(77);
    let mut differing = 0;
    let tables = 300;
    for _ in 0..tables {
        let mut suite = || {
            let cases: Vec<CaseRecord> =
                (0..5).map(|at| drawn(&at.to_string(), 2.0, 0.03, 6, &mut random)).collect();
            session(&cases, 1)
        };
        let (before, after) = (suite(), suite());
        let found = Comparison::between_with(&before, &after, FEW);
        differing += usize::from(
            found.tables[0].rows.iter().any(|row| matches!(row.verdict, Verdict::Better | Verdict::Worse)),
        );
    }
    assert!(differing * 20 <= tables, "{differing} of {tables}");
}

#[test]
fn the_interval_of_a_geometric_mean_holds_the_truth_in_about_95_of_100() {
    let mut random = Random::new(13);
    let (mut rows, mut means) = (0, 0);
    let studies = 200;
    for _ in 0..studies {
        let mut suite = |gain: f64| {
            let cases: Vec<CaseRecord> =
                (0..4).map(|at| drawn(&at.to_string(), gain, 0.03, 7, &mut random)).collect();
            session(&cases, 1)
        };
        let (before, after) = (suite(1.0), suite(1.06));
        let table = Comparison::between_with(&before, &after, FEW).tables.remove(0);
        rows += usize::from(table.rows[0].change.unwrap().interval.unwrap().contains(1.06));
        means += usize::from(table.means[0].interval.unwrap().contains(1.06));
    }
    // 190 are expected, with a standard deviation of 3.
    for held in [rows, means] {
        assert!((181..=199).contains(&held), "{rows} rows and {means} means of {studies}");
    }
}

/// The short form of the column "found" of `cargo xtask stats --table compare`.
#[test]
fn a_change_stated_with_80_percent_power_is_found_in_75_to_85_of_100_comparisons() {
    let mut random = Random::new(29);
    for slow in [0.0, 0.1] {
        let (mut stated, mut found) = (0, 0);
        for number in 0..500 {
            let mut suite = |mean: f64| {
                let mut run = || {
                    let level = if random.unit() < 0.3 { slow } else { 0.0 };
                    mean * (level + 0.01 * random.normal()).exp()
                };
                let rounds: Vec<[f64; 2]> = (0..7).map(|_| [run(), run()]).collect();
                let rounds: Vec<&[f64]> = rounds.iter().map(|round| &round[..]).collect();
                session(&[record("row", 1, &[&rounds])], 1)
            };
            let (before, after) = (suite(1.0), suite(1.0));
            let row = Comparison::between_with(&before, &after, 200).tables[0].rows[0].clone();
            let share = row.change.unwrap().smallest_detectable.unwrap();
            let (ratio, verdict) = match number % 2 {
                0 => (1.0 + share, Verdict::Better),
                _ => (1.0 / (1.0 + share), Verdict::Worse),
            };
            let (before, after) = (suite(1.0), suite(ratio));
            let row = Comparison::between_with(&before, &after, 200).tables[0].rows[0].clone();
            stated += 1;
            found += u32::from(row.verdict == verdict);
        }
        assert!(
            (0.75..=0.85).contains(&(f64::from(found) / f64::from(stated))),
            "{slow}: {found} of {stated}"
        );
    }
}
