//! The experiment behind `nodewise tune`: a plan, something that runs arms, and a study at the end.
//!
//! One loop over blocks, with one warm-up block first. Between the runs of the loop things are
//! decided, never inside one: whether an arm is given up, how many blocks fit the time, and, where
//! the plan is a race, who drops out of it and whether it is settled ([`crate::race`]). Results decide
//! nothing else: they are looked at when all is over, in [`crate::verdict`].

mod budget;
pub mod failures;

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::executor::{Arm, Ending, Executor, Run};
use crate::race::crossing::crosses;
use crate::race::{Costs, Crossed, Out, Race, Standing, median_difference};
use crate::schedule::{ArmId, Block, Slot, order};
use crate::study::{Dropped, End, Plan, Record, Rounds, Study, TooShort};
use budget::Pace;
use failures::Failures;
use nodewise_machine::conditions::Conditions;
pub use nodewise_syscall::clock::{Clock, Monotonic};

/// The progress of an experiment; reported between runs only.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// A run is about to begin. `number` counts the runs of the experiment from 1.
    Begins {
        /// Which run of the experiment.
        number: u32,
        /// The block it belongs to.
        block: Block,
        arm: &'a Arm,
    },
    Ended(&'a Record),
    /// The warm-up is over and the number of blocks is fixed.
    Fixed {
        rounds: u32,
        /// The fewest blocks that can show a difference; more than `rounds` when the time does not
        /// allow them.
        needed: u32,
        /// How long the warm-up block took.
        per_block: Duration,
    },
    /// An arm is given up.
    Dropped(&'a Dropped),
    /// An arm is shown to be worse than another and does not run again.
    Out(Out),
    /// A race goes on with crosses.
    Crossed(&'a Crossed),
}

/// The receiver of reports.
pub trait Observer {
    /// Called between runs; what it costs is not measured.
    fn event(&mut self, event: Event<'_>);
}

impl<F: FnMut(Event<'_>)> Observer for F {
    fn event(&mut self, event: Event<'_>) {
        self(event);
    }
}

/// The needs of an experiment besides its plan.
pub struct Experiment<'a> {
    pub executor: &'a mut dyn Executor,
    /// Reports how much of the budget is spent.
    pub clock: &'a dyn Clock,
    pub observer: &'a mut dyn Observer,
    /// Ends the experiment when it becomes true, between runs or, by the executor, inside one.
    pub interrupt: &'a AtomicBool,
}

/// The memory of a study's runs beyond its process: those of an earlier sitting come from it,
/// and every finished one goes to it.
pub trait Ledger {
    /// The run of an earlier sitting that comes next, which has to be this one; `None` when there are
    /// no more. A break ends the experiment: what comes next belongs elsewhere.
    fn recall(&mut self, block: Block, slot: Slot) -> ControlFlow<(), Option<Record>>;
    /// The last measured block that an earlier sitting began, 0 for none.
    fn blocks(&self) -> u32;
    /// Keeps a run that has just ended. A break ends the experiment: nothing more can be kept.
    fn keep(&mut self, record: &Record) -> ControlFlow<()>;
}

/// Remembers nothing.
struct NoLedger;

impl Ledger for NoLedger {
    fn recall(&mut self, _block: Block, _slot: Slot) -> ControlFlow<(), Option<Record>> {
        ControlFlow::Continue(None)
    }
    fn blocks(&self) -> u32 {
        0
    }
    fn keep(&mut self, _record: &Record) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

impl Experiment<'_> {
    /// Carries out a plan. What fails is part of the study.
    pub fn conduct(&mut self, plan: Plan, conditions: Conditions) -> Study {
        self.conduct_with(plan, conditions, &mut NoLedger)
    }

    /// Carries out a plan; the ledger may already hold some of its runs.
    ///
    /// Runs from the ledger are taken in as if they had been made now, so that the same runs come to the
    /// same study, in one sitting or in many. No block that an earlier sitting began is left out, however
    /// few the plan asks for.
    pub fn conduct_with(&mut self, plan: Plan, conditions: Conditions, ledger: &mut dyn Ledger) -> Study {
        let mut course = Course::new(self.clock.now(), plan, conditions, ledger);
        let end = self.run_blocks(&mut course).err().unwrap_or(End::Completed);
        course.study.took = course.elapsed(self.clock);
        course.study.end = end;
        course.study
    }

    /// The loop; an end before all blocks are run leaves it as an error.
    fn run_blocks(&mut self, course: &mut Course) -> Result<(), End> {
        self.run_block(course, Block::WarmUp)?;
        let rounds = self.fix_rounds(course);
        for number in 1..=rounds {
            self.check_time(course, number)?;
            self.run_block(course, Block::Measured(number))?;
            self.look(course, number, rounds)?;
        }
        Ok(())
    }

    /// Ends the study where the next block does not fit into its time.
    fn check_time(&self, course: &Course<'_>, number: u32) -> Result<(), End> {
        let (elapsed, steps) = (course.elapsed(self.clock), course.study.runs_in_next_block());
        if number <= course.ledger.blocks() || course.pace.fits(course.study.plan.rounds, elapsed, steps) {
            return Ok(());
        }
        Err(if number == 1 { course.too_short() } else { End::BudgetSpent })
    }

    fn run_block(&mut self, course: &mut Course, block: Block) -> Result<(), End> {
        let plan = &course.study.plan;
        let slots = order(block, plan.arms().len() as u32, plan.seed);
        for (place, slot) in (0..).zip(slots) {
            // The baseline goes on when it is out: it shows by how much the others are better.
            let out = course.study.race.out(slot.arm).is_some() && !slot.arm.is_baseline();
            if out || course.study.dropped(slot.arm).is_some() {
                continue;
            }
            let mut repeated = 0;
            while self.run_slot(course, block, place, slot, repeated)? == Counts::SetAside {
                repeated += 1;
            }
        }
        course.pace.end_of_block();
        Ok(())
    }

    /// Looks at a race after a block, of this many in all.
    fn look(&mut self, course: &mut Course, number: u32, rounds: u32) -> Result<(), End> {
        let Course { study, race: Some(race), .. } = course else { return Ok(()) };
        race.observe(&study.costs_of_last_block());
        let in_race = |arm: &ArmId| study.race.out(*arm).is_none();
        let left: Vec<ArmId> = study.comparable().filter(in_race).collect();
        let out = race.out(&left, Block::Measured(number));
        for out in &out {
            self.observer.event(Event::Out(*out));
        }
        let is_left = |arm: &ArmId| !out.iter().any(|out| out.arm == *arm);
        let left: Vec<ArmId> = left.into_iter().filter(is_left).collect();
        let estimate = Estimates::new(study);
        let settled = race.settled(&left, |arm| estimate.of(arm));
        let is_worth_more = settled.is_some_and(|best| {
            // What looks worse is shown to be so soon, or not at all: it is not worth many rounds.
            let costs_more = |arm: &ArmId| median_difference(estimate.costs(), *arm, best).unwrap_or(0.0);
            let margin = race.rules().margin.ln_1p();
            let looks_worse = |arm: &ArmId| costs_more(arm) > margin && !race.costs_more(*arm, best);
            number < 2 * race.shares().rounds_needed() && left.iter().any(looks_worse)
        });
        study.race.out.extend(out);
        study.race.settled = settled;
        let Some(best) = settled else { return Ok(()) };
        if self.cross(course, best, number, rounds) || is_worth_more { Ok(()) } else { Err(End::Settled) }
    }

    /// Goes on with crosses of the arm that a race is settled for; says whether there are any, and rounds
    /// enough to judge them.
    fn cross(&mut self, course: &mut Course, best: ArmId, number: u32, rounds: u32) -> bool {
        let Course { study, race: Some(race), ledger, .. } = course else { return false };
        if !study.plan.crossing || best.is_baseline() || study.race.crossed.is_some() {
            return false;
        }
        let made = crosses(study.plan.arms(), &study.costs(), best);
        if made.is_empty() {
            return false;
        }
        let needed = race.shares().rounds_for_crosses(study.plan.treatments().len(), made.len());
        if number.saturating_add(needed) > rounds && number >= ledger.blocks() {
            return false;
        }
        let arms: Vec<ArmId> = made.into_iter().map(|treatment| study.plan.add(treatment)).collect();
        race.add(&arms.iter().map(|arm| study.plan.things(study.plan.arm(*arm))).collect::<Vec<_>>());
        study.race.settled = None;
        let crossed = Crossed { best, block: Block::Measured(number), arms };
        let crossed = study.race.crossed.insert(crossed);
        self.observer.event(Event::Crossed(crossed));
        true
    }

    /// Takes a run from the ledger or makes it.
    fn run_slot(
        &mut self,
        course: &mut Course,
        block: Block,
        place: u32,
        slot: Slot,
        repeated: u32,
    ) -> Result<Counts, End> {
        let ControlFlow::Continue(recalled) = course.ledger.recall(block, slot) else {
            return Err(End::Interrupted);
        };
        let known = recalled.is_some();
        course.turn(known, self.clock);
        if !known && self.interrupt.load(Ordering::Relaxed) {
            return Err(End::Interrupted);
        }
        let before = course.elapsed(self.clock);
        if !known
            && block != Block::WarmUp
            && budget::left(course.study.plan.rounds, before) == Some(Duration::ZERO)
        {
            return Err(End::BudgetSpent);
        }
        let number = course.study.records.len() as u32 + 1;
        let arm = course.study.plan.arm(slot.arm);
        self.observer.event(Event::Begins { number, block, arm });
        let (record, cut) = match recalled {
            Some(record) => {
                course.spent = record.ended();
                (record, false)
            }
            None => {
                self.executor.prepare(arm)?;
                let began = course.elapsed(self.clock);
                let limits = course.limits(block, began);
                self.executor.limit(limits.shortest());
                let mut run = self.executor.run(arm);
                let cut = run.ending.is_failure() && limits.is_cut_by_budget(&run);
                if cut {
                    run.ending = Ending::Interrupted;
                }
                let set_aside = course.again(&run, repeated);
                (Record { block, place, slot, began, run, set_aside }, cut)
            }
        };
        course.pace.step(block, course.elapsed(self.clock).saturating_sub(before));
        self.observer.event(Event::Ended(&record));
        let interrupted = record.run.ending == Ending::Interrupted;
        // An interrupted run says nothing, and is made again in the next sitting.
        let lost = !known && !interrupted && course.ledger.keep(&record).is_break();
        let counts = if record.set_aside { Counts::SetAside } else { Counts::Yes };
        let dropped = course.keep(record);
        if let Some(dropped) = dropped {
            self.observer.event(Event::Dropped(&dropped));
            course.drop_arm(dropped)?;
        }
        if block == Block::WarmUp && course.ledger.blocks() == 0 && !interrupted {
            let round = course.study.plan.runs_per_block();
            let (to_come, elapsed) = (round.saturating_sub(place + 1), course.elapsed(self.clock));
            if let Some(short) = course.pace.too_short(course.study.plan.rounds, elapsed, to_come, round) {
                return Err(End::BudgetTooShort(short));
            }
        }
        match (cut, interrupted || lost) {
            (true, _) if block == Block::WarmUp => Err(course.too_short()),
            (true, _) => Err(End::BudgetSpent),
            (false, true) => Err(End::Interrupted),
            (false, false) => Ok(counts),
        }
    }

    /// Decides how many blocks are measured at most. A race may be looked at after each of them and goes on
    /// as long as there is time; without one their number is fixed once and for all.
    fn fix_rounds(&mut self, course: &mut Course) -> u32 {
        let per_block = course.elapsed(self.clock);
        let rounds = match course.study.plan.rounds {
            Rounds::Exactly(rounds) => rounds,
            Rounds::Within { at_most, .. } if course.study.plan.race.is_some() => at_most,
            Rounds::Within { budget, at_most } => {
                let left = budget.saturating_sub(per_block).as_nanos();
                let fit = left / per_block.as_nanos().max(1);
                u32::try_from(fit).unwrap_or(u32::MAX).min(at_most)
            }
        };
        let rounds = rounds.max(course.ledger.blocks());
        course.study.rounds = Some(rounds);
        let needed = course.study.plan.rounds_needed();
        self.observer.event(Event::Fixed { rounds, needed, per_block });
        rounds
    }
}

/// The estimated costs of arms beside the baseline, worked out only where they are asked for.
struct Estimates<'a> {
    study: &'a Study,
    costs: OnceCell<Costs>,
}

impl<'a> Estimates<'a> {
    fn new(study: &'a Study) -> Self {
        Self { study, costs: OnceCell::new() }
    }

    fn costs(&self) -> &Costs {
        self.costs.get_or_init(|| self.study.costs())
    }

    fn of(&self, arm: ArmId) -> f64 {
        median_difference(self.costs(), arm, ArmId::BASELINE).unwrap_or(f64::INFINITY)
    }
}

/// Whether a run counts, or is made again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counts {
    Yes,
    SetAside,
}

