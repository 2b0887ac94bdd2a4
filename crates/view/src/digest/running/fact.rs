//! Facts of nodes and of the whole system, each with its name, words and unit: a line each in CSV and in a comparison.

use nodewise_machine::{Bytes, NodeId};

use super::{NodeRow, Running};

/// The unit of a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FactUnit {
    Bytes,
    /// A part of 1.
    Share,
    PerSecond,
}

impl FactUnit {
    /// The word for it in JSON and CSV.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Share => "share",
            Self::PerSecond => "per_s",
        }
    }
}

/// A fact in a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fact {
    /// `None`: of the whole system.
    pub node: Option<NodeId>,
    /// As in CSV: `anon`, `cpu_busy`, `miss`.
    pub name: &'static str,
    pub unit: FactUnit,
    /// `None`: not known.
    pub value: Option<f64>,
}

/// Names of facts, and the words for them.
const WORDS: [(&str, &str); 27] = [
    ("size", "all memory"),
    ("free", "free"),
    ("anon", "anonymous"),
    ("file", "files (cache)"),
    ("shmem", "shared, tmpfs"),
    ("slab", "slab"),
    ("page_tables", "page tables"),
    ("stacks", "stacks"),
    ("hugetlb", "huge page pools"),
    ("rest", "rest"),
    ("cpu_busy", "CPU busy"),
    ("cpu_busiest", "busiest CPU"),
    ("hit", "wanted here (hit)"),
    ("miss", "wanted elsewhere (miss)"),
    ("foreign", "given elsewhere (foreign)"),
    ("local", "to own CPUs (local)"),
    ("other", "to CPUs elsewhere (other)"),
    ("promoted_pages", "promoted pages"),
    ("demoted_pages", "demoted pages"),
    ("hint_faults", "hint faults"),
    ("hint_faults_local", "local share of hint faults"),
    ("balancing_migrated_pages", "pages moved by balancing"),
    ("cpu_some", "some task waited for a CPU"),
    ("memory_some", "some task waited for memory"),
    ("memory_full", "all tasks waited for memory"),
    ("io_some", "some task waited for a disk"),
    ("io_full", "all tasks waited for a disk"),
];

/// The words for the name of a fact.
pub fn fact_words(name: &'static str) -> &'static str {
    WORDS.into_iter().find(|(known, _)| *known == name).map_or(name, |(_, words)| words)
}

/// Every fact: those of the system, then those of each node.
pub fn facts(running: &Running) -> Vec<Fact> {
    let nodes = running.nodes.iter().flat_map(|row| of_node(row, running));
    of_system(running).into_iter().chain(nodes).collect()
}

fn of_system(running: &Running) -> Vec<Fact> {
    let (balancing, pressure) = (running.balancing, running.pressure);
    let fact = |name, unit, value| Fact { node: None, name, unit, value };
    let share = |name, value| fact(name, FactUnit::Share, value);
    let rate = |name, count| fact(name, FactUnit::PerSecond, running.rate(count));
    vec![
        share("cpu_busy", running.cpus.map(|load| load.busy)),
        share("cpu_busiest", running.cpus.map(|load| load.busiest.1)),
        rate("hint_faults", balancing.hint_faults),
        share("hint_faults_local", balancing.local_share),
        rate("balancing_migrated_pages", balancing.migrated_pages),
        share("cpu_some", pressure.cpu_some),
        share("memory_some", pressure.memory_some),
        share("memory_full", pressure.memory_full),
        share("io_some", pressure.io_some),
        share("io_full", pressure.io_full),
    ]
}

fn of_node(row: &NodeRow, running: &Running) -> Vec<Fact> {
    let fact = |name, unit, value| Fact { node: Some(row.node), name, unit, value };
    let share = |name, value| fact(name, FactUnit::Share, value);
    let size = |name, size: Option<Bytes>| fact(name, FactUnit::Bytes, size.map(|size| size.get() as f64));
    let rate = |name, count| fact(name, FactUnit::PerSecond, running.rate(count));
    let mut facts = vec![
        share("cpu_busy", row.load.map(|load| load.busy)),
        share("cpu_busiest", row.load.map(|load| load.busiest.1)),
        size("size", row.size.map(|size| size.size)),
        size("free", row.size.and_then(|size| size.free)),
    ];
    if let Some(memory) = row.memory {
        facts.extend(memory.parts().map(|(name, part)| size(name, part)));
        facts.push(size("rest", Some(memory.rest)));
    }
    let allocations = row.allocations;
    facts.extend([
        rate("hit", allocations.hit),
        rate("miss", allocations.miss),
        rate("foreign", allocations.foreign),
        rate("local", allocations.local),
        rate("other", allocations.other),
        rate("promoted_pages", row.promoted),
        rate("demoted_pages", row.demoted),
    ]);
    facts
}

#[cfg(test)]
mod tests {
    use nodewise_diagnose::MemoryUse;

    use super::*;

    #[test]
    fn every_part_of_memory_has_words() {
        for name in MemoryUse::PARTS {
            assert!(WORDS.iter().any(|(known, _)| *known == name), "{name}");
        }
    }
}
