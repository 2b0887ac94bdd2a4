//! The rule for outliers: which of some equal machines are slower than that can be chance.
//!
//! All of these must hold:
//!
//! 1. The group has [`FEWEST`] machines or more; below that there is no verdict.
//! 2. The machine is slower than the median by more than the [`threshold`] for the size of the group, in robust
//!    deviations. Groups of equal machines with normal noise exceed it with the probability that was asked for.
//! 3. A deviation is at least 1 % of the median, and the error of the machine's own figure: values that were rounded, or
//!    agree by chance, do not make small differences large.
//! 4. It is slower by 5 % or more: a smaller difference does not matter.
//! 5. Where figures fall into two populations with a gap between them, each is judged by itself: a median absolute
//!    deviation has no meaning where two in five machines are of another sort.
//!
//! Machines that are faster than the others are not outliers.

use nodewise_machine::order::Order as _;

use crate::threshold::threshold;

pub use crate::threshold::FEWEST;

/// The factor that makes a median absolute deviation the standard deviation of normal noise.
pub(crate) const NORMAL: f64 = 1.4826;
/// The least deviation, as a part of the median.
pub const LEAST_DEVIATION: f64 = 0.01;
/// The least difference that is an outlier, as a part of the median.
pub const LEAST_DIFFERENCE: f64 = 0.05;
/// The least part of a group that is a population, and the fewest machines.
const POPULATION_SHARE: f64 = 0.2;
const POPULATION_FEWEST: usize = 4;
/// The least gap between populations, in deviations of the wider one.
const GAP: f64 = 5.0;

/// The figure of a machine: how many times slower than usual, and the error of that number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slowness {
    pub value: f64,
    pub error: f64,
}

/// The yardstick of a group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Yardstick {
    /// The machines that it is made from.
    pub count: usize,
    pub median: f64,
    /// The robust deviation.
    pub deviation: f64,
    /// Deviations that an outlier exceeds; `None` in a group that is too small for a verdict.
    pub threshold: Option<f64>,
}

impl Yardstick {
    /// The yardstick that these values give; `None` without any.
    pub fn new(values: &[f64], probability: f64) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        Self::from_sorted(&sorted, probability)
    }

    fn from_sorted(sorted: &[f64], probability: f64) -> Option<Self> {
        let median = middle(sorted)?;
        let deviation = (NORMAL * deviation(sorted, median)).max(LEAST_DEVIATION * median);
        let threshold = threshold(sorted.len(), probability);
        Some(Self { count: sorted.len(), median, deviation, threshold })
    }

    /// The slowness beyond which a machine with an exact figure is an outlier.
    pub fn limit(&self) -> Option<f64> {
        let chance = self.median + self.threshold? * self.deviation;
        Some(chance.max(self.median * (1.0 + LEAST_DIFFERENCE)))
    }

    /// How many deviations a machine is slower than the median.
    pub fn deviations(&self, slowness: Slowness) -> f64 {
        (slowness.value - self.median) / self.deviation.max(slowness.error)
    }

    /// Whether a machine is an outlier; `false` where the group is too small for a verdict.
    pub fn is_outlier(&self, slowness: Slowness) -> bool {
        let exceeds = |threshold| self.deviations(slowness) > threshold;
        self.threshold.is_some_and(exceeds) && slowness.value >= self.median * (1.0 + LEAST_DIFFERENCE)
    }
}

/// Machines of a group that are alike in a figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Population {
    /// Places in the list that was judged.
    pub members: Vec<usize>,
    pub yardstick: Yardstick,
    /// Those of the members that are outliers.
    pub outliers: Vec<usize>,
}

/// Judges the figures of equal machines: one population, or two with a gap between them, the faster first.
///
/// `probability` is that of a verdict against any machine of a healthy group.
pub fn judge(slowness: &[Slowness], probability: f64) -> Vec<Population> {
    let mut order: Vec<usize> = (0..slowness.len()).collect();
    order.order_by(|a, b| slowness[*a].value.total_cmp(&slowness[*b].value));
    let sorted: Vec<f64> = order.iter().map(|at| slowness[*at].value).collect();
    // Without a gap the first part is empty, and gives no population.
    let at = gap(&sorted).unwrap_or(0);
    let population = |(part, values): (&[usize], &[f64])| {
        let yardstick = Yardstick::from_sorted(values, probability)?;
        let mut members = part.to_vec();
        members.sort_unstable();
        let outliers = members.iter().copied().filter(|at| yardstick.is_outlier(slowness[*at])).collect();
        Some(Population { members, yardstick, outliers })
    };
    let (places, values) = (order.split_at(at), sorted.split_at(at));
    [(places.0, values.0), (places.1, values.1)].into_iter().filter_map(population).collect()
}

/// Where the sorted values fall apart into two populations.
fn gap(sorted: &[f64]) -> Option<usize> {
    let fewest = POPULATION_FEWEST.max((sorted.len() as f64 * POPULATION_SHARE).ceil() as usize);
    if sorted.len() < 2 * fewest {
        return None;
    }
    let size = |at: &usize| sorted[*at] - sorted[at - 1];
    let at = (fewest..=sorted.len() - fewest).max_by(|a, b| size(a).total_cmp(&size(b)).then(b.cmp(a)))?;
    let width = |side: &[f64]| {
        let median = middle(side).unwrap_or_default();
        (NORMAL * deviation(side, median)).max(LEAST_DEVIATION * median)
    };
    let (fast, slow) = sorted.split_at(at);
    let is_wide = size(&at) > GAP * width(fast).max(width(slow));
    (is_wide && size(&at) >= LEAST_DIFFERENCE * sorted[at - 1]).then_some(at)
}

