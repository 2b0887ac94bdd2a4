//! Memory tiers: which memory is how slow, and where pages go when they are demoted.
//!
//! # Source
//! `mt_perf_to_adistance` and `establish_demotion_targets` in `mm/memory-tiers.c`,
//! `hmat_update_target_attrs` in `drivers/acpi/numa/hmat.c`; 6.8 to at least 7.2. Seen on 6.12.

use std::collections::BTreeMap;

use nodewise_machine::{NodeId, NodeSet};

use crate::zonelist::FallbackOrders;

/// The abstract distance of ordinary DRAM, in the middle of tier 4.
pub const DRAM_DISTANCE: u64 = 576;
/// The abstract distance of memory that a driver adds without saying how fast it is.
pub const DEFAULT_DAX_DISTANCE: u64 = 2880;
/// Abstract distances in one tier.
const PER_TIER: u64 = 128;

/// How fast memory is.
///
/// # Units
/// Latency in ns, bandwidth in MB/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Performance {
    /// Latency of a read.
    pub read_latency_ns: u32,
    /// Latency of a write.
    pub write_latency_ns: u32,
    /// Bandwidth of reads.
    pub read_bandwidth_mb_per_s: u32,
    /// Bandwidth of writes.
    pub write_bandwidth_mb_per_s: u32,
}

impl Performance {
    fn latency(self) -> u64 {
        u64::from(self.read_latency_ns) + u64::from(self.write_latency_ns)
    }

    fn bandwidth(self) -> u64 {
        u64::from(self.read_bandwidth_mb_per_s) + u64::from(self.write_bandwidth_mb_per_s)
    }
}

/// The abstract distance of memory beside DRAM of another speed; `None` where a value is unknown
/// (0).
pub fn abstract_distance(memory: Performance, dram: Performance) -> Option<u64> {
    let known = |speed: Performance| {
        speed.read_latency_ns != 0
            && speed.write_latency_ns != 0
            && speed.read_bandwidth_mb_per_s != 0
            && speed.write_bandwidth_mb_per_s != 0
    };
    if !known(memory) || !known(dram) {
        return None;
    }
    // From left to right, in whole numbers, as the kernel does.
    let slower = DRAM_DISTANCE.checked_mul(memory.latency())? / dram.latency();
    Some(slower.checked_mul(dram.bandwidth())? / memory.bandwidth())
}

/// The number of the tier of an abstract distance.
pub const fn tier(distance: u64) -> u64 {
    distance / PER_TIER
}

/// The node to which each node's pages are demoted first: the nearest of the next slower tier, with
/// all others of that tier as near. Empty for nodes of the slowest tier.
///
/// `tiers` is the tier of each node, `distance` the SLIT's, and `orders` those built at run time.
pub fn demotion_targets(
    tiers: &BTreeMap<NodeId, u64>,
    distance: impl Fn(NodeId, NodeId) -> u32,
    orders: &FallbackOrders,
) -> BTreeMap<NodeId, NodeSet> {
    let target = |(node, own): (&NodeId, &u64)| {
        let slower = tiers.values().filter(|tier| *tier > own).min();
        let in_tier = |other: &&NodeId| slower.is_some_and(|slower| tiers.get(other) == Some(slower));
        let nearest = orders.from(*node).iter().find(in_tier).map(|nearest| distance(*node, *nearest));
        let equal = orders.from(*node).iter().filter(in_tier).copied();
        let near = equal.filter(|other| Some(distance(*node, *other)) == nearest);
        (*node, near.collect())
    };
    tiers.iter().map(target).collect()
}

/// The initiators that reach some memory best: of all that have a value, those that are best in
/// write latency; of these the best in read latency, then in write and in read bandwidth. Latency is
/// the better the lower, bandwidth the higher; an unknown value (0) never is the best.
pub fn best_initiators(reach: &BTreeMap<NodeId, Performance>) -> NodeSet {
    /// Lower is better.
    type Key = fn(&Performance) -> u32;
    let keys: [Key; 4] = [
        |p| p.write_latency_ns.wrapping_sub(1),
        |p| p.read_latency_ns.wrapping_sub(1),
        |p| u32::MAX - p.write_bandwidth_mb_per_s,
        |p| u32::MAX - p.read_bandwidth_mb_per_s,
    ];
    let mut candidates: Vec<(&NodeId, &Performance)> = reach.iter().collect();
    for key in keys {
        let best = candidates.iter().map(|(_, speed)| key(speed)).min();
        candidates.retain(|(_, speed)| Some(key(speed)) == best);
    }
    candidates.into_iter().map(|(node, _)| *node).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_speeds_have_no_distance() {
        let fast = Performance {
            read_latency_ns: 100,
            write_latency_ns: 100,
            read_bandwidth_mb_per_s: 100,
            write_bandwidth_mb_per_s: 100,
        };
        assert_eq!(abstract_distance(Performance { write_latency_ns: 0, ..fast }, fast), None);
        assert_eq!(abstract_distance(fast, fast), Some(DRAM_DISTANCE));
        assert_eq!((tier(DRAM_DISTANCE), tier(DEFAULT_DAX_DISTANCE)), (4, 22));
    }
}
