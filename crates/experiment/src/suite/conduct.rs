//! Running a suite: in rounds, each of which runs every case, in an order drawn afresh.
//!
//! The runs of a case are spread over the whole session, so that what drifts in it (temperature, other
//! tenants) widens the case's interval instead of passing for its value. Within a round a case runs the
//! first placement twice and each other once, next to each other, in an order drawn afresh: the two are
//! the control, and the placements are compared in pairs ([`crate::schedule`]). The first round warms up
//! and shows how long one takes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nodewise_machine::printable::printable;

use super::Case;
use super::definition::Definition;
use super::session::{ArmRecord, CaseRecord, End, Sample};
use crate::executor::{Arm, Ending, Residency, Run};
use crate::experiment::failures::Failures;
use crate::schedule::{Block, Slot, order};
use crate::study::Rounds;
use nodewise_stats::random::Random;
use nodewise_syscall::clock::Clock;

/// Runs the programs of a suite.
pub trait Stage {
    /// Does what a case needs before its first run.
    ///
    /// # Errors
    /// Why it cannot be run; fit to be shown.
    fn prepare(&mut self, case: &Case<'_>) -> Result<(), String>;

    /// Runs a case once under a placement. A failure is a result.
    fn run(&mut self, case: &Case<'_>, arm: &Arm) -> Run;
}

/// Progress of a suite, reported between runs only.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A run is about to begin.
    Begins {
        block: Block,
        case: &'a Case<'a>,
        arm: &'a Arm,
    },
    Ended,
    Fixed {
        rounds: u32,
        runs: u32,
    },
    /// A case is given up under a placement.
    GivenUp {
        case: &'a Case<'a>,
        /// Why; fit to be shown.
        why: &'a str,
    },
}

/// The cases and arms to be run.
#[derive(Clone, Copy, Debug)]
pub struct Agenda<'a> {
    /// The cases, in the order of the table.
    pub cases: &'a [Case<'a>],
    /// The placements, the one that others are compared with first; at least one.
    pub arms: &'a [Arm],
    pub rounds: Rounds,
    pub seed: u64,
}

/// The stage, the clock and the observer of a suite's runs.
pub struct Conductor<'a> {
    pub stage: &'a mut dyn Stage,
    /// Reports how much of the time is spent.
    pub clock: &'a dyn Clock,
    pub observer: &'a mut dyn FnMut(Event<'_>),
    /// Ends it when it becomes true.
    pub interrupt: &'a AtomicBool,
}

/// Result of running an agenda.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The cases, in the order of the agenda.
    pub cases: Vec<CaseRecord>,
    /// Measured rounds that were begun.
    pub rounds: u32,
    pub end: End,
    pub took: Duration,
}

impl Conductor<'_> {
    /// Runs everything, in rounds. What fails is part of the outcome.
    pub fn conduct(&mut self, agenda: &Agenda<'_>) -> Outcome {
        let mut course = Course::new(agenda, self.clock.now());
        let end = self.run_rounds(&mut course).err().unwrap_or(End::Completed);
        course.outcome.end = end;
        course.outcome.took = self.clock.now().saturating_sub(course.origin);
        course.outcome
    }

    fn run_rounds(&mut self, course: &mut Course<'_>) -> Result<(), End> {
        self.run_round(course, Block::WarmUp)?;
        let rounds = self.fix_rounds(course);
        if rounds == 0 {
            return Err(End::BudgetSpent);
        }
        for number in 1..=rounds {
            if let Rounds::Within { budget, .. } = course.agenda.rounds {
                if self.clock.now().saturating_sub(course.origin) >= budget {
                    return Err(End::BudgetSpent);
                }
            }
            if course.slots_left() == 0 {
                break;
            }
            course.outcome.rounds = number;
            self.run_round(course, Block::Measured(number))?;
        }
        Ok(())
    }

    /// How many rounds are measured, decided once and for all.
    fn fix_rounds(&mut self, course: &Course<'_>) -> u32 {
        let per_round = self.clock.now().saturating_sub(course.origin);
        let rounds = match course.agenda.rounds {
            Rounds::Exactly(rounds) => rounds,
            Rounds::Within { budget, at_most } => {
                let fit = budget.saturating_sub(per_round).as_nanos() / per_round.as_nanos().max(1);
                u32::try_from(fit).unwrap_or(u32::MAX).min(at_most)
            }
        };
        (self.observer)(Event::Fixed { rounds, runs: course.slots_left() });
        rounds
    }

    fn run_round(&mut self, course: &mut Course<'_>, block: Block) -> Result<(), End> {
        let mut turns: Vec<usize> = (0..course.agenda.cases.len()).collect();
        if block != Block::WarmUp {
            Random::stream(course.agenda.seed, u64::from(block.number())).shuffle(&mut turns);
        }
        for at in turns {
            let case = &course.agenda.cases[at];
            if block == Block::WarmUp {
                if self.interrupt.load(Ordering::Relaxed) {
                    return Err(End::Interrupted);
                }
                if let Err(why) = self.stage.prepare(case) {
                    self.give_up(course, at, 0, why);
                }
            }
            // Each case has orders of its own.
            let seed = course.agenda.seed.wrapping_add(at as u64 + 1);
            for slot in order(block, course.agenda.arms.len() as u32, seed) {
                self.run_slot(course, at, block, slot)?;
            }
        }
        Ok(())
    }

    fn run_slot(&mut self, course: &mut Course<'_>, at: usize, block: Block, slot: Slot) -> Result<(), End> {
        // The interrupt comes before what has failed: a run that it ended says nothing of its case.
        if self.interrupt.load(Ordering::Relaxed) {
            return Err(End::Interrupted);
        }
        if course.is_given_up(at, slot) {
            return Ok(());
        }
        // The time is kept within the length of one run.
        if let Rounds::Within { budget, .. } = course.agenda.rounds {
            if self.clock.now().saturating_sub(course.origin) >= budget {
                return Err(End::BudgetSpent);
            }
        }
        let (case, arm) = (&course.agenda.cases[at], &course.agenda.arms[slot.arm.number() as usize]);
        (self.observer)(Event::Begins { block, case, arm });
        let run = self.stage.run(case, arm);
        (self.observer)(Event::Ended);
        if run.ending == Ending::Interrupted {
            return Err(End::Interrupted);
        }
        if let Some(why) = course.keep(at, block, slot, &run) {
            self.give_up(course, at, slot.arm.number() as usize, why);
        }
        Ok(())
    }

    fn give_up(&mut self, course: &mut Course<'_>, at: usize, arm: usize, why: String) {
        (self.observer)(Event::GivenUp { case: &course.agenda.cases[at], why: &why });
        course.outcome.cases[at].arms[arm].failed = Some(why);
    }
}

