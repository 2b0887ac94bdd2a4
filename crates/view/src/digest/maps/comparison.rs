//! The mappings of a process at two moments: memory by kind and node, and mappings that were
//! added, removed or changed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use nodewise_diagnose::Relation;
use nodewise_machine::mapping::{FileId, Mapping, MappingKind, ProcessMappings};
use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::order::Order as _;
use nodewise_machine::{Bytes, NodeId, NodeSet};

use super::{Tally, policy_words};
use crate::digest::estimate::{Estimate, SizeChange, signed};

/// A part of the memory at both moments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TallyPair {
    pub before: Tally,
    pub after: Tally,
}

impl TallyPair {
    /// The change of what is present; `None` where the size of a part is not known.
    pub fn all(&self) -> Option<SizeChange> {
        Some(SizeChange::between(self.before.present()?, self.after.present()?))
    }

    /// The change on a node; `None` where the node of a part is not known.
    pub fn on(&self, node: NodeId) -> Option<SizeChange> {
        Some(SizeChange::between(self.before.known_on(node)?, self.after.known_on(node)?))
    }

    /// The nodes that have some of it at one of the moments.
    pub fn nodes(&self) -> NodeSet {
        self.before.nodes().union(&self.after.nodes())
    }

    /// The nodes with a change, the largest first. Changes that drawing alone can explain are left out.
    pub fn changes(&self) -> Vec<(NodeId, SizeChange)> {
        let change = |node| Some((node, self.on(node).filter(|change| !change.may_be_none())?));
        let mut changes: Vec<(NodeId, SizeChange)> = self.nodes().iter().filter_map(change).collect();
        changes.order_by_key(|(node, change)| (Reverse(change.weight()), *node));
        changes
    }

    /// The nodes, those with the largest change first.
    pub fn nodes_by_change(&self) -> Vec<NodeId> {
        let mut nodes: Vec<NodeId> = self.nodes().iter().collect();
        let weight = |change: SizeChange| (change.weight(), change.change.unsigned_abs());
        nodes.order_by_key(|node| (Reverse(self.on(*node).map(weight)), *node));
        nodes
    }

    /// By how much it changed: in size, or by what moved between nodes.
    fn weight(&self) -> u128 {
        let moved = self.changes().first().map_or(0, |(_, change)| change.weight());
        self.all().map_or(0, |change| change.weight()).max(moved)
    }

    /// Whether its size or its nodes changed.
    pub fn is_changed(&self) -> bool {
        self.weight() > 0
    }
}

/// A mapping at two moments; at least one of them has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappingPair<'a> {
    pub before: Option<&'a Mapping>,
    pub after: Option<&'a Mapping>,
}

impl<'a> MappingPair<'a> {
    /// It, as it is later where it is.
    pub fn any(&self) -> Option<&'a Mapping> {
        self.after.or(self.before)
    }

    /// Its memory at both moments.
    pub fn tallies(&self) -> TallyPair {
        TallyPair { before: Tally::from_mappings(self.before), after: Tally::from_mappings(self.after) }
    }

    /// Whether both moments have the mapping, with another length or policy. Samples have no policies.
    pub fn is_altered(&self) -> bool {
        let length = |mapping: &Mapping| mapping.end - mapping.start;
        self.before.zip(self.after).is_some_and(|(before, after)| {
            let policies = policy_words(before).zip(policy_words(after));
            length(before) != length(after) || policies.is_some_and(|(before, after)| before != after)
        })
    }

    /// How the moments differ in it.
    pub fn state(&self) -> MappingState {
        match (self.before, self.after) {
            (Some(_), Some(_)) => MappingState::Stayed,
            (None, _) => MappingState::Added,
            (Some(_), None) => MappingState::Removed,
        }
    }

    /// Whether a reader wants to see it: it is new, gone, or has changed.
    pub fn is_changed(&self) -> bool {
        self.state() != MappingState::Stayed || self.is_altered() || self.tallies().is_changed()
    }
}

/// Which of the moments have a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MappingState {
    Stayed,
    Added,
    Removed,
}

impl MappingState {
    /// The word for it in JSON and CSV.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Stayed => "stayed",
            Self::Added => "added",
            Self::Removed => "removed",
        }
    }
}

/// One of the two moments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapsMoment {
    /// The recording, in words: as it was typed.
    pub recording: String,
    /// The time since its beginning.
    pub at: Duration,
    /// How long before that the mappings were read; `None`: at the moment itself.
    pub age: Option<Duration>,
}

