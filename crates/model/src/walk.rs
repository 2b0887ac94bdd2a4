//! The walk: from which zone each page of a request comes, and when the kernel gives up.
//!
//! Pages are handled as runs: while every node whose turn comes up takes its pages from one zone,
//! any number of rounds costs as much as one. So the cost grows with requests, nodes and zones.
//!
//! # Source
//! `get_page_from_freelist`, `__alloc_pages_slowpath` and `zone_watermark_fast` in
//! `mm/page_alloc.c`, `alloc_pages_mpol` in `mm/mempolicy.c`, `zone_statistics`; 5.15 to at least
//! 7.2. Nothing is reclaimed here: the model says where the walk ends up without it.

#[cfg(test)]
mod tests;
mod turn;

use nodewise_machine::{MemPolicy, NodeId, NodeSet, PolicyMode};

use crate::memory::{Counters, Memory, ZoneState};
use crate::policy::interleave::{Place, Turns, Weights};
use crate::policy::set::Policy;
use crate::policy::{WhenFull, path};
use crate::release::Change;
use crate::zones::ZoneKind;
use turn::{Turn, Way};

/// A huge page of 2 MiB is 2^9 pages.
pub const HUGE_ORDER: u32 = 9;

/// Which zones a request may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Pages of programs: every zone.
    User,
    /// Pages of the kernel: all but zone Movable.
    Kernel,
}

impl Class {
    const fn highest(self) -> ZoneKind {
        match self {
            Self::User => ZoneKind::Movable,
            Self::Kernel => ZoneKind::Normal,
        }
    }
}

/// Memory that is touched page after page by one CPU.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The policy in force.
    pub policy: &'a Policy,
    /// The weights of the nodes.
    pub weights: &'a Weights,
    /// The node of the CPU.
    pub cpu_node: NodeId,
    /// Nodes that the cpuset allows.
    pub allowed: &'a NodeSet,
    /// How many pages, each of 2^`order` times 4 KiB.
    pub pages: u64,
    /// 0, or [`HUGE_ORDER`].
    pub order: u32,
    /// Where the first page is.
    pub place: Place,
    /// Which zones may be used.
    pub class: Class,
}

/// Which watermark a zone had to pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// The low one: the first round.
    Low,
    /// The minimum: when no zone of the round passed the low one.
    Min,
}

/// Pages that came from one zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share {
    /// The node.
    pub node: NodeId,
    /// Its zone.
    pub kind: ZoneKind,
    /// The watermark that the zone passed.
    pub mark: Mark,
    /// How many pages of the stretch's size.
    pub pages: u64,
}

/// Pages one after the other, while no zone gave way to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Each page is 2^`order` times 4 KiB.
    pub order: u32,
    /// The zones that gave them, in the order of the nodes' turns.
    pub shares: Vec<Share>,
}

/// Why the kernel has no page to give: it reclaims, and then the OOM killer chooses a victim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// Pages of 4 KiB that are still to be given.
    pub pages: u64,
    /// The nodes that the request could use.
    pub inside: NodeSet,
    /// What kept it from the others.
    pub constraint: Constraint,
}

/// What keeps a request from nodes that may still have memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Constraint {
    /// Nothing: all nodes are at their minimum.
    None,
    /// `CONSTRAINT_CPUSET`.
    Cpuset,
    /// `CONSTRAINT_MEMORY_POLICY`.
    MemoryPolicy,
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Outcome {
    /// The pages that were given, in the order in which they were touched.
    pub stretches: Vec<Stretch>,
    /// Set when not all could be given.
    pub out_of_memory: Option<OutOfMemory>,
}

impl Outcome {
    /// Pages of 4 KiB from each zone, in the order in which the zones were first used.
    pub fn zones(&self) -> Vec<(NodeId, ZoneKind, u64)> {
        let mut sums: Vec<(NodeId, ZoneKind, u64)> = Vec::new();
        for stretch in &self.stretches {
            for share in &stretch.shares {
                let pages = share.pages << stretch.order;
                match sums.iter_mut().find(|(node, kind, _)| (*node, *kind) == (share.node, share.kind)) {
                    Some((.., sum)) => *sum += pages,
                    None => sums.push((share.node, share.kind, pages)),
                }
            }
        }
        sums
    }

    /// Pages of 4 KiB from each node, in the order in which the nodes were first used.
    pub fn nodes(&self) -> Vec<(NodeId, u64)> {
        let mut sums: Vec<(NodeId, u64)> = Vec::new();
        for (node, _, pages) in self.zones() {
            match sums.iter_mut().find(|(other, _)| *other == node) {
                Some((_, sum)) => *sum += pages,
                None => sums.push((node, pages)),
            }
        }
        sums
    }
}

