//! Pages of a program that move to another node: after its cpuset, by `migrate_pages(2)`, by
//! `move_pages(2)`, and after its CPU.

use std::ops::Range;

use nodewise_machine::{NodeId, NodeSet};

use super::Task;
use super::page::{Home, Page, Size};
use crate::balancing::{Balanced, Balancing, User};
use crate::errno::Errno;
use crate::memory::Memory;
use crate::migrate;
use crate::policy::set::Policy;
use crate::release::Change;
use crate::tier::Tiers;

impl Task {
    /// `cpuset.mems` of version 2 of the cgroups: policies follow, and so do pages.
    ///
    /// # Source
    /// `update_tasks_nodemask`, which goes through threads, not programs: the memory that threads share
    /// is moved once for each of them, from the old nodes to the new ones every time. A page that the
    /// first move brings to a node of the old set is moved on by the second. A set that is in force already
    /// is not looked at: no policy follows. Both seen on 6.12.
    pub fn restrict(&mut self, allowed: &NodeSet, memory: &mut Memory) {
        let allowed = allowed.intersection(&self.around.with_memory);
        if allowed == self.allowed {
            return;
        }
        let before = std::mem::replace(&mut self.allowed, allowed);
        self.rebind_threads();
        for policy in self.pages.values_mut().filter_map(Page::of_mapping_mut) {
            policy.rebind(&self.allowed);
        }
        let plan = migrate::moves(&before, &self.allowed);
        // A plan brings every page to rest in as many rounds as it has moves.
        for _ in 0..self.threads.min(plan.len() as u32) {
            self.move_along(&plan, memory);
        }
    }

    /// `migrate_pages(2)` of this program on itself, with `CAP_SYS_NICE`.
    ///
    /// # Errors
    /// `EINVAL` of [`migrate::check_migration`].
    pub fn migrate_pages(&mut self, old: &NodeSet, new: &NodeSet, memory: &mut Memory) -> Result<(), Errno> {
        migrate::check_migration(new, &self.allowed)?;
        let plan = migrate::moves(old, &new.intersection(&self.allowed));
        self.move_along(&plan, memory);
        Ok(())
    }

    /// Move after move, each for all pages that its first node then has: those that find no room there stay
    /// for the moves behind it.
    fn move_along(&mut self, plan: &[(NodeId, NodeId)], memory: &mut Memory) {
        for (from, to) in plan {
            for (page, (node, _)) in self.present(0..u64::MAX) {
                if node == *from {
                    self.send(page, *to, memory);
                }
            }
        }
    }

    /// `move_pages(2)` of a page of this program. A page that was not touched stays so, and one of a file
    /// that only others have touched stays where it is: it is not mapped here (`ENOENT`, 6.12 and 6.18).
    ///
    /// # Errors
    /// Those of [`migrate::check_move`].
    pub fn move_page(&mut self, page: u64, node: NodeId, memory: &mut Memory) -> Result<(), Errno> {
        migrate::check_move(node, &self.around.with_memory, &self.allowed)?;
        if self.node_of(page).is_none() {
            return Ok(());
        }
        let is_part = |page: &Page| page.size == Size::Part && self.around.order(page.size) == 0;
        let parts: Vec<u64> = self
            .pages
            .range(self.around.block_of(page))
            .filter(|(_, page)| is_part(page))
            .map(|(page, _)| *page)
            .collect();
        // What is left of a huge page goes together, whichever part of it was named.
        for page in if parts.contains(&page) { parts } else { vec![page] } {
            self.send(page, node, memory);
        }
        Ok(())
    }

    /// Automatic balancing: pages follow this program's CPU, each as its policy lets it, while there is room
    /// for it. Huge pages move as one. `is_hot` is that of [`User`].
    pub fn balance(
        &mut self,
        is_hot: bool,
        balancing: Balancing,
        tiers: &Tiers,
        memory: &mut Memory,
    ) -> Balanced {
        let mut balanced = Balanced::default();
        for (page, (node, _)) in self.present(0..u64::MAX) {
            let order = self.order_at(page);
            let way = self.policy_of(page).and_then(|policy| {
                let user = User { policy, cpu_node: self.cpu_node, allowed: &self.allowed, is_hot };
                memory.way_of(node, &user, balancing, tiers)
            });
            let Some(way) = way.filter(|way| memory.has_room_for(*way, order)) else { continue };
            self.send(page, way.to, memory);
            if self.node_of(page) == Some(way.to) {
                balanced.add(way, 1 << order);
            }
        }
        balanced
    }

    /// Moves a page to a node and to no other (`__GFP_THISNODE`); where that has none left it stays.
    fn send(&mut self, page: u64, node: NodeId, memory: &mut Memory) {
        let Some(home) = self.pages.get(&page).and_then(|page| page.home) else { return };
        if home.0 == node {
            return;
        }
        if let Some(target) = self.allocate(&Policy::only(node), page, self.order_at(page), memory) {
            self.settle(page, home, target, memory);
        }
    }

    /// Puts a page, or the huge page that it is part of, into another zone.
    pub(super) fn settle(&mut self, page: u64, old: Home, new: Home, memory: &mut Memory) {
        let release = self.around.release;
        let Some(size) = self.pages.get(&page).map(|page| page.size) else { return };
        let order = self.around.order(size);
        let whole = order > 0;
        let pages = if whole { self.around.block_of(page) } else { page..page + 1 };
        let mut count = 0;
        for (_, page) in self.pages.range_mut(pages).filter(|(_, page)| page.size == size) {
            count += 1;
            page.home = Some(new);
            if size == Size::Part && !whole {
                page.size = Size::Small;
                if release.has(Change::ZerosDropped) && !page.written {
                    page.home = None;
                    memory.free(new.0, new.1, 1);
                }
            }
        }
        memory.free(old.0, old.1, count);
        // Parts of the old page that no one has any more were given back before.
        memory.free(new.0, new.1, (1 << order) - count);
    }

    /// The order of the page that a page is part of, as far as it moves as one.
    pub(super) fn order_at(&self, page: u64) -> u32 {
        self.pages.get(&page).map_or(0, |page| self.around.order(page.size))
    }

    /// Pages that are there, each with its zone; of what moves as one the first.
    pub(super) fn present(&self, pages: Range<u64>) -> Vec<(u64, Home)> {
        let mut there: Vec<(u64, Home)> = Vec::new();
        let mut last = None;
        for (page, is) in self.pages.range(pages).filter(|(_, page)| page.mapped) {
            let whole = Some(self.around.block_of(*page).start).filter(|_| self.around.order(is.size) > 0);
            if whole.is_none() || whole != last {
                there.extend(is.home.map(|home| (*page, home)));
                last = whole.or(last);
            }
        }
        there
    }
}
