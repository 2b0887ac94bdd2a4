//! Reclaiming a node before another is tried: `vm.zone_reclaim_mode`.
//!
//! ```text
//! Memory::from_machine(machine, ...).with_zone_reclaim(ZoneReclaim::from_machine(machine, release))
//! ```
//!
//! A node at its low watermark gives up pages of its caches, and the walk stays there, where the node is the
//! CPU's own (or has no CPUs), and not far from the node that is wanted. Without it the walk goes on to the
//! next node at once.
//!
//! # Source
//! `get_page_from_freelist` and `zone_allows_reclaim` in `mm/page_alloc.c`, `node_reclaim` in `mm/vmscan.c`;
//! 5.15 to at least 7.2. Seen on 6.12: mode 1 frees nothing with the multi-generational LRU, mode 7 keeps all
//! pages local with it.

use std::collections::BTreeMap;

use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::{Machine, Node, NodeId, NodeMatrix, NodeSet};

use crate::distance::default_distance;
use crate::memory::{Memory, ZoneState};
use crate::ram::page_bytes;
use crate::release::{Change, Release};

/// Nodes further away than this are not reclaimed: `RECLAIM_DISTANCE`. On AMD's Zen it is 32.
pub const RECLAIM_DISTANCE: u32 = 30;

/// Bits of the mode.
const WRITE: u32 = 2;
const UNMAP: u32 = 4;

/// Which list of pages the kernel reclaims from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lru {
    /// The multi-generational one, on where a distribution builds it so ([`lru_gen_enabled`](nodewise_machine::Settings::lru_gen_enabled)).
    Generations,
    Lists,
}

/// How nodes are reclaimed before others are tried, and what there is to reclaim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneReclaim {
    mode: u32,
    lru: Lru,
    farthest: u32,
    distances: NodeMatrix<u32>,
    with_cpus: NodeSet,
    /// Pages that each node would give up.
    spare: BTreeMap<NodeId, u64>,
}

impl ZoneReclaim {
    /// The machine's settings. An unknown mode is 0, the kernel's default; an unknown list is the
    /// multi-generational one, where the release has it.
    pub fn from_machine(machine: &Machine, release: Release) -> Self {
        let is_new =
            machine.settings.lru_gen_enabled.unwrap_or(true) && release.has(Change::GenerationsOfPages);
        let lru = if is_new { Lru::Generations } else { Lru::Lists };
        let mode = machine.settings.zone_reclaim_mode.unwrap_or(0);
        let page = page_bytes(machine);
        let spare = machine.nodes.values().map(|node| (node.id, spare(node, mode, page)));
        Self {
            mode,
            lru,
            farthest: RECLAIM_DISTANCE,
            distances: machine.distances.clone(),
            with_cpus: machine.nodes_with_cpus(),
            spare: spare.collect_map(),
        }
    }

    /// The same with another list of pages.
    #[must_use]
    pub fn with_lru(self, lru: Lru) -> Self {
        Self { lru, ..self }
    }

    /// The same with another largest distance.
    #[must_use]
    pub fn with_farthest(self, farthest: u32) -> Self {
        Self { farthest, ..self }
    }

    /// The same with this many pages to reclaim on each node.
    #[must_use]
    pub fn with_spare(self, spare: BTreeMap<NodeId, u64>) -> Self {
        Self { spare, ..self }
    }

    /// Whether anything is freed at all. The multi-generational list gives nothing unless pages may be both
    /// written and unmapped.
    const fn frees(&self) -> bool {
        match self.lru {
            Lru::Generations => self.mode & (WRITE | UNMAP) == WRITE | UNMAP,
            Lru::Lists => self.mode & (1 | WRITE | UNMAP) != 0,
        }
    }

    /// Whether a CPU of a node reclaims another node, when pages are wanted from a third, as far as anything is
    /// freed at all.
    pub(crate) fn reclaims(&self, node: NodeId, wanted: NodeId, cpu_node: NodeId) -> bool {
        let distance = self.distances.get(wanted, node).copied();
        let distance = distance.unwrap_or_else(|| default_distance(wanted, node));
        let is_own = node == cpu_node || !self.with_cpus.contains(node);
        is_own && distance <= self.farthest
    }
}

