//! Pools of huge pages: where they grow and shrink, and which page a fault gets.
//!
//! # Source
//! `hstate_next_node_to_alloc`, `hstate_next_node_to_free`, `set_max_huge_pages`, `adjust_pool_surplus`,
//! `free_huge_folio`, `move_hugetlb_state` and `dequeue_hugetlb_folio_vma` in `mm/hugetlb.c`; 5.15 to at least
//! 7.2. Seen on 6.12 and 6.18.

use std::collections::BTreeMap;

use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::{NodeId, NodeSet, PolicyMode};

use crate::errno::Errno;
use crate::policy::interleave::{Turns, Weights};
use crate::policy::set::Policy;
use crate::policy::{Path, path};
use crate::release::{Change, Release};
use crate::zonelist::FallbackOrders;

/// The replacement of a page that was to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replaced {
    /// A free page of the pool, on this node.
    ByFree(NodeId),
    /// A page of this node that was not a page of the pool before.
    ByNew(NodeId),
    /// Nothing: the page stays where it is.
    Not,
}

/// The pool of one page size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    free: BTreeMap<NodeId, u64>,
    /// Pages that programs have.
    used: BTreeMap<NodeId, u64>,
    /// Pages that leave the pool as soon as a program frees as many on the node.
    surplus: BTreeMap<NodeId, u64>,
    /// Pages that mappings will have when they are touched.
    reserved: u64,
    nodes: NodeSet,
    grow_next: Option<NodeId>,
    shrink_next: Option<NodeId>,
    /// The release whose rules hold.
    release: Release,
}

impl Pool {
    /// The empty pool of a kernel that was just booted; `nodes` are those with memory.
    pub fn new(nodes: &NodeSet) -> Self {
        let none: BTreeMap<NodeId, u64> = nodes.iter().map(|node| (node, 0)).collect_map();
        let first = nodes.first();
        Self {
            free: none.clone(),
            used: none.clone(),
            surplus: none,
            reserved: 0,
            nodes: nodes.clone(),
            grow_next: first,
            shrink_next: first,
            release: Release::REFERENCE,
        }
    }

    /// The same pool in a kernel of another release.
    #[must_use]
    pub fn under(self, release: Release) -> Self {
        Self { release, ..self }
    }

    /// A pool with these free pages.
    pub fn with(pages: &[(NodeId, u64)]) -> Self {
        let mut pool = Self::new(&pages.iter().map(|(node, _)| *node).collect());
        pool.free.extend(pages.iter().copied());
        pool
    }

    /// Free pages by node.
    pub const fn free(&self) -> &BTreeMap<NodeId, u64> {
        &self.free
    }

    /// Free pages of some nodes.
    pub fn free_on(&self, nodes: &NodeSet) -> u64 {
        self.free.iter().filter(|(node, _)| nodes.contains(**node)).map(|(_, pages)| pages).sum()
    }

    /// Surplus pages by node.
    pub const fn surplus(&self) -> &BTreeMap<NodeId, u64> {
        &self.surplus
    }

    /// Writes `nr_hugepages`. `room` says whether a node still has memory for one more page. Gives
    /// the number of pages without surplus that there then are: less than asked when no node has room.
    ///
    /// Pages in use and those that are reserved stay: as many become surplus as the pool is too large.
    pub fn resize(&mut self, pages: u64, room: impl FnMut(NodeId) -> bool) -> u64 {
        let all = self.nodes.clone();
        self.resize_on(&all, pages, room);
        self.persistent()
    }

    /// Writes `nr_hugepages` of one node. Gives the number of pages without surplus that the node then has. The next page of
    /// the whole pool is looked for from this node on.
    pub fn resize_node(&mut self, node: NodeId, pages: u64, room: impl FnMut(NodeId) -> bool) -> u64 {
        let own = |pool: &Self| pool.on(node).saturating_sub(of(&pool.surplus, node));
        let others = match self.release.has(Change::NodeCountWithoutSurplus) {
            true => self.persistent() - own(self),
            false => self.pages() - self.on(node),
        };
        self.resize_on(&[node].into_iter().collect(), others.saturating_add(pages), room);
        own(self)
    }

    /// Whether a node takes all the memory that it has, whatever number is written for it: where it has more surplus pages than
    /// pages. It is as if the kernel subtracted them with 32 bits and added the result as one of 64 (seen on 6.12.117 and
    /// 6.18.15, not on 6.1; the source was not read).
    pub fn takes_all(&self, node: NodeId) -> bool {
        self.release.has(Change::NodeCountWithoutSurplus) && of(&self.surplus, node) > self.on(node)
    }

