//! The walk: from which zone each page of a request comes, and when the kernel gives up.
//!
//! Pages are handled as runs: while every node whose turn comes up takes its pages from one zone,
//! any number of rounds costs as much as one. So the cost grows with requests, nodes and zones.
//!
//! # Source
//! `get_page_from_freelist`, `__alloc_pages_slowpath` and `zone_watermark_fast` in
//! `mm/page_alloc.c`, `alloc_pages_mpol` in `mm/mempolicy.c`, `zone_statistics`; 5.15 to at least
//! 7.2. Nothing is reclaimed here but under `vm.zone_reclaim_mode` ([`crate::reclaim`]): the model says where
//! the walk ends up without it. Nor is anything known of areas for devices' buffers (`CMA`), which hold pages of
//! programs and none of the kernel.

mod busy;
mod route;
#[cfg(test)]
mod tests;
mod turn;

use nodewise_machine::{NodeCounters, NodeId, NodeSet};

use crate::memory::Memory;
use crate::policy::interleave::{InterleavePosition, Weights};
use crate::policy::set::Policy;
use crate::release::Change;
use crate::zones::ZoneKind;
pub use busy::BusyNodes;
pub use route::Route;
use route::Whose;
use turn::{Stock, Stop, Turn};

pub use crate::ram::HUGE_ORDER;

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
    pub policy: &'a Policy,
    /// The weights of the nodes.
    pub weights: &'a Weights,
    /// The node of the CPU.
    pub cpu_node: NodeId,
    /// Nodes that the cpuset allows.
    pub allowed: &'a NodeSet,
    /// How many pages, each of 2^`order` times 4 KiB.
    pub pages: u64,
    /// 0, or [`HUGE_ORDER`] for memory that is advised to be in huge pages (`MADV_HUGEPAGE`).
    pub order: u32,
    /// Where the first page is.
    pub place: InterleavePosition,
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
    pub node: NodeId,
    pub kind: ZoneKind,
    /// The watermark that the zone passed.
    pub mark: Mark,
    /// How many pages of the stretch's size.
    pub pages: u64,
}

/// Pages one after the other, while no zone yielded to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Each page is 2^`order` times 4 KiB.
    pub order: u32,
    /// The zones that gave them, in the order of the nodes' turns.
    pub shares: Vec<Share>,
}

impl Stretch {
    /// Its pages, of 4 KiB.
    pub fn pages(&self) -> u64 {
        self.shares.iter().map(|share| share.pages << self.order).sum()
    }
}

/// Why the kernel has no page to give: it reclaims, and then the OOM killer chooses a victim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// Pages of 4 KiB that are still to be given.
    pub pages: u64,
    /// The nodes that the request could use.
    pub inside: NodeSet,
    pub constraint: Constraint,
}

/// The limit that keeps a request from nodes that may still have memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Constraint {
    /// Nothing: all nodes are at their minimum.
    None,
    /// `CONSTRAINT_CPUSET`.
    Cpuset,
    /// `CONSTRAINT_MEMORY_POLICY`.
    MemoryPolicy,
}

/// The outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Outcome {
    /// The pages that were given, in the order in which they were touched.
    pub stretches: Vec<Stretch>,
    /// Set when not all could be given.
    pub out_of_memory: Option<OutOfMemory>,
    /// Set where this release does not keep to the order of nodes while some are reclaimed.
    pub busy: Option<BusyNodes>,
}

