//! Page cache of a node that may be elsewhere, or nowhere: the model places and drops it as if no kswapd worked ahead.
//!
//! Each node has counts of pages by which the kernel may differ ([`Doubt`]). They begin where kswapd may work ahead, where dirty pages
//! may go to another node, and where pages were used again (`misjudged`). Each later step spreads them: page cache or memory of a
//! program comes into room that the model does not have, and is missing where the model put it. [`Simulation::page_cache`]
//! makes an interval of them, `drop_caches` settles them.
//!
//! # Source
//! `balance_pgdat` and `kswapd_shrink_node` in `mm/vmscan.c`, `boost_watermark` in `mm/page_alloc.c`, `node_dirty_ok` in
//! `mm/page-writeback.c`; 5.15 to at least 7.2.

use std::collections::BTreeMap;

use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::{NodeId, NodeSet};

use super::Simulation;
use super::program::{Id, ObjectId};
use super::run::Held;
use super::step::{Step, Taken};
use crate::caches::Interval;
use crate::policy::set::Policy;
use crate::release::Change;

/// `vm.dirty_ratio` of the kernel, in percent: a node takes no more pages to write to beyond this share of what it has free and in
/// its cache, as long as another one does.
const DIRTY_RATIO: u64 = 20;

/// `vm.dirty_background_ratio`, in percent: with more the kernel begins to write back.
const DIRTY_BACKGROUND_RATIO: u64 = 10;

/// Page cache of a node that may be elsewhere, or nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Doubt {
    /// Pages that the kernel may have dropped beyond those of the model, or have on another node.
    fewer: u64,
    /// The same over time: kswapd frees again when pages have come into the room that it made.
    freed: u64,
    /// Pages that had come into such room, on any node, when kswapd was woken last.
    used: u64,
    /// Pages that may be here instead of elsewhere.
    more: u64,
    /// Pages that the model placed here and that may be on another node, or that the kernel did not read again since it had them.
    displaced: u64,
    /// Pages of programs that may be on another node.
    astray: u64,
}

/// The nodes that requests of a program can use.
pub(super) struct Reach {
    nodes: NodeSet,
    /// The order in which pages are looked for, for each turn, with its pages per round.
    turns: Vec<(u64, Vec<NodeId>)>,
}

/// The doubts before a program takes pages.
pub(super) struct Before {
    reach: Reach,
    doubts: BTreeMap<NodeId, Doubt>,
    misjudged: u64,
    /// The pages that the step has taken and dropped so far.
    step: Step,
}

/// Page cache of a node, in the order in which it is dropped.
struct Aged {
    /// Whether its pages have to be written first, and the step in which it was last used.
    used: (bool, u64),
    /// The same with the step in which it was read.
    read: (bool, u64),
    /// The file and the first page.
    place: (ObjectId, u64),
    pages: u64,
}

impl Reach {
    /// The order in which pages are looked for; `None` where pages have turns.
    fn order(&self) -> Option<&[NodeId]> {
        match self.turns.as_slice() {
            [(_, order)] => Some(order),
            _ => None,
        }
    }

    /// Pages of a round of turns.
    fn round(&self) -> u64 {
        self.turns.iter().map(|(weight, _)| weight).sum()
    }

    /// Pages that a node has of its own turns, of this many of all: at least, since it is not known whose turn is first.
    fn own(&self, node: NodeId, all: u64) -> u64 {
        if self.order().is_some() {
            return 0;
        }
        let turn = self.turns.iter().find(|(_, order)| order.first() == Some(&node));
        turn.map_or(0, |(weight, _)| (all / self.round()).saturating_mul(*weight).saturating_sub(*weight))
    }

    /// Nodes whose room pages take before that of a node.
    fn before(&self, node: NodeId) -> NodeSet {
        match self.order() {
            Some(order) => order.iter().copied().take_while(|other| *other != node).collect(),
            None => self.nodes.difference(&NodeSet::from_iter([node])),
        }
    }
}

impl Doubt {
    /// Pages that may be free beyond those of the model.
    fn room(self) -> u64 {
        self.gone().saturating_add(self.displaced).saturating_add(self.astray)
    }

    /// Pages that the kernel may have dropped over time.
    fn gone(self) -> u64 {
        self.freed.max(self.fewer)
    }
}

