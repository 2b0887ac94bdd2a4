//! Memory of a program that comes from a pool of huge pages.
//!
//! # Source
//! `alloc_hugetlb_folio_nodemask` in `mm/hugetlb.c`, `alloc_migration_target_by_mpol` in
//! `mm/mempolicy.c`; 6.8 to at least 7.2. Seen on 6.12 and 6.18.

use nodewise_machine::{MemPolicy, NodeId, NodeSet};

use super::Task;
use crate::errno::Errno;
use crate::hugetlb::{self, Pool, Replaced};
use crate::memory::Memory;
use crate::migrate::{self, Present};
use crate::policy::set::Policy;
use crate::release::Change;
use crate::walk::Class;

/// A private mapping of huge pages, with the pool that they come from. Pages are numbered from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pooled {
    pool: Pool,
    policy: Option<Policy>,
    pages: Vec<Option<NodeId>>,
    /// Whether each page stays where it is, whoever asks.
    stay: Vec<bool>,
}

impl Pooled {
    /// `mmap(2)` by a program of private memory in this many huge pages (`MAP_HUGETLB`).
    ///
    /// # Errors
    /// Those of [`Pool::reserve`].
    pub fn map(mut pool: Pool, pages: usize, task: &Task) -> Result<Self, Errno> {
        pool.reserve(pages as u64, &task.policy, &task.allowed)?;
        Ok(Self { pool, policy: None, pages: vec![None; pages], stay: vec![false; pages] })
    }

    /// The same with another pool, and this many pages that are reserved in it.
    #[cfg(test)]
    pub(crate) fn take_over(&mut self, pool: Pool, pages: usize) {
        *self = Self { pool, policy: None, pages: vec![None; pages], stay: vec![false; pages] };
    }

    /// Writes `nr_hugepages`, with room for as many.
    #[cfg(test)]
    pub(crate) fn resize(&mut self, pages: u64) {
        self.pool.resize(pages, |_| true);
    }

    /// Writes `nr_hugepages` in sysfs, of the pool or of one node's part of it. Gives the number that the file then reads: surplus
    /// pages count there, as they do not in `/proc/sys/vm/nr_hugepages`. A pool grows on nodes that the task which writes may
    /// use (`htlb_alloc_mask` has `__GFP_HARDWALL`); tried on 6.12.
    pub fn set_pages(&mut self, node: Option<NodeId>, pages: u64, task: &Task, memory: &Memory) -> u64 {
        let allowed = task.allowed();
        let room = |node| allowed.contains(node) && memory.can_give(node, memory.huge_order(), Class::User);
        match node {
            Some(node) => {
                self.pool.resize_node(node, pages, room);
                self.pool.on(node)
            }
            None => {
                self.pool.resize(pages, room);
                self.pool.pages()
            }
        }
    }

    /// `munmap(2)` of all pages: the pool that is left.
    pub fn unmap(mut self) -> Pool {
        let touched: Vec<NodeId> = self.pages.iter().copied().flatten().collect();
        let untouched = self.pages.len() - touched.len();
        touched.into_iter().for_each(|node| self.pool.release(node));
        self.pool.unreserve(untouched as u64);
        self.pool
    }

    /// The pool as it is now.
    pub const fn pool(&self) -> &Pool {
        &self.pool
    }

    /// The node of each page; `None` before it is touched.
    pub fn nodes(&self) -> &[Option<NodeId>] {
        &self.pages
    }

    /// Touches a page: its node, or `None` for a signal (`SIGBUS`) and beyond the end.
    pub fn touch(&mut self, page: usize, task: &Task, memory: &Memory) -> Option<NodeId> {
        let place = self.pages.get_mut(page)?;
        if place.is_none() {
            let policy = self.policy.as_ref().unwrap_or(task.in_force());
            let (weights, orders) = (&task.around.weights, memory.orders());
            *place = self.pool.fault(policy, weights, page as u64, task.cpu_node, orders, &task.allowed);
        }
        *place
    }

