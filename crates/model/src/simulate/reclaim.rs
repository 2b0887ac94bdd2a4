//! The effect of the kernel when a request finds no page: demotion, swap, and in the end the OOM killer.
//!
//! # Source
//! `shrink_folio_list` in `mm/vmscan.c`, `out_of_memory` and `oom_badness` in
//! `mm/oom_kill.c`; 5.15 to at least 7.2. Seen on 6.12 and 6.18: that a bound program is killed though other
//! nodes are empty. Which of several programs is killed is [`oom::choose`]'s.
//!
//! The kernel reclaims ahead and more than is wanted; here it is as much as is wanted, of the pages that were
//! touched longest ago. Caches go first: those that the machine has when a scenario begins, as far as the kernel's own estimate
//! counts them ([`caches`](crate::caches)), then those of files that programs have used (`simulate/cache.rs`). With demotion the
//! kernel demotes page cache, too; here it is dropped.

use std::collections::{BTreeMap, BTreeSet};

use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::{NodeId, NodeSet, PolicyMode};

use super::Simulation;
use super::extents::Extent;
use super::limits::{GroupId, Protection};
use super::moving::{Move, To};
use super::program::{Id, ObjectId, ObjectKind, Program};
use super::run::Held;
use super::step::{Cause, Killed, Step};
use crate::caches::Interval;
use crate::oom::{self, Bound, OomCandidate, OomChoice, OomLimit, OomRequest, OomSettings};
use crate::policy::interleave::InterleavePosition;
use crate::policy::set::Policy;
use crate::walk::{Class, Constraint, OutOfMemory, Request, Route};

/// A program goes on no more: it was killed, or waits for a page that no one will give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stopped;

impl Simulation {
    /// Makes room for a program that finds none: this many pages, as far as the kernel finds them.
    pub(super) fn relieve(
        &mut self,
        id: Id,
        end: &OutOfMemory,
        pages: u64,
        step: &mut Step,
    ) -> Result<(), Stopped> {
        let from = self.programs.get(&id).map(|program| program.cpu_node);
        if self.reclaim((&end.inside, from), pages, step) > 0 {
            return Ok(());
        }
        let Some((victim, next)) = self.victim(id, end) else {
            step.missing = Some(end.clone());
            return Err(Stopped);
        };
        let next = next.and_then(|next| self.programs.get(&next)).map(|next| next.name.clone());
        self.kill_with_group(victim, Cause::OutOfMemory(end.clone()), None, next, step);
        if self.programs.contains_key(&id) { Ok(()) } else { Err(Stopped) }
    }

    /// Frees pages of some nodes, those first that were touched longest ago; gives how many. Caches go first, in the order in which a
    /// CPU's node looks for pages: kswapd frees them on all nodes, and the first of these has what is asked for.
    pub(super) fn reclaim(
        &mut self,
        (inside, from): (&NodeSet, Option<NodeId>),
        pages: u64,
        step: &mut Step,
    ) -> u64 {
        let order = from.map(|from| self.memory.orders().from(from).to_vec()).unwrap_or_default();
        let others = inside.iter().filter(|node| !order.contains(node));
        let nodes: Vec<NodeId> =
            order.iter().copied().filter(|node| inside.contains(*node)).chain(others).collect();
        let mut freed = 0;
        for node in nodes {
            freed += self.drop_caches(node, pages - freed, step);
            if !self.cached.is_empty() {
                let dropped = self.drop_cached(node, None, pages - freed);
                freed += dropped;
                if dropped > 0 {
                    step.drop_caches(node, dropped);
                }
            }
        }
        if freed == 0 && self.demotion {
            for node in inside {
                freed += self.demote(node, pages.saturating_sub(freed), step);
            }
        }
        if freed == 0 {
            let out = self.swap_out(inside, None, pages);
            out.iter().for_each(|(node, count)| step.swap(*node, *count));
            freed = out.values().sum();
        }
        freed
    }

    /// Gives up this many pages of the caches that a node had in the beginning; gives how many.
    pub(super) fn drop_caches(&mut self, node: NodeId, pages: u64, step: &mut Step) -> u64 {
        let Some(cache) = self.caches.get_mut(&node) else { return 0 };
        let wanted = pages.min(*cache);
        let mut left = wanted;
        for zone in self.memory.zones.iter_mut().rev().filter(|zone| zone.node == node) {
            let part = left.min(zone.managed.saturating_sub(zone.free));
            zone.free += part;
            left -= part;
        }
        let dropped = wanted - left;
        *cache -= dropped;
        if dropped > 0 {
            step.drop_caches(node, dropped);
        }
        dropped
    }

