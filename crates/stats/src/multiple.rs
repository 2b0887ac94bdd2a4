//! Several tests at once.

/// The p values of several tests, raised so that the chance of even one false alarm among them
/// stays below the level they are compared with. In the order given.
///
/// # Source
/// Holm, "A simple sequentially rejective multiple test procedure", Scand. J. Stat. 6, 1979. It
/// holds whatever the tests have in common, as here the baseline.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_unstable_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut floor = 0.0f64;
    for (before, at) in order.into_iter().enumerate() {
        floor = floor.max((p_values.len() - before) as f64 * p_values[at]).min(1.0);
        adjusted[at] = floor;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop, prop_assert, proptest};

    fn check(p_values: &[f64], expected: &[f64]) {
        let adjusted = holm(p_values);
        assert_eq!(adjusted.len(), expected.len());
        for (value, expected) in adjusted.iter().zip(expected) {
            assert!((value - expected).abs() < 1e-12, "{adjusted:?}");
        }
    }

    // p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm") of R: 0.03 0.06 0.06 0.02
    #[test]
    fn the_smallest_p_is_multiplied_most() {
        check(&[0.01, 0.04, 0.03, 0.005], &[0.03, 0.06, 0.06, 0.02]);
        check(&[0.5, 0.6], &[1.0, 1.0]);
        check(&[0.02], &[0.02]);
        check(&[], &[]);
    }

    proptest! {
        #[test]
        fn adjusting_never_lowers_and_keeps_the_order(p_values in prop::collection::vec(0.0..=1.0f64, 0..20)) {
            let adjusted = holm(&p_values);
            for (a, p) in adjusted.iter().zip(&p_values) {
                prop_assert!(p <= a && *a <= 1.0);
                for (b, q) in adjusted.iter().zip(&p_values) {
                    prop_assert!(p >= q || a <= b);
                }
            }
        }
    }
}
