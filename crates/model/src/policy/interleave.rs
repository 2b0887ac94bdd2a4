//! Whose turn a page is, under the two interleaving modes.
//!
//! # Source
//! `interleave_nid`, `weighted_interleave_nid`, `interleave_nodes`, `weighted_interleave_nodes` and
//! `get_vma_policy` in `mm/mempolicy.c`; 6.9 to at least 7.2 (interleave alone: from 6.7, before
//! with the same results but for pages that `mbind(2)` moves). Every rule was seen on 6.12 and 6.18.

use std::collections::BTreeMap;

use nodewise_machine::{NodeId, NodeSet, PolicyMode};

use crate::release::{Change, Release};

/// Weights of nodes; a node without one has weight 1.
pub type Weights = BTreeMap<NodeId, u32>;

/// The nodes of an interleaving policy in ascending order, each with the number of pages that it
/// takes in one round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turns {
    turns: Vec<(NodeId, u64)>,
    round: u64,
}

impl Turns {
    /// The turns of a mode over these nodes. Weights count for weighted interleave only.
    pub fn new(mode: PolicyMode, nodes: &NodeSet, weights: &Weights) -> Self {
        let weight = |node: &NodeId| match mode {
            PolicyMode::WeightedInterleave => u64::from(weights.get(node).copied().unwrap_or(1).max(1)),
            _ => 1,
        };
        let turns: Vec<(NodeId, u64)> = nodes.iter().map(|node| (node, weight(&node))).collect();
        let round = turns.iter().map(|(_, weight)| weight).sum();
        Self { turns, round }
    }

    /// Each node with its pages per round.
    pub fn nodes(&self) -> &[(NodeId, u64)] {
        &self.turns
    }

    /// Pages per round; 0 without nodes.
    pub const fn round(&self) -> u64 {
        self.round
    }

    /// The place in [`Turns::nodes`] whose turn an index is, and how many pages of that turn come
    /// before it; `None` without nodes.
    pub fn place(&self, index: u64) -> Option<(usize, u64)> {
        let mut left = index.checked_rem(self.round)?;
        for (place, (_, weight)) in self.turns.iter().enumerate() {
            if left < *weight {
                return Some((place, left));
            }
            left -= weight;
        }
        None
    }

    /// The node whose turn an index is.
    pub fn node(&self, index: u64) -> Option<NodeId> {
        self.place(index).map(|(place, _)| self.turns[place].0)
    }
}

/// Where a page is in the turns: its index.
///
/// Page faults never use the task's cursor, so the first page of a region falls to whichever node its
/// address says, and the order in which pages are touched does not matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterleavePosition {
    /// A page of private anonymous memory, by its virtual address. Its mapping was never moved.
    Address(u64),
    /// A page of a file in memory (tmpfs, System V, anonymous shared memory): the file's inode
    /// number and the page's number in the file.
    File {
        /// Shifts the turns of the whole file.
        inode: u64,
        /// Number of the page of 4 KiB in the file.
        page: u64,
    },
}

impl InterleavePosition {
    /// The index of a page of 2^`order` times 4 KiB.
    pub const fn index(self, order: u32) -> u64 {
        match self {
            Self::Address(address) => address >> 12 >> order,
            Self::File { inode, page } => inode.wrapping_add(page >> order),
        }
    }

    /// The number of the page of 4 KiB in its address space or file.
    pub const fn page(self) -> u64 {
        match self {
            Self::Address(address) => address >> 12,
            Self::File { page, .. } => page,
        }
    }

    /// The place that `mbind(2)` goes by when it moves the page: before 6.7 it asked the mapping for it, which does not know the
    /// inode (`new_page` in `mm/mempolicy.c`; `shmem_alloc_folio` in `mm/shmem.c` adds it). Seen on 6.1 and 6.12.
    #[must_use]
    pub fn when_moved(self, release: Release) -> Self {
        match self {
            Self::File { page, .. } if !release.has(Change::MovedPagesCountInode) => {
                Self::File { inode: 0, page }
            }
            place => place,
        }
    }

