//! Programs built in: something honest to tune when no program is given, and the same kernels for
//! everything that measures memory.
//!
//! A workload runs in the process that calls it and takes its memory as any program does, under the
//! policy it was started with: `nodewise tune` runs it as a process of its own. It checks its own
//! work; a result that cannot be right is an error and not a number.

pub mod chase;
pub mod size;
pub mod stream;

use std::time::Duration;

use nodewise_machine::Bytes;

use crate::timer::Timer;

pub use chase::{ChaseOptions, ChaseResult};
pub use size::{Basis, Size};
pub use stream::{StreamOptions, StreamResult};

/// Why a workload gave no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkloadError {
    /// The memory could not be had.
    #[error("no memory for {size}: expected a smaller size")]
    NoMemory { size: Bytes },
    /// There is nothing to run over.
    #[error("{size} is too small for {threads} thread{}: expected at least {least}", if *.threads == 1 { "" } else { "s" })]
    TooSmall {
        size: Bytes,
        threads: u32,
        /// The least that works.
        least: Bytes,
    },
    /// Nothing was to be done.
    #[error("0 {what} were asked for: expected 1 or more")]
    Nothing { what: &'static str },
    /// A thread could not be started.
    #[error("thread {number} of {threads} could not be started: {reason}")]
    NoThread {
        /// Which, from 1.
        number: u32,
        threads: u32,
        reason: String,
    },
    /// It took less time than the clock can show.
    #[error("{elapsed:?} is too short for the clock, which steps by {step:?}: expected a larger size")]
    TooShort {
        elapsed: Duration,
        /// The smallest difference that the clock shows.
        step: Duration,
    },
    /// A check of the result failed: the memory, the compiler or nodewise is wrong.
    #[error("the result is wrong: {what}")]
    Wrong {
        /// The checks that do not hold.
        what: String,
    },
}

/// The duration, if the clock can distinguish it from zero.
fn resolved(elapsed: Duration, timer: &Timer) -> Result<Duration, WorkloadError> {
    if timer.resolves(elapsed) {
        Ok(elapsed)
    } else {
        Err(WorkloadError::TooShort { elapsed, step: timer.step() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_the_clock_cannot_tell_from_nothing_is_refused() {
        let timer = Timer::choose();
        let error = resolved(timer.step(), &timer).unwrap_err();
        assert!(matches!(error, WorkloadError::TooShort { .. }), "{error}");
        assert_eq!(resolved(Duration::from_secs(3600), &timer), Ok(Duration::from_secs(3600)));
    }
}
