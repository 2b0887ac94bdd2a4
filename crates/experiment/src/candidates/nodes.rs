//! One node at a time: which ones, and what local means for each.

use nodewise_machine::{Bytes, Machine, NodeId, NodeSet, PolicyMode, TierId};

use nodewise_machine::placement::{Placement, Scope};

/// On machines with more nodes than this, nodes that are alike are represented by the first of
/// them: trying 64 sockets one by one costs hours and says 64 times the same.
pub const MOST_NODES: usize = 4;

/// Which nodes are tried one by one.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct Targets {
    /// The nodes that are tried.
    pub tried: Vec<NodeId>,
    /// Nodes of these that stand for others, and the others.
    pub alike: Vec<(NodeId, NodeSet)>,
    /// Nodes that are like none of those tried, beyond [`MOST_NODES`].
    pub beyond: NodeSet,
}

impl Targets {
    /// The nodes to try on a machine.
    pub fn from_machine(machine: &Machine, scope: &Scope) -> Self {
        let with_cpus: NodeSet = scope.cpus_of.keys().copied().collect();
        let all = scope.memory_nodes.union(&with_cpus);
        if all.len() <= MOST_NODES {
            return Self { tried: all.iter().collect(), ..Self::default() };
        }
        let mut groups: Vec<(NodeId, Traits, NodeSet)> = Vec::new();
        let mut beyond = NodeSet::new();
        for node in &all {
            let traits = Traits::from_node(node, machine, scope);
            if let Some((_, _, others)) = groups.iter_mut().find(|(_, first, _)| first.is_like(&traits)) {
                others.insert(node);
            } else if groups.len() < MOST_NODES {
                groups.push((node, traits, NodeSet::new()));
            } else {
                beyond.insert(node);
            }
        }
        let tried = groups.iter().map(|(first, ..)| *first).collect();
        let stands_for = |(first, _, others): (NodeId, Traits, NodeSet)| {
            if others.is_empty() { None } else { Some((first, others)) }
        };
        Self { tried, alike: groups.into_iter().filter_map(stands_for).collect(), beyond }
    }
}

/// The facts that make one node equivalent to another.
struct Traits {
    cpus: usize,
    memory: Option<Bytes>,
    tier: Option<TierId>,
    /// Distances from and to all nodes, each in ascending order.
    distances: (Vec<Option<u32>>, Vec<Option<u32>>),
}

impl Traits {
    fn from_node(node: NodeId, machine: &Machine, scope: &Scope) -> Self {
        let sorted = |distance: &dyn Fn(NodeId) -> Option<u32>| {
            let mut row: Vec<_> = machine.nodes.keys().map(|other| distance(*other)).collect();
            row.sort_unstable();
            row
        };
        Self {
            cpus: scope.cpus_of(node).len(),
            memory: machine
                .nodes
                .get(&node)
                .and_then(nodewise_machine::Node::memory_total)
                .filter(|_| scope.memory_nodes.contains(node)),
            tier: machine.tiers.iter().find(|tier| tier.nodes.contains(node)).map(|tier| tier.id),
            distances: (
                sorted(&|other| machine.distance(node, other)),
                sorted(&|other| machine.distance(other, node)),
            ),
        }
    }

    /// Sizes may differ by a tenth: the first and the last node lose memory to the kernel and the
    /// firmware.
    fn is_like(&self, other: &Self) -> bool {
        let sizes = match (self.memory, other.memory) {
            (Some(a), Some(b)) => a.get().abs_diff(b.get()) <= a.get() / 10,
            (a, b) => a.is_none() && b.is_none(),
        };
        sizes && self.cpus == other.cpus && self.tier == other.tier && self.distances == other.distances
    }
}

/// CPUs and memory as near to a node as there are any: its own, or those of the nearest node that
/// has them.
pub(super) fn local_to(node: NodeId, machine: &Machine, scope: &Scope) -> Placement {
    let nearest = |candidates: &NodeSet, distance: &dyn Fn(NodeId) -> Option<u32>| {
        if candidates.contains(node) {
            return Some(node);
        }
        candidates.iter().min_by_key(|candidate| (distance(*candidate).unwrap_or(u32::MAX), *candidate))
    };
    let with_cpus: NodeSet = scope.cpus_of.keys().copied().collect();
    // An access goes from a CPU to memory, so that is the direction of the distance.
    let home = nearest(&with_cpus, &|candidate| machine.distance(candidate, node));
    let memory = nearest(&scope.memory_nodes, &|candidate| machine.distance(node, candidate));
    let mut placement = Placement::DEFAULT;
    if let Some(memory) = memory {
        placement = Placement::memory(PolicyMode::Bind, [memory].into_iter().collect());
    }
    match home {
        Some(home) => placement.with_cpus(scope.cpus_of(home)),
        None => placement,
    }
}
