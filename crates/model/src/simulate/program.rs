//! Programs with their mappings, and what is mapped.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use nodewise_machine::{NodeId, NodeSet};

use super::holders::Holders;
pub(super) use super::holders::Id;
use super::limits::GroupId;
use super::placement::Sums;
use super::run::{Held, Run};
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
    /// Where its pages are.
    pub sums: Sums,
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
    pub extents: Vec<Extent>,
    /// Those of a file hold for all that have it.
    pub policies: Spans<Policy>,
    /// Pages of a file on a disk that the disk does not have yet.
    pub dirty: Spans<()>,
}

/// Pages that were touched, with the programs that have them. In private memory a page number may be in
/// several extents; no two of them have a program in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub run: Run,
    pub holders: Holders,
    /// The control group that they are charged to.
    pub charged: Option<GroupId>,
    /// When they were last touched: the number of the step.
    pub since: u64,
}

impl Program {
    /// The region that an object is mapped at.
    pub fn region_of(&self, object: ObjectId) -> Option<&Region> {
        self.regions.values().find(|region| region.object == object)
    }

    /// Lists the objects it has mapped, and which pages of each.
    pub fn mapped(&self) -> Vec<(ObjectId, Range<u64>)> {
        self.regions.values().map(|region| (region.object, region.pages.clone())).collect()
    }
}

impl Extent {
    /// Whether all its pages are inside a range.
    pub const fn is_inside(&self, pages: &Range<u64>) -> bool {
        self.run.pages.start >= pages.start && self.run.pages.end <= pages.end
    }

    /// Whether its pages follow those of another, and are alike in all else.
    fn continues(&self, last: &Self) -> bool {
        last.run.pages.end == self.run.pages.start
            && last.since == self.since
            && last.holders == self.holders
            && last.charged == self.charged
            && last.run.held == self.run.held
    }

    /// Whether a program may move these pages: those that only it has, or all that it has.
    pub fn is_movable_by(&self, id: Id, all: bool) -> bool {
        self.holders.contains(id) && (all || self.holders.is_one())
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
        Self { kind, extents: Vec::new(), policies: Spans::default(), dirty: Spans::default() }
    }

    /// Cuts the extents that reach over an end of a range.
    pub fn carve(&mut self, pages: &Range<u64>) {
        let mut right = Vec::new();
        for extent in &mut self.extents {
            for page in [pages.end, pages.start] {
                if extent.run.pages.start < page && page < extent.run.pages.end {
                    let run = extent.run.cut(page);
                    right.push(Extent { run, ..extent.clone() });
                }
            }
        }
        self.extents.append(&mut right);
    }

    /// The extents inside a range that was carved.
    pub fn inside(&mut self, pages: &Range<u64>) -> impl Iterator<Item = &mut Extent> {
        let pages = pages.clone();
        self.extents.iter_mut().filter(move |extent| extent.is_inside(&pages))
    }

    /// How many pages of a range are such, of the extents that are `which`.
    pub fn count(
        &self,
        pages: &Range<u64>,
        which: impl Fn(&Extent) -> bool,
        is: impl Fn(&Held) -> bool,
    ) -> u64 {
        let common = |own: &Range<u64>| own.start.max(pages.start)..own.end.min(pages.end);
        let counted = self.extents.iter().filter(|extent| which(extent)).map(|extent| &extent.run);
        counted.map(|run| run.held.count(&common(&run.pages), &is)).sum()
    }

    /// The pages of a range that are missing for a program; of a file, for everybody.
    pub fn lacking(&self, pages: &Range<u64>, id: Id) -> Vec<Range<u64>> {
        let is_there = |extent: &&Extent| {
            let own = &extent.run.pages;
            let overlaps = own.end > pages.start && own.start < pages.end;
            let is_of_all = matches!(self.kind, ObjectKind::File | ObjectKind::Cached);
            overlaps && (is_of_all || extent.holders.contains(id))
        };
        let mut there: Vec<&Range<u64>> =
            self.extents.iter().filter(is_there).map(|extent| &extent.run.pages).collect();
        there.sort_unstable_by_key(|own| own.start);
        let mut lacking = Vec::new();
        let mut first = pages.start;
        for own in there {
            if first < own.start {
                lacking.push(first..own.start);
            }
            first = first.max(own.end);
        }
        if first < pages.end {
            lacking.push(first..pages.end);
        }
        lacking
    }

    /// Puts extents together that are one, so that their number stays small.
    pub fn tidy(&mut self) {
        in_order(&mut self.extents);
        self.extents.dedup_by(|extent, last| {
            let follows = extent.continues(last);
            if follows {
                last.run.pages.end = extent.run.pages.end;
            }
            follows
        });
    }
}

/// Puts extents in the order of their addresses.
pub(super) fn in_order(extents: &mut [Extent]) {
    extents.sort_by_key(|extent| extent.run.pages.start);
}
