//! Facts of the system that measuring needs and may not look up itself.

use std::time::Duration;

use nodewise_machine::{Bytes, NodeId, NodeSet};
use nodewise_syscall::HugePageSize;

use super::{Phase, Refusal};
use crate::stop::Stop;

/// The signal of [`Facts`] that know of no end.
static NEVER: Stop = Stop::NEVER;

/// Facts that only files of the kernel, or the user, supply. `None` means that the kernel does not say.
pub trait Facts {
    /// Nodes whose memory this process may use.
    fn allowed_nodes(&self) -> Option<NodeSet> {
        None
    }

    /// Memory of a node that can be had without pushing out anybody's but caches of files.
    fn available(&mut self, _node: NodeId) -> Option<Bytes> {
        None
    }

    /// Memory that this process may still take before the limit of its control group.
    fn below_limit(&mut self) -> Option<Bytes> {
        None
    }

    /// Free pages of a node's pool of huge pages.
    fn free_huge_pages(&mut self, _node: NodeId, _size: HugePageSize) -> Option<u64> {
        None
    }

    /// How much of this range of our own memory is in transparent huge pages.
    fn transparent_huge(&mut self, _address: usize, _length: Bytes) -> Option<Bytes> {
        None
    }

    /// Counts what has happened up to now to the calling thread and around it.
    fn glance(&mut self) -> Glance {
        Glance::default()
    }

    /// Returns the signal that ends the measurement before it is complete.
    fn stop(&self) -> &Stop {
        &NEVER
    }

    /// Is called where work between samples begins that may take its time.
    fn enter(&mut self, _phase: Phase) {}

    /// Is called again and again during such work, never during a sample.
    fn pulse(&mut self) {}

    /// Whether such work is to go on.
    ///
    /// # Errors
    /// [`Refusal::Stopped`] when the measurement is to end.
    fn go_on(&mut self) -> Result<(), Refusal> {
        self.pulse();
        self.stop().check()
    }
}

/// Counters that only grow; differences between two glances mean something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Glance {
    /// Time of all CPUs that the hypervisor gave to others. Known to a tick of the kernel.
    pub stolen: Option<Duration>,
    /// Time of all CPUs that other programs used, beside this process.
    pub others: Option<Duration>,
    /// How often the calling thread had to leave its CPU without wanting to.
    pub switched: Option<u64>,
    /// Page faults of the calling thread: none belong into a timed loop.
    pub faults: Option<u64>,
}

impl Glance {
    /// Computes what has come between an earlier glance and this one.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let time = |now: Option<Duration>, then: Option<Duration>| Some(now?.saturating_sub(then?));
        let count = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        Self {
            stolen: time(self.stolen, earlier.stolen),
            others: time(self.others, earlier.others),
            switched: count(self.switched, earlier.switched),
            faults: count(self.faults, earlier.faults),
        }
    }
}

/// Facts where no one can be asked: nothing is known.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFacts;

impl Facts for NoFacts {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_at_both_ends_is_not_known_between() {
        let early =
            Glance { stolen: Some(Duration::from_millis(10)), switched: Some(7), ..Glance::default() };
        let late = Glance { stolen: Some(Duration::from_millis(30)), faults: Some(2), ..Glance::default() };
        let between = late.since(&early);
        assert_eq!(between, Glance { stolen: Some(Duration::from_millis(20)), ..Glance::default() });
        assert_eq!(early.since(&late).stolen, Some(Duration::ZERO), "a counter that went back");
    }
}
