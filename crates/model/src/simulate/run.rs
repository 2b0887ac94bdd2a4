//! Pages of a program one after the other, and where they are.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use nodewise_machine::NodeId;
use nodewise_machine::order::CollectOrdered as _;

use super::cycle::Cycle;
use crate::policy::interleave::Turns;
use crate::walk::Stretch;
use crate::zones::ZoneKind;

/// Where a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum At {
    Zone(NodeId, ZoneKind),
    Swap,
}

/// A page that was touched: where it is, and in pages of which order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Held {
    pub at: At,
    pub order: u32,
}

impl Held {
    pub const SWAPPED: Self = Self { at: At::Swap, order: 0 };

    /// Pages of a zone, in blocks of an order.
    pub const fn zone(node: NodeId, kind: ZoneKind, order: u32) -> Self {
        Self { at: At::Zone(node, kind), order }
    }

    /// Its node; `None` on a disk.
    pub const fn node(self) -> Option<NodeId> {
        match self.at {
            At::Zone(node, _) => Some(node),
            At::Swap => None,
        }
    }
}

/// Pages with the places they are to have, first come first served.
pub(super) type Queue = VecDeque<(u64, Held)>;

/// Pages one after the other. Numbers count pages of 4 KiB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub pages: Range<u64>,
    pub held: Cycle<Held>,
}

impl Run {
    /// How many of its pages are such.
    pub fn count(&self, is: impl Fn(&Held) -> bool) -> u64 {
        self.held.count(&self.pages, is)
    }

    /// Its pages by where they are.
    pub fn counts(&self) -> BTreeMap<Held, u64> {
        self.places().collect_map()
    }

    /// The same in the order in which they first come up.
    pub fn places(&self) -> impl Iterator<Item = (Held, u64)> + '_ {
        let pages = |held: &Held| self.count(|own| own == held);
        self.held.values().map(move |held| (*held, pages(held))).filter(|(_, pages)| *pages > 0)
    }

    /// The same pages in two runs, cut before a page inside.
    pub fn cut(&mut self, page: u64) -> Self {
        let right = Self { pages: page..self.pages.end, held: self.held.clone() };
        self.pages.end = page;
        right
    }

    /// The runs that the stretches of a request are, from a page on.
    ///
    /// While each node takes what falls to it, a page's number says where it is. Where the turns of several
    /// full nodes fell to several others, only how many went where is known: these pages are taken to lie
    /// node by node.
    pub fn laid(mut first: u64, stretches: &[Stretch], turns: &Turns) -> Vec<Self> {
        let mut runs = Vec::new();
        for stretch in stretches {
            let mut sums: Vec<(Held, u64)> = Vec::new();
            for share in &stretch.shares {
                let (held, pages) =
                    (Held::zone(share.node, share.kind, stretch.order), share.pages << stretch.order);
                match sums.iter_mut().find(|(own, _)| *own == held) {
                    Some((_, sum)) => *sum += pages,
                    None => sums.push((held, pages)),
                }
            }
            let all: u64 = sums.iter().map(|(_, pages)| pages).sum();
            match in_turns(&(first..first + all), &sums, turns, stretch.order) {
                Some(held) => {
                    runs.push(Self { pages: first..first + all, held });
                    first += all;
                }
                None => {
                    for (held, pages) in sums {
                        runs.push(Self { pages: first..first + pages, held: Cycle::one(held) });
                        first += pages;
                    }
                }
            }
        }
        runs
    }

    /// The same pages node by node: what is left to say where the rounds of a run and those of its
    /// policy make too long a round together.
    pub fn sorted(&self) -> Vec<Self> {
        let mut first = self.pages.start;
        let mut run = |(held, pages): (Held, u64)| {
            first += pages;
            Self { pages: first - pages..first, held: Cycle::one(held) }
        };
        self.counts().into_iter().map(&mut run).collect()
    }

    /// Gives pages other places. `class` says from which queue a page has its place, if from any; when a queue
    /// is at its end the pages behind stay where they are.
    pub fn settled<T: Clone + PartialEq>(
        pages: Range<u64>,
        cycle: &Cycle<T>,
        class: impl Fn(&T) -> Option<usize>,
        held: impl Fn(&T) -> Held,
        queues: &mut [Queue],
    ) -> Vec<Self> {
        let mut runs: Vec<Self> = Vec::new();
        let mut first = pages.start;
        while first < pages.end {
            let mut end = pages.end;
            for (at, queue) in queues.iter_mut().enumerate() {
                while queue.front().is_some_and(|(left, _)| *left == 0) {
                    queue.pop_front();
                }
                let Some((left, _)) = queue.front() else { continue };
                let is = |value: &T| class(value) == Some(at);
                let next = cycle.find(cycle.before(first, is).saturating_add(*left), is);
                end = end.min(next.unwrap_or(end));
            }
            let place = |value: &T| {
                let queued = class(value).and_then(|at| queues.get(at)?.front());
                queued.map_or_else(|| held(value), |(_, place)| *place)
            };
            let now = cycle.map(place);
            for (at, queue) in queues.iter_mut().enumerate() {
                if let Some((left, _)) = queue.front_mut() {
                    *left -= cycle.count(&(first..end), |value| class(value) == Some(at));
                }
            }
            match runs.last_mut().filter(|last| last.held == now) {
                Some(last) => last.pages.end = end,
                None => runs.push(Self { pages: first..end, held: now }),
            }
            first = end;
        }
        runs
    }
}

