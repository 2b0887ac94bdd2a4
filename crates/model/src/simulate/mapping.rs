//! Memory that comes and goes: `mmap(2)`, `munmap(2)`, and the end of a program.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::act::{Backing, Mapping, Refused, Skipped};
use super::program::{Id, Object, ObjectId, ObjectKind, Program, Region};
use super::run::{At, Held};
use super::spans::Spans;
use super::{Simulation, Step};
use crate::errno::Errno;
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
        let (object, pages) = self.object_of(id, mapping, pages);
        let reserved = if mapping.backing == Backing::Pool {
            (pages.end - pages.start) / self.memory.huge_pages()
        } else {
            0
        };
        let mut region = Region { object, pages: pages.clone(), block, reserved, policies: Spans::default() };
        if policy.is_some() {
            region.policies.set(pages.clone(), policy.clone());
            if let Some(object) =
                self.objects.get_mut(&object).filter(|object| object.kind == ObjectKind::File)
            {
                object.policies.set(pages.clone(), policy);
            }
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
    fn object_of(&mut self, id: Id, mapping: &Mapping, pages: u64) -> (ObjectId, Range<u64>) {
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
            Backing::Small | Backing::Huge => ObjectKind::Private,
        };
        let object = self.next_object;
        self.next_object += 1;
        self.objects.insert(object, Object { kind, extents: Vec::new(), policies: Spans::default() });
        let first = match kind {
            // The file's inode number shifts its turns.
            ObjectKind::File => u64::from(object),
            // Turns in a mapping of the pool begin with it.
            ObjectKind::Pool => 0,
            ObjectKind::Private => {
                let size = if *backing == Backing::Huge { self.memory.huge_pages() } else { 1 };
                let program = self.program(id);
                let first = mapping.first_page.unwrap_or(program.next_page);
                let first = first.checked_next_multiple_of(size).unwrap_or(0);
                program.next_page = first.saturating_add(pages);
                first
            }
        };
        (object, first..first.saturating_add(pages))
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
        let mut kept = Vec::new();
        for mut extent in std::mem::take(&mut object.extents) {
            let first = extent.holders.first();
            if extent.holders.remove(id) {
                others.extend(extent.holders.first().filter(|_| first == Some(id)));
            }
            if extent.holders.is_empty() && object.kind != ObjectKind::File {
                freed.push(extent.run);
            } else {
                kept.push(extent);
            }
        }
        object.extents = kept;
        let kind = object.kind;
        others.into_iter().for_each(|other| self.note_program(other));
        let is_mapped = |program: &Program| program.region_of(region.object).is_some();
        if !self.programs.values().any(is_mapped) {
            let last = self.objects.remove(&region.object);
            freed.extend(last.into_iter().flat_map(|object| object.extents).map(|extent| extent.run));
        }
        if kind == ObjectKind::File {
            self.note_file(region.object);
            self.files.retain(|_, object| self.objects.contains_key(object));
        }
        for run in freed {
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
