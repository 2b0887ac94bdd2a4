//! The race: arms that are worse beyond doubt drop out, the others go on until the best is known.
//!
//! After every block each arm is compared with the leader, and the leader with each arm, in the
//! blocks that have both, by the logarithm of the ratio of their values:
//!
//! - An arm drops out when it is worse than the leader beyond doubt.
//! - The race is settled when one arm is within a margin of every other beyond doubt. That arm is the
//!   baseline when it is still in: nobody should change how a program is started for less than the
//!   margin. Else it is the leader.
//!
//! A race that is settled for another arm than the baseline may go on with crosses: see [`crossing`].
//!
//! "Beyond doubt" is an e-value ([`crate::stats::anytime`]), which may be looked at after every
//! block. Each of the two kinds of comparisons has half of the error, divided among the arms that the
//! true best could be compared with. So with the probability `1 - error` at least the best arm never
//! drops out and the arm that is named is at most the margin worse than it, whenever the race ends.
//!
//! # Source
//! The race: Maron and Moore, "The racing algorithm: model selection for lazy learners", Artificial
//! Intelligence Review 11, 1997; in blocks: Birattari and others, "A racing algorithm for configuring
//! metaheuristics", GECCO 2002. That the named arm is within a margin with a stated probability, by
//! successive elimination: Even-Dar, Mannor and Mansour, "Action elimination and stopping conditions",
//! JMLR 7, 2006.

pub mod crossing;

use std::collections::BTreeMap;

use crate::schedule::{ArmId, Block};
use crate::stats::anytime::{Evidence, winsorized};
use crate::stats::mean;
use crate::verdict::ALPHA;
pub use crossing::Crossed;

/// How a race is decided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// Arms whose values differ by less than this share are as good as each other: 0.02 is 2 %.
    pub margin: f64,
    /// The chance of naming an arm that is worse than the best by more than the margin.
    pub error: f64,
    /// Blocks before the first look: fewer say too little of how much an arm varies.
    pub first_look: u32,
}

impl Rules {
    /// Two percent, five in a hundred, five blocks.
    pub const DEFAULT: Self = Self { margin: 0.02, error: ALPHA, first_look: 5 };

    /// The chance of error that one comparison may have, among arms with so many others each.
    pub fn doubt(&self, comparisons: usize) -> f64 {
        self.error / (2 * comparisons.max(1)) as f64
    }
}

/// An arm that is worse than another beyond doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Out {
    /// The arm.
    pub arm: ArmId,
    /// After which block.
    pub block: Block,
    /// The arm that led then.
    pub by: ArmId,
}

/// How a race stands.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Standing {
    /// The arms that dropped out, in that order.
    pub out: Vec<Out>,
    /// The arm that is at most the margin worse than the best; `None` while that is open.
    pub settled: Option<ArmId>,
    /// What it was settled for before it went on with crosses, where it did.
    pub crossed: Option<Crossed>,
}

impl Standing {
    /// When and why an arm dropped out, where it did.
    pub fn out(&self, arm: ArmId) -> Option<&Out> {
        self.out.iter().find(|out| out.arm == arm)
    }
}

/// Logarithms of what arms cost, by block: less is better, whatever the metric. Of arms that failed
/// for good there are none.
pub type Costs = BTreeMap<ArmId, BTreeMap<Block, f64>>;

/// What a look at the race gives: who drops out after `block`, and whether it is settled.
///
/// `costs` holds the arms that are still in; `comparisons` is with how many others each arm of the
/// plan is compared, those that have dropped out too.
pub fn look(costs: &Costs, block: Block, comparisons: usize, rules: &Rules) -> Standing {
    let doubt = rules.doubt(comparisons);
    judge(costs, block, rules.margin, |differences| {
        Evidence::of(differences).is_some_and(|evidence| evidence.is_above(doubt))
    })
}

/// The rule of the race, whatever `is_above` takes as beyond doubt: that the mean of differences is
/// above zero.
pub(crate) fn judge(costs: &Costs, block: Block, margin: f64, is_above: impl Fn(&[f64]) -> bool) -> Standing {
    let Some(leader) = leader(costs) else { return Standing::default() };
    let costs_more = |arm: ArmId, other: ArmId, margin: f64| {
        differences(costs, arm, other, margin.ln_1p()).is_some_and(|differences| is_above(&differences))
    };
    let is_worse = |arm: &ArmId| *arm != leader && costs_more(*arm, leader, 0.0);
    let out: Vec<Out> =
        costs.keys().filter(|arm| is_worse(arm)).map(|arm| Out { arm: *arm, block, by: leader }).collect();
    let left: Vec<ArmId> =
        costs.keys().copied().filter(|arm| !out.iter().any(|out| out.arm == *arm)).collect();
    let best = if left.contains(&ArmId::BASELINE) { ArmId::BASELINE } else { leader };
    let settled = left.iter().all(|other| *other == best || costs_more(*other, best, margin));
    Standing { out, settled: settled.then_some(best), crossed: None }
}

