//! Pages that are there and go elsewhere, as many at once as are alike.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use nodewise_machine::{NodeId, NodeSet, PolicyMode};

use super::Simulation;
use super::extents::{Extent, Key};
use super::limits::Charged;
use super::placement::{places_of, shift};
use super::program::{Id, ObjectId, ObjectKind};
use super::run::{At, Held, Queue, Run, cycle_of};
use crate::memory::{Memory, Placed};
use crate::policy::interleave::{InterleavePosition, Turns};
use crate::policy::set::Policy;
use crate::walk::{Class, Outcome, Request, Share, Stretch};
use crate::zones::ZoneKind;

/// Where pages are to go.
#[derive(Clone, Debug)]
pub(super) enum To {
    /// To a node and to no other (`__GFP_THISNODE`).
    Node(NodeId),
    /// Where new pages of a policy would come from.
    Policy(Policy),
    Swap,
}

/// Pages that are to go somewhere.
pub(super) struct Move<'a> {
    /// The node of the CPU that does it.
    pub cpu_node: NodeId,
    /// The nodes that may be used.
    pub allowed: &'a NodeSet,
    pub to: To,
    /// At most this many pages of 4 KiB; huge pages are whole.
    pub most: u64,
}

impl Move<'_> {
    /// Whether several nodes take turns.
    pub fn goes_by_turns(&self) -> bool {
        let by_turns = |mode| matches!(mode, PolicyMode::Interleave | PolicyMode::WeightedInterleave);
        matches!(&self.to, To::Policy(policy) if by_turns(policy.mode) && policy.nodes.len() > 1)
    }
}

impl Simulation {
    /// Moves such pages of a program inside a range of an object; `all` are those that others have, too.
    /// Gives how many were moved.
    pub(super) fn relocate(
        &mut self,
        (id, all): (Id, bool),
        object: ObjectId,
        pages: &Range<u64>,
        go: &mut Move<'_>,
        is: impl Fn(&Held) -> bool,
    ) -> u64 {
        self.carve(object, pages);
        let Some(found) = self.objects.get_mut(&object) else { return 0 };
        let keys = found.movable((id, all), pages, &self.family);
        self.relocate_extents(object, go, keys, is)
    }

    /// Lets a rule of the model move pages of some extents of an object: it is given how many are in each
    /// zone, and changes that. Gives what the rule says of each extent.
    pub(super) fn rearrange<T>(
        &mut self,
        object: ObjectId,
        keys: Vec<Key>,
        mut rule: impl FnMut(&mut Memory, &mut Placed) -> T,
    ) -> Vec<T> {
        let mut told = Vec::new();
        let Some(found) = self.objects.get_mut(&object) else { return told };
        found.extents.update(&keys, &self.family);
        let mut pieces = Vec::new();
        let mut changed = BTreeSet::new();
        for key in keys {
            let Some(extent) = found.extents.get(key) else { continue };
            let before = placed(&extent.run);
            let mut after = before.clone();
            told.push(rule(&mut self.memory, &mut after));
            if before == after {
                continue;
            }
            let Some(extent) = found.extents.take(key) else { continue };
            let (sources, mut queues) = exchanged(&before, &after);
            let class =
                |held: &Held| sources.iter().position(|source| At::Zone(source.0, source.1) == held.at);
            let Extent { run, holders, charged, since, maker } = extent;
            let old = places_of([&run]);
            let runs = Run::settled(run.pages, &run.held, class, |held| *held, &mut queues);
            let mapped = (object, &found.mappers);
            shift(&mut self.programs, &holders, mapped, (&old, &places_of(&runs)));
            changed.extend(holders.iter(&found.mappers));
            let extent = |run| Extent { run, holders: holders.clone(), charged, since, maker };
            pieces.push((key, runs.into_iter().map(extent).collect()));
        }
        let is_changed = !pieces.is_empty();
        found.extents.put_pieces(pieces);
        if found.kind == ObjectKind::File && is_changed {
            self.note_file(object);
        }
        changed.into_iter().for_each(|holder| self.note_program(holder));
        told
    }