    /// `mbind(2)` of the whole mapping.
    ///
    /// # Errors
    /// As [`Task::bind`].
    pub fn bind(
        &mut self,
        policy: &MemPolicy,
        present: Present,
        task: &Task,
        memory: &Memory,
    ) -> Result<(), Errno> {
        let own = Some(task.accepted(policy)?).filter(|own| *own != Policy::DEFAULT);
        let placed = own.as_ref().unwrap_or(task.in_force());
        let (weights, orders) = (&task.around.weights, memory.orders());
        let there: Vec<(usize, NodeId)> =
            (0..).zip(&self.pages).filter_map(|(page, node)| Some((page, (*node)?))).collect();
        let mut nodes: Vec<NodeId> = there.iter().map(|(_, node)| *node).collect();
        migrate::mbind(&mut nodes, policy, present, |at| {
            let (page, node) = there[at];
            let way = hugetlb::way(placed, weights, page as u64, task.cpu_node, orders, &task.allowed);
            self.send(page, &way.order, memory);
            self.pages[page].unwrap_or(node)
        })?;
        self.policy = own;
        Ok(())
    }

    /// `move_pages(2)` of one page.
    ///
    /// # Errors
    /// Those of [`migrate::check_move`].
    pub fn move_page(
        &mut self,
        page: usize,
        node: NodeId,
        task: &Task,
        memory: &Memory,
    ) -> Result<(), Errno> {
        migrate::check_move(node, &task.around.with_memory, &task.allowed)?;
        if self.pages.get(page).is_some_and(|place| *place != Some(node)) {
            self.send(page, &[node], memory);
        }
        Ok(())
    }

    /// `migrate_pages(2)` of the program on itself, as far as this mapping goes.
    ///
    /// # Errors
    /// `EINVAL` of [`migrate::check_migration`].
    pub fn migrate_pages(
        &mut self,
        old: &NodeSet,
        new: &NodeSet,
        task: &Task,
        memory: &Memory,
    ) -> Result<(), Errno> {
        migrate::check_migration(new, &task.allowed)?;
        // Node by node, so that the pages of the first get what is free in the pool.
        for (from, to) in migrate::moves(old, &new.intersection(&task.allowed)) {
            for page in 0..self.pages.len() {
                if self.pages[page] == Some(from) {
                    self.send(page, &[to], memory);
                }
            }
        }
        Ok(())
    }

