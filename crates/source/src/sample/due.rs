//! When idle objects are read again.

use std::time::Duration;

use super::Moment;
use super::reading::Reading;

/// Idle objects are read at least this often.
const IDLE_MOST: Duration = Duration::from_secs(8);
/// The same in samples: a power of two, doubled from 1.
const IDLE_MOST_TICKS: u64 = 8;

/// When an object is read: each time while it changes, after 2, 4 and then 8 samples while it does not, and after 8
/// seconds where samples are rarer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    /// The number of the sample that reads it next.
    due: u64,
    /// Samples between two readings.
    pause: u64,
    read: Option<Moment>,
}

impl Pace {
    pub(super) fn is_due(&self, reading: &Reading<'_>) -> bool {
        let age = self.read.map(|read| reading.now.since(read));
        self.due <= reading.tick || age.is_none_or(|age| age.is_none_or(|age| age >= IDLE_MOST))
    }

    /// Notes a reading. An idle object is read next at a place that its phase gives, so that those that were found
    /// together are not read together forever.
    pub(super) fn next(&mut self, reading: &Reading<'_>, changed: bool, phase: u64) {
        self.pause = if changed { 1 } else { (self.pause * 2).clamp(1, IDLE_MOST_TICKS) };
        let next = reading.tick + 1;
        let at = next.wrapping_add(phase) % self.pause;
        self.due = next + (self.pause - at) % self.pause;
        self.read = Some(reading.now);
    }

    /// Whether nothing of it has changed for some readings.
    pub(super) const fn is_idle(&self) -> bool {
        self.pause == IDLE_MOST_TICKS
    }

    /// Has it read next time, as one that changes.
    pub(super) fn hurry(&mut self) {
        (self.due, self.pause) = (0, 0);
    }
}
