//! Page cache of files on a disk: pages that programs read and write, that are written back, and that are dropped.
//!
//! A page of the cache is nobody's: it comes from where the policy of the task that reads or writes it says, stays when that
//! program has ended, and goes when the kernel needs its memory or `drop_caches` is written. Files in memory (tmpfs) are
//! mapped memory instead.
//!
//! Which pages go depends on their age, which no file of the kernel shows, and how many goes by kswapd, which frees ahead: the
//! model drops as few as are wanted, those first that were used longest ago, and [`Simulation::page_cache`] gives the interval.
//!
//! # Source
//! `filemap_alloc_folio` in `mm/filemap.c` (policy of the task, by its cursor where it interleaves; `cpuset.memory_spread_page` of
//! version 1 of the cpusets is not modelled), `balance_pgdat` and `kswapd_shrink_node` in `mm/vmscan.c`, `node_dirty_ok` in
//! `mm/page-writeback.c`, `drop_pagecache_sb` in `fs/drop_caches.c`; 5.15 to at least 7.2. Compared with 6.12: placement by each
//! policy, spilling at the low watermark, dropping for a bound program, and dirty pages that `drop_caches` leaves.

use std::collections::BTreeMap;
use std::ops::Range;

use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::{NodeId, NodeSet};

use super::Simulation;
use super::act::FilePart;
use super::extents::{Extent, Key};
use super::family::Family;
use super::limits::{Charged, GroupId, Protection};
use super::program::{Id, Object, ObjectId, ObjectKind};
use super::run::Held;
use super::spans::Spans;
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
    /// Reads a part of a file, or writes to it: pages that are in the cache are used, others come into it.
    pub(super) fn use_file(&mut self, id: Id, part: &FilePart, writes: bool) -> Step {
        let mut step = Step::default();
        let (object, pages) = (self.cached_object(&part.file), part.pages.clone());
        self.changed_caches.insert(part.file.clone());
        self.carve(object, &pages);
        let now = self.now;
        let Some(found) = self.objects.get_mut(&object) else { return step };
        let used: Vec<Key> = found.extents.overlapping(&pages).map(|(key, _)| key).collect();
        for key in used {
            found.extents.touch(key, now, id);
        }
        let lacking = found.lacking(&pages);
        let missing: u64 = lacking.iter().map(|range| range.end - range.start).sum();
        let policy = self.in_force(id).clone();
        self.doubt_again(id, (pages.end - pages.start) - missing);
        for range in lacking {
            // A stopped program has been reported.
            if self.fault(id, object, &policy, (range, None), &mut step).is_err() {
                break;
            }
        }
        if let Some(object) = self.objects.get_mut(&object) {
            if writes {
                object.dirty.set(pages.clone(), Some(()));
                // A file that is larger than the memory has dropped some of its own.
                object.lacking(&pages).into_iter().for_each(|gone| object.dirty.set(gone, None));
            }
            object.tidy(&self.family);
        }
        if writes && self.programs.contains_key(&id) {
            self.doubt_spread(id, &step);
        }
        step
    }

    /// The cache of a file, empty where no program has used the file yet.
    fn cached_object(&mut self, file: &str) -> ObjectId {
        if let Some(object) = self.cached.get(file) {
            return *object;
        }
        let object = self.next_object;
        self.next_object += 1;
        self.objects.insert(object, Object::new(ObjectKind::Cached));
        self.cached.insert(file.to_owned(), object);
        object
    }

    /// Has all files on the disk, as after `sync(2)`.
    pub fn write_back(&mut self) {
        for object in self.objects.values_mut() {
            object.dirty = Spans::default();
        }
        self.is_flushing = false;
    }

    /// `drop_caches`: all clean pages go, those too that are protected.
    pub(super) fn drop_all(&mut self) -> Step {
        let mut step = Step::default();
        let nodes = self.memory.nodes();
        for node in &nodes {
            self.drop_caches(node, u64::MAX, &mut step);
        }
        for object in self.cached_objects() {
            for node in &nodes {
                let dropped =
                    self.drop_extents(object, node, u64::MAX, |object, extent| !object.is_dirty(extent));
                if dropped > 0 {
                    step.drop_caches(node, dropped);
                }
            }
        }
        let left = self.cached_pages();
        step.unwritten = left.values().sum();
        self.doubts.retain(|node, _| left.contains_key(node));
        for (node, pages) in left.iter().filter(|_| self.is_flushing) {
            self.doubts.entry(*node).or_default().fewer = *pages;
        }
        if step.unwritten == 0 {
            self.doubts.clear();
        }
        step
    }

    /// Drops this many pages of files from the cache of a node, of all groups or of one and those below it; gives how many.
    /// Groups are spared as far as they are protected, below `memory.low` until nothing else is left.
    pub(super) fn drop_cached(&mut self, node: NodeId, within: Option<GroupId>, pages: u64) -> u64 {
        for respected in [Protection::Low, Protection::Min] {
            let dropped = self.drop_beyond((node, within), respected, pages);
            if dropped > 0 {
                return dropped;
            }
        }
        0
    }

    fn drop_beyond(
        &mut self,
        (node, within): (NodeId, Option<GroupId>),
        respected: Protection,
        pages: u64,
    ) -> u64 {
        let inside = NodeSet::from_iter([node]);
        let mut left = pages;
        // Pages that are not on the disk have to be written first.
        for is_dirty in [false, true] {
            for (since, object) in self.oldest(&inside, |kind| kind == ObjectKind::Cached) {
                for (_, charged) in self.charges(&inside, within, (since, object)) {
                    let most = left.min(self.unprotected(charged, within, respected));
                    let old = |object: &Object, extent: &Extent| {
                        extent.since == since
                            && extent.charged == charged
                            && object.is_dirty(extent) == is_dirty
                    };
                    left -= self.drop_extents(object, node, most, old);
                    if left == 0 {
                        return pages;
                    }
                }
            }
        }
        pages - left
    }

    /// Drops this many pages of a node out of some extents of an object; gives how many.
    fn drop_extents(
        &mut self,
        object: ObjectId,
        node: NodeId,
        most: u64,
        which: impl Fn(&Object, &Extent) -> bool,
    ) -> u64 {
        let Some(found) = self.objects.get_mut(&object).filter(|_| most > 0) else { return 0 };
        let on_node = |held: &Held| held.node() == Some(node);
        found.carve_dirty(&self.family);
        let mut left = most;
        let (mut pieces, mut gone) = (Vec::new(), Vec::new());
        for key in found.extents.keys_of(|extent| extent.run.count(on_node) > 0 && which(found, extent)) {
            if left == 0 {
                break;
            }
            let Some(extent) = found.extents.take(key) else { continue };
            let mut kept = Vec::new();
            // Which pages of a round go is not known.
            for mut run in extent.run.sorted() {
                if left == 0 || run.count(on_node) == 0 {
                    kept.push(Extent { run, ..extent.clone() });
                    continue;
                }
                let length = (run.pages.end - run.pages.start).min(left);
                if run.pages.start + length < run.pages.end {
                    let rest = run.cut(run.pages.start + length);
                    kept.push(Extent { run: rest, ..extent.clone() });
                }
                left -= length;
                gone.push(Extent { run, ..extent.clone() });
            }
            pieces.push((key, kept));
        }
        found.extents.put_pieces(pieces);
        gone.iter().for_each(|extent| found.dirty.set(extent.run.pages.clone(), None));
        self.note_cache(object);
        for Extent { run, charged, .. } in gone {
            if let Some(group) = charged {
                self.recharge(group, Charged::from_runs([&run]), Charged::default());
            }
            self.give_back(ObjectKind::Cached, run.counts());
        }
        most - left
    }

    fn note_cache(&mut self, object: ObjectId) {
        let name = self.cached.iter().find(|(_, own)| **own == object).map(|(name, _)| name.clone());
        self.changed_caches.extend(name);
    }

    fn cached_objects(&self) -> Vec<ObjectId> {
        self.cached.values().copied().collect()
    }

    /// Pages of files in the cache, by node.
    fn cached_pages(&self) -> BTreeMap<NodeId, u64> {
        let mut pages = BTreeMap::new();
        let objects = self.cached.values().filter_map(|object| self.objects.get(object));
        for extent in objects.flat_map(|object| &object.extents) {
            for (held, count) in extent.run.places() {
                let Some(node) = held.node() else { continue };
                *pages.entry(node).or_default() += count;
            }
        }
        pages
    }

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

    /// Notes that pages of a file which are used again may have been dropped, and come back now to another node.
    fn doubt_again(&mut self, id: Id, used: u64) {
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
    fn doubt_spread(&mut self, id: Id, step: &Step) {
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

    /// Pages of a node that the disk does not have, as long as nothing is written back.
    fn dirty_on(&self, node: NodeId) -> u64 {
        let on_node = |held: &Held| held.node() == Some(node);
        let objects = self.cached.values().filter_map(|object| self.objects.get(object));
        objects
            .map(|object| object.dirty_ranges().map(|range| object.count(&range, on_node)).sum::<u64>())
            .sum()
    }
}

impl Object {
    /// Ranges of its pages that the disk does not have.
    fn dirty_ranges(&self) -> impl Iterator<Item = Range<u64>> {
        self.dirty
            .pieces(0..u64::MAX)
            .into_iter()
            .filter(|(_, dirty)| dirty.is_some())
            .map(|(range, _)| range)
    }

    /// Whether pages of an extent are not on the disk; it lies inside or outside of what was written.
    fn is_dirty(&self, extent: &Extent) -> bool {
        let pages = extent.run.pages.clone();
        self.dirty.pieces(pages).iter().any(|(_, dirty)| dirty.is_some())
    }

    /// Cuts the extents where pages begin and end that the disk does not have.
    fn carve_dirty(&mut self, family: &Family) {
        let ranges: Vec<Range<u64>> = self.dirty_ranges().collect();
        ranges.iter().for_each(|range| self.extents.carve(range, family));
    }
}