/// How long a run may take.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Before it is taken to hang, which is a failure.
    hang: Option<Duration>,
    /// Before the time of the study is over, which says nothing of the run.
    budget: Option<Duration>,
}

impl Limits {
    fn shortest(&self) -> Option<Duration> {
        self.hang.into_iter().chain(self.budget).min()
    }

    /// Whether the time of the study ended a run that did not end well.
    fn is_cut_by_budget(&self, run: &Run) -> bool {
        let is_over = |limit: Duration| run.wall.is_some_and(|wall| wall >= limit);
        self.budget.is_some_and(is_over) && !self.hang.is_some_and(is_over)
    }
}

/// An experiment under way.
struct Course<'a> {
    /// When this sitting began to run arms, by the clock.
    origin: Duration,
    /// Time of the experiment that earlier sittings spent.
    spent: Duration,
    /// Whether the last run came from the ledger.
    recalling: bool,
    study: Study,
    /// The bets of the race, where there is one.
    race: Option<Race>,
    failures: BTreeMap<ArmId, Failures>,
    pace: Pace,
    ledger: &'a mut dyn Ledger,
}

impl<'a> Course<'a> {
    fn new(origin: Duration, plan: Plan, conditions: Conditions, ledger: &'a mut dyn Ledger) -> Self {
        let race = plan.begin_race();
        let study = Study {
            plan,
            conditions,
            rounds: None,
            records: Vec::new(),
            dropped: Vec::new(),
            race: Standing::default(),
            end: End::Completed,
            took: Duration::ZERO,
            service: None,
            prepare: None,
            cool_down: None,
            not_counted: BTreeMap::new(),
        };
        Self {
            origin,
            spent: Duration::ZERO,
            recalling: false,
            study,
            race,
            failures: BTreeMap::new(),
            pace: Pace::default(),
            ledger,
        }
    }

