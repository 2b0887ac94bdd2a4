//! The loop over the cells of a matrix: their samples interleaved, so that whatever drifts hits all
//! of them alike.
//!
//! A survey has rounds. In each, every cell is made ready again (new memory, so that no round shares
//! the luck of another's pages), proven, sampled in an order that is drawn afresh, and proven again. A
//! round gives one value per cell, the median of its samples; the figure of a cell is the median over
//! its rounds, with the interval that these give. Cells that were disturbed are measured once more.
//!
//! Where time is limited ([`crate::stop::Stop`]), the survey measures less: fewer samples first, then fewer
//! rounds, then fewer cells; [`LeftOut`] says what is missing. From the third on, a round begins only when the
//! longest so far fits into the time that is left. The first does not count for that: benches prepare in it what
//! later rounds reuse. Cells that the first round has no time to prepare come first in the next.
//!
//! What is timed is a [`Bench`]; the loop knows neither clocks nor memory.

pub mod account;
pub mod figure;
pub mod finding;
pub(crate) mod pairs;
pub mod report;
pub mod result;

use std::time::Duration;

use crate::cell::{Facts, Glance, Placed, Probe, Refusal};
use nodewise_machine::order::Order as _;
use nodewise_stats::random::Random;
use nodewise_syscall::clock::Clock;

pub use account::{Account, Declared, Noise, extent};
pub use figure::Figure;
pub use finding::SurveyFinding;
pub use report::CellReport;
pub use result::{LeftOut, Marks, Outcome, Sample, Survey};

/// The measured quantity.
pub trait Bench {
    /// The facts that distinguish cells: a [`crate::cell::Cell`] with what is done in it.
    type Cell;

    /// Begins a round: nothing of the one before is used again, and its memory is given back.
    fn begin_round(&mut self, round: u32);

    /// Makes ready what a cell needs in this round; several cells may share it.
    ///
    /// # Errors
    /// What prevents it. The cell is not asked for again.
    fn prepare(&mut self, cell: &Self::Cell, facts: &mut dyn Facts) -> Result<(), Refusal>;

    /// Where the memory of a cell is now; `None` for what has no memory of its own.
    ///
    /// # Errors
    /// The obstacle to asking.
    fn placed(&mut self, cell: &Self::Cell, facts: &mut dyn Facts) -> Result<Option<Placed>, Refusal>;

    /// Takes one sample; [`Facts::glance`] right before and after what is timed shows what disturbed
    /// it, see [`Timed::around`].
    ///
    /// # Errors
    /// What prevents it. The cell is not asked for again.
    fn sample(&mut self, cell: &Self::Cell, facts: &mut dyn Facts) -> Result<Timed, Refusal>;
}

/// One sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timed {
    /// The result, in the unit of the survey.
    pub value: f64,
    /// The speed of the CPU around it.
    pub probe: Option<Probe>,
    pub meanwhile: Glance,
    /// Other values that were measured at the same time.
    pub beside: Option<Beside>,
}

/// Further values of a sample that is a latency under load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Beside {
    /// The 90th percentile of that of which the value is the median, ns.
    pub p90: f64,
    /// The rate of the others' traffic, GB/s (10^9 bytes per second) that the program names; `None` where
    /// there was none.
    pub load: Option<f64>,
}

impl Timed {
    /// Times something between two glances.
    ///
    /// # Errors
    /// Those of what is timed.
    pub fn around(
        facts: &mut dyn Facts,
        probe: Option<Probe>,
        timed: impl FnOnce() -> Result<f64, Refusal>,
    ) -> Result<Self, Refusal> {
        let before = facts.glance();
        let value = timed()?;
        Ok(Self { value, probe, meanwhile: facts.glance().since(&before), beside: None })
    }
}

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Rounds; an interval needs [`nodewise_stats::order::FEWEST`].
    pub rounds: u32,
    /// Samples of a cell in a round, at most.
    pub samples: u32,
    /// How long the survey should take; samples are left out for it, but no rounds, so it takes longer
    /// where one sample of each cell does. What it must not take longer than, [`Facts::stop`] says.
    pub budget: Option<Duration>,
}

impl Pace {
    /// This many of each, however long that takes.
    pub const fn exactly(rounds: u32, samples: u32) -> Self {
        Self { rounds, samples, budget: None }
    }

