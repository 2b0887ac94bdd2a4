//! The race: arms that are shown to be worse drop out, the others go on until the best is known.
//!
//! In every block each arm is compared with every other by the logarithms of their runs' values, and two
//! bets are placed on each ordered pair ([`nodewise_stats::betting`]): that the first costs more, and that
//! it does not cost less by more than a margin. With the baseline, which runs twice in a block, an arm
//! is compared by the mean sign of both differences; no runs are averaged, for the mean of two runs of
//! skewed noise is not distributed like one.
//!
//! - An arm drops out when it is shown to cost more than another.
//! - The race is settled when one arm is shown to be within the margin of every other that is left, and
//!   to be better than each simpler one. Of several such arms the simplest is named: the baseline before
//!   all others, then what sets the fewest things. No one should change how a program is started for less
//!   than the margin, and no cross is named that adds nothing to its parts.
//!
//! # What is promised
//! Each bet has a hypothesis of its own, that given all earlier blocks the expected sign of the paired
//! difference is not above zero: the median difference is zero or less, for the second bet after the
//! margin is added. For equal arms this holds exactly whatever disturbs the runs (skew, several levels,
//! spikes, drift, bursts, dependence between runs), because their order is drawn afresh in each block
//! ([`crate::schedule::order`]).
//!
//! The error is divided among the pairs ([`Shares`]), so that with the probability `1 - error` everything
//! holds that a study says, however many arms and looks there are: which arms are better or worse than
//! the baseline, which dropped out, and that the named one is within the margin of the best. Proof: of
//! a pair of arms that do not differ the two statements "costs more" are false, and their shares add up to
//! that of the pair. Of a pair that differs one of the two is false; where it differs by more than the
//! margin, that the better is within the margin of the worse is true and the reverse false, and the bet
//! on the reverse wins whenever the false statement's does. So a pair risks no more than the sum of its
//! two shares, which is the level of "within the margin".
//!
//! A race that is settled goes on for some rounds while an arm that is left looks worse than the named
//! one by more than the margin and is not yet shown to be: when to stop is free.
//!
//! A race that is settled for another arm than the baseline may go on with crosses: see [`crossing`].
//!
//! # Source
//! The race: Maron and Moore, "The racing algorithm: model selection for lazy learners", Artificial
//! Intelligence Review 11, 1997; in blocks: Birattari and others, "A racing algorithm for configuring
//! metaheuristics", GECCO 2002. That the named arm is within a margin with a stated probability, by
//! successive elimination: Even-Dar, Mannor and Mansour, "Action elimination and stopping conditions",
//! JMLR 7, 2006.

pub mod crossing;
mod shares;

use std::collections::BTreeMap;

use crate::schedule::{ArmId, Block};
use crate::study::Study;
pub use crossing::Crossed;
use nodewise_stats::betting::{Bet, score};
use nodewise_stats::median;
pub use shares::Shares;

/// The chance of calling any difference one in a study in which there is none.
pub const ALPHA: f64 = 0.05;

/// How a race is decided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// Arms whose values differ by less than this share are as good as each other: 0.02 is 2 %.
    pub margin: f64,
    /// The chance that anything is false that the race says.
    pub error: f64,
}

impl Rules {
    /// Two percent, five in a hundred.
    pub const DEFAULT: Self = Self { margin: 0.02, error: ALPHA };
}

/// An arm that is shown to be worse than another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Out {
    pub arm: ArmId,
    pub block: Block,
    /// The arm that it is worse than.
    pub by: ArmId,
}

/// The state of a race.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Standing {
    /// The arms that dropped out, in that order.
    pub out: Vec<Out>,
    /// The arm that is at most the margin worse than the best; `None` while that is open.
    pub settled: Option<ArmId>,
    /// The state in which it was settled before it went on with crosses, where it did.
    pub crossed: Option<Crossed>,
}

impl Standing {
    /// When and why an arm dropped out, where it did.
    pub fn out(&self, arm: ArmId) -> Option<&Out> {
        self.out.iter().find(|out| out.arm == arm)
    }
}