impl Simulation {
    /// Pages of files in the cache of each node, at least and at most. The placements of the files are inside.
    pub fn page_cache(&self) -> BTreeMap<NodeId, Interval> {
        let pages = self.cached_pages();
        let interval = |node: NodeId| {
            let (pages, doubt) =
                (pages.get(&node).copied().unwrap_or(0), self.doubts.get(&node).copied().unwrap_or_default());
            // More than what it has free, down to the minimum watermark, does not fit.
            let zones = self.memory.zones.iter().filter(|zone| zone.node == node);
            let kept: u64 = zones.map(|zone| zone.marks.min).sum();
            let room = self.memory.free_of(node).saturating_sub(kept).saturating_add(doubt.astray);
            Interval {
                least: pages.saturating_sub(doubt.fewer).saturating_sub(doubt.displaced),
                most: pages.saturating_add(doubt.more.min(room)),
            }
        };
        let nodes: NodeSet = pages.keys().chain(self.doubts.keys()).copied().collect();
        nodes.iter().map(|node| (node, interval(node))).collect_map()
    }

    /// Notes that kswapd of some nodes is awake: it frees until the zones are above their high watermarks, and in its last pass up to
    /// as much again. The watermarks of fragmented zones are raised meanwhile (`boost_watermark` in `mm/page_alloc.c`).
    pub(super) fn doubt_awake(&mut self, nodes: &NodeSet, step: &mut Step) {
        for (node, ahead) in self.doubt_cached(nodes) {
            step.free_ahead(node, ahead);
        }
    }

    /// Notes that pages which a program has not asked for, such as page tables and blocks of file systems, at most this many on each
    /// node, may have brought its nodes to their low watermarks and woken their kswapds. A kswapd sleeps as long as one of these
    /// nodes has room, unless watermarks are raised: whoever takes a page of such a zone wakes it.
    pub fn doubt_own(&mut self, program: &str, pages: u64) {
        let is_near =
            |node: &NodeId| self.memory.above_low_of(*node) < pages.saturating_add(self.surplus(*node));
        let near: NodeSet = if self.memory.boost > 0 {
            self.memory.nodes().iter().filter(is_near).collect()
        } else {
            let usable = self.names.get(program).map(|id| self.usable(*id)).unwrap_or_default();
            if usable.iter().all(|node| is_near(&node)) { usable } else { NodeSet::default() }
        };
        self.doubt_cached(&near);
    }

    /// Pages that a node may have beyond those of the model.
    fn surplus(&self, node: NodeId) -> u64 {
        let more = self.doubts.get(&node).map_or(0, |doubt| doubt.more);
        more.saturating_add(self.strangers(node))
    }

    /// Pages of programs on other nodes that may be on this one.
    fn strangers(&self, node: NodeId) -> u64 {
        let others = self.doubts.iter().filter(|(other, _)| **other != node);
        others.map(|(_, doubt)| doubt.astray).fold(0, u64::saturating_add)
    }

    /// Whether no page of a node is above its low watermarks.
    fn is_full(&self, node: NodeId) -> bool {
        self.memory.above_low_of(node) == 0
    }

    /// The doubts before a program takes pages; `None` where nothing can be uncertain.
    pub(super) fn before(&self, id: Id, policy: &Policy, is_cache: bool, step: &Step) -> Option<Before> {
        (is_cache || !self.doubts.is_empty()).then(|| Before {
            reach: self.reach(id, policy),
            doubts: self.doubts.clone(),
            misjudged: self.misjudged,
            step: step.counts(),
        })
    }