    /// Grows and shrinks the pool on some nodes until all of it has this many pages (`set_max_huge_pages`).
    fn resize_on(&mut self, nodes: &NodeSet, pages: u64, mut room: impl FnMut(NodeId) -> bool) {
        while self.persistent() < pages {
            let tried: Vec<NodeId> = cycle(nodes, self.grow_next).collect();
            let surplus = tried.iter().copied().find(|node| of(&self.surplus, *node) > 0);
            let first = tried.first().copied();
            let Some(node) = surplus.or_else(|| tried.into_iter().find(|node| room(*node))) else {
                // Every node had its turn, and the first is the next again.
                self.grow_next = first.or(self.grow_next);
                break;
            };
            self.grow_next = following(nodes, node);
            match surplus {
                Some(_) => take(&mut self.surplus, node),
                None => give(&mut self.free, node),
            }
        }
        let in_use: u64 = self.used.values().sum();
        let surplus: u64 = self.surplus.values().sum();
        let in_use = match self.release.has(Change::SurplusInUseNotKept) && surplus <= in_use {
            true => in_use - surplus,
            false => in_use,
        };
        let least = pages.max(self.reserved + in_use);
        while self.persistent() > least {
            let tried: Vec<NodeId> = cycle(nodes, self.shrink_next).collect();
            let Some(node) = tried.into_iter().find(|node| self.has_free(*node)) else { break };
            self.shrink_next = following(nodes, node);
            take(&mut self.free, node);
        }
        while self.persistent() > pages {
            let tried: Vec<NodeId> = cycle(nodes, self.shrink_next).collect();
            let is_whole = |node: &NodeId| of(&self.surplus, *node) < self.on(*node);
            let Some(node) = tried.into_iter().find(is_whole) else { break };
            self.shrink_next = following(nodes, node);
            give(&mut self.surplus, node);
        }
    }

    /// All pages, free or not.
    pub fn pages(&self) -> u64 {
        self.nodes.iter().map(|node| self.on(node)).sum()
    }

    /// Pages on a node, free or not.
    pub fn on(&self, node: NodeId) -> u64 {
        of(&self.free, node) + of(&self.used, node)
    }

    /// All pages but the surplus: what `/proc/sys/vm/nr_hugepages` reads.
    fn persistent(&self) -> u64 {
        let sum = |pages: &BTreeMap<NodeId, u64>| pages.values().sum::<u64>();
        sum(&self.free) + sum(&self.used) - sum(&self.surplus)
    }

    /// Reserves pages for a mapping, as `mmap(2)` does. A policy that is set on the mapping later is not seen.
    ///
    /// # Errors
    /// `ENOMEM`, when the nodes that may be used have fewer free pages.
    pub fn reserve(&mut self, pages: u64, task: &Policy, allowed: &NodeSet) -> Result<(), Errno> {
        if self.free_on(&reservable(task, allowed)) < pages || self.spare() < pages {
            return Err(Errno::Enomem);
        }
        self.reserved += pages;
        Ok(())
    }

    /// Gives back what a mapping has reserved and not touched, as `munmap(2)` does. As many free pages leave the
    /// pool as it has surplus.
    pub fn unreserve(&mut self, pages: u64) {
        for _ in 0..pages.min(self.surplus.values().sum()) {
            let tried: Vec<NodeId> = cycle(&self.nodes, self.shrink_next).collect();
            let is_found = |node: &NodeId| of(&self.surplus, *node) > 0 && self.has_free(*node);
            let Some(node) = tried.into_iter().find(is_found) else { break };
            self.shrink_next = following(&self.nodes, node);
            take(&mut self.surplus, node);
            take(&mut self.free, node);
        }
        self.reserved = self.reserved.saturating_sub(pages);
    }

    /// Frees a page that a program has on a node.
    pub fn release(&mut self, node: NodeId) {
        take(&mut self.used, node);
        if of(&self.surplus, node) > 0 {
            take(&mut self.surplus, node);
        } else {
            give(&mut self.free, node);
        }
    }

    /// Free pages that no one has reserved.
    fn spare(&self) -> u64 {
        self.free.values().sum::<u64>().saturating_sub(self.reserved)
    }

