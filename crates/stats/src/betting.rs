//! Evidence about a median that trusts no model of the noise and may be looked at after every value.
//!
//! In each round a score between -1 and 1 is seen: whether a paired difference is above zero (1), below
//! it (-1) or equal to it (0), or the mean of several such signs. A bettor stakes the share `lambda` of
//! what she has on the score being positive: her capital is multiplied by `1 + lambda * score`. While
//! the expected score is zero or less, whatever came before, no stake makes the capital grow in
//! expectation, so it ever reaches `1 / alpha` with probability `alpha` at most, however often one looks
//! and whatever makes one stop (Ville's inequality). Nothing else is assumed: not the shape of the
//! noise, not that rounds are alike, not that they are independent.
//!
//! For the difference between two runs whose order was drawn at random the expected sign is exactly zero
//! when the two do not differ, given everything that disturbed the pair. For a shift of one of the two it
//! is zero when the median of the paired difference is.
//!
//! How much to stake is not known beforehand, so the capital is divided among several stakes.
//!
//! # Source
//! Ville, "Étude critique de la notion de collectif", 1939. Betting on bounded values, mixed over
//! stakes: Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting", Journal of
//! the Royal Statistical Society B 86, 2024. Evidence for several hypotheses under optional stopping:
//! Ramdas, Grünwald, Vovk and Shafer, "Game-theoretic statistics and safe anytime-valid inference",
//! Statistical Science 38, 2023.

use super::Interval;

/// The stakes. The least finds what shows in six rounds of ten, the largest decides when every score is
/// 1 after two rounds more than any bet could.
pub(super) const STAKES: [f64; 6] = [0.15, 0.3, 0.5, 0.7, 0.85, 0.97];

/// The capital of a bettor who began with 1, over the rounds so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bet {
    capital: [f64; STAKES.len()],
    /// The most that there was after any round.
    peak: f64,
}

impl Default for Bet {
    fn default() -> Self {
        Self { capital: [1.0; STAKES.len()], peak: 1.0 }
    }
}

impl Bet {
    /// Takes in the score of a round, between -1 and 1.
    pub fn place(&mut self, score: f64) {
        for (capital, stake) in self.capital.iter_mut().zip(STAKES) {
            *capital *= 1.0 + stake * score;
        }
        self.peak = self.peak.max(self.capital());
    }

    /// The capital now.
    pub fn capital(&self) -> f64 {
        self.capital.iter().sum::<f64>() / STAKES.len() as f64
    }

    /// Whether the capital has ever reached `1 / alpha`: where the expected score is never above zero,
    /// this happens with probability `alpha` at most.
    pub fn wins(&self, alpha: f64) -> bool {
        self.peak * alpha >= 1.0
    }

    /// A p value that is right whenever one looks.
    pub fn p(&self) -> f64 {
        1.0 / self.peak
    }
}

/// How many rounds a bet at the level `alpha` takes at least: as many as it takes with nothing but
/// scores of 1. No number of rounds is enough for a level of 0.
pub fn fewest_rounds(alpha: f64) -> u32 {
    if alpha <= 0.0 || alpha.is_nan() {
        return u32::MAX;
    }
    let mut bet = Bet::default();
    (1..)
        .find(|_| {
            bet.place(1.0);
            bet.wins(alpha)
        })
        .unwrap_or(u32::MAX)
}

/// The score of a round: the mean sign of its differences, 0 without any.
pub fn score(differences: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = differences.fold((0.0, 0), |(sum, count), difference| {
        let sign = if difference > 0.0 {
            1.0
        } else if difference < 0.0 {
            -1.0
        } else {
            0.0
        };
        (sum + sign, count + 1)
    });
    if count == 0 { 0.0 } else { sum / f64::from(count) }
}

