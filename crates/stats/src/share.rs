//! An interval for a share from a count.

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
