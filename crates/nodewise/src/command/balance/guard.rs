//! A process before and during an action: whether it is still what the plan saw.

use std::time::{Duration, Instant};

use nodewise_diagnose::Pid;
use nodewise_diagnose::balance::{Limits, Never, claimed, explicit_policy, is_default, places_others};
use nodewise_machine::{Bytes, CpuSet, NodeId, NodeSet};
use nodewise_source::mapped::{Mapped, mappings_and_policies};
use nodewise_source::process::{claims, family, group, search, status};
use nodewise_source::sample::{Allowed, Identity, Life};
use nodewise_source::spare::{has_swap, node_room};
use nodewise_source::system::counters;
use nodewise_source::tree::Tree;

use super::watch::facts;
use crate::migration::live::KEPT;

/// A look takes at most one part in this number of the time.
const PART: u32 = 50;
/// How often the threads are looked at, at most.
const THREADS: Duration = Duration::from_secs(1);
/// How often mappings and other programs are looked at, at most.
const ALL: Duration = Duration::from_secs(5);

/// Why a process is acted on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::command) enum Reason {
    /// The controller found it: what anyone has placed is left alone.
    Found,
    /// A user named it: policies of its own, children and a debugger are that user's business.
    Named,
}

/// A process that is to stay as the plan saw it.
pub(super) struct Guard<'a> {
    pub(super) tree: &'a Tree,
    pub(super) limits: &'a Limits,
    pub(super) reason: Reason,
    /// CPUs and nodes that processes have by default.
    pub(super) everyone: &'a Allowed,
    pub(super) online: CpuSet,
    pub(super) identity: Identity,
    /// Nodes that pages go to.
    pub(super) targets: NodeSet,
    /// CPUs that the action gives to threads.
    pub(super) cpus: Option<&'a CpuSet>,
    image: Option<String>,
    kills: Option<u64>,
    has_swap: bool,
    next_threads: Instant,
    next_all: Instant,
}

impl<'a> Guard<'a> {
    /// Begins with the process as it is now.
    pub(super) fn new(
        tree: &'a Tree,
        limits: &'a Limits,
        reason: Reason,
        everyone: &'a Allowed,
        online: CpuSet,
        identity: Identity,
        targets: NodeSet,
    ) -> Self {
        let now = Instant::now();
        Self {
            tree,
            limits,
            reason,
            everyone,
            online,
            identity,
            targets,
            cpus: None,
            image: claims::image(tree, identity.pid),
            kills: kills(tree),
            has_swap: has_swap(tree) == Some(true),
            next_threads: now,
            next_all: now,
        }
    }

    /// The same for an action that gives CPUs to threads.
    pub(super) fn giving(self, cpus: Option<&'a CpuSet>) -> Self {
        Self { cpus, ..self }
    }

    /// Looks where it is time to.
    pub(super) fn look(&mut self) -> Result<(), String> {
        let now = Instant::now();
        if now >= self.next_threads {
            self.threads()?;
            self.next_threads = Instant::now() + THREADS.max(now.elapsed() * PART);
        }
        let now = Instant::now();
        if self.reason == Reason::Found && now >= self.next_all {
            self.memory_in_time()?;
        }
        Ok(())
    }

    /// Looks at mappings and other programs, and says when to do that again.
    fn memory_in_time(&mut self) -> Result<(), String> {
        let begun = Instant::now();
        self.memory(claims::mapping_policies(self.tree, self.identity.pid))?;
        self.next_all = Instant::now() + ALL.max(begun.elapsed() * PART);
        Ok(())
    }

    /// Looks at everything, and whether it has children, which would inherit CPUs. Returns its mappings where pages are to
    /// move: the kernel walks all of its page tables for them, as it does for their policies.
    pub(super) fn confirm(&mut self) -> Result<Vec<Mapped>, String> {
        self.threads()?;
        let (pid, begun) = (self.identity.pid, Instant::now());
        let read = (!self.targets.is_empty()).then(|| mappings_and_policies(self.tree, pid));
        let read = read.map(|read| read.ok().flatten().ok_or("where its pages are cannot be read"));
        let read = read.transpose()?;
        if self.reason == Reason::Found {
            match &read {
                Some(read) => self.memory(read.policies.clone())?,
                None => self.memory(claims::mapping_policies(self.tree, pid))?,
            }
            self.next_all = Instant::now() + ALL.max(begun.elapsed() * PART);
            self.family_and_claims()?;
        }
        Ok(read.map(|read| read.mappings).unwrap_or_default())
    }

    fn family_and_claims(&self) -> Result<(), String> {
        let pid = self.identity.pid;
        if self.cpus.is_some() && family(self.tree, pid).len() > 1 {
            return Err("it has children, which would inherit its CPUs".to_owned());
        }
        self.claims()
    }

