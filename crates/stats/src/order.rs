//! An interval for a median from the sample's own values, whatever they are distributed like.

use super::Interval;
use super::location::sorted;

/// How sure the interval is to hold the median, at least.
pub const CONFIDENCE: f64 = 0.95;

/// The fewest values that have such an interval: of five, both ends together hold 93.75%.
pub const FEWEST: usize = 6;

/// The interval between two values of the sample, as many places from either end, that holds the
/// median of what it was drawn from with at least [`CONFIDENCE`]. Exact for any continuous
/// distribution; `None` below [`FEWEST`] values.
///
/// # Source
/// Each value is below the median with probability 1/2, so the number of them is binomial: David and
/// Nagaraja, "Order statistics", 2003, section 7.1.
pub fn median_interval(sample: &[f64]) -> Option<Interval> {
    let sorted = sorted(sample)?;
    let from_end = places_from_end(sorted.len())?;
    Some(Interval { low: sorted[from_end], high: sorted[sorted.len() - 1 - from_end] })
}

/// How many values can be left out at either end.
fn places_from_end(count: usize) -> Option<usize> {
    // The chance that so few values, or fewer, lie below the median, from none upwards; as
    // logarithms, because 2^-count is nothing beyond 1,074 values.
    let mut log_term = -(count as f64) * std::f64::consts::LN_2;
    let (mut tail, mut kept) = (0.0, None);
    for below in 0..count / 2 {
        tail += log_term.exp();
        if 2.0 * tail > 1.0 - CONFIDENCE {
            break;
        }
        kept = Some(below);
        log_term += ((count - below) as f64 / (below + 1) as f64).ln();
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn check(count: usize, expected: Option<(f64, f64)>) {
        let sample: Vec<f64> = (1..=count).map(|value| value as f64).collect();
        assert_eq!(median_interval(&sample).map(|i| (i.low, i.high)), expected, "{count} values");
    }

    #[test]
    fn the_places_are_those_of_the_tables() {
        // Places as in table A.3 of Hollander and Wolfe for the sign test at 5%.
        check(0, None);
        check(5, None);
        check(6, Some((1.0, 6.0)));
        check(8, Some((1.0, 8.0)));
        check(9, Some((2.0, 8.0)));
        check(12, Some((3.0, 10.0)));
        check(15, Some((4.0, 12.0)));
        check(20, Some((6.0, 15.0)));
        check(100, Some((40.0, 61.0)));
        assert!(median_interval(&vec![1.0; 5000]).is_some());
    }

    #[test]
    fn a_value_that_is_no_number_has_no_interval() {
        assert_eq!(median_interval(&[1.0, 2.0, f64::NAN, 4.0, 5.0, 6.0]), None);
    }

    #[test]
    fn the_median_is_inside_as_often_as_is_said() {
        let mut random = Random::new(7);
        for count in [6, 9, 12, 30] {
            let inside = (0..2000)
                .filter(|_| {
                    // A skewed distribution with the median ln 2.
                    let sample: Vec<f64> = (0..count).map(|_| -(1.0 - random.unit()).ln()).collect();
                    median_interval(&sample).unwrap().contains(std::f64::consts::LN_2)
                })
                .count();
            assert!(inside >= 1880, "{inside} of 2000 with {count} values");
        }
    }
}
