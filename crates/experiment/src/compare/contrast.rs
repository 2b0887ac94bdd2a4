//! The statistics of a row: two sets of values, paired by rounds or apart.
//!
//! The value of a round is the mean of the logarithms of its runs. Intervals are bootstraps over rounds,
//! inside each row, and for a mean of rows the mean is worked out anew for each set of resamples; read
//! at the percentiles of Hesterberg, as in [`nodewise_stats::bootstrap`].

use std::collections::BTreeMap;

use crate::suite::session::ArmRecord;
use crate::verdict::ALPHA;
use nodewise_stats::Direction;
use nodewise_stats::distribution::{normal_cdf, student_quantile};
use nodewise_stats::location::quantile_of_sorted;
use nodewise_stats::power::blocks_needed;
use nodewise_stats::random::Random;
use nodewise_stats::rank_sum::{rank_sum, shift, smallest_p};
use nodewise_stats::signed_rank::signed_rank;
use nodewise_stats::{Interval, hodges_lehmann, mean};

/// Values above it make resampling slow and show nothing new: fewer resamples are drawn then.
const MANY_PAIRS: usize = 4096;

/// How an interval is drawn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resampling {
    draws: u32,
    seed: u64,
}

impl Resampling {
    /// For a row.
    pub fn of_rows(seed: u64) -> Self {
        Self { draws: 4000, seed }
    }

    /// For a mean of rows, whose ends are steadier by themselves.
    pub fn of_means(seed: u64) -> Self {
        Self { draws: 2000, seed }
    }
}

/// Logarithms of speed, a value for each round.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Contrast {
    values: Values,
    /// The differences of two runs of the same in one round, of each side that has any.
    same: Vec<Vec<f64>>,
}

#[derive(Clone, Debug, PartialEq)]
enum Values {
    /// Differences in the rounds that have both.
    Paired(Vec<f64>),
    /// The values of both sides.
    Apart(Vec<f64>, Vec<f64>),
}

impl Contrast {
    /// Of runs that were taken in the same rounds; `None` where no round has both.
    pub fn paired(direction: Direction, before: &ArmRecord, after: &ArmRecord) -> Option<Self> {
        let (first, second) = (by_round(direction, before), by_round(direction, after));
        let difference = |(round, value): (&u32, &f64)| Some(value - first.get(round)?);
        let differences: Vec<f64> = second.iter().filter_map(difference).collect();
        let contrast = Self { values: Values::Paired(differences), same: vec![same(before)] };
        (contrast.rounds() > 0).then_some(contrast)
    }

    /// Of runs of two sessions; `None` where one has no value.
    pub fn apart(direction: Direction, before: &ArmRecord, after: &ArmRecord) -> Option<Self> {
        let [first, second] = [before, after].map(|arm| by_round(direction, arm).into_values().collect());
        let same = vec![same(before), same(after)];
        let contrast = Self { values: Values::Apart(first, second), same };
        (contrast.rounds() > 0).then_some(contrast)
    }

    /// Rounds of the side that has fewer.
    pub fn rounds(&self) -> usize {
        match &self.values {
            Values::Paired(differences) => differences.len(),
            Values::Apart(before, after) => before.len().min(after.len()),
        }
    }

    /// Rounds that it takes to show any difference among so many rows.
    pub fn rounds_needed(&self, compared: usize) -> usize {
        match &self.values {
            Values::Paired(_) => blocks_needed(compared, ALPHA) as usize,
            Values::Apart(..) => {
                let shows = |rounds: &usize| smallest_p(*rounds, *rounds) * compared as f64 <= ALPHA;
                (4..64).find(shows).unwrap_or(64)
            }
        }
    }

    /// The change, in logarithms.
    pub fn estimate(&self) -> f64 {
        let estimate = match &self.values {
            Values::Paired(differences) => hodges_lehmann(differences),
            Values::Apart(before, after) => shift(before, after),
        };
        estimate.expect("there is a value, and all are finite")
    }

    /// The p value of this row alone; `None` for a single round.
    pub fn p(&self) -> Option<f64> {
        match &self.values {
            _ if self.rounds() < 2 => None,
            Values::Paired(differences) => Some(signed_rank(differences)?.p),
            Values::Apart(before, after) => Some(rank_sum(before, after)?.p),
        }
    }