/// The shifts of the differences that no bet speaks against by a factor of `against`, in either
/// direction; `rounds` holds the differences of each round. `None` where the bets leave one end open.
pub fn interval(rounds: &[Vec<f64>], against: f64) -> Option<Interval> {
    let mut values: Vec<f64> = rounds.iter().flatten().copied().collect();
    values.sort_unstable_by(f64::total_cmp);
    // Beyond a value the bets no longer change until the next one, so ends are values of the sample.
    let is_refuted = |is_above: &dyn Fn(f64) -> f64| {
        let mut bet = Bet::default();
        rounds.iter().for_each(|round| bet.place(score(round.iter().map(|value| is_above(*value)))));
        bet.capital() >= against
    };
    let side = |sign: f64, at: f64| {
        // A value at the end itself counts as one outside: the end is the last shift that is not refuted.
        move |value: f64| if value == at { -1.0 } else { sign * (value - at) }
    };
    if !is_refuted(&|_| 1.0) {
        return None;
    }
    let low = values.partition_point(|at| is_refuted(&side(1.0, *at)));
    let beyond_high = values.partition_point(|at| !is_refuted(&side(-1.0, *at)));
    let (low, high) = (*values.get(low)?, *values.get(beyond_high.checked_sub(1)?)?);
    (low <= high).then_some(Interval { low, high })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};

    #[test]
    fn capital_is_the_mean_of_the_products() {
        let mut bet = Bet::default();
        [1.0, -1.0, 0.5, 0.0].iter().for_each(|score| bet.place(*score));
        let expected: f64 = STAKES.iter().map(|s| (1.0 - s * s) * (1.0 + s / 2.0)).sum::<f64>() / 6.0;
        assert!((bet.capital() - expected).abs() < 1e-12);
        let peak = 1.0 + STAKES.iter().sum::<f64>() / 6.0;
        assert!((bet.p() - 1.0 / peak).abs() < 1e-12, "the peak, after the first score: {}", bet.p());
    }

    #[test]
    fn the_fewest_rounds_are_one_or_two_more_than_doubling_takes() {
        for (alpha, rounds, doubling) in [(0.05, 6, 5), (0.0125, 9, 7), (0.05 / 12.0, 10, 8), (1e-3, 13, 10)]
        {
            assert_eq!(fewest_rounds(alpha), rounds, "{alpha}");
            assert_eq!((1.0f64 / alpha).log2().ceil() as u32, doubling, "{alpha}");
        }
    }

    /// 4,000 experiments in which nothing differs, each looked at after every value up to the 60th: signs
    /// of one difference, and mean signs of two that share a run.
    #[test]
    fn looking_after_every_value_does_not_find_what_is_not_there() {
        let mut random = Random::new(7);
        let mut found = [0, 0];
        for _ in 0..4000 {
            let mut bets = [Bet::default(); 2];
            for _ in 0..60 {
                let [one, first, second] = [0; 3].map(|_| random.unit());
                bets[0].place(score([one - first].into_iter()));
                bets[1].place(score([one - first, one - second].into_iter()));
            }
            (0..2).for_each(|at| found[at] += usize::from(bets[at].wins(0.05)));
        }
        assert!(found.iter().all(|found| *found <= 200), "{found:?}");
        assert!(found.iter().all(|found| *found > 20), "a test that never says anything is none: {found:?}");
    }

    #[test]
    fn the_interval_ends_at_values_that_the_bets_do_not_refute() {
        let rounds: Vec<Vec<f64>> = (1..=21).map(|value| vec![f64::from(value)]).collect();
        let found = interval(&rounds, 10.0).unwrap();
        assert_eq!(found.low - 1.0, 21.0 - found.high, "{found:?}");
        assert!(found.low > 3.0 && found.low < 8.0, "{found:?}");
        assert_eq!(interval(&rounds[..3], 10.0), None, "three rounds cannot bound it");
        let equal = vec![vec![2.0, 2.0]; 10];
        assert_eq!(interval(&equal, 10.0), Some(Interval { low: 2.0, high: 2.0 }));
    }

    #[test]
    fn the_interval_holds_the_median_more_often_than_promised_at_every_look() {
        let mut random = Random::new(3);
        let missed = (0..1000).filter(|_| {
            let mut rounds: Vec<Vec<f64>> = Vec::new();
            (0..60).any(|_| {
                let (one, other) = (-random.unit().ln(), -random.unit().ln());
                rounds.push(vec![one - other]);
                interval(&rounds, 40.0).is_some_and(|found| !found.contains(0.0))
            })
        });
        // At most 5 in 100: 1 / 40 for either end.
        assert!((1..=50).contains(&missed.count()));
    }

    proptest! {
        #[test]
        fn no_scores_make_anything_but_a_number(scores in prop::collection::vec(-1.0f64..=1.0, 0..3000)) {
            let mut bet = Bet::default();
            scores.iter().for_each(|score| bet.place(*score));
            prop_assert!(bet.capital() >= 0.0 && bet.p() <= 1.0);
        }

        #[test]
        fn an_interval_moves_with_its_sample(
            values in prop::collection::vec(-100i32..100, 1..40), by in -50i32..50,
        ) {
            let rounds = |by: i32| -> Vec<Vec<f64>> {
                values.iter().map(|value| vec![f64::from(value + by)]).collect()
            };
            let moved = interval(&rounds(0), 20.0).map(|found| found.map(|end| end + f64::from(by)));
            prop_assert_eq!(interval(&rounds(by), 20.0), moved);
        }

        #[test]
        fn no_sample_is_too_strange(values in prop::collection::vec(any::<f64>(), 0..40)) {
            let rounds: Vec<Vec<f64>> = values.chunks(2).map(<[f64]>::to_vec).collect();
            if let Some(found) = interval(&rounds, 20.0) {
                prop_assert!(found.low <= found.high);
            }
        }
    }
}
