//! Plan of an experiment: the things compared, how often, and by which rules.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::candidates::Candidate;
use crate::evidence::Repeats;
use crate::executor::Arm;
use crate::metric::{Metric, Metrics};
use crate::race::crossing::{can_cross, parts};
use crate::race::{ALPHA, Race, Rules, Shares};
use crate::schedule::{ArmId, BASELINE_RUNS};
use nodewise_machine::placement::Placement;
use nodewise_stats::power::blocks_needed;

/// How many measured blocks a study has at most. Fixed before the first result is looked at: to go on
/// until something is significant finds something every time, unless by [`crate::race`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounds {
    Exactly(u32),
    /// As many as fit into a time, judged by the warm-up block, which counts too.
    Within {
        /// The time for the whole study.
        budget: Duration,
        /// Not more than this many.
        at_most: u32,
    },
}

impl Rounds {
    /// How many blocks a study has by default: enough for a verdict among 25 placements. A
    /// single placement is found, with 80 % power, when it differs by 1.2 standard deviations
    /// of a run.
    pub const DEFAULT: Self = Self::Exactly(10);

    /// How many blocks a race has at most by default. On a quiet machine it is settled after eight to ten;
    /// where runs vary by some percent it takes twenty or more.
    pub const RACE: Self = Self::Exactly(40);
}

/// When a run is taken to hang: it takes far longer than the longest of the warm-up. What a placement can
/// slow a program down by (one CPU in place of many, memory far away) is less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HangLimit {
    /// This many times as long.
    pub times: u32,
    /// And at least this long.
    pub least: Duration,
}

impl HangLimit {
    /// The limit that holds unless the user sets one.
    pub const DEFAULT: Self = Self { times: 20, least: Duration::from_secs(10) };

    /// The limit behind a run that took this long.
    pub fn after(&self, longest: Duration) -> Duration {
        longest.saturating_mul(self.times).max(self.least)
    }
}

/// The treatment of a program before it is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Treatment {
    pub name: String,
    pub placement: Placement,
    /// Variables to add to its environment, such as `OMP_NUM_THREADS`.
    pub environment: BTreeMap<String, String>,
    /// The number of threads that it is to use, where its command leaves that open as `{threads}`.
    pub threads: Option<u32>,
}

impl Treatment {
    /// A placement under a name.
    pub fn new(name: impl Into<String>, placement: Placement) -> Self {
        Self { name: name.into(), placement, environment: BTreeMap::new(), threads: None }
    }

    /// Returns the treatment of an arm of a plan.
    pub fn from_arm(arm: &Arm) -> Self {
        let Arm { name, placement, environment, threads, .. } = arm.clone();
        Self { name, placement, environment, threads }
    }
}

impl From<Candidate> for Treatment {
    fn from(candidate: Candidate) -> Self {
        Self::new(candidate.name, candidate.placement)
    }
}

/// Plan of an experiment.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The things compared; the first is the baseline.
    arms: Vec<Arm>,
    pub metric: Metric,
    /// Metrics that are shown too of every arm, and decide nothing.
    pub also: Vec<Metric>,
    pub rounds: Rounds,
    /// By which rules arms drop out before the last block, and when the best is known; `None`: every
    /// arm runs in every block.
    pub race: Option<Rules>,
    /// Whether what helps alone is tried together when a race is settled: see
    /// [`crate::race::crossing`].
    pub crossing: bool,
    /// When a run that others spoilt is repeated; `None`: never.
    pub repeats: Option<Repeats>,
    /// When a run is taken to hang; `None`: never.
    pub hang_limit: Option<HangLimit>,
    /// The seed of the order of runs and of the resamples.
    pub seed: u64,
}

/// Why a plan cannot be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// There is nothing to run.
    #[error("no placement to run: expected a baseline and at least one to compare with it")]
    NoArms,
    /// No block would be measured.
    #[error("0 runs were asked for: expected 1 or more")]
    NoRounds,
}

impl Plan {
    /// Its metrics, the one that decides first.
    pub(crate) fn metrics(&self) -> Metrics {
        Metrics { first: self.metric.clone(), also: self.also.clone() }
    }

