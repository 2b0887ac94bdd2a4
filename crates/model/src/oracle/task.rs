//! A program and its memory page by page: what each of its system calls does to them.
//!
//! For scripts of calls, whose every page counts. A program of many pages is a request for the walk
//! ([`crate::walk`]), where pages are runs.
//!
//! # Source
//! `mm/mempolicy.c`, `mm/migrate.c` and `kernel/cgroup/cpuset.c`; 6.8 to at least 7.2. Drawn scripts
//! were played in 6.12 guests: the same node for every page, and the same answer to every call.

pub mod family;
mod moves;
mod page;
pub mod pooled;
#[cfg(test)]
mod tests;
mod threads;

use std::collections::BTreeMap;
use std::ops::Range;

use nodewise_machine::{Machine, MemPolicy, NodeId, NodeSet, PolicyMode};

use crate::errno::Errno;
use crate::memory::Memory;
use crate::migrate::{self, Present};
use crate::policy::interleave::{InterleavePosition, Weights};
use crate::policy::set::{Policy, Scope, check_home};
use crate::ram::{Architecture, HUGE_ORDER, huge_order};
use crate::release::{Change, Release};
use crate::thp::TransparentHuge;
use crate::walk::{Class, Request};
use page::{Backing, Home, Page, Size};
use threads::Thread;

/// The common parts for all programs of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Surroundings {
    pub with_memory: NodeSet,
    pub online: NodeSet,
    /// Number of nodes that the kernel is built for.
    pub max_nodes: u32,
    pub release: Release,
    /// The weights of the nodes.
    pub weights: Weights,
    /// The order of transparent huge pages ([`crate::ram::huge_order`]).
    pub huge_order: u32,
}

impl Surroundings {
    /// Those of a machine whose nodes have no weights. A machine without huge pages gets the order of x86-64, which
    /// nothing asks for then.
    pub fn new(machine: &Machine, release: Release) -> Self {
        Self {
            with_memory: machine.nodes_with_memory(),
            online: machine.node_ids(),
            max_nodes: Architecture::from_machine(machine).max_nodes(),
            release,
            weights: Weights::new(),
            huge_order: huge_order(machine).unwrap_or(HUGE_ORDER),
        }
    }

    /// Small pages in a huge one, which begins at a multiple of as many.
    const fn block(&self) -> u64 {
        1 << self.huge_order
    }

    /// The pages of the place that a huge page with this one would have.
    const fn block_of(&self, page: u64) -> Range<u64> {
        let first = page - page % self.block();
        first..first.saturating_add(self.block())
    }

    /// The order of what moves as one with a page of a size.
    fn order(&self, size: Size) -> u32 {
        match size {
            Size::Huge => self.huge_order,
            Size::Part if !self.release.has(Change::PartsMoveApart) => self.huge_order,
            Size::Small | Size::Part => 0,
        }
    }
}

/// A program, of whose threads one makes the calls. Pages are numbered by address: byte 4096 is in page 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    around: Surroundings,
    policy: Policy,
    /// Counts where no policy was set.
    system: Policy,
    cpu_node: NodeId,
    allowed: NodeSet,
    threads: u32,
    /// The threads that have started, and which of them makes the calls now.
    others: Vec<Thread>,
    current: usize,
    huge: TransparentHuge,
    pages: BTreeMap<u64, Page>,
}

impl Task {
    /// A program of one thread without policy and mappings, on a CPU of a node, that may use all memory.
    pub fn new(around: Surroundings, cpu_node: NodeId) -> Self {
        let allowed = around.with_memory.clone();
        let (policy, system) = (Policy::DEFAULT, Policy::DEFAULT);
        let (others, huge) = (vec![Thread::default()], TransparentHuge::ADVISED);
        Self {
            around,
            policy,
            system,
            cpu_node,
            allowed,
            threads: 1,
            others,
            current: 0,
            huge,
            pages: BTreeMap::new(),
        }
    }

    /// The same program under a kernel whose own policy is this one ([`crate::policy::system`]).
    #[must_use]
    pub fn under(self, system: Policy) -> Self {
        Self { system, ..self }
    }

    /// The same program with this many threads that share its memory.
    #[must_use]
    pub fn with_threads(self, threads: u32) -> Self {
        Self { threads, ..self }
    }

    /// A child in the state that `fork(2)` and `execve(2)` leave: with its parent's policy, CPU and cpuset, and
    /// without its memory.
    #[must_use]
    pub fn start_program(&self) -> Self {
        Self { pages: BTreeMap::new(), ..self.alone() }
    }

    /// Goes to a CPU of a node.
    pub const fn run_on(&mut self, node: NodeId) {
        self.cpu_node = node;
    }

    /// `set_mempolicy(2)`.
    ///
    /// # Errors
    /// Those of [`Policy::from_mem_policy`]; the old policy stays.
    pub fn set_policy(&mut self, policy: &MemPolicy) -> Result<(), Errno> {
        self.policy = self.accepted(policy)?;
        Ok(())
    }

