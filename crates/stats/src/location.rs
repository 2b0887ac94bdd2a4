//! Where a sample lies and how far it spreads.
//!
//! Every function gives `None` where the statistic does not exist: for an empty sample, and for one
//! with a value that is not a number.

use std::cmp::Ordering;

/// Up to this many values the pairwise means are written out (2,080 of them); above it they are
/// only counted. Writing out is quicker for small samples, which a bootstrap asks for 10,000 times.
const WRITTEN_OUT: usize = 64;

/// The sample in ascending order; `None` where no statistic exists.
pub(super) fn sorted(sample: &[f64]) -> Option<Vec<f64>> {
    if sample.is_empty() || sample.iter().any(|value| value.is_nan()) {
        return None;
    }
    let mut sorted = sample.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    Some(sorted)
}

/// The arithmetic mean.
pub fn mean(sample: &[f64]) -> Option<f64> {
    sorted(sample)?;
    Some(sample.iter().sum::<f64>() / sample.len() as f64)
}

/// The median; the mean of the two middle values of an even number.
pub fn median(sample: &[f64]) -> Option<f64> {
    quantile(sample, 0.5)
}

/// The value below which the share `p` of the sample lies, between neighbours in proportion.
///
/// # Source
/// Definition 7 of Hyndman and Fan, "Sample quantiles in statistical packages", 1996: that of
/// NumPy, R and spreadsheets.
pub fn quantile(sample: &[f64], p: f64) -> Option<f64> {
    Some(quantile_of_sorted(&sorted(sample)?, p))
}

/// As [`quantile`], of a sample in ascending order.
///
/// # Panics
/// When the sample is empty.
pub fn quantile_of_sorted(sorted: &[f64], p: f64) -> f64 {
    let place = p.clamp(0.0, 1.0) * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    if below == above { below } else { below + (above - below) * place.fract() }
}

/// The median distance from the median.
///
/// Times 1.4826 it estimates the standard deviation of a normal sample; that factor is not applied.
pub fn median_absolute_deviation(sample: &[f64]) -> Option<f64> {
    let middle = median(sample)?;
    let distances: Vec<f64> = sample.iter().map(|value| (value - middle).abs()).collect();
    median(&distances)
}

/// The geometric mean: the only mean of ratios whose verdict does not depend on which side is the
/// reference. `None` also for a value that is not above zero.
///
/// # Source
/// Fleming and Wallace, "How not to lie with statistics", CACM 29(3), 1986.
pub fn geometric_mean(sample: &[f64]) -> Option<f64> {
    if sample.iter().any(|value| *value <= 0.0) {
        return None;
    }
    let logs: Vec<f64> = sample.iter().map(|value| value.ln()).collect();
    mean(&logs).map(f64::exp)
}

/// The median of the means of all pairs, each value paired with itself too: the estimate that
/// belongs to the signed-rank test. Nearly as precise as the mean for normal noise, and little moved
/// by a few wild values.
///
/// # Source
/// Hodges and Lehmann, "Estimates of location based on rank tests", Ann. Math. Stat. 34, 1963.
pub fn hodges_lehmann(sample: &[f64]) -> Option<f64> {
    let sorted = sorted(sample)?;
    if sorted.iter().any(|value| value.is_infinite()) {
        return None;
    }
    Some(hodges_lehmann_of_sorted(&sorted, &mut Vec::new()))
}

/// As [`hodges_lehmann`], of finite values in ascending order; `scratch` is memory to use again.
pub(crate) fn hodges_lehmann_of_sorted(sorted: &[f64], scratch: &mut Vec<f64>) -> f64 {
    let n = sorted.len();
    let pairs = n * (n + 1) / 2;
    if n > WRITTEN_OUT {
        let upper = pair_mean_of_rank(sorted, pairs / 2 + 1);
        let lower = if pairs % 2 == 1 { upper } else { pair_mean_of_rank(sorted, pairs / 2) };
        return middle(lower, upper);
    }
    scratch.clear();
    for (at, a) in sorted.iter().enumerate() {
        scratch.extend(sorted[at..].iter().map(|b| middle(*a, *b)));
    }
    let (below, upper, _) = scratch.select_nth_unstable_by(pairs / 2, f64::total_cmp);
    if pairs % 2 == 1 {
        return *upper;
    }
    let lower = below.iter().copied().max_by(f64::total_cmp).unwrap_or(*upper);
    middle(lower, *upper)
}

/// The mean of two values. Halved before they are added: no overflow, and growing in both
/// arguments under rounding too, which [`pair_means_up_to`] relies on.
fn middle(a: f64, b: f64) -> f64 {
    a / 2.0 + b / 2.0
}

