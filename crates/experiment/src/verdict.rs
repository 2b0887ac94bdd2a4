//! Conclusions from a study, and what it does not show.
//!
//! An arm is compared with the baseline block by block, by the logarithm of the ratio of their
//! values: a slow block is slow for both. The baseline runs twice in a block, and its two runs are never
//! averaged: a run of skewed noise less the mean of two others of the same noise is not centred on zero.
//! The two against each other are the control: what they differ by is noise.
//!
//! A race ([`crate::race`]) ends when its results say so, and a test for a size that was fixed before
//! would find too much. There the bets decide, the estimate is the median of the differences, and its
//! interval holds the shifts that the bets do not refute. With a number of blocks that was fixed before,
//! all three come from the aligned rank test ([`nodewise_stats::aligned`]), and a difference must also be
//! larger than [`SMALLEST_EFFECT`] and than the noise of the control. Where no difference was shown the
//! analysis says how large a change would have been shown with 80 % power.
//!
//! Nothing here knows time or processes: the same study gives the same verdict.

mod pairs;

use std::collections::BTreeMap;

use crate::executor::Arm;
use crate::fidelity::Fidelity;
pub use crate::race::ALPHA;
use crate::race::Out;
use crate::schedule::ArmId;
use crate::study::{Dropped, End, Study};
use nodewise_machine::order::CollectOrdered as _;
use nodewise_stats::Direction;
use nodewise_stats::power::blocks_needed;
use nodewise_stats::{Bootstrap, Interval, median, median_absolute_deviation};
use pairs::Pairs;

/// Without a race, differences smaller than this are not called one, however certain: it is about what
/// the order of a program's object files can do. In a race its margin takes this place: see
/// [`crate::race::Rules`].
pub const SMALLEST_EFFECT: f64 = 0.01;

/// How often the blocks are drawn again for an interval.
pub const RESAMPLES: u32 = 10_000;

/// The values of one arm, in the unit of the metric: seconds for time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    pub runs: usize,
    pub median: f64,
    /// Their median distance from it.
    pub deviation: f64,
    pub least: f64,
    pub most: f64,
}

impl Summary {
    fn from_values(values: &[f64]) -> Option<Self> {
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
    pub ratio: f64,
    /// The range that holds the true ratio with 95 % confidence; `None` where there are too few blocks for
    /// one.
    pub interval: Option<Interval>,
    /// The p value of this arm alone.
    pub p: f64,
    /// The p value with all statements of the study taken into account.
    pub adjusted_p: f64,
    /// In how many blocks both have a value.
    pub blocks: usize,
    /// The smallest true change that this study would have shown with 80 % power, as a share: 0.03 is 3 %.
    /// In a race at least its margin, below which it ends for the baseline. `None` where no change would
    /// have been.
    pub smallest_detectable: Option<f64>,
    /// How many blocks would show, with 80 % power and with runs that vary as these do, a true change of
    /// the race's margin; without a race of twice [`SMALLEST_EFFECT`].
    pub blocks_for_target: Option<u64>,
    /// Whether the arm is shown to differ from the baseline.
    pub is_shown: bool,
}

/// The conclusion about an arm.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It is what others are compared with.
    Baseline,
    /// Better than the baseline: faster, when time is what counts.
    Better,
    Worse,
    /// No difference was shown; which is not that there is none.
    NoDifference,
    /// There are not enough blocks to show any.
    TooFewRounds {
        /// In how many blocks there is something to compare.
        blocks: usize,
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
    pub verdict: Verdict,
}

/// A metric that is shown of an arm and decides nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Also {
    pub summary: Summary,
    /// The ratio to the baseline with its 95 % interval, which takes some blocks; `None` for the baseline
    /// itself, and where fewer than two blocks have both.
    pub ratio: Option<(f64, Option<Interval>)>,
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

/// The remedy.
#[derive(Clone, Debug, PartialEq)]
pub enum Advice {
    /// Use this arm: the best of those that are better than the baseline.
    Use {
        best: ArmId,
        /// Others that are better than the baseline and not shown to be worse than the best.
        as_good: Vec<ArmId>,
    },
    /// No arm is better than the baseline.
    Keep {
        worse: Vec<ArmId>,
        /// The largest of the smallest detectable changes of the arms that showed no difference, as a
        /// share: a gain below it can have been missed. `None` when all are worse.
        smallest_detectable: Option<f64>,
    },
    /// There are not enough blocks to say anything.
    TooFewRounds { blocks: u32, needed: u32 },
    /// The program does not work without any placement.
    BaselineFailed(Dropped),
    /// No arm could be compared.
    NothingToCompare,
}

/// Conclusions from a study.
#[derive(Clone, Debug, PartialEq)]
pub struct Analysis {
    /// The noise; `None` when fewer than two blocks hold both runs of the baseline.
    pub control: Option<Control>,
    /// The arms in the order of the plan, the baseline first.
    pub arms: Vec<ArmResult>,
    pub advice: Advice,
}

impl Analysis {
    /// Concludes from a study.
    pub fn from_study(study: &Study) -> Self {
        Self::with_resamples(study, RESAMPLES)
    }

