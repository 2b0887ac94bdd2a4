//! Calls that set policies of memory that is there, and that move pages.
//!
//! # Source
//! As in [`crate::migrate`] and [`crate::policy::set`].

use std::ops::Range;

use nodewise_machine::{MemPolicy, NodeId, NodeSet, PolicyMode};

use super::Simulation;
use super::act::Flags;
use super::moving::{Move, To};
use super::program::{Id, ObjectId, ObjectKind};
use super::run::Held;
use super::step::Step;
use crate::errno::Errno;
use crate::migrate;
use crate::policy::set::{Policy, check_home};

impl Simulation {
    /// `mbind(2)`.
    pub(super) fn bind(
        &mut self,
        id: Id,
        (object, region): (ObjectId, &str),
        pages: Range<u64>,
        asked: &MemPolicy,
        flags: Flags,
    ) -> Step {
        let program = &self.programs[&id];
        let policy = match self.accepted(asked, &program.allowed) {
            Ok(policy) => policy,
            Err(errno) => return Step::refused(errno),
        };
        let (cpu_node, allowed) = (program.cpu_node, program.allowed.clone());
        let is_taken_away = policy.mode == PolicyMode::Default;
        // Pages whose policy is taken away go where the program's own policy would have them.
        let placed = if is_taken_away { self.in_force(id).clone() } else { policy.clone() };
        let outside = |held: &Held| held.node().is_some_and(|node| !asked.nodes.contains(node));
        let moves = flags.moves || flags.moves_all;
        if flags.strict && !moves && !is_taken_away && self.wanted(id, object, &pages, outside) > 0 {
            return Step::refused(Errno::Eio);
        }
        let mut step = Step::default();
        if moves {
            let wanted = self.wanted(id, object, &pages, outside);
            let mut go = Move { cpu_node, allowed: &allowed, to: To::Policy(placed), most: wanted };
            step.moved = self.relocate((id, flags.moves_all), object, &pages, &mut go, outside);
            step.stayed = wanted - step.moved;
            // Pages that others have too are passed over, and are not a failure.
            let failed = self.movable((id, flags.moves_all), object, &pages, outside) > 0 && step.stayed > 0;
            step.refused = Some(Errno::Eio).filter(|_| flags.strict && failed && !is_taken_away);
        }
        let kept = Some(policy).filter(|_| !is_taken_away);
        self.set_policies(id, (object, region), pages, kept);
        step
    }

    /// Sets the policy of a part of a mapping; that of a file is one for all who have it.
    fn set_policies(
        &mut self,
        id: Id,
        (object, region): (ObjectId, &str),
        pages: Range<u64>,
        policy: Option<Policy>,
    ) {
        if let Some(file) = self.objects.get_mut(&object).filter(|object| object.kind == ObjectKind::File) {
            file.policies.set(pages.clone(), policy.clone());
        }
        if let Some(region) = self.program(id).regions.get_mut(region) {
            region.policies.set(pages, policy);
        }
    }

    /// `set_mempolicy_home_node(2)`.
    pub(super) fn set_home(
        &mut self,
        id: Id,
        (object, region): (ObjectId, &str),
        pages: Range<u64>,
        node: NodeId,
    ) -> Step {
        if let Err(errno) = check_home(node.number().into(), &self.online, self.release) {
            return Step::refused(errno);
        }
        let pieces = self.programs[&id].regions.get(region).map(|region| region.policies.pieces(pages));
        let mut answer = Some(Errno::Enoent);
        for (part, policy) in pieces.unwrap_or_default() {
            let Some(mut policy) = policy else { continue };
            if let Err(errno) = policy.set_home(node) {
                answer = Some(errno);
                break;
            }
            self.set_policies(id, (object, region), part, Some(policy));
            answer = None;
        }
        Step { refused: answer, ..Step::default() }
    }

