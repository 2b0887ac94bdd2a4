//! A machine over time: programs that start, take memory, share it, give it back, move it, and end.
//!
//! Memory is handled as runs whose pages come round in turns, so that a step costs what the requests and
//! the nodes cost, and not what the pages are. Page by page, the oracle of the tests does the same for one program
//! and its child; the two are compared in the tests.
//!
//! A fork costs what the child's mappings cost, however many parts the memory has been cut into and however many programs have
//! each: a child has what its parent has, until one of them writes to it (`simulate/holders.rs`), and a program finds its copies of
//! pages without a look at those of others (`simulate/extents.rs`). A program that ends before its children hands over the parts
//! that it was the first to have, one by one.
//!
//! | to find | look in |
//! |---|---|
//! | what can be done | [`Act`] |
//! | the outcomes of it | [`Step`] |
//! | where everybody's memory is | [`Placement`] |
//! | memory that comes and goes | `simulate/mapping.rs` |
//! | who has a page, and which pages a program has | `simulate/holders.rs`, `simulate/extents.rs`, `simulate/family.rs` |
//! | touching pages, copies after a fork, pages that come back from a disk | `simulate/fault.rs` |
//! | calls that set policies and move pages | `simulate/calls.rs`, `simulate/moving.rs` |
//! | page cache of files on a disk | `simulate/cache.rs` |
//! | demotion, swap and the OOM killer | `simulate/reclaim.rs` |
//! | control groups with limits | `simulate/group.rs` |
//! | threads with policies and CPUs of their own | `simulate/thread.rs` |
//! | time that passes: pages that follow their CPU | `simulate/balance.rs` |
//! | pools of huge pages | `simulate/pool.rs` |

mod act;
mod balance;
mod cache;
mod calls;
mod cycle;
mod doubt;
mod extents;
mod family;
mod fault;
mod group;
mod holders;
mod limits;
mod mapping;
mod moving;
mod placement;
mod pool;
mod program;
mod reclaim;
mod run;
mod spans;
mod step;
#[cfg(test)]
mod tests;
mod thread;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use nodewise_machine::{Machine, MemPolicy, Node, NodeId, NodeSet};

use crate::balancing::Balancing;
use crate::caches;
use crate::errno::Errno;
use crate::memory::Memory;
use crate::policy::interleave::Weights;
use crate::policy::set::{Policy, Scope};
use crate::policy::system;
use crate::release::Release;
use crate::thp::TransparentHuge;
use crate::tier::Tiers;
pub use act::{Act, Backing, FilePart, Flags, Mapping, MemoryUse, Part, Refused, Skipped};
pub use limits::{GroupLimit, GroupLimits, GroupState};
pub use placement::{Owner, Placement};
pub use step::{Cause, Killed, LimitMet, LimitOutcome, LocalAfter, Relief, Step};

use doubt::Doubt;
use family::Family;
use group::Group;
use limits::GroupId;
use pool::Pool;
use program::{Id, Object, ObjectId, Program};

/// Where a program's first mapping is, as a page number: a place for which every turn begins again, that of huge pages
/// too. It is the least multiple of all numbers of nodes up to 16, in pages of 2 MiB, and below what 32 bits hold, by which
/// kernels before 6.7 count turns.
const FIRST_PAGE: u64 = 720_720 << 9;