    /// Moves such pages of some extents of an object.
    pub(super) fn relocate_extents(
        &mut self,
        object: ObjectId,
        go: &mut Move<'_>,
        keys: Vec<Key>,
        is: impl Fn(&Held) -> bool,
    ) -> u64 {
        let Some(kind) = self.objects.get(&object).map(|found| found.kind) else { return 0 };
        let mut moved = 0;
        let mut pieces = Vec::new();
        // The pages of a mapping go in the order of their addresses.
        for key in keys {
            let Some(found) = self.objects.get_mut(&object) else { break };
            let wanted = found.extents.get(key).map_or(0, |extent| extent.run.count(&is).min(go.most));
            if wanted == 0 {
                continue;
            }
            found.extents.update(&[key], &self.family);
            let Some(extent) = found.extents.take(key) else { continue };
            let Extent { run, holders, charged, since, maker } = extent;
            let group = charged.filter(|_| kind != ObjectKind::Pool);
            let before = group.map(|_| Charged::from_runs([&run])).unwrap_or_default();
            let old = places_of([&run]);
            let (runs, count) = self.moved(kind, run, go, &is);
            if let Some(group) = group {
                self.recharge(group, before, Charged::from_runs(&runs));
            }
            moved += count;
            go.most = go.most.saturating_sub(count);
            if let Some(found) = self.objects.get(&object).filter(|_| count > 0) {
                let having: Vec<Id> = holders.iter(&found.mappers).collect();
                let mapped = (object, &found.mappers);
                shift(&mut self.programs, &holders, mapped, (&old, &places_of(&runs)));
                having.into_iter().for_each(|holder| self.note_program(holder));
            }
            let extent = |run| Extent { run, holders: holders.clone(), charged, since, maker };
            pieces.push((key, runs.into_iter().map(extent).collect()));
        }
        if moved > 0 && kind == ObjectKind::File {
            self.note_file(object);
        }
        if let Some(found) = self.objects.get_mut(&object) {
            found.extents.put_pieces(pieces);
        }
        moved
    }

    /// Moves such pages of a run, small and huge ones.
    fn moved(
        &mut self,
        kind: ObjectKind,
        run: Run,
        go: &Move<'_>,
        is: &impl Fn(&Held) -> bool,
    ) -> (Vec<Run>, u64) {
        // Huge pages are whole: these may be more than are wanted.
        let mut moved = 0;
        let mut runs = vec![run];
        for order in [0, self.memory.huge_order()] {
            let mut next = Vec::with_capacity(runs.len());
            for run in runs {
                let own = |held: &Held| held.order == order && is(held);
                let left = go.most.saturating_sub(moved);
                let wanted = run.count(own).min(left.next_multiple_of(1 << order));
                if wanted == 0 {
                    next.push(run);
                    continue;
                }
                let (pieces, count) = match kind {
                    ObjectKind::Pool => self.moved_in_pool(run, go, wanted, &own),
                    ObjectKind::Private | ObjectKind::File | ObjectKind::Cached => {
                        self.moved_of_order(run, go, (wanted, order), &own)
                    }
                };
                moved += count;
                next.extend(pieces);
            }
            runs = next;
        }
        (runs, moved)
    }

    /// Moves this many such pages of a run, all of one order.
    fn moved_of_order(
        &mut self,
        run: Run,
        go: &Move<'_>,
        (wanted, order): (u64, u32),
        is: &impl Fn(&Held) -> bool,
    ) -> (Vec<Run>, u64) {
        let mut before = run.counts();
        if let (To::Policy(policy), true) = (&go.to, go.goes_by_turns()) {
            let turns = Turns::new(policy.mode, &policy.nodes, &self.weights);
            let joined = cycle_of(&turns, order).and_then(|cycle| run.held.joined(&cycle));
            let Some(joined) = joined else { return self.moved_one_by_one(&run, go, (wanted, order), is) };
            let nodes: Vec<NodeId> = turns.nodes().iter().map(|(node, _)| *node).collect();
            let mut left = wanted;
            let mut queues: Vec<Queue> = Vec::with_capacity(nodes.len());
            for node in &nodes {
                let count = joined.count(&run.pages, |(held, turn)| is(held) && turn == node).min(left);
                left -= count;
                queues.push(self.places_of_turn(go, *node, count, order));
            }
            let class = |(held, turn): &(Held, NodeId)| {
                nodes.iter().position(|node| node == turn).filter(|_| is(held))
            };
            let taken = noted(&queues, &mut before);
            let runs = Run::settled(run.pages, &joined, class, |(held, _)| *held, &mut queues);
            return self.settle_accounts(before, runs, taken);
        }
        let mut queues = [self.places(go, wanted, order)];
        let taken = noted(&queues, &mut before);
        let class = |held: &Held| is(held).then_some(0);
        let runs = Run::settled(run.pages, &run.held, class, |held| *held, &mut queues);
        self.settle_accounts(before, runs, taken)
    }

    /// The same for a run whose rounds do not fit those of the policy: zone by zone.
    fn moved_one_by_one(
        &mut self,
        run: &Run,
        go: &Move<'_>,
        (wanted, order): (u64, u32),
        is: &impl Fn(&Held) -> bool,
    ) -> (Vec<Run>, u64) {
        let (mut runs, mut moved) = (Vec::new(), 0);
        for run in run.sorted() {
            let count = run.count(is).min(wanted - moved);
            let (pieces, got) =
                if count > 0 { self.moved_of_order(run, go, (count, order), is) } else { (vec![run], 0) };
            moved += got;
            runs.extend(pieces);
        }
        (runs, moved)
    }