impl Outcome {
    /// Pages of 4 KiB that were given before a zone had to pass its minimum watermark only, which is when the kernel begins to
    /// reclaim; `None` where no zone had to.
    pub fn above_low(&self) -> Option<u64> {
        let is_deeper = |stretch: &Stretch| stretch.shares.iter().any(|share| share.mark == Mark::Min);
        let first = self.stretches.iter().position(is_deeper)?;
        Some(self.stretches[..first].iter().map(Stretch::pages).sum())
    }

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
        let mut route = self.route(request);
        self.allocate_along(&mut route, request.pages, request.place)
    }

    /// Takes the memory of a request, whose [`Request::pages`] are small ones here. Huge pages of the request's order are taken
    /// where whole ones lie in it; before and behind them pages are small.
    pub fn touch(&mut self, request: &Request<'_>) -> Outcome {
        let huge = 1u64 << request.order;
        let first = request.place.page() % huge;
        let head = ((huge - first) % huge).min(request.pages);
        let whole = (request.pages - head) / huge;
        let tail = request.pages - head - whole * huge;
        let mut outcome = Outcome::default();
        for (pages, order, before) in
            [(head, 0, 0), (whole, request.order, head), (tail, 0, request.pages - tail)]
        {
            let place = request.place.after(before);
            if pages == 0 {
                continue;
            }
            let part = self.allocate(&Request { pages, order, place, ..*request });
            part.stretches.into_iter().for_each(|stretch| outcome.add(stretch));
            outcome.busy =
                outcome.busy.or(part.busy.map(|busy| BusyNodes { after: busy.after + before, ..busy }));
            if let Some(end) = part.out_of_memory {
                let behind = request.pages - before - (pages << order);
                outcome.out_of_memory = Some(OutOfMemory { pages: end.pages + behind, ..end });
                break;
            }
        }
        outcome
    }

    /// Takes pages of the request's order and of no other: fewer where there are no more.
    pub(crate) fn allocate_whole(&mut self, request: &Request<'_>) -> Outcome {
        let mut outcome = Outcome::default();
        self.walk(&mut self.route(request), request.order, request.pages, request.place, &mut outcome);
        outcome
    }

    /// Takes pages along a route of this memory: as [`Memory::allocate`] does for the request that the
    /// route was made for, had it these pages and this place.
    pub fn allocate_along(&mut self, route: &mut Route, pages: u64, place: InterleavePosition) -> Outcome {
        let mut outcome = self.take_along(route, pages, place);
        outcome.busy = route.woken.as_ref().and_then(|woken| BusyNodes::from_outcome(&outcome, woken));
        outcome
    }

    fn take_along(&mut self, route: &mut Route, pages: u64, place: InterleavePosition) -> Outcome {
        let mut outcome = Outcome::default();
        let order = route.order;
        let mut left = pages;
        if order > 0 {
            left -= self.walk(route, order, left, place, &mut outcome);
            if left == 0 {
                return outcome;
            }
        }
        // Where no huge page is to be had the kernel gives small ones, placed one by one.
        let given = pages - left;
        let small = left << order;
        let rest = small - self.walk(route, 0, small, place.after(given << order), &mut outcome);
        if rest > 0 {
            outcome.out_of_memory = Some(route.out_of_memory(rest));
        }
        outcome
    }

    /// Takes up to `pages` pages of an order; gives how many were had.
    fn walk(
        &mut self,
        route: &mut Route,
        order: u32,
        pages: u64,
        place: InterleavePosition,
        outcome: &mut Outcome,
    ) -> u64 {
        let (whose, round) = (route.whose, route.round.round());
        let index = place.index(order);
        let whole = self.release.has(Change::WholeInterleaveIndex);
        let index = if whole { index } else { index & u64::from(u32::MAX) };
        let Some(mut place) = route.round.place(index) else { return 0 };
        let turns = route.turns(order);
        turns.iter_mut().for_each(Turn::restart);
        let mut left = pages;
        while left > 0 {
            let mut stretch = Stretch { order, shares: Vec::new() };
            // A node that one turn reclaims may have pages again for another that had passed it.
            let reclaims = order == 0 && self.zone_reclaim.is_some();
            for turn in turns.iter_mut() {
                turn.look(Stock::new(self, order, whose.class), reclaims);
            }
            let in_rounds = !reclaims || !turn::is_mixed(turns, Stock::new(self, order, whose.class));
            // Until a zone is at its mark every round takes the same pages from the same zones. Without this shortcut
            // a request for a TiB would be 2^28 steps.
            if left >= round && in_rounds {
                let rounds =
                    turn::whole_rounds(turns, Stock::new(self, order, whose.class)).min(left / round);
                for turn in turns.iter() {
                    let taken = rounds * turn.weight;
                    self.take(turn, taken, whose, &mut stretch);
                    left -= taken;
                }
            }
            // The last round of the stretch, in which a zone runs dry or the request ends.
            // One turn more than there are: the request may begin in the middle of a turn, and the round ends there.
            for _ in 0..=turns.len() {
                let (at, before) = place;
                let turn = &mut turns[at];
                let stock = Stock::new(self, order, whose.class);
                if reclaims {
                    turn.look(stock, true);
                }
                let taken = (turn.weight - before).min(left).min(turn.available(stock));
                self.take(turn, taken, whose, &mut stretch);
                left -= taken;
                place = (at, before + taken);
                if before + taken < turn.weight {
                    break;
                }
                place = ((at + 1) % turns.len(), 0);
            }
            let empty = stretch.shares.is_empty();
            outcome.add(stretch);
            // Every turn was looked at and gave nothing, so the zones have nothing for this request any more.
            if empty {
                break;
            }
        }
        pages - left
    }

    /// Takes pages of one turn from the zone it has come to, and counts them.
    fn take(&mut self, turn: &Turn, pages: u64, whose: Whose, stretch: &mut Stretch) {
        let Some((stop, mark, preferred)) = turn.target().filter(|_| pages > 0) else { return };
        if stop.reclaims {
            self.reclaim(stop, mark, pages << stretch.order, whose.class);
        }
        let zone = &mut self.zones[stop.zone];
        zone.free -= pages << stretch.order;
        let (node, kind) = (zone.node, zone.kind);
        let same = |share: &&mut Share| (share.node, share.kind, share.mark) == (node, kind, mark);
        match stretch.shares.iter_mut().find(same) {
            Some(share) => share.pages += pages,
            None => stretch.shares.push(Share { node, kind, mark, pages }),
        }
        // `zone_statistics`: hit and miss compare with the wanted node, local and other with that of the CPU. Under a
        // policy these differ, so a page can be a hit and other at the same time.
        let own = self.counters.entry(node).or_default();
        let missed = preferred.filter(|wanted| *wanted != node);
        *(if missed.is_some() { &mut own.miss } else { &mut own.hit }) += pages;
        *(if node == whose.cpu_node { &mut own.local } else { &mut own.other }) += pages;
        if whose.counts_turns && turn.node == node {
            own.interleave_hit += pages;
        }
        if let Some(wanted) = missed {
            let counters: &mut NodeCounters = self.counters.entry(wanted).or_default();
            counters.foreign += pages;
        }
    }

    /// Frees what a zone lacks to give this many pages and stay at a mark.
    fn reclaim(&mut self, stop: Stop, mark: Mark, pages: u64, class: Class) {
        let (zone, Some(spare)) = (&mut self.zones[stop.zone], self.spare.get_mut(stop.zone)) else { return };
        let lacking = (turn::kept(zone, mark, class) + pages).saturating_sub(zone.free).min(*spare);
        zone.free += lacking;
        *spare -= lacking;
        *self.reclaimed.entry(zone.node).or_default() += lacking;
    }

    /// Whether a node has a page of an order above its minimum watermark for requests of a class: one that is
    /// wanted from this node alone (`__GFP_THISNODE`) is looked for down to there.
    pub fn can_give(&self, node: NodeId, order: u32, class: Class) -> bool {
        let stock = Stock::new(self, order, class);
        let own = |zone: usize| Stop { zone, reclaims: false };
        self.list(&[node], class).into_iter().any(|zone| stock.available(own(zone), Mark::Min) > 0)
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
