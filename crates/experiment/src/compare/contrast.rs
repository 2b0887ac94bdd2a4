//! The statistics of a row: two sets of logarithms, in blocks or apart.
//!
//! Placements of one session run in blocks: in each round one run of a placement and both of the first,
//! in an order drawn for that round. They are compared by aligned ranks ([`nodewise_stats::aligned`]),
//! which hold their level whatever the noise; a run compared with the mean of two others does not, where
//! the noise is skewed. The interval of a mean of rows is made of those of the rows.
//!
//! Two sessions are apart: the value of a round is the mean of the logarithms of its runs, and they are
//! compared by rank sums ([`nodewise_stats::rank_sum`]). Intervals are bootstraps over rounds, and for a mean of
//! rows the same rounds are drawn for all of them and the mean is computed again; read at the percentiles of
//! Hesterberg, as in [`nodewise_stats::bootstrap`].
//!
//! # Source
//! An interval of a sum from the intervals of its terms: Zou and Donner, "Construction of confidence limits
//! about effect measures: a general approach", Statistics in Medicine 27, 2008.

use std::collections::BTreeMap;

use crate::detectable::{self, Rules, Sample};
use crate::suite::session::ArmRecord;
use crate::verdict::ALPHA;
use nodewise_machine::order::CollectOrdered as _;
use nodewise_stats::Direction;
use nodewise_stats::aligned::{self, Aligned, aligned_rank};
use nodewise_stats::distribution::{normal_cdf, student_quantile};
use nodewise_stats::location::quantile_of_sorted;
use nodewise_stats::power::blocks_needed;
use nodewise_stats::random::Random;
use nodewise_stats::rank_sum::{rank_sum, shift, smallest_p};
use nodewise_stats::{Bootstrap, Interval, mean};

/// Values above it make resampling slow and show nothing new: fewer resamples are drawn then.
const MANY_PAIRS: usize = 4096;

/// How an interval is drawn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resampling {
    pub draws: u32,
    pub seed: u64,
}

impl Resampling {
    /// For the row at this place.
    pub fn of_row(self, at: u64) -> Self {
        Self { seed: self.seed.wrapping_add(at), ..self }
    }

    /// For a mean of rows, whose ends are steadier by themselves.
    pub fn of_means(self) -> Self {
        Self { draws: self.draws / 2, ..self }
    }
}

/// Logarithms of speed, by round.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Contrast {
    values: Values,
    /// The differences of two runs of the same in one round, of each side that has any.
    same: Vec<Vec<f64>>,
}

#[derive(Clone, Debug, PartialEq)]
enum Values {
    /// The rounds that have both.
    Blocks(Vec<Aligned>),
    /// The values of both sides.
    Apart(Vec<f64>, Vec<f64>),
}

impl Contrast {
    /// Of runs of the same rounds; `None` where no round has both.
    pub fn paired(direction: Direction, before: &ArmRecord, after: &ArmRecord) -> Option<Self> {
        let (first, second) = (logarithms(direction, before), logarithms(direction, after));
        let block = |(round, runs): (&u32, &Vec<f64>)| {
            Some(Aligned { run: mean(runs)?, others: first.get(round)?.clone() })
        };
        let blocks: Vec<Aligned> = second.iter().filter_map(block).collect();
        let contrast = Self { values: Values::Blocks(blocks), same: vec![same(before)] };
        (contrast.rounds() > 0).then_some(contrast)
    }

    /// Of runs of two sessions; `None` where one has no value.
    pub fn apart(direction: Direction, before: &ArmRecord, after: &ArmRecord) -> Option<Self> {
        let of_rounds =
            |arm| logarithms(direction, arm).into_values().filter_map(|runs| mean(&runs)).collect();
        let [first, second] = [before, after].map(of_rounds);
        let same = vec![same(before), same(after)];
        let contrast = Self { values: Values::Apart(first, second), same };
        (contrast.rounds() > 0).then_some(contrast)
    }

    /// Rounds of the side that has fewer.
    pub fn rounds(&self) -> usize {
        match &self.values {
            Values::Blocks(blocks) => blocks.len(),
            Values::Apart(before, after) => before.len().min(after.len()),
        }
    }

