//! The pool of huge pages, in bulk: what [`crate::hugetlb`] does page by page.
//!
//! # Source
//! As there: `set_max_huge_pages`, `hugetlb_acct_memory`, `free_huge_folio` and `alloc_hugetlb_folio_nodemask`
//! in `mm/hugetlb.c`; 5.15 to at least 7.2. Seen on 6.12 and 6.18.

use std::collections::BTreeMap;

use nodewise_machine::{NodeId, NodeSet};

use super::Simulation;
use super::cycle::Cycle;
use super::moving::{Move, To};
use super::program::{Id, ObjectKind};
use super::run::{At, Held, Queue, Run, cycle_of};
use crate::errno::Errno;
use crate::hugetlb::{cycle, following, reservable};
use crate::memory::{Memory, ZoneState};
use crate::policy::interleave::{InterleavePosition, Turns};
use crate::policy::path;
use crate::policy::set::Policy;
use crate::walk::{Class, Request};
use crate::watermark::Watermarks;
use crate::zones::ZoneKind;

/// A pool.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    /// Free pages by zone. Each page of this memory is a huge one, and none is kept back.
    pub free: Memory,
    /// Pages that mappings will have when they are touched.
    reserved: u64,
    /// Pages that leave the pool as soon as programs free as many on the node.
    surplus: BTreeMap<NodeId, u64>,
    grow_next: Option<NodeId>,
    shrink_next: Option<NodeId>,
}

/// Which free pages leave a pool.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shrunk {
    Any,
    Surplus,
}

impl Pool {
    /// The empty pool of a machine.
    pub fn empty(memory: &Memory) -> Self {
        let empty = |zone: &ZoneState| ZoneState {
            managed: u64::MAX,
            free: 0,
            marks: Watermarks::default(),
            reserves: [0; 4],
            ..zone.clone()
        };
        let zones = memory.zones().iter().map(empty).collect();
        let free = Memory::new(zones, memory.orders().clone(), memory.release);
        let first = memory.nodes().first();
        Self { free, reserved: 0, surplus: BTreeMap::new(), grow_next: first, shrink_next: first }
    }

    fn free_pages(&self) -> u64 {
        self.free.zones().iter().map(|zone| zone.free).sum()
    }

    /// Free pages that no one has reserved.
    pub fn spare(&self) -> u64 {
        self.free_pages().saturating_sub(self.reserved)
    }

    /// Counts reserved pages that are touched now.
    pub const fn use_reserved(&mut self, pages: u64) {
        self.reserved = self.reserved.saturating_sub(pages);
    }

    fn surplus_of(&self, node: NodeId) -> u64 {
        self.surplus.get(&node).copied().unwrap_or(0)
    }

    /// Takes up to this many pages out of a node's surplus; gives how many.
    fn settle_surplus(&mut self, node: NodeId, pages: u64) -> u64 {
        let settled = pages.min(self.surplus_of(node));
        if let Some(surplus) = self.surplus.get_mut(&node) {
            *surplus -= settled;
        }
        settled
    }
}

impl Simulation {
    /// Writes `vm.nr_hugepages`, on a CPU of a node. Pages in use stay, and so do those that are reserved: as many
    /// become surplus as the pool is too large.
    pub(super) fn resize_pool(&mut self, pages: u64, cpu_node: Option<NodeId>) {
        self.changed_pool = true;
        let in_use = self.pooled_in_use();
        let used: u64 = in_use.values().sum();
        let surplus: u64 = self.pool.surplus.values().sum();
        let mut now = (self.pool.free_pages() + used).saturating_sub(surplus);
        if pages > now {
            now += self.take_back(pages - now);
            self.grow(pages - now, cpu_node.or(self.online.first()));
        } else {
            let least = pages.max(used + self.pool.reserved);
            now -= self.shrink(now.saturating_sub(least), Shrunk::Any);
            self.make_surplus(now.saturating_sub(pages), &in_use);
        }
    }

