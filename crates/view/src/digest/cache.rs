//! Caches by level: how many, how large, for how many cores, and how they lie to the nodes.

use std::collections::{BTreeMap, BTreeSet};

use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::order::Order as _;
use nodewise_machine::{Bytes, Cache, CacheKind, CpuId, Machine, NodeId, NodeSet};

use crate::digest::counts::{core_of_each_cpu, plural};
use crate::digest::node::nodes_of_each_cpu;

/// Who shares a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Share {
    /// The kernel does not say.
    Unknown,
    /// None of its CPUs is online.
    Offline,
    /// This many of the online threads of one or more cores, but not all of them.
    Threads(usize),
    /// All online threads of this many cores.
    Cores(usize),
}

impl Share {
    fn from_cache(cache: &Cache, core_of: &BTreeMap<CpuId, CpuId>) -> Self {
        let cores = cores_of(cache, core_of);
        let threads = cache.cpus.iter().filter(|cpu| core_of.contains_key(cpu)).count();
        let all = core_of.values().filter(|first| cores.contains(first)).count();
        match cores.len() {
            _ if cache.cpus.is_empty() => Self::Unknown,
            0 => Self::Offline,
            cores if threads == all => Self::Cores(cores),
            _ => Self::Threads(threads),
        }
    }
}

/// Caches of one size that are shared alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheGroup {
    /// The size of one; `None` when the kernel does not say.
    pub size: Option<Bytes>,
    pub share: Share,
    /// How many there are; of caches whose sharing is unknown, how many kinds of them.
    pub count: usize,
}

/// How many caches there are of each size and share.
type Groups = BTreeMap<(Option<Bytes>, Share), usize>;

/// All caches of a level and kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheLevel {
    /// 1 is nearest to the core.
    pub level: u8,
    pub kind: CacheKind,
    /// The short name: `L1d`, `L3`.
    pub name: String,
    /// The caches by size and share; those there are most of first.
    pub groups: Vec<CacheGroup>,
}

impl CacheLevel {
    /// The levels of a machine, nearest to the core first.
    pub fn all(machine: &Machine) -> Vec<Self> {
        let core_of = core_of_each_cpu(machine);
        let mut levels: BTreeMap<(u8, CacheKind), Groups> = BTreeMap::new();
        for cache in &machine.caches {
            let share = Share::from_cache(cache, &core_of);
            let groups = levels.entry((cache.level, cache.kind)).or_default();
            *groups.entry((cache.size, share)).or_default() += 1;
        }
        levels.into_iter().map(|((level, kind), groups)| Self::new(level, kind, groups)).collect()
    }

    fn new(level: u8, kind: CacheKind, groups: Groups) -> Self {
        let mut groups: Vec<CacheGroup> =
            groups.into_iter().map(|((size, share), count)| CacheGroup { size, share, count }).collect();
        groups.order_by_key(|group| std::cmp::Reverse(group.count));
        let name =
            Cache { level, kind, size: None, line_size: None, ways: None, sets: None, cpus: [].into() };
        Self { level, kind, name: name.name(), groups }
    }

    /// The level in words: `32 MiB x 8, each for 6 cores`.
    pub fn words(&self) -> String {
        let group = |group: &CacheGroup| {
            let size = group.size.map_or_else(|| "size unknown".to_owned(), |size| size.to_string());
            let each = if group.count > 1 { "each " } else { "" };
            let share = match group.share {
                Share::Unknown => return format!("{size}, sharing unknown"),
                Share::Offline => "for no online core".to_owned(),
                Share::Threads(threads) => format!("for {}", plural(threads, "thread")),
                Share::Cores(cores) => format!("for {}", plural(cores, "core")),
            };
            let count = if group.count > 1 { format!(" x {}", group.count) } else { String::new() };
            format!("{size}{count}, {each}{share}")
        };
        self.groups.iter().map(group).collect::<Vec<_>>().join("; ")
    }
}

