//! Wilcoxon's signed-rank test: are paired differences centred on zero?
//!
//! # Source
//! Wilcoxon, "Individual comparisons by ranking methods", 1945. Differences of zero are left out, as
//! Wilcoxon did; equal sizes share the mean of their ranks. The exact distribution is conditional on
//! those shared ranks, so it is exact with ties too.

use super::distribution::normal_cdf;

/// Up to this many differences the p value is exact; above it the normal approximation is right to
/// the third digit.
pub const EXACT_UP_TO: usize = 25;

/// The result of the test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SignedRank {
    /// Differences that are not zero.
    pub pairs: usize,
    /// The sum of the ranks of the positive ones.
    pub positive_ranks: f64,
    /// How likely a sum at least as far from its mean is when every difference is as likely to be
    /// negative as positive; two-sided.
    pub p: f64,
}

/// Tests differences against zero; `None` when one of them is not a number.
///
/// Without any difference that is not zero nothing speaks against zero, and p is 1.
pub fn signed_rank(differences: &[f64]) -> Option<SignedRank> {
    if differences.iter().any(|difference| difference.is_nan()) {
        return None;
    }
    let mut differences: Vec<f64> = differences.iter().copied().filter(|d| *d != 0.0).collect();
    differences.sort_unstable_by(|a, b| a.abs().total_cmp(&b.abs()));
    let ranks = doubled_ranks(&differences);
    let positive =
        differences.iter().zip(&ranks).filter(|(d, _)| **d > 0.0).map(|(_, rank)| *rank).sum::<usize>();
    let p = if ranks.len() <= EXACT_UP_TO { exact(&ranks, positive) } else { approximate(&ranks, positive) };
    Some(SignedRank { pairs: ranks.len(), positive_ranks: positive as f64 / 2.0, p })
}

/// Twice the rank of each of these differences, which are in order of size: doubled, the mean rank
/// of equal ones is a whole number.
fn doubled_ranks(by_size: &[f64]) -> Vec<usize> {
    let mut ranks = Vec::with_capacity(by_size.len());
    for equal in by_size.chunk_by(|a, b| a.abs() == b.abs()) {
        let before = ranks.len();
        ranks.extend(std::iter::repeat_n(2 * before + equal.len() + 1, equal.len()));
    }
    ranks
}

/// The exact p value: the probabilities of all sums, built up rank by rank, each sign as likely as
/// the other.
fn exact(ranks: &[usize], positive: usize) -> f64 {
    let total: usize = ranks.iter().sum();
    let mut probability = vec![0.0; total + 1];
    probability[0] = 1.0;
    let mut reached = 0;
    for rank in ranks {
        for sum in (0..=reached).rev() {
            let half = probability[sum] / 2.0;
            probability[sum] = half;
            probability[sum + rank] += half;
        }
        reached += rank;
    }
    let smaller = positive.min(total - positive);
    (2.0 * probability[..=smaller].iter().sum::<f64>()).min(1.0)
}

