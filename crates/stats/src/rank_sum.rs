//! The rank-sum test of Wilcoxon, and Mann and Whitney: do two samples that were not taken in pairs lie
//! at the same place?
//!
//! # Source
//! Wilcoxon, "Individual comparisons by ranking methods", 1945; Mann and Whitney, Ann. Math. Stat. 18,
//! 1947. Equal values share the mean of their ranks, and the exact distribution is conditional on those
//! shared ranks, so it is exact with ties too. The estimate that belongs to it: Hodges and Lehmann, Ann.
//! Math. Stat. 34, 1963.

use super::distribution::{normal_cdf, normal_quantile};
use super::median;

/// Up to this many values in both samples together the p value is exact; above it the normal
/// approximation is right to the third digit.
pub const EXACT_UP_TO: usize = 40;

/// The result of the test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankSum {
    /// In how many pairs of a value of each sample the second is the larger one; a tie counts half.
    pub u: f64,
    /// How likely a sum of ranks at least as far from its mean is when both samples come from the same
    /// distribution; two-sided.
    pub p: f64,
}

/// Tests whether `second` lies elsewhere than `first`; `None` when one of them is empty or holds what is
/// not a number.
pub fn rank_sum(first: &[f64], second: &[f64]) -> Option<RankSum> {
    if first.is_empty() || second.is_empty() || first.iter().chain(second).any(|value| value.is_nan()) {
        return None;
    }
    let mut all: Vec<(f64, bool)> = first.iter().map(|value| (*value, false)).collect();
    all.extend(second.iter().map(|value| (*value, true)));
    all.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let ranks = doubled_ranks(&all);
    let sum: usize = all.iter().zip(&ranks).filter(|((_, own), _)| *own).map(|(_, rank)| *rank).sum();
    let own = second.len();
    let p = if ranks.len() <= EXACT_UP_TO { exact(&ranks, own, sum) } else { approximate(&ranks, own, sum) };
    Some(RankSum { u: sum as f64 / 2.0 - (own * (own + 1)) as f64 / 2.0, p })
}

/// The shift from the first sample to the second: the median of the differences of all their pairs.
/// `None` as for [`rank_sum`].
pub fn shift(first: &[f64], second: &[f64]) -> Option<f64> {
    let differences: Vec<f64> =
        first.iter().flat_map(|one| second.iter().map(move |other| other - one)).collect();
    median(&differences)
}

/// The smallest p value that samples of these sizes can have, when all values of one lie above all of
/// the other.
pub fn smallest_p(first: usize, second: usize) -> f64 {
    let choices = (1..=first).fold(1.0, |product, at| product * (second + at) as f64 / at as f64);
    (2.0 / choices).min(1.0)
}

/// In how many pairs of a value of each sample the second may be the smaller one while the test still says, with a
/// p value below `level`, that it lies above; `None` where no outcome says so. For values without ties.
pub fn most_against(first: usize, second: usize, level: f64) -> Option<usize> {
    if first + second > EXACT_UP_TO {
        let (pairs, all) = ((first * second) as f64, (first + second) as f64);
        let deviation = (pairs * (all + 1.0) / 12.0).sqrt();
        let most = pairs / 2.0 - 0.5 + normal_quantile(level / 2.0) * deviation;
        return (most.ceil() as usize).checked_sub(1);
    }
    // The number of orders with each count of pairs: a Gaussian binomial coefficient, factor by factor.
    let mut orders = vec![0.0; first * second + 1];
    orders[0] = 1.0;
    for factor in 1..=first {
        for count in (second + factor..orders.len()).rev() {
            orders[count] -= orders[count - second - factor];
        }
        for count in factor..orders.len() {
            orders[count] += orders[count - factor];
        }
    }
    let all: f64 = orders.iter().sum();
    let mut sum = 0.0;
    let below = orders.iter().take_while(|orders| {
        sum += *orders;
        2.0 * sum / all < level
    });
    below.count().checked_sub(1)
}