/// Pages of a node's caches beyond those that it keeps: of files above 1 % of its memory
/// (`min_unmapped_ratio`), of the kernel's objects above 5 % (`min_slab_ratio`). What is unknown of a node is
/// none.
fn spare(node: &Node, mode: u32, page: u64) -> u64 {
    let pages = |field: &str| node.size_of(field).map_or(0, |size| size.get() / page);
    let all = pages("MemTotal");
    let kept = |bit: u32, field: &str| if mode & bit == 0 { pages(field) } else { 0 };
    let files = pages("Active(file)") + pages("Inactive(file)");
    let files = files.saturating_sub(kept(UNMAP, "Mapped") + kept(WRITE, "Dirty"));
    files.saturating_sub(all / 100) + pages("SReclaimable").saturating_sub(all / 20)
}

impl Memory {
    /// The same memory under a mode.
    #[must_use]
    pub fn with_zone_reclaim(self, mut reclaim: ZoneReclaim) -> Self {
        if !reclaim.frees() {
            return Self { zone_reclaim: None, spare: Vec::new(), ..self };
        }
        let by_node = std::mem::take(&mut reclaim.spare);
        // What a node has is spread over its zones by their size.
        let share = |zone: &ZoneState| {
            let all = by_node.get(&zone.node).copied().unwrap_or(0);
            let share = u128::from(all) * u128::from(zone.managed);
            let share = share.checked_div(u128::from(self.managed_of(zone.node))).unwrap_or(0) as u64;
            share.min(zone.managed.saturating_sub(zone.free))
        };
        let spare = self.zones.iter().map(share).collect();
        Self { zone_reclaim: Some(reclaim), spare, ..self }
    }

