//! Touching pages: those that are missing are taken, those on a disk come back, and those that
//! another program has too are copied.
//!
//! # Source
//! `do_wp_page`: memory in common with a child is copied by whoever writes to it. `do_swap_page`: swapped
//! pages remember no node, and are placed again; 5.15 to at least 7.2.

use std::ops::Range;

use super::Simulation;
use super::extents::Extent;
use super::limits::Charged;
use super::moving::{Move, To};
use super::placement::{enter, gain, leave, places_of};
use super::program::{Id, ObjectId, ObjectKind, gaps};
use super::reclaim::Stopped;
use super::run::{At, Held, Run};
use super::spans::Spans;
use super::step::{Cause, Step};
use crate::memory::HugeEffort;
use crate::policy::interleave::{InterleavePosition, Turns};
use crate::policy::set::Policy;
use crate::walk::{Class, OutOfMemory, Outcome, Request};

/// Pages of a range that a program touches.
struct Found {
    kind: ObjectKind,
    /// Those that others have too, and that the program copies.
    copied: Spans<()>,
    /// Where some are in swap.
    out: Vec<Range<u64>>,
    /// Those that have to be taken, the copies among them.
    lacking: Vec<Range<u64>>,
}

const fn is_swapped(held: &Held) -> bool {
    matches!(held.at, At::Swap)
}

impl Simulation {
    /// A program writes to every page of a range.
    pub(super) fn touch(
        &mut self,
        id: Id,
        object: ObjectId,
        pages: Range<u64>,
        step: &mut Step,
    ) -> Result<(), Stopped> {
        self.note_program(id);
        self.note_file(object);
        let Found { kind, copied, out, lacking } = self.find(id, object, &pages);
        // What is out comes back first: pages that go to the disk to make room below stay there.
        self.swap_in(id, object, out, step)?;
        for (part, is_copied) in lacking.into_iter().flat_map(|part| copied.pieces(part)) {
            let is_new = kind == ObjectKind::Private && is_copied.is_none();
            let huge = self.huge_effort(id, object).filter(|_| is_new);
            for (part, policy) in self.policies(id, object, part) {
                match kind {
                    ObjectKind::Pool => self.fault_from_pool(id, object, &policy, part, step)?,
                    ObjectKind::File | ObjectKind::Private | ObjectKind::Cached => {
                        self.fault(id, object, &policy, (part, huge), step)?
                    }
                }
            }
        }
        Ok(())
    }

    /// Takes the pages of a range that are there: those of a file are mapped, and those that others have too
    /// stop being the program's.
    fn find(&mut self, id: Id, object: ObjectId, pages: &Range<u64>) -> Found {
        self.carve(object, pages);
        let now = self.now;
        let (mut copied, mut out, mut others) = (Spans::default(), Vec::new(), Vec::new());
        let Some(found) = self.objects.get_mut(&object) else {
            return Found { kind: ObjectKind::Private, copied, out, lacking: Vec::new() };
        };
        // Pages that several have are counted with the first of them alone: for no other anything changes.
        let keys = match found.kind {
            ObjectKind::File => found.extents.overlapping(pages).map(|(key, _)| key).collect(),
            ObjectKind::Private | ObjectKind::Pool | ObjectKind::Cached => {
                found.copies(id, pages, &self.family)
            }
        };
        let mut there = Vec::with_capacity(keys.len());
        for key in keys {
            let Some(extent) = found.extents.get(key) else { continue };
            let (is_file, range) = (found.kind == ObjectKind::File, extent.run.pages.clone());
            let is_out = extent.run.count(is_swapped) > 0;
            let is_own = if is_file {
                extent.holders.contains(id, &self.family)
            } else {
                extent.holders.is_one(&found.mappers)
            };
            if is_file || is_own {
                found.extents.touch(key, now, id);
                out.extend(Some(range.clone()).filter(|_| is_out));
                there.push(range);
            } else {
                copied.set(range, Some(()));
            }
            if is_own {
                continue;
            }
            let Some(mut extent) = found.extents.take(key) else { continue };
            others.extend(if is_file {
                enter(&mut self.programs, id, object, &mut extent)
            } else {
                leave(&mut self.programs, id, (object, &found.mappers), &mut extent)
            });
            found.extents.put(key, extent);
        }
        let (kind, lacking) = (found.kind, gaps(pages, there));
        others.into_iter().for_each(|other| self.note_program(other));
        Found { kind, copied, out, lacking }
    }

