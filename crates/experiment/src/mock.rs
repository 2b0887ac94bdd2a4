//! An executor and a clock for tests: runs cost no time, and what they give is written down.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::executor::{Arm, Ending, Executor, Run};
use crate::experiment::{Event, Experiment};
use crate::metric::Metric;
use crate::study::{Plan, Rounds, Study, Treatment};
use nodewise_machine::conditions::Conditions;
use nodewise_machine::placement::Placement;
use nodewise_syscall::clock::Clock;

/// A clock that advances by the times of the runs.
#[derive(Clone, Default)]
pub(crate) struct MockClock(Rc<Cell<Duration>>);

impl MockClock {
    /// Lets this much time pass.
    pub(crate) fn pass(&self, time: Duration) {
        self.0.set(self.0.get() + time);
    }
}

impl Clock for MockClock {
    fn now(&self) -> Duration {
        self.0.get()
    }
}

/// Runs an arm by asking a function, with the number of the run from 0.
pub(crate) struct Mock<F> {
    clock: MockClock,
    runs: usize,
    play: F,
}

impl<F: FnMut(&Arm, usize) -> Run> Mock<F> {
    /// An executor whose runs advance this clock.
    pub(crate) fn new(clock: MockClock, play: F) -> Self {
        Self { clock, runs: 0, play }
    }
}

impl<F: FnMut(&Arm, usize) -> Run> Executor for Mock<F> {
    fn run(&mut self, arm: &Arm) -> Run {
        let run = (self.play)(arm, self.runs);
        self.runs += 1;
        self.clock.pass(run.wall.unwrap_or_default());
        run
    }
}

/// A run that took this long and ended well.
pub(crate) fn took(seconds: f64) -> Run {
    Run { wall: Some(Duration::from_secs_f64(seconds)), ..Run::ended(Ending::Done) }
}

/// A plan with the default and this many other arms.
pub(crate) fn plan(others: usize, rounds: Rounds, seed: u64) -> Plan {
    let names = (0..=others).map(|arm| Treatment::new(format!("arm {arm}"), Placement::DEFAULT));
    Plan::new(names, Metric::Wall, rounds, seed).unwrap()
}

/// Carries out a plan with a function in place of the program.
pub(crate) fn conduct(plan: Plan, play: impl FnMut(&Arm, usize) -> Run) -> Study {
    observe(plan, &AtomicBool::new(false), play, |_| {})
}

/// As [`conduct`], with an interrupt and an observer.
pub(crate) fn observe(
    plan: Plan,
    interrupt: &AtomicBool,
    play: impl FnMut(&Arm, usize) -> Run,
    mut observer: impl FnMut(Event<'_>),
) -> Study {
    let clock = MockClock::default();
    let mut executor = Mock::new(clock.clone(), play);
    Experiment { executor: &mut executor, clock: &clock, observer: &mut observer, interrupt }
        .conduct(plan, Conditions::default())
}
