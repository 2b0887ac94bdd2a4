//! The aligned rank test: does one run of each block differ from the others of its block?
//!
//! All values of a block are taken relative to the block's mean, and ranked over all blocks together;
//! what is tested is the sum of the ranks of the runs in question. When these do not differ from the
//! others, each run of a block is as likely as any other to be the one in question, because their
//! order was drawn: the distribution of the sum follows from that alone, whatever the noise. So the test
//! holds its level with skewed noise too, where a run compared with the mean of two others does not.
//!
//! # Source
//! Hodges and Lehmann, "Rank methods for combination of independent experiments in analysis of variance",
//! Annals of Mathematical Statistics 33, 1962. The estimate and the interval are the shifts at which the
//! test is even and at which it rejects: Hodges and Lehmann, "Estimates of location based on rank
//! tests", the same journal, 34, 1963.

use super::Interval;
use super::distribution::normal_cdf;

/// Up to this many blocks the p value is exact; above it the normal approximation is right to the second
/// digit, and too large where it is far below 1 %.
pub const EXACT_UP_TO: usize = 10;

/// How often a range of shifts is halved: to a thousandth of a millionth of itself.
const HALVINGS: u32 = 30;

/// The same where many samples are gone through: to a sixteen-thousandth.
const FEW_HALVINGS: u32 = 14;

/// A block: the run in question and the others.
#[derive(Clone, Debug, PartialEq)]
pub struct Aligned {
    /// The run that is compared.
    pub run: f64,
    pub others: Vec<f64>,
}

/// The two-sided p value; `None` without a block, or where a value is not a finite number.
pub fn aligned_rank(blocks: &[Aligned]) -> Option<f64> {
    let is_finite =
        |block: &Aligned| block.run.is_finite() && block.others.iter().all(|value| value.is_finite());
    if blocks.is_empty() || !blocks.iter().all(is_finite) {
        return None;
    }
    let [below, above] = Ranks::new(blocks, 0.0).tails();
    Some((2.0 * below.min(above)).min(1.0))
}

/// The shift of the runs in question at which the test is even: the middle, where it is so over a range.
pub fn shift(blocks: &[Aligned]) -> Option<f64> {
    aligned_rank(blocks)?;
    shift_within(blocks, HALVINGS)
}

fn shift_within(blocks: &[Aligned], halvings: u32) -> Option<f64> {
    let (least, most) = ends(blocks)?;
    let above = |shift: f64| {
        let ranks = Ranks::new(blocks, shift);
        ranks.sum as f64 - ranks.mean()
    };
    // Sums of halves and thirds: far from zero or zero.
    let is_above = |shift: f64| above(shift) > 1e-6;
    let is_not_below = |shift: f64| above(shift) > -1e-6;
    let (low, high) =
        (boundary(least, most, halvings, is_above), boundary(least, most, halvings, is_not_below));
    Some(low / 2.0 + high / 2.0)
}

/// The shifts that the test does not reject at the level `1 - confidence`; `None` where so few blocks
/// leave an end open.
pub fn interval(blocks: &[Aligned], confidence: f64) -> Option<Interval> {
    aligned_rank(blocks)?;
    interval_within(blocks, confidence, HALVINGS)
}

/// The [`shift`] and the [`interval`] of values that are finite, to a sixteen-thousandth of the range of
/// differences: for simulations, which need very many.
pub fn roughly(blocks: &[Aligned], confidence: f64) -> Option<(f64, Interval)> {
    Some((shift_within(blocks, FEW_HALVINGS)?, interval_within(blocks, confidence, FEW_HALVINGS)?))
}

fn interval_within(blocks: &[Aligned], confidence: f64, halvings: u32) -> Option<Interval> {
    let (least, most) = ends(blocks)?;
    let alpha = (1.0 - confidence) / 2.0;
    let is_below = |shift: f64| Ranks::new(blocks, shift).tails()[1] <= alpha;
    let is_not_above = |shift: f64| Ranks::new(blocks, shift).tails()[0] > alpha;
    if !is_below(least) || is_not_above(most) {
        return None;
    }
    let low = boundary(least, most, halvings, is_below);
    let high = boundary(least, most, halvings, is_not_above);
    Some(Interval { low, high: high.max(low) })
}

