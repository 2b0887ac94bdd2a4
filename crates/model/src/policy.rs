//! Which nodes a policy tries, in which order, and what happens when they are full.
//!
//! | to find | look in |
//! |---|---|
//! | what the kernel accepts, and what a cpuset makes of it | [`set`] |
//! | the mask that a program passes | [`mask`] |
//! | whose turn a page is | [`interleave`] |
//! | weights that no one has set | [`weights`] |
//! | programs that have set no policy | [`system`] |
//!
//! # Source
//! `policy_nodemask`, `policy_node`, `alloc_pages_mpol` and `alloc_pages_preferred_many` in
//! `mm/mempolicy.c`, `get_page_from_freelist` in `mm/page_alloc.c`; 5.15 to at least 7.2. Every rule
//! below was seen on a real kernel (6.12).

pub mod interleave;
pub mod mask;
pub mod set;
pub mod system;
pub mod weights;

use nodewise_machine::{MemPolicy, NodeId, NodeSet, PolicyMode};

use crate::zonelist::FallbackOrders;

/// How the first node of a page is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// The node of the CPU that touches the page first, if the policy's nodes include it; else the
    /// nearest of them.
    NearestToCpu,
    /// Always the same node: the lowest of a preferred policy.
    Fixed(NodeId),
    /// Turn by turn over the nodes, chosen by the address of the page: page number modulo the number
    /// of nodes. The order in which pages are touched does not matter.
    ByAddress,
    /// Turn by turn over the nodes, each as often as its weight says, chosen by the address.
    ByWeight,
}

/// The effect when the nodes of a pass are full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// Never: every node with memory that the process may use is in the order; after the last one
    /// the kernel reclaims, and then the OOM killer chooses a victim.
    ReclaimEverywhere,
    /// The kernel reclaims and swaps inside these nodes, then kills, though others may be empty.
    ReclaimInside,
    /// The second pass begins: all other nodes follow. The first pass drains its nodes to their
    /// minimum watermark, deeper than a walk over all nodes would.
    SecondPass,
}

/// The way of one allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// How the first node is found.
    pub start: Start,
    /// Nodes in the order in which they are tried. For [`Start::ByAddress`] and [`Start::ByWeight`]
    /// this is the way of a page whose turn falls on the first node of the order.
    pub order: Vec<NodeId>,
    /// Nodes tried after all of `order` are full; only for preferred-many.
    pub then: Vec<NodeId>,
    /// The effect when `order` is full.
    pub when_full: WhenFull,
}

