//! Programs with their mappings, and what is mapped.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use nodewise_machine::{NodeId, NodeSet};

use super::extents::{Extents, Key};
use super::family::Family;
pub(super) use super::holders::Id;
use super::holders::{Holders, Mappers};
use super::limits::GroupId;
use super::placement::Placement;
use super::run::Held;
use super::spans::Spans;
use crate::memory::HugeEffort;
use crate::policy::set::Policy;

/// The number of a mapped object, in the order in which it was first mapped.
pub(super) type ObjectId = u32;

/// A program.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub name: String,
    pub policy: Policy,
    pub cpu_node: NodeId,
    pub allowed: NodeSet,
    /// Its `oom_score_adj`.
    pub adjustment: i32,
    /// The control group that is charged for what it takes.
    pub group: Option<GroupId>,
    /// The program whose cpuset it is in.
    pub cpuset_of: Id,
    /// Where its next mapping is.
    pub next_page: u64,
    /// Its threads beside the first.
    pub threads: BTreeMap<String, Thread>,
    pub regions: BTreeMap<String, Region>,
    /// Names of memory that it would have, had the kernel not refused it.
    pub without: BTreeSet<String>,
}

/// A thread of a program beside its first. While it acts, its program has its policy and its CPU, and it has those of the
/// program's first thread.
#[derive(Clone, Debug)]
pub(super) struct Thread {
    pub policy: Policy,
    pub cpu_node: NodeId,
}

/// Memory of a program that has a name.
#[derive(Clone, Debug)]
pub(super) struct Region {
    pub object: ObjectId,
    pub pages: Range<u64>,
    /// Pages that come as one where whole ones fit: huge pages.
    pub block: u64,
    /// How hard the kernel tries to give it transparent huge pages; `None` where it does not.
    pub huge: Option<HugeEffort>,
    /// Whether its numbers are those of a file, whatever its addresses are.
    pub is_numbered_by_file: bool,
    /// Pages of the pool that it will have when it is touched.
    pub reserved: u64,
    /// The policies that the program gave it.
    pub policies: Spans<Policy>,
    /// Where its pages are, kept while they come and go. A page that several programs have is common to all but the first.
    pub sums: Placement,
}

/// The kind of a mapped object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ObjectKind {
    Private,
    File,
    Pool,
    /// Page cache of a file on a disk, which no program has.
    Cached,
}

/// Pages that are mapped by one program, or by several.
#[derive(Clone, Debug)]
pub(super) struct Object {
    pub kind: ObjectKind,
    pub extents: Extents,
    /// The programs that have it mapped.
    pub mappers: Mappers,
    /// Those of a file hold for all that have it.
    pub policies: Spans<Policy>,
    /// Pages of a file on a disk that the disk does not have yet.
    pub dirty: Spans<()>,
    /// The step in which pages of a file on a disk came into the cache.
    pub read_in: Spans<u64>,
}

impl Program {
    /// The region that an object is mapped at.
    pub fn region_of(&self, object: ObjectId) -> Option<&Region> {
        self.regions.values().find(|region| region.object == object)
    }

    /// The same, to be changed.
    pub fn region_of_mut(&mut self, object: ObjectId) -> Option<&mut Region> {
        self.regions.values_mut().find(|region| region.object == object)
    }

    /// Lists the objects it has mapped, and which pages of each.
    pub fn mapped(&self) -> Vec<(ObjectId, Range<u64>)> {
        self.regions.values().map(|region| (region.object, region.pages.clone())).collect()
    }
}

impl Region {
    /// A part of it as the kernel takes it: huge pages are whole; `None` where it goes beyond the end.
    pub fn part(&self, pages: Option<&Range<u64>>) -> Option<Range<u64>> {
        let Some(part) = pages else { return Some(self.pages.clone()) };
        let length = self.pages.end - self.pages.start;
        // Behind the last whole block pages are small.
        let whole = length - length % self.block;
        let start = if part.start < whole { part.start - part.start % self.block } else { part.start };
        let end = if part.end <= whole { part.end.checked_next_multiple_of(self.block)? } else { part.end };
        let range = self.pages.start.checked_add(start)?..self.pages.start.checked_add(end)?;
        (range.end <= self.pages.end && range.start <= range.end).then_some(range)
    }
}

impl Object {
    /// An object without pages.
    pub fn new(kind: ObjectKind) -> Self {
        Self {
            kind,
            extents: Extents::default(),
            mappers: Mappers::new(),
            policies: Spans::default(),
            dirty: Spans::default(),
            read_in: Spans::default(),
        }
    }

    /// Whether children have its pages, too.
    pub const fn is_inherited(&self) -> bool {
        matches!(self.kind, ObjectKind::Private | ObjectKind::Pool)
    }

    /// The holders of new pages of a program.
    pub fn holders_of(&self, id: Id, family: &Family) -> Holders {
        match self.kind {
            ObjectKind::Private | ObjectKind::Pool => Holders::one(id, Some(family)),
            ObjectKind::File => Holders::one(id, None),
            // Page cache is nobody's.
            ObjectKind::Cached => Holders::NONE,
        }
    }

    /// The extents of a program in a range that was carved, with all who have them.
    pub fn copies(&mut self, id: Id, pages: &Range<u64>, family: &Family) -> Vec<Key> {
        if !self.is_inherited() {
            let own =
                self.extents.overlapping(pages).filter(|(_, extent)| extent.holders.contains(id, family));
            return own.map(|(key, _)| key).collect();
        }
        let keys = self.extents.keys_within(id, pages, family);
        self.extents.update(&keys, family);
        keys
    }

    /// Those that the program may move: those that only it has, or all that it has.
    pub fn movable(&mut self, (id, all): (Id, bool), pages: &Range<u64>, family: &Family) -> Vec<Key> {
        let mut keys = self.copies(id, pages, family);
        let is_one =
            |key: &Key| self.extents.get(*key).is_some_and(|extent| extent.holders.is_one(&self.mappers));
        keys.retain(|key| all || is_one(key));
        keys
    }

    /// How many pages of some extents are such.
    pub fn count_of(&self, keys: &[Key], is: impl Fn(&Held) -> bool) -> u64 {
        keys.iter().filter_map(|key| self.extents.get(*key)).map(|extent| extent.run.count(&is)).sum()
    }

    /// How many pages of a range are such, whoever has them.
    pub fn count(&self, pages: &Range<u64>, is: impl Fn(&Held) -> bool) -> u64 {
        let common = |own: &Range<u64>| own.start.max(pages.start)..own.end.min(pages.end);
        let counted = self.extents.overlapping(pages).map(|(_, extent)| &extent.run);
        counted.map(|run| run.held.count(&common(&run.pages), &is)).sum()
    }

    /// The pages of a range that was carved that are missing for everybody.
    pub fn lacking(&self, pages: &Range<u64>) -> Vec<Range<u64>> {
        gaps(pages, self.extents.overlapping(pages).map(|(_, extent)| extent.run.pages.clone()))
    }

    /// Puts extents together that are one, so that their number stays small.
    pub fn tidy(&mut self, family: &Family) {
        self.extents.tidy(family, &self.mappers);
    }
}

/// The parts of a range that others, which are in order, leave free.
pub(super) fn gaps(pages: &Range<u64>, there: impl IntoIterator<Item = Range<u64>>) -> Vec<Range<u64>> {
    let mut gaps = Vec::new();
    let mut first = pages.start;
    for own in there {
        if first < own.start {
            gaps.push(first..own.start);
        }
        first = first.max(own.end);
    }
    if first < pages.end {
        gaps.push(first..pages.end);
    }
    gaps
}