    /// How long the next run may take.
    fn limits(&self, block: Block, elapsed: Duration) -> Limits {
        let Plan { rounds, hang_limit, .. } = &self.study.plan;
        let warm_up = self.study.records.iter().filter(|record| record.block == Block::WarmUp);
        let done = warm_up.filter(|record| record.run.ending.is_done());
        let longest = done.filter_map(|record| record.run.wall).max();
        let left = budget::left(*rounds, elapsed);
        let longer = if block == Block::WarmUp { Duration::ZERO } else { self.pace.of_one() };
        Limits {
            hang: hang_limit.zip(longest).map(|(limit, longest)| limit.after(longest)),
            budget: left.map(|left| left.saturating_add(longer)),
        }
    }

    /// The end of a study whose time cannot hold a round.
    fn too_short(&self) -> End {
        let Plan { rounds, .. } = self.study.plan;
        let budget = match rounds {
            Rounds::Within { budget, .. } => budget,
            Rounds::Exactly(_) => return End::BudgetSpent,
        };
        // Of a first run that was cut short nothing is known.
        let known = self.study.records.iter().any(|record| record.run.ending.is_done());
        let round = self.pace.of_steps(self.study.plan.runs_per_block());
        End::BudgetTooShort(TooShort { budget, round: known.then_some(round) })
    }

