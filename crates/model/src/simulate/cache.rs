//! Page cache of files on a disk: pages that programs read and write, that are written back, and that are dropped.
//!
//! A page of the cache is nobody's: it comes from where the policy of the task that reads or writes it says, stays when that
//! program has ended, and goes when the kernel needs its memory or `drop_caches` is written. Files in memory (tmpfs) are
//! mapped memory instead.
//!
//! Which pages go depends on their age, which no file of the kernel shows, and how many goes by kswapd, which frees ahead: the
//! model drops as few as are wanted, those first that were used longest ago, and [`Simulation::page_cache`] gives the interval
//! (`simulate/doubt.rs`).
//!
//! # Source
//! `filemap_alloc_folio` in `mm/filemap.c` (policy of the task, by its cursor where it interleaves; `cpuset.memory_spread_page` of
//! version 1 of the cpusets is not modelled), `drop_pagecache_sb` in `fs/drop_caches.c`; 5.15 to at least 7.2. Compared with 6.12:
//! placement by each policy, spilling at the low watermark, dropping for a bound program, and dirty pages that `drop_caches` leaves.

use std::collections::BTreeMap;
use std::ops::Range;

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
        let all = pages.end - pages.start;
        // Pages that are written go to other nodes before one is full.
        self.doubt_again(id, all - missing, if writes { u64::MAX } else { all });
        for range in lacking {
            if let Some(object) = self.objects.get_mut(&object) {
                object.read_in.set(range.clone(), Some(now));
            }
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
            self.doubt_turns(id, &step);
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
        self.doubt_left(&left);
        step
    }

    /// Drops this many pages of files from the cache of a node, of all groups or of one and those below it; gives how many.
    /// Groups are spared as far as they are protected, below `memory.low` until nothing else is left.
    pub(super) fn drop_cached(&mut self, node: NodeId, within: Option<GroupId>, pages: u64) -> u64 {
        if within.is_none() {
            self.doubt_ages(node, pages);
        }
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
    pub(super) fn cached_pages(&self) -> BTreeMap<NodeId, u64> {
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

    /// Pages of a node that the disk does not have, as long as nothing is written back.
    pub(super) fn dirty_on(&self, node: NodeId) -> u64 {
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
    pub(super) fn is_dirty(&self, extent: &Extent) -> bool {
        let pages = extent.run.pages.clone();
        self.dirty.pieces(pages).iter().any(|(_, dirty)| dirty.is_some())
    }

    /// Cuts the extents where pages begin and end that the disk does not have.
    fn carve_dirty(&mut self, family: &Family) {
        let ranges: Vec<Range<u64>> = self.dirty_ranges().collect();
        ranges.iter().for_each(|range| self.extents.carve(range, family));
    }
}
