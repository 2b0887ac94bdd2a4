//! A program and its memory page by page: what each of its system calls does to them.
//!
//! For scripts of calls, whose every page counts. A program of many pages is a request for the walk
//! ([`crate::walk`]), where pages are runs.
//!
//! # Source
//! `mm/mempolicy.c`, `mm/migrate.c` and `kernel/cgroup/cpuset.c`; 6.8 to at least 7.2. Drawn scripts
//! were played in 6.12 guests: the same node for every page, and the same answer to every call.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Range;

use nodewise_machine::{MemPolicy, NodeId, NodeSet, PolicyMode};

use crate::errno::Errno;
use crate::memory::Memory;
use crate::migrate::{self, Present};
use crate::policy::interleave::{Place, Weights};
use crate::policy::set::{Policy, Scope};
use crate::release::Release;
use crate::walk::{Class, Request};
use crate::zones::ZoneKind;

/// What is the same for all programs of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Surroundings {
    /// Nodes that have memory.
    pub with_memory: NodeSet,
    /// Nodes that are there.
    pub online: NodeSet,
    /// Number of nodes that the kernel is built for.
    pub max_nodes: u32,
    /// Which kernel.
    pub release: Release,
    /// The weights of the nodes.
    pub weights: Weights,
}

/// The zone that a page is in.
type Home = (NodeId, ZoneKind);

/// A page of a mapping.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
struct Page {
    /// The policy of its mapping, if it has one.
    policy: Option<Policy>,
    /// Where it is, once it was touched.
    home: Option<Home>,
}

/// A program, of whose threads one makes the calls. Pages are numbered by address: byte 4096 is in page 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    around: Surroundings,
    policy: Policy,
    cpu_node: NodeId,
    allowed: NodeSet,
    threads: u32,
    pages: BTreeMap<u64, Page>,
}

impl Task {
    /// A program of one thread without policy and mappings, on a CPU of a node, that may use all memory.
    pub fn new(around: Surroundings, cpu_node: NodeId) -> Self {
        let allowed = around.with_memory.clone();
        Self { around, policy: Policy::DEFAULT, cpu_node, allowed, threads: 1, pages: BTreeMap::new() }
    }

    /// The same program with so many threads that share its memory.
    #[must_use]
    pub fn with_threads(self, threads: u32) -> Self {
        Self { threads, ..self }
    }

    /// A child, as `fork(2)` and `execve(2)` leave it: with its parent's policy, CPU and cpuset, and
    /// without its memory.
    #[must_use]
    pub fn start_program(&self) -> Self {
        Self { threads: 1, pages: BTreeMap::new(), ..self.clone() }
    }

    /// Goes to a CPU of a node.
    pub const fn run_on(&mut self, node: NodeId) {
        self.cpu_node = node;
    }

    /// `set_mempolicy(2)`.
    ///
    /// # Errors
    /// Those of [`Policy::of`]; the old policy stays.
    pub fn set_policy(&mut self, policy: &MemPolicy) -> Result<(), Errno> {
        self.policy = self.accepted(policy)?;
        Ok(())
    }

    fn accepted(&self, policy: &MemPolicy) -> Result<Policy, Errno> {
        let (max_nodes, release) = (self.around.max_nodes, self.around.release);
        Policy::of(policy, Scope { allowed: &self.allowed, max_nodes, release })
    }

    /// `mmap(2)` of private anonymous memory.
    pub fn map(&mut self, pages: Range<u64>) {
        self.pages.extend(pages.map(|page| (page, Page::default())));
    }

    /// `munmap(2)`: gives the pages back.
    pub fn unmap(&mut self, pages: Range<u64>, memory: &mut Memory) {
        for page in pages {
            if let Some((node, kind)) = self.pages.remove(&page).and_then(|page| page.home) {
                memory.free(node, kind, 1);
            }
        }
    }

    /// `mbind(2)` of pages that are mapped.
    ///
    /// # Errors
    /// `EFAULT` where a page is not mapped, `EIO` of [`migrate::mbind`], and those of
    /// [`Policy::of`]. Nothing is changed then.
    pub fn bind(
        &mut self,
        pages: Range<u64>,
        policy: &MemPolicy,
        present: Present,
        memory: &mut Memory,
    ) -> Result<(), Errno> {
        let asked = policy;
        let policy = self.accepted(asked)?;
        if pages.clone().any(|page| !self.pages.contains_key(&page)) {
            return Err(Errno::Efault);
        }
        // Pages whose policy is taken away go where the program's own policy would have them.
        let placed = if policy.mode == PolicyMode::Default { self.policy.clone() } else { policy.clone() };
        let there: Vec<(u64, Home)> =
            self.pages.range(pages.clone()).filter_map(|(page, is)| Some((*page, is.home?))).collect();
        let mut nodes: Vec<NodeId> = there.iter().map(|(_, home)| home.0).collect();
        let mut moved = Vec::new();
        migrate::mbind(&mut nodes, asked, present, |at| {
            let (page, home) = there[at];
            // Where no page is to be had the old one stays.
            let target = self.allocate(&placed, page, memory).unwrap_or(home);
            moved.push((page, home, target));
            target.0
        })?;
        for (page, home, target) in moved {
            self.settle(page, home, target, memory);
        }
        let kept = Some(policy).filter(|policy| policy.mode != PolicyMode::Default);
        for (_, page) in self.pages.range_mut(pages) {
            page.policy.clone_from(&kept);
        }
        Ok(())
    }

