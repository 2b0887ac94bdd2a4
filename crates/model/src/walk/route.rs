//! Routes: the ways of requests through the zones, worked out once for all requests of a kind.
//!
//! Which zones a page is looked for in, and in which order, follows from policy, CPU and cpuset alone;
//! only how far a walk gets depends on what is free. So a program that touches memory often has one
//! route, until its policy, its CPU or its cpuset changes.

use nodewise_machine::{MemPolicy, NodeId, NodeSet, PolicyMode};

use super::turn::{Stop, Turn, ZonePass};
use super::{Class, Constraint, Mark, OutOfMemory, Request};
use crate::memory::{HugeEffort, Memory, ZoneState};
use crate::policy::interleave::Turns;
use crate::policy::{WhenFull, path};
use crate::release::Change;

/// The ways of all requests that differ only in place and number of pages.
pub struct Route {
    /// Order of the pages that are tried first; 0 for small pages only.
    pub(super) order: u32,
    /// Whose turn each page is.
    pub(super) round: Turns,
    pub(super) whose: Whose,
    huge: Vec<Turn>,
    small: Vec<Turn>,
    /// The facts of a refusal: the nodes that could be used, and what kept it from the others.
    limit: (NodeSet, Constraint),
    /// The nodes that are reclaimed when none of them is above its low watermark any more; `None` where that
    /// changes no order: on a machine of one node, and in a release that passes over no one.
    pub(super) woken: Option<NodeSet>,
}

/// Who asks for pages, as far as counters and zones depend on it.
#[derive(Clone, Copy)]
pub(super) struct Whose {
    pub(super) cpu_node: NodeId,
    pub(super) class: Class,
    /// Whether `interleave_hit` counts its pages.
    pub(super) counts_turns: bool,
}

impl Route {
    /// The turns of pages of an order, which is 0 or the route's own.
    pub(super) fn turns(&mut self, order: u32) -> &mut [Turn] {
        if order > 0 { &mut self.huge } else { &mut self.small }
    }

    /// The nodes in the order in which pages are looked for, for each turn, with its pages per round.
    pub(crate) fn orders(&self, memory: &Memory) -> Vec<(u64, Vec<NodeId>)> {
        let order = |turn: &Turn| {
            let mut nodes = Vec::new();
            for node in turn.stops().map(|zone| memory.zones[zone].node) {
                if !nodes.contains(&node) {
                    nodes.push(node);
                }
            }
            (turn.weight, nodes)
        };
        self.small.iter().map(order).collect()
    }

    pub(crate) fn out_of_memory(&self, pages: u64) -> OutOfMemory {
        OutOfMemory { pages, inside: self.limit.0.clone(), constraint: self.limit.1 }
    }
}

impl Memory {
    /// The route of a request and of all like it. It holds for this memory and its copies, however
    /// full they are.
    pub fn route(&self, request: &Request<'_>) -> Route {
        let policy = request.policy.effective();
        let interleaves = matches!(policy.mode, PolicyMode::Interleave | PolicyMode::WeightedInterleave);
        let nodes = if interleaves { policy.nodes.clone() } else { [request.cpu_node.number()].into() };
        let round = Turns::new(policy.mode, &nodes, request.weights);
        let turns = |ways: &dyn Fn(NodeId) -> Vec<ZonePass>| -> Vec<Turn> {
            round.nodes().iter().map(|(node, weight)| Turn::new(*node, *weight, ways(*node))).collect()
        };
        let small = turns(&|node| self.ways(&policy, node, request));
        let huge = match request.order {
            0 => Vec::new(),
            _ if interleaves => turns(&|node| self.ways(&policy, node, request)),
            _ => turns(&|_| self.huge_ways(&policy, request)),
        };
        let counts_turns = match policy.mode {
            PolicyMode::Interleave => true,
            PolicyMode::WeightedInterleave => self.release.has(Change::WeightedInterleaveHits),
            _ => false,
        };
        let whose = Whose { cpu_node: request.cpu_node, class: request.class, counts_turns };
        let with_memory = self.nodes();
        let limit = self.limit(&policy, request, &with_memory);
        let passes_over = self.release.has(Change::BusyNodesPassedOver) && with_memory.len() > 1;
        let woken = small.first().filter(|_| passes_over).map(|turn| turn.first_round(&self.zones));
        Route { order: request.order, round, whose, huge, small, limit, woken }
    }

    /// The ways of a page, each tried when the one before has nothing left.
    fn ways(&self, policy: &MemPolicy, turn: NodeId, request: &Request<'_>) -> Vec<ZonePass> {
        let origin = self.origin(policy, request);
        let bound = policy.mode != PolicyMode::Bind || self.binds(policy, request.class);
        let policy = if bound { policy } else { &MemPolicy::DEFAULT };
        let path = path(policy, origin, Some(turn), &self.orders, request.allowed);
        let start = match policy.mode {
            PolicyMode::Preferred => policy.nodes.first().unwrap_or(origin),
            PolicyMode::Interleave | PolicyMode::WeightedInterleave => turn,
            _ => origin,
        };
        // The first round keeps to the cpuset when it looks for the node that is wanted, the second
        // only skips the zones of other nodes: so misses are counted then.
        let everywhere = self.orders.from(start);
        let way = |order: &[NodeId], mark, wanted: &[NodeId]| self.way(order, mark, wanted, request);
        let mut ways = match path.when_full {
            WhenFull::ReclaimEverywhere => Vec::new(),
            WhenFull::ReclaimInside | WhenFull::SecondPass => {
                // A mask takes the place of the cpuset, whose zones the walk only skips then: also a node
                // that the cpuset leaves out is wanted. Seen on 6.12 and 6.18.
                let masked: Vec<NodeId> =
                    everywhere.iter().copied().filter(|node| policy.nodes.contains(*node)).collect();
                [Mark::Low, Mark::Min].map(|mark| way(&path.order, mark, &masked)).into()
            }
        };
        if path.when_full != WhenFull::ReclaimInside {
            let all: Vec<NodeId> =
                everywhere.iter().copied().filter(|node| request.allowed.contains(*node)).collect();
            // A mask of preferred nodes that the cpuset leaves out is given up in the middle of its pass, when
            // the walk is at the minimum already.
            let is_given_up =
                policy.mode == PolicyMode::PreferredMany && path.when_full == WhenFull::ReclaimEverywhere;
            if !is_given_up {
                ways.push(way(&all, Mark::Low, &all));
            }
            ways.push(way(&all, Mark::Min, everywhere));
        }
        ways
    }