    /// Huge pages of the pool that programs have, by node.
    fn pooled_in_use(&self) -> BTreeMap<NodeId, u64> {
        let mut in_use = BTreeMap::new();
        let pools = self.objects.values().filter(|object| object.kind == ObjectKind::Pool);
        for (held, pages) in pools.flat_map(|object| &object.extents).flat_map(|extent| extent.run.counts()) {
            if let Some(node) = held.node() {
                *in_use.entry(node).or_default() += pages / self.memory.huge_pages();
            }
        }
        in_use
    }

    /// Makes surplus pages of the nodes ordinary pages of the pool again, in turn; gives how many.
    fn take_back(&mut self, pages: u64) -> u64 {
        let nodes = self.memory.nodes();
        let pool = &mut self.pool;
        let mut next = pool.grow_next;
        let taken = pages.min(pool.surplus.values().sum());
        in_turn(&nodes, &mut next, taken, |node, share| pool.settle_surplus(node, share));
        pool.grow_next = next;
        taken
    }

    /// Makes pages of the nodes surplus, in turn, as many as each has.
    fn make_surplus(&mut self, pages: u64, in_use: &BTreeMap<NodeId, u64>) {
        let nodes = self.memory.nodes();
        let pool = &mut self.pool;
        let mut next = pool.shrink_next;
        in_turn(&nodes, &mut next, pages, |node, share| {
            let all = pool.free.free_of(node) + in_use.get(&node).copied().unwrap_or(0);
            let got = share.min(all.saturating_sub(pool.surplus_of(node)));
            *pool.surplus.entry(node).or_default() += got;
            got
        });
        pool.shrink_next = next;
    }

    /// Gives back what was reserved and is not used. As many free pages leave the pool as it has surplus.
    pub(super) fn unreserve(&mut self, pages: u64) {
        let surplus = |(node, pages): (&NodeId, &u64)| self.pool.free.free_of(*node).min(*pages);
        let surplus: u64 = self.pool.surplus.iter().map(surplus).sum();
        if pages.min(surplus) > 0 {
            self.changed_pool = true;
            self.shrink(pages.min(surplus), Shrunk::Surplus);
        }
        self.pool.reserved = self.pool.reserved.saturating_sub(pages);
    }

    /// Frees huge pages that a program has: where the node has surplus they leave the pool.
    pub(super) fn give_back_to_pool(&mut self, node: NodeId, kind: ZoneKind, pages: u64) {
        let leaving = self.pool.settle_surplus(node, pages);
        self.memory.free(node, kind, leaving * self.memory.huge_pages());
        self.pool.free.free(node, kind, pages - leaving);
        self.changed_pool = true;
    }

    /// Takes huge pages from the nodes in turn, each as long as it has any.
    fn grow(&mut self, pages: u64, cpu_node: Option<NodeId>) {
        let Some(cpu_node) = cpu_node else { return };
        let nodes = self.memory.nodes();
        let mut next = self.pool.grow_next;
        in_turn(&nodes, &mut next, pages, |node, share| {
            let only = Policy::only(node);
            let mut got = 0;
            for (pages, held) in self.taken(
                &only,
                cpu_node,
                &NodeSet::from_iter([node]),
                share.saturating_mul(self.memory.huge_pages()),
                self.memory.huge_order(),
            ) {
                got += pages / self.memory.huge_pages();
                if let At::Zone(node, kind) = held.at {
                    self.pool.free.free(node, kind, pages / self.memory.huge_pages());
                }
            }
            got
        });
        self.pool.grow_next = next;
    }

    /// Gives free pages of such nodes back in turn, surplus ones where only they are such; gives how many.
    fn shrink(&mut self, pages: u64, of: Shrunk) -> u64 {
        let nodes = self.memory.nodes();
        let mut next = self.pool.shrink_next;
        let left = in_turn(&nodes, &mut next, pages, |node, share| {
            let mut got = share.min(self.pool.free.free_of(node));
            if of == Shrunk::Surplus {
                got = self.pool.settle_surplus(node, got);
            }
            self.dissolve(node, got);
            got
        });
        self.pool.shrink_next = next;
        pages - left
    }

