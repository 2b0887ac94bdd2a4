//! Memory that comes and goes: `mmap(2)`, `munmap(2)`, and the end of a program.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::act::{Backing, Mapping, Refused, Skipped};
use super::extents::Extent;
use super::limits::Charged;
use super::placement::{Placement, gain, leave, lose, places_of};
use super::program::{Id, Object, ObjectId, ObjectKind, Region};
use super::run::{At, Held};
use super::spans::Spans;
use super::{Simulation, Step};
use crate::errno::Errno;
use crate::memory::HugeEffort;
use crate::policy::set::Policy;

impl Simulation {
    /// Maps memory, and touches it if that is wanted.
    pub(super) fn map(&mut self, id: Id, mapping: &Mapping, touched: bool) -> Result<Step, Refused> {
        let name = &mapping.region;
        if self.programs[&id].regions.contains_key(name) {
            return Err(Refused::Taken(name.clone()));
        }
        if let Backing::File(file) = &mapping.backing {
            let object = self.files.get(file);
            if object.is_some_and(|object| self.programs[&id].region_of(*object).is_some()) {
                return Err(Refused::Taken(file.clone()));
            }
        }
        if mapping.pages == 0 {
            self.program(id).without.insert(name.clone());
            return Ok(Step::refused(Errno::Einval));
        }
        let huge = matches!(mapping.backing, Backing::Huge | Backing::Pool);
        let block = if huge { self.memory.huge_pages() } else { 1 };
        let pages = mapping.pages.div_ceil(block).saturating_mul(block);
        let policy = match self.permitted(id, mapping, pages) {
            Ok(policy) => policy.filter(|policy| *policy != Policy::DEFAULT),
            Err(errno) => {
                self.program(id).without.insert(name.clone());
                return Ok(Step::refused(errno));
            }
        };
        let huge = match mapping.backing {
            Backing::Huge => self.huge.advised,
            Backing::Small => self.huge.plain,
            _ => None,
        };
        let (object, pages) = self.object_of(id, mapping, pages, huge);
        let block = if block == 1 { self.block_of(&pages, huge) } else { block };
        let reserved = if mapping.backing == Backing::Pool {
            (pages.end - pages.start) / self.memory.huge_pages()
        } else {
            0
        };
        let is_numbered_by_file = matches!(mapping.backing, Backing::File(_) | Backing::PrivateFile(_));
        let mut region = Region {
            object,
            pages: pages.clone(),
            block,
            huge,
            is_numbered_by_file,
            reserved,
            policies: Spans::default(),
            sums: Placement::default(),
        };
        if policy.is_some() {
            region.policies.set(pages.clone(), policy.clone());
            if let Some(object) =
                self.objects.get_mut(&object).filter(|object| object.kind == ObjectKind::File)
            {
                object.policies.set(pages.clone(), policy);
            }
        }
        if let Some(object) = self.objects.get_mut(&object) {
            object.mappers.insert(id);
        }
        let program = self.program(id);
        program.without.remove(name);
        program.regions.insert(name.clone(), region);
        let mut step = Step::default();
        if touched {
            // A stopped program has been reported.
            let _ = self.touch(id, object, pages, &mut step);
        }
        Ok(step)
    }

    /// Asks for what a mapping needs: its policy, and pages of the pool.
    fn permitted(&mut self, id: Id, mapping: &Mapping, pages: u64) -> Result<Option<Policy>, Errno> {
        let allowed = &self.programs[&id].allowed;
        let policy = mapping.policy.as_ref().map(|policy| self.accepted(policy, allowed)).transpose()?;
        if mapping.backing == Backing::Pool {
            self.reserve(id, pages / self.memory.huge_pages())?;
        }
        Ok(policy)
    }

    /// The object of a new mapping, and its pages.
    fn object_of(
        &mut self,
        id: Id,
        mapping: &Mapping,
        pages: u64,
        huge: Option<HugeEffort>,
    ) -> (ObjectId, Range<u64>) {
        let backing = &mapping.backing;
        let kind = match backing {
            Backing::File(name) => {
                if let Some(object) = self.files.get(name) {
                    let first = u64::from(*object);
                    return (*object, first..first.saturating_add(pages));
                }
                self.files.insert(name.clone(), self.next_object);
                ObjectKind::File
            }
            Backing::Pool => ObjectKind::Pool,
            Backing::Small | Backing::NeverHuge | Backing::Huge | Backing::PrivateFile(_) => {
                ObjectKind::Private
            }
        };
        let object = self.next_object;
        self.next_object += 1;
        self.objects.insert(object, Object::new(kind));
        let first = match kind {
            // The file's inode number shifts its turns.
            ObjectKind::File | ObjectKind::Cached => u64::from(object),
            // Turns in a mapping of the pool begin with it.
            ObjectKind::Pool => 0,
            // Turns in a private file go by its pages.
            ObjectKind::Private if matches!(backing, Backing::PrivateFile(_)) => {
                mapping.first_page.unwrap_or(0)
            }
            ObjectKind::Private => {
                let block = self.memory.huge_pages();
                // Kernels since 6.7 begin mappings at a whole huge page where one fits.
                let is_aligned = mapping.first_page.is_none() && huge.is_some() && pages >= block;
                let size = if *backing == Backing::Huge || is_aligned { block } else { 1 };
                let program = self.program(id);
                let first = mapping.first_page.unwrap_or(program.next_page);
                let first = first.checked_next_multiple_of(size).unwrap_or(0);
                program.next_page = first.saturating_add(pages);
                first
            }
        };
        (object, first..first.saturating_add(pages))
    }