/// The pair mean with this rank, counted from 1, by halving an interval of values and counting the
/// pair means in it: time in proportion to the sample and not to its square.
fn pair_mean_of_rank(sorted: &[f64], rank: usize) -> f64 {
    let (mut low, mut high) = (sorted[0], sorted[sorted.len() - 1]);
    // Invariant: the wanted value is in low..=high. It ends when no number lies between the two.
    loop {
        let guess = middle(low, high);
        let (count, largest) = pair_means_up_to(sorted, guess);
        match count.cmp(&rank) {
            Ordering::Equal => return largest,
            Ordering::Greater if guess < high => high = guess,
            Ordering::Less if guess > low => low = guess,
            Ordering::Greater => return largest,
            Ordering::Less => return high,
        }
    }
}

/// How many pair means are at most `bound`, and the largest of them.
fn pair_means_up_to(sorted: &[f64], bound: f64) -> (usize, f64) {
    let (mut count, mut largest) = (0, f64::NEG_INFINITY);
    let mut end = sorted.len();
    for (at, a) in sorted.iter().enumerate() {
        while end > at && middle(*a, sorted[end - 1]) > bound {
            end -= 1;
        }
        if end <= at {
            break;
        }
        count += end - at;
        largest = largest.max(middle(*a, sorted[end - 1]));
    }
    (count, largest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};

    const SAMPLE: [f64; 9] = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30];

    fn check(value: Option<f64>, expected: f64) {
        let value = value.expect("the sample has values");
        assert!((value - expected).abs() <= 1e-12 * expected.abs().max(1.0), "{value} is not {expected}");
    }

    // numpy.median, numpy.quantile, scipy.stats.median_abs_deviation, scipy.stats.gmean, and
    // numpy.median([(a+b)/2 for i,a in enumerate(x) for b in x[i:]]); NumPy 2, SciPy 1.17.1
    #[test]
    fn statistics_are_scipys() {
        check(mean(&SAMPLE), 1.7666666666666666);
        check(median(&SAMPLE), 1.68);
        check(quantile(&SAMPLE, 0.1), 1.14);
        check(quantile(&SAMPLE, 0.95), 2.828);
        check(median_absolute_deviation(&SAMPLE), 0.2);
        check(geometric_mean(&SAMPLE), GEOMETRIC_MEAN);
        check(hodges_lehmann(&SAMPLE), HODGES_LEHMANN);
        check(hodges_lehmann(&SAMPLE[..8]), HODGES_LEHMANN_OF_EIGHT);
    }

    const GEOMETRIC_MEAN: f64 = 1.607291321317412;
    const HODGES_LEHMANN: f64 = 1.725;
    const HODGES_LEHMANN_OF_EIGHT: f64 = 1.7674999999999998;

    #[test]
    fn nothing_has_no_median() {
        for sample in [&[][..], &[1.0, f64::NAN][..]] {
            for statistic in [mean, median, median_absolute_deviation, geometric_mean, hodges_lehmann] {
                assert_eq!(statistic(sample), None);
            }
        }
        assert_eq!(geometric_mean(&[1.0, 0.0]), None);
        assert_eq!(geometric_mean(&[1.0, -2.0]), None);
    }

    proptest! {
        #[test]
        fn counting_pairs_and_writing_them_out_agree(
            values in prop::collection::vec(prop::sample::select(vec![-3.0, 0.1, 0.2, 0.25, 7.5, 1e9]), 1..60),
            noise in prop::collection::vec(-1.0..1.0f64, 1..60),
        ) {
            for sample in [values, noise] {
                let sorted = sorted(&sample).unwrap();
                let pairs = sorted.len() * (sorted.len() + 1) / 2;
                let mut means: Vec<f64> = (0..sorted.len())
                    .flat_map(|i| (i..sorted.len()).map(move |j| (i, j)))
                    .map(|(i, j)| middle(sorted[i], sorted[j]))
                    .collect();
                means.sort_unstable_by(f64::total_cmp);
                for rank in [1, pairs / 2 + 1, pairs] {
                    prop_assert_eq!(pair_mean_of_rank(&sorted, rank), means[rank - 1]);
                }
            }
        }

        #[test]
        fn any_finite_sample_has_an_estimate_inside_it(sample in prop::collection::vec(any::<f32>(), 1..150)) {
            let sample: Vec<f64> = sample.into_iter().filter(|value| value.is_finite()).map(f64::from).collect();
            let range = sample.iter().copied().fold(None, |range: Option<(f64, f64)>, value| {
                Some(range.map_or((value, value), |(low, high)| (low.min(value), high.max(value))))
            });
            for statistic in [median, hodges_lehmann] {
                let inside = statistic(&sample).zip(range).map(|(value, (low, high))| low <= value && value <= high);
                prop_assert!(inside.unwrap_or(sample.is_empty()));
            }
        }
    }
}
