//! Control groups with limits of memory: charging, the effects of a limit, and protected pages.
//!
//! A page is charged to the group of the program that took it, and to all groups above that one. It stays charged there
//! when the program goes to another group, and when it is swapped out it counts for the swap of the group instead. Pages of
//! pools of huge pages are charged to no group.
//!
//! | file | what happens |
//! |---|---|
//! | `memory.max` | the group's own page cache is dropped, then its pages are swapped out; where none can be, the kernel kills one of the group |
//! | `memory.high` | the group's own page cache is dropped, then its pages are swapped out; where none can be, its programs are slowed down, and none is killed |
//! | `memory.swap.max` | the group's pages stay in memory once so much of them is in swap |
//! | `memory.min`, `memory.low` | up to this size the group's pages stay when others need room; above `low` they go first |
//! | `memory.oom.group` | with one of the group all others are killed, but for those with an `oom_score_adj` of -1000 |
//!
//! What is free on the nodes does not matter at a limit, and pages of others are not touched. Demotion takes nothing off a
//! group's size. Not counted: page tables and other memory of the kernel, which a real group is charged for, too.
//!
//! # Source
//! `try_charge_memcg`, `mem_cgroup_handle_over_high`, `mem_cgroup_get_max`, `mem_cgroup_get_oom_group` and
//! `effective_protection` in `mm/memcontrol.c`, `mem_cgroup_out_of_memory`, `oom_kill_process` in `mm/oom_kill.c`, version 2
//! of the control groups; documented in `Documentation/admin-guide/cgroup-v2.rst`.
//! Kills at `memory.max`, what is swapped out at both limits, `memory.swap.max` and `memory.oom.group` were compared with 6.12 by drawn
//! scripts (`lab --check --kind groups,swap`); protection was not.

use std::collections::BTreeMap;

use nodewise_machine::NodeId;

use super::Simulation;
use super::act::Refused;
use super::limits::{Charged, GroupId, GroupLimit, GroupLimits, GroupState, Protection};
use super::program::Id;
use super::reclaim::Stopped;
use super::step::{Cause, LimitMet, LimitOutcome, Step};
use crate::oom::{self, EXEMPT, OomCandidate, OomChoice, OomLimit, OomRequest, OomSettings};

/// A group of the simulation.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub name: String,
    pub parent: Option<GroupId>,
    pub limits: GroupLimits,
    peak: u64,
    killed: u64,
    ooms: u64,
    charged: Charged,
}

/// Adds pages by node.
fn add(sums: &mut Vec<(NodeId, u64)>, pages: &BTreeMap<NodeId, u64>) {
    for (node, count) in pages {
        match sums.iter_mut().find(|(own, _)| own == node) {
            Some((_, sum)) => *sum += count,
            None => sums.push((*node, *count)),
        }
    }
}

impl Simulation {
    /// Makes a group, or gives one that is there other limits: memory beyond them has to go at once, as far as it can.
    pub(super) fn limit(
        &mut self,
        name: &str,
        parent: Option<&str>,
        limits: &GroupLimits,
    ) -> Result<Step, Refused> {
        let known = |name: &str| self.group_names.get(name).copied();
        let above =
            parent.map(|name| known(name).ok_or_else(|| Refused::NoGroup(name.to_owned()))).transpose()?;
        let group = match known(name) {
            Some(id) => {
                self.groups[id as usize].limits = limits.clone();
                id
            }
            None => {
                let id = self.groups.len() as GroupId;
                let (name, limits) = (name.to_owned(), limits.clone());
                self.group_names.insert(name.clone(), id);
                let charged = Charged::default();
                self.groups.push(Group { name, parent: above, limits, peak: 0, killed: 0, ooms: 0, charged });
                id
            }
        };
        let mut step = Step::default();
        while let Some(excess) = self.excess(group) {
            if self.squeeze(group, GroupLimit::Max, excess, &mut step) == 0
                && self.kill_in(group, excess, None, &mut step).is_none()
            {
                break;
            }
        }
        let Group { charged, limits, .. } = &self.groups[group as usize];
        let above = limits.high.map_or(0, |high| charged.memory.saturating_sub(high));
        if above > 0 && self.squeeze(group, GroupLimit::High, above, &mut step) == 0 {
            self.met(group, GroupLimit::High, &mut step).outcome = LimitOutcome::Throttled;
        }
        Ok(step)
    }