    /// Notes where pages that a program took may lie instead: on a node where they are looked for before, and which has room in the
    /// kernel. It has it where kswapd has freed ahead, and for page cache again and again where the watermarks of a full node are
    /// raised, which wakes kswapd without a request that finds nothing. Memory of programs had no such room in guests.
    pub(super) fn doubt_places(&mut self, before: &Before, is_cache: bool, step: &mut Step) {
        let Before { reach, doubts, .. } = before;
        let room_of = |node: NodeId| doubts.get(&node).copied().unwrap_or_default().room();
        // Room is used once.
        let made = doubts.values().map(|doubt| doubt.gone().saturating_add(doubt.astray));
        let made = made.fold(0, u64::saturating_add);
        let misjudged = if is_cache { before.misjudged } else { 0 };
        let mut woken = NodeSet::default();
        let taken = step.taken_since(&before.step);
        let all = taken.iter().map(|taken| taken.pages).fold(0, u64::saturating_add);
        for Taken { node, pages, dropped } in taken {
            // A node that is full stays so: where fewer pages come, fewer go.
            let pages = if is_cache { pages.saturating_sub(dropped) } else { pages };
            // As long as a node has room, pages of its own turns are on it. Memory of programs may have turns of huge pages.
            let own = if is_cache && !self.is_full(node) { reach.own(node, all) } else { 0 };
            let fallen = pages.saturating_sub(own);
            let first: NodeSet = reach.before(node).iter().filter(|other| self.is_full(*other)).collect();
            let raised = if is_cache && fallen > 0 { self.raised(&first) } else { NodeSet::default() };
            let room = if raised.is_empty() {
                first.iter().map(room_of).fold(0, u64::saturating_add).min(made).saturating_add(misjudged)
            } else {
                // Pages that come in take the place of those that go.
                u64::MAX
            };
            raised.iter().for_each(|other| step.raise(other, fallen));
            woken = woken.union(&raised);
            self.doubt_surplus((node, pages, dropped), reach, is_cache);
            let doubt = self.doubts.get(&node).copied().unwrap_or_default();
            let side = if is_cache { doubt.displaced } else { doubt.astray };
            let elsewhere = side.saturating_add(fallen).min(room).max(side);
            if elsewhere > side {
                self.room_used = self.room_used.saturating_add(elsewhere - side);
                let doubt = self.doubts.entry(node).or_default();
                *(if is_cache { &mut doubt.displaced } else { &mut doubt.astray }) = elsewhere;
            }
        }
        if reach.nodes.iter().all(|node| self.memory.above_low_of(node) < self.surplus(node)) {
            woken = woken.union(&reach.nodes);
        }
        self.doubt_cached(&woken);
    }

    /// Notes where pages of a node may lie instead, or stay, as it has less room in the kernel, or more: pages that are there beyond those
    /// of the model drive later ones to the next nodes, and pages of programs that are elsewhere save page cache that the model drops.
    fn doubt_surplus(&mut self, (node, pages, dropped): (NodeId, u64, u64), reach: &Reach, is_cache: bool) {
        let above = self.memory.above_low_of(node);
        let driven = self.surplus(node).saturating_sub(above).min(pages);
        let first = reach.before(node);
        let behind = |other: &NodeId| *other != node && !first.contains(*other);
        for other in reach.nodes.iter().filter(behind).filter(|_| driven > 0) {
            let doubt = self.doubts.entry(other).or_default();
            doubt.more = doubt.more.max(driven);
        }
        if let Some(doubt) = self.doubts.get_mut(&node) {
            doubt.more = doubt.more.max(doubt.astray.min(dropped));
        }
        let fewer = self.strangers(node).saturating_sub(above).min(pages);
        if is_cache && fewer > 0 && reach.nodes.len() > 1 {
            let doubt = self.doubts.entry(node).or_default();
            doubt.displaced = doubt.displaced.max(fewer);
        }
    }

    /// Those of some full nodes that have page cache and may have their watermarks raised. Whether memory is fragmented is not known.
    fn raised(&self, full: &NodeSet) -> NodeSet {
        if full.is_empty() || self.memory.boost == 0 {
            return NodeSet::default();
        }
        self.cached_pages().into_keys().filter(|node| full.contains(*node)).collect()
    }

    /// Pages of programs that may lie on other nodes, by node.
    pub fn astray(&self) -> BTreeMap<NodeId, u64> {
        let astray = self.doubts.iter().map(|(node, doubt)| (*node, doubt.astray));
        astray.filter(|(_, pages)| *pages > 0).collect()
    }

    /// Notes that page cache of a node may go in another order when this much is dropped: pages that were used again go last, or
    /// as if they had been read once (multi-generational lists).
    pub(super) fn doubt_ages(&mut self, node: NodeId, pages: u64) {
        let mut aged = if pages > 0 { self.aged(node) } else { Vec::new() };
        if aged.iter().all(|part| part.used == part.read) {
            return;
        }
        let by_use = dropped(&mut aged, pages, |part| part.used);
        let by_read = dropped(&mut aged, pages, |part| part.read);
        let beyond = by_use.iter().map(|(place, dropped)| dropped.saturating_sub(by_read[place]));
        self.misjudged = self.misjudged.saturating_add(beyond.sum());
    }

