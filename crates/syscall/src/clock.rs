//! Monotonic time, behind a trait, so that tests can play it.

use std::time::{Duration, Instant};

/// A clock that budgets and limits are counted by.
pub trait Clock {
    /// Time since some fixed moment.
    fn now(&self) -> Duration;
}

/// The time of the running machine, from when this was made.
#[derive(Clone, Copy, Debug)]
pub struct Monotonic {
    origin: Instant,
}

impl Monotonic {
    /// A clock that starts now.
    pub fn start() -> Self {
        Self { origin: Instant::now() }
    }
}

impl Clock for Monotonic {
    fn now(&self) -> Duration {
        self.origin.elapsed()
    }
}