    /// Makes free pages of the pool ordinary memory.
    fn dissolve(&mut self, node: NodeId, pages: u64) {
        let only = Policy::only(node);
        for (pages, held) in
            self.taken_from_pool(&only, node, &NodeSet::from_iter([node]), pages * self.memory.huge_pages())
        {
            if let At::Zone(node, kind) = held.at {
                self.memory.free(node, kind, pages);
            }
        }
    }

    /// Takes free pages of the pool, all that one policy finds.
    fn taken_from_pool(
        &mut self,
        policy: &Policy,
        cpu_node: NodeId,
        allowed: &NodeSet,
        pages: u64,
    ) -> Vec<(u64, Held)> {
        let outcome = self.pool.free.allocate(&Request {
            policy,
            weights: &self.weights,
            cpu_node,
            allowed,
            pages: pages / self.memory.huge_pages(),
            order: 0,
            place: InterleavePosition::File { inode: 0, page: 0 },
            class: Class::User,
        });
        let zones = outcome.zones().into_iter();
        zones
            .map(|(node, kind, pages)| {
                (pages * self.memory.huge_pages(), Held::zone(node, kind, self.memory.huge_order()))
            })
            .collect()
    }

    /// Reserves pages for a mapping, as `mmap(2)` does.
    pub(super) fn reserve(&mut self, id: Id, pages: u64) -> Result<(), Errno> {
        let program = &self.programs[&id];
        let nodes = reservable(&program.policy, &program.allowed);
        let free: u64 = nodes.iter().map(|node| self.pool.free.free_of(node)).sum();
        if free < pages || self.pool.spare() < pages {
            return Err(Errno::Enomem);
        }
        self.pool.reserved += pages;
        Ok(())
    }

    /// Moves this many pages of a run that are the pool's, all of one node before those of the next: where
    /// several nodes' pages go by a policy, the model does not say page for page which of them gets which
    /// place.
    pub(super) fn moved_in_pool(
        &mut self,
        run: Run,
        go: &Move<'_>,
        wanted: u64,
        is: &impl Fn(&Held) -> bool,
    ) -> (Vec<Run>, u64) {
        let policy = match &go.to {
            To::Policy(policy) => policy.clone(),
            To::Node(node) => Policy::only(*node),
            To::Swap => return (vec![run], 0),
        };
        let turns = Turns::new(policy.mode, &policy.nodes, &self.weights);
        let by_turns = if go.goes_by_turns() { cycle_of(&turns, self.memory.huge_order()) } else { None };
        let cycle = by_turns.map(|cycle| cycle.map(|node| Some(*node)));
        let cycle = cycle.unwrap_or_else(|| Cycle::one(None));
        let Some(joined) = run.held.joined(&cycle) else { return (vec![run], 0) };
        let values: Vec<(Held, Option<NodeId>)> =
            joined.values().filter(|(held, _)| is(held)).copied().collect();
        let origin = policy.home.unwrap_or(go.cpu_node);
        let (mut queues, mut left) = (Vec::new(), wanted);
        let mut moved = 0;
        for value in &values {
            let way = path(&policy.effective(), origin, value.1, self.memory.orders(), go.allowed).order;
            let count = joined.count(&run.pages, |own| own == value).min(left);
            left -= count;
            let places = self.replaced_in_pool(value.0, &way, go.cpu_node, count / self.memory.huge_pages());
            moved += places.iter().map(|(pages, _)| pages).sum::<u64>();
            queues.push(Queue::from(places));
        }
        let class = |own: &(Held, Option<NodeId>)| values.iter().position(|value| value == own);
        (Run::settled(run.pages, &joined, class, |(held, _)| *held, &mut queues), moved)
    }