/// Logarithms of what arms cost, by arm and block, one value for each run: less is better, whatever the
/// metric.
pub type Costs = BTreeMap<ArmId, BTreeMap<Block, Vec<f64>>>;

/// The bets on an ordered pair of arms.
#[derive(Clone, Copy, Debug, Default)]
struct Pair {
    /// That the first costs more than the second.
    costs_more: Bet,
    /// That the first does not cost less by more than the margin.
    is_no_better: Bet,
}

/// The bets of a race.
#[derive(Clone, Debug)]
pub struct Race {
    rules: Rules,
    shares: Shares,
    /// How much each arm sets; 0 for the baseline alone.
    things: Vec<usize>,
    /// A row for each arm, as the first of the pair.
    pairs: Vec<Vec<Pair>>,
}

impl Race {
    /// A race among arms that set this many things each, the baseline first; `crossing` keeps a part of the
    /// error for crosses.
    pub fn new(rules: Rules, things: &[usize], crossing: bool) -> Self {
        let mut race = Self {
            rules,
            shares: Shares::new(rules.error, things.len().saturating_sub(1), crossing),
            things: Vec::new(),
            pairs: Vec::new(),
        };
        race.grow(things);
        race
    }

    /// The bets of a study so far; `None` where it is not a race.
    pub fn from_study(study: &Study) -> Option<Self> {
        let arms = study.plan.arms();
        let crossed = study.race.crossed.as_ref();
        let things: Vec<usize> = arms.iter().map(|arm| study.plan.things(arm)).collect();
        let first = arms.len() - crossed.map_or(0, |crossed| crossed.arms.len());
        let mut race = Self::new(study.plan.race?, &things[..first], study.plan.crossing);
        let mut crosses = crossed.map(|crossed| (crossed.block, &things[first..]));
        for (block, costs) in study.costs_by_block() {
            // Crosses are chosen by the blocks before them: a bet on one must not be placed on what chose it.
            if let Some((_, things)) = crosses.take_if(|(after, _)| block > *after) {
                race.add(things);
            }
            race.observe(&costs);
        }
        if let Some((_, things)) = crosses {
            race.add(things);
        }
        Some(race)
    }

    /// Goes on with crosses, which set this many things each.
    pub fn add(&mut self, things: &[usize]) {
        self.shares.add(self.things.len() - 1, things.len());
        self.grow(things);
    }

    fn grow(&mut self, things: &[usize]) {
        let first = self.things.len();
        // Whatever an arm sets, it is more than the baseline does.
        self.things.extend(things.iter().zip(first..).map(|(things, at)| (*things).max(usize::from(at > 0))));
        let arms = self.things.len();
        self.pairs.resize(arms, Vec::new());
        self.pairs.iter_mut().for_each(|row| row.resize(arms, Pair::default()));
    }

    /// How it is decided.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Which level of error each statement has.
    pub fn shares(&self) -> &Shares {
        &self.shares
    }

    /// Takes in a block: the logarithms of what each arm's runs cost, none for an arm that did not run.
    pub fn observe(&mut self, runs: &[Vec<f64>]) {
        // Costs are logarithms: a margin of 2 % is the same difference at every level.
        let margin = self.rules.margin.ln_1p();
        for (one, row) in runs.iter().zip(&mut self.pairs) {
            for (other, pair) in runs.iter().zip(row) {
                if one.is_empty() || other.is_empty() {
                    continue;
                }
                let differences =
                    |more: f64| one.iter().flat_map(move |a| other.iter().map(move |b| a - b + more));
                pair.costs_more.place(score(differences(0.0)));
                pair.is_no_better.place(score(differences(margin)));
            }
        }
    }

    fn pair(&self, one: ArmId, other: ArmId) -> &Pair {
        &self.pairs[one.number() as usize][other.number() as usize]
    }

    /// Whether an arm is shown to cost more than another.
    pub fn costs_more(&self, one: ArmId, other: ArmId) -> bool {
        one != other && self.pair(one, other).costs_more.wins(self.shares.costs_more(one, other))
    }

    /// Whether an arm is shown not to be better than another by more than the margin.
    fn is_no_better(&self, one: ArmId, other: ArmId) -> bool {
        self.pair(one, other).is_no_better.wins(self.shares.is_within(other, one))
    }