    /// A range in pieces, each with the policy that places its pages.
    pub(super) fn policies(&self, id: Id, object: ObjectId, pages: Range<u64>) -> Vec<(Range<u64>, Policy)> {
        let program = &self.programs[&id];
        let of_file = self.objects.get(&object).filter(|object| object.kind == ObjectKind::File);
        let region = || program.region_of(object).map(|region| &region.policies);
        let policies = of_file.map(|object| &object.policies).or_else(region);
        let pieces = policies.map(|policies| policies.pieces(pages)).unwrap_or_default();
        pieces
            .into_iter()
            .map(|(range, policy)| (range, policy.unwrap_or_else(|| self.in_force(id).clone())))
            .collect()
    }

    fn huge_effort(&self, id: Id, object: ObjectId) -> Option<HugeEffort> {
        self.programs[&id].region_of(object)?.huge
    }

    /// Takes pages for a range where none are.
    pub(super) fn fault(
        &mut self,
        id: Id,
        object: ObjectId,
        policy: &Policy,
        pages: (Range<u64>, Option<HugeEffort>),
        step: &mut Step,
    ) -> Result<(), Stopped> {
        let is_cache = self.objects.get(&object).is_some_and(|object| object.kind == ObjectKind::Cached);
        let before = self.before(id, policy, is_cache, step);
        let end = self.take(id, object, policy, pages, step);
        if let Some(before) = before {
            self.doubt_places(&before, is_cache, step);
        }
        end
    }

    /// The same without the doubts that come with it.
    fn take(
        &mut self,
        id: Id,
        object: ObjectId,
        policy: &Policy,
        (mut pages, huge): (Range<u64>, Option<HugeEffort>),
        step: &mut Step,
    ) -> Result<(), Stopped> {
        let mut pressure = 1;
        let order = if huge.is_some() { self.memory.huge_order() } else { 0 };
        while pages.start < pages.end {
            let left = self.charge(id, pages.end - pages.start, step)?;
            // Where small pages had to do, they do up to the next place for a huge one.
            let block = 1 << order;
            let passed = pages.start % block;
            let (order, count) = if passed == 0 && left >= block {
                (order, left >> order)
            } else {
                (0, left.min(block - passed))
            };
            let program = &self.programs[&id];
            self.memory.huge_effort = huge.unwrap_or(HugeEffort::Everywhere);
            let outcome = self.memory.allocate(&Request {
                policy,
                weights: &self.weights,
                cpu_node: program.cpu_node,
                allowed: &program.allowed,
                pages: count,
                order,
                place: InterleavePosition::File { inode: 0, page: pages.start },
                class: Class::User,
            });
            // Pages that move are looked for everywhere.
            self.memory.huge_effort = HugeEffort::Everywhere;
            let given = self.put(id, object, policy, pages.start, &outcome, step);
            pages.start += given;
            if outcome.above_low().is_some() || outcome.out_of_memory.is_some() {
                let awake = self.end_of(id, policy, 0).inside;
                self.doubt_awake(&awake, step);
            }
            let Some(end) = outcome.out_of_memory else { continue };
            let end = OutOfMemory { pages: pages.end - pages.start, ..end };
            // Zones that lie below their marks take what is given back first.
            pressure = if given > 0 { 1 } else { pressure * 2 };
            self.relieve(id, &end, end.pages.max(pressure), step)?;
        }
        Ok(())
    }

