//! Sees what the kernel counts while a program runs: `live::SystemWitness` with the counters of the
//! system before and after.

use nodewise_machine::{Machine, NodeSet};
use nodewise_measure::evidence::{Allocations, CpuTime, Evidence, Moves};
use nodewise_measure::executor::{Residency, Surroundings, Witness};
use nodewise_source::parse::counters::Counters;
use nodewise_source::parse::proc_stat::CpuTimes;
use nodewise_source::system;
use nodewise_source::tree::Tree;

use crate::facts::{busy, ticks};
use crate::live::SystemWitness;

/// A witness that counts.
pub struct CountingWitness {
    tree: Tree,
    nodes: NodeSet,
    system: SystemWitness,
    before: Evidence,
    after: Evidence,
}

impl CountingWitness {
    /// A witness of the running system, which is this machine.
    pub fn new(machine: &Machine) -> Self {
        Self {
            tree: Tree::live(),
            nodes: machine.node_ids(),
            system: SystemWitness::new(),
            before: Evidence::default(),
            after: Evidence::default(),
        }
    }

    /// The counters now, since boot.
    fn snapshot(&self) -> Evidence {
        let times = system::cpu_times(&self.tree).ok().flatten().and_then(|parsed| parsed.value.total);
        let counters = system::counters(&self.tree).ok().flatten().map(|parsed| parsed.value);
        let stats = system::numastats(&self.tree, &self.nodes).unwrap_or_default();
        let allocations = stats.into_iter().map(|(node, stat)| {
            let counted = Allocations {
                hit: stat.hit,
                miss: stat.miss,
                foreign: stat.foreign,
                interleave_hit: stat.interleave_hit,
                local: stat.local_node,
                other: stat.other_node,
            };
            (node, counted)
        });
        Evidence {
            cpu: times.as_ref().map(cpu_time),
            allocations: allocations.collect(),
            moves: counters.as_ref().map(moves).unwrap_or_default(),
            ..Evidence::default()
        }
    }
}

fn cpu_time(times: &CpuTimes) -> CpuTime {
    CpuTime { all: ticks(times.total()), busy: ticks(busy(times)), stolen: times.steal.map(ticks) }
}

fn moves(counters: &Counters) -> Moves {
    Moves {
        migrated: counters.get("pgmigrate_success"),
        failed: counters.get("pgmigrate_fail"),
        balanced: counters.get("numa_pages_migrated"),
        hints: counters.get("numa_hint_faults"),
    }
}

/// What was counted between two moments. A counter that went back says nothing.
fn between(before: &Evidence, after: &Evidence) -> Evidence {
    let grown = |before: Option<u64>, after: Option<u64>| after?.checked_sub(before?);
    let cpu = before.cpu.zip(after.cpu).and_then(|(before, after)| {
        Some(CpuTime {
            all: after.all.checked_sub(before.all)?,
            busy: after.busy.checked_sub(before.busy)?,
            stolen: before.stolen.zip(after.stolen).and_then(|(before, after)| after.checked_sub(before)),
        })
    });
    let node = |node, after: &Allocations| {
        let before: &Allocations = before.allocations.get(&node)?;
        let counted = Allocations {
            hit: grown(before.hit, after.hit),
            miss: grown(before.miss, after.miss),
            foreign: grown(before.foreign, after.foreign),
            interleave_hit: grown(before.interleave_hit, after.interleave_hit),
            local: grown(before.local, after.local),
            other: grown(before.other, after.other),
        };
        Some((node, counted))
    };
    let moves = Moves {
        migrated: grown(before.moves.migrated, after.moves.migrated),
        failed: grown(before.moves.failed, after.moves.failed),
        balanced: grown(before.moves.balanced, after.moves.balanced),
        hints: grown(before.moves.hints, after.moves.hints),
    };
    let allocations = after.allocations.iter().filter_map(|(id, after)| node(*id, after)).collect();
    Evidence { cpu, allocations, moves, ..Evidence::default() }
}

impl Witness for CountingWitness {
    fn before(&mut self) {
        self.system.before();
        self.before = self.snapshot();
    }

    fn residency(&mut self, process: u32) -> Option<Residency> {
        self.system.residency(process)
    }

    fn after(&mut self) -> Surroundings {
        self.after = self.snapshot();
        self.system.after()
    }

    fn evidence(&mut self) -> Evidence {
        between(&self.before, &self.after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::NodeId;
    use std::time::Duration;

    #[test]
    fn counters_are_told_as_what_was_added_and_those_that_went_back_not_at_all() {
        let at = |all, hit, migrated| Evidence {
            cpu: Some(CpuTime { all: Duration::from_secs(all), ..CpuTime::default() }),
            allocations: [(NodeId::new(1), Allocations { hit, ..Allocations::default() })].into(),
            moves: Moves { migrated, ..Moves::default() },
            ..Evidence::default()
        };
        let found = between(&at(5, Some(10), Some(7)), &at(8, Some(14), Some(6)));
        assert_eq!(found, at(3, Some(4), None));
        assert_eq!(between(&at(5, None, None), &at(4, Some(1), None)).cpu, None);
        assert_eq!(between(&Evidence::default(), &at(1, Some(1), Some(1))), Evidence::default());
    }

    #[test]
    fn the_running_system_is_counted() {
        let machine = crate::input::open("live", nodewise_source::Detail::Full).unwrap().machine;
        let mut witness = CountingWitness::new(&machine);
        witness.before();
        witness.after();
        assert!(witness.evidence().cpu.is_some());
    }
}