/// Programs on a machine.
#[derive(Clone, Debug)]
pub struct Simulation {
    memory: Memory,
    weights: Weights,
    max_nodes: u32,
    release: Release,
    online: NodeSet,
    /// The policy that counts where a program has set none.
    system: Policy,
    tiers: Option<Tiers>,
    demotion: bool,
    balancing: Balancing,
    /// Which memory has transparent huge pages.
    huge: TransparentHuge,
    /// Pages of 4 KiB of swap, free ones and others.
    swap: u64,
    /// Pages of 4 KiB that a disk still takes.
    swap_left: u64,
    /// Pages of 4 KiB of caches that each node can give up.
    caches: BTreeMap<NodeId, u64>,
    pool: Pool,
    programs: BTreeMap<Id, Program>,
    names: BTreeMap<String, Id>,
    /// Threads beside the first of their programs.
    threads: BTreeMap<String, Id>,
    /// Programs that have not come to the end that the scenario has for them.
    gone: BTreeMap<String, Skipped>,
    groups: Vec<Group>,
    group_names: BTreeMap<String, GroupId>,
    objects: BTreeMap<ObjectId, Object>,
    files: BTreeMap<String, ObjectId>,
    /// Page cache of files on a disk, by their names.
    cached: BTreeMap<String, ObjectId>,
    /// Uncertain pages of it, by node.
    doubts: BTreeMap<NodeId, Doubt>,
    /// Pages of it that the model has dropped and the kernel may have kept, having dropped as many others that were used again.
    misjudged: u64,
    /// Pages that may have come into room which the model does not have, of all steps.
    room_used: u64,
    /// Whether pages that were written may be on the disk meanwhile.
    is_flushing: bool,
    /// The number of the step, by which pages age.
    now: u64,
    family: Family,
    next_object: ObjectId,
    changed_programs: BTreeSet<String>,
    changed_files: BTreeSet<String>,
    changed_caches: BTreeSet<String>,
    changed_pool: bool,
}

impl Simulation {
    /// A machine without programs, swap, tiers, demotion and balancing.
    pub fn new(memory: Memory, weights: Weights, max_nodes: u32, release: Release) -> Self {
        Self {
            online: memory.nodes(),
            system: Policy::DEFAULT,
            pool: Pool::empty(&memory),
            memory,
            weights,
            max_nodes,
            release,
            tiers: None,
            demotion: false,
            balancing: Balancing::OFF,
            huge: TransparentHuge::ADVISED,
            swap: 0,
            swap_left: 0,
            caches: BTreeMap::new(),
            programs: BTreeMap::new(),
            names: BTreeMap::new(),
            threads: BTreeMap::new(),
            gone: BTreeMap::new(),
            groups: Vec::new(),
            group_names: BTreeMap::new(),
            objects: BTreeMap::new(),
            files: BTreeMap::new(),
            cached: BTreeMap::new(),
            doubts: BTreeMap::new(),
            misjudged: 0,
            room_used: 0,
            is_flushing: false,
            now: 0,
            family: Family::default(),
            next_object: 0,
            changed_programs: BTreeSet::new(),
            changed_files: BTreeSet::new(),
            changed_caches: BTreeSet::new(),
            changed_pool: false,
        }
    }

    /// The same with the nodes, the memory tiers, the settings, the caches and the free swap of a machine.
    #[must_use]
    pub fn on(self, machine: &Machine) -> Self {
        let settings = &machine.settings;
        let cache =
            |node: &Node| caches::of_node(node, &self.memory).map(|(cache, _)| (node.id, cache.least));
        let swap = machine.swap_free.map(|size| size.get() / self.memory.page_bytes());
        Self {
            huge: TransparentHuge::from_machine(machine),
            swap: swap.unwrap_or(self.swap),
            caches: machine.nodes.values().filter_map(cache).collect(),
            swap_left: swap.unwrap_or(self.swap_left),
            online: machine.node_ids(),
            system: system::initial_policy(machine, self.release),
            tiers: Some(Tiers::from_machine(machine, self.release)),
            balancing: Balancing::from_machine(machine),
            demotion: settings.demotion_enabled.unwrap_or(false),
            ..self
        }
    }

    /// The same with this many pages of 4 KiB of swap.
    #[must_use]
    pub fn with_swap(self, pages: u64) -> Self {
        Self { swap: pages, swap_left: pages, ..self }
    }

    /// The same with other transparent huge pages.
    #[must_use]
    pub fn with_huge(self, huge: TransparentHuge) -> Self {
        Self { huge, ..self }
    }

    /// The same with another setting of `kernel.numa_balancing`.
    #[must_use]
    pub fn with_balancing(self, balancing: Balancing) -> Self {
        Self { balancing, ..self }
    }

    /// The memory as it is now.
    pub const fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Pages of 4 KiB that are left of the swap.
    pub const fn swap_left(&self) -> u64 {
        self.swap_left
    }