    /// Gives a program the pages of an outcome, from one on; gives their number.
    fn put(
        &mut self,
        id: Id,
        object: ObjectId,
        policy: &Policy,
        first: u64,
        outcome: &Outcome,
        step: &mut Step,
    ) -> u64 {
        let turns = Turns::new(policy.mode, &policy.nodes, &self.weights);
        let runs = Run::laid(first, &outcome.stretches, &turns);
        for (node, pages) in outcome.nodes() {
            step.take(node, pages);
        }
        let given = runs.last().map_or(0, |run| run.pages.end - first);
        let since = self.now;
        let charged = self.programs.get(&id).and_then(|program| program.group);
        let kind = self.objects.get(&object).map_or(ObjectKind::Private, |object| object.kind);
        if let Some(group) = charged.filter(|_| kind != ObjectKind::Pool) {
            self.recharge(group, Charged::default(), Charged::from_runs(&runs));
        }
        let Some(found) = self.objects.get_mut(&object) else { return given };
        let holders = found.holders_of(id, &self.family);
        if !holders.is_empty() {
            gain(&mut self.programs, id, object, &places_of(&runs), false);
        }
        let maker = Some(id).filter(|_| found.is_inherited());
        for run in runs {
            found.extents.push(Extent { run, holders: holders.clone(), charged, since, maker });
        }
        given
    }

    /// The same from the pool: who touches more than it has is killed (`SIGBUS`).
    fn fault_from_pool(
        &mut self,
        id: Id,
        object: ObjectId,
        policy: &Policy,
        pages: Range<u64>,
        step: &mut Step,
    ) -> Result<(), Stopped> {
        self.changed_pool = true;
        let program = &self.programs[&id];
        let reserved = program.region_of(object).map_or(0, |region| region.reserved);
        let wanted = (pages.end - pages.start) / self.memory.huge_pages();
        let mut outcome = self.pool.free.allocate(&Request {
            policy,
            weights: &self.weights,
            cpu_node: program.cpu_node,
            allowed: &program.allowed,
            pages: wanted.min(reserved.saturating_add(self.pool.spare())),
            order: 0,
            place: InterleavePosition::File { inode: 0, page: pages.start / self.memory.huge_pages() },
            class: Class::User,
        });
        // A page of the pool's memory is a huge one.
        outcome.stretches.iter_mut().for_each(|stretch| stretch.order = self.memory.huge_order());
        let given = self.put(id, object, policy, pages.start, &outcome, step) / self.memory.huge_pages();
        let kept = reserved.min(given);
        self.pool.use_reserved(kept);
        if let Some(region) = self.program(id).regions.values_mut().find(|region| region.object == object) {
            region.reserved -= kept;
        }
        if given < wanted {
            self.kill(id, Cause::NoHugePage, step);
            return Err(Stopped);
        }
        Ok(())
    }

    /// Brings pages of some ranges back from the disk, each where its policy has new pages from.
    fn swap_in(
        &mut self,
        id: Id,
        object: ObjectId,
        out: Vec<Range<u64>>,
        step: &mut Step,
    ) -> Result<(), Stopped> {
        let parts: Vec<_> = out.into_iter().flat_map(|part| self.policies(id, object, part)).collect();
        for (part, policy) in parts {
            let mut left = self.wanted(id, object, &part, is_swapped);
            let mut pressure = 1;
            while left > 0 {
                let most = self.charge(id, left, step)?;
                let program = &self.programs[&id];
                let (cpu_node, allowed) = (program.cpu_node, program.allowed.clone());
                let mut go = Move { cpu_node, allowed: &allowed, to: To::Policy(policy.clone()), most };
                let back = self.relocate((id, true), object, &part, &mut go, is_swapped);
                step.swapped_in += back;
                left = left.saturating_sub(back).min(self.wanted(id, object, &part, is_swapped));
                if left > 0 && back < most {
                    pressure = if back > 0 { 1 } else { pressure * 2 };
                    let end = self.end_of(id, &policy, left);
                    self.relieve(id, &end, left.max(pressure), step)?;
                }
            }
        }
        Ok(())
    }

    /// Cuts the extents of an object at the ends of a range.
    pub(super) fn carve(&mut self, object: ObjectId, pages: &Range<u64>) {
        if let Some(object) = self.objects.get_mut(&object) {
            object.extents.carve(pages, &self.family);
        }
    }

    /// Notes that the memory of a file has changed.
    pub(super) fn note_file(&mut self, object: ObjectId) {
        let name = self.files.iter().find(|(_, own)| **own == object).map(|(name, _)| name.clone());
        self.changed_files.extend(name);
    }
}