/// The cycle of turns, each in pages of an order.
pub(super) fn cycle_of(turns: &Turns, order: u32) -> Option<Cycle<NodeId>> {
    Cycle::from_values(turns.nodes().iter().map(|(node, weight)| (weight << order, *node)))
}

/// Where the pages of a stretch are if turns have given them; `None` where that does not come to the sums.
fn in_turns(pages: &Range<u64>, sums: &[(Held, u64)], turns: &Turns, order: u32) -> Option<Cycle<Held>> {
    if let [(held, _)] = sums {
        return Some(Cycle::one(*held));
    }
    let cycle = cycle_of(turns, order)?;
    // Turns whose node has given nothing fell to others: what these gave beyond their own turns. Zones are in
    // the order in which the turns came to them.
    let count = |node: NodeId| cycle.count(pages, |turn| *turn == node);
    let mut beyond: Vec<(Held, u64)> = Vec::with_capacity(sums.len());
    let mut places: BTreeMap<NodeId, Held> = BTreeMap::new();
    for (held, sum) in sums {
        let node = held.node()?;
        let own = if places.contains_key(&node) { 0 } else { count(node) };
        places.entry(node).or_insert(*held);
        beyond.push((*held, sum.saturating_sub(own)));
    }
    for node in came_up(pages, turns, order) {
        if let std::collections::btree_map::Entry::Vacant(place) = places.entry(node) {
            let wanted = count(node);
            let (held, left) = beyond.iter_mut().find(|(_, left)| *left >= wanted)?;
            *left -= wanted;
            place.insert(*held);
        }
    }
    let laid = cycle.map(|node| places.get(node).copied().unwrap_or(sums[0].0));
    let agrees = |(held, sum): &(Held, u64)| laid.count(pages, |own| own == held) == *sum;
    sums.iter().all(agrees).then_some(laid)
}