/// The arm that costs least, each in the blocks that it shares with the first of them.
fn leader(costs: &Costs) -> Option<ArmId> {
    let first = *costs.keys().next()?;
    let centre = |arm: ArmId| {
        if arm == first { Some(0.0) } else { mean_difference(costs, arm, first) }
    };
    let centres = costs.keys().filter_map(|arm| Some((*arm, centre(*arm)?)));
    centres.min_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(arm, _)| arm)
}

/// By how much one arm costs more than another on average, as a logarithm; `None` where no block has both.
fn mean_difference(costs: &Costs, arm: ArmId, other: ArmId) -> Option<f64> {
    mean(&differences(costs, arm, other, 0.0)?)
}

/// By how much one arm costs more than another, and `more` on top, in the blocks that have both.
/// Those far from the others are drawn in.
fn differences(costs: &Costs, arm: ArmId, other: ArmId, more: f64) -> Option<Vec<f64>> {
    let (arm, other) = (costs.get(&arm)?, costs.get(&other)?);
    let differences: Vec<f64> =
        arm.iter().filter_map(|(block, cost)| Some(cost - other.get(block)? + more)).collect();
    winsorized(&differences)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Arms with these costs in percent above 1, block by block.
    fn costs(arms: &[&[f64]]) -> Costs {
        let of = |costs: &&[f64]| {
            (1..).map(Block::Measured).zip(costs.iter().map(|cost| (cost / 100.0).ln_1p())).collect()
        };
        (0..).map(ArmId::new).zip(arms.iter().map(of)).collect()
    }

    fn check(arms: &[&[f64]], out: &[u32], settled: Option<u32>) {
        let standing = look(&costs(arms), Block::Measured(9), arms.len() - 1, &Rules::DEFAULT);
        assert_eq!(standing.out.iter().map(|out| out.arm.number()).collect::<Vec<_>>(), out, "{arms:?}");
        assert_eq!(standing.settled.map(ArmId::number), settled, "{arms:?}");
    }

    #[test]
    fn an_arm_that_is_worse_in_every_block_by_far_drops_out() {
        check(&[&[0.0, 0.1, 0.0, 0.2, 0.1], &[9.0, 9.2, 9.1, 9.0, 9.1]], &[1], Some(0));
        check(&[&[9.0, 9.2, 9.1, 9.0, 9.1], &[0.0, 0.1, 0.0, 0.2, 0.1]], &[0], Some(1));
    }

    #[test]
    fn arms_within_the_margin_settle_the_race_for_the_baseline() {
        let (one, same) = ([0.0, 0.1, 0.0, 0.2, 0.1, 0.0], [0.1, 0.1, -0.1, 0.1, 0.0, 0.0]);
        check(&[&one, &same], &[], Some(0));
        check(&[&same, &one], &[], Some(0));
    }

    #[test]
    fn a_race_between_noisy_arms_is_open() {
        let (one, other) = ([0.0, 9.0, -5.0, 7.0, 1.0], [3.0, -4.0, 6.0, 2.0, -1.0]);
        check(&[&one, &other], &[], None);
    }

    #[test]
    fn one_burst_does_not_hide_what_all_other_blocks_say() {
        let leader = [0.0, 0.1, 0.0, 40.0, 0.1, 0.1, 0.2];
        check(&[&leader, &[5.0, 5.1, 5.1, 5.0, 5.2, 5.0, 5.1]], &[1], Some(0));
    }

    #[test]
    fn an_arm_without_values_can_neither_lead_nor_let_the_race_be_settled() {
        check(&[&[0.0, 0.1, 0.0, 0.2, 0.1], &[]], &[], None);
        check(&[&[], &[]], &[], None);
        assert_eq!(look(&Costs::new(), Block::Measured(5), 1, &Rules::DEFAULT), Standing::default());
    }

    #[test]
    fn more_comparisons_take_more_evidence() {
        let arms = costs(&[&[0.0, 0.4, 0.0, 0.3, 0.1], &[1.1, 1.6, 1.0, 1.9, 1.0]]);
        let out = |comparisons| look(&arms, Block::Measured(5), comparisons, &Rules::DEFAULT).out.len();
        assert_eq!((out(1), out(1000)), (1, 0));
    }
}
