//! Evidence against a mean of zero that may be looked at as often as one likes.
//!
//! A p value is right for a sample whose size was fixed beforehand; who looks after every value and
//! stops at the first small one finds something every time. An e-value is a bet against the
//! hypothesis: while it holds, the stake never grows in expectation, so it ever reaches `1 / alpha`
//! with probability `alpha` at most (Ville's inequality), however often one looks and whatever makes
//! one stop.
//!
//! # Source
//! The bet is the Bayes factor of Student's t: the standardised mean is drawn from a normal
//! distribution, the unknown deviation from its right Haar prior. That it is one under optional
//! stopping: Hendriksen, de Heide and Grünwald, "Optional stopping with Bayes factors", Bayesian
//! Analysis 16, 2021; the closed form: Wang and Ramdas, "Anytime-valid t-tests and confidence
//! sequences for Gaussian means with unknown variance", Sequential Analysis 44, 2025. Before it,
//! values far from the others are drawn in (Tukey, "The future of data analysis", 1962, after
//! Winsor): a burst of another tenant's load must not hide what all other blocks say.

use super::{mean, median, median_absolute_deviation};

/// The standard deviation of the standardised mean that is bet on. With 3 a difference of many
/// deviations, as quiet machines show, is found in the fifth value, and one of half a deviation needs
/// a tenth more values than with the best bet for it.
const SCALE: f64 = 3.0;

/// Values farther than this many deviations from the median are drawn in to it.
const FARTHEST: f64 = 3.0;

/// What makes a median absolute deviation the standard deviation of a normal sample.
const NORMAL: f64 = 1.4826;

/// The sample with the values that lie farther than three robust deviations from the median drawn in
/// to that distance. One more than half of whose values are equal stays as it is.
pub fn winsorized(sample: &[f64]) -> Option<Vec<f64>> {
    let (middle, deviation) = (median(sample)?, median_absolute_deviation(sample)?);
    let reach = FARTHEST * NORMAL * deviation;
    let draw_in = |value: &f64| value.clamp(middle - reach, middle + reach);
    Some(if reach > 0.0 { sample.iter().map(draw_in).collect() } else { sample.to_vec() })
}

/// A mean, and the evidence that it is not zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Evidence {
    /// The mean.
    pub mean: f64,
    /// The natural logarithm of the e-value. Below 0 what was seen speaks for zero.
    pub log_e: f64,
}

impl Evidence {
    /// The evidence of a sample as it is; `None` for fewer than two values or one that is none.
    pub fn of(sample: &[f64]) -> Option<Self> {
        let count = sample.len() as f64;
        let mean = mean(sample).filter(|mean| sample.len() > 1 && mean.is_finite())?;
        let squares: f64 = sample.iter().map(|value| (value - mean).powi(2)).sum();
        let shrink = 1.0 + count * SCALE * SCALE;
        let square = count * mean * mean;
        // Without any spread this is 1 or `shrink`: the most that so few values can say.
        let ratio = match squares + square / shrink {
            0.0 => 1.0,
            below => (squares + square) / below,
        };
        Some(Self { mean, log_e: 0.5 * (count * ratio.ln() - shrink.ln()) })
    }

    /// A p value that is right whenever one looks, two-sided.
    pub fn p(&self) -> f64 {
        (-self.log_e).exp().min(1.0)
    }