/// The median of sorted values.
pub(crate) fn middle(sorted: &[f64]) -> Option<f64> {
    let (first, second) = (sorted.get(sorted.len().checked_sub(1)? / 2)?, sorted.get(sorted.len() / 2)?);
    Some(first / 2.0 + second / 2.0)
}

/// The median absolute deviation of sorted values from their median, in one pass from the middle to both ends.
fn deviation(sorted: &[f64], median: f64) -> f64 {
    let above = sorted.partition_point(|value| *value < median);
    let (mut left, mut right) = (above, above);
    let (wanted, mut found) = (sorted.len() / 2 + 1, [0.0; 2]);
    for _ in 0..wanted {
        let below = left.checked_sub(1).map(|at| median - sorted[at]);
        let over = sorted.get(right).map(|value| value - median);
        let next = match (below, over) {
            (Some(below), over) if over.is_none_or(|over| below <= over) => {
                left -= 1;
                below
            }
            (_, Some(over)) => {
                right += 1;
                over
            }
            _ => break,
        };
        found = [found[1], next];
    }
    if sorted.len() % 2 == 1 { found[1] } else { (found[0] + found[1]) / 2.0 }
}

#[cfg(test)]
mod tests {
    use nodewise_stats::{median, median_absolute_deviation};
    use proptest::prelude::*;

    use super::*;

    fn exact(values: &[f64]) -> Vec<Slowness> {
        values.iter().map(|value| Slowness { value: *value, error: 0.0 }).collect()
    }

    /// Places of outliers among these figures, with 1 % for the group.
    fn outliers(values: &[f64]) -> Vec<usize> {
        let mut found: Vec<usize> =
            judge(&exact(values), 0.01).into_iter().flat_map(|population| population.outliers).collect();
        found.sort_unstable();
        found
    }

    fn healthy(count: usize) -> Vec<f64> {
        (0..count).map(|at| 1.0 + 0.01 * ((at * 7 % count) as f64 / count as f64 - 0.5)).collect()
    }

    #[test]
    fn a_machine_that_is_a_third_slower_is_found_from_eight_on() {
        for count in [8, 9, 16, 64, 1000] {
            let mut values = healthy(count);
            assert_eq!(outliers(&values), Vec::<usize>::new(), "{count}");
            values[3] *= 1.3;
            assert_eq!(outliers(&values), [3], "{count}");
        }
        let mut few = healthy(7);
        few[3] *= 1.3;
        assert_eq!(outliers(&few), Vec::<usize>::new());
    }

    #[test]
    fn equal_values_do_not_make_small_differences_large() {
        let mut values = vec![1.0; 32];
        values[5] = 1.04;
        assert_eq!(outliers(&values), Vec::<usize>::new());
        values[5] = 1.3;
        assert_eq!(outliers(&values), [5]);
        values[5] = 0.5;
        assert_eq!(outliers(&values), Vec::<usize>::new(), "faster is not an outlier");
    }

    #[test]
    fn a_figure_with_a_wide_error_is_not_an_outlier() {
        let mut slowness = exact(&healthy(16));
        slowness[2] = Slowness { value: 1.3, error: 0.2 };
        assert!(judge(&slowness, 0.01)[0].outliers.is_empty());
        slowness[2].error = 0.01;
        assert_eq!(judge(&slowness, 0.01)[0].outliers, [2]);
    }

    #[test]
    fn two_populations_are_not_outliers_of_each_other() {
        let mut values = healthy(20);
        for value in &mut values[12..] {
            *value *= 1.4;
        }
        let populations = judge(&exact(&values), 0.01);
        assert_eq!(populations.iter().map(|one| one.members.len()).collect::<Vec<_>>(), [12, 8]);
        assert_eq!(outliers(&values), Vec::<usize>::new());
        values[15] *= 1.3;
        assert_eq!(outliers(&values), [15]);
        // Three of twenty are a sickness that spreads, and not a second sort of machine.
        let mut values = healthy(20);
        for value in &mut values[17..] {
            *value *= 1.4;
        }
        assert_eq!(outliers(&values), [17, 18, 19]);
    }

    proptest! {
        #[test]
        fn the_deviation_is_that_of_the_statistics(values in prop::collection::vec(0.5..2.0f64, 1..40)) {
            let yardstick = Yardstick::new(&values, 0.01).unwrap();
            let expected = NORMAL * median_absolute_deviation(&values).unwrap();
            let median = median(&values).unwrap();
            prop_assert!((yardstick.median - median).abs() < 1e-12);
            prop_assert!((yardstick.deviation - expected.max(0.01 * median)).abs() < 1e-12);
        }

        #[test]
        fn the_order_of_machines_does_not_matter(values in prop::collection::vec(0.9..1.5f64, 0..40), turn in 0usize..40) {
            let mut turned = values.clone();
            turned.rotate_left(if values.is_empty() { 0 } else { turn % values.len() });
            let slow = |values: &[f64]| -> Vec<u64> {
                let mut slow: Vec<u64> = outliers(values).into_iter().map(|at| values[at].to_bits()).collect();
                slow.sort_unstable();
                slow
            };
            prop_assert_eq!(slow(&values), slow(&turned));
        }
    }
}
