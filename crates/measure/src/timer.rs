//! The clock of the kernels: which one, how fine, and what it costs to ask it.
//!
//! `CLOCK_MONOTONIC_RAW` runs at one speed; `CLOCK_MONOTONIC` is bent by up to 500 parts per million
//! while NTP corrects it. The first cannot be read without a system call on some kernels (on x86
//! before Linux 5.3), which costs some hundred nanoseconds instead of some ten; then the second is
//! taken. The time-stamp counter is not used directly: it needs the same checks the kernel has made
//! already, and its cycles are not those of the core.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// How often the clock is asked to learn what that costs, in each of how many blocks.
const ASKED: u32 = 1000;
const BLOCKS: u32 = 20;

/// A duration is worth a rate when it is this many times longer than the clock's own error.
const TIMES_FINER: u32 = 1000;

/// Which clock of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// `CLOCK_MONOTONIC_RAW`. Linux 2.6.28.
    MonotonicRaw,
    /// `CLOCK_MONOTONIC`.
    Monotonic,
}

impl Source {
    /// The kernel's name of it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MonotonicRaw => "CLOCK_MONOTONIC_RAW",
            Self::Monotonic => "CLOCK_MONOTONIC",
        }
    }

    fn now(self) -> Moment {
        let id = match self {
            Self::MonotonicRaw => ClockId::MonotonicRaw,
            Self::Monotonic => ClockId::Monotonic,
        };
        let time = clock_gettime(id);
        let nanos = i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec);
        Moment { nanos: u64::try_from(nanos).unwrap_or(0) }
    }

    /// Measures the cost of one question, and the smallest step between two answers.
    fn calibrate(self) -> (Duration, Duration) {
        let blocks = (0..BLOCKS).map(|_| self.calibrate_block());
        // The least of several blocks: this thread is not alone on its CPU.
        blocks.fold((Duration::MAX, Duration::MAX), |(cost, step), (c, s)| (cost.min(c), step.min(s)))
    }

    fn calibrate_block(self) -> (Duration, Duration) {
        let begin = self.now();
        let (mut before, mut step) = (begin, Duration::MAX);
        for _ in 0..ASKED {
            let now = self.now();
            if now > before {
                step = step.min(now.since(before));
            }
            before = now;
        }
        let cost = before.since(begin) / ASKED;
        (cost, step)
    }
}

/// A reading of a clock; only differences mean something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    nanos: u64,
}

impl Moment {
    /// The time from an earlier moment to this one; nothing from a later one.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.nanos.saturating_sub(earlier.nanos))
    }
}

/// Time on CPUs that this process has used, all of its threads together.
///
/// # Source
/// `CLOCK_PROCESS_CPUTIME_ID` of `clock_gettime(2)`.
pub fn process_time() -> Duration {
    used(ClockId::ProcessCPUTime)
}

/// Time on CPUs that the calling thread has used, up to now: the value of `getrusage(2)` is as old as the
/// last tick.
///
/// # Source
/// `CLOCK_THREAD_CPUTIME_ID` of `clock_gettime(2)`.
pub fn thread_time() -> Duration {
    used(ClockId::ThreadCPUTime)
}

fn used(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    let (seconds, nanos) =
        (u64::try_from(time.tv_sec).unwrap_or(0), u64::try_from(time.tv_nsec).unwrap_or(0));
    Duration::from_secs(seconds).saturating_add(Duration::from_nanos(nanos))
}

/// A clock and what is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timer {
    source: Source,
    cost: Duration,
    step: Duration,
}

impl Timer {
    /// Chooses the clock and measures it; takes about a millisecond.
    pub fn choose() -> Self {
        let of = |source: Source| {
            let (cost, step) = source.calibrate();
            Self { source, cost, step }
        };
        let (raw, plain) = (of(Source::MonotonicRaw), of(Source::Monotonic));
        // A system call costs ten times what reading the clock in user space does.
        if raw.cost > plain.cost * 4 { plain } else { raw }
    }

    /// Which clock it is.
    pub fn source(&self) -> Source {
        self.source
    }

    /// The cost of asking it.
    pub fn cost(&self) -> Duration {
        self.cost
    }

    /// The smallest difference that two questions in a row showed.
    pub fn step(&self) -> Duration {
        self.step
    }

    /// The time now.
    pub fn now(&self) -> Moment {
        self.source.now()
    }

    /// Whether a duration is long enough to make a rate of: 1,000 times the error of the clock.
    /// Tools that do not ask this print infinite bandwidths.
    pub fn resolves(&self, elapsed: Duration) -> bool {
        elapsed >= self.cost.max(self.step).saturating_mul(TIMES_FINER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_does_not_run_backwards() {
        let timer = Timer::choose();
        let moments: Vec<Moment> = (0..1000).map(|_| timer.now()).collect();
        assert!(moments.windows(2).all(|pair| pair[0] <= pair[1]));
        assert_eq!(moments[0].since(*moments.last().unwrap()), Duration::ZERO, "the later one is not before");
    }

    #[test]
    fn the_clock_has_a_step_and_nothing_as_short_as_it_is_resolved() {
        let timer = Timer::choose();
        assert!(timer.step() > Duration::ZERO && timer.step() < Duration::MAX);
        assert!(!timer.resolves(timer.step()));
        assert!(timer.resolves(timer.step().max(timer.cost()) * 1000));
        assert!(!timer.resolves(Duration::ZERO));
    }
}