    /// Looks at its control group, its locked memory and its memory limit. Its age only grows, and another process with
    /// its number has another start.
    fn claims(&self) -> Result<(), String> {
        let pid = self.identity.pid;
        let resident = status(self.tree, pid).ok().flatten().and_then(|parsed| parsed.value.resident);
        let group = group(self.tree, pid);
        match claimed(group.as_deref(), &facts(self.tree, pid), resident, self.limits) {
            None => Ok(()),
            Some(why) => Err(format!("changed meanwhile: it {why}")),
        }
    }

    fn threads(&self) -> Result<(), String> {
        let pid = self.identity.pid;
        match self.identity.life(self.tree) {
            Life::Runs => {}
            Life::Ended => return Err("the process has ended".to_owned()),
            Life::Unknown => return Err("the process is not readable".to_owned()),
        }
        if self.image.is_none() || claims::image(self.tree, pid) != self.image {
            return Err("changed meanwhile: it runs another program".to_owned());
        }
        let status = status(self.tree, pid).ok().flatten().map(|parsed| parsed.value);
        let nodes = status.and_then(|status| status.mems_allowed);
        if !nodes.is_some_and(|nodes| self.targets.is_subset(&nodes)) {
            return Err("changed meanwhile: it is in a narrower cpuset".to_owned());
        }
        let claims = claims::claims(self.tree, pid);
        if self.reason == Reason::Found {
            untouched(&claims)?;
        }
        self.cpus_are_free(claims.cpus)?;
        if self.kills.is_none() || kills(self.tree) != self.kills {
            return Err("the kernel killed a process for want of memory, or does not say".to_owned());
        }
        Ok(())
    }

    /// Whether no other hand has set the CPUs of its threads.
    fn cpus_are_free(&self, threads: Option<Vec<CpuSet>>) -> Result<(), String> {
        // Pages of a process that a user named may move whatever its CPUs are.
        if self.reason == Reason::Named && self.cpus.is_none() {
            return Ok(());
        }
        let threads = threads.ok_or("the CPUs of its threads are not readable")?;
        if threads.iter().all(|cpus| self.is_free(cpus)) {
            return Ok(());
        }
        Err(match self.reason {
            Reason::Found => "changed meanwhile: another program set the CPUs of its threads",
            Reason::Named => "some of its threads have CPUs of their own, which are left alone",
        }
        .to_owned())
    }

    /// Whether a thread has the CPUs of every process, or those of this action.
    pub(super) fn is_free(&self, cpus: &CpuSet) -> bool {
        self.everyone.cpus.as_ref().is_some_and(|all| is_default(cpus, all, &self.online))
            || self.cpus == Some(cpus)
            || self.reason == Reason::Named && self.cpus.is_some_and(|own| cpus.is_subset(own))
    }

    /// Whether the policies of its mappings allow to touch it, and no other program places processes.
    fn memory(&self, policies: Option<Vec<String>>) -> Result<(), String> {
        if let Some(why) = forbidden_by(policies)? {
            return Err(format!("changed meanwhile: it {why}"));
        }
        let all = search::all(self.tree).map_err(|error| error.to_string())?;
        let mut names = all.into_iter().filter_map(|pid| search::name(self.tree, pid).ok().flatten());
        if names.any(|name| places_others(&name)) {
            return Err("another program that places processes runs".to_owned());
        }
        Ok(())
    }

    /// Memory that a node may still take, of what is free beside the part that every migration leaves; `None` where that is
    /// not known.
    pub(super) fn room(&self, node: NodeId, page: Bytes) -> Option<Bytes> {
        let now = node_room(self.tree, node, page)?;
        let room = nodewise_diagnose::balance::room;
        let room = room(now.size, now.free, now.available, now.high, self.has_swap, self.limits);
        let beside = now.free.get().saturating_sub(now.high.get().saturating_add(now.size.get() / KEPT));
        Some(room.min(Bytes::new(beside)))
    }
}

/// Refuses a process with real-time threads, a tracer or a policy.
fn untouched(claims: &claims::Claims) -> Result<(), String> {
    if claims.realtime != Some(false) || claims.traced != Some(false) {
        return Err("changed meanwhile: it has real-time threads or is traced".to_owned());
    }
    if !claims.policies.as_ref().is_some_and(Vec::is_empty) {
        return Err("changed meanwhile: a thread has a memory policy, or an unknown one".to_owned());
    }
    Ok(())
}

/// Why the policies of a process's mappings forbid to touch it now; `None` where they do not.
pub(super) fn policy_now(tree: &Tree, pid: Pid) -> Result<Option<Never>, String> {
    forbidden_by(claims::mapping_policies(tree, pid))
}

fn forbidden_by(policies: Option<Vec<String>>) -> Result<Option<Never>, String> {
    Ok(explicit_policy(&policies.ok_or("the policies of its memory are not readable")?))
}

fn kills(tree: &Tree) -> Option<u64> {
    counters(tree).ok().flatten()?.value.get("oom_kill")
}
