//! Setting pools: write, read back, compact, and write again.

use nodewise_machine::order::Order as _;
use nodewise_machine::{Bytes, NodeId};
use nodewise_view::digest::hugepages::PoolChange;

/// How often a value is written again after the memory of the node was compacted.
const RETRIES: u32 = 3;

/// The pools of one size, as a change of them sees them.
pub trait Pools {
    /// Pages in the pool of a node.
    ///
    /// # Errors
    /// Why that cannot be read.
    fn read(&mut self, node: NodeId) -> Result<u64, String>;
    /// Asks for this many pages; fewer may come.
    ///
    /// # Errors
    /// Why the kernel refuses.
    fn write(&mut self, node: NodeId, pages: u64) -> Result<(), String>;
    /// Compacts the memory of a node.
    ///
    /// # Errors
    /// Why the kernel refuses.
    fn compact(&mut self, node: NodeId) -> Result<(), String>;
    /// The largest free block of a node.
    fn largest_free(&mut self, node: NodeId) -> Option<Bytes>;
}

/// A pool with the pages that it has, and those that it is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wish {
    pub node: NodeId,
    pub before: u64,
    pub asked: u64,
}

impl Wish {
    /// The change of a pool that was not written.
    pub fn untouched(&self) -> PoolChange {
        PoolChange {
            node: self.node,
            before: self.before,
            asked: self.asked,
            tries: Vec::new(),
            compactions: 0,
            refused: None,
            largest_free: None,
        }
    }
}

/// Sets pools in order, those that shrink first: the memory that they free may be what others need.
pub fn set(pools: &mut impl Pools, wishes: &[Wish]) -> Vec<PoolChange> {
    let (shrinking, growing): (Vec<Wish>, Vec<Wish>) =
        wishes.iter().partition(|wish| wish.asked < wish.before);
    let mut changes: Vec<PoolChange> =
        shrinking.into_iter().chain(growing).map(|wish| set_one(pools, wish)).collect();
    changes.order_by_key(|change| change.node);
    changes
}

fn set_one(pools: &mut impl Pools, wish: Wish) -> PoolChange {
    let Wish { node, before, asked } = wish;
    let mut change = wish.untouched();
    if before == asked {
        return change;
    }
    loop {
        let written = pools.write(node, asked);
        // A write that fails may have changed something too.
        match pools.read(node) {
            Ok(got) => change.tries.push(got),
            Err(why) => change.refused = Some(why),
        }
        if let Err(why) = written {
            change.refused = Some(why);
        }
        let gained = match change.tries.as_slice() {
            [.., before, now] => now > before,
            _ => true,
        };
        let is_short = change.after() < asked;
        if !is_short || !gained || change.refused.is_some() || change.compactions == RETRIES {
            break;
        }
        if let Err(why) = pools.compact(node) {
            change.refused = Some(why);
            break;
        }
        change.compactions += 1;
    }
    if change.after() < asked {
        change.largest_free = pools.largest_free(node);
    }
    change
}

