//! One node's turn in a walk: the zones it can still take pages from.

use nodewise_machine::{NodeId, NodeSet};

use super::{Class, Mark};
use crate::memory::{Memory, ZoneState};

/// A zone on a way.
#[derive(Clone, Copy)]
pub(super) struct Stop {
    /// Its index.
    pub(super) zone: usize,
    /// Whether the zone is reclaimed before the next is tried.
    pub(super) reclaims: bool,
}

/// The pages that zones can give.
#[derive(Clone, Copy)]
pub(super) struct Stock<'a> {
    zones: &'a [ZoneState],
    spare: &'a [u64],
    order: u32,
    class: Class,
}

impl<'a> Stock<'a> {
    pub(super) fn new(memory: &'a Memory, order: u32, class: Class) -> Self {
        Self { zones: &memory.zones, spare: &memory.spare, order, class }
    }

    /// How many pages a zone gives before it is at a mark: while there are more free pages, but for the
    /// rest of the block, than the mark and the reserve.
    ///
    /// # Source
    /// `__zone_watermark_ok`. That free pages lie together is assumed for higher orders; of reclaimed
    /// pages it is assumed that they do not.
    pub(super) fn available(self, stop: Stop, mark: Mark) -> u64 {
        let zone = &self.zones[stop.zone];
        let spare = self.spare.get(stop.zone).filter(|_| stop.reclaims && self.order == 0);
        let free = zone.free.saturating_add(spare.copied().unwrap_or(0));
        let others = (1u64 << self.order) - 1;
        free.saturating_sub(kept(zone, mark, self.class).saturating_add(others)).div_ceil(1 << self.order)
    }
}

/// Pages that a zone keeps at a mark from requests of a class.
pub(super) fn kept(zone: &ZoneState, mark: Mark, class: Class) -> u64 {
    let mark = match mark {
        Mark::Low => zone.marks.low,
        Mark::Min => zone.marks.min,
    };
    zone.kept(mark, class.highest())
}

/// A round through some zones.
pub(super) struct ZonePass {
    /// The zones, in the order in which they are tried.
    pub(super) stops: Vec<Stop>,
    /// The watermark that a zone has to pass.
    pub(super) mark: Mark,
    /// The node that the kernel counts as wanted.
    pub(super) preferred: Option<NodeId>,
}

/// A node's turn; for policies that do not interleave, the only one.
pub(super) struct Turn {
    /// The node whose turn it is.
    pub(super) node: NodeId,
    /// Pages per round.
    pub(super) weight: u64,
    ways: Vec<ZonePass>,
    /// The way and the zone it has come to. Pages are only taken in a walk, so it goes
    /// forward only.
    at: (usize, usize),
}

impl Turn {
    pub(super) const fn new(node: NodeId, weight: u64, ways: Vec<ZonePass>) -> Self {
        Self { node, weight, ways, at: (0, 0) }
    }

    /// The zones of all its ways.
    pub(super) fn stops(&self) -> impl Iterator<Item = usize> + '_ {
        self.ways.iter().flat_map(|way| &way.stops).map(|stop| stop.zone)
    }

    /// The nodes of its first round.
    pub(super) fn first_round(&self, zones: &[ZoneState]) -> NodeSet {
        let stops = self.ways.first().into_iter().flat_map(|way| &way.stops);
        stops.map(|stop| zones[stop.zone].node).collect()
    }

    /// Goes back to the first zone, for another walk.
    pub(super) const fn restart(&mut self) {
        self.at = (0, 0);
    }

    /// The zone it has come to, with its mark and the node that is wanted; `None` at the end.
    pub(super) fn target(&self) -> Option<(Stop, Mark, Option<NodeId>)> {
        let way = self.ways.get(self.at.0)?;
        way.stops.get(self.at.1).map(|stop| (*stop, way.mark, way.preferred))
    }

    /// Goes on to the first zone that can give a page, from where it is or from the beginning `again`.
    pub(super) fn look(&mut self, stock: Stock<'_>, again: bool) {
        if again {
            self.restart();
        }
        while self.at.0 < self.ways.len() && self.available(stock) == 0 {
            self.at = if self.target().is_some() { (self.at.0, self.at.1 + 1) } else { (self.at.0 + 1, 0) };
        }
    }

    /// Pages that the zone it has come to can give.
    pub(super) fn available(&self, stock: Stock<'_>) -> u64 {
        self.target().map_or(0, |(stop, mark, _)| stock.available(stop, mark))
    }
}

/// How many rounds all turns can go before any zone is at its mark.
pub(super) fn whole_rounds(turns: &[Turn], stock: Stock<'_>) -> u64 {
    // Several turns may have come to one zone, where a full node falls back to the next: it has to last for all.
    let mut wanted = vec![0u64; stock.zones.len()];
    for turn in turns {
        let Some((stop, ..)) = turn.target() else { return 0 };
        wanted[stop.zone] += turn.weight;
    }
    let rounds = |turn: &Turn| {
        let (stop, ..) = turn.target()?;
        turn.available(stock).checked_div(wanted[stop.zone])
    };
    turns.iter().filter_map(rounds).min().unwrap_or(0)
}

/// Whether a zone is to be reclaimed that would have pages for other turns then: whose turn it is decides from
/// page to page.
pub(super) fn is_mixed(turns: &[Turn], stock: Stock<'_>) -> bool {
    let targets = || turns.iter().filter_map(Turn::target).map(|(stop, mark, _)| (stop, mark));
    let spare = |zone: usize| stock.spare.get(zone).is_some_and(|pages| *pages > 0);
    let mut reclaimed = targets().filter(|(stop, _)| stop.reclaims && spare(stop.zone));
    reclaimed.any(|(stop, mark)| {
        let zone = &stock.zones[stop.zone];
        let differs = |(other, its): (Stop, Mark)| {
            other.zone == stop.zone && (other.reclaims, its) != (stop.reclaims, mark)
        };
        zone.free < kept(zone, mark, stock.class) || targets().any(differs)
    })
}
