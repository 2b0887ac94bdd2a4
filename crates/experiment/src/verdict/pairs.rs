//! Arms against the baseline, block by block.

use std::collections::BTreeMap;

use super::{ALPHA, Also, Control, Effect, SMALLEST_EFFECT, Summary};
use crate::detectable::{self, Rules};
use crate::executor::Arm;
use crate::metric::Metric;
use crate::race::{Race, differences};
use crate::schedule::{ArmId, Block};
use crate::study::Study;
use nodewise_machine::order::CollectOrdered as _;
use nodewise_stats::Direction;
use nodewise_stats::aligned::{self, Aligned, aligned_rank};
use nodewise_stats::detection::Detection;
use nodewise_stats::multiple::holm;
use nodewise_stats::power::{blocks_for, blocks_needed};
use nodewise_stats::signed_rank::signed_rank;
use nodewise_stats::{Bootstrap, Interval, betting, hodges_lehmann, median};

/// How strongly the bets must speak against a shift before it lies outside the interval of an arm in a
/// race. Among studies of all noises in which an arm was named, after the race ended for it, the interval
/// so held the true median difference in 93 to 97 of 100: `cargo xtask stats` prints how often.
const AGAINST: f64 = 5.0;

/// Logarithms of the values of runs, by block.
type Logarithms = BTreeMap<Block, Vec<f64>>;

/// Logarithms of the values, by arm and block.
pub(super) struct Pairs<'a> {
    study: &'a Study,
    first: BTreeMap<Block, f64>,
    second: BTreeMap<Block, f64>,
    baseline: Logarithms,
    /// The arms that were not given up and whose treatment held.
    arms: BTreeMap<ArmId, Logarithms>,
    /// The bets, where the study is a race: results decided how many blocks there are.
    race: Option<Race>,
}

impl<'a> Pairs<'a> {
    /// The pairs of a study, of the arms whose treatment held.
    pub fn from_study(study: &'a Study, held: impl Fn(&Arm) -> bool) -> Self {
        let run = |replicate| -> BTreeMap<Block, f64> {
            let values = study.values(ArmId::BASELINE, replicate);
            values.into_iter().map(|(block, value)| (block, value.ln())).collect()
        };
        let kept = study.plan.treatments().iter().filter(|arm| study.dropped(arm.id).is_none() && held(arm));
        Self {
            study,
            first: run(0),
            second: run(1),
            baseline: study.logarithms(ArmId::BASELINE),
            arms: kept.map(|arm| (arm.id, study.logarithms(arm.id))).collect_map(),
            race: Race::from_study(study),
        }
    }

    /// How many arms are compared with the baseline.
    pub fn compared(&self) -> usize {
        self.arms.len()
    }

    /// Whether an arm is one of them.
    fn has(&self, arm: ArmId) -> bool {
        self.arms.contains_key(&arm)
    }

    /// In how many blocks an arm can be compared with the baseline.
    pub fn blocks(&self, arm: ArmId) -> usize {
        self.arms.get(&arm).map_or(0, |values| differences(values, &self.baseline).len())
    }

    /// Whether an arm is not shown to be worse than another.
    pub fn may_be_as_good(&self, arm: ArmId, other: ArmId) -> bool {
        if let Some(race) = &self.race {
            return !race.costs_more(arm, other);
        }
        let (Some(a), Some(b)) = (self.arms.get(&arm), self.arms.get(&other)) else { return false };
        signed_rank(&differences(a, b).concat()).is_some_and(|test| test.p >= ALPHA)
    }

    /// The baseline's two runs against each other; `None` when fewer than two blocks hold both.
    pub fn control(&self, bootstrap: &Bootstrap) -> Option<Control> {
        let both = self.first.iter().filter_map(|(block, value)| Some(value - self.second.get(block)?));
        let differences: Vec<f64> = both.collect();
        let (centre, interval) = (hodges_lehmann(&differences)?, bootstrap.hodges_lehmann(&differences)?);
        Some(Control {
            ratio: centre.exp(),
            interval: interval.map(f64::exp),
            noise: interval.half_width().exp_m1(),
            blocks: differences.len(),
        })
    }

    /// The effects of all arms that have at least two pairs: they belong together, for each one's p value
    /// is adjusted for the others.
    pub fn effects(&self, control: Option<Control>, bootstrap: &Bootstrap) -> BTreeMap<ArmId, Effect> {
        let rules = Rules {
            // Holm's first step, which a single difference has to pass.
            level: ALPHA / self.compared().max(1) as f64,
            least: SMALLEST_EFFECT.ln_1p(),
            noise: control.map_or(0.0, |control| control.noise.ln_1p()),
            is_widest: false,
            interval: None,
        };
        match &self.race {
            Some(race) => self.effects_of_race(race),
            None => self.effects_of_fixed(&rules, bootstrap),
        }
    }

