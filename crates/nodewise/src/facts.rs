//! Facts of the running system and options of the user that measuring needs.

use std::rc::Rc;
use std::time::Duration;

use nodewise_machine::{Bytes, Machine, NodeId, NodeSet};
use nodewise_measure::cell::{Facts, Glance, HugePageSize, Phase};
use nodewise_measure::stop::Stop;
use nodewise_measure::timer::process_time;
use nodewise_source::parse::proc_stat::CpuTimes;
use nodewise_source::tree::Tree;
use nodewise_source::{spare, system};
use nodewise_syscall::pages::page_size;
use nodewise_syscall::wait::Usage;

use crate::measuring::line::ProgressLine;

/// A tick of the counters in `/proc/stat`: `USER_HZ` is 100 on every current architecture.
const TICK_MS: u64 = 10;

/// Facts of the running system, for a measurement that this ends and that this line shows.
pub struct LiveFacts {
    tree: Tree,
    allowed_nodes: Option<NodeSet>,
    stop: Stop,
    line: Rc<ProgressLine>,
}

impl LiveFacts {
    /// Facts for a process that looked at this machine.
    pub fn new(machine: &Machine, stop: Stop, line: Rc<ProgressLine>) -> Self {
        Self { tree: Tree::live(), allowed_nodes: machine.allowed_nodes.clone(), stop, line }
    }

    /// The line that shows how far the measurement is.
    pub fn line(&self) -> Rc<ProgressLine> {
        Rc::clone(&self.line)
    }

    /// Does a part of the work, which ends after this share of the time that is left.
    pub fn for_part<T>(&mut self, share: f64, work: impl FnOnce(&mut Self) -> T) -> T {
        let part = self.stop.for_part(share);
        let whole = std::mem::replace(&mut self.stop, part);
        let result = work(self);
        self.stop = whole;
        result
    }
}

impl Facts for LiveFacts {
    fn allowed_nodes(&self) -> Option<NodeSet> {
        self.allowed_nodes.clone()
    }

    fn available(&mut self, node: NodeId) -> Option<Bytes> {
        spare::of_node(&self.tree, node, Some(Bytes::new(page_size() as u64))).ok().flatten()
    }

    fn below_limit(&mut self) -> Option<Bytes> {
        spare::below_limit(&self.tree)
    }

    fn free_huge_pages(&mut self, node: NodeId, size: HugePageSize) -> Option<u64> {
        spare::huge_pages(&self.tree, node, size.bytes()).ok().flatten()
    }

    fn transparent_huge(&mut self, address: usize, length: Bytes) -> Option<Bytes> {
        let start = address as u64;
        spare::transparent_huge(&self.tree, start, start.saturating_add(length.get())).ok().flatten()
    }

    fn glance(&mut self) -> Glance {
        let usage = Usage::of_this_thread();
        let times = system::cpu_times(&self.tree).ok().flatten().and_then(|parsed| parsed.value.total);
        Glance {
            stolen: times.and_then(|times| times.steal).map(ticks),
            others: times.map(|times| ticks(busy(&times)).saturating_sub(process_time())),
            switched: usage.as_ref().map(|usage| usage.involuntary_switches),
            faults: usage.as_ref().map(|usage| usage.minor_faults.saturating_add(usage.major_faults)),
        }
    }

    fn stop(&self) -> &Stop {
        &self.stop
    }

    fn enter(&mut self, phase: Phase) {
        self.line.enter(phase);
    }

    fn pulse(&mut self) {
        self.line.pulse();
    }
}

/// Ticks in which CPUs ran programs, or the kernel for them.
pub(crate) fn busy(times: &CpuTimes) -> u64 {
    times.user.saturating_add(times.nice).saturating_add(times.system)
}

pub(crate) fn ticks(count: u64) -> Duration {
    Duration::from_millis(count.saturating_mul(TICK_MS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_measure::cell::PageKind;
    use nodewise_syscall::NodeBuffer;

    #[test]
    fn ticks_go_on_after_years() {
        assert_eq!(ticks(3), Duration::from_millis(30));
        let of = |count: u64| ticks((1 << 33) + count);
        assert_eq!(of(1) - of(0), Duration::from_millis(10));
        assert!(ticks(u64::MAX) > of(0));
    }

    #[test]
    fn the_running_system_tells_what_it_can() {
        let mut facts = LiveFacts::new(
            &Machine::new(nodewise_machine::Origin::Live),
            Stop::NEVER,
            Rc::new(ProgressLine::new()),
        );
        let before = facts.glance();
        let buffer = NodeBuffer::new(Bytes::from_mib(8), PageKind::TransparentHuge, None).unwrap();
        let after = facts.glance();
        assert!(after.faults > before.faults, "{before:?} {after:?}");
        if let Some(huge) = facts.transparent_huge(buffer.address(), buffer.length()) {
            assert!(huge <= Bytes::from_mib(16), "{huge} of 8 MiB, and of what is beside it");
        }
        assert_eq!(facts.available(NodeId::new(100_000)), None);
    }

    #[test]
    fn ticks_are_hundredths_of_a_second() {
        assert_eq!(ticks(250), Duration::from_millis(2500));
        assert!(ticks(u64::MAX) > Duration::from_secs(1_000_000));
    }
}
