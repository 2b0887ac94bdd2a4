//! One node's turn in a walk: the zones it can still take pages from.

use nodewise_machine::NodeId;

use super::{Class, Mark};
use crate::memory::ZoneState;

/// A round through some zones.
pub(super) struct Way {
    /// Indices of zones, in the order in which they are tried.
    pub(super) zones: Vec<usize>,
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
    ways: Vec<Way>,
    /// The way and the zone it has come to. Pages are only taken in a walk, so it goes
    /// forward only.
    at: (usize, usize),
}

impl Turn {
    pub(super) const fn new(node: NodeId, weight: u64, ways: Vec<Way>) -> Self {
        Self { node, weight, ways, at: (0, 0) }
    }

    /// Goes back to the first zone, for another walk.
    pub(super) const fn restart(&mut self) {
        self.at = (0, 0);
    }

    /// The zone it has come to, with its mark and the node that is wanted; `None` at the end.
    pub(super) fn target(&self) -> Option<(usize, Mark, Option<NodeId>)> {
        let way = self.ways.get(self.at.0)?;
        way.zones.get(self.at.1).map(|zone| (*zone, way.mark, way.preferred))
    }

    /// Goes on to the first zone that can give a page.
    pub(super) fn advance(&mut self, zones: &[ZoneState], order: u32, class: Class) {
        while self.at.0 < self.ways.len() && self.available(zones, order, class) == 0 {
            self.at = if self.target().is_some() { (self.at.0, self.at.1 + 1) } else { (self.at.0 + 1, 0) };
        }
    }

    /// Pages that the zone it has come to can give.
    pub(super) fn available(&self, zones: &[ZoneState], order: u32, class: Class) -> u64 {
        self.target().map_or(0, |(zone, mark, _)| available(&zones[zone], mark, order, class))
    }
}

/// How many pages of an order a zone gives before it is at a mark: while there are more free pages,
/// but for the rest of the block, than the mark and the reserve.
///
/// # Source
/// `__zone_watermark_ok`. That free pages lie together is assumed for higher orders.
fn available(zone: &ZoneState, mark: Mark, order: u32, class: Class) -> u64 {
    let mark = match mark {
        Mark::Low => zone.marks.low,
        Mark::Min => zone.marks.min,
    };
    let kept = mark.saturating_add(zone.reserves[class.highest() as usize]);
    let others = (1u64 << order) - 1;
    zone.free.saturating_sub(kept.saturating_add(others)).div_ceil(1 << order)
}

/// How many rounds all turns can go before any zone is at its mark.
pub(super) fn whole_rounds(turns: &[Turn], zones: &[ZoneState], order: u32, class: Class) -> u64 {
    let mut wanted = vec![0u64; zones.len()];
    for turn in turns {
        let Some((zone, ..)) = turn.target() else { return 0 };
        wanted[zone] += turn.weight;
    }
    let rounds = |turn: &Turn| {
        let (zone, ..) = turn.target()?;
        turn.available(zones, order, class).checked_div(wanted[zone])
    };
    turns.iter().filter_map(rounds).min().unwrap_or(0)
}