/// A session under way.
struct Course<'a> {
    agenda: &'a Agenda<'a>,
    origin: Duration,
    outcome: Outcome,
    /// Failed runs by case and placement.
    failures: Vec<Vec<Failures>>,
}

impl<'a> Course<'a> {
    fn new(agenda: &'a Agenda<'a>, origin: Duration) -> Self {
        let record = |case: &Case<'_>| CaseRecord {
            benchmark: case.benchmark.name.clone(),
            threads: case.threads,
            unit: case.benchmark.metric.unit.clone(),
            direction: case.benchmark.metric.direction(),
            memory_traffic: case.benchmark.memory_traffic,
            definition: Some(Definition::from_case(case)),
            arms: vec![ArmRecord::default(); agenda.arms.len()],
        };
        let outcome = Outcome {
            cases: agenda.cases.iter().map(record).collect(),
            rounds: 0,
            end: End::Completed,
            took: Duration::ZERO,
        };
        Self {
            agenda,
            origin,
            outcome,
            failures: vec![vec![Failures::default(); agenda.arms.len()]; agenda.cases.len()],
        }
    }

    /// Whether a run has no sense any more. Without what it is compared with a placement has none.
    fn is_given_up(&self, at: usize, slot: Slot) -> bool {
        let arms = &self.outcome.cases[at].arms;
        arms[slot.arm.number() as usize].failed.is_some() || arms[0].failed.is_some()
    }

    /// Runs in a round, without what was given up.
    fn slots_left(&self) -> u32 {
        let arms = self.agenda.arms.len() as u32;
        let slots = |at| order(Block::WarmUp, arms, 0).into_iter().filter(move |s| !self.is_given_up(at, *s));
        (0..self.agenda.cases.len()).map(|at| slots(at).count() as u32).sum()
    }

    /// Keeps what a run left; why its placement is to be given up, if it is: a program that fails in the
    /// first round does not work, and later on once can be the machine's fault.
    fn keep(&mut self, at: usize, block: Block, slot: Slot, run: &Run) -> Option<String> {
        let arm = slot.arm.number() as usize;
        let failures = &mut self.failures[at][arm];
        failures.count(run.ending.is_failure());
        if run.ending.is_failure() {
            let given_up = block == Block::WarmUp || failures.are_too_many();
            return given_up.then(|| reason(run));
        }
        let value = run.value(&self.agenda.cases[at].benchmark.metric.metric)?;
        let record = &mut self.outcome.cases[at].arms[arm];
        if let Block::Measured(round) = block {
            let steal_share = run.surroundings.steal_share;
            record.samples.push(Sample { round, replicate: slot.replicate, value, steal_share });
            add(&mut record.residency, run.residency.as_ref());
        }
        None
    }
}

/// Adds the pages of one run to those of the others.
fn add(all: &mut Option<Residency>, one: Option<&Residency>) {
    if let Some(one) = one {
        all.get_or_insert_with(Residency::default).add(one);
    }
}

/// How a run failed, with the last line of its complaint.
fn reason(run: &Run) -> String {
    printable(&run.ending.with_complaint(run.complaint.as_deref())).into_owned()
}

#[cfg(test)]
mod tests;