    /// Moves this many pages of a node to slower memory; gives how many.
    pub(super) fn demote(&mut self, node: NodeId, pages: u64, step: &mut Step) -> u64 {
        let Some(tiers) = self.tiers.clone().filter(|_| pages > 0) else { return 0 };
        let everywhere = self.memory.nodes();
        let mut left = pages;
        for (since, object) in self.oldest(&NodeSet::from_iter([node]), is_programs) {
            for holder in self.holders(object, since) {
                if left == 0 {
                    return pages;
                }
                // Pages of several programs are the first one's.
                let own = |extent: &Extent| extent.since == since && extent.holders.first() == holder;
                let own = self.objects.get(&object).map(|object| object.extents.keys_of(own));
                let owner = holder.and_then(|holder| self.programs.get(&holder));
                let owner = owner.map_or(&everywhere, |program| &program.allowed).clone();
                self.rearrange(object, own.unwrap_or_default(), |memory, placed| {
                    let before = placed.clone();
                    let count = memory.demote(placed, node, left, &owner, &tiers);
                    left -= count;
                    for ((to, kind), pages) in placed.iter().filter(|((to, _), _)| *to != node) {
                        let came = pages - before.get(&(*to, *kind)).copied().unwrap_or(0);
                        if came > 0 {
                            step.demote(node, *to, came);
                        }
                    }
                });
            }
        }
        pages - left
    }

    /// The first holders of an object's pages that were touched in a step; `None` for pages of no one.
    fn holders(&self, object: ObjectId, since: u64) -> BTreeSet<Option<Id>> {
        let extents = self.objects.get(&object).into_iter().flat_map(|object| &object.extents);
        let touched = extents.filter(|extent| extent.since == since);
        touched.map(|extent| extent.holders.first()).collect_set()
    }

    /// Moves this many pages of some nodes to the disk, of all programs or of those of a control group; gives how many of
    /// each node. Groups are spared as far as they are protected, below `memory.low` until nothing else is left.
    pub(super) fn swap_out(
        &mut self,
        inside: &NodeSet,
        within: Option<GroupId>,
        pages: u64,
    ) -> BTreeMap<NodeId, u64> {
        let mut out = BTreeMap::new();
        for respected in [Protection::Low, Protection::Min] {
            self.swap_out_beyond((inside, within), respected, pages, &mut out);
            if !out.is_empty() {
                break;
            }
        }
        out
    }

    fn swap_out_beyond(
        &mut self,
        (inside, within): (&NodeSet, Option<GroupId>),
        respected: Protection,
        pages: u64,
        out: &mut BTreeMap<NodeId, u64>,
    ) {
        let everywhere = self.memory.nodes();
        let mut left = pages;
        for (since, object) in self.oldest(inside, is_programs) {
            for (node, charged) in self.charges(inside, within, (since, object)) {
                let most = left.min(self.swap_left).min(self.swappable(charged, within, respected));
                if most == 0 {
                    continue;
                }
                let mut go = Move { cpu_node: node, allowed: &everywhere, to: To::Swap, most };
                let old = |extent: &Extent| extent.since == since && extent.charged == charged;
                let old = self.objects.get(&object).map(|object| object.extents.keys_of(old));
                let old = old.unwrap_or_default();
                let count = self.relocate_extents(object, &mut go, old, |held| held.node() == Some(node));
                if count > 0 {
                    *out.entry(node).or_default() += count;
                    left = left.saturating_sub(count);
                }
            }
            if left.min(self.swap_left) == 0 {
                break;
            }
        }
    }

    /// The nodes that pages of an object may be on, each with every group that such pages are charged to.
    pub(super) fn charges(
        &self,
        inside: &NodeSet,
        within: Option<GroupId>,
        (since, object): (u64, ObjectId),
    ) -> Vec<(NodeId, Option<GroupId>)> {
        let extents = self.objects.get(&object).into_iter().flat_map(|object| &object.extents);
        let touched = extents.filter(|extent| extent.since == since).map(|extent| extent.charged);
        let groups: BTreeSet<Option<GroupId>> =
            touched.filter(|charged| self.is_below(*charged, within)).collect_set();
        inside.iter().flat_map(|node| groups.iter().map(move |group| (node, *group))).collect()
    }

    /// Who has pages of some kinds on some nodes, by when they were touched.
    pub(super) fn oldest(&self, inside: &NodeSet, is: fn(ObjectKind) -> bool) -> Vec<(u64, ObjectId)> {
        let on = |held: &Held| held.node().is_some_and(|node| inside.contains(node));
        let mut oldest = Vec::new();
        for (number, object) in self.objects.iter().filter(|(_, object)| is(object.kind)) {
            let there = object.extents.iter().filter(|extent| extent.run.count(on) > 0);
            oldest.extend(there.map(|extent| (extent.since, *number)));
        }
        oldest.sort_unstable();
        oldest.dedup();
        oldest
    }

