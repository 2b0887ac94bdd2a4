//! What a study shows, and what it does not.
//!
//! An arm is compared with the baseline block by block, by the logarithm of the ratio of their
//! values: a slow block is slow for both. Of the baseline's two runs in a block the mean of the
//! logarithms counts, which brings in half the noise of one of them: among four arms in the recorded
//! series it finds an effect of 5 % in 84 % of studies of 20 blocks, one run alone in 76 %, with as
//! few false alarms. The two against each other are the control: what they differ by is noise.
//!
//! The estimate is the Hodges-Lehmann median of these differences, its interval a bootstrap over
//! blocks, its p value the signed-rank test's. A difference is called one only when three things
//! agree (see [`Evidence`]); else the word is that none was shown, with the size of what could have
//! been seen.
//!
//! A race ([`crate::race`]) ends when its results say so, and a test for a size that was fixed before
//! would find too much: there the p value is that of [`crate::stats::anytime`].
//!
//! Nothing here knows time or processes: the same study gives the same verdict.

mod pairs;

use std::collections::BTreeMap;

use crate::executor::Arm;
use crate::fidelity::Fidelity;
use crate::metric::Direction;
use crate::race::Out;
use crate::schedule::ArmId;
use crate::stats::power::blocks_needed;
use crate::stats::{Bootstrap, Interval, median, median_absolute_deviation};
use crate::study::{Dropped, End, Study};
use pairs::Pairs;

/// The chance of calling any difference one in a study in which there is none.
pub const ALPHA: f64 = 0.05;

/// Differences smaller than this are not called one, however certain: nobody changes how a program
/// is started for less, and it is about what the order of its object files can do.
pub const SMALLEST_EFFECT: f64 = 0.01;

/// How often the blocks are drawn again for an interval.
pub const RESAMPLES: u32 = 10_000;

/// The values of one arm, in the unit of the metric: seconds for time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// How many there are.
    pub runs: usize,
    /// Their median.
    pub median: f64,
    /// Their median distance from it.
    pub deviation: f64,
    /// The smallest.
    pub least: f64,
    /// The largest.
    pub most: f64,
}

impl Summary {
    fn of(values: &[f64]) -> Option<Self> {
        Some(Self {
            runs: values.len(),
            median: median(values)?,
            deviation: median_absolute_deviation(values)?,
            least: values.iter().copied().min_by(f64::total_cmp)?,
            most: values.iter().copied().max_by(f64::total_cmp)?,
        })
    }
}

/// The difference between an arm and the baseline, as a ratio of the two: 0.87 is 13 % less.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effect {
    /// The estimate.
    pub ratio: f64,
    /// The range that holds the true ratio with 95 % confidence.
    pub interval: Interval,
    /// The p value of this arm alone.
    pub p: f64,
    /// The p value with the number of comparisons taken into account.
    pub adjusted_p: f64,
    /// In how many blocks both have a value.
    pub blocks: usize,
    /// The smallest true change that a study like this finds four times in five, as a share: 0.03
    /// is 3 %.
    pub smallest_detectable: f64,
    /// How many blocks would find a true change of [`SMALLEST_EFFECT`] four times in five, with what the
    /// runs of this study vary.
    pub blocks_for_smallest: Option<u64>,
    /// What speaks for a difference.
    pub evidence: Evidence,
}

/// The three things that must agree before a difference is called one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The interval does not hold the ratio 1.
    pub interval_excludes_one: bool,
    /// The adjusted p value is below [`ALPHA`], or a race was settled for this arm.
    pub significant: bool,
    /// The estimate is farther from 1 than [`SMALLEST_EFFECT`] and than the noise of the control.
    pub beyond_noise: bool,
}

impl Evidence {
    /// Whether they agree.
    pub fn agrees(&self) -> bool {
        self.interval_excludes_one && self.significant && self.beyond_noise
    }
}

/// What is concluded about an arm.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It is what others are compared with.
    Baseline,
    /// Better than the baseline: faster, when time is what counts.
    Better,
    /// Worse than the baseline.
    Worse,
    /// No difference was shown; which is not that there is none.
    NoDifference,
    /// There are not enough blocks to show any.
    TooFewRounds {
        /// In how many blocks there is something to compare.
        blocks: usize,
        /// How many it takes.
        needed: u32,
    },
    /// It dropped out of the race as worse than another arm before it was known how it compares with
    /// the baseline.
    Out(Out),
    /// The program did not run as the arm asks: nothing can be said about it.
    NotAsAsked(Fidelity),
    /// The program does not work under it.
    Failed(Dropped),
}

