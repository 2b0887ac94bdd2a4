//! Arms against the baseline, block by block.

use std::collections::BTreeMap;

use super::{ALPHA, Also, Control, Effect, Evidence, SMALLEST_EFFECT, Summary};
use crate::executor::Arm;
use crate::metric::Metric;
use crate::schedule::{ArmId, Block};
use crate::stats::anytime::{self, winsorized};
use crate::stats::multiple::holm;
use crate::stats::power::{blocks_for, smallest_detectable};
use crate::stats::signed_rank::signed_rank;
use crate::stats::{Bootstrap, Interval, hodges_lehmann, mean};
use crate::study::Study;

/// Logarithms of the values, by arm and block.
pub(super) struct Pairs {
    first: BTreeMap<Block, f64>,
    second: BTreeMap<Block, f64>,
    /// The mean of the baseline's values in a block; one of them where the other run failed.
    baseline: BTreeMap<Block, f64>,
    /// The arms that were not given up and whose treatment held.
    arms: BTreeMap<ArmId, BTreeMap<Block, f64>>,
    /// Whether results decided how many blocks there are.
    is_race: bool,
}

impl Pairs {
    /// The pairs of a study, of the arms whose treatment held.
    pub fn of(study: &Study, held: impl Fn(&Arm) -> bool) -> Self {
        let run = |replicate| -> BTreeMap<Block, f64> {
            let values = study.values(ArmId::BASELINE, replicate);
            values.into_iter().map(|(block, value)| (block, value.ln())).collect()
        };
        let kept = study.plan.treatments().iter().filter(|arm| study.dropped(arm.id).is_none() && held(arm));
        Self {
            first: run(0),
            second: run(1),
            baseline: study.logarithms(ArmId::BASELINE),
            arms: kept.map(|arm| (arm.id, study.logarithms(arm.id))).collect(),
            is_race: study.plan.race.is_some(),
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

    /// Whether two arms may be equal as far as the blocks that have both can say.
    pub fn may_be_equal(&self, a: ArmId, b: ArmId, bootstrap: &Bootstrap) -> bool {
        let (Some(a), Some(b)) = (self.arms.get(&a), self.arms.get(&b)) else { return false };
        self.centre(&differences(a, b), bootstrap).is_some_and(|(_, interval)| interval.contains(0.0))
    }

    /// The baseline's two runs against each other; `None` when fewer than two blocks hold both.
    pub fn control(&self, bootstrap: &Bootstrap) -> Option<Control> {
        let differences = differences(&self.first, &self.second);
        let (centre, interval) = self.centre(&differences, bootstrap)?;
        Some(Control {
            ratio: centre.exp(),
            interval: interval.map(f64::exp),
            noise: interval.half_width().exp_m1(),
            blocks: differences.len(),
        })
    }

    fn centre(&self, differences: &[f64], bootstrap: &Bootstrap) -> Option<(f64, Interval)> {
        centre(differences, self.is_race, bootstrap)
    }

    /// What the differences of one arm say by themselves.
    fn raw(&self, differences: &[f64], bootstrap: &Bootstrap) -> Option<Raw> {
        let (estimate, interval) = self.centre(differences, bootstrap)?;
        let p = if self.is_race {
            anytime::Evidence::of(&winsorized(differences)?)?.p()
        } else {
            signed_rank(differences)?.p
        };
        Some(Raw { estimate, interval, p, blocks: differences.len() })
    }

    /// The effects of all arms that have at least two pairs: they belong together, for each one's
    /// p value is adjusted for the others.
    pub fn effects(&self, bootstrap: &Bootstrap, control: Option<Control>) -> BTreeMap<ArmId, Effect> {
        let floor = SMALLEST_EFFECT.max(control.map_or(0.0, |control| control.noise)).ln_1p();
        let raw: Vec<(ArmId, Raw)> = self
            .arms
            .iter()
            .filter_map(|(arm, values)| {
                // An arm's resamples depend on nothing but the seed and its own number.
                let seed = bootstrap.seed.wrapping_add(u64::from(arm.number()));
                let differences = differences(values, &self.baseline);
                Some((*arm, self.raw(&differences, &Bootstrap { seed, ..*bootstrap })?))
            })
            .collect();
        let adjusted = holm(&raw.iter().map(|(_, raw)| raw.p).collect::<Vec<_>>());
        let compared = raw.len();
        let finish =
            |((arm, raw), adjusted): ((ArmId, Raw), f64)| (arm, raw.effect(adjusted, compared, floor));
        raw.into_iter().zip(adjusted).map(finish).collect()
    }

    /// A metric of an arm that decides nothing, against the baseline where the two are compared; `None` when
    /// no run gave a value.
    pub fn also(&self, study: &Study, arm: ArmId, metric: &Metric, bootstrap: &Bootstrap) -> Option<Also> {
        let values: Vec<f64> = study.measured(arm).filter_map(|record| record.run.also(metric)).collect();
        let summary = Summary::of(&values)?;
        let logarithms = |arm| study.logarithms_of(arm, |run| run.also(metric));
        let ratio = self.has(arm).then(|| differences(&logarithms(arm), &logarithms(ArmId::BASELINE)));
        let centre = ratio.and_then(|ratio| self.centre(&ratio, bootstrap));
        Some(Also { summary, ratio: centre.map(|(ratio, interval)| (ratio.exp(), interval.map(f64::exp))) })
    }
}

/// What one arm's differences say by themselves, in logarithms.
struct Raw {
    estimate: f64,
    interval: Interval,
    p: f64,
    blocks: usize,
}

impl Raw {
    fn effect(self, adjusted_p: f64, compared: usize, floor: f64) -> Effect {
        // The interval is about as wide as one of the normal distribution would be.
        let standard_error = self.interval.half_width() / 1.96;
        let detectable = smallest_detectable(standard_error, self.blocks, compared, ALPHA, floor);
        Effect {
            ratio: self.estimate.exp(),
            interval: self.interval.map(f64::exp),
            p: self.p,
            adjusted_p,
            blocks: self.blocks,
            smallest_detectable: detectable.exp_m1(),
            blocks_for_smallest: blocks_for(
                SMALLEST_EFFECT.ln_1p(),
                standard_error * (self.blocks as f64).sqrt(),
                compared,
                ALPHA,
            ),
            evidence: Evidence {
                interval_excludes_one: !self.interval.contains(0.0),
                significant: adjusted_p < ALPHA,
                beyond_noise: self.estimate.abs() > floor,
            },
        }
    }
}

/// Where differences lie, and the interval. In a race both are of the values that it decides by.
fn centre(differences: &[f64], is_race: bool, bootstrap: &Bootstrap) -> Option<(f64, Interval)> {
    if is_race {
        let near = winsorized(differences)?;
        let mean_of = |resample: &[f64]| resample.iter().sum::<f64>() / resample.len() as f64;
        Some((mean(&near)?, bootstrap.interval(&near, mean_of)?))
    } else {
        Some((hodges_lehmann(differences)?, bootstrap.hodges_lehmann(differences)?))
    }
}

/// The differences of two arms in the blocks in which both have a value.
fn differences(arm: &BTreeMap<Block, f64>, reference: &BTreeMap<Block, f64>) -> Vec<f64> {
    arm.iter().filter_map(|(block, value)| Some(value - reference.get(block)?)).collect()
}