    /// Returns the most time that `--quick` promises to take, from the first word to the last: 15 s on one
    /// node, 60 s on eight or more.
    pub fn quick_limit(nodes: usize) -> Duration {
        let seconds = 15.0 + 45.0 * (nodes.saturating_sub(1) as f64 / 7.0);
        Duration::from_secs_f64(seconds.min(60.0))
    }

    /// `--quick`: six tenths of [`Pace::quick_limit`]; the rest is for the repetition of cells and for what
    /// comes before.
    pub fn quick(nodes: usize) -> Self {
        Self { rounds: 6, samples: 9, budget: Some(Self::quick_limit(nodes).mul_f64(0.6)) }
    }

    /// Neither quick nor thorough: 9 rounds, three times as long as `--quick`.
    pub fn usual(nodes: usize) -> Self {
        let quick = Self::quick(nodes);
        Self { rounds: 9, samples: 15, budget: quick.budget.map(|budget| budget * 3) }
    }

    /// `--thorough`: 15 rounds of 25 samples.
    pub const fn thorough() -> Self {
        Self::exactly(15, 25)
    }
}

/// The progress of a survey; reported between samples only.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Steps done: a step is a cell made ready, or a sample taken.
    pub done: u64,
    /// Steps there are, as far as is known by now.
    pub all: u64,
    /// The time that is left, by what steps have taken so far; `None` before there are any.
    pub left: Option<Duration>,
    /// Whether disturbed cells are being measured once more.
    pub again: bool,
}

/// The part of the time left at its beginning that a round may spend on preparing cells while some of them have
/// no samples: as much again is for samples.
const FOR_MAKING_READY: f64 = 0.5;

/// The part of that time which the samples of all rounds are planned for, where the budget is longer.
const FOR_ROUNDS: f64 = 0.8;

/// The needs of a survey besides its bench.
pub struct Surveyor<'a> {
    /// Reports what happens around the samples, and what ends the survey between them.
    pub facts: &'a mut dyn Facts,
    /// Reports how much of the budget is spent.
    pub clock: &'a dyn Clock,
    pub observer: &'a mut dyn FnMut(Progress),
}

