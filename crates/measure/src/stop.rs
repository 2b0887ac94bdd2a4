//! End of a measurement before it is complete: by the user, or at the end of its time.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::cell::Refusal;
use nodewise_syscall::clock::Clock;

/// Looked at between samples, and inside of every loop that may take longer than some of them.
#[derive(Clone, Default)]
pub struct Stop {
    interrupt: Option<Arc<AtomicBool>>,
    limit: Option<Limit>,
}

/// A time of a clock.
#[derive(Clone)]
struct Limit {
    clock: Arc<dyn Clock + Send + Sync>,
    end: Duration,
}

impl Stop {
    /// Nothing ends it.
    pub const NEVER: Self = Self { interrupt: None, limit: None };

    /// It ends when this becomes true.
    pub const fn on(interrupt: Arc<AtomicBool>) -> Self {
        Self { interrupt: Some(interrupt), limit: None }
    }

    /// It also ends at this time of a clock.
    #[must_use]
    pub fn at(self, clock: Arc<dyn Clock + Send + Sync>, end: Duration) -> Self {
        Self { limit: Some(Limit { clock, end }), ..self }
    }

    /// The same for a part of the work, which ends after this share of the time that is left; without a
    /// limit of time a part has none either.
    #[must_use]
    pub fn for_part(&self, share: f64) -> Self {
        let limit = self.limit.as_ref().map(|limit| {
            let now = limit.clock.now();
            let left = limit.end.saturating_sub(now);
            Limit { clock: Arc::clone(&limit.clock), end: now + left.mul_f64(share.clamp(0.0, 1.0)) }
        });
        Self { interrupt: self.interrupt.clone(), limit }
    }

    /// Whether the user wants an end.
    pub fn is_interrupted(&self) -> bool {
        self.interrupt.as_ref().is_some_and(|interrupt| interrupt.load(Ordering::Relaxed))
    }

    /// The time that is left; `None` without a limit.
    pub fn left(&self) -> Option<Duration> {
        self.limit.as_ref().map(|limit| limit.end.saturating_sub(limit.clock.now()))
    }

    /// Whether to end now.
    pub fn is_set(&self) -> bool {
        self.is_interrupted() || self.left().is_some_and(|left| left.is_zero())
    }

    /// As a result, for `?`.
    ///
    /// # Errors
    /// [`Refusal::Stopped`] when it is to end now.
    pub fn check(&self) -> Result<(), Refusal> {
        if self.is_set() { Err(Refusal::Stopped) } else { Ok(()) }
    }
}

impl fmt::Debug for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stop")
            .field("interrupted", &self.is_interrupted())
            .field("left", &self.left())
            .finish()
    }
}

#[cfg(test)]
mod tests;