    /// As [`Analysis::from_study`], with another number of resamples.
    pub fn with_resamples(study: &Study, resamples: u32) -> Self {
        let bootstrap = Bootstrap { resamples, confidence: 1.0 - ALPHA, seed: study.plan.seed };
        let fidelity = |arm: &Arm| Some((arm.id, study.fidelity(arm.id)?));
        let fidelity: BTreeMap<ArmId, Fidelity> = study.plan.arms().iter().filter_map(fidelity).collect_map();
        let strayed = |arm: &Arm| fidelity.get(&arm.id).filter(|fidelity| !fidelity.held(&arm.placement));
        let pairs = Pairs::from_study(study, |arm| strayed(arm).is_none());
        let control = pairs.control(&bootstrap);
        let effects = pairs.effects(control, &bootstrap);
        let needed = match study.plan.race {
            Some(_) => study.plan.rounds_needed(),
            None => blocks_needed(pairs.compared(), ALPHA),
        };
        // A race that is settled has said what it was to say.
        let enough = if study.race.settled.is_some() { 0 } else { needed };
        let direction = study.plan.metric.direction();
        let verdict = |arm: &Arm| match (study.dropped(arm.id), strayed(arm)) {
            (Some(dropped), _) => Verdict::Failed(dropped.clone()),
            (None, _) if arm.id.is_baseline() => Verdict::Baseline,
            (None, Some(strayed)) => Verdict::NotAsAsked(strayed.clone()),
            (None, None) => {
                let verdict = conclude(effects.get(&arm.id), pairs.blocks(arm.id), enough, direction);
                out_of_race(verdict, study.race.out(arm.id))
            }
        };
        let result = |arm: &Arm| {
            let values = study.measured(arm.id).filter_map(|record| record.run.value(&study.plan.metric));
            let failed = study.measured(arm.id).filter(|record| record.run.ending.is_failure());
            let also = study.plan.also.iter().map(|metric| pairs.also(arm.id, metric));
            ArmResult {
                arm: arm.id,
                summary: Summary::from_values(&values.collect::<Vec<_>>()),
                effect: effects.get(&arm.id).copied(),
                failures: failed.count(),
                fidelity: fidelity.get(&arm.id).cloned(),
                also: also.collect(),
                verdict: verdict(arm),
            }
        };
        let arms: Vec<ArmResult> = study.plan.arms().iter().map(result).collect();
        let advice = advise(study, &arms, &pairs, needed);
        Self { control, arms, advice }
    }