/// Twice the rank of each value, which are in order: doubled, the mean rank of equal ones is a whole
/// number.
fn doubled_ranks(sorted: &[(f64, bool)]) -> Vec<usize> {
    let mut ranks = Vec::with_capacity(sorted.len());
    for equal in sorted.chunk_by(|a, b| a.0 == b.0) {
        let before = ranks.len();
        ranks.extend(std::iter::repeat_n(2 * before + equal.len() + 1, equal.len()));
    }
    ranks
}

/// The exact p value: how many choices of `own` ranks have each sum, built up rank by rank.
fn exact(ranks: &[usize], own: usize, sum: usize) -> f64 {
    let total: usize = ranks.iter().sum();
    let mut choices = vec![vec![0.0; total + 1]; own + 1];
    choices[0][0] = 1.0;
    for rank in ranks {
        for chosen in (1..=own).rev() {
            let (fewer, more) = choices.split_at_mut(chosen);
            let with = fewer[chosen - 1].iter().zip(more[0][*rank..].iter_mut());
            with.for_each(|(without, count)| *count += without);
        }
    }
    let counts = &choices[own];
    let all: f64 = counts.iter().sum();
    let tail = counts[..=sum].iter().sum::<f64>().min(counts[sum..].iter().sum());
    (2.0 * tail / all).min(1.0)
}

