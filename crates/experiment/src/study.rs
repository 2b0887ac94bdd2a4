//! Record of an experiment: the plan, every run in order, and how it ended.

mod plan;

use std::collections::BTreeMap;
use std::time::Duration;

use crate::cooling::CoolDown;
use crate::evidence::Counter;
use crate::executor::{Arm, Ending, Residency, Run, Unprepared};
use crate::fidelity::Fidelity;
use crate::race::{Costs, Standing};
use crate::schedule::{ArmId, BASELINE_RUNS, Block, Slot};
use nodewise_machine::conditions::Conditions;
use nodewise_machine::order::CollectOrdered as _;
use nodewise_stats::Direction;

pub use plan::{HangLimit, Plan, PlanError, Rounds, Treatment};

/// One run with its place in the experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The block it belongs to.
    pub block: Block,
    /// Its place in the block, from 0.
    pub place: u32,
    pub slot: Slot,
    /// When it began, from the beginning of the experiment.
    pub began: Duration,
    pub run: Run,
    /// Others spoilt it and it was run again: it does not count.
    pub set_aside: bool,
}

impl Record {
    /// When it ended, from the beginning of the experiment.
    pub fn ended(&self) -> Duration {
        self.began.saturating_add(self.run.wall.unwrap_or_default())
    }
}

/// An arm that failed too often to go on with.
#[derive(Clone, Debug, PartialEq)]
pub struct Dropped {
    pub arm: ArmId,
    /// The block with the failure that was one too many.
    pub block: Block,
    pub ending: Ending,
    /// The program's message when it failed. As it wrote it: not fit for a terminal.
    pub complaint: Option<String>,
}

/// Why the time of a study is too short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooShort {
    /// The time for the whole study.
    pub budget: Duration,
    /// How long one block takes, judged by the runs so far; `None` where the first did not end in time.
    pub round: Option<Duration>,
}

/// How an experiment ended.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    Completed,
    /// The best is known: see [`Study::race`].
    Settled,
    Interrupted,
    /// The time was up before the last block.
    BudgetSpent,
    /// The time cannot hold a warm-up and one measured block.
    BudgetTooShort(TooShort),
    /// The program does not work without any placement.
    BaselineFailed(Dropped),
    /// No arm was left to compare.
    AllDropped,
    /// The preparation before a run did not work.
    PreparationFailed(Unprepared),
}

impl From<Unprepared> for End {
    fn from(why: Unprepared) -> Self {
        match why.ending {
            Ending::Interrupted => Self::Interrupted,
            _ => Self::PreparationFailed(why),
        }
    }
}

/// A finished experiment: every run in order, and nothing concluded from them.
#[derive(Clone, Debug)]
pub struct Study {
    pub plan: Plan,
    pub conditions: Conditions,
    /// How many measured blocks were decided on; `None` when it ended before that.
    pub rounds: Option<u32>,
    /// The runs in the order in which they ran.
    pub records: Vec<Record>,
    /// Arms that were given up.
    pub dropped: Vec<Dropped>,
    /// The state of the race, where there is one.
    pub race: Standing,
    pub end: End,
    pub took: Duration,
    /// Of a server: what waits for it and drives it.
    pub service: Option<Drive>,
    /// The command that ran before every run. As it was given: not fit for a terminal.
    pub prepare: Option<Vec<String>>,
    /// How long was waited for the CPUs to cool down, where that was asked for.
    pub cool_down: Option<CoolDown>,
    /// Events that were to be counted and are not counted here, with the reasons.
    pub not_counted: BTreeMap<Counter, String>,
}

/// How a server was driven, in words. As they were given: not fit for a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drive {
    pub ready: String,
    pub client: Vec<String>,
}

impl Study {
    /// The words of the program as an arm runs it, with its number of threads. As they were given: not fit
    /// for a terminal.
    pub fn program_of(&self, arm: ArmId) -> Vec<String> {
        let arm = self.plan.arm(arm);
        self.conditions.command.iter().map(|word| arm.fill(word)).collect()
    }

    /// The runs of an arm in measured blocks, without those that were set aside.
    pub fn measured(&self, arm: ArmId) -> impl Iterator<Item = &Record> {
        let counts = |record: &&Record| record.block != Block::WarmUp && !record.set_aside;
        self.records.iter().filter(move |record| record.slot.arm == arm && counts(record))
    }

    /// How many runs of an arm others spoilt, those of the warm-up left out: first those that were set
    /// aside, then those that count anyway, because they had been repeated often enough.
    pub fn spoilt(&self, arm: ArmId) -> (usize, usize) {
        let Some(repeats) = self.plan.repeats else { return (0, 0) };
        let of_arm = self.records.iter().filter(|r| r.slot.arm == arm && r.block != Block::WarmUp);
        let aside = of_arm.filter(|record| record.set_aside).count();
        let kept = self.measured(arm).filter(|record| repeats.spoilt(&record.run.evidence)).count();
        (aside, kept)
    }

    /// The values of an arm by block; those of the warm-up and of failed runs are left out.
    pub fn values(&self, arm: ArmId, replicate: u8) -> BTreeMap<Block, f64> {
        self.measured(arm)
            .filter(|record| record.slot.replicate == replicate)
            .filter_map(|record| Some((record.block, record.run.value(&self.plan.metric)?)))
            .collect_map()
    }

    /// Logarithms of the values of an arm by block, one for each run.
    pub fn logarithms(&self, arm: ArmId) -> BTreeMap<Block, Vec<f64>> {
        self.logarithms_of(arm, |run| run.value(&self.plan.metric))
    }

