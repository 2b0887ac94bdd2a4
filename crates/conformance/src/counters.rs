//! Counters of the nodes while pages are given, beside those of the model.

use std::collections::BTreeMap;

use nodewise_machine::{NodeCounters, NodeId};

use crate::difference::{Aspect, Difference, Trouble};
use crate::kernel;

/// Pages that the kernel and other programs may take while pages of a program are given: page tables, one for 512
/// of them, what the files of the counters need, a daemon that wakes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Background {
    pages: u64,
    /// Those of them that come from another node than the one that they were wanted from.
    misses: u64,
    /// Those of them that take turns of the task's policy: page tables, and memory of the kernel for its calls.
    turns: u64,
}

impl Background {
    /// Where all nodes have room and may be used: nearly all pages are where they are wanted.
    pub fn with_room(pages: u64) -> Self {
        let pages = 400 + pages / 256;
        Self { pages, misses: 16, turns: pages }
    }

    /// The same of a task whose own policy does not interleave: no page of the kernel takes turns, only those that the
    /// program touches.
    #[must_use]
    pub fn without_turns(self) -> Self {
        Self { turns: 0, ..self }
    }

    /// The most that a counter gains beside what the model says.
    pub fn room(self, name: &str) -> u64 {
        match name {
            "numa_miss" | "numa_foreign" => self.misses,
            "interleave_hit" => self.turns,
            _ => self.pages,
        }
    }

    /// Where a node is full that the kernel wants pages of for itself.
    pub fn beside_a_full_node(pages: u64) -> Self {
        let room = Self::with_room(pages);
        Self { misses: room.pages, ..room }
    }
}

/// Reads a counter.
pub type Field = fn(&NodeCounters) -> u64;

/// Counters of a node, by the kernel's names.
pub const FIELDS: [(&str, Field); 6] = [
    ("numa_hit", |counters| counters.hit),
    ("numa_miss", |counters| counters.miss),
    ("numa_foreign", |counters| counters.foreign),
    ("interleave_hit", |counters| counters.interleave_hit),
    ("local_node", |counters| counters.local),
    ("other_node", |counters| counters.other),
];

/// The counts of the nodes from one moment to another.
pub struct Gained {
    before: BTreeMap<u32, NodeCounters>,
    after: BTreeMap<u32, NodeCounters>,
}

impl Gained {
    /// While something is done.
    pub fn while_doing<T>(what: impl FnOnce() -> T) -> (T, Self) {
        let before = kernel::numastat();
        let done = what();
        (done, Self { before, after: kernel::numastat() })
    }

    fn of(&self, node: NodeId, field: Field) -> u64 {
        let read = |counters: &BTreeMap<u32, NodeCounters>| {
            counters.get(&node.number()).map(field).unwrap_or_default()
        };
        read(&self.after) - read(&self.before)
    }

    /// Fails unless every counter of every node gained what the model says, or little more for what the
    /// kernel took for itself.
    ///
    /// # Errors
    /// The first counter that differs.
    pub fn compare(&self, ours: &Counted, background: Background) -> Result<(), Trouble> {
        for node in self.before.keys().map(|node| NodeId::new(*node)) {
            let expected = ours.get(&node).copied().unwrap_or_default();
            for (name, field) in FIELDS {
                let (ours, kernels, more) = (field(&expected), self.of(node, field), background.room(name));
                if !(ours..=ours + more).contains(&kernels) {
                    return Err(Trouble::Differs(Difference {
                        aspect: Aspect::Counters,
                        what: format!("{name} of node {node}, gained"),
                        kernel: kernels.to_string(),
                        model: format!("{ours}, and {more} more at most"),
                    }));
                }
            }
        }
        Ok(())
    }
}

/// The counts of the model, by node.
pub type Counted = BTreeMap<NodeId, NodeCounters>;

/// Computes the counts of the model since another time.
pub fn since(now: &Counted, before: &Counted) -> Counted {
    let gained = |(node, now): (&NodeId, &NodeCounters)| {
        let before = before.get(node).copied().unwrap_or_default();
        (*node, now.since(before))
    };
    now.iter().map(gained).collect()
}