    /// Whom the OOM killer chooses where a program finds no page, and whom it would choose next.
    fn victim(&self, asking: Id, end: &OutOfMemory) -> Option<(Id, Option<Id>)> {
        let ids: Vec<Id> = self.programs.keys().copied().collect();
        let candidates: Vec<OomCandidate> = ids.iter().map(|id| self.candidate(*id)).collect();
        let allowed = &self.programs.get(&asking)?.allowed;
        let limit = match end.constraint {
            Constraint::MemoryPolicy => OomLimit::Policy(end.inside.clone()),
            Constraint::None | Constraint::Cpuset => OomLimit::Allowed(allowed.clone()),
        };
        let is_confined = end.constraint == Constraint::Cpuset;
        let counts = |node| match &limit {
            OomLimit::Policy(nodes) => nodes.contains(node),
            OomLimit::Allowed(nodes) => !is_confined || nodes.contains(node),
            OomLimit::Group => false,
        };
        let zones = self.memory.zones.iter().filter(|zone| counts(zone.node));
        let total = zones.fold(self.swap, |sum, zone| sum.saturating_add(zone.managed));
        let asking = ids.iter().position(|id| *id == asking);
        let request = OomRequest { limit, is_confined, total, asking, settings: OomSettings::default() };
        let OomChoice::Kills(worst) = oom::choose(&candidates, &request) else { return None };
        let victim = *worst.first()?;
        let next = oom::next(&candidates, &request, &[victim]);
        Some((ids[victim], next.map(|at| ids[at])))
    }

    /// A program as the OOM killer sees it: its pages in memory and on the disk, whoever else has them, and the page tables
    /// that they fill. Pages of pools do not count.
    pub(super) fn candidate(&self, id: Id) -> OomCandidate {
        let program = &self.programs[&id];
        let is_counted =
            |object: &ObjectId| self.objects.get(object).is_some_and(|own| own.kind != ObjectKind::Pool);
        let counted = program.regions.values().filter(|region| is_counted(&region.object));
        let pages: u64 = counted.map(|region| region.sums.pages() + region.sums.swapped).sum();
        OomCandidate {
            // A table of 64-bit entries fills a page.
            size: Interval::exactly(pages + pages.div_ceil(self.memory.page_bytes() / 8)),
            adjustment: program.adjustment,
            bound: bound(program),
            allowed: Some(program.allowed.clone()),
        }
    }

    /// Kills a program: what only it has is free.
    pub(super) fn kill(&mut self, id: Id, cause: Cause, step: &mut Step) {
        if !self.programs.contains_key(&id) {
            return;
        }
        if cause != Cause::NoHugePage {
            self.count_killed(id);
        }
        let program = &self.programs[&id];
        let (name, adjustment) = (program.name.clone(), program.adjustment);
        let threads: Vec<String> = program.threads.keys().cloned().collect();
        let had = self.placement(id).nodes.into_iter().collect();
        let free = self.memory.nodes().iter().map(|node| (node, self.memory.free_of(node))).collect();
        self.remove(id);
        for gone in threads.into_iter().chain([name.clone()]) {
            self.gone.insert(gone, super::Skipped::Killed);
        }
        step.killed.push(Killed { program: name, cause, had, free, adjustment, next: None });
    }

    /// The report of a failed request for small pages.
    pub(super) fn end_of(&self, id: Id, policy: &Policy, pages: u64) -> OutOfMemory {
        self.route_of(id, policy).out_of_memory(pages)
    }

    /// The way of a program's requests under a policy.
    pub(super) fn route_of(&self, id: Id, policy: &Policy) -> Route {
        let program = &self.programs[&id];
        let request = Request {
            policy,
            weights: &self.weights,
            cpu_node: program.cpu_node,
            allowed: &program.allowed,
            pages: 0,
            order: 0,
            place: InterleavePosition::File { inode: 0, page: 0 },
            class: Class::User,
        };
        self.memory.route(&request)
    }
}

/// Whether memory is of programs, and can go elsewhere: pages of the pool stay where they are.
const fn is_programs(kind: ObjectKind) -> bool {
    matches!(kind, ObjectKind::Private | ObjectKind::File)
}

/// The nodes that a program is bound to: a thread that is not bound may have memory anywhere (`oom_cpuset_eligible`).
fn bound(program: &Program) -> Bound {
    let threads = program.threads.values().map(|thread| &thread.policy);
    let mut nodes = NodeSet::default();
    for policy in threads.chain([&program.policy]) {
        if policy.mode != PolicyMode::Bind {
            return Bound::Nowhere;
        }
        nodes = nodes.union(&policy.nodes);
    }
    Bound::To(nodes)
}
