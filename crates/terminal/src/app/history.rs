//! The free memory of nodes in the last readings.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use nodewise_machine::NodeId;
use nodewise_view::digest::running::Running;

/// Readings that are kept.
pub(crate) const MOST: usize = 15;

/// Shares of free memory by node, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    /// The wall clock at the last reading.
    last: Duration,
    free: BTreeMap<NodeId, VecDeque<Option<f64>>>,
}

impl History {
    /// Adds a reading. A step back in a recording clears those before.
    pub(crate) fn add(&mut self, running: &Running) {
        let now = running.moment.wall;
        let mut before = std::mem::take(&mut self.free);
        if now <= self.last {
            before.clear();
        }
        self.last = now;
        for row in &running.nodes {
            let mut shares = before.remove(&row.node).unwrap_or_default();
            let memory = row.memory.filter(|memory| memory.total.get() > 0);
            shares.push_back(memory.map(|memory| memory.free.get() as f64 / memory.total.get() as f64));
            if shares.len() > MOST {
                shares.pop_front();
            }
            self.free.insert(row.node, shares);
        }
    }

    pub(crate) fn free(&self, node: NodeId) -> impl Iterator<Item = Option<f64>> {
        self.free.get(&node).into_iter().flatten().copied()
    }
}
