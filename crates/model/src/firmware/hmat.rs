//! The HMAT: which initiators reach memory best and at what cost, caches before memory, and the tiers
//! that result.
//!
//! # Source
//! `hmat_init`, `hmat_normalize` and `hmat_update_target_attrs` in `drivers/acpi/numa/hmat.c`. Seen on
//! 6.12.

use std::collections::{BTreeMap, BTreeSet};

use nodewise_machine::firmware::hmat::{DataType, INITIATOR_VALID, Locality, MEMORY_VALID};
use nodewise_machine::firmware::{Entry, Hmat, HmatEntry, hmat};
use nodewise_machine::node::MemorySideCache;
use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::{Access, AccessClass, Bytes, NodeId, NodeSet, Tier, TierId};

use super::boot::Booted;
use super::note::{Note, NoteKind};
use crate::release::Release;
use crate::tier::{self, Performance};

const TABLE: &str = "HMAT";

/// The text of the table, by node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// The initiator that a memory is attached to.
    attached: BTreeMap<NodeId, NodeId>,
    /// Values by (initiator, target).
    cells: BTreeMap<(NodeId, NodeId), Performance>,
    /// All initiators that a table names.
    initiators: NodeSet,
    caches: BTreeMap<NodeId, Vec<MemorySideCache>>,
}

/// Reads the table; `None` when the kernel does without.
pub(super) fn read(table: &Hmat, booted: &Booted, notes: &mut Vec<Note>) -> Option<Attributes> {
    let revision = table.header.revision;
    if !(1..=2).contains(&revision) {
        let text = format!("revision {revision}: the kernel knows 1 and 2, and does without the table");
        notes.push(Note::new(NoteKind::Rejected, TABLE, text));
        return None;
    }
    let domains: BTreeMap<u32, NodeId> =
        booted.domains.iter().map(|(node, domain)| (*domain, *node)).collect_map();
    let mut attributes = Attributes::default();
    match attributes.fill(table, &domains, notes) {
        Ok(()) => Some(attributes),
        Err(why) => {
            notes.push(why);
            None
        }
    }
}

impl Attributes {
    /// Three passes: which initiators, which costs, which caches.
    fn fill(
        &mut self,
        table: &Hmat,
        domains: &BTreeMap<u32, NodeId>,
        notes: &mut Vec<Note>,
    ) -> Result<(), Note> {
        for Entry { offset, body, .. } in &table.entries {
            match body {
                HmatEntry::DomainAttributes(own) => {
                    self.attach(own, *offset, table.header.revision, domains)?
                }
                HmatEntry::Unknown(kind, _) if HmatEntry::name_of(*kind).is_some() => {
                    let text = "a structure of the wrong length: the kernel does without the table";
                    return Err(Note::at(NoteKind::Rejected, TABLE, *offset, text));
                }
                _ => {}
            }
        }
        for Entry { offset, body, .. } in &table.entries {
            if let HmatEntry::Locality(locality) = body {
                self.add_costs(locality, *offset, table.header.revision, domains, notes);
            }
        }
        for body in table.bodies() {
            if let HmatEntry::MemorySideCache(cache) = body {
                self.add_cache(cache, domains);
            }
        }
        Ok(())
    }

    fn attach(
        &mut self,
        own: &hmat::DomainAttributes,
        offset: usize,
        revision: u8,
        domains: &BTreeMap<u32, NodeId>,
    ) -> Result<(), Note> {
        let reject = |what: &str, domain: u32| {
            let text = format!(
                "{what} domain {domain} has no node: the kernel finds the table invalid and does without"
            );
            Note::at(NoteKind::Rejected, TABLE, offset, text)
        };
        let memory = domains.get(&own.memory_domain);
        let initiator = domains.get(&own.initiator_domain);
        let has_memory = revision != 1 || own.flags & MEMORY_VALID != 0;
        if has_memory && memory.is_none() {
            return Err(reject("memory", own.memory_domain));
        }
        if own.flags & INITIATOR_VALID == 0 {
            return Ok(());
        }
        let initiator = initiator.ok_or_else(|| reject("initiator", own.initiator_domain))?;
        if let (true, Some(memory)) = (has_memory, memory) {
            self.attached.insert(*memory, *initiator);
        }
        Ok(())
    }

    fn add_costs(
        &mut self,
        locality: &Locality,
        offset: usize,
        revision: u8,
        domains: &BTreeMap<u32, NodeId>,
        notes: &mut Vec<Note>,
    ) {
        // Of caches nothing is used.
        if locality.head.flags & 0xf != 0 {
            return;
        }
        let Some(data) = DataType::from_number(locality.head.data_type) else {
            let text = format!("data type {} is passed over", locality.head.data_type);
            notes.push(Note::at(NoteKind::Ignored, TABLE, offset, text));
            return;
        };
        self.initiators.extend(locality.initiators.iter().filter_map(|domain| domains.get(domain).copied()));
        let mut lost = BTreeSet::new();
        for (from, to, cell) in locality.cells() {
            let pair = domains.get(&from).copied().zip(domains.get(&to).copied());
            let Some(pair) = pair else {
                lost.extend([from, to].into_iter().filter(|domain| !domains.contains_key(domain)));
                continue;
            };
            let value = normalize(cell, locality.head.base_unit, revision, data);
            set(self.cells.entry(pair).or_insert(UNKNOWN), data, value);
        }
        if let Some(first) = lost.first() {
            let text =
                format!("{} domains have no node, {first} among them: their cells are ignored", lost.len());
            notes.push(Note::at(NoteKind::Ignored, TABLE, offset, text));
        }
    }