/// Writes back the values from before, the last first.
///
/// # Errors
/// The first that could not be written; the others are written anyway.
pub fn give_back(pools: &mut impl Pools, changes: &[PoolChange]) -> Result<(), String> {
    let changed = changes.iter().rev().filter(|change| !change.tries.is_empty());
    let results: Vec<Result<(), String>> =
        changed.map(|change| pools.write(change.node, change.before)).collect();
    results.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Nodes with room for this number of pages, and gain some with each compaction.
    #[derive(Default)]
    struct Synthetic {
        pages: BTreeMap<NodeId, u64>,
        room: BTreeMap<NodeId, u64>,
        /// Pages that become possible with each compaction of a node.
        gains: BTreeMap<NodeId, Vec<u64>>,
        calls: Vec<String>,
        refuses: Option<NodeId>,
        no_compaction: bool,
    }

    impl Pools for Synthetic {
        fn read(&mut self, node: NodeId) -> Result<u64, String> {
            Ok(self.pages.get(&node).copied().unwrap_or(0))
        }

        fn write(&mut self, node: NodeId, pages: u64) -> Result<(), String> {
            self.calls.push(format!("{node}={pages}"));
            if self.refuses == Some(node) {
                return Err("permission denied".to_owned());
            }
            let room = self.room.get(&node).copied().unwrap_or(0);
            self.pages.insert(node, pages.min(room));
            Ok(())
        }

        fn compact(&mut self, node: NodeId) -> Result<(), String> {
            self.calls.push(format!("compact {node}"));
            if self.no_compaction {
                return Err("this kernel has no compaction".to_owned());
            }
            let gains = self.gains.entry(node).or_default();
            if !gains.is_empty() {
                *self.room.entry(node).or_default() += gains.remove(0);
            }
            Ok(())
        }

        fn largest_free(&mut self, _: NodeId) -> Option<Bytes> {
            Some(Bytes::MIB)
        }
    }

    fn n(number: u32) -> NodeId {
        NodeId::new(number)
    }

    fn wish(node: u32, before: u64, asked: u64) -> Wish {
        Wish { node: n(node), before, asked }
    }

    fn check(pools: &mut Synthetic, wishes: &[Wish], expected: &[(&[u64], u32)], calls: &[&str]) {
        for wish in wishes {
            pools.pages.insert(wish.node, wish.before);
        }
        let changes = set(pools, wishes);
        let found: Vec<(&[u64], u32)> =
            changes.iter().map(|change| (change.tries.as_slice(), change.compactions)).collect();
        assert_eq!(found, expected);
        assert_eq!(pools.calls, calls);
    }

    #[test]
    fn a_pool_that_gets_all_is_written_once() {
        let mut pools = Synthetic { room: [(n(0), 900)].into(), ..Synthetic::default() };
        check(&mut pools, &[wish(0, 0, 400), wish(1, 7, 7)], &[(&[400], 0), (&[], 0)], &["0=400"]);
    }

    #[test]
    fn a_short_pool_is_compacted_and_tried_again_while_that_gains() {
        let mut pools = Synthetic {
            room: [(n(1), 230)].into(),
            gains: [(n(1), vec![2, 0])].into(),
            ..Synthetic::default()
        };
        let calls = ["1=400", "compact 1", "1=400", "compact 1", "1=400"];
        check(&mut pools, &[wish(1, 0, 400)], &[(&[230, 232, 232], 2)], &calls);
    }

    #[test]
    fn no_pool_is_tried_again_more_than_three_times() {
        let mut pools = Synthetic {
            room: [(n(0), 1)].into(),
            gains: [(n(0), vec![1; 9])].into(),
            ..Synthetic::default()
        };
        pools.pages.insert(n(0), 0);
        let changes = set(&mut pools, &[wish(0, 0, 400)]);
        assert_eq!((changes[0].tries.as_slice(), changes[0].compactions), ([1, 2, 3, 4].as_slice(), 3));
        assert_eq!(changes[0].largest_free, Some(Bytes::MIB));
    }

    #[test]
    fn pools_that_shrink_come_first() {
        let mut pools = Synthetic { room: [(n(0), 9), (n(1), 9)].into(), ..Synthetic::default() };
        check(&mut pools, &[wish(0, 1, 9), wish(1, 9, 1)], &[(&[9], 0), (&[1], 0)], &["1=1", "0=9"]);
    }

    #[test]
    fn what_the_kernel_refuses_is_said_and_not_tried_again() {
        let mut pools = Synthetic { refuses: Some(n(0)), ..Synthetic::default() };
        let changes = set(&mut pools, &[wish(0, 0, 4)]);
        assert_eq!(changes[0].refused.as_deref(), Some("permission denied"));
        assert_eq!(pools.calls, ["0=4"]);
        let mut pools = Synthetic { no_compaction: true, ..Synthetic::default() };
        let changes = set(&mut pools, &[wish(0, 0, 4)]);
        assert_eq!(changes[0].refused.as_deref(), Some("this kernel has no compaction"));
        assert_eq!(changes[0].compactions, 0);
    }

    #[test]
    fn pools_are_given_back_in_reverse() {
        let mut pools = Synthetic { room: [(n(0), 9), (n(1), 3)].into(), ..Synthetic::default() };
        let changes = set(&mut pools, &[wish(0, 2, 9), wish(1, 1, 9), wish(2, 5, 5)]);
        pools.calls.clear();
        give_back(&mut pools, &changes).unwrap();
        assert_eq!(pools.calls, ["1=1", "0=2"]);
    }
}