/// The p value of the normal approximation, with the variance that ties leave and half a rank of
/// continuity correction.
fn approximate(ranks: &[usize], positive: usize) -> f64 {
    let total: usize = ranks.iter().sum();
    // In doubled ranks: the mean is half their total, the variance a quarter of their squares.
    let squares: f64 = ranks.iter().map(|rank| (*rank as f64).powi(2)).sum();
    let distance = (positive as f64 - total as f64 / 2.0).abs();
    let corrected = (distance - 1.0).max(0.0);
    (2.0 * normal_cdf(-corrected / (squares / 4.0).sqrt())).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};

    fn check(differences: &[f64], positive_ranks: f64, p: f64) {
        let found = signed_rank(differences).unwrap();
        assert_eq!(found.positive_ranks, positive_ranks);
        assert!((found.p - p).abs() < 1e-12 * p.max(1e-3), "{} is not {p}", found.p);
    }

    // scipy.stats.wilcoxon(d, method='exact'), SciPy 1.17.1
    #[test]
    fn exact_values_are_scipys() {
        check(&[1.2, -0.3, 2.2, 0.9, 1.7, -0.6], 18.0, 0.15625);
        check(&[0.05, 0.11, -0.02, 0.07, 0.31, 0.09, -0.13, 0.2, 0.04, 0.15], 47.0, 0.048828125);
        check(
            &[
                -1.3383, -0.9366, -0.9611, 0.0484, -1.9126, 0.2111, -0.5572, 1.2936, 1.3568, 1.7923, 1.1675,
                0.347, 1.2598, 1.9055, -0.2536, 1.0104, 0.3573, 1.84, -0.4369, 0.0985, 0.7623, 0.6581,
                -1.2394, 0.7602, 0.2815,
            ],
            215.0,
            0.16449612379074097,
        );
    }

    // scipy.stats.wilcoxon(d, method=PermutationMethod(n_resamples=inf)), SciPy 1.17.1: every choice of
    // signs
    #[test]
    fn values_with_ties_and_zeros_are_scipys() {
        check(&[1.0, 1.0, -1.0, 2.0, 3.0, 3.0, -2.0, 4.0], 29.5, 0.140625);
        check(&[0.0, 2.0, 2.0, -1.0, 5.0, 5.0, 5.0, 0.0, 3.0, 1.0], 34.5, 0.0234375);
    }

    // scipy.stats.wilcoxon(d, correction=True, method='asymptotic'), SciPy 1.17.1
    #[test]
    fn the_approximation_is_scipys_with_and_without_ties() {
        check(
            &[
                0.113, -2.217, -0.239, 0.251, 0.413, -1.23, -0.178, -0.679, -0.509, 1.361, -0.508, 0.267,
                1.184, -0.284, 0.188, 0.41, 0.364, -0.925, 0.376, 1.659, -1.247, 1.159, 0.419, -0.341, 2.3,
                1.062, -0.899, 0.375, 0.877, 0.111,
            ],
            268.0,
            0.4715915694939514,
        );
        check(
            &[
                2.0, 0.0, 2.0, 3.0, -1.0, 1.0, -0.0, 1.0, -2.0, -1.0, 0.0, 2.0, 3.0, -2.0, -1.0, 2.0, -3.0,
                -0.0, 0.0, 3.0, 2.0, -0.0, -0.0, 0.0, 4.0, -0.0, -0.0, 1.0, 0.0, 0.0, -2.0, 1.0, -0.0, 3.0,
                2.0, 1.0, 2.0, -0.0, 3.0, 1.0,
            ],
            270.0,
            0.015570971645890335,
        );
    }

    #[test]
    fn no_differences_speak_for_nothing() {
        assert_eq!(signed_rank(&[]), Some(SignedRank { pairs: 0, positive_ranks: 0.0, p: 1.0 }));
        assert_eq!(signed_rank(&[0.0, -0.0]).unwrap().p, 1.0);
        assert_eq!(signed_rank(&[1.0, f64::NAN]), None);
    }

    #[test]
    fn one_sided_pairs_reach_the_smallest_p() {
        let differences: Vec<f64> = (1..=10).map(f64::from).collect();
        assert_eq!(signed_rank(&differences).unwrap().p, 2.0 / 1024.0);
    }

    /// Every choice of signs, counted one by one.
    fn by_enumeration(sizes: &[f64], positive: f64) -> f64 {
        let ranks = doubled_ranks(sizes);
        let mean = ranks.iter().sum::<usize>() as f64 / 4.0;
        let far = (0u32..1 << sizes.len()).filter(|signs| {
            let sum: usize =
                ranks.iter().enumerate().filter(|(at, _)| signs >> at & 1 == 1).map(|(_, rank)| rank).sum();
            (sum as f64 / 2.0 - mean).abs() >= (positive - mean).abs()
        });
        far.count() as f64 / f64::from(1u32 << sizes.len())
    }

    proptest! {
        #[test]
        fn the_exact_p_is_that_of_counting_every_choice_of_signs(
            differences in prop::collection::vec(-4i32..5, 1..11),
        ) {
            let mut differences: Vec<f64> = differences.into_iter().filter(|d| *d != 0).map(f64::from).collect();
            differences.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
            let found = signed_rank(&differences).unwrap();
            let expected = if differences.is_empty() { 1.0 } else { by_enumeration(&differences, found.positive_ranks) };
            prop_assert!((found.p - expected).abs() < 1e-12, "{} {}", found.p, expected);
        }

        #[test]
        fn the_direction_does_not_matter(differences in prop::collection::vec(-1e3..1e3f64, 0..60)) {
            let mirrored: Vec<f64> = differences.iter().map(|d| -d).collect();
            let (a, b) = (signed_rank(&differences).unwrap(), signed_rank(&mirrored).unwrap());
            prop_assert_eq!(a.p, b.p);
            prop_assert!(0.0 < a.p && a.p <= 1.0);
        }
    }
}
