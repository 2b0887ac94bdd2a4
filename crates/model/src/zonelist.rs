//! Fallback orders: which node the kernel tries next when one has no free memory.
//!
//! # Source
//! `build_zonelists` and `find_next_best_node` in `mm/page_alloc.c`. Holds for Linux 5.16 (which
//! also began to print the orders at boot, `Fallback order for Node 0: ...`) up to at least 7.2;
//! compared with kernels 6.12, 6.16, 6.17 and 6.18.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use nodewise_machine::{Machine, NodeId};

use crate::distance::{LOCAL, default_distance};
use crate::ram::Architecture;
use crate::release::{Change, Release};
use crate::zones::{Zone, ZoneKind};

/// When the orders were built. It decides whether nodes without CPUs are preferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuiltAt {
    /// At boot, on x86-64 and arm64: no CPU has been entered into its node yet, so every node counts
    /// as one without CPUs.
    Boot,
    /// Again at run time, after a node gained its first memory or lost its last: nodes without CPUs
    /// come before others at the same distance.
    RunTime,
}

/// The fallback order of every node that could appear.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FallbackOrders {
    orders: BTreeMap<NodeId, Vec<NodeId>>,
}

impl FallbackOrders {
    /// The orders that a kernel builds for this machine. Only nodes with memory appear in them; a
    /// node without memory has an order too, which begins with the nearest node that has some.
    pub fn from_machine(machine: &Machine, built: BuiltAt) -> Self {
        let candidates: Vec<NodeId> = machine.memory_nodes().iter().collect();
        let has_cpus: Vec<bool> = candidates
            .iter()
            .map(|node| built == BuiltAt::RunTime && !machine.cpus_of(*node).is_empty())
            .collect();
        // MAX_NUMNODES scales the distance against the load of a node.
        let scale = u64::from(Architecture::from_machine(machine).max_nodes());
        let mut load = vec![0; candidates.len()];
        let mut orders = BTreeMap::new();
        for local in &machine.possible_nodes.union(&machine.node_ids()) {
            let distances: Vec<u64> = candidates.iter().map(|node| distance(machine, local, *node)).collect();
            let costs: Vec<u64> = (0..candidates.len())
                .map(|at| {
                    // Both penalties are added before scaling, so they beat any load.
                    let lower = u64::from(candidates[at] < local);
                    (distances[at] + lower + u64::from(has_cpus[at])) * scale
                })
                .collect();
            let picked = pick_all(local, &candidates, &distances, &costs, &mut load);
            orders.insert(local, picked.into_iter().map(|at| candidates[at]).collect());
        }
        Self { orders }
    }

    /// The order in which a node's allocations try nodes; empty for a node that cannot appear.
    pub fn from(&self, node: NodeId) -> &[NodeId] {
        self.orders.get(&node).map_or(&[], Vec::as_slice)
    }

    /// The order of a node as the log of a kernel names it.
    pub fn logged(&self, node: NodeId, release: Release) -> Vec<NodeId> {
        let order = self.from(node);
        // A node with memory is the first of its own order.
        let is_bare = order.first().is_some_and(|first| *first != node);
        let own = (is_bare && !release.has(Change::BareNodesLeftOut)).then_some(node);
        own.into_iter().chain(order.iter().copied()).collect()
    }

    /// All orders, by node.
    pub fn iter(&self) -> impl Iterator<Item = (NodeId, &[NodeId])> {
        self.orders.iter().map(|(node, order)| (*node, order.as_slice()))
    }
}

fn distance(machine: &Machine, from: NodeId, to: NodeId) -> u64 {
    machine.distance(from, to).unwrap_or_else(|| default_distance(from, to)).into()
}

/// The order of the candidates for `local`; the load they get disturbs the orders of later nodes, as
/// it does in the kernel.
///
/// The kernel picks them one by one, and loads only nodes that it has just picked: for one local
/// node the keys do not change, so sorting gives the same order.
fn pick_all(
    local: NodeId,
    candidates: &[NodeId],
    distances: &[u64],
    costs: &[u64],
    load: &mut [u64],
) -> Vec<usize> {
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    // Stable: of equals the lowest number comes first. The node itself comes before all.
    order.sort_by_key(|at| (candidates[*at] != local, costs[*at] + load[*at]));
    let own = candidates.binary_search(&local).map_or(LOCAL.into(), |at| distances[at]);
    let mut group = own;
    for at in &order {
        // The first of each group of equal distance is loaded; the node's own group is not.
        if distances[*at] != group {
            load[*at] += 1;
        }
        group = distances[*at];
    }
    order
}