    /// The place this many pages of 4 KiB further on.
    #[must_use]
    pub const fn after(self, pages: u64) -> Self {
        match self {
            Self::Address(address) => Self::Address(address.wrapping_add(pages << 12)),
            Self::File { inode, page } => Self::File { inode, page: page.wrapping_add(pages) },
        }
    }
}

/// A task's cursor: whose turn it is for pages that have no address, such as those of the page cache
/// and of the kernel itself. A child gets a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Cursor {
    previous: Option<NodeId>,
    left: u64,
}

impl Cursor {
    /// The cursor after a policy was set: the lowest node is next.
    pub const fn new() -> Self {
        Self { previous: None, left: 0 }
    }

    /// Takes a page: its node; `None` without nodes.
    pub fn step(&mut self, turns: &Turns) -> Option<NodeId> {
        let weight_of = |node: NodeId| turns.nodes().iter().find(|(n, _)| *n == node).map(|(_, w)| *w);
        let stays = self.previous.filter(|node| self.left > 0 && weight_of(*node).is_some());
        let node = match stays {
            Some(node) => node,
            None => {
                let after = |(node, _): &&(NodeId, u64)| self.previous.is_none_or(|last| *node > last);
                let (node, weight) = turns.nodes().iter().find(after).or_else(|| turns.nodes().first())?;
                self.left = *weight;
                *node
            }
        };
        self.previous = Some(node);
        self.left -= 1;
        Some(node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    fn turns(nodes: &NodeSet, weights: &[(u32, u32)]) -> Turns {
        let weights = weights.iter().map(|(node, weight)| (NodeId::new(*node), *weight)).collect();
        Turns::new(PolicyMode::WeightedInterleave, nodes, &weights)
    }

    #[test]
    fn a_cursor_begins_at_the_lowest_node_and_follows_the_weights() {
        let turns = turns(&NodeSet::from([1, 2, 5]), &[(1, 2), (5, 3)]);
        let mut cursor = Cursor::new();
        let nodes: Vec<u32> = (0..8).map(|_| cursor.step(&turns).unwrap().number()).collect();
        assert_eq!(nodes, [1, 1, 2, 5, 5, 5, 1, 1]);
    }

    #[test]
    fn a_cursor_whose_node_is_gone_goes_on_behind_it() {
        let mut cursor = Cursor::new();
        let step = |cursor: &mut Cursor, nodes: &NodeSet| cursor.step(&turns(nodes, &[(2, 9)])).unwrap();
        assert_eq!(step(&mut cursor, &NodeSet::from([2, 4])), NodeId::new(2));
        assert_eq!(step(&mut cursor, &NodeSet::from([1, 3])), NodeId::new(3));
        assert_eq!(cursor.step(&turns(&NodeSet::new(), &[])), None);
    }

    #[test]
    fn a_huge_page_has_one_turn() {
        assert_eq!(InterleavePosition::Address(0x100_4020_0000).index(9) % 4, 1);
        assert_eq!(InterleavePosition::File { inode: 2, page: 1024 }.index(9), 4);
    }

    proptest! {
        #[test]
        fn a_round_gives_each_node_its_weight(weights in proptest::collection::vec(1u32..256, 1..9), start in any::<u32>()) {
            let pairs: Vec<(u32, u32)> = weights.iter().zip(0..).map(|(weight, node)| (node, *weight)).collect();
            let nodes: NodeSet = pairs.iter().map(|(node, _)| NodeId::new(*node)).collect();
            let turns = turns(&nodes, &pairs);
            let mut counts = vec![0; weights.len()];
            for index in 0..turns.round() {
                counts[turns.node(u64::from(start) + index).unwrap().number() as usize] += 1;
            }
            prop_assert_eq!(counts, weights);
        }
    }
}