    /// Rounds that it takes to show any difference among this many rows.
    pub fn rounds_needed(&self, compared: usize) -> usize {
        match &self.values {
            Values::Blocks(_) => blocks_needed(compared, ALPHA) as usize,
            Values::Apart(..) => {
                let shows = |rounds: &usize| smallest_p(*rounds, *rounds) * compared as f64 <= ALPHA;
                (4..64).find(shows).unwrap_or(64)
            }
        }
    }

    /// The change, in logarithms.
    pub fn estimate(&self) -> f64 {
        let estimate = match &self.values {
            Values::Blocks(blocks) => aligned::shift(blocks),
            Values::Apart(before, after) => shift(before, after),
        };
        estimate.expect("there is a value, and all are finite")
    }

    /// The p value of this row alone; `None` for a single round.
    pub fn p(&self) -> Option<f64> {
        match &self.values {
            _ if self.rounds() < 2 => None,
            Values::Blocks(blocks) => aligned_rank(blocks),
            Values::Apart(before, after) => Some(rank_sum(before, after)?.p),
        }
    }

    /// The interval of the estimate; `None` where there are too few rounds for one.
    pub fn interval(&self, with: Resampling) -> Option<Interval> {
        match &self.values {
            Values::Blocks(blocks) => aligned::interval(blocks, 1.0 - ALPHA),
            Values::Apart(..) => resampled_mean(&[self], with),
        }
    }

    /// Half the width of the interval of the same against itself: of the noisier side.
    pub fn noise(&self, with: Resampling) -> f64 {
        let bootstrap = Bootstrap { resamples: with.draws, confidence: 1.0 - ALPHA, seed: with.seed };
        let intervals = self.same.iter().filter_map(|differences| bootstrap.hodges_lehmann(differences));
        intervals.map(|interval| interval.half_width()).fold(0.0, f64::max)
    }

    /// The most by which two runs of the same have differed in one round.
    pub fn widest(&self) -> f64 {
        self.same.iter().flatten().fold(0.0, |widest: f64, difference| widest.max(difference.abs()))
    }

    /// The smallest change that would be found with 80 % power, in logarithms; `None` where there are too few rounds.
    pub fn smallest_detectable(&self, rules: &Rules, with: Resampling) -> Option<f64> {
        match &self.values {
            Values::Blocks(blocks) => detectable::of_blocks(blocks, rules, with.draws, with.seed),
            Values::Apart(before, after) => {
                let same = |side: usize| self.same.get(side).map_or(&[][..], Vec::as_slice);
                let before = Sample { values: before, same: same(0) };
                let after = Sample { values: after, same: same(1) };
                detectable::of_samples(before, after, rules, with.seed)
            }
        }
    }

    /// Degrees of freedom of the estimate.
    pub fn degrees(&self) -> usize {
        match &self.values {
            Values::Blocks(blocks) => blocks.len() - 1,
            Values::Apart(before, after) => before.len() + after.len() - 2,
        }
    }
}

/// The logarithms of an arm's speed by round, one for each run.
fn logarithms(direction: Direction, arm: &ArmRecord) -> BTreeMap<u32, Vec<f64>> {
    let sign = match direction {
        Direction::HigherIsBetter => 1.0,
        Direction::LowerIsBetter => -1.0,
    };
    let logs = |values: Vec<f64>| values.into_iter().map(|value| sign * value.ln()).collect();
    arm.rounds().into_iter().map(|(round, values)| (round, logs(values))).collect_map()
}

/// The differences of two runs of the same placement in one round, the first of them less the second.
fn same(arm: &ArmRecord) -> Vec<f64> {
    let of = |replicate| {
        let samples = arm.samples.iter().filter(move |sample| sample.replicate == replicate);
        samples.map(|sample| (sample.round, sample.value.ln())).collect_map()
    };
    let (first, second) = (of(0), of(1));
    first.iter().filter_map(|(round, value)| Some(value - second.get(round)?)).collect()
}