    /// Whether the mean is above zero beyond doubt: where it is zero or less, this is ever said with
    /// probability `alpha` at most. The bet is on either side alike, so half of its risk lies on one.
    pub fn is_above(&self, alpha: f64) -> bool {
        self.mean > 0.0 && self.log_e >= -(2.0 * alpha).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use proptest::prelude::{any, prop, prop_assert, proptest};

    /// Values by numerical integration (SciPy 1.16, `quad` of the noncentral t density over the
    /// normal prior, divided by Student's density).
    #[test]
    fn the_closed_form_is_the_integral() {
        let check = |sample: &[f64], expected: f64| {
            let log_e = Evidence::of(sample).unwrap().log_e;
            assert!((log_e - expected).abs() < 1e-6 * expected.abs().max(1.0), "{log_e} is not {expected}");
        };
        REFERENCE.iter().for_each(|(sample, expected)| check(sample, *expected));
    }

    const REFERENCE: &[(&[f64], f64)] = &[
        (&[1.0, 2.0, 3.0, 4.0], 1.5245565708557105),
        (&[0.3, -0.1, 0.2, 0.0, -0.4, 0.1], -1.9877888725189286),
        (&[5.0, 5.2, 4.9, 5.1, 5.05], 7.613571140312521),
        (&[-0.02, -0.03, -0.01, -0.025, -0.04, 0.005, -0.02], 1.914660119124333),
    ];

    #[test]
    fn values_far_away_are_drawn_in_and_others_stay() {
        let sample = [0.0, 1.0, -1.0, 2.0, 100.0];
        let reach = 3.0 * 1.4826;
        assert_eq!(winsorized(&sample), Some(vec![0.0, 1.0, -1.0, 2.0, 1.0 + reach]));
        assert_eq!(winsorized(&[5.0, 5.0, 5.0, 9.0]), Some(vec![5.0, 5.0, 5.0, 9.0]));
        assert_eq!(winsorized(&[]), None);
    }

    #[test]
    fn a_sample_without_spread_says_no_more_than_its_size_allows() {
        let e = |sample: &[f64]| Evidence::of(sample).unwrap().log_e;
        assert!((e(&[1.0; 5]) - 2.0 * 46f64.ln()).abs() < 1e-9);
        assert!((e(&[0.0; 5]) + 0.5 * 46f64.ln()).abs() < 1e-9);
        assert_eq!(Evidence::of(&[1.0]), None);
        assert_eq!(Evidence::of(&[1.0, f64::NAN]), None);
    }

    /// The reason for all this: 4,000 experiments in which nothing differs, each looked at after every
    /// value up to the 60th.
    #[test]
    fn looking_after_every_value_does_not_find_what_is_not_there() {
        let mut random = Random::new(7);
        let mut found = [0, 0];
        for _ in 0..4000 {
            let sample: Vec<f64> = (0..60).map(|_| random.normal()).collect();
            let looks = |raw: bool| {
                (5..=60).any(|size| {
                    let seen = &sample[..size];
                    let seen = if raw { seen.to_vec() } else { winsorized(seen).unwrap() };
                    Evidence::of(&seen).unwrap().is_above(0.05)
                })
            };
            found[0] += usize::from(looks(true));
            found[1] += usize::from(looks(false));
        }
        // At most 200 of the raw ones may; the others are held to the same.
        assert!(found.iter().all(|found| *found <= 200), "{found:?}");
        assert!(found.iter().all(|found| *found > 0), "a test that never says anything is none");
    }

    proptest! {
        #[test]
        fn evidence_does_not_depend_on_the_unit(
            sample in prop::collection::vec(-10.0f64..10.0, 2..40), unit in 1e-3f64..1e3,
        ) {
            let scaled: Vec<f64> = sample.iter().map(|value| value * unit).collect();
            let (one, other) = (Evidence::of(&sample).unwrap(), Evidence::of(&scaled).unwrap());
            prop_assert!((one.log_e - other.log_e).abs() < 1e-6 * one.log_e.abs().max(1.0));
        }

        #[test]
        fn no_sample_is_too_strange(sample in prop::collection::vec(any::<f64>(), 0..20)) {
            let drawn_in = winsorized(&sample);
            prop_assert!(drawn_in.is_none_or(|drawn_in| drawn_in.len() == sample.len()));
            if let Some(evidence) = Evidence::of(&sample) {
                prop_assert!((0.0..=1.0).contains(&evidence.p()) || evidence.log_e.is_nan());
            }
        }
    }
}