/// The mappings of a process at two moments.
#[derive(Clone, Debug)]
pub struct MapsComparison<'a> {
    pub before: &'a ProcessMappings,
    pub after: &'a ProcessMappings,
    pub relation: Relation,
    /// Whether both are the same process, so that addresses correspond.
    pub is_same: bool,
    /// Before and after.
    pub moments: [MapsMoment; 2],
}

impl<'a> MapsComparison<'a> {
    /// All memory.
    pub fn all(&self) -> TallyPair {
        TallyPair {
            before: Tally::from_mappings(&self.before.mappings),
            after: Tally::from_mappings(&self.after.mappings),
        }
    }

    /// Memory by kind, in the order of kinds; kinds without pages at both moments are left out.
    pub fn kinds(&self) -> Vec<(MappingKind, TallyPair)> {
        let of = |process: &ProcessMappings, kind| {
            Tally::from_mappings(process.mappings.iter().filter(|mapping| mapping.kind == kind))
        };
        let pairs = MappingKind::ALL
            .into_iter()
            .map(|kind| (kind, TallyPair { before: of(self.before, kind), after: of(self.after, kind) }));
        let is_empty = |tally: &Tally| tally.present() == Some(Estimate::exact(Bytes::new(0)));
        let has_pages = |pair: &TallyPair| !(is_empty(&pair.before) && is_empty(&pair.after));
        pairs.filter(|(_, pair)| has_pages(pair)).collect()
    }

    /// Every mapping once, the largest change first. Empty for two different processes, whose addresses say
    /// nothing of each other.
    ///
    /// A mapping is the same one where kind and object are the same, and it begins at the same address; else
    /// where it ends at the same one, as stacks do and what `mmap` puts below what is there.
    pub fn mappings(&self) -> Vec<MappingPair<'a>> {
        if !self.is_same {
            return Vec::new();
        }
        let mut pairs = Vec::new();
        let mut left: BTreeSet<usize> = (0..self.before.mappings.len()).collect_set();
        let mut new: Vec<&Mapping> = Vec::new();
        let starts = by_key(&self.before.mappings, |mapping| mapping.start);
        for mapping in &self.after.mappings {
            match starts.get(&(mapping.start, mapping.kind, mapping.file)).filter(|at| left.remove(at)) {
                Some(at) => pairs.push(pair(Some(&self.before.mappings[*at]), Some(mapping))),
                None => new.push(mapping),
            }
        }
        let ends = by_key(&self.before.mappings, |mapping| mapping.end);
        for mapping in new {
            let at = ends.get(&(mapping.end, mapping.kind, mapping.file)).filter(|at| left.remove(at));
            pairs.push(pair(at.map(|at| &self.before.mappings[*at]), Some(mapping)));
        }
        pairs.extend(left.into_iter().map(|at| pair(Some(&self.before.mappings[at]), None)));
        pairs.sort_by_cached_key(|pair| {
            (Reverse(pair.tallies().weight()), pair.any().map(|mapping| mapping.start))
        });
        pairs
    }

    /// The conclusion in one sentence.
    pub fn headline(&self) -> String {
        let all = self.all();
        let Some(change) = all.all() else {
            return "the size of a mapping is not known, so neither is the change of all".to_owned();
        };
        let mark = if change.is_exact() { "" } else { "~" };
        let nodes: Vec<String> = all
            .changes()
            .iter()
            .take(3)
            .map(|(node, change)| format!("node {node} {}", signed(change.change)))
            .collect();
        let nodes = if nodes.is_empty() { String::new() } else { format!(": {}", nodes.join(", ")) };
        format!("{mark}{} resident{nodes}", signed(change.change))
    }
}

const fn pair<'a>(before: Option<&'a Mapping>, after: Option<&'a Mapping>) -> MappingPair<'a> {
    MappingPair { before, after }
}

type Key = (u64, MappingKind, Option<FileId>);

fn by_key(mappings: &[Mapping], address: fn(&Mapping) -> u64) -> BTreeMap<Key, usize> {
    let key = |mapping: &Mapping| (address(mapping), mapping.kind, mapping.file);
    mappings.iter().enumerate().map(|(at, mapping)| (key(mapping), at)).collect()
}

#[cfg(test)]
mod tests;