impl Memory {
    /// Takes the pages of a request.
    pub fn allocate(&mut self, request: &Request<'_>) -> Outcome {
        let mut outcome = Outcome::default();
        let mut left = request.pages;
        if request.order > 0 {
            left -= self.walk(request, request.order, left, &mut outcome);
            if left == 0 {
                return outcome;
            }
        }
        // Where no huge page is to be had the kernel gives small ones, placed one by one.
        let given = request.pages - left;
        let small = Request { place: request.place.after(given << request.order), ..*request };
        let pages = left << request.order;
        let rest = pages - self.walk(&small, 0, pages, &mut outcome);
        if rest > 0 {
            outcome.out_of_memory = Some(self.out_of_memory(request, rest));
        }
        outcome
    }

    /// Takes up to `pages` pages of an order; gives how many were had.
    fn walk(&mut self, request: &Request<'_>, order: u32, pages: u64, outcome: &mut Outcome) -> u64 {
        let (mut turns, round) = self.turns(request, order);
        let Some(mut place) = round.place(request.place.index(order)) else { return 0 };
        let mut left = pages;
        while left > 0 {
            let mut stretch = Stretch { order, shares: Vec::new() };
            for turn in &mut turns {
                turn.advance(&self.zones, order, request.class);
            }
            let rounds =
                turn::whole_rounds(&turns, &self.zones, order, request.class).min(left / round.round());
            for turn in &turns {
                let taken = rounds * turn.weight;
                self.take(turn, taken, request, &mut stretch);
                left -= taken;
            }
            // The last round of the stretch, in which a zone runs dry or the request ends.
            for _ in 0..=turns.len() {
                let (at, before) = place;
                let turn = &turns[at];
                let taken =
                    (turn.weight - before).min(left).min(turn.available(&self.zones, order, request.class));
                self.take(turn, taken, request, &mut stretch);
                left -= taken;
                place = (at, before + taken);
                if before + taken < turn.weight {
                    break;
                }
                place = ((at + 1) % turns.len(), 0);
            }
            let empty = stretch.shares.is_empty();
            outcome.add(stretch);
            if empty {
                break;
            }
        }
        pages - left
    }

    /// Takes pages of one turn from the zone it has come to, and counts them.
    fn take(&mut self, turn: &Turn, pages: u64, request: &Request<'_>, stretch: &mut Stretch) {
        let Some((at, mark, preferred)) = turn.target().filter(|_| pages > 0) else { return };
        let zone = &mut self.zones[at];
        zone.free -= pages << stretch.order;
        let (node, kind) = (zone.node, zone.kind);
        let same = |share: &&mut Share| (share.node, share.kind, share.mark) == (node, kind, mark);
        match stretch.shares.iter_mut().find(same) {
            Some(share) => share.pages += pages,
            None => stretch.shares.push(Share { node, kind, mark, pages }),
        }
        let counts_turns = match request.policy.mode {
            PolicyMode::Interleave => true,
            PolicyMode::WeightedInterleave => self.release.has(Change::WeightedInterleaveHits),
            _ => false,
        };
        let own = self.counters.entry(node).or_default();
        let missed = preferred.filter(|wanted| *wanted != node);
        *(if missed.is_some() { &mut own.miss } else { &mut own.hit }) += pages;
        *(if node == request.cpu_node { &mut own.local } else { &mut own.other }) += pages;
        if counts_turns && turn.node == node {
            own.interleave_hit += pages;
        }
        if let Some(wanted) = missed {
            let counters: &mut Counters = self.counters.entry(wanted).or_default();
            counters.foreign += pages;
        }
    }

    /// The turns of a request, each with its ways through the zones.
    fn turns(&self, request: &Request<'_>, order: u32) -> (Vec<Turn>, Turns) {
        let policy = request.policy.effective();
        let interleaves = matches!(policy.mode, PolicyMode::Interleave | PolicyMode::WeightedInterleave);
        let nodes = if interleaves { policy.nodes.clone() } else { [request.cpu_node.number()].into() };
        let round = Turns::of(policy.mode, &nodes, request.weights);
        let turn = |(node, weight): &(NodeId, u64)| {
            let ways = if order > 0 && !interleaves {
                self.huge_ways(&policy, request)
            } else {
                self.ways(&policy, *node, request)
            };
            Turn::new(*node, *weight, ways)
        };
        (round.nodes().iter().map(turn).collect(), round)
    }

