//! Limits of what may still be moved: bytes of the budget, and room on the nodes.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use nodewise_machine::{Bytes, NodeId};
use nodewise_source::sample::Identity;

use super::limits::Limits;
use crate::situation::{NodeState, Situation};

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Bytes that moved, or are about to.
#[derive(Clone, Debug, Default)]
pub(super) struct Spent {
    moves: VecDeque<(Duration, Identity, Bytes)>,
}

impl Spent {
    pub(super) fn add(&mut self, now: Duration, identity: Identity, size: Bytes) {
        self.moves.push_back((now, identity, size));
        // A day is the longest time that anything is counted over.
        while self.moves.front().is_some_and(|(at, ..)| now.saturating_sub(*at) >= DAY) {
            self.moves.pop_front();
        }
    }

    /// Takes back what was reserved for a process at a moment and not used.
    pub(super) fn correct(&mut self, since: Duration, identity: Identity, moved: Bytes, now: Duration) {
        let mut all = self.moves.iter_mut().rev();
        if let Some(entry) = all.find(|(at, of, _)| *at == since && *of == identity) {
            // They count from when they are known to have moved: an action can take longer than an hour.
            (entry.0, entry.2) = (now, moved);
        }
    }

    fn sum(&self, now: Duration, within: Duration, identity: Option<Identity>) -> Bytes {
        let counts = |(at, of, _): &&(Duration, Identity, Bytes)| {
            now.saturating_sub(*at) < within && identity.is_none_or(|identity| identity == *of)
        };
        self.moves.iter().filter(counts).map(|(.., size)| *size).sum()
    }

    /// Bytes that the hour leaves.
    pub(super) fn left_of_hour(&self, now: Duration, limits: &Limits) -> Bytes {
        Bytes::new(limits.per_hour.get().saturating_sub(self.sum(now, HOUR, None).get()))
    }

    /// Bytes that the day leaves to a process of a size.
    pub(super) fn left_of_day(
        &self,
        now: Duration,
        identity: Identity,
        size: Bytes,
        limits: &Limits,
    ) -> Bytes {
        let all = Bytes::new((size.get() as f64 * limits.per_day) as u64);
        Bytes::new(all.get().saturating_sub(self.sum(now, DAY, Some(identity)).get()))
    }
}

/// Bytes that a node can take, so that it keeps free and available memory. Without swap nothing but caches can leave it,
/// so what is to stay available has to be free.
pub fn room(
    size: Bytes,
    free: Bytes,
    available: Bytes,
    high: Bytes,
    has_swap: bool,
    limits: &Limits,
) -> Bytes {
    let keep_available = size.get() as f64 * limits.keep_available;
    let keep_free = high.get() as f64 * limits.keep_high;
    let keep_free = if has_swap { keep_free } else { keep_free.max(keep_available) };
    let free = (free.get() as f64 - keep_free).max(0.0);
    let available = (available.get() as f64 - keep_available).max(0.0);
    Bytes::new(free.min(available) as u64)
}

/// Room on the nodes and time of their CPUs, as the actions of one plan take it.
pub(super) struct Room {
    nodes: BTreeMap<NodeId, NodeState>,
    taken: BTreeMap<NodeId, Bytes>,
    /// In CPUs.
    taken_time: BTreeMap<NodeId, f64>,
    has_swap: bool,
}

impl Room {
    pub(super) fn new(situation: &Situation<'_>, has_swap: bool) -> Self {
        Self { nodes: situation.nodes.clone(), taken: BTreeMap::new(), taken_time: BTreeMap::new(), has_swap }
    }

    /// Bytes that a node can take; `None` where its watermark or its available memory is not known.
    pub(super) fn left(&self, node: NodeId, limits: &Limits) -> Option<Bytes> {
        let state = self.nodes.get(&node)?;
        let left = room(state.size, state.free, state.available?, state.high?, self.has_swap, limits);
        let taken = self.taken.get(&node).copied().unwrap_or_default();
        Some(Bytes::new(left.get().saturating_sub(taken.get())))
    }

    /// Time of a node's CPUs that earlier actions of the plan take, in CPUs.
    pub(super) fn taken_time(&self, node: NodeId) -> f64 {
        self.taken_time.get(&node).copied().unwrap_or(0.0)
    }

    pub(super) fn take(&mut self, node: NodeId, size: Bytes) {
        *self.taken.entry(node).or_default() += size;
    }

    /// Takes time of a node's CPUs. What threads leave on other nodes is not given back before it is seen.
    pub(super) fn take_time(&mut self, node: NodeId, cpus: f64) {
        *self.taken_time.entry(node).or_default() += cpus;
    }
}
