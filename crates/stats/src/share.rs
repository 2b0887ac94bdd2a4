//! Intervals for a share from a count: one that never holds the share less often than it says, and one that
//! does so on average and is narrower.

use crate::bootstrap::Interval;

/// The value that a standard normal variable exceeds in absolute value with probability 5 %.
const Z: f64 = 1.959_963_984_540_054;

/// How often a range of shares is halved.
const HALVINGS: u32 = 50;

/// The interval that holds the true share with at least 95 % confidence, of `count` among `all`.
///
/// # Source
/// Clopper and Pearson, "The use of confidence or fiducial limits", Biometrika 26, 1934.
pub fn share_interval(count: u32, all: u32) -> (f64, f64) {
    let tail = 0.025;
    let low = if count == 0 { 0.0 } else { largest(|share| 1.0 - at_most(count - 1, all, share) < tail) };
    let high = if count >= all { 1.0 } else { largest(|share| at_most(count, all, share) > tail) };
    (low, high)
}

/// The interval of Wilson's score test for the share of `count` among `all` that were drawn independently: it
/// holds the true share in 95 % of the cases, on average over the shares. Without draws it is 0 to 1.
///
/// For millions of draws it costs a square root, where [`share_interval`] sums a distribution; and where the
/// share is small it holds its level, which the interval of the normal approximation does not.
///
/// # Source
/// Wilson, "Probable inference, the law of succession, and statistical inference", Journal of the American
/// Statistical Association 22, 1927; recommended by Brown, Cai and DasGupta, "Interval estimation for a binomial
/// proportion", Statistical Science 16, 2001.
pub fn wilson_interval(count: u64, all: u64) -> Interval {
    if all == 0 {
        return Interval { low: 0.0, high: 1.0 };
    }
    let (all_, share) = (all as f64, count.min(all) as f64 / all as f64);
    let scale = 1.0 + Z * Z / all_;
    let middle = (share + Z * Z / (2.0 * all_)) / scale;
    let half = Z / scale * (share * (1.0 - share) / all_ + Z * Z / (4.0 * all_ * all_)).sqrt();
    // At its ends rounding leaves a trace of what is exactly nothing.
    let low = if count == 0 { 0.0 } else { (middle - half).clamp(0.0, 1.0) };
    let high = if count >= all { 1.0 } else { (middle + half).clamp(0.0, 1.0) };
    Interval { low, high }
}

/// The largest share for which something holds that holds for 0 and not for 1.
fn largest(holds: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..HALVINGS {
        let middle = (low + high) / 2.0;
        if holds(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// The probability of at most this many among `all` when each has this probability, which lies between 0
/// and 1.
fn at_most(count: u32, all: u32, share: f64) -> f64 {
    let (log_yes, log_no) = (share.ln(), (1.0 - share).ln());
    let mut log_ways = 0.0;
    let mut sum = 0.0;
    for number in 0..=count {
        if number > 0 {
            log_ways += f64::from(all - number + 1).ln() - f64::from(number).ln();
        }
        sum += (log_ways + f64::from(number) * log_yes + f64::from(all - number) * log_no).exp();
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use proptest::prelude::{any, prop_assert, proptest};

    // The roots of (count/all - p)^2 = z^2 p (1 - p) / all by bisection, with 40 digits.
    #[test]
    fn wilsons_intervals_end_at_the_roots_of_the_score() {
        for (count, all, low, high) in [
            (0, 46, 0.0, 0.077_073_563_085_58),
            (3, 46, 0.022_427_861_429_29, 0.175_027_410_819_04),
            (10, 46, 0.122_609_053_245_63, 0.355_736_873_715_79),
            (46, 46, 0.922_926_436_914_42, 1.0),
            (500, 10_000, 0.045_898_482_690_58, 0.054_447_115_843_02),
            (0, 1000, 0.0, 0.003_826_758_485_56),
            (1, 1, 0.206_549_314_377_24, 1.0),
            (0, 0, 0.0, 1.0),
        ] {
            let found = wilson_interval(count, all);
            assert!(
                (found.low - low).abs() < 1e-12 && (found.high - high).abs() < 1e-12,
                "{count}: {found:?}"
            );
        }
    }

    #[test]
    fn wilsons_intervals_hold_the_share_in_95_percent_of_the_draws() {
        let mut random = Random::new(15);
        for share in [0.03, 0.25, 0.5, 0.9] {
            let held = (0..4000).filter(|_| {
                let count = (0..400).filter(|_| random.unit() < share).count();
                wilson_interval(count as u64, 400).contains(share)
            });
            // One standard deviation of the rate is 0.34 points.
            let rate = held.count() as f64 / 4000.0;
            assert!((0.93..0.97).contains(&rate), "{share}: {rate}");
        }
    }

    proptest! {
        #[test]
        fn a_wilson_interval_holds_the_share_that_was_drawn(count in any::<u64>(), more in any::<u64>()) {
            let all = count.saturating_add(more);
            let Interval { low, high } = wilson_interval(count, all);
            let share = if all == 0 { 0.5 } else { count as f64 / all as f64 };
            prop_assert!((0.0..=1.0).contains(&low) && (0.0..=1.0).contains(&high));
            prop_assert!(low <= share + 1e-12 && share <= high + 1e-12, "{} {} {}", low, share, high);
        }
    }

    // From the exact binomial sums, with Python's integers.
    #[test]
    fn intervals_of_shares_are_those_of_clopper_and_pearson() {
        for (count, low, high) in [
            (0, 0.0, 0.077_061_827_05),
            (3, 0.013_656_771_91, 0.178_964_388_88),
            (10, 0.109_481_700_17, 0.363_624_358_62),
            (46, 1.0 - 0.077_061_827_05, 1.0),
        ] {
            let found = share_interval(count, 46);
            assert!((found.0 - low).abs() < 1e-9 && (found.1 - high).abs() < 1e-9, "{count}: {found:?}");
        }
        let (low, high) = share_interval(500, 10_000);
        assert!((0.045..0.05).contains(&low) && (0.05..0.055).contains(&high));
    }
}