    /// Pages of caches that were given up so far, by node.
    pub const fn reclaimed(&self) -> &BTreeMap<NodeId, u64> {
        &self.reclaimed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::interleave::{InterleavePosition, Weights};
    use crate::policy::set::{Policy, Scope};
    use crate::walk::{Class, HUGE_ORDER, Mark, Request};
    use crate::watermark::Watermarks;
    use crate::zonelist::{BuiltAt, FallbackOrders};
    use crate::zones::ZoneKind;
    use nodewise_machine::{MemPolicy, spec};

    /// Three nodes, the last without CPUs, each with 80 pages above its low watermark and 50 to reclaim.
    fn memory(mode: u32, lru: Lru, distances: &str) -> Memory {
        let text = format!("(1c 1G) (1c 1G) (1G); dist={distances}");
        let mut machine = spec::machine(&text).unwrap();
        machine.settings.zone_reclaim_mode = Some(mode);
        let zone = |node| {
            let marks = Watermarks { min: 10, low: 20, high: 30, promo: 40 };
            let node = NodeId::new(node);
            ZoneState { node, kind: ZoneKind::Normal, managed: 200, free: 100, marks, reserves: [0; 4] }
        };
        let spare = (0..3).map(|node| (NodeId::new(node), 50)).collect();
        let reclaim = ZoneReclaim::from_machine(&machine, Release::REFERENCE).with_lru(lru).with_spare(spare);
        let orders = FallbackOrders::from_machine(&machine, BuiltAt::Boot);
        Memory::new((0..3).map(zone).collect(), orders, Release::REFERENCE).with_zone_reclaim(reclaim)
    }

    const NEAR: &str = "10,20,20/20,10,20/20,20,10";

    fn taken(memory: &mut Memory, policy: &str, pages: u64, order: u32) -> Vec<(u32, u64)> {
        let allowed = memory.nodes();
        let policy: MemPolicy = policy.parse().unwrap();
        let scope = Scope { allowed: &allowed, max_nodes: 1024, release: Release::REFERENCE };
        let policy = Policy::from_mem_policy(&policy, scope).unwrap();
        let outcome = memory.allocate(&Request {
            policy: &policy,
            weights: &Weights::new(),
            cpu_node: NodeId::new(0),
            allowed: &allowed,
            pages,
            order,
            place: InterleavePosition::Address(0),
            class: Class::User,
        });
        let of_low = |share: &&crate::walk::Share| share.mark == Mark::Low;
        let low = outcome.stretches.iter().flat_map(|stretch| &stretch.shares).filter(of_low);
        let mut sums: BTreeMap<u32, u64> = BTreeMap::new();
        low.for_each(|share| *sums.entry(share.node.number()).or_default() += share.pages);
        sums.into_iter().collect()
    }

    /// Pages of each node above its low watermark that 400 pages take.
    fn check(mode: u32, lru: Lru, distances: &str, policy: &str, expected: [u64; 3]) {
        let mut memory = memory(mode, lru, distances);
        let expected: Vec<(u32, u64)> = (0..3).zip(expected).collect();
        assert_eq!(taken(&mut memory, policy, 400, 0), expected, "mode {mode}, {policy}");
        for (node, pages) in expected {
            let reclaimed = memory.reclaimed().get(&NodeId::new(node)).copied().unwrap_or(0);
            assert_eq!(reclaimed, pages - 80);
        }
    }

    #[test]
    fn the_cpus_own_node_and_those_without_cpus_are_reclaimed() {
        check(0, Lru::Lists, NEAR, "default", [80, 80, 80]);
        check(1, Lru::Lists, NEAR, "default", [130, 80, 130]);
        check(1, Lru::Lists, NEAR, "prefer:1", [130, 80, 130]);
    }

    #[test]
    fn the_lists_of_generations_need_both_bits() {
        check(1, Lru::Generations, NEAR, "default", [80, 80, 80]);
        check(7, Lru::Generations, NEAR, "default", [130, 80, 130]);
    }

    #[test]
    fn before_6_1_there_are_no_generations() {
        let mut machine = spec::machine("2x(1c 1G)").unwrap();
        let frees = |machine: &Machine, release| ZoneReclaim::from_machine(machine, release).frees();
        for (mode, old, new) in [(0, false, false), (1, true, false), (4, true, false), (7, true, true)] {
            machine.settings.zone_reclaim_mode = Some(mode);
            let ours = [Release::new(6, 0), Release::new(6, 1)].map(|release| frees(&machine, release));
            assert_eq!(ours, [old, new], "mode {mode}");
        }
    }

    #[test]
    fn a_machine_tells_which_list_it_reclaims_from() {
        let mut machine = spec::machine("2x(1c 1G)").unwrap();
        machine.settings.zone_reclaim_mode = Some(1);
        for (enabled, frees) in [(None, false), (Some(true), false), (Some(false), true)] {
            machine.settings.lru_gen_enabled = enabled;
            assert_eq!(ZoneReclaim::from_machine(&machine, Release::REFERENCE).frees(), frees, "{enabled:?}");
        }
    }

    #[test]
    fn a_node_beyond_the_distance_is_passed_over() {
        check(1, Lru::Lists, "10,20,31/20,10,20/31,20,10", "default", [130, 80, 80]);
        // The distance counts from the node that is wanted, not from the CPU's.
        check(1, Lru::Lists, "10,20,31/20,10,20/31,20,10", "prefer:1", [130, 80, 130]);
    }

    #[test]
    fn the_walk_stays_as_long_as_the_caches_last() {
        let mut memory = memory(1, Lru::Lists, NEAR);
        assert_eq!(taken(&mut memory, "default", 100, 0), [(0, 100)]);
        assert_eq!(taken(&mut memory, "default", 100, 0), [(0, 30), (1, 70)]);
        assert_eq!(memory.free_of(NodeId::new(0)), 20);
        assert_eq!(memory.reclaimed()[&NodeId::new(0)], 50);
    }

    #[test]
    fn turns_of_an_interleaving_policy_are_reclaimed_each_by_its_own_rule() {
        let mut memory = memory(1, Lru::Lists, NEAR);
        // What node 1 has no room for goes to node 2, which has no CPUs and is near to node 1 too.
        assert_eq!(taken(&mut memory, "interleave:0-2", 300, 0), [(0, 100), (1, 80), (2, 120)]);
    }

    #[test]
    fn a_huge_page_does_not_come_of_reclaimed_ones() {
        let mut memory = memory(1, Lru::Lists, NEAR);
        taken(&mut memory, "default", 1, HUGE_ORDER);
        assert_eq!(memory.reclaimed().values().sum::<u64>(), 340 - 240);
    }

    #[test]
    fn what_a_node_tells_of_its_caches_is_spare_above_its_ratios() {
        let mut machine = spec::machine("(1c 1000M)").unwrap();
        let node = machine.nodes.values_mut().next().unwrap();
        let mib = |name: &str, mib: u64| nodewise_machine::MeminfoField {
            name: name.to_owned(),
            value: nodewise_machine::MeminfoValue::Size(nodewise_machine::Bytes::new(mib << 20)),
        };
        node.meminfo.extend([
            mib("Active(file)", 40),
            mib("Inactive(file)", 60),
            mib("Mapped", 20),
            mib("Dirty", 10),
            mib("SReclaimable", 55),
        ]);
        // 100 less 30 and 10 MiB of files, and 5 of the kernel's; then with what is mapped or dirty.
        assert_eq!([1, 3, 5, 7].map(|mode| (spare(node, mode, 4096) * 4096) >> 20), [65, 75, 85, 95]);
    }
}