    /// As [`Study::logarithms`], of another value than the one that decides.
    pub fn logarithms_of(
        &self,
        arm: ArmId,
        value: impl Fn(&Run) -> Option<f64>,
    ) -> BTreeMap<Block, Vec<f64>> {
        let mut runs: BTreeMap<Block, Vec<f64>> = BTreeMap::new();
        for record in self.measured(arm) {
            if let Some(value) = value(&record.run) {
                runs.entry(record.block).or_default().push(value.ln());
            }
        }
        runs
    }

    /// Computes the costs of all arms, also of those that have dropped out of the race; without those that
    /// were given up or whose treatment does not hold.
    pub fn costs(&self) -> Costs {
        let sign = self.sign();
        let costs = |arm: ArmId| {
            let runs = |runs: Vec<f64>| runs.into_iter().map(|log| sign * log).collect();
            self.logarithms(arm).into_iter().map(|(block, logs)| (block, runs(logs))).collect_map()
        };
        self.comparable().map(|arm| (arm, costs(arm))).collect_map()
    }

    /// The arms that were not given up and whose treatment holds, as far as is known.
    pub fn comparable(&self) -> impl Iterator<Item = ArmId> {
        let arms = self.plan.arms().iter().map(|arm| arm.id);
        arms.filter(|arm| self.dropped(*arm).is_none() && self.held(*arm))
    }

    /// Returns the costs of the runs in each measured block, in order: a list of logarithms for each arm.
    pub fn costs_by_block(&self) -> impl Iterator<Item = (Block, Vec<Vec<f64>>)> {
        let blocks = self.records.chunk_by(|one, next| one.block == next.block);
        let blocks = blocks.filter(|records| records.first().is_some_and(|one| one.block != Block::WarmUp));
        blocks.filter_map(|records| Some((records.first()?.block, self.costs_in(records))))
    }

    /// Returns the costs of the runs in the last block.
    pub fn costs_of_last_block(&self) -> Vec<Vec<f64>> {
        let last = self.records.chunk_by(|one, next| one.block == next.block).next_back();
        self.costs_in(last.unwrap_or_default())
    }

    fn costs_in(&self, records: &[Record]) -> Vec<Vec<f64>> {
        let mut costs = vec![Vec::new(); self.plan.arms().len()];
        for record in records.iter().filter(|record| !record.set_aside) {
            let value = record.run.value(&self.plan.metric);
            costs[record.slot.arm.number() as usize].extend(value.map(|value| self.sign() * value.ln()));
        }
        costs
    }

    /// Returns the factor that makes logarithms costs: less is better.
    fn sign(&self) -> f64 {
        match self.plan.metric.direction() {
            Direction::LowerIsBetter => 1.0,
            Direction::HigherIsBetter => -1.0,
        }
    }

    /// How far an arm ran as it asks, over its measured runs that ended well; `None` when nothing is asked
    /// for, or nothing was seen of any.
    pub fn fidelity(&self, arm: ArmId) -> Option<Fidelity> {
        let done = self.measured(arm).filter(|record| record.run.ending.is_done());
        Fidelity::mean(done.filter_map(|record| record.run.fidelity.as_ref()))
    }

    /// Whether the treatment of an arm held, as far as is known.
    pub fn held(&self, arm: ArmId) -> bool {
        self.fidelity(arm).is_none_or(|fidelity| fidelity.held(&self.plan.arm(arm).placement))
    }

    /// Where the pages of an arm were, over its measured runs that ended well; `None` when nothing was
    /// seen of any.
    pub fn residency(&self, arm: ArmId) -> Option<Residency> {
        let seen = self.measured(arm).filter(|record| record.run.ending.is_done());
        seen.filter_map(|record| record.run.residency.as_ref()).cloned().reduce(|mut all, one| {
            all.add(&one);
            all
        })
    }

    /// Why an arm was given up, where it was.
    pub fn dropped(&self, arm: ArmId) -> Option<&Dropped> {
        self.dropped.iter().find(|dropped| dropped.arm == arm)
    }

    /// How many runs a block has that begins now: the baseline runs even where it is out of the race.
    pub fn runs_in_next_block(&self) -> u32 {
        let runs = |arm: &Arm| {
            arm.id.is_baseline() || self.race.out(arm.id).is_none() && self.dropped(arm.id).is_none()
        };
        let arms = self.plan.treatments().iter().filter(|arm| runs(arm)).count();
        arms as u32 + u32::from(BASELINE_RUNS)
    }

    /// How many blocks were begun after the warm-up.
    pub fn blocks_begun(&self) -> u32 {
        self.records.iter().map(|record| record.block.number()).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mock::{conduct, plan, took};
    use nodewise_machine::{Bytes, NodeId};

    #[test]
    fn pages_of_an_arm_are_added_up_over_its_measured_runs() {
        let seen =
            |mib: u32| Residency { by_node: [(NodeId::new(mib % 2), Bytes::from_mib(mib.into()))].into() };
        let study = conduct(plan(1, Rounds::Exactly(2), 1), |arm, at| match arm.id.number() {
            0 => Run { residency: Some(seen(at as u32 + 1)), ..took(1.0) },
            _ => took(1.0),
        });
        // The runs are A a 1 | ...; of the warm-up nothing counts, of the two blocks all four runs of
        // the baseline do.
        let places: Vec<usize> =
            (0..9).filter(|at| study.records[*at].slot.arm.is_baseline()).skip(2).collect();
        let sum = |odd| places.iter().map(|at| *at as u64 + 1).filter(|mib| mib % 2 == odd).sum::<u64>();
        let residency = study.residency(ArmId::BASELINE).unwrap();
        assert_eq!(residency.by_node.get(&NodeId::new(1)), Some(&Bytes::from_mib(sum(1))));
        assert_eq!(residency.total(), Bytes::from_mib(sum(0) + sum(1)));
        assert_eq!(study.residency(ArmId::new(1)), None);
    }
}