/// The p value of the normal approximation, with the variance that ties leave and half a rank of
/// continuity correction.
fn approximate(ranks: &[usize], own: usize, sum: usize) -> f64 {
    let (n, own) = (ranks.len() as f64, own as f64);
    let mean = ranks.iter().sum::<usize>() as f64 / n;
    let squares: f64 = ranks.iter().map(|rank| (*rank as f64 - mean).powi(2)).sum();
    // Drawing without replacement; in doubled ranks.
    let variance = own * (n - own) / (n * (n - 1.0)) * squares;
    let corrected = ((sum as f64 - own * mean).abs() - 1.0).max(0.0);
    if variance == 0.0 { 1.0 } else { (2.0 * normal_cdf(-corrected / variance.sqrt())).min(1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};

    fn check(first: &[f64], second: &[f64], u: f64, p: f64) {
        let found = rank_sum(first, second).unwrap();
        assert_eq!(found.u, u);
        assert!((found.p - p).abs() < 1e-9 * p.max(1e-3), "{} is not {p}", found.p);
    }

    // scipy.stats.mannwhitneyu(second, first, method='exact'), SciPy 1.17.1
    #[test]
    fn exact_values_are_scipys() {
        check(
            &[0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46],
            &[1.15, 0.88, 0.90, 0.74, 1.21],
            15.0,
            0.2544122544122544,
        );
        check(
            &[5.1, 4.9, 5.3, 5.0, 5.2, 5.15, 4.95],
            &[5.4, 5.25, 5.6, 5.05, 5.5, 5.45, 5.35],
            44.0,
            0.011072261072261072,
        );
    }

    /// Samples without ties in which this many pairs point the other way.
    fn with_pairs_against(first: usize, second: usize, against: usize) -> (Vec<f64>, Vec<f64>) {
        // Each value of the second is put below as many of the first as are left.
        let mut left = against;
        let place = |at: usize| {
            let below = left.min(first);
            left -= below;
            (first - below) as f64 + 0.5 - 1e-3 * (second - at) as f64
        };
        let second: Vec<f64> = (0..second).map(place).collect();
        ((1..=first).map(|value| value as f64).collect(), second)
    }

    #[test]
    fn the_most_pairs_against_are_those_up_to_which_the_test_says_yes() {
        for (first, second, level) in [
            (7, 7, 0.05),
            (7, 7, 0.01),
            (4, 4, 0.05),
            (6, 9, 0.002),
            (20, 20, 0.01),
            (30, 25, 0.01),
            (40, 60, 1e-4),
        ] {
            let most = most_against(first, second, level).unwrap();
            let p = |against| {
                let (first, second) = with_pairs_against(first, second, against);
                let test = rank_sum(&first, &second).unwrap();
                assert_eq!(test.u, (first.len() * second.len() - against) as f64);
                test.p
            };
            assert!(p(most) < level && p(most + 1) >= level, "{first} and {second} at {level}: {most}");
        }
        assert_eq!(most_against(3, 3, 0.05), None, "the smallest p value is 0.1");
        assert_eq!(most_against(20, 20, 1e-12), None);
    }

    // scipy.stats.permutation_test over every choice of ranks, SciPy 1.17.1
    #[test]
    fn exact_values_with_ties_are_those_of_all_permutations() {
        check(&[1.0, 2.0, 2.0, 3.0, 4.0, 4.0], &[2.0, 3.0, 4.0, 5.0, 5.0], 22.5, 0.24242424242424243);
    }

    // scipy.stats.mannwhitneyu(second, first, method='asymptotic'), SciPy 1.17.1
    #[test]
    fn the_approximation_is_scipys() {
        let first = [
            0.3, 0.8, 0.3, -1.3, 0.9, 0.4, -0.5, 0.6, 0.4, 0.3, 0.0, 0.5, -0.7, -0.2, -0.5, 0.6, 0.0, -0.3,
            -0.8, -0.3, 0.0, -0.3, 1.3, 1.0, -2.7, -1.9, -0.2, -0.4, 0.2, 0.2,
        ];
        let second = [
            2.6, -0.6, 0.1, 2.5, 1.1, 1.2, 0.0, -1.1, 0.7, 0.6, -0.7, -0.2, 0.4, -0.4, 0.4, 0.6, 0.5, 0.0,
            1.1, 1.4, 0.8, -0.3, 1.2, 0.0, 1.4,
        ];
        check(&first, &second, 507.0, 0.026010790464404774);
    }

    #[test]
    fn the_smallest_p_is_that_of_samples_that_do_not_mix() {
        for (first, second) in [(1, 1), (4, 4), (5, 3), (7, 7)] {
            let low: Vec<f64> = (0..first).map(f64::from).collect();
            let high: Vec<f64> = (0..second).map(|value| f64::from(value) + 100.0).collect();
            let found = rank_sum(&low, &high).unwrap().p;
            let least = smallest_p(first as usize, second as usize);
            assert!((found - least).abs() < 1e-12, "{found} {least}");
        }
    }

    #[test]
    fn what_is_no_number_is_not_tested() {
        assert_eq!(rank_sum(&[], &[1.0]), None);
        assert_eq!(rank_sum(&[1.0], &[f64::NAN]), None);
        assert_eq!(rank_sum(&[2.0; 30], &[2.0; 30]).map(|test| test.p), Some(1.0));
        assert_eq!(shift(&[], &[1.0]), None);
    }

    #[test]
    fn a_shift_is_found_as_it_was_made() {
        assert_eq!(shift(&[1.0, 2.0, 4.0], &[3.5, 4.5, 6.5]), Some(2.5));
    }

    proptest! {
        #[test]
        fn the_two_sides_mirror_each_other(
            first in prop::collection::vec(-9i32..9, 1..26), second in prop::collection::vec(-9i32..9, 1..26),
        ) {
            let values = |of: &[i32]| of.iter().map(|value| f64::from(*value)).collect::<Vec<_>>();
            let (first, second) = (values(&first), values(&second));
            let (there, back) = (rank_sum(&first, &second).unwrap(), rank_sum(&second, &first).unwrap());
            prop_assert!((there.p - back.p).abs() < 1e-9, "{} {}", there.p, back.p);
            prop_assert!((0.0..=1.0).contains(&there.p));
            prop_assert_eq!(there.u + back.u, (first.len() * second.len()) as f64);
            prop_assert_eq!(shift(&first, &second).unwrap(), -shift(&second, &first).unwrap());
        }
    }
}
