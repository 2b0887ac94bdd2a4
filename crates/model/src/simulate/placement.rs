//! Where everybody's memory is.

use std::collections::BTreeMap;

use nodewise_machine::NodeId;
use nodewise_machine::order::CollectOrdered as _;

use super::Simulation;
use super::extents::Extent;
use super::holders::{Holders, Mappers};
use super::program::{Id, ObjectId, Program};
use super::run::{At, Held, Run};

/// Whose memory it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    Program(String),
    /// A file's: what no one who runs has touched.
    File(String),
    /// The page cache of a file on a disk.
    Cache(String),
    /// The pool's: huge pages that are free.
    Pool,
}

/// Where memory is.
///
/// # Units
/// Pages of 4 KiB.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Placement {
    pub nodes: BTreeMap<NodeId, u64>,
    /// Those of them that are another's too, who started earlier: by node.
    pub common: BTreeMap<NodeId, u64>,
    pub swapped: u64,
}

impl Placement {
    /// All pages in memory.
    pub fn pages(&self) -> u64 {
        self.nodes.values().sum()
    }

    /// Pages of a node that are counted with no one else.
    pub fn own_on(&self, node: NodeId) -> u64 {
        let of = |nodes: &BTreeMap<NodeId, u64>| nodes.get(&node).copied().unwrap_or(0);
        of(&self.nodes) - of(&self.common)
    }

    fn add(&mut self, at: At, pages: u64, common: bool) {
        match at {
            At::Zone(node, _) => {
                *self.nodes.entry(node).or_default() += pages;
                if common {
                    *self.common.entry(node).or_default() += pages;
                }
            }
            At::Swap => self.swapped += pages,
        }
    }

    fn subtract(&mut self, at: At, pages: u64, common: bool) {
        match at {
            At::Zone(node, _) => {
                subtract(&mut self.nodes, node, pages);
                if common {
                    subtract(&mut self.common, node, pages);
                }
            }
            At::Swap => self.swapped = self.swapped.saturating_sub(pages),
        }
    }

    /// The pages of a child, which started later than all that have them.
    pub(super) fn of_child(&self) -> Self {
        Self { common: self.nodes.clone(), ..self.clone() }
    }

    fn with(mut self, other: &Self) -> Self {
        for (sums, own) in [(&mut self.nodes, &other.nodes), (&mut self.common, &other.common)] {
            own.iter().for_each(|(node, pages)| *sums.entry(*node).or_default() += pages);
        }
        self.swapped += other.swapped;
        self
    }
}

/// Nodes without pages have no entry.
fn subtract(nodes: &mut BTreeMap<NodeId, u64>, node: NodeId, pages: u64) {
    if let Some(sum) = nodes.get_mut(&node) {
        *sum = sum.saturating_sub(pages);
        if *sum == 0 {
            nodes.remove(&node);
        }
    }
}

/// Pages by where they are.
pub(super) type Places = Vec<(Held, u64)>;

/// The pages of runs.
pub(super) fn places_of<'r>(runs: impl IntoIterator<Item = &'r Run>) -> Places {
    runs.into_iter().flat_map(Run::places).collect()
}

/// Programs by number.
pub(super) type Programs = BTreeMap<Id, Program>;

/// Counts pages of an object that a program comes to have.
pub(super) fn gain(programs: &mut Programs, id: Id, object: ObjectId, places: &Places, common: bool) {
    if let Some(region) = programs.get_mut(&id).and_then(|program| program.region_of_mut(object)) {
        places.iter().for_each(|(held, pages)| region.sums.add(held.at, *pages, common));
    }
}

/// Counts pages of an object that a program has no more.
pub(super) fn lose(programs: &mut Programs, id: Id, object: ObjectId, places: &Places, common: bool) {
    if let Some(region) = programs.get_mut(&id).and_then(|program| program.region_of_mut(object)) {
        places.iter().for_each(|(held, pages)| region.sums.subtract(held.at, *pages, common));
    }
}

/// Takes a program out of those that have pages, which are up to date; gives the one that is the first now, where it was the first.
pub(super) fn leave(
    programs: &mut Programs,
    id: Id,
    (object, mappers): (ObjectId, &Mappers),
    extent: &mut Extent,
) -> Option<Id> {
    let was_first = extent.holders.first() == Some(id);
    if !extent.holders.remove(id, mappers) {
        return None;
    }
    let places = places_of([&extent.run]);
    lose(programs, id, object, &places, !was_first);
    let first = extent.holders.first().filter(|_| was_first)?;
    lose(programs, first, object, &places, true);
    gain(programs, first, object, &places, false);
    Some(first)
}