/// The mean of the changes of some rows, in logarithms.
pub(super) fn mean_estimate(rows: &[&Contrast]) -> f64 {
    rows.iter().map(|row| row.estimate()).sum::<f64>() / rows.len() as f64
}

/// An interval for it; `None` where a row has too few rounds.
pub(super) fn interval_of_mean(rows: &[&Contrast], with: Resampling) -> Option<Interval> {
    if rows.iter().all(|row| matches!(row.values, Values::Apart(..))) {
        return resampled_mean(rows, with);
    }
    let ends = |row: &&Contrast| Some((row.estimate(), row.interval(with)?));
    let ends: Vec<(f64, Interval)> = rows.iter().map(ends).collect::<Option<_>>()?;
    let centre = mean_estimate(rows);
    // The distances of the ends from the mean add up like standard errors.
    let together = |distance: &dyn Fn(&(f64, Interval)) -> f64| {
        ends.iter().map(|row| distance(row).powi(2)).sum::<f64>().sqrt() / rows.len() as f64
    };
    Some(Interval {
        low: centre - together(&|(estimate, interval)| estimate - interval.low),
        high: centre + together(&|(estimate, interval)| interval.high - estimate),
    })
}

/// The interval of a mean of rows of two sessions; `None` when a row has a single round on one side.
///
/// The same rounds are drawn for all rows: what slows a machine down for some time slows all that runs
/// in that round, so that rows are not independent.
fn resampled_mean(rows: &[&Contrast], with: Resampling) -> Option<Interval> {
    let sides = |row: &&Contrast| match &row.values {
        Values::Apart(before, after) => Some((before.clone(), after.clone())),
        Values::Blocks(_) => None,
    };
    let values: Vec<(Vec<f64>, Vec<f64>)> = rows.iter().map(sides).collect::<Option<_>>()?;
    let fewest = rows.iter().map(|row| row.rounds()).min()?;
    if fewest < 2 {
        return None;
    }
    let is_slow = values.iter().any(|(before, after)| before.len() * after.len() > MANY_PAIRS);
    let draws = if is_slow { with.draws / 8 } else { with.draws };
    let mut random = Random::new(with.seed);
    let before = values.iter().map(|(before, _)| before.len()).max().unwrap_or(0);
    let after = values.iter().map(|(_, after)| after.len()).max().unwrap_or(0);
    let mut draw = || {
        let mut rounds = |count: usize| -> Vec<usize> { (0..count).map(|_| random.index(count)).collect() };
        let drawn = (rounds(before), rounds(after));
        values.iter().map(|sides| resampled_shift(sides, &drawn)).sum::<f64>() / values.len() as f64
    };
    let mut means: Vec<f64> = (0..draws).map(|_| draw()).collect();
    means.sort_unstable_by(f64::total_cmp);
    let tail = expanded_tail(fewest, rows.iter().map(|row| row.degrees()).min()?);
    Some(Interval { low: quantile_of_sorted(&means, tail), high: quantile_of_sorted(&means, 1.0 - tail) })
}

/// The shift between the values of the rounds drawn from both sides. A row that has fewer values than the longest
/// takes its own at the same place.
fn resampled_shift((before, after): &(Vec<f64>, Vec<f64>), drawn: &(Vec<usize>, Vec<usize>)) -> f64 {
    let take = |values: &[f64], drawn: &[usize]| -> Vec<f64> {
        let all = drawn.len();
        drawn[..values.len()].iter().map(|round| values[round * values.len() / all]).collect()
    };
    let (before, after) = (take(before, &drawn.0), take(after, &drawn.1));
    shift(&before, &after).expect("there is a value, and all are finite")
}

/// The share of resamples below the interval: as for one sample, with the degrees of freedom of the row that has
/// the fewest, because rows that share their rounds are no more certain together.
fn expanded_tail(rounds: usize, degrees: usize) -> f64 {
    let degrees = u32::try_from(degrees).unwrap_or(u32::MAX).clamp(1, 10_000);
    let t = student_quantile((1.0 - 0.95) / 2.0, degrees);
    normal_cdf(t * (rounds as f64 / (rounds as f64 - 1.0)).sqrt())
}