    /// `set_mempolicy_home_node(2)`.
    ///
    /// # Errors
    /// `EINVAL` for a node that is not there, `EOPNOTSUPP` at the first page whose mode has no home
    /// node (those before it are changed), `ENOENT` where no page has a policy.
    pub fn set_home(&mut self, pages: Range<u64>, node: NodeId) -> Result<(), Errno> {
        if !self.around.online.contains(node) {
            return Err(Errno::Einval);
        }
        let mut result = Err(Errno::Enoent);
        for (_, page) in self.pages.range_mut(pages) {
            let Some(policy) = &mut page.policy else { continue };
            if !matches!(policy.mode, PolicyMode::Bind | PolicyMode::PreferredMany) {
                return Err(Errno::Eopnotsupp);
            }
            policy.home = Some(node);
            result = Ok(());
        }
        result
    }

    /// Touches a page: its node, or `None` where it is not mapped or no page is to be had.
    pub fn touch(&mut self, page: u64, memory: &mut Memory) -> Option<NodeId> {
        let own = self.pages.get(&page)?;
        if own.home.is_none() {
            let policy = own.policy.as_ref().unwrap_or(&self.policy);
            let home = self.allocate(policy, page, memory)?;
            self.pages.get_mut(&page)?.home = Some(home);
        }
        self.node_of(page)
    }

    /// A page as a policy gives it to this program now.
    fn allocate(&self, policy: &Policy, page: u64, memory: &mut Memory) -> Option<Home> {
        let request = Request {
            policy,
            weights: &self.around.weights,
            cpu_node: self.cpu_node,
            allowed: &self.allowed,
            pages: 1,
            order: 0,
            place: Place::Address(page << 12),
            class: Class::User,
        };
        memory.allocate(&request).zones().first().map(|(node, kind, _)| (*node, *kind))
    }

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
        self.policy.rebind(&self.allowed);
        for page in self.pages.values_mut() {
            if let Some(policy) = &mut page.policy {
                policy.rebind(&self.allowed);
            }
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

    fn move_along(&mut self, plan: &[(NodeId, NodeId)], memory: &mut Memory) {
        let there: Vec<(u64, NodeId)> =
            self.pages.iter().filter_map(|(page, is)| Some((*page, is.home?.0))).collect();
        for (page, node) in there {
            self.send(page, migrate::migrated(node, plan), memory);
        }
    }

    /// Moves a page to a node and to no other (`__GFP_THISNODE`); where that has none left it stays.
    fn send(&mut self, page: u64, node: NodeId, memory: &mut Memory) {
        let Some(home) = self.pages.get(&page).and_then(|page| page.home) else { return };
        if home.0 == node {
            return;
        }
        let nodes = NodeSet::from_iter([node]);
        let only = Policy { mode: PolicyMode::Bind, nodes, ..Policy::DEFAULT };
        if let Some(target) = self.allocate(&only, page, memory) {
            self.settle(page, home, target, memory);
        }
    }

    fn settle(&mut self, page: u64, old: Home, new: Home, memory: &mut Memory) {
        memory.free(old.0, old.1, 1);
        if let Some(page) = self.pages.get_mut(&page) {
            page.home = Some(new);
        }
    }

    /// `move_pages(2)` of a page of this program. A page that was not touched stays so.
    ///
    /// # Errors
    /// Those of [`migrate::check_move`].
    pub fn move_page(&mut self, page: u64, node: NodeId, memory: &mut Memory) -> Result<(), Errno> {
        migrate::check_move(node, &self.around.with_memory, &self.allowed)?;
        self.send(page, node, memory);
        Ok(())
    }

    /// The node of a page; `None` before it is touched.
    pub fn node_of(&self, page: u64) -> Option<NodeId> {
        self.pages.get(&page)?.home.map(|(node, _)| node)
    }

    /// The program's own policy.
    pub const fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The policy of a page's mapping; `None` where it has none of its own.
    pub fn policy_at(&self, page: u64) -> Option<&Policy> {
        self.pages.get(&page)?.policy.as_ref()
    }

    /// Nodes whose memory it may use.
    pub const fn allowed(&self) -> &NodeSet {
        &self.allowed
    }
}
