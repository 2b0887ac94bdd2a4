//! How much memory a workload runs over: beyond the caches, within the machine.
//!
//! Caches are known only by what the kernel repeats from the firmware. In a virtual machine that can
//! be any number (480 MiB of L3 for two virtual CPUs have been seen), so a size derived from it has
//! limits, and the result says which of them decided.
//!
//! Where a cache was looked for by measuring ([`crate::latency::cache`]), the larger of what is claimed and
//! what was found decides. A claim that is too large costs time and is otherwise right; one that is too
//! small, or missing, would have a cache measured for memory. And what is found can differ by a step from
//! run to run, which the figures of memory would follow.

use nodewise_machine::{Bytes, Cache, CpuSet, Machine, NodeSet};

use nodewise_machine::placement::Scope;

/// How many times larger than the last-level cache the memory is: what is left in the cache from the
/// last pass is then at most a quarter. It is also what STREAM asks for.
const TIMES_CACHE: u64 = 4;

/// The least size of a buffer, for caches that are small or not known: larger than the cache that
/// one core can fill on nearly all machines.
const LEAST: Bytes = Bytes::from_mib(64);

/// The largest size of the chain: the lap that proves 512 MiB takes two seconds at 250 ns per load.
const MOST_CHASE: Bytes = Bytes::from_mib(512);

/// The largest size of the arrays together.
const MOST_STREAM: Bytes = Bytes::from_gib(4);

/// The largest size of the memory of a team: that it is new in every round takes time.
const MOST_TEAM: Bytes = Bytes::from_gib(2);

/// The part of a node's memory that a workload may take: it must fit into one node, for under some
/// placements it has only one.
const PART_OF_NODE: u64 = 4;

/// The basis of a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// Four times the last-level cache of this size.
    Cache(Bytes),
    /// The least size, because the cache is smaller than a quarter of it or not known.
    Least,
    /// The largest size: four times the cache that the machine claims to have, of this size, would be
    /// more. If the claim is true, a part of the memory stays in the cache.
    Most(Bytes),
    /// A quarter of the memory of the smallest node, of this size.
    Memory(Bytes),
    Chosen,
}

/// A size and what decided it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub bytes: Bytes,
    pub basis: Basis,
}

impl Size {
    /// The size of the chain on a machine: it runs on one CPU, beside the largest last-level cache.
    pub fn of_chase(machine: &Machine, found: Option<Bytes>) -> Self {
        let cache = Self::claimed(machine).max(found);
        Self::choose(cache, 1, MOST_CHASE, smallest_node(machine))
    }

    /// The size of the three arrays together on a machine: they run on all CPUs, beside all
    /// last-level caches.
    pub fn of_stream(machine: &Machine) -> Self {
        let sizes = cache_sizes(machine);
        let cache = (!sizes.is_empty()).then(|| sizes.into_iter().sum());
        Self::choose(cache, 3, MOST_STREAM, smallest_node(machine))
    }

    /// The size of the memory of a team: it runs on all CPUs of one node, beside the caches that these
    /// have, each of which is as large as claimed, or as the one that was found where that is more.
    pub fn of_team(machine: &Machine, found: Option<Bytes>) -> Self {
        let usable = Scope::from_machine(machine).cpus;
        let of_node = |node: &nodewise_machine::Node| {
            let cpus = node.cpus.intersection(&usable);
            let all: Vec<Bytes> =
                caches_beside(machine, &cpus).filter_map(|cache| cache.size.max(found)).collect();
            if all.is_empty() { found } else { Some(all.into_iter().sum()) }
        };
        let cache = machine.nodes.values().filter_map(of_node).max();
        Self::choose(cache, 1, MOST_TEAM, smallest_node(machine))
    }

    /// The memory that the last-level caches beside the CPUs of a node hold for a team of them, at most: that of
    /// the node with the most. A virtual machine claims the caches of its whole host; where one CPU was found to hold
    /// less, a team holds no more than its threads together.
    pub fn held_by_team(machine: &Machine, found: Option<Bytes>) -> Option<Bytes> {
        let usable = Scope::from_machine(machine).cpus;
        let of_node = |node: &nodewise_machine::Node| {
            let cpus = node.cpus.intersection(&usable);
            let claimed: Vec<Bytes> = caches_beside(machine, &cpus).filter_map(|cache| cache.size).collect();
            let together = found.map(|found| found.times(cpus.len() as u64));
            let claimed = (!claimed.is_empty()).then(|| claimed.into_iter().sum());
            claimed.into_iter().chain(together).min()
        };
        machine.nodes.values().filter_map(of_node).max()
    }

    /// The largest last-level cache that a machine claims beside CPUs that may be used.
    pub fn claimed(machine: &Machine) -> Option<Bytes> {
        cache_sizes(machine).into_iter().max()
    }

    /// A size for this many buffers that are each to exceed the cache.
    fn choose(cache: Option<Bytes>, buffers: u64, most: Bytes, node: Option<Bytes>) -> Self {
        let wanted = cache.map(|cache| cache.times(TIMES_CACHE * buffers));
        let least = LEAST.times(buffers);
        let size = match (wanted, cache) {
            (Some(wanted), Some(cache)) if wanted > most => Self { bytes: most, basis: Basis::Most(cache) },
            (Some(wanted), Some(cache)) if wanted >= least => {
                Self { bytes: wanted, basis: Basis::Cache(cache) }
            }
            _ => Self { bytes: least, basis: Basis::Least },
        };
        match node {
            Some(node) if size.bytes.get() > node.get() / PART_OF_NODE => {
                Self { bytes: Bytes::new(node.get() / PART_OF_NODE), basis: Basis::Memory(node) }
            }
            _ => size,
        }
    }
}

