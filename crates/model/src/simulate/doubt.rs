//! Page cache of a node that may be elsewhere, or nowhere: the model places and drops it as if no kswapd worked ahead.
//!
//! # Source
//! `balance_pgdat` and `kswapd_shrink_node` in `mm/vmscan.c`, `boost_watermark` in `mm/page_alloc.c`, `node_dirty_ok` in
//! `mm/page-writeback.c`; 5.15 to at least 7.2.

use std::collections::BTreeMap;

use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::{NodeId, NodeSet};

use super::Simulation;
use super::program::Id;
use super::step::Step;
use crate::caches::Interval;

/// `vm.dirty_ratio` of the kernel, in percent: a node takes no more pages to write to beyond this share of what it has free and in
/// its cache, as long as another one does.
const DIRTY_RATIO: u64 = 20;

/// `vm.dirty_background_ratio`, in percent: with more the kernel begins to write back.
const DIRTY_BACKGROUND_RATIO: u64 = 10;

/// Page cache of a node that may be elsewhere, or nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Doubt {
    /// Pages that the kernel may have dropped beyond those of the model, or have on another node.
    fewer: u64,
    /// Pages that may be here instead of elsewhere.
    more: u64,
}

impl Simulation {
    /// Pages of files in the cache of each node, at least and at most. The placements of the files are inside.
    pub fn page_cache(&self) -> BTreeMap<NodeId, Interval> {
        let pages = self.cached_pages();
        let interval = |node: NodeId| {
            let (pages, doubt) =
                (pages.get(&node).copied().unwrap_or(0), self.doubts.get(&node).copied().unwrap_or_default());
            // More than what it has free, down to the minimum watermark, does not fit.
            let zones = self.memory.zones.iter().filter(|zone| zone.node == node);
            let kept: u64 = zones.map(|zone| zone.marks.min).sum();
            let room = self.memory.free_of(node).saturating_sub(kept);
            Interval {
                least: pages.saturating_sub(doubt.fewer),
                most: pages.saturating_add(doubt.more.min(room)),
            }
        };
        let nodes: NodeSet = pages.keys().chain(self.doubts.keys()).copied().collect();
        nodes.iter().map(|node| (node, interval(node))).collect_map()
    }

    /// Notes that kswapd of some nodes is awake: it frees until the zones are above their high watermarks, and in its last pass up to
    /// as much again. The watermarks of fragmented zones are raised meanwhile (`boost_watermark` in `mm/page_alloc.c`).
    pub(super) fn doubt_awake(&mut self, nodes: &NodeSet, step: &mut Step) {
        for (node, ahead) in self.doubt_cached(nodes) {
            step.free_ahead(node, ahead);
        }
    }

    /// Notes that pages which no program has asked for, such as page tables and blocks of file systems, at most this many on each
    /// node, may have woken the kswapd of a node that is as near its low watermarks.
    pub fn doubt_own(&mut self, pages: u64) {
        let nodes = self.memory.nodes();
        let near = nodes.iter().filter(|node| self.memory.above_low_of(*node) < pages).collect();
        self.doubt_cached(&near);
    }

    /// Doubts that kswapds of some nodes have left what is cached there; gives the pages that each may free.
    fn doubt_cached(&mut self, nodes: &NodeSet) -> Vec<(NodeId, u64)> {
        let cached = self.cached_pages();
        let cached: Vec<_> = cached.into_iter().filter(|(node, _)| nodes.contains(*node)).collect();
        if !cached.is_empty() {
            self.is_flushing |= self.memory.nodes().iter().any(|node| self.dirty_on(node) > 0);
        }
        let ahead = |(node, pages)| {
            let high = *self.memory.high_of(node).end();
            let ahead = high.saturating_mul(2).saturating_sub(self.memory.free_of(node)).min(pages);
            let doubt = self.doubts.entry(node).or_default();
            doubt.fewer = doubt.fewer.max(ahead);
            (node, ahead)
        };
        cached.into_iter().map(ahead).collect()
    }

    /// Settles doubts where `drop_caches` has left these pages, which were not on the disk: some may have been written back before.
    pub(super) fn doubt_left(&mut self, left: &BTreeMap<NodeId, u64>) {
        self.doubts.retain(|node, _| left.contains_key(node));
        for (node, pages) in left.iter().filter(|_| self.is_flushing) {
            self.doubts.entry(*node).or_default().fewer = *pages;
        }
    }

    /// Notes that pages of a file which are used again may have been dropped, and come back now to another node.
    pub(super) fn doubt_again(&mut self, id: Id, used: u64) {
        let gone = self.doubts.values().map(|doubt| doubt.fewer).sum::<u64>().min(used);
        if gone == 0 {
            return;
        }
        for node in &self.usable(id) {
            let doubt = self.doubts.entry(node).or_default();
            doubt.more = doubt.more.max(gone);
        }
    }

    /// Notes that pages which were written may be on other nodes, where a node has as many that are not on the disk as it may have.
    pub(super) fn doubt_spread(&mut self, id: Id, step: &Step) {
        let usable = self.usable(id);
        let cached = self.cached_pages();
        let everywhere = self.memory.nodes();
        let dirty: u64 = everywhere.iter().map(|node| self.dirty_on(node)).sum();
        let dirtyable: u64 =
            everywhere.iter().map(|node| self.memory.free_of(node)).chain(cached.values().copied()).sum();
        self.is_flushing |=
            u128::from(dirty) * 100 > u128::from(dirtyable) * u128::from(DIRTY_BACKGROUND_RATIO);
        for (node, taken) in step.taken.iter().filter(|_| usable.len() > 1) {
            let dirtyable = self.memory.free_of(*node) + cached.get(node).copied().unwrap_or(0);
            let limit = u128::from(dirtyable) * u128::from(DIRTY_RATIO) / 100;
            let beyond = self.dirty_on(*node).saturating_sub(limit as u64).min(*taken);
            if beyond == 0 {
                continue;
            }
            for other in &usable {
                let doubt = self.doubts.entry(other).or_default();
                let side = if other == *node { &mut doubt.fewer } else { &mut doubt.more };
                *side = side.saturating_add(beyond);
            }
        }
    }

    /// Nodes on which a program's page cache may be.
    fn usable(&self, id: Id) -> NodeSet {
        self.end_of(id, self.in_force(id), 0).inside
    }
}