/// The result of one arm.
#[derive(Clone, Debug, PartialEq)]
pub struct ArmResult {
    /// The arm.
    pub arm: ArmId,
    /// Its values; `None` when no run of it gave one.
    pub summary: Option<Summary>,
    /// Its difference from the baseline; `None` for the baseline itself, and where fewer than two
    /// blocks have both.
    pub effect: Option<Effect>,
    /// Runs in measured blocks that failed.
    pub failures: usize,
    /// How far it ran as it asks; `None` when nothing is asked for, or nothing was seen of it.
    pub fidelity: Option<Fidelity>,
    /// The metrics that decide nothing, in the order of the plan.
    pub also: Vec<Option<Also>>,
    /// What is concluded.
    pub verdict: Verdict,
}

/// A metric that is shown of an arm and decides nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Also {
    /// Its values.
    pub summary: Summary,
    /// The ratio to the baseline with its 95 % interval; `None` for the baseline itself, and where fewer
    /// than two blocks have both.
    pub ratio: Option<(f64, Interval)>,
}

/// The baseline against itself: what this machine's noise looks like today.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Control {
    /// The ratio between its two runs in a block.
    pub ratio: f64,
    /// The range that holds the true ratio, which is 1, with 95 % confidence.
    pub interval: Interval,
    /// Half the width of that range, as a share: differences below it are noise.
    pub noise: f64,
    /// In how many blocks both runs have a value.
    pub blocks: usize,
}

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Advice {
    /// Use this arm: the best of those that are better than the baseline.
    Use {
        /// It.
        best: ArmId,
        /// Others that are better than the baseline and not shown to be worse than the best.
        as_good: Vec<ArmId>,
    },
    /// No arm is better than the baseline.
    Keep {
        /// Those that are worse.
        worse: Vec<ArmId>,
        /// The largest of the smallest detectable changes of the arms that showed no difference, as a
        /// share: a gain below it can have been missed. `None` when all are worse.
        smallest_detectable: Option<f64>,
    },
    /// There are not enough blocks to say anything.
    TooFewRounds {
        /// How many were measured.
        blocks: u32,
        /// How many it takes.
        needed: u32,
    },
    /// The program does not work without any placement.
    BaselineFailed(Dropped),
    /// No arm could be compared.
    NothingToCompare,
}

/// What a study shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Analysis {
    /// The noise; `None` when fewer than two blocks hold both runs of the baseline.
    pub control: Option<Control>,
    /// The arms in the order of the plan, the baseline first.
    pub arms: Vec<ArmResult>,
    /// What to do.
    pub advice: Advice,
}

impl Analysis {
    /// Concludes from a study.
    pub fn of(study: &Study) -> Self {
        Self::with_resamples(study, RESAMPLES)
    }

    /// As [`Analysis::of`], with another number of resamples.
    pub fn with_resamples(study: &Study, resamples: u32) -> Self {
        let bootstrap = Bootstrap { resamples, confidence: 1.0 - ALPHA, seed: study.plan.seed };
        let fidelity = |arm: &Arm| Some((arm.id, study.fidelity(arm.id)?));
        let fidelity: BTreeMap<ArmId, Fidelity> = study.plan.arms().iter().filter_map(fidelity).collect();
        let strayed = |arm: &Arm| fidelity.get(&arm.id).filter(|fidelity| !fidelity.held(&arm.placement));
        let pairs = Pairs::of(study, |arm| strayed(arm).is_none());
        let control = pairs.control(&bootstrap);
        let mut effects = pairs.effects(&bootstrap, control);
        // A race that is settled for another arm has shown the baseline to be worse, in one of its
        // looks; the values that came afterwards may say so less clearly.
        let alone = study.race.crossed.as_ref().map(|crossed| crossed.best);
        for best in study.race.settled.into_iter().chain(alone).filter(|best| !best.is_baseline()) {
            if let Some(effect) = effects.get_mut(&best) {
                effect.evidence.significant = true;
            }
        }
        let needed = match study.plan.race {
            Some(rules) => rules.first_look,
            None => blocks_needed(pairs.compared(), ALPHA),
        };
        let direction = study.plan.metric.direction();
        let verdict = |arm: &Arm| match (study.dropped(arm.id), strayed(arm)) {
            (Some(dropped), _) => Verdict::Failed(dropped.clone()),
            (None, _) if arm.id.is_baseline() => Verdict::Baseline,
            (None, Some(strayed)) => Verdict::NotAsAsked(strayed.clone()),
            (None, None) => {
                let verdict = conclude(effects.get(&arm.id), pairs.blocks(arm.id), needed, direction);
                out_of_race(verdict, study.race.out(arm.id))
            }
        };
        let result = |arm: &Arm| {
            let values = study.measured(arm.id).filter_map(|record| record.run.value(&study.plan.metric));
            let failed = study.measured(arm.id).filter(|record| record.run.ending.is_failure());
            let also = study.plan.also.iter().map(|metric| pairs.also(study, arm.id, metric, &bootstrap));
            ArmResult {
                arm: arm.id,
                summary: Summary::of(&values.collect::<Vec<_>>()),
                effect: effects.get(&arm.id).copied(),
                failures: failed.count(),
                fidelity: fidelity.get(&arm.id).cloned(),
                also: also.collect(),
                verdict: verdict(arm),
            }
        };
        let arms: Vec<ArmResult> = study.plan.arms().iter().map(result).collect();
        let advice = advise(study, &arms, &pairs, &bootstrap, needed);
        Self { control, arms, advice }
    }