/// A little beyond the least and the greatest difference within a block.
fn ends(blocks: &[Aligned]) -> Option<(f64, f64)> {
    let differences = || blocks.iter().flat_map(|block| block.others.iter().map(|other| block.run - other));
    let (least, most) = (differences().reduce(f64::min)?, differences().reduce(f64::max)?);
    let beyond = (1e-9 * (most - least)).max(1e-12 * (1.0 + most.abs().max(least.abs())));
    Some((least - beyond, most + beyond))
}

/// Where `holds`, which is true from `low` on, ceases to be so.
fn boundary(mut low: f64, mut high: f64, halvings: u32, holds: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..halvings {
        let middle = low / 2.0 + high / 2.0;
        if holds(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low / 2.0 + high / 2.0
}

/// Twice the ranks of all values, by block, the run in question first.
struct Ranks<'a> {
    blocks: &'a [Aligned],
    /// Those of all blocks, one after the other.
    ranks: Vec<usize>,
    /// The sum of the ranks in question.
    sum: usize,
}

impl<'a> Ranks<'a> {
    /// The ranks after the runs in question were moved down by `shift`.
    fn new(blocks: &'a [Aligned], shift: f64) -> Self {
        let count = blocks.iter().map(size).sum();
        let mut values: Vec<(f64, usize)> = Vec::with_capacity(count);
        for block in blocks {
            let run = block.run - shift;
            let mean = (run + block.others.iter().sum::<f64>()) / size(block) as f64;
            let start = values.len();
            values.push((run - mean, start));
            values.extend(block.others.iter().zip(start + 1..).map(|(value, place)| (value - mean, place)));
        }
        values.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let mut ranks = vec![0; count];
        let mut before = 0;
        // The mean rank of equal values is a whole number when it is doubled.
        for equal in values.chunk_by(|a, b| a.0 == b.0) {
            for (_, place) in equal {
                ranks[*place] = 2 * before + equal.len() + 1;
            }
            before += equal.len();
        }
        let mut found = Self { blocks, ranks, sum: 0 };
        found.sum = found.by_block().map(|ranks| ranks[0]).sum();
        found
    }

    fn by_block(&self) -> impl Iterator<Item = &[usize]> {
        let mut rest = &self.ranks[..];
        self.blocks.iter().map(move |block| {
            let (own, after) = rest.split_at(size(block));
            rest = after;
            own
        })
    }

    /// The expected sum when each run of a block is as likely as any other to be the one in question.
    fn mean(&self) -> f64 {
        self.by_block().map(mean_of).sum()
    }

    /// The probabilities of a sum so low and of one so high.
    fn tails(&self) -> [f64; 2] {
        if self.blocks.len() <= EXACT_UP_TO { self.exact() } else { self.approximate() }
    }

    fn exact(&self) -> [f64; 2] {
        let most = |ranks: &[usize]| ranks.iter().copied().max().unwrap_or(0);
        let mut probability = vec![0.0; self.by_block().map(most).sum::<usize>() + 1];
        let mut next = probability.clone();
        probability[0] = 1.0;
        let mut reached = 0;
        for ranks in self.by_block() {
            let share = 1.0 / ranks.len() as f64;
            let longest = reached + most(ranks);
            next[..=longest].fill(0.0);
            for rank in ranks {
                let sums = next[*rank..].iter_mut().zip(&probability[..=reached]);
                sums.for_each(|(sum, chance)| *sum += share * chance);
            }
            std::mem::swap(&mut probability, &mut next);
            reached = longest;
        }
        let below: f64 = probability[..=self.sum].iter().sum();
        let above: f64 = probability[self.sum..=reached].iter().sum();
        [below.min(1.0), above.min(1.0)]
    }

    fn approximate(&self) -> [f64; 2] {
        let variance = |ranks: &[usize]| {
            let mean = mean_of(ranks);
            ranks.iter().map(|rank| (*rank as f64 - mean).powi(2)).sum::<f64>() / ranks.len() as f64
        };
        let deviation = self.by_block().map(variance).sum::<f64>().sqrt();
        let above = self.sum as f64 - self.mean();
        if deviation == 0.0 {
            return [1.0, 1.0];
        }
        [normal_cdf((above + 1.0) / deviation), normal_cdf((1.0 - above) / deviation)]
    }
}

/// The number of runs of a block.
fn size(block: &Aligned) -> usize {
    block.others.len() + 1
}

fn mean_of(ranks: &[usize]) -> f64 {
    ranks.iter().sum::<usize>() as f64 / ranks.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn blocks(values: &[(f64, [f64; 2])]) -> Vec<Aligned> {
        values.iter().map(|(run, others)| Aligned { run: *run, others: others.to_vec() }).collect()
    }

    #[test]
    fn the_least_p_value_is_that_of_one_order_among_all() {
        let low = blocks(&[(1.0, [5.0, 6.0]), (2.0, [7.0, 6.0]), (0.0, [5.0, 9.0]), (1.0, [8.0, 7.5])]);
        let p = aligned_rank(&low).unwrap();
        assert!((p - 2.0 / 81.0).abs() < 1e-12, "{p}");
        assert_eq!(aligned_rank(&blocks(&[(1.0, [1.0, 1.0]); 5])), Some(1.0));
        assert_eq!(aligned_rank(&[]), None);
        assert_eq!(aligned_rank(&blocks(&[(f64::NAN, [1.0, 1.0])])), None);
    }

    // By hand: the aligned values of the first block are -1, 0, 1, those of the second -3, 1, 2; their
    // ranks 2, 3, 4.5 and 1, 4.5, 6. Of the nine pairs of ranks the sums 3, 4, 5.5, 6.5, 7.5, 8, 9, 9, 10.5;
    // two are at most 4.
    #[test]
    fn the_distribution_is_that_of_all_relabelled_blocks() {
        let two = blocks(&[(1.0, [0.0, 2.0]), (-3.0, [1.0, 2.0])]);
        let p = aligned_rank(&two).unwrap();
        assert!((p - 4.0 / 9.0).abs() < 1e-12, "{p}");
    }

    /// The share of studies of equal runs with p below 5 %, and the share whose interval holds 0.
    fn level(count: usize, studies: usize, noise: impl Fn(&mut Random) -> f64) -> (f64, f64) {
        let mut random = Random::new(5);
        let (mut rejected, mut held) = (0, 0);
        for _ in 0..studies {
            let mut run = || noise(&mut random);
            let blocks: Vec<Aligned> =
                (0..count).map(|_| Aligned { run: run(), others: vec![run(), run()] }).collect();
            rejected += usize::from(aligned_rank(&blocks).unwrap() < 0.05);
            held += usize::from(interval(&blocks, 0.95).is_some_and(|found| found.contains(0.0)));
        }
        (rejected as f64 / studies as f64, held as f64 / studies as f64)
    }

    #[test]
    fn the_level_holds_with_skewed_noise_and_the_interval_does_too() {
        let bimodal = |random: &mut Random| {
            let slow = if random.unit() < 0.2 { 0.3 } else { 0.0 };
            slow + 0.01 * random.normal()
        };
        for count in [8, 20, 40] {
            for (rejected, held) in
                [level(count, 200, bimodal), level(count, 200, |random| -random.unit().ln())]
            {
                // Standard deviation 1.5 in 100; two and a half of them.
                assert!(rejected <= 0.088, "{count} blocks: {rejected}");
                assert!((0.912..=0.988).contains(&held), "{count} blocks: {held}");
            }
        }
    }

    #[test]
    fn the_estimate_is_the_shift() {
        let mut random = Random::new(2);
        let mut run = || random.normal();
        let shifted: Vec<Aligned> =
            (0..60).map(|_| Aligned { run: run() + 3.0, others: vec![run(), run()] }).collect();
        let found = shift(&shifted).unwrap();
        assert!((found - 3.0).abs() < 0.5, "{found}");
        let range = interval(&shifted, 0.95).unwrap();
        assert!(range.contains(found) && range.half_width() < 0.6, "{range:?}");
        assert_eq!(interval(&shifted[..3], 0.95), None);
        // Between the two others of its block a run shows nothing: the estimate is as far from either.
        let one = shift(&blocks(&[(9.0, [1.0, 2.0])])).unwrap();
        assert!((one - 7.5).abs() < 1e-6, "{one}");
        assert_eq!(shift(&blocks(&[(2.0, [1.0, 1.0]); 9])).map(|found| (found * 1e6).round()), Some(1e6));
    }
}
