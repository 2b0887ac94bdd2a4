//! The pool of huge pages of 2 MiB, in bulk: what [`crate::hugetlb`] does page by page.
//!
//! # Source
//! As there: `set_max_huge_pages`, `hugetlb_acct_memory` and `alloc_hugetlb_folio_nodemask` in
//! `mm/hugetlb.c`; 5.15 to at least 7.2. Seen on 6.12 and 6.18.

use nodewise_machine::{NodeId, NodeSet};

use super::Simulation;
use super::cycle::Cycle;
use super::moving::{Move, To};
use super::program::{HUGE, Id, Kind};
use super::run::{At, Held, Queue, Run, cycle_of};
use crate::errno::Errno;
use crate::hugetlb::{cycle, following, reservable};
use crate::memory::{Memory, ZoneState};
use crate::policy::interleave::{Place, Turns};
use crate::policy::path;
use crate::policy::set::Policy;
use crate::walk::{Class, HUGE_ORDER, Request};
use crate::watermark::Watermarks;

/// A pool.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    /// Free pages by zone. Each page of this memory is a huge one, and none is kept back.
    pub free: Memory,
    /// Pages that mappings will have when they are touched.
    reserved: u64,
    grow_next: Option<NodeId>,
    shrink_next: Option<NodeId>,
}

impl Pool {
    /// The empty pool of a machine.
    pub fn of(memory: &Memory) -> Self {
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
        Self { free, reserved: 0, grow_next: first, shrink_next: first }
    }

    fn free_pages(&self) -> u64 {
        self.free.zones().iter().map(|zone| zone.free).sum()
    }

    /// Free pages that nobody has reserved.
    pub fn spare(&self) -> u64 {
        self.free_pages().saturating_sub(self.reserved)
    }

    /// Gives back what was reserved and is not used.
    pub const fn unreserve(&mut self, pages: u64) {
        self.reserved = self.reserved.saturating_sub(pages);
    }
}

impl Simulation {
    /// Writes `vm.nr_hugepages`, on a CPU of a node.
    pub(super) fn resize_pool(&mut self, pages: u64, cpu_node: Option<NodeId>) {
        self.changed_pool = true;
        let now = self.pool.free_pages() + self.pooled_in_use();
        if pages > now {
            self.grow(pages - now, cpu_node.or(self.online.first()));
        } else {
            // Pages in use stay, and so do those that are reserved.
            self.shrink((now - pages).min(self.pool.spare()));
        }
    }

    /// Huge pages of the pool that programs have.
    fn pooled_in_use(&self) -> u64 {
        let pools = self.objects.values().filter(|object| object.kind == Kind::Pool);
        let pages: u64 =
            pools.flat_map(|object| &object.extents).map(|extent| extent.run.count(|_| true)).sum();
        pages / HUGE
    }

    /// Takes huge pages from the nodes in turn, each as long as it has any.
    fn grow(&mut self, mut pages: u64, cpu_node: Option<NodeId>) {
        let Some(cpu_node) = cpu_node else { return };
        let mut nodes = self.memory.nodes();
        while pages > 0 && !nodes.is_empty() {
            for (node, share) in shares(&nodes, self.pool.grow_next, pages) {
                let only = Policy::only(node);
                let mut got = 0;
                for (pages, held) in
                    self.taken(&only, cpu_node, &NodeSet::from_iter([node]), share * HUGE, HUGE_ORDER)
                {
                    got += pages / HUGE;
                    if let At::Zone(node, kind) = held.at {
                        self.pool.free.free(node, kind, pages / HUGE);
                    }
                }
                pages -= got;
                if got > 0 {
                    self.pool.grow_next = following(&self.memory.nodes(), node);
                }
                if got < share {
                    nodes.remove(node);
                }
            }
        }
    }

    /// Gives free pages of the nodes back in turn.
    fn shrink(&mut self, mut pages: u64) {
        let mut nodes = self.memory.nodes();
        while pages > 0 && !nodes.is_empty() {
            for (node, share) in shares(&nodes, self.pool.shrink_next, pages) {
                let got = share.min(self.pool.free.free_of(node));
                self.dissolve(node, got);
                pages -= got;
                if got > 0 {
                    self.pool.shrink_next = following(&self.memory.nodes(), node);
                }
                if got < share {
                    nodes.remove(node);
                }
            }
        }
    }

    /// Makes free pages of the pool ordinary memory.
    fn dissolve(&mut self, node: NodeId, pages: u64) {
        let only = Policy::only(node);
        for (pages, held) in self.taken_from_pool(&only, node, &NodeSet::from_iter([node]), pages * HUGE) {
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
            pages: pages / HUGE,
            order: 0,
            place: Place::File { inode: 0, page: 0 },
            class: Class::User,
        });
        let zones = outcome.zones().into_iter();
        zones.map(|(node, kind, pages)| (pages * HUGE, Held::zone(node, kind, HUGE_ORDER))).collect()
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

    /// Moves so many pages of a run that are the pool's, all of one node before those of the next: where
    /// several nodes' pages go by a policy, which of them gets which place is not told page for page.
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
        let turns = Turns::of(policy.mode, &policy.nodes, &self.weights);
        let by_turns = if go.goes_by_turns() { cycle_of(&turns, HUGE_ORDER) } else { None };
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
            let mut count = joined.count(&run.pages, |own| own == value).min(left);
            left -= count;
            let mut queue = Queue::new();
            for node in way {
                let places = if count > 0 && value.0.node() != Some(node) {
                    self.replaced_in_pool(value.0, node, go.cpu_node, count)
                } else {
                    Vec::new()
                };
                count -= places.iter().map(|(pages, _)| pages).sum::<u64>();
                moved += places.iter().map(|(pages, _)| pages).sum::<u64>();
                queue.extend(places);
            }
            queues.push(queue);
        }
        let class = |own: &(Held, Option<NodeId>)| values.iter().position(|value| value == own);
        (Run::settled(run.pages, &joined, class, |(held, _)| *held, &mut queues), moved)
    }

    /// Moves pages of the pool, all from one zone, to a node: free ones of its pool take their place as long
    /// as not all are reserved, and then new ones, with which the old ones leave the pool.
    fn replaced_in_pool(
        &mut self,
        old: Held,
        node: NodeId,
        cpu_node: NodeId,
        pages: u64,
    ) -> Vec<(u64, Held)> {
        let At::Zone(old_node, old_kind) = old.at else { return Vec::new() };
        let only = Policy::only(node);
        let allowed = NodeSet::from_iter([node]);
        // Each gives a free page for the one it takes, so what is reserved is there all the time.
        let pooled = if self.pool.spare() > 0 { self.pool.free.free_of(node).min(pages / HUGE) } else { 0 };
        let mut places = self.taken_from_pool(&only, cpu_node, &allowed, pooled * HUGE);
        self.pool.free.free(old_node, old_kind, pooled);
        let new = self.taken(&only, cpu_node, &allowed, pages - pooled * HUGE, HUGE_ORDER);
        let count: u64 = new.iter().map(|(pages, _)| pages).sum();
        self.memory.free(old_node, old_kind, count);
        self.changed_pool = true;
        places.extend(new);
        places
    }
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