    /// Pages of a group beyond its largest size.
    fn excess(&self, group: GroupId) -> Option<u64> {
        let Group { charged, limits, .. } = &self.groups[group as usize];
        charged.memory.checked_sub(limits.max?).filter(|excess| *excess > 0)
    }

    /// Puts a program into a group: what it takes from now on is charged there.
    pub(super) fn join(&mut self, id: Id, name: &str) -> Result<Step, Refused> {
        let group = self.group_names.get(name).copied();
        self.program(id).group = Some(group.ok_or_else(|| Refused::NoGroup(name.to_owned()))?);
        Ok(Step::default())
    }

    /// A group and those above it.
    fn above(&self, group: Option<GroupId>) -> impl Iterator<Item = GroupId> + '_ {
        std::iter::successors(group, |id| self.groups[*id as usize].parent)
    }

    /// Whether a group is another one, or below it; everything is below `None`.
    pub(super) fn is_below(&self, group: Option<GroupId>, root: Option<GroupId>) -> bool {
        root.is_none_or(|root| self.above(group).any(|id| id == root))
    }

    /// Does something to a group and to those above it.
    fn each_above(&mut self, group: Option<GroupId>, act: impl Fn(&mut Group)) {
        let mut next = group;
        while let Some(group) = next.and_then(|id| self.groups.get_mut(id as usize)) {
            act(group);
            next = group.parent;
        }
    }

    /// Charges a group for pages that were others before: new ones, or in swap.
    pub(super) fn recharge(&mut self, group: GroupId, before: Charged, after: Charged) {
        self.each_above(Some(group), |group| {
            let Charged { memory, swap } = group.charged;
            group.charged = Charged {
                memory: (memory + after.memory).saturating_sub(before.memory),
                swap: (swap + after.swap).saturating_sub(before.swap),
            };
        });
    }

    /// Pages that are charged to a group, those below it included.
    pub(super) fn charged(&self, group: GroupId) -> Charged {
        self.groups[group as usize].charged
    }

    /// Pages that a program may take before it meets a limit, with the group and the limit; `None` without one. A
    /// `memory.high` beyond which nothing can be swapped stops no one.
    fn room(&self, id: Id, step: &Step) -> Option<(u64, GroupId, GroupLimit)> {
        let group = self.programs.get(&id)?.group?;
        let mut tightest: Option<(u64, GroupId, GroupLimit)> = None;
        for id in self.above(Some(group)) {
            let Group { name, limits, .. } = &self.groups[id as usize];
            let high = limits.high.filter(|_| !step.is_throttled(name));
            for (limit, kind) in [(limits.max, GroupLimit::Max), (high, GroupLimit::High)] {
                let Some(limit) = limit else { continue };
                let left = limit.saturating_sub(self.charged(id).memory);
                if tightest.is_none_or(|(least, ..)| left < least) {
                    tightest = Some((left, id, kind));
                }
            }
        }
        tightest
    }

    /// Pages of those that a program wants that its groups let it have, at least one: where they let it have none, the kernel
    /// makes room inside the group.
    pub(super) fn charge(&mut self, id: Id, wanted: u64, step: &mut Step) -> Result<u64, Stopped> {
        loop {
            let (group, kind) = match self.room(id, step) {
                None => return Ok(wanted),
                Some((left, ..)) if left > 0 => return Ok(wanted.min(left)),
                Some((_, group, kind)) => (group, kind),
            };
            if self.squeeze(group, kind, wanted, step) > 0 {
                continue;
            }
            if kind == GroupLimit::High {
                self.met(group, kind, step).outcome = LimitOutcome::Throttled;
                continue;
            }
            match self.kill_in(group, wanted, Some(id), step) {
                Some(()) if self.programs.contains_key(&id) => {}
                _ => return Err(Stopped),
            }
        }
    }

    /// Makes room in a group that has met a limit: drops its page cache, or swaps its pages out; gives how many.
    fn squeeze(&mut self, group: GroupId, kind: GroupLimit, pages: u64, step: &mut Step) -> u64 {
        self.note_peaks();
        let nodes = self.memory.nodes();
        let dropped: BTreeMap<NodeId, u64> = self.drop_in_group(group, pages);
        let out =
            if dropped.is_empty() { self.swap_out(&nodes, Some(group), pages) } else { BTreeMap::new() };
        let met = self.met(group, kind, step);
        add(&mut met.dropped, &dropped);
        add(&mut met.swapped, &out);
        dropped.values().chain(out.values()).sum()
    }

    /// Drops page cache of a group; gives how many pages of each node.
    fn drop_in_group(&mut self, group: GroupId, pages: u64) -> BTreeMap<NodeId, u64> {
        let mut dropped = BTreeMap::new();
        let mut left = pages;
        for node in &self.memory.nodes() {
            let count = if self.cached.is_empty() { 0 } else { self.drop_cached(node, Some(group), left) };
            if count > 0 {
                dropped.insert(node, count);
                left -= count;
            }
        }
        dropped
    }

    /// The entry of a step for a limit that was met.
    fn met<'s>(&self, group: GroupId, kind: GroupLimit, step: &'s mut Step) -> &'s mut LimitMet {
        let Group { name, limits, .. } = &self.groups[group as usize];
        let is_it = |met: &LimitMet| met.group == *name && met.limit == kind;
        let at = step.limits.iter().position(is_it).unwrap_or_else(|| {
            let size = match kind {
                GroupLimit::Max => limits.max,
                GroupLimit::High => limits.high,
            };
            step.limits.push(LimitMet {
                group: name.clone(),
                limit: kind,
                size: size.unwrap_or_default(),
                dropped: Vec::new(),
                swapped: Vec::new(),
                outcome: LimitOutcome::Fits,
            });
            step.limits.len() - 1
        });
        &mut step.limits[at]
    }

    /// Kills a program of a group that has met its largest size; `None` where none may be killed.
    fn kill_in(&mut self, group: GroupId, missing: u64, asking: Option<Id>, step: &mut Step) -> Option<()> {
        self.each_above(Some(group), |group| group.ooms += 1);
        let members = self.members(group);
        let candidates: Vec<OomCandidate> = members.iter().map(|id| self.candidate(*id)).collect();
        let limits = &self.groups[group as usize].limits;
        let swap = limits.swap_max.unwrap_or(u64::MAX).min(self.swap);
        let request = OomRequest {
            limit: OomLimit::Group,
            is_confined: false,
            total: limits.max.unwrap_or(u64::MAX).saturating_add(swap),
            asking: asking.and_then(|asking| members.iter().position(|id| *id == asking)),
            settings: OomSettings::default(),
        };
        let OomChoice::Kills(worst) = oom::choose(&candidates, &request) else {
            self.met(group, GroupLimit::Max, step).outcome = LimitOutcome::NoVictim;
            return None;
        };
        let victim = *worst.first()?;
        let next = oom::next(&candidates, &request, &[victim]);
        let next = next.and_then(|at| self.programs.get(&members[at])).map(|next| next.name.clone());
        self.met(group, GroupLimit::Max, step).outcome = LimitOutcome::Killed;
        let name = self.groups[group as usize].name.clone();
        let cause = Cause::GroupLimit { group: name, missing };
        self.kill_with_group(members[victim], cause, Some(group), next, step);
        Some(())
    }

    /// Kills a program, and with it all of the highest group that is killed as a whole, up to the one that has no memory.
    pub(super) fn kill_with_group(
        &mut self,
        victim: Id,
        cause: Cause,
        domain: Option<GroupId>,
        next: Option<String>,
        step: &mut Step,
    ) {
        self.note_peaks();
        let own = self.programs.get(&victim).and_then(|program| program.group);
        let mut whole = None;
        for id in self.above(own) {
            if self.groups[id as usize].limits.kills_all {
                whole = Some(id);
            }
            if Some(id) == domain {
                break;
            }
        }
        let others = whole.map_or_else(Vec::new, |whole| self.members(whole));
        let with = |id: &Id| *id != victim && self.programs[id].adjustment > EXEMPT;
        let others: Vec<Id> = others.into_iter().filter(with).collect();
        self.kill(victim, cause, step);
        if let Some(killed) = step.killed.last_mut() {
            // Whoever is killed together with it cannot be the next one.
            let is_gone = |name: &String| others.iter().any(|id| self.programs[id].name == *name);
            killed.next = next.filter(|name| !is_gone(name));
        }
        let Some(whole) = whole else { return };
        let name = self.groups[whole as usize].name.clone();
        for id in others {
            self.kill(id, Cause::WholeGroup { group: name.clone() }, step);
        }
    }

    /// Counts a program that is killed for want of memory with its groups.
    pub(super) fn count_killed(&mut self, id: Id) {
        let group = self.programs.get(&id).and_then(|program| program.group);
        self.each_above(group, |group| group.killed += 1);
    }

    /// The programs of a group and of those below it.
    fn members(&self, group: GroupId) -> Vec<Id> {
        let is_in = |id: &Id| self.is_below(self.programs[id].group, Some(group));
        self.programs.keys().copied().filter(is_in).collect()
    }

    /// Pages of a group that may be swapped out, when room is made below a root: those beyond its protection, as far as the
    /// swap of its groups takes them.
    pub(super) fn swappable(
        &self,
        group: Option<GroupId>,
        root: Option<GroupId>,
        respected: Protection,
    ) -> u64 {
        if group.is_none() {
            return u64::MAX;
        }
        let left = |id: GroupId| {
            let swap_max = self.groups[id as usize].limits.swap_max.unwrap_or(u64::MAX);
            swap_max.saturating_sub(self.charged(id).swap)
        };
        let swap = self.above(group).map(left).min().unwrap_or(u64::MAX);
        swap.min(self.unprotected(group, root, respected))
    }

    /// Pages of a group that may go when room is made below a root: those beyond its protection.
    pub(super) fn unprotected(
        &self,
        group: Option<GroupId>,
        root: Option<GroupId>,
        respected: Protection,
    ) -> u64 {
        let Some(own) = group else { return u64::MAX };
        self.charged(own).memory.saturating_sub(self.protected(own, root, respected))
    }

    /// Pages of a group that are protected when room is made below a root: its own protection, and of what protects the
    /// group above it no more than its share.
    fn protected(&self, id: GroupId, root: Option<GroupId>, respected: Protection) -> u64 {
        // The group whose limit was met is not protected from itself.
        if root == Some(id) {
            return 0;
        }
        let claim = |id: GroupId| {
            let limits = &self.groups[id as usize].limits;
            let setting = match respected {
                Protection::Low => limits.low.max(limits.min),
                Protection::Min => limits.min,
            };
            setting.unwrap_or(0).min(self.charged(id).memory)
        };
        let parent = self.groups[id as usize].parent;
        let Some(above) = parent.filter(|_| parent != root) else { return claim(id) };
        let of_parent = self.protected(above, root, respected);
        let siblings =
            (0..self.groups.len() as GroupId).filter(|id| self.groups[*id as usize].parent == parent);
        let claims: u64 = siblings.map(claim).fold(0, u64::saturating_add);
        if claims <= of_parent {
            return claim(id);
        }
        (u128::from(claim(id)) * u128::from(of_parent)).checked_div(u128::from(claims)).unwrap_or(0) as u64
    }

    /// The groups and what they have, by name.
    pub fn groups(&self) -> BTreeMap<String, GroupState> {
        let name_of = |id: GroupId| self.groups[id as usize].name.clone();
        let mut groups = BTreeMap::new();
        for group in &self.groups {
            let Charged { memory, swap } = group.charged;
            let state = GroupState {
                parent: group.parent.map(name_of),
                limits: group.limits.clone(),
                memory,
                swap,
                peak: group.peak.max(memory),
                killed: group.killed,
                ooms: group.ooms,
            };
            groups.insert(group.name.clone(), state);
        }
        groups
    }

    /// Notes the largest size of each group after a step.
    pub(super) fn note_peaks(&mut self) {
        for group in &mut self.groups {
            group.peak = group.peak.max(group.charged.memory);
        }
    }
}