/// The way of a page that a CPU of `cpu_node` touches first under a policy.
///
/// `allowed` are the memory nodes that the process may use (its cpuset). An interleaving policy has
/// a way for each node that a page's turn can fall on: `turn` is that node; it is not looked at for
/// other policies.
pub fn path(
    policy: &MemPolicy,
    cpu_node: NodeId,
    turn: Option<NodeId>,
    orders: &FallbackOrders,
    allowed: &NodeSet,
) -> Path {
    let from = |node: NodeId, filter: &NodeSet| -> Vec<NodeId> {
        orders.from(node).iter().copied().filter(|n| filter.contains(*n) && allowed.contains(*n)).collect()
    };
    let everywhere = |start: Start, node: NodeId| Path {
        start,
        order: from(node, allowed),
        then: Vec::new(),
        when_full: WhenFull::ReclaimEverywhere,
    };
    let mask = policy.nodes.intersection(allowed);
    // A preferred node may have fallen out of the cpuset: then the nearest allowed one to it is used.
    let first = mask.first().or(policy.nodes.first()).unwrap_or(cpu_node);
    match policy.mode {
        PolicyMode::Default | PolicyMode::Local => everywhere(Start::NearestToCpu, cpu_node),
        PolicyMode::Preferred => everywhere(Start::Fixed(first), first),
        PolicyMode::Interleave => everywhere(Start::ByAddress, turn.unwrap_or(first)),
        PolicyMode::WeightedInterleave => everywhere(Start::ByWeight, turn.unwrap_or(first)),
        // The kernel ignores a set without any node that the cpuset allows.
        PolicyMode::Bind | PolicyMode::PreferredMany if mask.is_empty() => {
            everywhere(Start::NearestToCpu, cpu_node)
        }
        PolicyMode::Bind => Path {
            start: Start::NearestToCpu,
            order: from(cpu_node, &mask),
            then: Vec::new(),
            when_full: WhenFull::ReclaimInside,
        },
        PolicyMode::PreferredMany => Path {
            start: Start::NearestToCpu,
            order: from(cpu_node, &mask),
            then: from(cpu_node, &allowed.difference(&mask)),
            when_full: WhenFull::SecondPass,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zonelist::BuiltAt;
    use nodewise_machine::spec;

    fn check(mode: PolicyMode, nodes: &[u32], cpu_node: u32, order: &[u32], then: &[u32]) {
        let machine = spec::machine("2x(2x(1c 512M)); dist=11,20").unwrap();
        let orders = FallbackOrders::from_machine(&machine, BuiltAt::Boot);
        let policy = MemPolicy::new(mode, nodes.iter().copied().map(NodeId::new).collect());
        let path = path(&policy, NodeId::new(cpu_node), None, &orders, &machine.nodes_with_memory());
        let numbers = |nodes: &[NodeId]| nodes.iter().map(|node| node.number()).collect::<Vec<_>>();
        assert_eq!((numbers(&path.order), numbers(&path.then)), (order.to_vec(), then.to_vec()), "{policy}");
    }

    #[test]
    fn local_follows_the_cpu() {
        check(PolicyMode::Default, &[], 0, &[0, 1, 2, 3], &[]);
        check(PolicyMode::Local, &[], 2, &[2, 3, 0, 1], &[]);
    }

    #[test]
    fn preferred_follows_the_order_of_its_own_node() {
        check(PolicyMode::Preferred, &[2], 0, &[2, 3, 0, 1], &[]);
    }

    #[test]
    fn bind_is_not_spread_but_filled_from_the_nearest() {
        check(PolicyMode::Bind, &[1, 3], 0, &[1, 3], &[]);
        check(PolicyMode::Bind, &[1, 3], 2, &[3, 1], &[]);
    }

    #[test]
    fn preferred_many_has_a_second_pass_over_the_rest() {
        check(PolicyMode::PreferredMany, &[1, 3], 0, &[1, 3], &[0, 2]);
    }

    #[test]
    fn interleave_falls_back_from_the_node_whose_turn_it_is() {
        check(PolicyMode::Interleave, &[1, 3], 0, &[1, 0, 3, 2], &[]);
        check(PolicyMode::WeightedInterleave, &[3], 0, &[3, 2, 1, 0], &[]);
    }

    #[test]
    fn a_cpuset_takes_nodes_out_of_every_way() {
        let machine = spec::machine("2x(2x(1c 512M)); dist=11,20").unwrap();
        let orders = FallbackOrders::from_machine(&machine, BuiltAt::Boot);
        let allowed = NodeSet::from([1, 2]);
        let way = path(&MemPolicy::DEFAULT, NodeId::new(0), None, &orders, &allowed);
        assert_eq!(way.order, [NodeId::new(1), NodeId::new(2)]);
    }

    #[test]
    fn a_mask_that_the_cpuset_leaves_out_is_none() {
        let machine = spec::machine("2x(2x(1c 512M)); dist=11,20").unwrap();
        let orders = FallbackOrders::from_machine(&machine, BuiltAt::Boot);
        let allowed = NodeSet::from([1, 2]);
        for mode in [PolicyMode::Bind, PolicyMode::PreferredMany] {
            let policy = MemPolicy::new(mode, NodeSet::from([0, 3]));
            let way = path(&policy, NodeId::new(3), None, &orders, &allowed);
            assert_eq!(
                (way.order.as_slice(), way.when_full),
                ([2, 1].map(NodeId::new).as_slice(), WhenFull::ReclaimEverywhere)
            );
            assert_eq!(way.then, []);
        }
    }
}