    fn accepted(&self, policy: &MemPolicy) -> Result<Policy, Errno> {
        let (max_nodes, release) = (self.around.max_nodes, self.around.release);
        Policy::from_mem_policy(policy, Scope { allowed: &self.allowed, max_nodes, release })
    }

    /// `mmap(2)` of private anonymous memory in small pages.
    pub fn map(&mut self, pages: Range<u64>) {
        self.pages.extend(pages.map(|page| (page, Page::untouched(Backing::Small))));
    }

    /// `mmap(2)` of private anonymous memory that is advised to be in transparent huge pages
    /// (`MADV_HUGEPAGE`); a whole number of them.
    pub fn map_huge(&mut self, pages: Range<u64>) {
        self.pages.extend(pages.map(|page| (page, Page::untouched(Backing::Huge))));
    }

    /// `mmap(2)` of private anonymous memory without advice: in huge pages where the system has them for all memory, and where a
    /// whole one fits.
    pub fn map_plain(&mut self, pages: Range<u64>) {
        self.pages.extend(pages.map(|page| (page, Page::untouched(Backing::Plain))));
    }

    /// Memory that has transparent huge pages from now on.
    pub const fn set_huge_pages(&mut self, huge: TransparentHuge) {
        self.huge = huge;
    }

    /// `mmap(2)` of a file in memory, shared (`MAP_SHARED` of a file of tmpfs or of `memfd_create(2)`), from
    /// one of the file's pages on. No one else has it mapped.
    pub fn map_file(&mut self, pages: Range<u64>, inode: u64, first: u64) {
        let of_file = (first..).map(|page| Page::untouched(Backing::File { inode, page }));
        self.pages.extend(pages.zip(of_file));
    }

    /// Keeps memory from children: `madvise(2)` with `MADV_DONTFORK`.
    pub fn keep_from_children(&mut self, pages: Range<u64>) {
        self.pages.range_mut(pages).for_each(|(_, page)| page.inherited = false);
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
    /// [`Policy::from_mem_policy`]. Nothing is changed then.
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
        let placed = policy.or(self.in_force()).clone();
        let kept = Some(policy).filter(|policy| policy.mode != PolicyMode::Default);
        let there = self.present(pages.clone());
        let mut nodes: Vec<NodeId> = there.iter().map(|(_, home)| home.0).collect();
        let mut moved = Vec::new();
        migrate::mbind(&mut nodes, asked, present, |at| {
            let (page, home) = there[at];
            // Where no page is to be had the old one stays.
            let order = self.order_at(page);
            let place = self.place_of(page, order, Some((&pages, &kept))).when_moved(self.around.release);
            let target = self.allocate_at(&placed, place, order, memory).unwrap_or(home);
            moved.push((page, home, target));
            target.0
        })?;
        for (page, home, target) in moved {
            self.settle(page, home, target, memory);
        }
        for (_, page) in self.pages.range_mut(pages) {
            page.set_policy(&kept);
        }
        Ok(())
    }

    /// `set_mempolicy_home_node(2)`.
    ///
    /// # Errors
    /// `ENOSYS` before 5.17, `EINVAL` for a missing node, `EOPNOTSUPP` at the first page whose mode has no
    /// home node (those before it are changed), `ENOENT` where no page has a policy.
    pub fn set_home(&mut self, pages: Range<u64>, node: NodeId) -> Result<(), Errno> {
        check_home(node.number().into(), &self.around.online, self.around.release)?;
        let mut result = Err(Errno::Enoent);
        for (_, page) in self.pages.range_mut(pages) {
            let Some(policy) = page.of_mapping_mut() else { continue };
            policy.set_home(node)?;
            let kept = Some(policy.clone());
            page.set_policy(&kept);
            result = Ok(());
        }
        result
    }

    /// Touches a page, that is, writes something other than zeros: its node, or `None` where it is not mapped or no page is to be had.
    pub fn touch(&mut self, page: u64, memory: &mut Memory) -> Option<NodeId> {
        if let Some(home) = self.huge_for(page, memory) {
            for (_, page) in self.pages.range_mut(self.around.block_of(page)) {
                (page.home, page.size, page.mapped, page.written) = (Some(home), Size::Huge, true, false);
            }
            self.pages.get_mut(&page)?.written = true;
            return Some(home.0);
        }
        self.touch_small(page, memory)
    }

    /// The huge page that a touch of an untouched page gets: where all of its place is mapped, nothing of it is there, and
    /// memory of this advice has huge pages.
    fn huge_for(&self, page: u64, memory: &mut Memory) -> Option<Home> {
        let backing = self.pages.get(&page)?.backing;
        let effort = match backing {
            Backing::Huge => self.huge.advised,
            Backing::Plain => self.huge.plain,
            Backing::Small | Backing::File { .. } => None,
        }?;
        let block = self.around.block_of(page);
        let is_free = |page: &Page| page.backing == backing && page.home.is_none();
        let free = self.pages.range(block.clone()).filter(|(_, page)| is_free(page)).count() as u64;
        if free < self.around.block() {
            return None;
        }
        let before = std::mem::replace(&mut memory.huge_effort, effort);
        let home = self.allocate(self.policy_of(page)?, block.start, self.around.huge_order, memory);
        memory.huge_effort = before;
        home
    }