    /// The p value of a difference between two arms, in either direction and whenever one looks; and
    /// the same with all statements of the race taken into account, which stays below the error of the
    /// race where the difference is shown.
    pub fn p(&self, one: ArmId, other: ArmId) -> (f64, f64) {
        let p = [(one, other), (other, one)].map(|(a, b)| self.pair(a, b).costs_more.p());
        let least = p[0].min(p[1]);
        // A pair decides at its own share of the error. Scaled so, every pair can be compared with the error of the race.
        let raised = least * self.rules.error / self.shares.costs_more(one, other);
        // Twice: both directions were looked at.
        ((2.0 * least).min(1.0), raised.min(1.0))
    }

    /// Of these arms, those that are shown to be worse than another of them.
    pub fn out(&self, left: &[ArmId], block: Block) -> Vec<Out> {
        let worse_than = |arm: ArmId| {
            // The baseline goes on to run when it is out itself.
            let others = left.iter().copied().chain([ArmId::BASELINE]);
            let by = others.filter(|other| self.costs_more(arm, *other));
            by.min_by(|a, b| self.pair(arm, *a).costs_more.p().total_cmp(&self.pair(arm, *b).costs_more.p()))
        };
        left.iter().filter_map(|arm| Some(Out { arm: *arm, block, by: worse_than(*arm)? })).collect()
    }

    /// The arm that the race is settled for, among those that are left and the baseline; `cost` is what an
    /// arm is estimated to cost, by which equally simple ones are put in order.
    pub fn settled(&self, left: &[ArmId], cost: impl Fn(ArmId) -> f64) -> Option<ArmId> {
        let shown = Shown {
            costs_more: |one, other| self.costs_more(one, other),
            is_no_better: |one, other| self.is_no_better(one, other),
        };
        shown.settled(left, |arm| self.things[arm.number() as usize], cost)
    }
}

/// Relations shown between ordered pairs of arms, by whatever evidence.
pub(crate) struct Shown<M, B> {
    /// That the first costs more than the second.
    pub costs_more: M,
    /// That the first does not cost less by more than the margin.
    pub is_no_better: B,
}

impl<M: Fn(ArmId, ArmId) -> bool, B: Fn(ArmId, ArmId) -> bool> Shown<M, B> {
    /// Of the arms that are left and the baseline the simplest that is within the margin of all that are
    /// left and better than every simpler one.
    pub fn settled(
        &self,
        left: &[ArmId],
        things: impl Fn(ArmId) -> usize,
        cost: impl Fn(ArmId) -> f64,
    ) -> Option<ArmId> {
        let mut candidates = left.to_vec();
        if !candidates.contains(&ArmId::BASELINE) {
            candidates.push(ArmId::BASELINE);
        }
        let is_best = |best: &ArmId| {
            let is_within = left.iter().all(|other| other == best || (self.is_no_better)(*other, *best));
            let mut simpler = candidates.iter().filter(|other| things(**other) < things(*best));
            is_within && simpler.all(|other| (self.costs_more)(*other, *best))
        };
        let best = candidates.iter().copied().filter(is_best);
        best.min_by(|a, b| things(*a).cmp(&things(*b)).then_with(|| cost(*a).total_cmp(&cost(*b))))
    }
}

/// By how much an arm costs more than another, as a logarithm: the median of all differences of their
/// runs within blocks. `None` where no block has both.
pub fn median_difference(costs: &Costs, arm: ArmId, other: ArmId) -> Option<f64> {
    median(&differences(costs.get(&arm)?, costs.get(&other)?).concat())
}

/// The differences of all runs of two arms, by the blocks that have both.
pub(crate) fn differences(
    arm: &BTreeMap<Block, Vec<f64>>,
    other: &BTreeMap<Block, Vec<f64>>,
) -> Vec<Vec<f64>> {
    let both = arm.iter().filter_map(|(block, runs)| Some((runs, other.get(block)?)));
    both.map(|(runs, others)| runs.iter().flat_map(|a| others.iter().map(move |b| a - b)).collect()).collect()
}

#[cfg(test)]
mod tests;