    /// The result of an arm; `None` for the id of another plan.
    pub fn arm(&self, id: ArmId) -> Option<&ArmResult> {
        self.arms.iter().find(|arm| arm.arm == id)
    }
}

/// What `blocks` blocks that an arm shares with the baseline say about it.
fn conclude(effect: Option<&Effect>, blocks: usize, needed: u32, direction: Direction) -> Verdict {
    let Some(effect) = effect.filter(|_| blocks >= needed as usize) else {
        return Verdict::TooFewRounds { blocks, needed };
    };
    if !effect.evidence.agrees() {
        return Verdict::NoDifference;
    }
    match (direction, effect.ratio < 1.0) {
        (Direction::LowerIsBetter, true) | (Direction::HigherIsBetter, false) => Verdict::Better,
        (Direction::LowerIsBetter, false) | (Direction::HigherIsBetter, true) => Verdict::Worse,
    }
}

/// An arm that dropped out is not said to be as good as the baseline for the few blocks it had.
fn out_of_race(verdict: Verdict, out: Option<&Out>) -> Verdict {
    match (verdict, out) {
        (Verdict::NoDifference | Verdict::TooFewRounds { .. }, Some(out)) => Verdict::Out(*out),
        (verdict, _) => verdict,
    }
}

fn advise(study: &Study, arms: &[ArmResult], pairs: &Pairs, bootstrap: &Bootstrap, needed: u32) -> Advice {
    if let End::BaselineFailed(dropped) = &study.end {
        return Advice::BaselineFailed(dropped.clone());
    }
    let with =
        |verdict: Verdict| -> Vec<&ArmResult> { arms.iter().filter(|arm| arm.verdict == verdict).collect() };
    let (better, worse, same) = (with(Verdict::Better), with(Verdict::Worse), with(Verdict::NoDifference));
    let better: Vec<&ArmResult> =
        better.into_iter().filter(|arm| study.race.out(arm.arm).is_none()).collect();
    let settled = study.race.settled.filter(|best| better.iter().any(|arm| arm.arm == *best));
    if let Some(best) = settled.or_else(|| best_of(&better, study.plan.metric.direction())) {
        let as_good = |arm: &&&ArmResult| arm.arm != best && pairs.may_be_equal(arm.arm, best, bootstrap);
        return Advice::Use { best, as_good: better.iter().filter(as_good).map(|arm| arm.arm).collect() };
    }
    if arms.iter().skip(1).all(|arm| has_nothing_to_compare(&arm.verdict)) {
        return Advice::NothingToCompare;
    }
    if worse.is_empty() && same.is_empty() && study.race.settled.is_none() {
        return Advice::TooFewRounds { blocks: study.blocks_begun(), needed };
    }
    let detectable = same.iter().filter_map(|arm| Some(arm.effect?.smallest_detectable));
    Advice::Keep {
        worse: worse.iter().map(|arm| arm.arm).collect(),
        smallest_detectable: detectable.reduce(f64::max),
    }
}

/// Whether an arm gave no runs that can be compared.
fn has_nothing_to_compare(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Failed(_) | Verdict::NotAsAsked(_))
}

/// The arm whose estimate lies farthest on the better side.
fn best_of(arms: &[&ArmResult], direction: Direction) -> Option<ArmId> {
    let ratios = arms.iter().filter_map(|arm| Some((arm.arm, arm.effect?.ratio)));
    let best = match direction {
        Direction::LowerIsBetter => ratios.min_by(|(_, a), (_, b)| a.total_cmp(b)),
        Direction::HigherIsBetter => ratios.max_by(|(_, a), (_, b)| a.total_cmp(b)),
    };
    best.map(|(arm, _)| arm)
}

#[cfg(test)]
mod tests;