    /// Time of the experiment up to now, over all sittings.
    fn elapsed(&self, clock: &dyn Clock) -> Duration {
        if self.recalling {
            return self.spent;
        }
        self.spent.saturating_add(clock.now().saturating_sub(self.origin))
    }

    /// Notes whether the next run comes from the ledger; time goes on with the first that does not.
    fn turn(&mut self, known: bool, clock: &dyn Clock) {
        if self.recalling && !known {
            self.origin = clock.now();
        }
        self.recalling = known;
    }

    /// Whether a run that has just ended is set aside and made again.
    fn again(&self, run: &Run, repeated: u32) -> bool {
        let Some(repeats) = self.study.plan.repeats else { return false };
        let set_aside = self.study.records.iter().filter(|record| record.set_aside).count();
        let counted = self.study.records.len() - set_aside;
        run.ending.is_done() && repeats.spoilt(&run.evidence) && repeats.allow(repeated, counted, set_aside)
    }

    /// Keeps a run; gives its arm back when it has failed once too often.
    fn keep(&mut self, record: Record) -> Option<Dropped> {
        let Record { block, slot, ref run, .. } = record;
        let failures = self.failures.entry(slot.arm).or_default();
        if run.ending != Ending::Interrupted {
            failures.count(run.ending.is_failure());
        }
        let given_up = run.ending.is_failure() && failures.are_too_many();
        let dropped = given_up.then(|| Dropped {
            arm: slot.arm,
            block,
            ending: run.ending.clone(),
            complaint: run.complaint.clone(),
        });
        self.study.records.push(record);
        dropped
    }

    fn drop_arm(&mut self, dropped: Dropped) -> Result<(), End> {
        if dropped.arm.is_baseline() {
            return Err(End::BaselineFailed(dropped));
        }
        self.study.dropped.push(dropped);
        if self.study.dropped.len() == self.study.plan.treatments().len() {
            return Err(End::AllDropped);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