    /// The result of an arm; `None` for the id of another plan.
    pub fn arm(&self, id: ArmId) -> Option<&ArmResult> {
        self.arms.iter().find(|arm| arm.arm == id)
    }
}

/// Concludes from the `blocks` blocks that an arm shares with the baseline. A difference that is shown is
/// one, however few they are.
fn conclude(effect: Option<&Effect>, blocks: usize, needed: u32, direction: Direction) -> Verdict {
    match effect {
        Some(effect) if effect.is_shown && blocks > 0 => match (direction, effect.ratio < 1.0) {
            (Direction::LowerIsBetter, true) | (Direction::HigherIsBetter, false) => Verdict::Better,
            (Direction::LowerIsBetter, false) | (Direction::HigherIsBetter, true) => Verdict::Worse,
        },
        Some(_) if blocks >= needed as usize => Verdict::NoDifference,
        _ => Verdict::TooFewRounds { blocks, needed },
    }
}

/// An arm that dropped out is not called as good as the baseline for the few blocks it had.
fn out_of_race(verdict: Verdict, out: Option<&Out>) -> Verdict {
    match (verdict, out) {
        (Verdict::NoDifference | Verdict::TooFewRounds { .. }, Some(out)) => Verdict::Out(*out),
        (verdict, _) => verdict,
    }
}

fn advise(study: &Study, arms: &[ArmResult], pairs: &Pairs<'_>, needed: u32) -> Advice {
    if let End::BaselineFailed(dropped) = &study.end {
        return Advice::BaselineFailed(dropped.clone());
    }
    let with =
        |verdict: Verdict| -> Vec<&ArmResult> { arms.iter().filter(|arm| arm.verdict == verdict).collect() };
    let (better, worse, same) = (with(Verdict::Better), with(Verdict::Worse), with(Verdict::NoDifference));
    let better: Vec<&ArmResult> =
        better.into_iter().filter(|arm| study.race.out(arm.arm).is_none()).collect();
    let open = || simplest_of(&better, study, pairs);
    // A race that is settled for the baseline has shown that nothing gains more than the margin.
    let best = match study.race.settled {
        Some(settled) if settled.is_baseline() => None,
        Some(settled) if better.iter().any(|arm| arm.arm == settled) => Some(settled),
        _ => open(),
    };
    if let Some(best) = best {
        let as_good = |arm: &&&ArmResult| arm.arm != best && pairs.may_be_as_good(arm.arm, best);
        return Advice::Use { best, as_good: better.iter().filter(as_good).map(|arm| arm.arm).collect() };
    }
    if arms.iter().skip(1).all(|arm| has_nothing_to_compare(&arm.verdict)) {
        return Advice::NothingToCompare;
    }
    if worse.is_empty() && same.is_empty() && study.race.settled.is_none() {
        return Advice::TooFewRounds { blocks: study.blocks_begun(), needed };
    }
    let detectable = same.iter().filter_map(|arm| arm.effect?.smallest_detectable);
    Advice::Keep {
        worse: worse.iter().map(|arm| arm.arm).collect(),
        smallest_detectable: detectable.reduce(f64::max),
    }
}

/// Whether an arm gave no runs that can be compared.
fn has_nothing_to_compare(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Failed(_) | Verdict::NotAsAsked(_))
}

/// Of arms that are better than the baseline the simplest that is not shown to be worse than the one with
/// the best estimate; of several such the one with the best estimate.
fn simplest_of(better: &[&ArmResult], study: &Study, pairs: &Pairs<'_>) -> Option<ArmId> {
    let sign = match study.plan.metric.direction() {
        Direction::LowerIsBetter => 1.0,
        Direction::HigherIsBetter => -1.0,
    };
    let costs = better.iter().filter_map(|arm| Some((arm.arm, sign * arm.effect?.ratio)));
    let (best, _) = costs.clone().min_by(|(_, a), (_, b)| a.total_cmp(b))?;
    let things = |arm: ArmId| study.plan.things(study.plan.arm(arm));
    let as_good = costs.filter(|(arm, _)| *arm == best || pairs.may_be_as_good(*arm, best));
    let simplest = as_good.min_by(|(a, x), (b, y)| things(*a).cmp(&things(*b)).then(x.total_cmp(y)));
    simplest.map(|(arm, _)| arm)
}

#[cfg(test)]
mod simulated;
#[cfg(test)]
mod tests;
