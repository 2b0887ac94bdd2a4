//! Waiting between runs until the CPUs are about as cool as they were when the study began: a hot CPU is
//! slower, and the run before has made it so.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::executor::{Arm, Ending, Executor, Run, Unprepared};

/// How much hotter than in the beginning is as cool, in thousandths of a degree Celsius: sensors of a CPU
/// that does nothing differ by some degrees from one second to the next.
pub const MARGIN_MILLICELSIUS: i32 = 5000;

/// How often the temperature is looked at.
const LOOK: Duration = Duration::from_millis(250);

/// The temperature and the pauses that cooling down needs.
pub trait Climate {
    /// How hot the CPUs are, in thousandths of a degree Celsius; `None` where it is unknown.
    fn millicelsius(&mut self) -> Option<i32>;
    /// Lets this much time pass.
    fn pause(&mut self, time: Duration);
}

/// Summary of the cooling down in a study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoolDown {
    /// How long is waited before one run at most.
    pub most: Duration,
    /// How hot the CPUs were when the study began, in thousandths of a degree Celsius; `None` where it is
    /// unknown: nothing is waited for then.
    pub began_millicelsius: Option<i32>,
    /// How long was waited in all.
    pub waited: Duration,
    /// Before how many runs the CPUs were still too hot after all the time.
    pub still_hot: u32,
}

/// Waits before every run.
pub struct Cooling<'a> {
    climate: &'a mut dyn Climate,
    interrupt: &'a AtomicBool,
    sum: CoolDown,
}

impl<'a> Cooling<'a> {
    /// Notes how hot the CPUs are now. A true `interrupt` ends waiting.
    pub fn begin(climate: &'a mut dyn Climate, most: Duration, interrupt: &'a AtomicBool) -> Self {
        let began_millicelsius = climate.millicelsius();
        let sum = CoolDown { most, began_millicelsius, waited: Duration::ZERO, still_hot: 0 };
        Self { climate, interrupt, sum }
    }

    /// Returns the summary so far.
    pub const fn sum(&self) -> CoolDown {
        self.sum
    }

    /// Waits until the CPUs are cool, or the time is up.
    fn wait(&mut self) -> Result<(), Unprepared> {
        let Some(began) = self.sum.began_millicelsius else { return Ok(()) };
        let limit = began.saturating_add(MARGIN_MILLICELSIUS);
        let mut waited = Duration::ZERO;
        // A sensor that has fallen silent is not waited for.
        while self.climate.millicelsius().is_some_and(|now| now > limit) {
            if self.interrupt.load(Ordering::Relaxed) {
                return Err(Unprepared { ending: Ending::Interrupted, complaint: None });
            }
            let pause = LOOK.min(self.sum.most.saturating_sub(waited));
            if pause.is_zero() {
                self.sum.still_hot += 1;
                break;
            }
            self.climate.pause(pause);
            waited += pause;
            self.sum.waited += pause;
        }
        Ok(())
    }
}

/// An executor that waits before every run, after what else comes before it.
pub struct CoolingExecutor<'e, 'c> {
    executor: Box<dyn Executor + 'e>,
    cooling: &'e mut Cooling<'c>,
}

impl<'e, 'c> CoolingExecutor<'e, 'c> {
    /// The executor with waiting before each of its runs.
    pub fn new(executor: Box<dyn Executor + 'e>, cooling: &'e mut Cooling<'c>) -> Self {
        Self { executor, cooling }
    }
}

impl Executor for CoolingExecutor<'_, '_> {
    fn prepare(&mut self, arm: &Arm) -> Result<(), Unprepared> {
        self.executor.prepare(arm)?;
        self.cooling.wait()
    }

    fn limit(&mut self, limit: Option<Duration>) {
        self.executor.limit(limit);
    }

    fn run(&mut self, arm: &Arm) -> Run {
        self.executor.run(arm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sensors that show one temperature after the other, the last of them forever; pauses cost nothing.
    struct Shown {
        degrees: Vec<Option<i32>>,
        at: usize,
        passed: Duration,
    }

    impl Climate for Shown {
        fn millicelsius(&mut self) -> Option<i32> {
            let degrees = self.degrees.get(self.at).or(self.degrees.last()).copied().flatten();
            self.at += 1;
            degrees.map(|degrees| degrees * 1000)
        }
        fn pause(&mut self, time: Duration) {
            self.passed += time;
        }
    }

    /// Waits before this many runs, a second at most; how long in all, and before how many in the wrong.
    fn check(degrees: &[Option<i32>], runs: usize, expected_ms: u64, still_hot: u32) {
        let mut shown = Shown { degrees: degrees.to_vec(), at: 0, passed: Duration::ZERO };
        let interrupt = AtomicBool::new(false);
        let mut cooling = Cooling::begin(&mut shown, Duration::from_secs(1), &interrupt);
        (0..runs).for_each(|_| cooling.wait().unwrap());
        let sum = cooling.sum();
        assert_eq!((sum.waited.as_millis(), sum.still_hot), (expected_ms.into(), still_hot), "{degrees:?}");
        assert_eq!(shown.passed, sum.waited);
    }

    #[test]
    fn a_run_waits_until_the_cpus_are_as_cool_as_in_the_beginning() {
        check(&[Some(40), Some(40)], 3, 0, 0);
        check(&[Some(40), Some(45)], 3, 0, 0);
        check(&[Some(40), Some(60), Some(50), Some(45)], 1, 500, 0);
        check(&[Some(40), Some(60), Some(45), Some(70), Some(46), Some(44)], 2, 750, 0);
        check(&[Some(-10), Some(-4), Some(-5)], 1, 250, 0);
    }

    #[test]
    fn nobody_waits_longer_than_was_allowed() {
        check(&[Some(40), Some(60)], 1, 1000, 1);
        check(&[Some(40), Some(60)], 3, 3000, 3);
    }

    #[test]
    fn what_is_not_known_is_not_waited_for() {
        check(&[None, Some(60)], 3, 0, 0);
        check(&[Some(40), Some(60), None], 3, 250, 0);
        check(&[], 3, 0, 0);
    }

    #[test]
    fn an_interrupt_ends_waiting() {
        let mut shown = Shown { degrees: vec![Some(40), Some(60)], at: 0, passed: Duration::ZERO };
        let interrupt = AtomicBool::new(true);
        let why = Cooling::begin(&mut shown, Duration::from_secs(1000), &interrupt).wait().unwrap_err();
        assert_eq!((why.ending, shown.passed), (Ending::Interrupted, Duration::ZERO));
    }
}
