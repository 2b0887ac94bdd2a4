//! Memory tiers: which memory is how slow, and where pages go when they are demoted.
//!
//! # Source
//! `mt_perf_to_adistance` and `establish_demotion_targets` in `mm/memory-tiers.c`,
//! `hmat_update_target_attrs` in `drivers/acpi/numa/hmat.c`; 6.8 to at least 7.2. Seen on 6.12.

use std::collections::BTreeMap;

use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::{Access, AccessClass, Machine, NodeId, NodeSet};

use crate::distance::default_distance;
use crate::release::{Change, Release};
use crate::zonelist::{BuiltAt, FallbackOrders};

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
    pub read_latency_ns: u32,
    pub write_latency_ns: u32,
    pub read_bandwidth_mb_per_s: u32,
    pub write_bandwidth_mb_per_s: u32,
}

impl Performance {
    fn latency(self) -> u64 {
        u64::from(self.read_latency_ns) + u64::from(self.write_latency_ns)
    }

    fn bandwidth(self) -> u64 {
        u64::from(self.read_bandwidth_mb_per_s) + u64::from(self.write_bandwidth_mb_per_s)
    }

    const fn values(self) -> [u32; 4] {
        [
            self.read_latency_ns,
            self.write_latency_ns,
            self.read_bandwidth_mb_per_s,
            self.write_bandwidth_mb_per_s,
        ]
    }

    fn is_known(self) -> bool {
        self.values().iter().all(|value| *value != 0)
    }

    /// Whether all is known and differs from this by a tenth at most.
    fn is_like(self, other: Self) -> bool {
        let near = |(own, other): (u32, u32)| own.abs_diff(other) <= own / 10;
        other.is_known() && self.values().into_iter().zip(other.values()).all(near)
    }
}

/// The abstract distance of memory beside DRAM of another speed; `None` where a value is unknown
/// (0).
pub fn abstract_distance(memory: Performance, dram: Performance) -> Option<u64> {
    if !memory.is_known() || !dram.is_known() {
        return None;
    }
    // From left to right, in whole numbers, as the kernel does.
    let slower = DRAM_DISTANCE.checked_mul(memory.latency())? / dram.latency();
    Some(slower.checked_mul(dram.bandwidth())? / memory.bandwidth())
}

/// The tiers of a machine, and which way pages go between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tiers {
    /// The tier of each node with memory.
    of: BTreeMap<NodeId, u64>,
    /// The slowest tier that has CPUs: it and all faster ones are on top.
    top: u64,
    targets: BTreeMap<NodeId, NodeSet>,
}

impl Tiers {
    /// The tiers that a machine reports; where it reports none, those that a kernel of a release works out
    /// from latencies and bandwidths ([`worked_out`]). A node without a tier has that of DRAM.
    pub fn from_machine(machine: &Machine, release: Release) -> Self {
        let told = machine.tiers.iter();
        let told: BTreeMap<NodeId, u64> = told
            .flat_map(|tier| tier.nodes.iter().map(|node| (node, u64::from(tier.id.number()))))
            .collect_map();
        let (nodes, with_cpus) = (machine.memory_nodes(), machine.nodes_with_cpus());
        let known =
            if told.is_empty() { worked_out(&machine.accesses, &nodes, &with_cpus, release) } else { told };
        let of_node = |node| (node, known.get(&node).copied().unwrap_or(tier(DRAM_DISTANCE)));
        let of: BTreeMap<NodeId, u64> = nodes.iter().map(of_node).collect_map();
        let fast = of.iter().filter(|(node, _)| with_cpus.contains(**node)).map(|(_, tier)| *tier);
        let top = fast.max().unwrap_or(u64::MAX);
        let distance = |from, to| machine.distance(from, to).unwrap_or_else(|| default_distance(from, to));
        // The lists that demotion goes by are made when all CPUs are known.
        let orders = FallbackOrders::from_machine(machine, BuiltAt::RunTime);
        let targets = demotion_targets(&of, distance, &orders);
        Self { of, top, targets }
    }

    /// Whether a node is on top, so that pages are promoted to it and not from it: `node_is_toptier`.
    pub fn is_top(&self, node: NodeId) -> bool {
        self.of.get(&node).is_none_or(|tier| *tier <= self.top)
    }

    /// Where pages of a node are demoted to, for an owner whose cpuset allows these nodes; `None` where
    /// they are not.
    ///
    /// The owner is taken to be in a cgroup of its own with the memory controller: without one the kernel
    /// looks at the nodes of the cgroup above.
    pub fn targets(&self, node: NodeId, owner: &NodeSet, release: Release) -> Option<Targets> {
        let own = self.of.get(&node)?;
        let slower = self.of.iter().filter(|(_, tier)| *tier > own).map(|(node, _)| *node);
        let mut targets =
            Targets { preferred: self.targets.get(&node)?.clone(), others: slower.collect::<NodeSet>() };
        if release.has(Change::DemotionTargetsInCpuset) {
            targets.preferred = targets.preferred.intersection(owner);
            targets.others = targets.others.intersection(owner);
        } else if release.has(Change::DemotionKeepsCpuset) && targets.preferred.is_disjoint(owner) {
            return None;
        }
        targets.others = targets.others.difference(&targets.preferred);
        (!targets.preferred.is_empty() || !targets.others.is_empty()).then_some(targets)
    }
}

