//! When to look where a program's pages are.

use std::time::Duration;

use crate::executor::Residency;

/// The first look: a program has loaded its libraries by then, and a short one still runs.
const FIRST: Duration = Duration::from_millis(4);

/// The next look comes after at least this many times what the last one cost: counting the pages of
/// a large program takes the kernel tens of milliseconds, in which the program cannot map memory.
const COST_LIMIT: u32 = 50;

/// Looks at growing distances, each at twice the age of the program: few in a long run, and the
/// last one never before half of it.
pub(super) struct Sampling {
    next: Duration,
    most: Option<Residency>,
}

impl Sampling {
    pub fn new() -> Self {
        Self { next: FIRST, most: None }
    }

    /// When the next look is due, in the program's age.
    pub fn next(&self) -> Duration {
        self.next
    }

    /// Keeps what a look saw, if it saw more than those before; it began and ended at these ages.
    pub fn keep(&mut self, seen: Option<Residency>, began: Duration, ended: Duration) {
        let cost = ended.saturating_sub(began);
        self.next = (began * 2).max(ended + cost * COST_LIMIT);
        let before = self.most.as_ref().map(Residency::total);
        if let Some(seen) = seen.filter(|seen| Some(seen.total()) >= before) {
            self.most = Some(seen);
        }
    }

    /// The look that saw the most.
    pub fn most(self) -> Option<Residency> {
        self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::{Bytes, NodeId};

    fn seen(mib: u64) -> Option<Residency> {
        Some(Residency { by_node: [(NodeId::new(0), Bytes::from_mib(mib))].into() })
    }

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn the_distance_doubles_and_grows_with_the_cost() {
        let mut sampling = Sampling::new();
        let mut due = Vec::new();
        for _ in 0..5 {
            due.push(sampling.next().as_millis());
            let now = sampling.next();
            sampling.keep(None, now, now);
        }
        assert_eq!(due, [4, 8, 16, 32, 64]);
        sampling.keep(None, ms(128), ms(148));
        assert_eq!(sampling.next(), ms(1148), "a look of 20 ms waits for 50 times as long");
    }

    #[test]
    fn the_look_with_the_most_pages_is_kept() {
        let mut sampling = Sampling::new();
        for (at, look) in [(1, None), (2, seen(5)), (3, seen(9)), (4, seen(7)), (5, None)] {
            sampling.keep(look, ms(at), ms(at));
        }
        assert_eq!(sampling.most(), seen(9));
        assert_eq!(Sampling::new().most(), None);
    }
}