    /// The ways of a page, each tried when the one before has nothing left.
    fn ways(&self, policy: &MemPolicy, turn: NodeId, request: &Request<'_>) -> Vec<Way> {
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
        let way = |order: &[NodeId], mark, wanted: &[NodeId]| {
            let zones = self.list(order, request.class);
            Way { zones, mark, preferred: self.first_with_zone(wanted, request.class) }
        };
        let mut ways = match path.when_full {
            WhenFull::ReclaimEverywhere => Vec::new(),
            WhenFull::ReclaimInside | WhenFull::SecondPass => {
                vec![way(&path.order, Mark::Low, &path.order), way(&path.order, Mark::Min, &path.order)]
            }
        };
        if path.when_full != WhenFull::ReclaimInside {
            let all: Vec<NodeId> =
                everywhere.iter().copied().filter(|node| request.allowed.contains(*node)).collect();
            ways.push(way(&all, Mark::Low, &all));
            ways.push(way(&all, Mark::Min, everywhere));
        }
        ways
    }

    /// A huge page is looked for on the first node only, where the policy has such a node; the
    /// others give small pages.
    fn huge_ways(&self, policy: &MemPolicy, request: &Request<'_>) -> Vec<Way> {
        let start = match policy.mode {
            PolicyMode::Preferred => policy.nodes.first().unwrap_or(request.cpu_node),
            _ => self.origin(policy, request),
        };
        let filtered = matches!(policy.mode, PolicyMode::Bind | PolicyMode::PreferredMany);
        let passes = !filtered || policy.nodes.contains(start);
        if !passes || policy.mode == PolicyMode::PreferredMany {
            return self.ways(policy, start, request);
        }
        let own: Vec<NodeId> =
            Some(start).filter(|node| request.allowed.contains(*node)).into_iter().collect();
        let zones = self.list(&own, request.class);
        let preferred = self.first_with_zone(&own, request.class);
        [Mark::Low, Mark::Min].map(|mark| Way { zones: zones.clone(), mark, preferred }).into()
    }

    /// Whose fallback order a policy without turns walks.
    fn origin(&self, policy: &MemPolicy, request: &Request<'_>) -> NodeId {
        let takes_home = matches!(policy.mode, PolicyMode::Bind | PolicyMode::PreferredMany);
        request.policy.home.filter(|_| takes_home).unwrap_or(request.cpu_node)
    }

    /// Whether a bind policy holds for a request: kernel pages are not bound to nodes that have
    /// movable memory only.
    fn binds(&self, policy: &MemPolicy, class: Class) -> bool {
        let usable = |zone: &ZoneState| zone.kind <= class.highest() && policy.nodes.contains(zone.node);
        self.zones.iter().any(usable)
    }

    /// The zones of these nodes that a request may use, node after node, each highest first.
    fn list(&self, nodes: &[NodeId], class: Class) -> Vec<usize> {
        let own = |node: &NodeId| {
            let start = self.zones.partition_point(|zone| zone.node < *node);
            let end = self.zones.partition_point(|zone| zone.node <= *node);
            (start..end).rev()
        };
        nodes.iter().flat_map(own).filter(|at| self.zones[*at].kind <= class.highest()).collect()
    }

    fn first_with_zone(&self, nodes: &[NodeId], class: Class) -> Option<NodeId> {
        nodes.iter().copied().find(|node| !self.list(&[*node], class).is_empty())
    }

    fn out_of_memory(&self, request: &Request<'_>, pages: u64) -> OutOfMemory {
        let policy = request.policy.effective();
        let bound = policy.mode == PolicyMode::Bind
            && self.binds(&policy, request.class)
            && !policy.nodes.is_disjoint(request.allowed);
        let allowed = self.nodes().intersection(request.allowed);
        let inside = if bound { policy.nodes.intersection(&allowed) } else { allowed.clone() };
        let constraint = if inside.len() < allowed.len() {
            Constraint::MemoryPolicy
        } else if allowed.len() < self.nodes().len() {
            Constraint::Cpuset
        } else {
            Constraint::None
        };
        OutOfMemory { pages, inside, constraint }
    }
}

impl Outcome {
    /// Adds a stretch, to the last one where the same zones go on at the same mark.
    fn add(&mut self, stretch: Stretch) {
        let key = |stretch: &Stretch| {
            let mut key: Vec<_> =
                stretch.shares.iter().map(|share| (share.node, share.kind, share.mark)).collect();
            key.sort_unstable();
            (stretch.order, key)
        };
        match self.stretches.last_mut() {
            _ if stretch.shares.is_empty() => {}
            Some(last) if key(last) == key(&stretch) => {
                for share in stretch.shares {
                    let same = |own: &&mut Share| {
                        (own.node, own.kind, own.mark) == (share.node, share.kind, share.mark)
                    };
                    if let Some(own) = last.shares.iter_mut().find(same) {
                        own.pages += share.pages;
                    }
                }
            }
            _ => self.stretches.push(stretch),
        }
    }
}