    /// `move_pages(2)` of all pages of a range to one node.
    pub(super) fn move_pages(
        &mut self,
        id: Id,
        object: ObjectId,
        pages: &Range<u64>,
        node: NodeId,
        all: bool,
    ) -> Step {
        let program = &self.programs[&id];
        let (cpu_node, allowed) = (program.cpu_node, program.allowed.clone());
        if let Err(errno) = migrate::check_move(node, &self.memory.nodes(), &allowed) {
            return Step::refused(errno);
        }
        let elsewhere = |held: &Held| held.node().is_some_and(|own| own != node);
        let wanted = self.wanted(id, object, pages, elsewhere);
        let mut go = Move { cpu_node, allowed: &allowed, to: To::Node(node), most: wanted };
        let moved = self.relocate((id, all), object, pages, &mut go, elsewhere);
        Step { moved, stayed: wanted - moved, ..Step::default() }
    }

    /// `migrate_pages(2)` of a program on itself.
    pub(super) fn migrate(&mut self, id: Id, old: &NodeSet, new: &NodeSet) -> Step {
        let allowed = self.programs[&id].allowed.clone();
        if let Err(errno) = migrate::check_migration(new, &allowed) {
            return Step::refused(errno);
        }
        let mut step = Step::default();
        self.move_along(id, &migrate::moves(old, &new.intersection(&allowed)), &mut step);
        step
    }

    /// Moves all pages of a program node by node, those that others have too among them.
    fn move_along(&mut self, id: Id, plan: &[(NodeId, NodeId)], step: &mut Step) {
        let program = &self.programs[&id];
        let (cpu_node, allowed) = (program.cpu_node, program.allowed.clone());
        let mapped = program.mapped();
        for (from, to) in plan {
            for (object, pages) in &mapped {
                let there = |held: &Held| held.node() == Some(*from);
                let wanted = self.wanted(id, *object, pages, there);
                let mut go = Move { cpu_node, allowed: &allowed, to: To::Node(*to), most: wanted };
                let moved = self.relocate((id, true), *object, pages, &mut go, there);
                step.moved += moved;
                step.stayed += wanted - moved;
            }
        }
    }

    /// `cpuset.mems` of version 2 of the cgroups, for all programs of the cpuset.
    pub(super) fn restrict(&mut self, id: Id, allowed: &NodeSet) -> Step {
        let allowed = allowed.intersection(&self.memory.nodes());
        let before = self.programs[&id].allowed.clone();
        let mut step = Step::default();
        if allowed == before {
            return step;
        }
        let cpuset = self.programs[&id].cpuset_of;
        let members: Vec<Id> = self
            .programs
            .iter()
            .filter(|(_, program)| program.cpuset_of == cpuset)
            .map(|(id, _)| *id)
            .collect();
        for member in members {
            let program = self.program(member);
            program.allowed = allowed.clone();
            program.policy.rebind(&allowed);
            program.threads.values_mut().for_each(|thread| thread.policy.rebind(&allowed));
            for policy in program.regions.values_mut().flat_map(|region| region.policies.values_mut()) {
                policy.rebind(&allowed);
            }
            let rounds = program.threads.len() + 1;
            let plan = migrate::moves(&before, &allowed);
            let stayed = step.stayed;
            // The kernel goes through threads, not programs; a plan brings every page to rest in as many rounds as it has moves.
            for _ in 0..rounds.min(plan.len()) {
                step.stayed = stayed;
                self.move_along(member, &plan, &mut step);
            }
        }
        step
    }

    /// How many of a program's pages in a range are such.
    pub(super) fn wanted(
        &mut self,
        id: Id,
        object: ObjectId,
        pages: &Range<u64>,
        is: impl Fn(&Held) -> bool,
    ) -> u64 {
        self.movable((id, true), object, pages, is)
    }

    /// How many of them it may move.
    fn movable(
        &mut self,
        (id, all): (Id, bool),
        object: ObjectId,
        pages: &Range<u64>,
        is: impl Fn(&Held) -> bool,
    ) -> u64 {
        let Some(found) = self.objects.get_mut(&object) else { return 0 };
        found.extents.carve(pages, &self.family);
        let keys = found.movable((id, all), pages, &self.family);
        found.count_of(&keys, is)
    }
}