    fn add_cache(&mut self, cache: &hmat::MemorySideCache, domains: &BTreeMap<u32, NodeId>) {
        let Some(node) = domains.get(&cache.head.memory_domain) else { return };
        // In sysfs 0 is direct mapped and write back; a cache that is neither has 2.
        let word = |value: u8| Some(value.checked_sub(1).filter(|value| *value < 2).unwrap_or(2).into());
        let caches = self.caches.entry(*node).or_default();
        let own = MemorySideCache {
            level: cache.level(),
            size: Some(Bytes::new(cache.head.size)),
            line_size: Some(cache.line_size().into()),
            indexing: word(cache.associativity()),
            write_policy: word(cache.write_policy()),
        };
        if !caches.iter().any(|other| other.level == own.level) {
            caches.push(own);
        }
    }

    /// The caches in front of a node's memory, by level.
    pub(super) fn caches(&self, node: NodeId) -> Vec<MemorySideCache> {
        let mut caches = self.caches.get(&node).cloned().unwrap_or_default();
        caches.sort_by_key(|cache| cache.level);
        caches
    }

    /// Returns the access figures that sysfs shows for a node's memory.
    pub(super) fn access(&self, target: NodeId, class: AccessClass, with_cpus: &NodeSet) -> Option<Access> {
        let counts = |node: NodeId| class == AccessClass::Any || with_cpus.contains(node);
        let cell = |from: NodeId| self.cells.get(&(from, target)).copied().unwrap_or(UNKNOWN);
        let attached = self.attached.get(&target).copied().filter(|node| counts(*node));
        let initiators = match attached {
            Some(node) => NodeSet::from_iter([node]),
            None => {
                let candidates = self.initiators.iter().filter(|node| counts(*node));
                tier::best_initiators(&candidates.map(|node| (node, cell(node))).collect_map())
            }
        };
        let best = cell(initiators.first()?);
        let known = |value: u32| Some(value).filter(|value| *value > 0);
        Some(Access {
            target,
            class,
            initiators,
            read_latency_ns: known(best.read_latency_ns),
            write_latency_ns: known(best.write_latency_ns),
            read_bandwidth_mb_per_s: known(best.read_bandwidth_mb_per_s),
            write_bandwidth_mb_per_s: known(best.write_bandwidth_mb_per_s),
        })
    }
}

const UNKNOWN: Performance = Performance {
    read_latency_ns: 0,
    write_latency_ns: 0,
    read_bandwidth_mb_per_s: 0,
    write_bandwidth_mb_per_s: 0,
};

/// An entry in ns or MB/s; 0 for what is not known.
fn normalize(entry: u16, base_unit: u64, revision: u8, data: DataType) -> u32 {
    /// Picoseconds per ns, and the tenths of the first revision.
    const PER_NANOSECOND: u32 = 1000;
    const TENTHS: u32 = 10;
    if entry == 0 || entry == u16::MAX {
        return 0;
    }
    let value = base_unit.checked_mul(entry.into()).and_then(|value| u32::try_from(value).ok());
    let Some(value) = value else { return 0 };
    match revision {
        1 if value < TENTHS => 0,
        1 => value.div_ceil(TENTHS),
        _ if data.is_latency() => value.div_ceil(PER_NANOSECOND),
        _ => value,
    }
}

fn set(cell: &mut Performance, data: DataType, value: u32) {
    match data {
        DataType::AccessLatency => (cell.read_latency_ns, cell.write_latency_ns) = (value, value),
        DataType::ReadLatency => cell.read_latency_ns = value,
        DataType::WriteLatency => cell.write_latency_ns = value,
        DataType::AccessBandwidth => {
            (cell.read_bandwidth_mb_per_s, cell.write_bandwidth_mb_per_s) = (value, value);
        }
        DataType::ReadBandwidth => cell.read_bandwidth_mb_per_s = value,
        DataType::WriteBandwidth => cell.write_bandwidth_mb_per_s = value,
    }
}

/// The tiers of nodes with memory, fastest first.
pub(super) fn tiers(
    accesses: &[Access],
    with_memory: &NodeSet,
    with_cpus: &NodeSet,
    release: Release,
) -> Vec<Tier> {
    let mut tiers: BTreeMap<u64, NodeSet> = BTreeMap::new();
    for (node, number) in tier::worked_out(accesses, with_memory, with_cpus, release) {
        tiers.entry(number).or_default().insert(node);
    }
    let id = |number: u64| TierId::new(u32::try_from(number).unwrap_or(u32::MAX));
    tiers.into_iter().map(|(number, nodes)| Tier { id: id(number), nodes }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_become_nanoseconds_and_megabytes() {
        let check = |entry, base, revision, data, expected| {
            assert_eq!(normalize(entry, base, revision, data), expected, "{entry} x {base}");
        };
        let (latency, bandwidth) = (DataType::ReadLatency, DataType::WriteBandwidth);
        check(0, 100, 2, latency, 0);
        check(0xffff, 100, 2, latency, 0);
        check(5, 100, 2, latency, 1);
        check(100, 1000, 2, latency, 100);
        check(100, 1000, 2, bandwidth, 100_000);
        check(3, u64::MAX, 2, latency, 0);
        check(2, 1 << 31, 2, bandwidth, 0);
        check(9, 1, 1, latency, 0);
        check(11, 1, 1, bandwidth, 2);
    }
}
