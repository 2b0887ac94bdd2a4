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

/// How many times narrower than the width of the rules the one seen beside it may be.
const FARTHEST_APART: f64 = 10.0;

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
    let farthest = pool
        .iter()
        .map(|round| round.0)
        .fold([f64::INFINITY, f64::NEG_INFINITY], |ends, value| [ends[0].min(value), ends[1].max(value)]);
    smallest(&seen, &drawn, rules, farthest[1] - farthest[0])
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
    smallest(&seen, &drawn, &Rules { interval: None, ..*rules }, farthest(&centred))
}

/// Twice the largest difference within a block.
fn farthest(blocks: &[Aligned]) -> f64 {
    let differences = blocks.iter().flat_map(|block| {
        let others = block.others.iter();
        let run = others.clone().map(|other| (block.run - other).abs());
        run.chain(others.zip(block.others.iter().skip(1)).map(|(one, other)| (one - other).abs()))
    });
    2.0 * differences.fold(0.0, f64::max)
}

/// A width of a repetition, in terms of the one that the rules have and the one seen beside it.
///
/// Both are half widths of intervals of the same values. Where values repeat, one of the two can be zero, or as small
/// as the last digits of its sums: then the width of the rules stands in every repetition.
fn width(drawn: f64, seen: f64, of_rules: f64) -> f64 {
    if seen * FARTHEST_APART > of_rules { drawn * (of_rules / seen) } else { of_rules }
}

/// The smallest change, which is at most `farthest`.
fn smallest(seen: &Look, drawn: &[Look], rules: &Rules, farthest: f64) -> Option<f64> {
    let seen_width = (seen.interval[1] - seen.interval[0]) / 2.0;
    // How far from zero an estimate must lie, below and above.
    let bars = |look: &Look| -> [f64; 2] {
        let floor = rules.least.max(width(look.spread, seen.spread, rules.noise));
        [0, 1].map(|side| {
            let test = (look.test[side] - look.estimate).abs();
            let interval = rules.interval.map_or(0.0, |interval| {
                width((look.interval[side] - look.estimate).abs(), seen_width, interval.half_width())
            });
            test.max(interval).max(floor)
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
    let stated = (!ratios.is_empty()).then(|| quantile_of_sorted(&ratios, POWER) * unit(seen))?;
    // Farther than that no estimate needs to be: every run is then beyond all that it is compared with.
    let stated = stated.min(farthest + rules.least.max(rules.noise));
    stated.is_finite().then_some(stated)
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

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_stats::Bootstrap;

    /// Rules as a study has them for the differences of two equal runs.
    fn rules(same: &[f64]) -> Rules {
        let bootstrap = Bootstrap { resamples: 1000, confidence: 0.95, seed: 1 };
        let noise = bootstrap.hodges_lehmann(same).map_or(0.0, |interval| interval.half_width());
        Rules { level: 0.05 / 3.0, least: 0.01f64.ln_1p(), noise, is_widest: false, interval: None }
    }

    /// The changes stated in 100 studies of equal runs whose logarithms these values have.
    fn stated(rounds: usize, draw: impl Fn(&mut Random) -> f64) -> Vec<f64> {
        let mut random = Random::new(7);
        let studies = (0..100).filter_map(|seed| {
            let mut run = || draw(&mut random);
            let blocks: Vec<Aligned> =
                (0..rounds).map(|_| Aligned { run: run(), others: vec![run(), run()] }).collect();
            let same: Vec<f64> = blocks.iter().map(|block| block.others[1] - block.others[0]).collect();
            of_blocks(&blocks, &rules(&same), 400, seed)
        });
        studies.collect()
    }

    // A spread of repeated values is zero but for the last digits, and the noise divided by it is anything.
    #[test]
    fn no_change_beyond_what_runs_differ_by_is_stated_where_values_repeat() {
        let ties = stated(20, |random| match random.index(10) {
            0 => 10.5f64.ln(),
            1 => 9.5f64.ln(),
            _ => 10.0f64.ln(),
        });
        assert!(ties.len() > 90, "{}", ties.len());
        assert!(ties.iter().all(|change| (0.009..0.25).contains(change)), "{ties:?}");
        // One run in ten takes three times as long: few rounds see none of these, or several.
        let rare = stated(7, |random| if random.index(10) == 0 { 30f64.ln() } else { 10f64.ln() });
        assert!(rare.len() > 90, "{}", rare.len());
        assert!(rare.iter().all(|change| (0.009..3.0).contains(change)), "{rare:?}");
    }

    #[test]
    fn samples_of_repeated_values_state_no_change_beyond_what_runs_differ_by() {
        let mut random = Random::new(3);
        for seed in 0..200 {
            let mut draw = || -> Vec<f64> {
                let value = |random: &mut Random| if random.index(10) == 9 { 30f64.ln() } else { 10f64.ln() };
                (0..5).map(|_| value(&mut random)).collect()
            };
            let (before, after, same) = (draw(), draw(), [draw(), draw()]);
            let same: Vec<f64> = same[0].iter().zip(&same[1]).map(|(one, other)| one - other).collect();
            let bootstrap = Bootstrap { resamples: 500, confidence: 0.95, seed };
            let rules = Rules { interval: bootstrap.hodges_lehmann(&same), ..rules(&same) };
            let sample = |values| Sample { values, same: &same };
            let change = of_samples(sample(&before), sample(&after), &rules, seed);
            // All values are three times apart, and so is the noise at most.
            assert!(change.is_none_or(|change| (0.009..2.2).contains(&change)), "{change:?}");
        }
    }
}