    /// Takes the page that a fault gets, with this number in the mapping: its node; `None` for a signal
    /// (`SIGBUS`).
    pub fn fault(
        &mut self,
        policy: &Policy,
        weights: &Weights,
        index: u64,
        cpu_node: NodeId,
        orders: &FallbackOrders,
        allowed: &NodeSet,
    ) -> Option<NodeId> {
        let way = way(policy, weights, index, cpu_node, orders, allowed);
        let node = way.order.into_iter().chain(way.then).find(|node| self.has_free(*node))?;
        take(&mut self.free, node);
        give(&mut self.used, node);
        self.reserved = self.reserved.saturating_sub(1);
        Some(node)
    }

    /// Moves a page that is in use to one of some nodes, in their order.
    ///
    /// A free page of the pool takes its place as long as not all are reserved; the old one is freed then.
    /// Otherwise a new page does, from a node that has `room`, the old one leaves the pool, and where it was
    /// surplus the new one is.
    pub fn replace(&mut self, old: NodeId, way: &[NodeId], room: impl Fn(NodeId) -> bool) -> Replaced {
        let pooled = way.iter().copied().find(|node| self.has_free(*node)).filter(|_| self.spare() > 0);
        if let Some(node) = pooled {
            take(&mut self.free, node);
            give(&mut self.used, node);
            self.release(old);
            return Replaced::ByFree(node);
        }
        let Some(node) = way.iter().copied().find(|node| room(*node)) else { return Replaced::Not };
        take(&mut self.used, old);
        give(&mut self.used, node);
        if of(&self.surplus, old) > 0 {
            take(&mut self.surplus, old);
            give(&mut self.surplus, node);
        }
        Replaced::ByNew(node)
    }

    fn has_free(&self, node: NodeId) -> bool {
        self.free.get(&node).is_some_and(|pages| *pages > 0)
    }
}

fn of(pages: &BTreeMap<NodeId, u64>, node: NodeId) -> u64 {
    pages.get(&node).copied().unwrap_or(0)
}

fn give(pages: &mut BTreeMap<NodeId, u64>, node: NodeId) {
    *pages.entry(node).or_default() += 1;
}

fn take(pages: &mut BTreeMap<NodeId, u64>, node: NodeId) {
    if let Some(pages) = pages.get_mut(&node) {
        *pages = pages.saturating_sub(1);
    }
}

/// The way of a page of a pool. `index` is its place in the turns: its number in the mapping, in huge pages,
/// and not in the address space.
pub(crate) fn way(
    policy: &Policy,
    weights: &Weights,
    index: u64,
    cpu_node: NodeId,
    orders: &FallbackOrders,
    allowed: &NodeSet,
) -> Path {
    let turn = Turns::new(policy.mode, &policy.nodes, weights).node(index);
    path(&policy.effective(), policy.home.unwrap_or(cpu_node), turn, orders, allowed)
}

/// The nodes that a mapping's pages are reserved on: only the task's own bind policy counts.
pub(crate) fn reservable(task: &Policy, allowed: &NodeSet) -> NodeSet {
    if task.mode == PolicyMode::Bind { task.nodes.intersection(allowed) } else { allowed.clone() }
}

/// The nodes once around, from one of them on.
pub(crate) fn cycle(nodes: &NodeSet, from: Option<NodeId>) -> impl Iterator<Item = NodeId> + '_ {
    let before = nodes.iter().take_while(move |node| from.is_some_and(|from| *node < from)).count();
    nodes.iter().skip(before).chain(nodes.iter().take(before))
}