/// Nodes that a node's pages are demoted to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Targets {
    /// One of these, drawn for each batch of pages.
    pub preferred: NodeSet,
    /// Where that has no room: any of these.
    pub others: NodeSet,
}

/// The tier of each node with memory, from latencies and bandwidths that the firmware declares for CPUs. All
/// are DRAM's where the kernel does not go by them: no release before [`Change::TiersOfLatencies`] does, and
/// none where nodes with CPUs and memory differ by more than a tenth or lack a value.
///
/// # Source
/// `hmat_calculate_adistance` and `mt_set_default_dram_perf`: the first node with memory and CPUs that the
/// firmware speaks of is the measure.
pub fn worked_out(
    accesses: &[Access],
    with_memory: &NodeSet,
    with_cpus: &NodeSet,
    release: Release,
) -> BTreeMap<NodeId, u64> {
    let speed = |node: NodeId| {
        let access = accesses.iter().find(|one| one.target == node && one.class == AccessClass::Cpu)?;
        Some(Performance {
            read_latency_ns: access.read_latency_ns?,
            write_latency_ns: access.write_latency_ns?,
            read_bandwidth_mb_per_s: access.read_bandwidth_mb_per_s?,
            write_bandwidth_mb_per_s: access.write_bandwidth_mb_per_s?,
        })
    };
    let targets: NodeSet = accesses.iter().map(|access| access.target).collect();
    let dram = with_memory.intersection(with_cpus).intersection(&targets);
    let measure = dram.first().and_then(speed).filter(|_| release.has(Change::TiersOfLatencies));
    let measure =
        measure.filter(|measure| dram.iter().all(|node| speed(node).is_some_and(|own| measure.is_like(own))));
    let distance = |node: NodeId| {
        let own = speed(node).zip(measure);
        own.and_then(|(own, measure)| abstract_distance(own, measure)).unwrap_or(DRAM_DISTANCE)
    };
    with_memory.iter().map(|node| (node, tier(distance(node)))).collect_map()
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
    tiers.iter().map(target).collect_map()
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

    fn n(number: u32) -> NodeId {
        NodeId::new(number)
    }

    /// The tier of each node.
    fn check(spec: &str, expected: &[u64]) -> Tiers {
        check_in(Release::REFERENCE, spec, expected)
    }

    fn check_in(release: Release, spec: &str, expected: &[u64]) -> Tiers {
        let tiers = Tiers::from_machine(&nodewise_machine::spec::machine(spec).unwrap(), release);
        assert_eq!(tiers.of.values().copied().collect::<Vec<_>>(), expected, "{release}: {spec}");
        tiers
    }

    #[test]
    fn tiers_that_a_machine_tells_are_kept_and_others_are_worked_out() {
        check("2x(1c 1G) (1G tier=22)", &[4, 4, 22]);
        check("2x(1c 1G)", &[4, 4]);
        let fast = "access=0>0:100ns/100G; access=1>1:100ns/100G";
        check(&format!("2x(1c 1G) (1G); {fast}; access=0>2:300ns/20G"), &[4, 4, 67]);
        check(&format!("2x(1c 1G) (1G); {fast}; access=0>2:100ns/70G"), &[4, 4, 6]);
        // A node with CPUs that differs by more than a tenth, or lacks a value.
        let other = |own: &str| {
            format!("2x(1c 1G) (1G); access=0>0:100ns/100G; access=1>1:{own}; access=0>2:300ns/20G")
        };
        check(&other("111ns/100G"), &[4, 4, 4]);
        check(&other("100ns"), &[4, 4, 4]);
        check(&other("110ns/90G"), &[4, 5, 67]);
    }

    #[test]
    fn latencies_count_by_the_release_that_is_asked_about_and_not_the_machines() {
        let spec =
            |kernel| format!("(1c 1G) (1G); access=0>0:100ns/100G; access=0>1:300ns/20G; kernel={kernel}");
        check_in(Release::new(6, 6), &spec("6.12"), &[4, 4]);
        check_in(Release::new(6, 7), &spec("6.1"), &[4, 67]);
    }

    #[test]
    fn nodes_up_to_the_slowest_with_cpus_are_on_top() {
        let tiers = check("(1c 1G) (1c 1G tier=6) (1G tier=5) (1G tier=22)", &[4, 6, 5, 22]);
        assert_eq!([0, 1, 2, 3, 9].map(|node| tiers.is_top(n(node))), [true, true, true, false, true]);
    }

    #[test]
    fn all_slower_nodes_take_what_the_next_tier_has_no_room_for() {
        let tiers = check("(1c 1G) (1G tier=6) (1G tier=22); dist=10,20,40/20,10,40/40,40,10", &[4, 6, 22]);
        let all = NodeSet::from([0, 1, 2]);
        let targets = |node| tiers.targets(n(node), &all, Release::REFERENCE);
        let expected = |preferred: &[u32], others: &[u32]| {
            let set = |numbers: &[u32]| numbers.iter().copied().map(n).collect();
            Some(Targets { preferred: set(preferred), others: set(others) })
        };
        assert_eq!(targets(0), expected(&[1], &[2]));
        assert_eq!(targets(1), expected(&[2], &[]));
        assert_eq!(targets(2), None);
    }
}