/// The zones that allocations try, in this order.
///
/// # Source
/// `build_zonerefs_node`: the populated zones of each node, highest first, node after node.
#[derive(Clone, Debug)]
pub struct Zonelists<'a> {
    orders: &'a FallbackOrders,
    /// Of each node that has any, the highest first.
    own: BTreeMap<NodeId, Vec<ZoneKind>>,
}

impl<'a> Zonelists<'a> {
    /// The lists of all nodes; `zones` are the zones of all nodes.
    pub fn new(orders: &'a FallbackOrders, zones: &[Zone]) -> Self {
        let mut own: BTreeMap<NodeId, Vec<ZoneKind>> = BTreeMap::new();
        for zone in zones.iter().filter(|zone| zone.present > 0) {
            own.entry(zone.node).or_default().push(zone.kind);
        }
        own.values_mut().for_each(|kinds| kinds.sort_unstable_by_key(|kind| Reverse(*kind)));
        Self { orders, own }
    }

    /// `ZONELIST_FALLBACK`: of every node in the node's fallback order.
    pub fn fallback(&self, node: NodeId) -> impl Iterator<Item = (NodeId, ZoneKind)> {
        self.orders.from(node).iter().flat_map(|node| self.no_fallback(*node))
    }

    /// `ZONELIST_NOFALLBACK`: of the node alone, for `__GFP_THISNODE`.
    pub fn no_fallback(&self, node: NodeId) -> impl Iterator<Item = (NodeId, ZoneKind)> {
        let kinds = self.own.get(&node).map_or(&[][..], Vec::as_slice);
        kinds.iter().map(move |kind| (node, *kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::spec;
    use proptest::prelude::{prop_assert_eq, proptest};

    fn check(spec: &str, built: BuiltAt, expected: &[&[u32]]) {
        let machine = spec::machine(spec).unwrap();
        let orders: Vec<Vec<u32>> = FallbackOrders::from_machine(&machine, built)
            .iter()
            .map(|(_, order)| order.iter().map(|node| node.number()).collect())
            .collect();
        assert_eq!(orders, expected, "{spec}");
    }

    // Each case was read from the log of a real kernel; what kernels is said with it.

    #[test]
    fn the_four_node_server_of_the_articles() {
        // 6.12 and 6.18 on x86-64, 6.12 on arm64.
        check(
            "2x(2x(1c 512M)); dist=11,20",
            BuiltAt::Boot,
            &[&[0, 1, 2, 3], &[1, 0, 3, 2], &[2, 3, 0, 1], &[3, 2, 1, 0]],
        );
    }

    #[test]
    fn nodes_without_cpus_are_not_preferred_at_boot() {
        // 6.12 and 6.18 on x86-64, 6.12 on arm64.
        check(
            "2x(1c 512M) 2x(512M)",
            BuiltAt::Boot,
            &[&[0, 1, 2, 3], &[1, 2, 3, 0], &[2, 3, 0, 1], &[3, 0, 1, 2]],
        );
    }

    #[test]
    fn nodes_without_cpus_are_preferred_when_lists_are_rebuilt() {
        // 6.12 on x86-64, after node 3 was hot-added.
        check(
            "2x(1c 512M) 2x(512M)",
            BuiltAt::RunTime,
            &[&[0, 2, 3, 1], &[1, 3, 2, 0], &[2, 3, 0, 1], &[3, 2, 0, 1]],
        );
    }

    #[test]
    fn two_fast_nodes_with_a_slow_one_each() {
        // 6.12 and 6.18 on x86-64.
        check(
            "2x(1c 512M) 2x(512M); dist=10,21,17,28/21,10,28,17/17,28,10,28/28,17,28,10",
            BuiltAt::Boot,
            &[&[0, 2, 1, 3], &[1, 3, 0, 2], &[2, 0, 3, 1], &[3, 1, 0, 2]],
        );
    }

    #[test]
    fn emulated_nodes_rotate() {
        // A Raspberry Pi 5 with 6.12 (its published log), and x86-64 with numa=fake=8.
        let rotation: Vec<Vec<u32>> =
            (0..8).map(|start| (0..8).map(|step| (start + step) % 8).collect()).collect();
        let rotation: Vec<&[u32]> = rotation.iter().map(Vec::as_slice).collect();
        check("8x(1c 1G); dist=10", BuiltAt::Boot, &rotation);
        check("(4c 1G) 7x(1G)", BuiltAt::Boot, &rotation);
    }

    #[test]
    fn a_node_without_memory_begins_with_the_nearest() {
        check(
            "(1c 1G) (1c) (1G); dist=10,20,30/20,10,15/30,15,10",
            BuiltAt::Boot,
            &[&[0, 2], &[2, 0], &[2, 0]],
        );
    }

    #[test]
    fn the_log_named_a_node_without_memory_before_6_7() {
        let machine = spec::machine("(1c 1G) (1c) (1G); dist=10,20,30/20,10,15/30,15,10").unwrap();
        let orders = FallbackOrders::from_machine(&machine, BuiltAt::Boot);
        let logged = |node, release| -> Vec<u32> {
            orders.logged(NodeId::new(node), release).iter().map(|node| node.number()).collect()
        };
        assert_eq!(logged(1, Release::new(6, 1)), [1, 2, 0]);
        assert_eq!(logged(1, Release::new(6, 7)), [2, 0]);
        assert_eq!(logged(0, Release::new(6, 1)), [0, 2]);
    }

    #[test]
    fn all_zones_of_a_node_come_before_the_next_node() {
        let machine = spec::machine("(1c 5G) (1c 1G)").unwrap();
        let orders = FallbackOrders::from_machine(&machine, BuiltAt::Boot);
        let lists = Zonelists::new(&orders, &crate::zones::machine_zones(&machine));
        let words = |list: &mut dyn Iterator<Item = (NodeId, ZoneKind)>| {
            list.map(|(node, kind)| format!("{node}:{kind}")).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(words(&mut lists.fallback(NodeId::new(1))), "1:Normal 0:Normal 0:DMA32 0:DMA");
        assert_eq!(words(&mut lists.no_fallback(NodeId::new(1))), "1:Normal");
        assert_eq!(words(&mut lists.no_fallback(NodeId::new(7))), "");
    }

    #[test]
    fn a_machine_without_distances_uses_the_kernels_defaults() {
        let mut machine = spec::machine("2x(1c 1G)").unwrap();
        machine.distances = Default::default();
        let orders = FallbackOrders::from_machine(&machine, BuiltAt::Boot);
        assert_eq!(orders.from(NodeId::new(1)), [NodeId::new(1), NodeId::new(0)]);
        assert!(orders.from(NodeId::new(9)).is_empty());
    }

    proptest! {
        #[test]
        fn every_order_is_a_permutation_of_the_nodes_with_memory(
            nodes in 1usize..9,
            memory in 1u32..256,
            distances in proptest::collection::vec(11u32..60, 64),
        ) {
            let parts: Vec<&str> = (0..nodes).map(|at| if memory >> at & 1 == 1 { "(1c 1G)" } else { "(1c)" }).collect();
            let rows: Vec<String> = (0..nodes)
                .map(|row| {
                    let cells = (0..nodes).map(|column| if row == column { 10 } else { distances[row * 8 + column % 8] });
                    cells.map(|cell| cell.to_string()).collect::<Vec<_>>().join(",")
                })
                .collect();
            let matrix = if nodes == 1 { String::new() } else { format!("; dist={}", rows.join("/")) };
            let machine = spec::machine(&format!("{}{matrix}", parts.join(" "))).unwrap();
            let with_memory: Vec<NodeId> = machine.nodes_with_memory().iter().collect();
            for (node, order) in FallbackOrders::from_machine(&machine, BuiltAt::Boot).iter() {
                let mut sorted = order.to_vec();
                sorted.sort_unstable();
                prop_assert_eq!(&sorted, &with_memory);
                if with_memory.contains(&node) {
                    prop_assert_eq!(order[0], node);
                }
            }
        }
    }
}