    /// Pages of a region that come as one: huge ones, where it begins with a whole one.
    fn block_of(&self, pages: &Range<u64>, huge: Option<HugeEffort>) -> u64 {
        let block = self.memory.huge_pages();
        let fits = pages.start % block == 0 && pages.end - pages.start >= block;
        if huge.is_some() && fits { block } else { 1 }
    }

    /// `mremap(2)`: pages that were touched keep their numbers, and with them their turns; memory in which none was touched is
    /// numbered by its new place.
    ///
    /// # Source
    /// `copy_vma` and `vma_to_resize` (`mm/mmap.c`, `mm/mremap.c`; since 6.16 `mm/vma.c`); 5.15 to at least 7.2. Moved memory
    /// was compared on 6.12.
    pub(super) fn remap(
        &mut self,
        id: Id,
        name: &str,
        pages: Option<u64>,
        first_page: Option<u64>,
    ) -> Result<Step, Refused> {
        let Some(region) = self.programs[&id].regions.get(name) else {
            return self.no_region(id, name);
        };
        let (object, old, mut region) = (region.object, region.pages.clone(), region.clone());
        let length = old.end - old.start;
        let new = pages.unwrap_or(length);
        let kind = self.objects.get(&object).map_or(ObjectKind::Private, |found| found.kind);
        let is_touched = region.sums != Placement::default();
        match new.cmp(&length) {
            Ordering::Less => return Err(Refused::Shrinks(name.to_owned())),
            Ordering::Greater if kind == ObjectKind::Pool => return Ok(Step::refused(Errno::Einval)),
            _ => {}
        }
        let is_renumbered = kind == ObjectKind::Private && !region.is_numbered_by_file && !is_touched;
        let first = first_page.filter(|_| is_renumbered).unwrap_or(old.start);
        let mut policies = Spans::default();
        for (range, policy) in region.policies.pieces(old.clone()) {
            // What is new has the policy of the end.
            let end = if range.end == old.end { new } else { range.end - old.start };
            policies.set(first + (range.start - old.start)..first.saturating_add(end), policy);
        }
        region.policies = policies;
        region.pages = first..first.saturating_add(new);
        if region.huge.is_some() {
            region.block = self.block_of(&region.pages, region.huge);
        }
        let program = self.program(id);
        if kind == ObjectKind::Private && !region.is_numbered_by_file {
            program.next_page = program.next_page.max(region.pages.end);
        }
        program.regions.insert(name.to_owned(), region);
        Ok(Step::default())
    }

    pub(super) fn free_region(&mut self, id: Id, name: &str) -> Result<Step, Refused> {
        let Some(region) = self.program(id).regions.remove(name) else {
            return self.no_region(id, name);
        };
        self.unmap(id, &region);
        Ok(Step::default())
    }

    pub(super) fn no_region(&self, id: Id, name: &str) -> Result<Step, Refused> {
        if self.programs[&id].without.contains(name) {
            return Ok(Step::skipped(Skipped::NotMapped));
        }
        Err(Refused::NoRegion(name.to_owned()))
    }

    /// Takes a region from a program that has it no more.
    pub(super) fn unmap(&mut self, id: Id, region: &Region) {
        self.note_program(id);
        let Some(object) = self.objects.get_mut(&region.object) else { return };
        let mut freed = Vec::new();
        let mut others = BTreeSet::new();
        object.mappers.remove(&id);
        if object.is_inherited() {
            // Of pages that another has who started earlier, nothing changes for anyone else.
            for key in object.extents.first_of(id) {
                let Some(mut extent) = object.extents.take(key) else { continue };
                extent.holders.update(&self.family);
                extent.holders.choose_first(&object.mappers);
                let Some(first) = extent.holders.first() else {
                    freed.push(extent);
                    continue;
                };
                let places = places_of([&extent.run]);
                lose(&mut self.programs, first, region.object, &places, true);
                gain(&mut self.programs, first, region.object, &places, false);
                others.insert(first);
                object.extents.put(key, extent);
            }
        } else {
            for key in object.extents.keys_of(|extent| extent.holders.contains(id, &self.family)) {
                let Some(mut extent) = object.extents.take(key) else { continue };
                others.extend(leave(&mut self.programs, id, (region.object, &object.mappers), &mut extent));
                object.extents.put(key, extent);
            }
        }
        let (kind, is_mapped) = (object.kind, !object.mappers.is_empty());
        others.into_iter().for_each(|other| self.note_program(other));
        if !is_mapped {
            let last = self.objects.remove(&region.object);
            freed.extend(last.into_iter().flat_map(|object| object.extents));
        }
        if kind == ObjectKind::File {
            self.note_file(region.object);
            self.files.retain(|_, object| self.objects.contains_key(object));
        }
        for Extent { run, charged, .. } in freed {
            if let Some(group) = charged.filter(|_| kind != ObjectKind::Pool) {
                self.recharge(group, Charged::from_runs([&run]), Charged::default());
            }
            self.give_back(kind, run.counts());
        }
        self.unreserve(region.reserved);
    }

    /// Gives pages back to the zones, the pool or the disk that they are from.
    pub(super) fn give_back(&mut self, kind: ObjectKind, counts: BTreeMap<Held, u64>) {
        for (held, pages) in counts {
            match held.at {
                At::Swap => self.swap_left += pages,
                At::Zone(node, zone) if kind == ObjectKind::Pool => {
                    self.give_back_to_pool(node, zone, pages / self.memory.huge_pages());
                }
                At::Zone(node, zone) => self.memory.free(node, zone, pages),
            }
        }
    }
}
