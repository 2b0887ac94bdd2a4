//! When to look where a program's pages are.

use std::time::Duration;

use crate::executor::Residency;
use crate::fidelity::Look;

/// The first look: a program has loaded its libraries by then, and a short one still runs.
const FIRST: Duration = Duration::from_millis(4);

/// The next look comes after at least this many times what the last one cost: counting the pages of
/// a large program takes the kernel tens of milliseconds, in which the program cannot map memory.
const COST_LIMIT: u32 = 50;

/// The next look comes at this many times the program's age at the latest: on a busy machine the first look
/// takes long although the program has hardly any memory yet, and a short run would be over before another.
const OLDEST: u32 = 8;

/// Looks at growing distances, each when the program is a quarter older: few in a long run, and the last
/// one never before four fifths of it, when a program that only grows has nearly all of its memory.
pub(super) struct Sampling {
    next: Duration,
    most: Option<Residency>,
    last: Look,
}

impl Sampling {
    /// Sampling of a program that has just started.
    pub fn new() -> Self {
        Self { next: FIRST, most: None, last: Look::default() }
    }

    /// When the next look is due, in the program's age.
    pub fn next(&self) -> Duration {
        self.next
    }

    /// Keeps what a look saw: where pages are if they were more than before, and what is in force if
    /// there was anything left to see. It began and ended at these ages.
    pub fn keep(&mut self, seen: Look, began: Duration, ended: Duration) {
        let cost = ended.saturating_sub(began);
        self.next = (began * 5 / 4).max((ended + cost * COST_LIMIT).min(ended * OLDEST));
        let before = self.most.as_ref().map(Residency::total);
        let Look { residency, threads, memory } = seen;
        if let Some(seen) = residency.filter(|seen| Some(seen.total()) >= before) {
            self.most = Some(seen);
        }
        // A program that ends loses its memory before its threads: then the look before counts.
        if !threads.is_empty() {
            self.last.threads = threads;
        }
        if !memory.is_empty() {
            self.last.memory = memory;
        }
    }

    /// Where pages were in the look that saw the most, and what was in force in the last.
    pub fn seen(self) -> Look {
        Look { residency: self.most, ..self.last }
    }
}

/// How long a program may be stopped by a signal before its run is ended. Whoever stops it for a moment wants it to
/// continue, and its time is of no use then.
pub(super) const STOPPED: Duration = Duration::from_secs(5);

/// The time between two looks at whether a program is stopped: they cost a fraction of a millisecond.
const BETWEEN: Duration = Duration::from_secs(1);

/// Notices a program that is stopped and never continues: it would run forever, and without a limit of time
/// the study with it.
#[derive(Default)]
pub(super) struct Standstill {
    last: Duration,
    /// The program's age when the first of the looks in a row saw it stopped.
    since: Option<Duration>,
}

impl Standstill {
    /// Whether to look at this age.
    pub fn is_due(&self, age: Duration) -> bool {
        age >= self.last + BETWEEN
    }

    /// Notes what a look at this age saw, which ended at another; whether the program has been stopped for too
    /// long.
    pub fn note(&mut self, age: Duration, is_stopped: bool, ended: Duration) -> bool {
        // Of a program of very many processes looks cost more, and are fewer.
        self.last = age + ended.saturating_sub(age) * COST_LIMIT;
        self.since = is_stopped.then(|| self.since.unwrap_or(age));
        self.since.is_some_and(|since| age.saturating_sub(since) >= STOPPED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::{Bytes, CpuSet, MemPolicy, NodeId};

    fn seen(mib: u64) -> Look {
        let residency = Residency { by_node: [(NodeId::new(0), Bytes::from_mib(mib))].into() };
        let memory = vec![(MemPolicy::DEFAULT, residency.clone())];
        Look { residency: Some(residency), threads: vec![(CpuSet::from([mib as u32]), 1)], memory }
    }

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn a_program_that_is_stopped_for_five_seconds_on_end_is_taken_to_stay_so() {
        let seconds = Duration::from_secs;
        let play = |stopped: &[bool]| -> Option<u64> {
            let mut standstill = Standstill::default();
            let mut looks = (1..).zip(stopped);
            looks
                .find(|(age, stopped)| standstill.note(seconds(*age), **stopped, seconds(*age)))
                .map(|(age, _)| age)
        };
        assert_eq!(play(&[true; 9]), Some(6));
        assert_eq!(play(&[true, true, true, true, false, true, true, true, true, true]), None);
        let mut standstill = Standstill::default();
        assert!(!standstill.is_due(ms(999)) && standstill.is_due(ms(1000)));
        assert!(!standstill.note(ms(1000), true, ms(1040)));
        assert!(
            !standstill.is_due(ms(3999)) && standstill.is_due(ms(4000)),
            "a look of 40 ms is made less often"
        );
    }

    #[test]
    fn the_distance_grows_with_the_age_and_the_cost() {
        let mut sampling = Sampling::new();
        let mut due = Vec::new();
        for _ in 0..6 {
            due.push(sampling.next().as_micros());
            let now = sampling.next();
            sampling.keep(Look::default(), now, now);
        }
        assert_eq!(due, [4000, 5000, 6250, 7812, 9765, 12207]);
        sampling.keep(Look::default(), ms(128), ms(148));
        assert_eq!(sampling.next(), ms(1148), "a look of 20 ms waits for 50 times as long");
        let mut sampling = Sampling::new();
        sampling.keep(Look::default(), ms(4), ms(74));
        assert_eq!(
            sampling.next(),
            ms(592),
            "a look of 70 ms at the beginning waits for eight times the age"
        );
    }

    #[test]
    fn a_program_that_grows_until_its_end_is_seen_at_four_fifths_of_its_memory_or_more() {
        for end in [10, 100, 777, 60_000] {
            let mut sampling = Sampling::new();
            while sampling.next() < ms(end) {
                let now = sampling.next();
                sampling.keep(seen(now.as_millis() as u64), now, now);
            }
            let most = sampling.seen().residency.unwrap().total();
            assert!(most.get() >= Bytes::from_mib(end * 4 / 5 - 1).get(), "{most} of {end} MiB");
        }
    }

    #[test]
    fn pages_are_those_of_the_look_with_the_most_and_what_is_in_force_is_the_last_that_was_seen() {
        let mut sampling = Sampling::new();
        let nothing = Look::default;
        for (at, look) in [(1, nothing()), (2, seen(5)), (3, seen(9)), (4, seen(7)), (5, nothing())] {
            sampling.keep(look, ms(at), ms(at));
        }
        assert_eq!(sampling.seen(), Look { residency: seen(9).residency, ..seen(7) });
        assert_eq!(Sampling::new().seen(), nothing());
    }
}