impl Surveyor<'_> {
    /// Measures cells; the outcomes are in the order of the cells.
    pub fn conduct<B: Bench>(&mut self, bench: &mut B, cells: &[B::Cell], pace: Pace, seed: u64) -> Survey {
        let mut course = Course::new(cells, pace, seed, self.clock.now(), self.facts.stop().left());
        let before = self.facts.glance();
        let mut is_complete = self.rounds(bench, &mut course).is_ok();
        let first = course.outcomes.clone();
        let rounds = course.whole_rounds();
        let disturbed: Vec<usize> = (0..cells.len()).filter(|at| first[*at].is_disturbed()).collect();
        let again = !disturbed.is_empty() && is_complete && self.has_time_again(&course, disturbed.len());
        if again {
            for at in &disturbed {
                course.outcomes[*at].begin_again();
            }
            course.again = true;
            is_complete = self.rounds(bench, &mut course).is_ok();
            for (outcome, first) in course.outcomes.iter_mut().zip(first) {
                outcome.keep_better(first);
            }
        }
        bench.begin_round(course.round);
        let interrupted = !is_complete && self.facts.stop().is_interrupted();
        let once = if again && is_complete { 0 } else { disturbed.len() };
        Survey {
            left_out: course.left_out(rounds, once).filter(|_| !interrupted),
            outcomes: course.outcomes,
            interrupted,
            took: self.clock.now().saturating_sub(course.begin),
            meanwhile: self.facts.glance().since(&before),
            seed,
        }
    }

    /// Whether this many cells can be measured once more within the budget and a quarter, and within the time
    /// that is left.
    fn has_time_again<C>(&self, course: &Course<'_, C>, disturbed: usize) -> bool {
        let spent = self.clock.now().saturating_sub(course.begin);
        let needed = spent.mul_f64(disturbed as f64 / course.cells.len().max(1) as f64);
        let fits = |budget: Duration| spent + needed <= budget.mul_f64(1.5);
        course.pace.budget.is_none_or(fits) && self.facts.stop().left().is_none_or(|left| needed <= left)
    }

    fn rounds<B: Bench>(&mut self, bench: &mut B, course: &mut Course<'_, B::Cell>) -> Result<(), Stopped> {
        let start = self.clock.now();
        let mut samples = course.pace.samples;
        let mut longest = Duration::ZERO;
        for number in 0..course.pace.rounds {
            let begun = self.clock.now();
            if number > 1 && self.facts.stop().left().is_some_and(|left| left < longest) {
                return Err(Stopped);
            }
            bench.begin_round(course.round);
            let rounds_left = course.pace.rounds - number;
            let ready = self.ready(bench, course, rounds_left, samples)?;
            let mut random = Random::stream(course.seed, u64::from(course.round));
            let sampled_from = self.clock.now();
            self.pass(bench, course, &ready, &mut random)?;
            samples = self.affordable(course, rounds_left, [start, begun, sampled_from]);
            course.plan(rounds_left - 1, samples, ready.len(), samples - 1);
            for _ in 1..samples {
                self.pass(bench, course, &ready, &mut random)?;
            }
            self.prove_again(bench, course, &ready)?;
            course.end_round(&ready);
            if number > 0 {
                longest = longest.max(self.clock.now().saturating_sub(begun));
            }
        }
        Ok(())
    }

    /// How many samples this round and each of those after it can have: by what its preparation took and its
    /// first pass, and by the budget that the rounds before have left. The moments are those at which the rounds
    /// began, this one did, and its samples did.
    fn affordable<C>(
        &self,
        course: &Course<'_, C>,
        rounds_left: u32,
        [start, begun, sampled_from]: [Duration; 3],
    ) -> u32 {
        let planned = course.limit.map(|limit| limit.mul_f64(FOR_ROUNDS));
        let Some(budget) = course.pace.budget.into_iter().chain(planned).min() else {
            return course.pace.samples.max(1);
        };
        let now = self.clock.now();
        let (ready, pass) = (sampled_from.saturating_sub(begun), now.saturating_sub(sampled_from));
        let rest = budget.saturating_sub(begun.saturating_sub(start));
        let of_round = (rest / rounds_left.max(1)).saturating_sub(ready);
        let passes = of_round.as_secs_f64() / pass.as_secs_f64().max(1e-9);
        // A number between the two, so the conversion cannot go wrong.
        passes.clamp(1.0, f64::from(course.pace.samples.max(1))) as u32
    }

    /// Prepares the cells that have not been refused; which these are. While some have no samples, those come
    /// first, and what is not ready after [`FOR_MAKING_READY`] waits for the next round, so that what is ready has
    /// samples.
    fn ready<B: Bench>(
        &mut self,
        bench: &mut B,
        course: &mut Course<'_, B::Cell>,
        rounds_left: u32,
        samples: u32,
    ) -> Result<Vec<usize>, Stopped> {
        let (wanted, is_behind) = course.wanted();
        course.plan(rounds_left, samples, wanted.len(), 0);
        let begin = self.clock.now();
        let left = self.facts.stop().left().filter(|_| is_behind);
        let most = left.map(|left| left.mul_f64(FOR_MAKING_READY));
        let mut ready = Vec::new();
        for at in wanted {
            let spent = self.clock.now().saturating_sub(begin);
            if !ready.is_empty() && most.is_some_and(|most| spent > most) {
                break;
            }
            self.step(course)?;
            let cell = &course.cells[at];
            let placed = bench.prepare(cell, self.facts).and_then(|()| bench.placed(cell, self.facts));
            match placed {
                Ok(placed) => {
                    course.outcomes[at].begin_round(placed);
                    ready.push(at);
                }
                Err(refusal) => course.refuse(at, refusal)?,
            }
        }
        Ok(ready)
    }

    /// One sample of each cell, in an order drawn afresh.
    fn pass<B: Bench>(
        &mut self,
        bench: &mut B,
        course: &mut Course<'_, B::Cell>,
        ready: &[usize],
        random: &mut Random,
    ) -> Result<(), Stopped> {
        let mut order = ready.to_vec();
        random.shuffle(&mut order);
        for at in order {
            self.step(course)?;
            if course.outcomes[at].refusal.is_some() {
                continue;
            }
            match bench.sample(&course.cells[at], self.facts) {
                Ok(timed) => course.outcomes[at].add(timed),
                Err(refusal) => course.refuse(at, refusal)?,
            }
        }
        Ok(())
    }

    fn prove_again<B: Bench>(
        &mut self,
        bench: &mut B,
        course: &mut Course<'_, B::Cell>,
        ready: &[usize],
    ) -> Result<(), Stopped> {
        for at in ready {
            match bench.placed(&course.cells[*at], self.facts) {
                Ok(placed) => course.outcomes[*at].end_round(placed),
                Err(refusal) => course.refuse(*at, refusal)?,
            }
        }
        Ok(())
    }

    /// Reports how far it is, and whether it goes on.
    fn step<C>(&mut self, course: &mut Course<'_, C>) -> Result<(), Stopped> {
        if self.facts.stop().is_set() {
            return Err(Stopped);
        }
        let spent = self.clock.now().saturating_sub(course.begin);
        let rest = course.all.saturating_sub(course.done);
        let left = (course.done > 0).then(|| spent.mul_f64(rest as f64 / course.done as f64));
        // It ends by its limit, whatever steps take.
        let left = left.map(|left| self.facts.stop().left().map_or(left, |limit| limit.min(left)));
        (self.observer)(Progress { done: course.done, all: course.all, left, again: course.again });
        course.done += 1;
        Ok(())
    }
}

