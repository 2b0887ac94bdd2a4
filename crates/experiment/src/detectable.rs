//! The smallest change that a comparison would find with 80 % power, for the procedure that decides: the test at
//! the level that several rows leave, the interval, and the noise that an estimate has to clear.
//!
//! The rounds that were seen, without their difference, are drawn again many times. Each such repetition
//! has an estimate and a bar that the estimate must clear, so it says which change it would have called one. The
//! change that four of five repetitions call one would be too small to be stated: what is stated comes from a few
//! rounds itself, and another study has another noise. So the change that one repetition needs is measured in units of the
//! bar of another, and the fourth fifth of these ratios is taken times the bar that was seen.
//!
//! # Source
//! As a prediction interval holds a value still to come, with an error in its own ends (Hahn and Meeker, "Statistical
//! intervals", 1991); the rounds drawn with replacement: Efron and Tibshirani, "An introduction to the bootstrap",
//! 1993, chapter 25, power calculations.

use nodewise_stats::Interval;
use nodewise_stats::aligned::{self, Aligned};
use nodewise_stats::location::quantile_of_sorted;
use nodewise_stats::power::POWER;
use nodewise_stats::random::Random;
use nodewise_stats::rank_sum;

/// How many repetitions are drawn of two samples.
const REPETITIONS: u32 = 200;

/// And of blocks, whose test takes a hundred times as long: one for so many resamples of an interval.
const RESAMPLES_EACH: u32 = 40;

/// The fewest of blocks.
const FEWEST: u32 = 10;

/// More blocks than this are drawn half as often.
const MANY: usize = 40;

/// With how many others each repetition is compared.
const OTHERS: usize = 8;

/// The level of the intervals that are shown.
const INTERVAL: f64 = 0.05;

/// The conditions under which a difference is called one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// The level of the test, with all rows taken into account.
    pub level: f64,
    /// The least estimate that is called a difference whatever the noise, as a logarithm.
    pub least: f64,
    /// The noise that was seen, as a logarithm; an estimate must be beyond it.
    pub noise: f64,
    /// Whether that is the widest difference of two equal runs, instead of the interval of their differences.
    pub is_widest: bool,
    /// The interval that was seen, which must not hold zero; `None` where the test itself implies that.
    pub interval: Option<Interval>,
}

/// Two samples, round by round: their values, and the differences of two equal runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample<'a> {
    pub values: &'a [f64],
    pub same: &'a [f64],
}

/// The estimate of a study, and how far below and above it the test and the interval reach.
#[derive(Clone, Copy, Debug)]
struct Look {
    estimate: f64,
    /// The shifts that the test at the level of the rules does not reject.
    test: [f64; 2],
    /// The shifts that it does not reject at 5 %.
    interval: [f64; 2],
    /// The spread of the differences of two equal runs.
    spread: f64,
}

/// The smallest change of two samples that are compared by rank sums; `None` where there are too few values.
pub(crate) fn of_samples(before: Sample<'_>, after: Sample<'_>, rules: &Rules, seed: u64) -> Option<f64> {
    let sizes = (before.values.len(), after.values.len());
    let most = [rules.level, INTERVAL].map(|level| rank_sum::most_against(sizes.0, sizes.1, level));
    let [Some(test), Some(interval)] = most else { return None };
    let shift = rank_sum::shift(before.values, after.values)?;
    let pool: Vec<(f64, Option<f64>)> = [(before, 0.0), (after, shift)]
        .into_iter()
        .flat_map(|(side, shift)| {
            let same = side.same.iter().copied().map(Some).chain(std::iter::repeat(None));
            side.values.iter().map(move |value| value - shift).zip(same)
        })
        .collect();
    let look = |first: &[(f64, Option<f64>)], second: &[(f64, Option<f64>)]| {
        let mut differences: Vec<f64> =
            first.iter().flat_map(|one| second.iter().map(move |other| other.0 - one.0)).collect();
        differences.sort_unstable_by(f64::total_cmp);
        let spread =
            [first, second].map(|side| spread(side.iter().filter_map(|round| round.1), rules.is_widest));
        let ends = |most: usize| [differences[most], differences[differences.len() - 1 - most]];
        Look {
            estimate: quantile_of_sorted(&differences, 0.5),
            test: ends(test),
            interval: ends(interval),
            spread: spread[0].max(spread[1]),
        }
    };
    let seen = look(&pool[..sizes.0], &pool[sizes.0..]);
    let mut random = Random::new(seed);
    let mut draw = |count: usize| -> Vec<_> { (0..count).map(|_| pool[random.index(pool.len())]).collect() };
    let drawn: Vec<Look> = (0..REPETITIONS).map(|_| look(&draw(sizes.0), &draw(sizes.1))).collect();
    smallest(&seen, &drawn, rules)
}