    /// The node of the huge page that a touch would get; `None` where it would get a small one.
    pub fn huge_node_of(&self, page: u64, memory: &Memory) -> Option<NodeId> {
        self.huge_for(page, &mut memory.clone()).map(|(node, _)| node)
    }

    /// Touches a page where the kernel has found no huge one, like [`Task::touch`].
    pub fn touch_small(&mut self, page: u64, memory: &mut Memory) -> Option<NodeId> {
        let now = self.pages.get(&page)?;
        let copied = now.size == Size::Part && !self.around.release.has(Change::PartsKept);
        if now.home.is_none() || copied {
            let home = self.allocate(self.policy_of(page)?, page, 0, memory)?;
            let page = self.pages.get_mut(&page)?;
            page.size = Size::Small;
            if let Some((node, kind)) = page.home.replace(home) {
                memory.free(node, kind, 1);
            }
        }
        let own = self.pages.get_mut(&page)?;
        (own.mapped, own.written) = (true, true);
        self.node_of(page)
    }

    /// The policy that a page which is mapped would be placed by.
    fn policy_of(&self, page: u64) -> Option<&Policy> {
        Some(self.pages.get(&page)?.policy.as_ref().unwrap_or(self.in_force()))
    }

    /// The policy that places pages whose mapping has none: its own, or where it has none the system's.
    pub fn in_force(&self) -> &Policy {
        self.policy.or(&self.system)
    }

    /// Where a page of an order is in the turns of an interleaving policy. `bound` is a part that has another policy now.
    ///
    /// # Source
    /// `get_vma_policy` (before 6.7 `interleave_nid`) in `mm/mempolicy.c` adds two numbers of huge pages, each rounded down: that of
    /// the mapping's first page, and that of the pages from there on. Memory that begins inside the place of a huge page counts
    /// one less than its addresses say. Seen on 6.1, 6.12 and 6.18.
    fn place_of(
        &self,
        page: u64,
        order: u32,
        bound: Option<(&Range<u64>, &Option<Policy>)>,
    ) -> InterleavePosition {
        let backing = self.pages.get(&page).map_or(Backing::Small, |page| page.backing);
        if order == 0 || backing != Backing::Plain {
            return backing.place(page);
        }
        let place = page >> order << order;
        let first = self.first_of(page, bound).min(place);
        backing.place(((first >> order) + ((place - first) >> order)) << order)
    }

    /// The first page of what the kernel has as one mapping with a page: neighbours that are alike, with one policy.
    fn first_of<'a>(&'a self, page: u64, bound: Option<(&Range<u64>, &'a Option<Policy>)>) -> u64 {
        let of = |number: u64, page: &'a Page| -> (Backing, bool, &'a Option<Policy>) {
            let new = bound.filter(|(range, _)| range.contains(&number));
            (page.backing, page.inherited, new.map_or(&page.policy, |(_, new)| new))
        };
        let mut first = page;
        let mut before = self.pages.range(..=page).rev();
        let Some(own) = before.next().map(|(number, page)| of(*number, page)) else { return first };
        for (number, page) in before {
            if number + 1 != first || of(*number, page) != own {
                break;
            }
            first = *number;
        }
        first
    }

    /// A page of an order as a policy gives it to this program now.
    fn allocate(&self, policy: &Policy, page: u64, order: u32, memory: &mut Memory) -> Option<Home> {
        self.allocate_at(policy, self.place_of(page, order, None), order, memory)
    }

    /// The same for a page of another place.
    fn allocate_at(
        &self,
        policy: &Policy,
        place: InterleavePosition,
        order: u32,
        memory: &mut Memory,
    ) -> Option<Home> {
        let request = Request {
            policy,
            weights: &self.around.weights,
            cpu_node: self.cpu_node,
            allowed: &self.allowed,
            pages: 1,
            order,
            place,
            class: Class::User,
        };
        let outcome = memory.allocate(&request);
        if outcome.stretches.iter().any(|stretch| stretch.order != order) {
            // Small pages instead of a huge one are not what was asked for here.
            outcome.zones().into_iter().for_each(|(node, kind, pages)| memory.free(node, kind, pages));
            return None;
        }
        outcome.zones().first().map(|(node, kind, _)| (*node, *kind))
    }

    /// Whether the page is mapped, touched or not.
    pub fn is_mapped(&self, page: u64) -> bool {
        self.pages.contains_key(&page)
    }

    /// The node of a page; `None` before it is touched by this program.
    pub fn node_of(&self, page: u64) -> Option<NodeId> {
        self.pages.get(&page).filter(|page| page.mapped)?.home.map(|(node, _)| node)
    }

    /// The program's own policy, as `get_mempolicy(2)` shows it.
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