/// The survey ends before it is complete.
struct Stopped;

/// A survey while it goes on.
struct Course<'a, C> {
    cells: &'a [C],
    pace: Pace,
    seed: u64,
    outcomes: Vec<Outcome>,
    done: u64,
    all: u64,
    begin: Duration,
    again: bool,
    /// Of the whole survey: a repetition goes on counting.
    round: u32,
    /// The time that was left when it began; `None` without a limit.
    limit: Option<Duration>,
    /// Whole rounds of each cell; a repetition goes on counting.
    whole: Vec<u32>,
}

impl<'a, C> Course<'a, C> {
    fn new(cells: &'a [C], pace: Pace, seed: u64, begin: Duration, limit: Option<Duration>) -> Self {
        let outcomes = vec![Outcome::default(); cells.len()];
        let whole = vec![0; cells.len()];
        let (done, all, again, round) = (0, 0, false, 0);
        Self { cells, pace, seed, outcomes, done, all, begin, again, round, limit, whole }
    }

    /// Marks a cell as refused; that the survey ends is not a property of a cell.
    fn refuse(&mut self, at: usize, refusal: Refusal) -> Result<(), Stopped> {
        if refusal == Refusal::Stopped {
            return Err(Stopped);
        }
        self.outcomes[at].refuse(refusal);
        Ok(())
    }

    /// The parts that a limit of time has left out, after this many whole rounds and with this many disturbed
    /// cells that were not measured once more; `None` where nothing was.
    fn left_out(&self, rounds: u32, disturbed: usize) -> Option<LeftOut> {
        self.limit?;
        let cells = self.outcomes.iter().filter(|outcome| !outcome.is_reached()).count();
        let left_out =
            LeftOut { rounds, of_rounds: self.pace.rounds, cells, of_cells: self.cells.len(), disturbed };
        (rounds < self.pace.rounds || cells > 0 || disturbed > 0).then_some(left_out)
    }

    /// Ends a round in which these cells were measured.
    fn end_round(&mut self, ready: &[usize]) {
        self.round += 1;
        for at in ready {
            self.whole[*at] += 1;
        }
    }

    /// The whole rounds that every cell with samples has, at least; all of them where no cell has samples.
    fn whole_rounds(&self) -> u32 {
        let outcomes = self.outcomes.iter().zip(&self.whole);
        let sampled = outcomes.filter(|(outcome, _)| outcome.refusal.is_none() && outcome.is_reached());
        sampled.map(|(_, whole)| *whole).min().unwrap_or(self.round)
    }

    /// Cells that are to be measured now, and whether some of them are behind: those without a whole round, which
    /// then come first.
    fn wanted(&self) -> (Vec<usize>, bool) {
        let wanted = |at: &usize| {
            let outcome = &self.outcomes[*at];
            outcome.refusal.is_none() && (!self.again || outcome.again)
        };
        let mut wanted: Vec<usize> = (0..self.cells.len()).filter(wanted).collect();
        let is_behind = wanted.iter().any(|at| self.whole[*at] == 0);
        if is_behind {
            wanted.order_by_key(|at| self.whole[*at]);
        }
        (wanted, is_behind)
    }

    /// Plans the steps there will be: those left of this round, and further rounds of this many cells.
    fn plan(&mut self, rounds: u32, samples: u32, cells: usize, passes_left: u32) {
        let of_round = cells as u64 * (1 + u64::from(samples));
        let of_this = cells as u64 * u64::from(passes_left);
        self.all = self.done + of_this + u64::from(rounds) * of_round;
    }
}

#[cfg(test)]
mod tests;