    /// Gives back what pages have left that are not the pool's; gives the runs, and how many pages have moved.
    fn settle_accounts(
        &mut self,
        before: BTreeMap<Held, u64>,
        runs: Vec<Run>,
        taken: u64,
    ) -> (Vec<Run>, u64) {
        let mut left = before;
        for (held, pages) in runs.iter().flat_map(Run::counts) {
            if let Some(had) = left.get_mut(&held) {
                *had = had.saturating_sub(pages);
            }
        }
        self.give_back(ObjectKind::Private, left);
        (runs, taken)
    }

    /// Places for this many pages, in the order in which they are found.
    fn places(&mut self, go: &Move<'_>, pages: u64, order: u32) -> Queue {
        match &go.to {
            To::Swap => {
                let taken = pages.min(self.swap_left);
                self.swap_left -= taken;
                [(taken, Held::SWAPPED)].into()
            }
            To::Node(node) => {
                let only = Policy::only(*node);
                self.taken(&only, go.cpu_node, go.allowed, pages, order).into()
            }
            To::Policy(policy) => self.taken(policy, go.cpu_node, go.allowed, pages, order).into(),
        }
    }

    /// The same for pages that fall to a node.
    fn places_of_turn(&mut self, go: &Move<'_>, node: NodeId, pages: u64, order: u32) -> Queue {
        let To::Policy(policy) = &go.to else { return Queue::new() };
        let own = Policy { nodes: NodeSet::from_iter([node]), ..policy.clone() };
        self.taken(&own, go.cpu_node, go.allowed, pages, order).into()
    }

    /// Takes pages of an order and of no other, as far as there are any; gives where they are.
    pub(super) fn taken(
        &mut self,
        policy: &Policy,
        cpu_node: NodeId,
        allowed: &NodeSet,
        pages: u64,
        order: u32,
    ) -> Vec<(u64, Held)> {
        // Small pages instead of huge ones are not what is asked for.
        places(&self.memory.allocate_whole(&Request {
            policy,
            weights: &self.weights,
            cpu_node,
            allowed,
            pages: pages >> order,
            order,
            place: InterleavePosition::File { inode: 0, page: 0 },
            class: Class::User,
        }))
    }
}

/// Where the pages of an outcome are, in the order in which they were had.
fn places(outcome: &Outcome) -> Vec<(u64, Held)> {
    let of = |stretch: &Stretch| {
        let order = stretch.order;
        let place = move |share: &Share| (share.pages << order, Held::zone(share.node, share.kind, order));
        stretch.shares.iter().map(place).collect::<Vec<_>>()
    };
    outcome.stretches.iter().flat_map(of).collect()
}

/// Adds the places that are to be filled to those that are; gives their number.
fn noted(queues: &[Queue], before: &mut BTreeMap<Held, u64>) -> u64 {
    let mut taken = 0;
    for (pages, held) in queues.iter().flatten() {
        *before.entry(*held).or_default() += pages;
        taken += pages;
    }
    taken
}

/// The pages of a run that are in memory, by zone.
fn placed(run: &Run) -> Placed {
    let mut placed = Placed::new();
    for (held, pages) in run.counts() {
        if let At::Zone(node, kind) = held.at {
            *placed.entry((node, kind)).or_default() += pages;
        }
    }
    placed
}

/// The zones that have fewer pages than before, and for each the places that its pages have taken: those of
/// the first fill what comes first. What was part of a huge page is so no more.
fn exchanged(before: &Placed, after: &Placed) -> (Vec<(NodeId, ZoneKind)>, Vec<Queue>) {
    let of = |placed: &Placed, zone: &(NodeId, ZoneKind)| placed.get(zone).copied().unwrap_or(0);
    let came = after.iter().map(|(zone, pages)| (*zone, pages.saturating_sub(of(before, zone))));
    let mut came: Queue = came.map(|((node, kind), pages)| (pages, Held::zone(node, kind, 0))).collect();
    let mut sources = Vec::new();
    let mut queues = Vec::new();
    for (zone, pages) in before {
        let mut left = pages.saturating_sub(of(after, zone));
        if left == 0 {
            continue;
        }
        let mut queue = Queue::new();
        while let Some((pages, held)) = came.front_mut().filter(|_| left > 0) {
            let count = left.min(*pages);
            queue.push_back((count, *held));
            left -= count;
            *pages -= count;
            if *pages == 0 {
                came.pop_front();
            }
        }
        sources.push(*zone);
        queues.push(queue);
    }
    (sources, queues)
}