    /// Plays a step of a program.
    ///
    /// # Errors
    /// What makes no sense; nothing is changed then. A call that the kernel refuses is a step.
    pub fn play(&mut self, name: &str, act: &Act) -> Result<Step, Refused> {
        self.now += 1;
        let mut step = self.act(name, act)?;
        self.note_peaks();
        step.changed = self.changes();
        Ok(step)
    }

    fn act(&mut self, name: &str, act: &Act) -> Result<Step, Refused> {
        match act {
            Act::Start { cpu_node, policy, allowed } => return self.start(name, *cpu_node, policy, allowed),
            Act::ResizePool { pages } => {
                let node = self.cpu_node_of(name);
                self.resize_pool(*pages, node);
                return Ok(Step::default());
            }
            Act::Limit { group, parent, limits } => return self.limit(group, parent.as_deref(), limits),
            Act::SetDemotion(enabled) => {
                self.demotion = *enabled;
                return Ok(Step::default());
            }
            Act::Sync => {
                self.write_back();
                return Ok(Step::default());
            }
            Act::DropCaches => return Ok(self.drop_all()),
            _ => {}
        }
        if let Some(id) = self.threads.get(name).copied() {
            return self.act_as_thread(id, name, act);
        }
        let Some(id) = self.names.get(name).copied() else {
            return self.gone.get(name).map(|why| Step::skipped(*why)).ok_or(Refused::NotThere);
        };
        self.act_of(id, act)
    }

    /// Plays a step of a program that runs.
    fn act_of(&mut self, id: Id, act: &Act) -> Result<Step, Refused> {
        match act {
            Act::Map(mapping) => self.map(id, mapping, false),
            Act::Allocate(mapping) => self.map(id, mapping, true),
            Act::Free { region } => self.free_region(id, region),
            Act::Touch(part) => self.with_part(id, part, |simulation, object, pages| {
                let mut step = Step::default();
                // A stopped program has been reported.
                let _ = simulation.touch(id, object, pages, &mut step);
                step
            }),
            Act::Read(part) => Ok(self.use_file(id, part, false)),
            Act::Write(part) => Ok(self.use_file(id, part, true)),
            Act::SetPolicy(policy) => Ok(self.set_policy(id, policy)),
            Act::Bind { part, policy, flags } => self.with_part(id, part, |simulation, object, pages| {
                simulation.bind(id, (object, &part.region), pages, policy, *flags)
            }),
            Act::SetHome { part, node } => self.with_part(id, part, |simulation, object, pages| {
                simulation.set_home(id, (object, &part.region), pages, *node)
            }),
            Act::MovePages { part, node, all } => self.with_part(id, part, |simulation, object, pages| {
                simulation.move_pages(id, object, &pages, *node, *all)
            }),
            Act::Migrate { old, new } => Ok(self.migrate(id, old, new)),
            Act::RunOn(node) => {
                self.program(id).cpu_node = *node;
                Ok(Step::default())
            }
            Act::Remap { region, pages, first_page } => self.remap(id, region, *pages, *first_page),
            Act::AdjustOom(value) => {
                self.program(id).adjustment = *value;
                Ok(Step::default())
            }
            Act::Join { group } => self.join(id, group),
            Act::Restrict(allowed) => Ok(self.restrict(id, allowed)),
            Act::Fork { child } => self.fork(id, child),
            Act::StartThread { name } => self.start_thread(id, name),
            Act::Balance => Ok(self.balance(id)),
            Act::BalanceFor(usage) => Ok(self.balance_for(id, *usage)),
            Act::End => {
                self.remove(id);
                Ok(Step::default())
            }
            Act::Start { .. }
            | Act::ResizePool { .. }
            | Act::SetDemotion(_)
            | Act::Limit { .. }
            | Act::Sync
            | Act::DropCaches => Ok(Step::default()),
        }
    }

