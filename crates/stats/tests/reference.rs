//! The statistics against values of well-known packages, which `reference/make.py` wrote down.

use std::path::Path;

use nodewise_stats::distribution::student_quantile;
use nodewise_stats::multiple::holm;
use nodewise_stats::power::blocks_for;
use nodewise_stats::rank_sum::rank_sum;
use nodewise_stats::signed_rank::signed_rank;
use nodewise_stats::{Bootstrap, Interval, geometric_mean, hodges_lehmann, mean};
use serde_json::Value;

/// The cases of a file, each of which must have been made by packages whose releases are reported.
fn cases(name: &str) -> Vec<Value> {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference").join(name).with_extension("json");
    let file: Value =
        serde_json::from_str(&std::fs::read_to_string(path).expect("it is there")).expect("it is JSON");
    assert!(file["packages"].as_str().expect("they are named").starts_with("SciPy 1."), "{name}");
    let cases = file["cases"].as_array().expect("there are cases").clone();
    assert!(!cases.is_empty(), "{name}");
    cases
}

fn number(case: &Value, name: &str) -> f64 {
    case[name].as_f64().unwrap_or_else(|| panic!("{name} of {case}"))
}

fn numbers(case: &Value, name: &str) -> Vec<f64> {
    let values = case[name].as_array().unwrap_or_else(|| panic!("{name} of {case}"));
    values.iter().map(|value| value.as_f64().expect("it is a number")).collect()
}

/// Within a share of the expected value.
fn near(found: f64, expected: f64, share: f64, case: &Value) {
    assert!((found - expected).abs() <= share * expected.abs(), "{found}, expected {expected}: {case}");
}

#[test]
fn the_signed_rank_test_is_scipys() {
    for case in cases("signed_rank") {
        near(signed_rank(&numbers(&case, "sample")).unwrap().p, number(&case, "p"), 1e-9, &case);
    }
}

#[test]
fn the_rank_sum_test_is_scipys() {
    for case in cases("rank_sum") {
        let (first, second) = (numbers(&case, "first"), numbers(&case, "second"));
        near(rank_sum(&first, &second).unwrap().p, number(&case, "p"), 1e-9, &case);
    }
}

#[test]
fn holms_correction_is_that_of_statsmodels() {
    for case in cases("holm") {
        let adjusted = holm(&numbers(&case, "p"));
        let expected = numbers(&case, "adjusted");
        assert_eq!(adjusted.len(), expected.len());
        adjusted.iter().zip(&expected).for_each(|(found, expected)| near(*found, *expected, 1e-12, &case));
    }
}

/// How far two bootstraps of 100,000 resamples of different generators may be apart, as a share of the
/// interval's width: five standard errors of its end, which is read at about the 1.5th percentile.
const DRAWN: f64 = 0.02;

fn is_interval(found: Interval, case: &Value) {
    let (low, high) = (number(case, "low"), number(case, "high"));
    let room = DRAWN * (high - low);
    let is_near = (found.low - low).abs() < room && (found.high - high).abs() < room;
    assert!(is_near, "{found:?}, expected {low}..{high}: {case}");
}

const BOOTSTRAP: Bootstrap = Bootstrap { resamples: 100_000, confidence: 0.95, seed: 20 };

#[test]
fn bootstrap_intervals_are_scipys() {
    for case in cases("bootstrap") {
        let sample = numbers(&case, "sample");
        let (centre, interval) = match case["estimate"].as_str().unwrap() {
            "mean" => (mean(&sample), BOOTSTRAP.interval(&sample, |drawn| mean(drawn).unwrap())),
            _ => (hodges_lehmann(&sample), BOOTSTRAP.hodges_lehmann(&sample)),
        };
        near(centre.unwrap(), number(&case, "centre"), 1e-9, &case);
        is_interval(interval.unwrap(), &case);
    }
}

#[test]
fn the_interval_of_a_geometric_mean_is_scipys() {
    for case in cases("geometric_mean") {
        let ratios = numbers(&case, "ratios");
        near(geometric_mean(&ratios).unwrap(), number(&case, "mean"), 1e-12, &case);
        let interval = BOOTSTRAP.interval(&ratios, |drawn| geometric_mean(drawn).unwrap());
        is_interval(interval.unwrap(), &case);
    }
}

#[test]
fn quantiles_of_students_distribution_are_scipys() {
    for case in cases("student") {
        let found = student_quantile(number(&case, "p"), number(&case, "degrees") as u32);
        let expected = number(&case, "t");
        assert!((found - expected).abs() <= 1e-7 * expected.abs().max(1.0), "{found}: {case}");
    }
}

#[test]
fn the_blocks_for_an_effect_are_those_of_statsmodels() {
    for case in cases("blocks_for") {
        let (effect, deviation) = (number(&case, "effect"), number(&case, "deviation"));
        let found = blocks_for(effect, deviation, number(&case, "comparisons") as usize, 0.05, 0.0).unwrap();
        let expected = number(&case, "blocks");
        // A whole number of blocks, and statsmodels counts the chance of a finding in the wrong direction.
        assert!((found as f64 - expected).abs() <= 1.0 + 1e-3 * expected, "{found}: {case}");
    }
}