    /// In a race: the median of the differences, and the bets.
    fn effects_of_race(&self, race: &Race) -> BTreeMap<ArmId, Effect> {
        // The power is that of a gain: a race ends before it has shown how much slower something is.
        let gain = match self.study.plan.metric.direction() {
            Direction::LowerIsBetter => -1.0,
            Direction::HigherIsBetter => 1.0,
        };
        let effect = |(arm, values): (&ArmId, &Logarithms)| {
            let rounds = differences(values, &self.baseline);
            let (estimate, interval) = self.centre(&rounds)?;
            let (p, adjusted_p) = race.p(*arm, ArmId::BASELINE);
            let margin = self.study.plan.race?.margin;
            let level = race.shares().costs_more(*arm, ArmId::BASELINE);
            let gains: Vec<Vec<f64>> = rounds
                .iter()
                .map(|round| round.iter().map(|difference| gain * difference).collect())
                .collect();
            let detection = Detection::new(&gains, gain * estimate, level);
            let planned = self.study.rounds.unwrap_or(0).max(self.study.blocks_begun());
            let shown = race.costs_more(*arm, ArmId::BASELINE) || race.costs_more(ArmId::BASELINE, *arm);
            let detectable = detection.smallest(planned).map(|shift| shift.exp_m1().max(margin));
            Some((
                *arm,
                Effect {
                    ratio: estimate.exp(),
                    interval: interval.map(|interval| interval.map(f64::exp)),
                    p,
                    adjusted_p,
                    blocks: rounds.len(),
                    smallest_detectable: detectable,
                    blocks_for_target: detection.rounds_for(margin.ln_1p()).map(u64::from),
                    is_shown: shown,
                },
            ))
        };
        self.arms.iter().filter_map(effect).collect_map()
    }

    /// With a fixed number of blocks: aligned ranks, and Holm's adjustment.
    fn effects_of_fixed(&self, rules: &Rules, bootstrap: &Bootstrap) -> BTreeMap<ArmId, Effect> {
        let raw = |(arm, values): (&ArmId, &Logarithms)| {
            let blocks = aligned_blocks(values, &self.baseline);
            let p = aligned_rank(&blocks).filter(|_| blocks.len() > 1)?;
            Some((*arm, p, blocks))
        };
        let raw: Vec<(ArmId, f64, Vec<Aligned>)> = self.arms.iter().filter_map(raw).collect();
        let adjusted = holm(&raw.iter().map(|(_, p, _)| *p).collect::<Vec<_>>());
        let compared = raw.len();
        let effect = |((arm, p, blocks), adjusted_p): (&(ArmId, f64, Vec<Aligned>), f64)| {
            Some((*arm, fixed_effect([*p, adjusted_p], blocks, compared, rules, bootstrap)?))
        };
        raw.iter().zip(adjusted).filter_map(effect).collect_map()
    }

    /// Where differences lie, by round, and the interval: what the bets of a race, or the aligned ranks,
    /// do not reject.
    fn centre(&self, rounds: &[Vec<f64>]) -> Option<(f64, Option<Interval>)> {
        if rounds.len() < 2 {
            return None;
        }
        Some((median(&rounds.concat())?, betting::interval(rounds, AGAINST)))
    }

    /// A metric of an arm that decides nothing, against the baseline where the two are compared; `None` when
    /// no run gave a value.
    pub fn also(&self, arm: ArmId, metric: &Metric) -> Option<Also> {
        let study = self.study;
        let values: Vec<f64> = study.measured(arm).filter_map(|record| record.run.also(metric)).collect();
        let summary = Summary::from_values(&values)?;
        let logarithms = |arm| study.logarithms_of(arm, |run| run.also(metric));
        let ratio = self.has(arm).then(|| differences(&logarithms(arm), &logarithms(ArmId::BASELINE)));
        let centre = ratio.and_then(|rounds| self.centre(&rounds));
        Some(Also {
            summary,
            ratio: centre
                .map(|(ratio, interval)| (ratio.exp(), interval.map(|interval| interval.map(f64::exp)))),
        })
    }
}

/// The effect of an arm of a design with a fixed number of blocks, from its p value and the adjusted one.
fn fixed_effect(
    [p, adjusted_p]: [f64; 2],
    blocks: &[Aligned],
    compared: usize,
    rules: &Rules,
    bootstrap: &Bootstrap,
) -> Option<Effect> {
    let estimate = aligned::shift(blocks)?;
    let interval = aligned::interval(blocks, 1.0 - ALPHA);
    let detectable = detectable::of_blocks(blocks, rules, bootstrap.resamples, bootstrap.seed);
    // The interval is about as wide as one of the normal distribution would be.
    let deviation = interval.map(|interval| interval.half_width() / 1.96 * (blocks.len() as f64).sqrt());
    let target = (2.0 * SMALLEST_EFFECT).ln_1p();
    Some(Effect {
        ratio: estimate.exp(),
        interval: interval.map(|interval| interval.map(f64::exp)),
        p,
        adjusted_p,
        blocks: blocks.len(),
        smallest_detectable: detectable.map(f64::exp_m1),
        blocks_for_target: deviation
            .and_then(|deviation| blocks_for(target, deviation, compared, ALPHA, SMALLEST_EFFECT.ln_1p())),
        is_shown: blocks.len() >= blocks_needed(compared, ALPHA) as usize
            && adjusted_p < ALPHA
            && interval.is_some_and(|interval| !interval.contains(0.0))
            && estimate.abs() > rules.least.max(rules.noise),
    })
}

/// The blocks that hold an arm and the baseline.
fn aligned_blocks(arm: &Logarithms, baseline: &Logarithms) -> Vec<Aligned> {
    let both = arm.iter().filter_map(|(block, runs)| Some((*runs.first()?, baseline.get(block)?.clone())));
    both.map(|(run, others)| Aligned { run, others }).collect()
}