    fn start(
        &mut self,
        name: &str,
        cpu_node: NodeId,
        policy: &MemPolicy,
        allowed: &NodeSet,
    ) -> Result<Step, Refused> {
        if self.runs(name) {
            return Err(Refused::Started(name.to_owned()));
        }
        let allowed = allowed.intersection(&self.memory.nodes());
        let policy = match self.accepted(policy, &allowed) {
            Ok(policy) => policy,
            Err(errno) => {
                self.gone.insert(name.to_owned(), Skipped::NotStarted);
                return Ok(Step::refused(errno));
            }
        };
        let program = Program {
            name: name.to_owned(),
            policy,
            cpu_node,
            allowed,
            adjustment: 0,
            group: None,
            cpuset_of: self.family.next(),
            next_page: FIRST_PAGE,
            threads: BTreeMap::new(),
            regions: BTreeMap::new(),
            without: BTreeSet::new(),
        };
        self.add(program, None);
        Ok(Step::default())
    }

    /// Adds a program that starts, or is forked by another.
    fn add(&mut self, program: Program, parent: Option<Id>) -> Id {
        let id = self.family.add(parent.map(|parent| (parent, self.now)));
        self.gone.remove(&program.name);
        self.changed_programs.insert(program.name.clone());
        self.names.insert(program.name.clone(), id);
        self.programs.insert(id, program);
        id
    }

    fn fork(&mut self, id: Id, name: &str) -> Result<Step, Refused> {
        if self.runs(name) {
            return Err(Refused::Started(name.to_owned()));
        }
        let parent = self.programs[&id].clone();
        // The child has the thread that forks, and no other.
        let mut child = Program { name: name.to_owned(), threads: BTreeMap::new(), ..parent };
        for region in child.regions.values_mut() {
            // What is reserved of a pool stays the parent's.
            region.reserved = 0;
            // Pages of a file are found again when they are touched.
            let is_inherited = self.objects.get(&region.object).is_some_and(Object::is_inherited);
            region.sums = if is_inherited { region.sums.of_child() } else { Placement::default() };
            if let Some(object) = self.objects.get_mut(&region.object) {
                object.mappers.insert(self.family.next());
            }
        }
        self.add(child, Some(id));
        Ok(Step::default())
    }

    /// Does something with a part of a region: one that reaches beyond its end is not mapped (`EFAULT`).
    fn with_part(
        &mut self,
        id: Id,
        part: &Part,
        call: impl FnOnce(&mut Self, ObjectId, Range<u64>) -> Step,
    ) -> Result<Step, Refused> {
        let Some(region) = self.programs[&id].regions.get(&part.region) else {
            return self.no_region(id, &part.region);
        };
        let object = region.object;
        let Some(pages) = region.part(part.pages.as_ref()) else { return Ok(Step::refused(Errno::Efault)) };
        let step = call(self, object, pages);
        if let Some(object) = self.objects.get_mut(&object) {
            object.tidy(&self.family);
        }
        Ok(step)
    }

    /// Ends a program: gives back what no one else has.
    fn remove(&mut self, id: Id) {
        let Some(program) = self.programs.remove(&id) else { return };
        self.names.remove(&program.name);
        program.threads.keys().for_each(|thread| {
            self.threads.remove(thread);
        });
        self.changed_programs.insert(program.name);
        for region in program.regions.values() {
            self.unmap(id, region);
        }
    }

    fn set_policy(&mut self, id: Id, policy: &MemPolicy) -> Step {
        match self.accepted(policy, &self.programs[&id].allowed) {
            Ok(policy) => {
                self.program(id).policy = policy;
                Step::default()
            }
            Err(errno) => Step::refused(errno),
        }
    }

    fn accepted(&self, policy: &MemPolicy, allowed: &NodeSet) -> Result<Policy, Errno> {
        let scope = Scope { allowed, max_nodes: self.max_nodes, release: self.release };
        Policy::from_mem_policy(policy, scope)
    }

    /// The policy of a program's memory that has none of its own.
    fn in_force(&self, id: Id) -> &Policy {
        self.programs[&id].policy.or(&self.system)
    }

    fn program(&mut self, id: Id) -> &mut Program {
        self.programs.get_mut(&id).expect("the program runs: its name was found, and it was not killed since")
    }

    /// Notes that a program's memory has changed.
    fn note_program(&mut self, id: Id) {
        if let Some(program) = self.programs.get(&id) {
            self.changed_programs.insert(program.name.clone());
        }
    }
}