    /// A huge page is looked for on the first node, where the policy has such a node, and only then on the
    /// others: memory that is advised to be in huge pages rather has them from another node than small ones
    /// from the first. A first node outside the cpuset is none. Seen on 6.12 and 6.18. Other memory has small pages where
    /// the first node has no huge one (`alloc_pages_mpol`, without `__GFP_DIRECT_RECLAIM`).
    fn huge_ways(&self, policy: &MemPolicy, request: &Request<'_>) -> Vec<ZonePass> {
        let start = match policy.mode {
            PolicyMode::Preferred => policy.nodes.first().unwrap_or(request.cpu_node),
            _ => self.origin(policy, request),
        };
        let everywhere = self.ways(policy, start, request);
        let filtered = matches!(policy.mode, PolicyMode::Bind | PolicyMode::PreferredMany);
        let passes = !filtered || policy.nodes.contains(start);
        if !passes || policy.mode == PolicyMode::PreferredMany {
            return everywhere;
        }
        let first = || [Mark::Low, Mark::Min].map(|mark| self.way(&[start], mark, &[start], request));
        match (request.allowed.contains(start), self.huge_effort) {
            (true, HugeEffort::FirstNode) => first().into(),
            (true, HugeEffort::Everywhere) => first().into_iter().chain(everywhere).collect(),
            (false, HugeEffort::FirstNode) => Vec::new(),
            (false, HugeEffort::Everywhere) => everywhere,
        }
    }

    /// A round through the zones of some nodes; the first that has any of `wanted` is wanted.
    fn way(&self, order: &[NodeId], mark: Mark, wanted: &[NodeId], request: &Request<'_>) -> ZonePass {
        let preferred = self.first_with_zone(wanted, request.class);
        let reclaim = self.zone_reclaim.as_ref().zip(preferred).filter(|_| mark == Mark::Low);
        let reclaims = |zone: usize| {
            let node = self.zones[zone].node;
            reclaim.is_some_and(|(reclaim, wanted)| reclaim.reclaims(node, wanted, request.cpu_node))
        };
        let stop = |zone| Stop { zone, reclaims: reclaims(zone) };
        ZonePass { stops: self.list(order, request.class).into_iter().map(stop).collect(), mark, preferred }
    }

    /// Whose fallback order a policy without turns walks.
    fn origin(&self, policy: &MemPolicy, request: &Request<'_>) -> NodeId {
        request.policy.home.filter(|_| policy.mode.has_home()).unwrap_or(request.cpu_node)
    }

    /// Whether a bind policy holds for a request: kernel pages are not bound to nodes that have
    /// movable memory only.
    fn binds(&self, policy: &MemPolicy, class: Class) -> bool {
        let usable = |zone: &ZoneState| zone.kind <= class.highest() && policy.nodes.contains(zone.node);
        self.zones.iter().any(usable)
    }

    /// The zones of these nodes that a request may use, node after node, each highest first.
    pub(super) fn list(&self, nodes: &[NodeId], class: Class) -> Vec<usize> {
        let mut list = Vec::with_capacity(self.zones.len());
        nodes.iter().for_each(|node| list.extend(self.zones_of(*node, class)));
        list
    }

    /// The zones of a node that a request may use, highest first.
    fn zones_of(&self, node: NodeId, class: Class) -> impl Iterator<Item = usize> + '_ {
        let start = self.zones.partition_point(|zone| zone.node < node);
        let end = self.zones.partition_point(|zone| zone.node <= node);
        (start..end).rev().filter(move |at| self.zones[*at].kind <= class.highest())
    }

    fn first_with_zone(&self, nodes: &[NodeId], class: Class) -> Option<NodeId> {
        nodes.iter().copied().find(|node| self.zones_of(*node, class).next().is_some())
    }

    /// The nodes that a request can use, and what keeps it from the others that have memory: `nodes`.
    fn limit(&self, policy: &MemPolicy, request: &Request<'_>, nodes: &NodeSet) -> (NodeSet, Constraint) {
        let bound = policy.mode == PolicyMode::Bind
            && self.binds(policy, request.class)
            && !policy.nodes.is_disjoint(request.allowed);
        let allowed = nodes.intersection(request.allowed);
        let inside = if bound { policy.nodes.intersection(&allowed) } else { allowed.clone() };
        let constraint = if inside.len() < allowed.len() {
            Constraint::MemoryPolicy
        } else if allowed.len() < nodes.len() {
            Constraint::Cpuset
        } else {
            Constraint::None
        };
        (inside, constraint)
    }
}
