//! Counts of the kernel while a program ran: where its memory came from, what was moved, and who
//! else was at work.
//!
//! The counters are those of the whole system, so they hold what other programs did too. How much
//! that can have been is counted as well ([`Disturbance`]), and a run that others disturbed is run
//! again ([`Repeats`]). Whether a run is repeated depends on what others did and never on its result:
//! to repeat runs because they were slow would make every arm look fast.

use std::collections::BTreeMap;
use std::time::Duration;

use nodewise_machine::{NodeCounters, NodeId};
pub use nodewise_syscall::perf::Counter;

/// Counts of one run. `None`, and no entry: the kernel does not say.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Evidence {
    pub cpu: Option<CpuTime>,
    /// The CPU time of the program and its children.
    pub own: Option<Duration>,
    pub allocations: BTreeMap<NodeId, NodeCounters<Option<u64>>>,
    /// Pages that were moved.
    pub moves: Moves,
    /// Events that were counted in the program and its children.
    pub events: BTreeMap<Counter, u64>,
}

/// Time of all CPUs together.
///
/// # Source
/// `/proc/stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CpuTime {
    /// All that passed, on every CPU.
    pub all: Duration,
    /// In programs, and in the kernel for them.
    pub busy: Duration,
    pub stolen: Option<Duration>,
}

/// Pages that were moved to another place.
///
/// # Source
/// `/proc/vmstat`: `pgmigrate_success`, `pgmigrate_fail`, `numa_pages_migrated`, `numa_hint_faults`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Moves {
    /// Moved, for whatever reason: by balancing, compaction, or a system call.
    pub migrated: Option<u64>,
    /// Should have been moved, and were not.
    pub failed: Option<u64>,
    pub balanced: Option<u64>,
    /// Faults that balancing caused to see who uses a page.
    pub hints: Option<u64>,
}

impl Evidence {
    /// The sum over all nodes of one of their counters; `None` where no node has it.
    pub fn total(&self, counter: impl Fn(&NodeCounters<Option<u64>>) -> Option<u64>) -> Option<u64> {
        self.allocations.values().filter_map(counter).reduce(u64::saturating_add)
    }

    /// The share of all allocations that a CPU made on its own node, of 1. `None` where nothing was
    /// counted.
    pub fn local_share(&self) -> Option<f64> {
        let (local, other) = (self.total(|node| node.local)?, self.total(|node| node.other)?);
        let all = local.saturating_add(other);
        (all > 0).then(|| local as f64 / all as f64)
    }

    /// Computes what others did meanwhile; `None` where it is not known, or too little time passed to say.
    pub fn disturbance(&self) -> Option<Disturbance> {
        let (cpu, own) = (self.cpu?, self.own?);
        let share = |time: Duration| time.as_secs_f64() / cpu.all.as_secs_f64();
        (cpu.all >= LEAST_TIME).then(|| Disturbance {
            stolen: cpu.stolen.map(share),
            others: share(cpu.busy.saturating_sub(own)),
        })
    }
}

/// The least time of all CPUs in which shares mean something: a hundred ticks of `/proc/stat`, so
/// that one at either end is two in a hundred.
const LEAST_TIME: Duration = Duration::from_secs(1);

/// The work of others during a run, as shares of all CPUs' time, of 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Disturbance {
    /// The share that the hypervisor took; `None` where the kernel does not say.
    pub stolen: Option<f64>,
    pub others: f64,
}

/// When a run counts as spoilt, and how often it is repeated then.
///
/// The limits are a choice and no law: five in a hundred taken by the hypervisor, or ten used by
/// others, change most programs by more than the placements that are compared. A limit that is too
/// low costs time; one that is too high leaves noise, which the verdicts expect.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Repeats {
    /// The share of the CPUs' time that may be stolen, of 1.
    pub stolen: f64,
    /// The share that other programs may use, of 1.
    pub others: f64,
    /// How often a run is repeated at most.
    pub per_run: u32,
    /// Repeats in the whole study, as a share of the runs that count: on a machine that is never
    /// quiet nothing is gained by them.
    pub share: f64,
}