    /// The page cache of a node in parts of one age each.
    fn aged(&self, node: NodeId) -> Vec<Aged> {
        let on_node = |held: &Held| held.node() == Some(node);
        let mut aged = Vec::new();
        for (number, object) in self.cached.values().filter_map(|id| Some((*id, self.objects.get(id)?))) {
            for extent in object.extents.iter().filter(|extent| extent.run.count(on_node) > 0) {
                for (range, read) in object.read_in.pieces(extent.run.pages.clone()) {
                    aged.extend(object.dirty.pieces(range).into_iter().map(|(range, dirty)| Aged {
                        used: (dirty.is_some(), extent.since),
                        read: (dirty.is_some(), read.unwrap_or(extent.since)),
                        place: (number, range.start),
                        pages: object.count(&range, on_node),
                    }));
                }
            }
        }
        aged
    }

    /// Doubts that kswapds of some nodes have left what is cached there; gives the pages that each may free.
    fn doubt_cached(&mut self, nodes: &NodeSet) -> Vec<(NodeId, u64)> {
        if nodes.is_empty() {
            return Vec::new();
        }
        let cached = self.cached_pages();
        let cached: Vec<_> = cached.into_iter().filter(|(node, _)| nodes.contains(*node)).collect();
        if !cached.is_empty() {
            self.is_flushing |= self.memory.nodes().iter().any(|node| self.dirty_on(node) > 0);
        }
        let ahead = |(node, pages)| {
            let high = *self.memory.high_of(node).end();
            let ahead = high.saturating_mul(2).saturating_sub(self.memory.free_of(node)).min(pages);
            let doubt = self.doubts.entry(node).or_default();
            doubt.fewer = doubt.fewer.max(ahead);
            // As much may go once more as has come since.
            doubt.freed = doubt.freed.saturating_add(ahead.min(self.room_used - doubt.used)).max(doubt.fewer);
            doubt.used = self.room_used;
            (node, ahead)
        };
        cached.into_iter().map(ahead).collect()
    }

    /// Settles doubts where `drop_caches` has left these pages, which were not on the disk: some may have been written back before, or
    /// be on another node.
    pub(super) fn doubt_left(&mut self, left: &BTreeMap<NodeId, u64>) {
        let displaced =
            |(node, doubt): (&NodeId, &Doubt)| doubt.displaced.min(left.get(node).copied().unwrap_or(0));
        let elsewhere: u64 = self.doubts.iter().map(displaced).sum();
        for (node, doubt) in &mut self.doubts {
            let kept = if left.contains_key(node) { *doubt } else { Doubt::default() };
            *doubt = Doubt { astray: doubt.astray, used: self.room_used, ..kept };
        }
        for node in self.memory.nodes().iter().filter(|_| elsewhere > 0) {
            let doubt = self.doubts.entry(node).or_default();
            doubt.more = doubt.more.max(elsewhere);
        }
        self.doubts.retain(|_, doubt| doubt.room() > 0 || doubt.more > 0);
        if left.is_empty() {
            self.misjudged = 0;
        }
        for (node, pages) in left.iter().filter(|_| self.is_flushing) {
            let doubt = self.doubts.entry(*node).or_default();
            doubt.fewer = doubt.fewer.max(*pages);
        }
    }

    /// Notes that pages of a file which are used again may have been dropped, and come back now to another node. They take the room
    /// first that others have left on nodes where they are looked for before: no node behind has more for these, but for those
    /// whose room programs have taken. `pages` are those and the ones that come with them, as many as may fill a node.
    pub(super) fn doubt_again(&mut self, id: Id, used: u64, pages: u64) {
        if self.doubts.is_empty() && self.misjudged == 0 {
            return;
        }
        let reach = self.reach(id, self.in_force(id));
        let doubts = self.doubts.clone();
        let astray = doubts.values().map(|doubt| doubt.astray).fold(0, u64::saturating_add);
        for node in &reach.nodes {
            let first = reach.before(node);
            let is_filled = |other: NodeId| {
                other == node || reach.order().is_some() && self.memory.boost == 0 && first.contains(other)
            };
            let gone_of = |(other, doubt): (&NodeId, &Doubt)| {
                let most = if is_filled(*other) { astray } else { u64::MAX };
                doubt.gone().min(most)
            };
            let gone = doubts.iter().map(gone_of).fold(self.misjudged, u64::saturating_add);
            let used = self.reaching(&reach, node, used, pages);
            if gone > 0 && used > 0 {
                let doubt = self.doubts.entry(node).or_default();
                doubt.more = doubt.more.saturating_add(used).min(gone).max(doubt.more);
            }
        }
    }