/// The nodes in the order in which their turns come up: from the lowest on where there is a whole round, else
/// from that of the first page on.
fn came_up(pages: &Range<u64>, turns: &Turns, order: u32) -> Vec<NodeId> {
    let nodes = turns.nodes().iter().map(|(node, _)| *node);
    let is_round = (pages.end - pages.start) >> order >= turns.round();
    let first = if is_round { 0 } else { turns.place(pages.start >> order).map_or(0, |(at, _)| at) };
    nodes.clone().skip(first).chain(nodes.take(first)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::{NodeSet, PolicyMode};
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    const fn on(node: u32) -> Held {
        Held::zone(NodeId::new(node), ZoneKind::Normal, 0)
    }

    #[test]
    fn pages_beyond_the_queue_stay() {
        let cycle = Cycle::from_values([(1, on(0)), (1, on(1))]).unwrap();
        let mut queues = [Queue::from([(2, on(2)), (1, on(3))])];
        let class = |held: &Held| (held.node() == Some(NodeId::new(1))).then_some(0);
        let runs = Run::settled(10..30, &cycle, class, |held| *held, &mut queues);
        let nodes = |run: &Run| {
            run.counts()
                .into_iter()
                .map(|(held, pages)| (held.node().unwrap().number(), pages))
                .collect::<Vec<_>>()
        };
        assert_eq!(runs[0].pages, 10..15);
        let all: Vec<_> = runs.iter().map(nodes).collect();
        assert_eq!(all, [vec![(0, 3), (2, 2)], vec![(0, 1), (3, 1)], vec![(0, 6), (1, 7)]]);
    }

    proptest! {
        #[test]
        fn every_page_has_a_place_and_every_queue_is_kept(
            slots in proptest::collection::vec((1u64..4, 0u32..4), 1..5),
            queued in proptest::collection::vec(proptest::collection::vec((0u64..9, 4u32..8), 0..4), 2),
            first in 0u64..20, length in 1u64..60,
        ) {
            let cycle = Cycle::from_values(slots.into_iter().map(|(pages, node)| (pages, on(node)))).unwrap();
            let mut queues: Vec<Queue> = queued.iter().map(|queue| queue.iter().map(|(pages, node)| (*pages, on(*node))).collect()).collect();
            let class = |held: &Held| held.node().map(NodeId::number).filter(|node| *node < 2).map(|node| node as usize);
            let pages = first..first + length;
            let classed: Vec<u64> = [0, 1].map(|at| cycle.count(&pages, |held| class(held) == Some(at))).to_vec();
            let runs = Run::settled(pages, &cycle, class, |held| *held, &mut queues);
            prop_assert_eq!(runs.iter().map(|run| run.pages.end - run.pages.start).sum::<u64>(), length);
            prop_assert!(runs.windows(2).all(|pair| pair[0].pages.end == pair[1].pages.start));
            for (at, queue) in queued.iter().enumerate() {
                let wanted: u64 = queue.iter().map(|(pages, _)| pages).sum();
                let left: u64 = queues[at].iter().map(|(pages, _)| pages).sum();
                prop_assert_eq!(wanted - left, wanted.min(classed[at]));
            }
        }

        #[test]
        fn sorted_runs_have_the_same_pages(slots in proptest::collection::vec((1u64..4, 0u32..4), 1..5), first in 0u64..20, length in 0u64..60) {
            let cycle = Cycle::from_values(slots.into_iter().map(|(pages, node)| (pages, on(node)))).unwrap();
            let run = Run { pages: first..first + length, held: cycle };
            let mut counts = BTreeMap::new();
            for (held, pages) in run.sorted().iter().flat_map(Run::counts) {
                *counts.entry(held).or_insert(0) += pages;
            }
            prop_assert_eq!(counts, run.counts());
        }
    }

    #[test]
    fn a_full_nodes_turns_are_those_of_the_zone_that_gave_more() {
        let turns = Turns::new(PolicyMode::Interleave, &NodeSet::from([0, 1, 2]), &BTreeMap::new());
        let cycle = in_turns(&(0..9), &[(on(0), 6), (on(2), 3)], &turns, 0).unwrap();
        assert_eq!(cycle.count(&(0..3), |held| *held == on(0)), 2);
        assert_eq!(in_turns(&(0..9), &[(on(0), 7), (on(2), 2)], &turns, 0), None);
    }
}
