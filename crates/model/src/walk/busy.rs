//! Nodes that are being reclaimed, which a newer kernel passes over: how far the order of nodes is exact.
//!
//! # Source
//! The first round of `get_page_from_freelist` in `mm/page_alloc.c`, since 6.18
//! ([`Change::BusyNodesPassedOver`](crate::release::Change::BusyNodesPassedOver)), and `wake_all_kswapds`, which comes before the first round at the
//! minimum watermark.

use nodewise_machine::NodeSet;

use super::Outcome;

/// From where on the order of nodes is not exact.
///
/// The model has no kswapd, so it passes over no one. A kernel that does passes over a node as long as its
/// kswapd runs, and others have pages: which pages these are depends on how fast kswapd is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BusyNodes {
    /// Pages of 4 KiB that were given before: up to there the order is exact.
    pub after: u64,
    /// The nodes whose kswapd is woken then.
    pub nodes: NodeSet,
}

impl BusyNodes {
    /// Computes what an outcome leaves open, where these nodes are woken when none of them is above its low
    /// watermark any more; `None` where no page comes after that.
    pub(super) fn from_outcome(outcome: &Outcome, woken: &NodeSet) -> Option<Self> {
        let after = outcome.above_low()?;
        Some(Self { after, nodes: woken.clone() })
    }
}