/// The smallest change of runs in blocks that are compared by aligned ranks; `None` where there are too few.
///
/// The interval is that of the test, at a level that is no stricter, so it decides nothing more.
pub(crate) fn of_blocks(blocks: &[Aligned], rules: &Rules, resamples: u32, seed: u64) -> Option<f64> {
    let shift = aligned::shift(blocks)?;
    let centre = |block: &Aligned| Aligned { run: block.run - shift, others: block.others.clone() };
    let centred: Vec<Aligned> = blocks.iter().map(centre).collect();
    let look = |blocks: &[Aligned]| {
        let same = blocks.iter().filter_map(|block| match block.others[..] {
            [first, second] => Some(second - first),
            _ => None,
        });
        let (estimate, test) = aligned::roughly(blocks, 1.0 - rules.level)?;
        let test = [test.low, test.high];
        Some(Look { estimate, test, interval: test, spread: spread(same, rules.is_widest) })
    };
    let seen = look(&centred)?;
    let mut random = Random::new(seed);
    let mut draw = || -> Vec<Aligned> {
        (0..blocks.len()).map(|_| centred[random.index(blocks.len())].clone()).collect()
    };
    let each = if blocks.len() > MANY { 2 * RESAMPLES_EACH } else { RESAMPLES_EACH };
    let repetitions = (resamples / each).max(FEWEST);
    let drawn: Vec<Look> = (0..repetitions).filter_map(|_| look(&draw())).collect();
    smallest(&seen, &drawn, &Rules { interval: None, ..*rules })
}

fn smallest(seen: &Look, drawn: &[Look], rules: &Rules) -> Option<f64> {
    let per_spread = if seen.spread > 0.0 { rules.noise / seen.spread } else { 0.0 };
    let seen_width = (seen.interval[1] - seen.interval[0]) / 2.0;
    let per_width = match rules.interval {
        Some(interval) if seen_width > 0.0 => interval.half_width() / seen_width,
        _ => 0.0,
    };
    // How far from zero an estimate must lie, below and above.
    let bars = |look: &Look| -> [f64; 2] {
        let floor = rules.least.max(look.spread * per_spread);
        [0, 1].map(|side| {
            let test = (look.test[side] - look.estimate).abs();
            test.max((look.interval[side] - look.estimate).abs() * per_width).max(floor)
        })
    };
    let unit = |look: &Look| bars(look).iter().sum::<f64>() / 2.0;
    let units: Vec<f64> = drawn.iter().map(unit).collect();
    let mut ratios: Vec<f64> = Vec::with_capacity(drawn.len() * 2 * OTHERS);
    for (at, look) in drawn.iter().enumerate() {
        let [below, above] = bars(look);
        for needed in [below - look.estimate, above + look.estimate] {
            ratios.extend((1..=OTHERS).map(|other| needed / units[(at + other) % units.len()]));
        }
    }
    ratios.retain(|ratio| ratio.is_finite());
    ratios.sort_unstable_by(f64::total_cmp);
    (!ratios.is_empty()).then(|| quantile_of_sorted(&ratios, POWER) * unit(seen))
}

/// Half the width of the interval of the differences of two equal runs, or the widest of them.
fn spread(same: impl Iterator<Item = f64>, is_widest: bool) -> f64 {
    let same: Vec<f64> = same.collect();
    if is_widest {
        return same.iter().fold(0.0, |widest: f64, difference| widest.max(difference.abs()));
    }
    let count = same.len() as f64;
    let mut means: Vec<f64> = same
        .iter()
        .enumerate()
        .flat_map(|(at, one)| same[at..].iter().map(move |other| (one + other) / 2.0))
        .collect();
    if means.is_empty() {
        return 0.0;
    }
    means.sort_unstable_by(f64::total_cmp);
    let all = means.len() as f64;
    let below = all / 2.0 - 1.96 * (count * (count + 1.0) * (2.0 * count + 1.0) / 24.0).sqrt();
    let below = (below.max(0.0) as usize).min((means.len() - 1) / 2);
    (means[means.len() - 1 - below] - means[below]) / 2.0
}
