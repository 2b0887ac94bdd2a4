//! The moment of a sample.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use super::Moment;

impl Moment {
    /// This moment.
    pub fn now() -> Self {
        Self { since_boot: read(ClockId::Boottime), wall: read(ClockId::Realtime) }
    }

    /// The time between two moments, by the clock that never goes back; `None` where the other is later.
    pub fn since(self, earlier: Self) -> Option<Duration> {
        self.since_boot.checked_sub(earlier.since_boot)
    }
}

/// CPU time of this thread.
pub(super) fn thread_time() -> Duration {
    read(ClockId::ThreadCPUTime)
}

fn read(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    // A wall clock before 1970 has seconds below 0.
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}
