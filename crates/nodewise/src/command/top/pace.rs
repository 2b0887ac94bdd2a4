//! The moments of readings that follow each other by an interval, which may change.

use std::time::{Duration, Instant};

/// When the next reading is due.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    every: Duration,
    due: Instant,
}

impl Pace {
    /// The first reading is due at `due`.
    pub(super) const fn new(every: Duration, due: Instant) -> Self {
        Self { every, due }
    }

    pub(super) fn left(&self, now: Instant) -> Duration {
        self.due.saturating_duration_since(now)
    }

    /// The reading that was due has been made. One that came late, or a stop in between, moves those behind it.
    pub(super) fn advance(&mut self, now: Instant) {
        self.due = (self.due + self.every).max(now);
    }

    /// Changes the interval, that before the next reading included.
    pub(super) fn change(&mut self, every: Duration, now: Instant) {
        self.due = (self.due + every).checked_sub(self.every).unwrap_or(now);
        self.every = every;
    }

    /// The next reading is due an interval from now.
    pub(super) fn restart(&mut self, now: Instant) {
        self.due = now + self.every;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_interval_counts_from_the_last_reading() {
        let seconds = Duration::from_secs;
        let begin = Instant::now();
        let mut pace = Pace::new(seconds(1), begin);
        pace.advance(begin);
        assert_eq!(pace.left(begin), seconds(1));
        pace.change(seconds(60), begin);
        assert_eq!(pace.left(begin), seconds(60), "longer");
        let later = begin + seconds(20);
        pace.change(seconds(30), later);
        assert_eq!(pace.left(later), seconds(10), "shorter");
        pace.change(seconds(5), later);
        assert_eq!(pace.left(later), Duration::ZERO, "so short that it has passed");
        pace.advance(later);
        assert_eq!(pace.left(later), Duration::ZERO, "late");
        pace.advance(later);
        assert_eq!(pace.left(later), seconds(5), "and those behind it are not");
        pace.restart(later + seconds(2));
        assert_eq!(pace.left(later + seconds(2)), seconds(5));
    }
}