    /// How many of some pages can come to a node: those of the turns in which each node before it is full, or would be with `pages` more.
    fn reaching(&self, reach: &Reach, node: NodeId, some: u64, pages: u64) -> u64 {
        let may_fill = |other: &NodeId| {
            let high = self.memory.high_of(*other);
            let raised = high.end() - high.start();
            let most = pages.saturating_add(self.surplus(*other)).saturating_add(raised);
            self.memory.above_low_of(*other) < most
        };
        let comes = |order: &[NodeId]| {
            order.contains(&node) && order.iter().take_while(|other| **other != node).all(may_fill)
        };
        let turns = reach.turns.iter().filter(|(_, order)| comes(order));
        // Whose turn is first is not known, neither of these pages nor of all.
        let share = |weight: u64| (some / reach.round()).saturating_mul(weight).saturating_add(3 * weight);
        turns.map(|(weight, _)| share(*weight)).fold(0, u64::saturating_add).min(some)
    }

    /// Notes that pages which were written may be on other nodes, where a node has as many that are not on the disk as it may have.
    pub(super) fn doubt_spread(&mut self, id: Id, step: &Step) {
        let usable = self.usable(id);
        let cached = self.cached_pages();
        let everywhere = self.memory.nodes();
        let dirty: u64 = everywhere.iter().map(|node| self.dirty_on(node)).sum();
        let dirtyable: u64 =
            everywhere.iter().map(|node| self.memory.free_of(node)).chain(cached.values().copied()).sum();
        self.is_flushing |=
            u128::from(dirty) * 100 > u128::from(dirtyable) * u128::from(DIRTY_BACKGROUND_RATIO);
        for (node, taken) in step.taken.iter().filter(|_| usable.len() > 1) {
            let dirtyable = self.memory.free_of(*node) + cached.get(node).copied().unwrap_or(0);
            let limit = u128::from(dirtyable) * u128::from(DIRTY_RATIO) / 100;
            let beyond = self.dirty_on(*node).saturating_sub(limit as u64).min(*taken);
            if beyond == 0 {
                continue;
            }
            for other in &usable {
                let doubt = self.doubts.entry(other).or_default();
                let side = if other == *node { &mut doubt.fewer } else { &mut doubt.more };
                *side = side.saturating_add(beyond);
            }
        }
    }

    /// Notes that pages which were written under an interleaving policy may be on any of its nodes: where files have larger pages, a
    /// turn is one of those, and other pages that a call takes between them have turns, too.
    pub(super) fn doubt_turns(&mut self, id: Id, step: &Step) {
        if !self.release.has(Change::LargerPagesOfFiles) {
            return;
        }
        let reach = self.reach(id, self.in_force(id));
        if reach.order().is_some() {
            return;
        }
        let all = step.taken.iter().map(|(_, pages)| *pages).fold(0, u64::saturating_add);
        let nodes = reach.nodes.iter().filter(|node| self.reaching(&reach, *node, all, all) > 0);
        for node in nodes.collect::<NodeSet>().iter() {
            let own = step.taken.iter().find(|(other, _)| *other == node).map_or(0, |(_, pages)| *pages);
            let doubt = self.doubts.entry(node).or_default();
            doubt.displaced = doubt.displaced.saturating_add(own);
            doubt.more = doubt.more.saturating_add(all - own);
        }
    }

    /// The nodes that requests of a program can use under a policy.
    pub(super) fn reach(&self, id: Id, policy: &Policy) -> Reach {
        let route = self.route_of(id, policy);
        Reach { nodes: route.out_of_memory(0).inside, turns: route.orders(&self.memory) }
    }

    /// Nodes on which a program's page cache may be.
    fn usable(&self, id: Id) -> NodeSet {
        self.end_of(id, self.in_force(id), 0).inside
    }
}

/// The pages of each part that go where this many go in an order.
fn dropped(aged: &mut [Aged], pages: u64, order: fn(&Aged) -> (bool, u64)) -> BTreeMap<(ObjectId, u64), u64> {
    aged.sort_by_key(|part| (order(part), part.place));
    let mut left = pages;
    let dropped = |part: &Aged| {
        let dropped = part.pages.min(left);
        left -= dropped;
        (part.place, dropped)
    };
    aged.iter().map(dropped).collect()
}