/// The last-level caches beside CPUs that may be used.
fn cache_sizes(machine: &Machine) -> Vec<Bytes> {
    caches_beside(machine, &Scope::from_machine(machine).cpus).filter_map(|cache| cache.size).collect()
}

/// The last-level caches beside some CPUs.
fn caches_beside<'m>(machine: &'m Machine, cpus: &CpuSet) -> impl Iterator<Item = &'m Cache> {
    machine.last_level_caches().filter(move |cache| !cache.cpus.is_disjoint(cpus))
}

/// The memory of the smallest node whose memory may be used; `None` when no size is known.
fn smallest_node(machine: &Machine) -> Option<Bytes> {
    let usable: NodeSet = Scope::from_machine(machine).memory_nodes;
    machine
        .nodes
        .values()
        .filter(|node| usable.contains(node.id))
        .filter_map(|node| machine.memory_of(node.id))
        .min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::spec;

    fn check(text: &str, chase: (u64, Basis), stream: (u64, Basis)) {
        let machine = spec::machine(text).unwrap();
        let size = |(mib, basis)| Size { bytes: Bytes::from_mib(mib), basis };
        assert_eq!(Size::of_chase(&machine, None), size(chase), "chase on {text}");
        assert_eq!(Size::of_stream(&machine), size(stream), "stream on {text}");
    }

    fn mib(mib: u64) -> Bytes {
        Bytes::from_mib(mib)
    }

    #[test]
    fn sizes_are_four_times_the_cache() {
        check("(8c 64G l3=32M/8c)", (128, Basis::Cache(mib(32))), (384, Basis::Cache(mib(32))));
        check("2x(8c 64G l3=32M/4c)", (128, Basis::Cache(mib(32))), (1536, Basis::Cache(mib(128))));
    }

    #[test]
    fn small_and_unknown_caches_get_the_least_size() {
        check("(4c 16G)", (64, Basis::Least), (192, Basis::Least));
        check("(4c 16G l2=2M/4c)", (64, Basis::Least), (192, Basis::Least));
    }

    #[test]
    fn a_cache_too_large_to_believe_is_limited_and_said_so() {
        check("(2c 64G l3=480M/2c)", (512, Basis::Most(mib(480))), (4096, Basis::Most(mib(480))));
    }

    #[test]
    fn a_team_runs_beside_the_caches_of_its_node() {
        let check = |text: &str, found: Option<u64>, mib: u64| {
            let size = Size::of_team(&spec::machine(text).unwrap(), found.map(self::mib));
            assert_eq!(size.bytes, Bytes::from_mib(mib), "{text} {found:?}");
        };
        check("2x(8c 64G l3=32M/4c)", None, 256);
        check("(8c 64G l3=32M/4c) (4c 64G l3=32M/4c)", None, 256);
        check("(8c 64G) (64G)", None, 64);
        check("(2c 640G l3=980M/2c)", None, 2048);
        // A cache that no one claims, one that is larger than claimed, and one that is smaller.
        check("(8c 64G) (64G)", Some(64), 256);
        check("2x(8c 64G l3=32M/4c)", Some(64), 512);
        check("(2c 640G l3=480M/2c)", Some(32), 1920);
    }

    #[test]
    fn a_team_holds_what_is_claimed_or_what_its_threads_hold_together() {
        let check = |text: &str, found: Option<u64>, mib: Option<u64>| {
            let held = Size::held_by_team(&spec::machine(text).unwrap(), found.map(self::mib));
            assert_eq!(held, mib.map(Bytes::from_mib), "{text} {found:?}");
        };
        check("(16c 126G l3=300M/16c)", Some(64), Some(300));
        check("(2c 24G l3=480M/2c)", Some(32), Some(64));
        check("(2c 24G l3=480M/2c)", None, Some(480));
        check("2x(8c 64G l3=32M/4c)", Some(32), Some(64));
        check("(4c 8G)", Some(4), Some(16));
        check("(4c 8G)", None, None);
    }

    #[test]
    fn a_chase_runs_beside_the_larger_of_what_is_claimed_and_what_was_found() {
        let check = |text: &str, found: Option<u64>, mib: u64| {
            let size = Size::of_chase(&spec::machine(text).unwrap(), found.map(self::mib));
            assert_eq!(size.bytes, Bytes::from_mib(mib), "{text} {found:?}");
        };
        check("(8c 64G)", Some(64), 256);
        check("(8c 64G)", Some(8), 64);
        check("(8c 64G l3=32M/8c)", Some(16), 128);
        check("(2c 64G l3=480M/2c)", Some(32), 512);
    }

    #[test]
    fn a_small_node_limits_the_size() {
        check("(4c 1G) 7x(1G)", (64, Basis::Least), (192, Basis::Least));
        check("(2c 64G l3=480M/2c) (1G)", (256, Basis::Memory(mib(1024))), (256, Basis::Memory(mib(1024))));
    }

    #[test]
    fn caches_outside_a_cpuset_do_not_count() {
        let mut machine = spec::machine("2x(8c 64G l3=32M/8c)").unwrap();
        machine.allowed_cpus = Some(CpuSet::from([0, 1]));
        assert_eq!(Size::of_stream(&machine).basis, Basis::Cache(mib(32)));
    }
}