    /// Half the width of the interval of the same against itself: of the noisier side.
    pub fn noise(&self, with: Resampling) -> f64 {
        let half_width = |differences: &Vec<f64>| {
            let contrast = Self { values: Values::Paired(differences.clone()), same: Vec::new() };
            interval_of_mean(&[&contrast], with).map(|interval| interval.half_width())
        };
        self.same.iter().filter_map(half_width).fold(0.0, f64::max)
    }

    /// The most by which two runs of the same have differed in one round.
    pub fn widest(&self) -> f64 {
        self.same.iter().flatten().fold(0.0, |widest: f64, difference| widest.max(difference.abs()))
    }

    /// Degrees of freedom of the estimate.
    pub fn degrees(&self) -> usize {
        match &self.values {
            Values::Paired(differences) => differences.len() - 1,
            Values::Apart(before, after) => before.len() + after.len() - 2,
        }
    }

    /// How many values a resample draws at most.
    fn pairs(&self) -> usize {
        match &self.values {
            Values::Paired(differences) => differences.len() * differences.len() / 2,
            Values::Apart(before, after) => before.len() * after.len(),
        }
    }

    /// The estimate of values drawn from these with replacement, each side for itself.
    fn resampled(&self, random: &mut Random) -> f64 {
        let mut draw = |values: &Vec<f64>| -> Vec<f64> {
            values.iter().map(|_| values[random.index(values.len())]).collect()
        };
        let values = match &self.values {
            Values::Paired(differences) => Values::Paired(draw(differences)),
            Values::Apart(before, after) => Values::Apart(draw(before), draw(after)),
        };
        Self { values, same: Vec::new() }.estimate()
    }
}

/// The logarithms of an arm's speed by round.
fn by_round(direction: Direction, arm: &ArmRecord) -> BTreeMap<u32, f64> {
    let sign = match direction {
        Direction::HigherIsBetter => 1.0,
        Direction::LowerIsBetter => -1.0,
    };
    let logs = |values: Vec<f64>| values.into_iter().map(f64::ln).collect::<Vec<_>>();
    let round = |(round, values)| Some((round, sign * mean(&logs(values))?));
    arm.rounds().into_iter().filter_map(round).collect()
}

/// The differences of two runs of the same placement in one round, the first of them less the second.
fn same(arm: &ArmRecord) -> Vec<f64> {
    let of = |replicate| {
        let samples = arm.samples.iter().filter(move |sample| sample.replicate == replicate);
        samples.map(|sample| (sample.round, sample.value.ln())).collect::<BTreeMap<u32, f64>>()
    };
    let (first, second) = (of(0), of(1));
    first.iter().filter_map(|(round, value)| Some(value - second.get(round)?)).collect()
}

/// The mean of the changes of some rows, in logarithms.
pub(super) fn mean_estimate(rows: &[&Contrast]) -> f64 {
    rows.iter().map(|row| row.estimate()).sum::<f64>() / rows.len() as f64
}

/// An interval for it; `None` when a row has a single round on one side.
pub(super) fn interval_of_mean(rows: &[&Contrast], with: Resampling) -> Option<Interval> {
    let fewest = rows.iter().map(|row| row.rounds()).min()?;
    if fewest < 2 {
        return None;
    }
    let slow = rows.iter().any(|row| row.pairs() > MANY_PAIRS);
    let draws = if slow { with.draws / 8 } else { with.draws };
    let mut random = Random::new(with.seed);
    let mut means: Vec<f64> = (0..draws)
        .map(|_| rows.iter().map(|row| row.resampled(&mut random)).sum::<f64>() / rows.len() as f64)
        .collect();
    means.sort_unstable_by(f64::total_cmp);
    let tail = expanded_tail(fewest, rows.iter().map(|row| row.degrees()).sum());
    Some(Interval { low: quantile_of_sorted(&means, tail), high: quantile_of_sorted(&means, 1.0 - tail) })
}

/// The share of resamples below the interval: as for one sample, with the degrees of freedom of all
/// rows together.
fn expanded_tail(rounds: usize, degrees: usize) -> f64 {
    let degrees = u32::try_from(degrees).unwrap_or(u32::MAX).clamp(1, 10_000);
    let t = student_quantile((1.0 - 0.95) / 2.0, degrees);
    normal_cdf(t * (rounds as f64 / (rounds as f64 - 1.0)).sqrt())
}
