//! Statistical power: how many blocks it takes to find a difference.

use super::distribution::normal_quantile;

/// The probability with which a study should find an effect that it claims to find: the
/// usual one since Cohen, "Statistical power analysis for the behavioral sciences", 1977.
pub const POWER: f64 = 0.8;

/// How many blocks would find an effect of this size with the probability [`POWER`], from the standard
/// deviation of one block's difference; `None` for an effect that is not beyond `floor`, which no number
/// of blocks finds so often.
///
/// # Source
/// `n = ((z(1 - alpha / 2k) + z(power)) * sd / effect)^2`, and enough for the estimate to lie beyond
/// `floor` with that probability: `n = (z(power) * sd / (effect - floor))^2`.
pub fn blocks_for(effect: f64, deviation: f64, comparisons: usize, alpha: f64, floor: f64) -> Option<u64> {
    let bars = normal_quantile(1.0 - share(comparisons, alpha) / 2.0) + normal_quantile(POWER);
    let for_test = (bars * deviation / effect).powi(2);
    let for_floor = (normal_quantile(POWER) * deviation / (effect - floor)).powi(2);
    let blocks = for_test.max(for_floor).ceil();
    (effect > floor && blocks.is_finite()).then_some(blocks as u64)
}

/// How many blocks a study needs before the signed-rank test can find anything at all: with fewer,
/// even differences that all point one way leave the smallest p, 2 / 2^n, above alpha / k.
///
/// Never fewer than 6, below which that holds for a single comparison at 5 %.
pub fn blocks_needed(comparisons: usize, alpha: f64) -> u32 {
    let smallest_p = |blocks: u32| 2.0 * 0.5f64.powi(blocks.try_into().unwrap_or(i32::MAX));
    (6..=64).find(|blocks| smallest_p(*blocks) * comparisons.max(1) as f64 <= alpha).unwrap_or(64)
}

/// The level that each of several comparisons has for itself.
fn share(comparisons: usize, alpha: f64) -> f64 {
    alpha / comparisons.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_blocks_needed_grow_with_the_comparisons() {
        for (comparisons, blocks) in
            [(0, 6), (1, 6), (2, 7), (3, 7), (4, 8), (6, 8), (7, 9), (12, 9), (25, 10)]
        {
            assert_eq!(blocks_needed(comparisons, 0.05), blocks, "{comparisons} comparisons");
            let smallest = 2.0 * 0.5f64.powi(blocks as i32);
            assert!(smallest * f64::from(comparisons as u32) <= 0.05);
        }
        assert!(blocks_needed(usize::MAX, 0.05) <= 64);
    }

    // scipy.stats.norm.ppf(0.8) = 0.84162123
    #[test]
    fn blocks_for_an_effect_follow_the_normal_approximation() {
        assert_eq!(blocks_for(0.028_02, 0.1, 1, 0.05, 0.0), Some(100));
        assert_eq!(blocks_for(0.0, 0.1, 1, 0.05, 0.0), None);
        assert_eq!(blocks_for(0.01, 0.0, 1, 0.05, 0.0), Some(0));
        assert_eq!(blocks_for(0.01, 0.1, 1, 0.05, 0.01), None, "half of the estimates lie below the floor");
        assert_eq!(blocks_for(0.011, 0.1, 1, 0.05, 0.01), Some(7084));
    }
}