/// The online cores that share a cache, each by its lowest CPU.
pub(crate) fn cores_of(cache: &Cache, core_of: &BTreeMap<CpuId, CpuId>) -> BTreeSet<CpuId> {
    cache.cpus.iter().filter_map(|cpu| core_of.get(&cpu).copied()).collect_set()
}

/// How the last-level caches lie to the nodes with CPUs: `4 in each node`, `each spans 2 nodes`.
///
/// `None` when there is nothing to say: one node, no such cache, or no rule that holds for all.
pub fn last_level_words(machine: &Machine) -> Option<String> {
    let nodes_of = nodes_of_each_cpu(machine);
    let mut inside: BTreeMap<NodeId, usize> =
        machine.nodes_with_cpus().iter().map(|node| (node, 0)).collect_map();
    let mut spans: BTreeSet<usize> = BTreeSet::new();
    for cache in machine.last_level_caches() {
        let nodes = cache
            .cpus
            .iter()
            .filter_map(|cpu| nodes_of.get(&cpu))
            .fold(NodeSet::new(), |all, nodes| all.union(nodes));
        if nodes.is_empty() {
            continue;
        }
        spans.insert(nodes.len());
        for node in &nodes {
            *inside.entry(node).or_default() += 1;
        }
    }
    let counts: BTreeSet<usize> = inside.values().copied().collect_set();
    let (span, each) = (*spans.first()?, *counts.first()?);
    match (spans.len(), counts.len()) {
        _ if inside.len() < 2 => None,
        (1, 1) if span == 1 => Some(format!("{each} in each node")),
        (1, _) if span > 1 => Some(format!("each spans {span} nodes")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::spec;

    fn check(spec: &str, levels: &[&str], relation: Option<&str>) {
        let machine = spec::machine(spec).unwrap();
        let written: Vec<String> = CacheLevel::all(&machine)
            .iter()
            .map(|level| format!("{} {}", level.name, level.words()))
            .collect();
        assert_eq!(written, levels, "{spec}");
        assert_eq!(last_level_words(&machine).as_deref(), relation, "{spec}");
    }

    #[test]
    fn caches_are_summed_up_per_level() {
        check(
            "2x(2x(24c2t 126G l1d=32K l2=1M l3=32M/6c))",
            &[
                "L1d 32 KiB x 96, each for 1 core",
                "L2 1 MiB x 96, each for 1 core",
                "L3 32 MiB x 16, each for 6 cores",
            ],
            Some("4 in each node"),
        );
        check("(4c2t 16G l3=8M/4c)", &["L3 8 MiB, for 4 cores"], None);
        check("(4c 1G) 7x(1G)", &[], None);
    }

    #[test]
    fn unequal_caches_are_told_apart() {
        check(
            "(8c 1G l2=2M/4c) (2c 1G l2=1M/1c) (2c 1G l2=1M/1c)",
            &["L2 1 MiB x 4, each for 1 core; 2 MiB x 2, each for 4 cores"],
            Some("2 in each node"),
        );
    }

    /// A cache of one thread of a core is not that of the core.
    #[test]
    fn a_cache_of_one_thread_is_not_that_of_a_core() {
        let mut machine = spec::machine("(2c2t 1G l2=1M/1c)").unwrap();
        let words = |machine: &Machine| CacheLevel::all(machine)[0].words();
        assert_eq!(words(&machine), "1 MiB x 2, each for 1 core");
        machine.caches[0].cpus = [0].into();
        assert_eq!(words(&machine), "1 MiB, for 1 thread; 1 MiB, for 1 core");
        machine.caches[0].cpus = [].into();
        assert_eq!(words(&machine), "1 MiB, sharing unknown; 1 MiB, for 1 core");
    }

    #[test]
    fn a_cache_can_span_nodes() {
        let mut machine = spec::machine("2x(2c 1G l3=8M/2c)").unwrap();
        machine.caches.truncate(1);
        machine.caches[0].cpus = machine.cpu_ids();
        assert_eq!(last_level_words(&machine).as_deref(), Some("each spans 2 nodes"));
    }
}