/// Adds a program to those that have pages of a file; gives the one that was the first, where it is not any more.
pub(super) fn enter(programs: &mut Programs, id: Id, object: ObjectId, extent: &mut Extent) -> Option<Id> {
    let first = extent.holders.first();
    let places = places_of([&extent.run]);
    extent.holders.insert(id);
    gain(programs, id, object, &places, first.is_some_and(|first| first < id));
    let later = first.filter(|first| id < *first)?;
    lose(programs, later, object, &places, false);
    gain(programs, later, object, &places, true);
    Some(later)
}

/// Counts pages that are elsewhere now with all that have them, who are up to date.
pub(super) fn shift(
    programs: &mut Programs,
    holders: &Holders,
    (object, mappers): (ObjectId, &Mappers),
    (before, after): (&Places, &Places),
) {
    for id in holders.iter(mappers) {
        let common = holders.first() != Some(id);
        lose(programs, id, object, before, common);
        gain(programs, id, object, after, common);
    }
}

impl Simulation {
    /// Everybody who has memory now, or runs.
    pub fn placements(&self) -> BTreeMap<Owner, Placement> {
        let programs = self
            .programs
            .iter()
            .map(|(id, program)| (Owner::Program(program.name.clone()), self.placement(*id)));
        let files =
            self.files.iter().map(|(name, object)| (Owner::File(name.clone()), self.unclaimed(*object)));
        let pool = (Owner::Pool, self.pooled());
        let caches =
            self.cached.iter().map(|(name, object)| (Owner::Cache(name.clone()), self.unclaimed(*object)));
        programs.chain(files).chain(caches).chain([pool]).filter(is_shown).collect_map()
    }

    /// Who has changed since the last step.
    pub(super) fn changes(&mut self) -> Vec<(Owner, Option<Placement>)> {
        let mut changes = Vec::new();
        for name in std::mem::take(&mut self.changed_programs) {
            let placement = self.names.get(&name).map(|id| self.placement(*id));
            changes.push((Owner::Program(name), placement));
        }
        for name in std::mem::take(&mut self.changed_files) {
            let placement = self.files.get(&name).map(|object| self.unclaimed(*object));
            changes.push((Owner::File(name), placement));
        }
        for name in std::mem::take(&mut self.changed_caches) {
            let placement = self.cached.get(&name).map(|object| self.unclaimed(*object));
            changes.push((Owner::Cache(name), placement));
        }
        if std::mem::take(&mut self.changed_pool) {
            changes.push((Owner::Pool, Some(self.pooled())));
        }
        changes
    }

    pub(super) fn placement(&self, id: Id) -> Placement {
        let regions = self.programs.get(&id).into_iter().flat_map(|program| program.regions.values());
        regions.fold(Placement::default(), |sum, region| sum.with(&region.sums))
    }

    /// The same, counted page by page.
    #[cfg(test)]
    pub(super) fn counted(&self, id: Id) -> Placement {
        let mut placement = Placement::default();
        let regions = self.programs.get(&id).into_iter().flat_map(|program| program.regions.values());
        let extents = regions.flat_map(|region| &self.objects[&region.object].extents);
        for extent in extents.filter(|extent| extent.holders.contains(id, &self.family)) {
            for (held, pages) in extent.run.places() {
                placement.add(held.at, pages, extent.holders.first() != Some(id));
            }
        }
        placement
    }

    fn unclaimed(&self, object: ObjectId) -> Placement {
        let mut placement = Placement::default();
        let extents = self.objects.get(&object).into_iter().flat_map(|object| &object.extents);
        for extent in extents.filter(|extent| extent.holders.is_empty()) {
            for (held, pages) in extent.run.places() {
                placement.add(held.at, pages, false);
            }
        }
        placement
    }

    fn pooled(&self) -> Placement {
        let mut placement = Placement::default();
        for zone in self.pool.free.zones().iter().filter(|zone| zone.free > 0) {
            placement.add(At::Zone(zone.node, zone.kind), zone.free * self.memory.huge_pages(), false);
        }
        placement
    }
}

/// Whether somebody is worth a line: every program is, the others only where they have memory.
fn is_shown((owner, placement): &(Owner, Placement)) -> bool {
    matches!(owner, Owner::Program(_)) || *placement != Placement::default()
}