    /// A plan to compare treatments with the first of them.
    ///
    /// # Errors
    /// Without a treatment, or for no rounds at all.
    pub fn new(
        treatments: impl IntoIterator<Item = Treatment>,
        metric: Metric,
        rounds: Rounds,
        seed: u64,
    ) -> Result<Self, PlanError> {
        let arms: Vec<Arm> = (0..).zip(treatments).map(|(number, one)| arm_of(number, one)).collect();
        if arms.is_empty() {
            return Err(PlanError::NoArms);
        }
        if matches!(rounds, Rounds::Exactly(0) | Rounds::Within { at_most: 0, .. }) {
            return Err(PlanError::NoRounds);
        }
        Ok(Self {
            arms,
            metric,
            also: Vec::new(),
            rounds,
            race: None,
            crossing: false,
            repeats: None,
            hang_limit: None,
            seed,
        })
    }

    /// The plan with arms that drop out by these rules.
    pub fn with_race(self, rules: Rules) -> Self {
        Self { race: Some(rules), ..self }
    }

    /// The plan with what helps alone tried together, where anything in it can be.
    pub fn with_crossing(self) -> Self {
        let crossing = can_cross(&self.arms);
        Self { crossing, ..self }
    }

    /// How many things an arm sets beside the baseline: memory, CPUs, huge pages, a number of threads.
    pub fn things(&self, arm: &Arm) -> usize {
        let parts = parts(&arm.placement).into_iter().filter(|is_set| *is_set).count();
        let threads = self.arms.first().is_some_and(|baseline| baseline.threads != arm.threads);
        if arm.id.is_baseline() { 0 } else { parts + usize::from(threads) }
    }

    /// The bets of the race, before its first block; `None` without a race.
    pub fn begin_race(&self) -> Option<Race> {
        let things: Vec<usize> = self.arms.iter().map(|arm| self.things(arm)).collect();
        Some(Race::new(self.race?, &things, self.crossing))
    }

    /// Adds an arm to a plan that is being carried out.
    pub(crate) fn add(&mut self, treatment: Treatment) -> ArmId {
        let arm = arm_of(self.arms.len() as u32, treatment);
        let id = arm.id;
        self.arms.push(arm);
        id
    }

    /// The plan with other metrics shown too.
    pub fn with_also(self, also: Vec<Metric>) -> Self {
        Self { also, ..self }
    }

    /// The plan with runs repeated that others spoilt.
    pub fn with_repeats(self, repeats: Option<Repeats>) -> Self {
        Self { repeats, ..self }
    }

    /// The plan with runs ended that take far longer than those of the warm-up.
    pub fn with_hang_limit(self, limit: HangLimit) -> Self {
        Self { hang_limit: Some(limit), ..self }
    }

    /// The things compared, the baseline first.
    pub fn arms(&self) -> &[Arm] {
        &self.arms
    }

    /// An arm of this plan.
    ///
    /// # Panics
    /// For the id of another plan.
    pub fn arm(&self, id: ArmId) -> &Arm {
        self.arms.iter().find(|arm| arm.id == id).expect("the id is one of this plan")
    }

    /// The arms that are compared with the baseline.
    pub fn treatments(&self) -> &[Arm] {
        &self.arms[1..]
    }

    /// Runs in one block while no arm has been dropped.
    pub fn runs_per_block(&self) -> u32 {
        self.arms.len() as u32 - 1 + u32::from(BASELINE_RUNS)
    }

    /// The fewest blocks with which any difference can be shown among this many arms.
    pub fn rounds_needed(&self) -> u32 {
        match self.race {
            Some(rules) => Shares::new(rules.error, self.treatments().len(), self.crossing).rounds_needed(),
            None => blocks_needed(self.treatments().len(), ALPHA),
        }
    }
}

fn arm_of(number: u32, treatment: Treatment) -> Arm {
    let Treatment { name, placement, environment, threads } = treatment;
    Arm { id: ArmId::new(number), name, placement, environment, threads }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_numbers_its_arms_and_refuses_nothing_to_do() {
        let named = |names: &[&str]| {
            names.iter().map(|name| Treatment::new(*name, Placement::DEFAULT)).collect::<Vec<_>>()
        };
        let plan = Plan::new(named(&["default", "a", "b"]), Metric::Wall, Rounds::DEFAULT, 1).unwrap();
        assert_eq!(plan.arm(ArmId::new(2)).name, "b");
        assert_eq!(plan.runs_per_block(), 4);
        assert_eq!(plan.rounds_needed(), 7);
        let refused = |arms, rounds| Plan::new(arms, Metric::Wall, rounds, 1).unwrap_err();
        assert_eq!(refused(Vec::new(), Rounds::DEFAULT), PlanError::NoArms);
        assert_eq!(refused(named(&["default"]), Rounds::Exactly(0)), PlanError::NoRounds);
    }
}
