//! Where everybody's memory is.

use std::collections::BTreeMap;

use nodewise_machine::NodeId;
use nodewise_machine::order::CollectOrdered as _;

use super::Simulation;
use super::program::{Extent, Id, ObjectId, ObjectKind};
use super::run::At;

/// Whose memory it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    Program(String),
    /// A file's: what no one who runs has touched.
    File(String),
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
        programs.chain(files).chain([pool]).filter(is_shown).collect_map()
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
        if std::mem::take(&mut self.changed_pool) {
            changes.push((Owner::Pool, Some(self.pooled())));
        }
        changes
    }

    pub(super) fn placement(&self, id: Id) -> Placement {
        let mut placement = Placement::default();
        for (_, extent) in self.extents_of(id) {
            for (held, pages) in extent.run.places() {
                placement.add(held.at, pages, extent.holders.first() != Some(id));
            }
        }
        placement
    }

    /// The pages that a program has, with what they are of.
    pub(super) fn extents_of(&self, id: Id) -> impl Iterator<Item = (ObjectKind, &Extent)> {
        let regions = self.programs.get(&id).into_iter().flat_map(|program| program.regions.values());
        let objects = regions.filter_map(|region| self.objects.get(&region.object));
        let extents = objects.flat_map(|object| object.extents.iter().map(|extent| (object.kind, extent)));
        extents.filter(move |(_, extent)| extent.holders.contains(id))
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
