//! The mappings of a process at two moments: memory by kind and node, and mappings that came, went or changed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use nodewise_diagnose::Relation;
use nodewise_machine::mapping::{FileId, Mapping, MappingKind, ProcessMappings};
use nodewise_machine::{Bytes, NodeId};

use super::{Estimate, Tally};

/// A change between two estimates, with the ends that it has where pages were drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeChange {
    pub change: i128,
    pub low: i128,
    pub high: i128,
}

impl SizeChange {
    fn between(before: Estimate, after: Estimate) -> Self {
        let minus = |one: Bytes, other: Bytes| i128::from(one.get()) - i128::from(other.get());
        Self {
            change: minus(after.size, before.size),
            low: minus(after.low, before.high),
            high: minus(after.high, before.low),
        }
    }

    /// Whether both sizes were counted.
    pub const fn is_exact(&self) -> bool {
        self.low == self.high
    }

    /// Whether drawing alone can explain the change: the intervals of both sizes overlap.
    pub const fn may_be_none(&self) -> bool {
        self.low <= 0 && self.high >= 0
    }
}

/// A part of the memory at both moments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TallyPair {
    pub before: Tally,
    pub after: Tally,
}

impl TallyPair {
    /// The change of what is present.
    pub fn all(&self) -> i128 {
        i128::from(self.after.all().get()) - i128::from(self.before.all().get())
    }

    /// The change on a node.
    pub fn on(&self, node: NodeId) -> SizeChange {
        SizeChange::between(self.before.on(node), self.after.on(node))
    }

    /// The nodes with a change, the largest first.
    pub fn changes(&self) -> Vec<(NodeId, SizeChange)> {
        let nodes = self.before.nodes().union(&self.after.nodes());
        let mut changes: Vec<(NodeId, SizeChange)> =
            nodes.iter().map(|node| (node, self.on(node))).filter(|(_, change)| change.change != 0).collect();
        changes.sort_by_key(|(node, change)| (Reverse(change.change.unsigned_abs()), *node));
        changes
    }

    /// By how much it changed: in size, or by what moved between nodes.
    fn weight(&self) -> u128 {
        let moved = self.changes().first().map_or(0, |(_, change)| change.change.unsigned_abs());
        self.all().unsigned_abs().max(moved)
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

    /// Whether both moments have the mapping, with another length or policy.
    pub fn is_altered(&self) -> bool {
        let facts = |mapping: &Mapping| {
            (mapping.end - mapping.start, mapping.policy.as_ref().map(|policy| policy.text.clone()))
        };
        self.before.zip(self.after).is_some_and(|(before, after)| facts(before) != facts(after))
    }
}

/// The mappings of a process at two moments.
#[derive(Clone, Debug)]
pub struct MapsComparison<'a> {
    pub before: &'a ProcessMappings,
    pub after: &'a ProcessMappings,
    pub relation: Relation,
    /// Whether both are the same process, so that addresses correspond.
    pub is_same: bool,
    /// The moments in words.
    pub moments: [String; 2],
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
        let has_pages = |pair: &TallyPair| pair.before.all().max(pair.after.all()) > Bytes::new(0);
        pairs.filter(|(_, pair)| has_pages(pair)).collect()
    }

    /// The nodes that have pages at one of the moments.
    pub fn nodes(&self) -> Vec<NodeId> {
        let all = self.all();
        all.before.nodes().union(&all.after.nodes()).iter().collect()
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
        let mut left: BTreeSet<usize> = (0..self.before.mappings.len()).collect();
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
        let change = signed(all.all());
        let nodes: Vec<String> = all
            .changes()
            .iter()
            .filter(|(_, change)| !change.may_be_none())
            .take(3)
            .map(|(node, change)| format!("node {node} {}", signed(change.change)))
            .collect();
        let nodes = if nodes.is_empty() { String::new() } else { format!(": {}", nodes.join(", ")) };
        format!("{change} resident{nodes}")
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

/// A change in words: `+1.5 GiB`, `-12 KiB`, `0`.
pub fn signed(change: i128) -> String {
    let size = Bytes::new(u64::try_from(change.unsigned_abs()).unwrap_or(u64::MAX));
    match change {
        0 => "0".to_owned(),
        1.. => format!("+{size}"),
        _ => format!("-{size}"),
    }
}

#[cfg(test)]
mod tests;