    /// Moves huge pages of the pool, all from one zone, one after the other to nodes in their order: a free page of
    /// the pool takes the place of each as long as not all are reserved, and the old one is free for the next.
    /// Then new pages do, with which the old ones leave the pool. Gives the places of those that leave the node.
    fn replaced_in_pool(
        &mut self,
        old: Held,
        way: &[NodeId],
        cpu_node: NodeId,
        mut pages: u64,
    ) -> Vec<(u64, Held)> {
        let At::Zone(own, kind) = old.at else { return Vec::new() };
        self.changed_pool = true;
        let mut places = Vec::new();
        while pages > 0 && self.pool.spare() > 0 {
            let Some(node) = way.iter().copied().find(|node| self.pool.free.free_of(*node) > 0) else {
                break;
            };
            let free = self.pool.free.free_of(node).min(pages);
            let leaving = self.pool.surplus_of(own);
            let count = if leaving > 0 {
                // Each old page leaves the pool, which so has one less to spare.
                free.min(leaving).min(self.pool.spare())
            } else if node == own {
                // A page for another of the same node, and so on to the last.
                return places;
            } else if way.iter().take_while(|other| **other != node).any(|other| *other == own) {
                // The node of the first old page comes before this one.
                1
            } else {
                free
            };
            let only = Policy::only(node);
            let taken = self.taken_from_pool(
                &only,
                cpu_node,
                &NodeSet::from_iter([node]),
                count * self.memory.huge_pages(),
            );
            self.give_back_to_pool(own, kind, count);
            places.extend(taken.into_iter().filter(|_| node != own));
            pages -= count;
        }
        places.extend(self.replaced_by_new((own, kind), way, cpu_node, pages));
        places
    }

    /// The same with new pages alone: these leave the pool when they are freed, if the old ones were to.
    fn replaced_by_new(
        &mut self,
        (own, kind): (NodeId, ZoneKind),
        way: &[NodeId],
        cpu_node: NodeId,
        mut pages: u64,
    ) -> Vec<(u64, Held)> {
        let mut places = Vec::new();
        for node in way {
            if pages == 0 || *node == own && self.memory.can_give(own, self.memory.huge_order(), Class::User)
            {
                // In place: each new page makes room for the next.
                break;
            }
            let only = Policy::only(*node);
            let new = self.taken(
                &only,
                cpu_node,
                &NodeSet::from_iter([*node]),
                pages * self.memory.huge_pages(),
                self.memory.huge_order(),
            );
            let count: u64 = new.iter().map(|(pages, _)| pages / self.memory.huge_pages()).sum();
            self.memory.free(own, kind, count * self.memory.huge_pages());
            let surplus = self.pool.settle_surplus(own, count);
            *self.pool.surplus.entry(*node).or_default() += surplus;
            pages -= count;
            places.extend(new);
        }
        places
    }
}

/// Hands pages to nodes in turn, each as long as it takes all of its share: `take` says how many it takes. The turn is
/// then behind the last that took any. Gives how many pages are left.
fn in_turn(
    all: &NodeSet,
    next: &mut Option<NodeId>,
    mut pages: u64,
    mut take: impl FnMut(NodeId, u64) -> u64,
) -> u64 {
    let mut nodes = all.clone();
    while pages > 0 && !nodes.is_empty() {
        for (node, share) in shares(&nodes, *next, pages) {
            let got = take(node, share);
            pages -= got;
            if got > 0 {
                *next = following(all, node);
            }
            if got < share {
                nodes.remove(node);
            }
        }
    }
    pages
}

/// How many pages each node gives in the rounds that all can go, from one node on.
fn shares(nodes: &NodeSet, first: Option<NodeId>, pages: u64) -> Vec<(NodeId, u64)> {
    let count = nodes.len() as u64;
    let cycle = cycle(nodes, first);
    match pages / count.max(1) {
        0 => cycle.take(pages as usize).map(|node| (node, 1)).collect(),
        whole => cycle.map(|node| (node, whole)).collect(),
    }
}