    /// Moves a page to one of some nodes.
    fn send(&mut self, page: usize, way: &[NodeId], memory: &Memory) {
        let (Some(Some(node)), Some(stays)) = (self.pages.get_mut(page), self.stay.get_mut(page)) else {
            return;
        };
        if *stays {
            return;
        }
        let room = |node| memory.can_give(node, memory.huge_order(), Class::User);
        match self.pool.replace(*node, way, room) {
            Replaced::ByNew(new) if new == *node => *stays = memory.release.has(Change::ReplacedInPlaceStays),
            Replaced::ByNew(new) | Replaced::ByFree(new) => *node = new,
            Replaced::Not => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{policy, start};
    use super::*;
    use crate::memory::ZoneState;
    use crate::release::Release;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    fn nodes(mapping: &Pooled) -> Vec<u32> {
        mapping.nodes().iter().map(|node| node.map_or(9, NodeId::number)).collect()
    }

    /// Two pages of a pool with these free pages on nodes 0-3, touched on node 0.
    fn mapping(free: [u64; 4]) -> (Pooled, Task, Memory) {
        let (task, memory) = start();
        let pages: Vec<(NodeId, u64)> = (0..4).map(NodeId::new).zip(free).collect();
        let mut mapping = Pooled::map(Pool::with(&pages), 2, &task).unwrap();
        mapping.touch(0, &task, &memory);
        mapping.touch(1, &task, &memory);
        (mapping, task, memory)
    }

    fn free(mapping: &Pooled) -> Vec<u64> {
        mapping.pool().free().values().copied().collect()
    }

    #[test]
    fn a_page_moves_into_the_pool_of_the_other_node_while_it_has_any() {
        let (mut mapping, task, memory) = mapping([2, 1, 0, 0]);
        mapping.move_page(0, NodeId::new(1), &task, &memory).unwrap();
        assert_eq!((nodes(&mapping), free(&mapping)), (vec![1, 0], vec![1, 0, 0, 0]));
        mapping.move_page(1, NodeId::new(1), &task, &memory).unwrap();
        assert_eq!((nodes(&mapping), free(&mapping)), (vec![1, 1], vec![1, 0, 0, 0]));
        assert_eq!(mapping.move_page(1, NodeId::new(7), &task, &memory), Err(Errno::Enodev));
    }

    #[test]
    fn a_pool_that_one_node_writes_smaller_keeps_what_programs_have_as_surplus_of_that_node() {
        let (mut mapping, task, memory) = mapping([3, 1, 0, 0]);
        assert_eq!(mapping.set_pages(Some(NodeId::new(0)), 0, &task, &memory), 2);
        assert_eq!(free(&mapping), [0, 1, 0, 0]);
        assert_eq!(mapping.pool().surplus()[&NodeId::new(0)], 2);
        // Other nodes keep theirs, and one that grows takes back what it has too much.
        assert_eq!(mapping.set_pages(Some(NodeId::new(0)), 1, &task, &memory), 2);
        assert_eq!(mapping.pool().surplus()[&NodeId::new(0)], 1);
        mapping.move_page(0, NodeId::new(1), &task, &memory).unwrap();
        let pool = mapping.unmap();
        assert_eq!(pool.free_on(&NodeSet::from([0, 1])), 2);
        assert_eq!(pool.surplus().values().sum::<u64>(), 0);
    }

    #[test]
    fn a_pool_grows_where_the_task_that_writes_may_have_memory() {
        let (mut mapping, mut task, mut memory) = mapping([2, 0, 0, 0]);
        task.restrict(&NodeSet::from([0, 1]), &mut memory);
        assert_eq!(mapping.set_pages(Some(NodeId::new(3)), 2, &task, &memory), 0);
        assert_eq!(mapping.set_pages(Some(NodeId::new(1)), 2, &task, &memory), 2);
        // Nodes take turns, and those that are forbidden have none.
        assert_eq!(mapping.set_pages(None, 8, &task, &memory), 8);
        assert_eq!(free(&mapping)[2..], [0, 0]);
    }

    #[test]
    fn a_reserved_page_is_not_moved_into() {
        let (task, memory) = start();
        let pool = Pool::with(&[(NodeId::new(0), 1), (NodeId::new(1), 1)]);
        let mut mapping = Pooled::map(pool, 2, &task).unwrap();
        mapping.touch(0, &task, &memory);
        mapping.move_page(0, NodeId::new(1), &task, &memory).unwrap();
        assert_eq!(mapping.pool().free_on(&NodeSet::from([1])), 1);
        assert_eq!(mapping.touch(1, &task, &memory), Some(NodeId::new(1)));
    }

    #[test]
    fn mbind_moves_to_where_the_policy_finds_a_free_page() {
        let (mut mapping, task, memory) = mapping([2, 0, 1, 1]);
        mapping.bind(&policy("interleave:2-3"), Present::Move, &task, &memory).unwrap();
        assert_eq!(nodes(&mapping), [2, 3]);
        assert_eq!(mapping.bind(&policy("bind:2"), Present::Refuse, &task, &memory), Err(Errno::Eio));
        mapping.migrate_pages(&NodeSet::from([2, 3]), &NodeSet::from([0]), &task, &memory).unwrap();
        assert_eq!((nodes(&mapping), free(&mapping)), (vec![0, 0], vec![0, 0, 1, 1]));
    }

    #[test]
    fn a_page_without_a_pool_needs_a_huge_page_above_mark_and_reserve() {
        // Node 1 with a reserve, and this many pages above what it keeps.
        let moved = |above: u64| {
            let (task, memory) = start();
            let zones = memory.zones().iter().map(|zone| {
                let reserves = [300; 4];
                ZoneState { reserves, free: zone.marks.min + 300 + above, ..zone.clone() }
            });
            let memory = Memory::new(zones.collect(), memory.orders().clone(), Release::REFERENCE);
            let mut mapping = Pooled::map(Pool::with(&[(NodeId::new(0), 1)]), 1, &task).unwrap();
            mapping.touch(0, &task, &memory);
            mapping.move_page(0, NodeId::new(1), &task, &memory).unwrap();
            nodes(&mapping)
        };
        // A block of 512 leaves 511 of it out of the count.
        assert_eq!((moved(511), moved(512)), (vec![0], vec![1]));
    }

    #[test]
    fn migrate_pages_goes_node_by_node_and_not_page_by_page() {
        // Scripts 405096 on 6.12 and 509039 on 6.18: the pages of the first node get what the pool has.
        let (mut mapping, task, memory) = mapping([2, 0, 0, 1]);
        mapping.move_page(0, NodeId::new(1), &task, &memory).unwrap();
        assert_eq!((nodes(&mapping), free(&mapping)), (vec![1, 0], vec![0, 0, 0, 1]));
        mapping.migrate_pages(&NodeSet::from([0, 1]), &NodeSet::from([3]), &task, &memory).unwrap();
        assert_eq!((nodes(&mapping), free(&mapping)), (vec![3, 3], vec![1, 0, 0, 0]));
    }

    /// Script 21010: taking the policy away moves every page, of a pool without a page to spare to a new one of
    /// the same node. 6.18 never moves it again, 6.12.117 does. Script pools-32 on `4x(1c 512M); dist=20`: nor does
    /// 6.1.176.
    #[test]
    fn a_page_that_a_new_one_of_its_node_replaced_stays_since_6_14() {
        let check = |release: Release, expected: u32| {
            let (task, mut memory) = start();
            memory = Memory::new(memory.zones().to_vec(), memory.orders().clone(), release);
            let mut mapping = Pooled::map(Pool::with(&[(NodeId::new(0), 2)]), 2, &task).unwrap();
            mapping.touch(0, &task, &memory);
            mapping.bind(&policy("local"), Present::Move, &task, &memory).unwrap();
            mapping.migrate_pages(&NodeSet::from([0]), &NodeSet::from([1]), &task, &memory).unwrap();
            assert_eq!(nodes(&mapping), [expected, 9], "{release}");
        };
        check(Release::new(6, 1), 0);
        check(Release::new(6, 13), 1);
        check(Release::new(6, 14), 0);
    }

    proptest! {
        #[test]
        fn the_pool_has_as_many_pages_whatever_moves(
            filled in proptest::collection::vec(0u64..4, 4),
            moves in proptest::collection::vec((0usize..5, 0u32..5, any::<bool>()), 0..30),
        ) {
            let (task, memory) = start();
            let pages: Vec<(NodeId, u64)> = (0..4).map(NodeId::new).zip(filled.iter().copied()).collect();
            if let Ok(mut mapping) = Pooled::map(Pool::with(&pages), 4, &task) {
                for (page, node, touched) in moves {
                    if touched {
                        mapping.touch(page, &task, &memory);
                    } else {
                        // A missing node is refused, and changes nothing.
                        let _ = mapping.move_page(page, NodeId::new(node), &task, &memory);
                    }
                    let used = mapping.nodes().iter().flatten().count() as u64;
                    prop_assert_eq!(free(&mapping).iter().sum::<u64>() + used, filled.iter().sum::<u64>());
                }
            }
        }
    }
}