/// The node behind another, from the last on to the first.
pub(crate) fn following(nodes: &NodeSet, node: NodeId) -> Option<NodeId> {
    nodes.iter().find(|other| *other > node).or(nodes.first())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_differ_in_what_a_node_gets_beside_the_surplus_of_others() {
        let (near, far) = (NodeId::new(0), NodeId::new(1));
        for (release, expected) in [(Release::new(6, 1), 4), (Release::new(6, 12), 3)] {
            // A page that a mapping has reserved, more than the pool is to have.
            let mut pool = Pool::with(&[(near, 1), (far, 0)]).under(release);
            pool.reserved = 1;
            pool.surplus.insert(near, 1);
            pool.resize_node(far, 3, |_| true);
            assert_eq!(pool.on(far), expected, "{release:?}");
        }
    }

    #[test]
    fn a_node_with_more_surplus_pages_than_pages_takes_all() {
        let node = NodeId::new(0);
        let mut pool = Pool::with(&[(node, 1)]);
        pool.surplus.insert(node, 1);
        assert!(!pool.takes_all(node));
        pool.surplus.insert(node, 2);
        assert!(pool.takes_all(node) && !pool.under(Release::new(6, 1)).takes_all(node));
    }

    #[test]
    fn releases_differ_in_whether_surplus_pages_in_use_are_kept() {
        for (release, expected) in [(Release::new(6, 12), 4), (Release::new(6, 18), 3)] {
            let both = [NodeId::new(0), NodeId::new(1)];
            let mut pool = Pool::with(&both.map(|node| (node, 2))).under(release);
            pool.reserved = 2;
            give(&mut pool.used, NodeId::new(0));
            take(&mut pool.free, NodeId::new(0));
            pool.surplus.insert(NodeId::new(0), 1);
            // Three pages without the surplus one; three are reserved or in use, and one of these is the surplus one.
            pool.resize(0, |_| true);
            assert_eq!(pool.pages(), expected, "{release:?}");
        }
    }

    #[test]
    fn a_node_that_has_no_page_to_give_is_not_the_next_to_lose_one() {
        // Script pools-25006 on `drawn-25`, 6.1: node 0 is outside the cpuset when the pool is filled.
        let mut pool = Pool::new(&NodeSet::from([0, 1, 2]));
        for (node, has_room) in [(1, true), (0, false)] {
            for pages in [1, 0] {
                pool.resize_node(NodeId::new(node), pages, |_| has_room);
            }
        }
        pool.resize(4, |_| true);
        assert_eq!(pool.free().values().copied().collect::<Vec<_>>(), [2, 1, 1]);
        pool.resize(3, |_| true);
        assert_eq!(pool.free().values().copied().collect::<Vec<_>>(), [2, 0, 1]);
    }

    #[test]
    fn a_full_node_is_passed_over_and_the_rest_is_missing() {
        let mut pool = Pool::new(&NodeSet::from([0, 1, 2]));
        let mut left = [5u64, 1, 2];
        let got = pool.resize(10, |node| {
            let left = &mut left[node.number() as usize];
            let had = *left > 0;
            *left = left.saturating_sub(1);
            had
        });
        assert_eq!(got, 8);
        assert_eq!(pool.free().values().copied().collect::<Vec<_>>(), [5, 1, 2]);
        assert_eq!(pool.resize(0, |_| true), 0);
    }

    #[test]
    fn pages_in_use_leave_a_pool_that_has_become_too_small_when_they_are_freed() {
        let orders = FallbackOrders::from_machine(
            &nodewise_machine::spec::machine("2x(1c 1G)").unwrap(),
            crate::zonelist::BuiltAt::Boot,
        );
        let nodes = NodeSet::from([0, 1]);
        let mut pool = Pool::new(&nodes);
        assert_eq!(pool.resize(6, |_| true), 6);
        let cpu = NodeId::new(0);
        let touch =
            |pool: &mut Pool| pool.fault(&Policy::DEFAULT, &Weights::new(), 0, cpu, &orders, &nodes).unwrap();
        let had: Vec<NodeId> = (0..4).map(|_| touch(&mut pool)).collect();
        let check = |pool: &Pool, free: [u64; 2], surplus: [u64; 2]| {
            let of = |pages: &BTreeMap<NodeId, u64>| pages.values().copied().collect::<Vec<_>>();
            assert_eq!((of(pool.free()), of(pool.surplus())), (free.to_vec(), surplus.to_vec()));
        };
        assert_eq!(pool.resize(1, |_| true), 1);
        check(&pool, [0, 0], [2, 1]);
        // A larger number takes surplus pages back first.
        assert_eq!(pool.resize(2, |_| true), 2);
        check(&pool, [0, 0], [1, 1]);
        pool.resize(1, |_| true);
        had.into_iter().for_each(|node| pool.release(node));
        check(&pool, [1, 0], [0, 0]);
    }

    #[test]
    fn reserved_pages_leave_a_pool_that_has_become_too_small_with_the_mapping() {
        let nodes = NodeSet::from([0, 1]);
        let mut pool = Pool::new(&nodes);
        pool.resize(4, |_| true);
        pool.reserve(4, &Policy::DEFAULT, &nodes).unwrap();
        pool.resize(1, |_| true);
        assert_eq!(pool.free_on(&nodes), 4);
        pool.unreserve(4);
        assert_eq!((pool.free_on(&nodes), pool.surplus().values().sum::<u64>()), (1, 0));
    }
}