impl Repeats {
    /// Two repeats of a run, and a quarter more runs, at most.
    pub const DEFAULT: Self = Self { stolen: 0.05, others: 0.10, per_run: 2, share: 0.25 };

    /// The default, with this many repeats of a run; `None` for none.
    pub fn at_most(per_run: u32) -> Option<Self> {
        (per_run > 0).then_some(Self { per_run, ..Self::DEFAULT })
    }

    /// Whether others spoilt a run with this evidence. What is not known spoils nothing.
    pub fn spoilt(&self, evidence: &Evidence) -> bool {
        evidence.disturbance().is_some_and(|disturbance| {
            disturbance.others > self.others || disturbance.stolen.is_some_and(|stolen| stolen > self.stolen)
        })
    }

    /// Whether one more repeat is allowed of a run that was repeated `repeated` times, in a study that
    /// has `counted` runs so far and was `set_aside` others.
    pub fn allow(&self, repeated: u32, counted: usize, set_aside: usize) -> bool {
        // One is allowed from the start: the first runs wake the machine.
        repeated < self.per_run && (set_aside as f64) < 1.0 + self.share * counted as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(all: u64, busy: u64, stolen: Option<u64>, own: u64) -> Evidence {
        let time = Duration::from_millis;
        Evidence {
            cpu: Some(CpuTime { all: time(all), busy: time(busy), stolen: stolen.map(time) }),
            own: Some(time(own)),
            ..Evidence::default()
        }
    }

    fn check(evidence: &Evidence, spoilt: bool) {
        assert_eq!(Repeats::DEFAULT.spoilt(evidence), spoilt, "{:?}", evidence.disturbance());
    }

    #[test]
    fn a_run_is_spoilt_by_what_others_did_and_not_by_what_it_did_itself() {
        check(&evidence(4000, 2000, Some(0), 2000), false);
        check(&evidence(4000, 2300, Some(100), 2000), false);
        check(&evidence(4000, 2500, Some(0), 2000), true);
        check(&evidence(4000, 2000, Some(201), 2000), true);
        check(&evidence(4000, 2000, None, 2000), false);
        // Ticks are coarse: the program's own time can be the larger one.
        check(&evidence(4000, 1990, Some(0), 2000), false);
    }

    #[test]
    fn what_is_not_known_or_too_short_to_tell_spoils_nothing() {
        check(&evidence(999, 999, Some(999), 0), false);
        check(&Evidence { own: None, ..evidence(4000, 4000, None, 0) }, false);
        check(&Evidence::default(), false);
    }

    #[test]
    fn repeats_are_bounded_by_run_and_by_study() {
        let allowed = |repeated, counted, set_aside| Repeats::DEFAULT.allow(repeated, counted, set_aside);
        assert!(allowed(0, 0, 0) && !allowed(1, 0, 1));
        assert!(allowed(1, 8, 2) && !allowed(2, 8, 2) && !allowed(0, 8, 3));
        assert_eq!(Repeats::at_most(0), None);
        assert_eq!(Repeats::at_most(5).map(|repeats| repeats.per_run), Some(5));
    }

    #[test]
    fn the_share_that_is_local_counts_all_nodes() {
        let node = |local, other| NodeCounters { local, other, ..NodeCounters::default() };
        let of = |nodes: &[NodeCounters<Option<u64>>]| Evidence {
            allocations: (0..).map(NodeId::new).zip(nodes.iter().copied()).collect(),
            ..Evidence::default()
        };
        assert_eq!(of(&[node(Some(6), Some(1)), node(Some(0), Some(1))]).local_share(), Some(0.75));
        assert_eq!(of(&[node(Some(0), Some(0))]).local_share(), None);
        assert_eq!(of(&[node(Some(5), None)]).local_share(), None);
        assert_eq!(of(&[]).local_share(), None);
    }
}
