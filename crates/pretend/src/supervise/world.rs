//! The machine, and the threads and processes that believe to be on it.

use std::collections::{BTreeMap, HashMap};

use nodewise_machine::mapping::FileId;
use nodewise_machine::{CpuId, CpuSet, Machine, NodeId, NodeSet};
use nodewise_model::policy::set::{Policy, Scope};
use nodewise_model::policy::{system, weights};
use nodewise_model::ram::Architecture;
use nodewise_model::{BuiltAt, Memory, Release, Weights};
use nodewise_source::tree::Tree;

use super::pages::Pages;
use super::space::Space;

/// The machine as far as calls depend on it.
#[derive(Debug)]
pub struct Facts {
    pub online: NodeSet,
    pub with_memory: NodeSet,
    /// One more than the highest node.
    pub nr_node_ids: u32,
    pub architecture: Architecture,
    pub release: Release,
    pub weights: Weights,
    /// The policy of programs that have set none.
    pub system: Policy,
    /// CPUs that are online.
    pub cpus: CpuSet,
    /// One more than the highest CPU that the machine may have.
    pub nr_cpu_ids: u32,
    /// Bits of a mask of CPUs in calls and in files: more than CPUs in many kernels.
    pub cpu_mask_bits: u32,
    node_of: BTreeMap<CpuId, NodeId>,
    /// The node of CPUs that are on none, and of the kernel's own page of zeros.
    pub first_node: NodeId,
    pub has_huge_pages: bool,
}

impl Facts {
    fn new(machine: &Machine, release: Release, cpu_mask_bits: Option<u32>) -> Self {
        let (online, with_memory) = (machine.node_ids(), machine.nodes_with_memory());
        let cpus = machine.online_cpus();
        let last = machine.possible_cpus.last().max(machine.cpu_ids().last());
        let nr_cpu_ids = last.map_or(0, CpuId::number) + 1;
        let node_of = cpus.iter().filter_map(|cpu| Some((cpu, machine.node_of(cpu)?))).collect();
        Self {
            nr_node_ids: online.last().map_or(0, NodeId::number) + 1,
            architecture: Architecture::from_machine(machine),
            release,
            weights: weights::in_force(machine, release),
            system: system::initial_policy(machine, release),
            nr_cpu_ids,
            cpu_mask_bits: cpu_mask_bits.unwrap_or_default().max(nr_cpu_ids),
            cpus,
            node_of,
            first_node: with_memory.first().unwrap_or(NodeId::new(0)),
            has_huge_pages: machine.settings.transparent_hugepage.as_deref() != Some("never"),
            online,
            with_memory,
        }
    }

    /// The node of a CPU.
    pub fn node_of(&self, cpu: CpuId) -> NodeId {
        self.node_of.get(&cpu).copied().unwrap_or(self.first_node)
    }

    /// Nodes and release, for checks of a policy.
    pub fn scope(&self) -> Scope<'_> {
        let max_nodes = self.architecture.max_nodes();
        Scope { allowed: &self.with_memory, max_nodes, release: self.release }
    }
}

/// Policy and CPUs, which a thread hands on to those that it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inherited {
    pub policy: Policy,
    pub cpus: CpuSet,
}

/// A thread.
#[derive(Clone, Debug)]
pub struct Thread {
    /// When it began, in ticks: its number may be used again.
    pub started: u64,
    pub process: u32,
    pub own: Inherited,
}

/// A process.
#[derive(Debug, Default)]
pub struct Process {
    /// Policy and CPUs of threads and children that have not called yet: those of the thread that started one last.
    pub starter: Option<Inherited>,
    /// Whether the process was started in this machine, as far as is known. Processes outside can be named in calls, too.
    pub is_inside: bool,
    pub space: Space,
}

/// All of them, and the machine's memory.
#[derive(Debug)]
pub struct World {
    pub facts: Facts,
    pub memory: Memory,
    /// Free pages of each node when nothing ran.
    pub free_at_start: BTreeMap<NodeId, u64>,
    pub threads: HashMap<u32, Thread>,
    pub processes: HashMap<u32, Process>,
    /// Pages of files and of shared memory.
    pub files: HashMap<FileId, Pages>,
    /// Policy and CPUs of children whose parent has ended before they called, by session.
    pub orphans: HashMap<u32, Inherited>,
    /// Threads when the ended ones were last forgotten.
    pub kept_threads: usize,
    pub here: Tree,
    /// The CPUs of this computer that the supervisor may use.
    pub real_cpus: CpuSet,
}

impl World {
    /// A machine on which nothing runs, and the bits of its masks of CPUs where its files show them.
    pub fn new(machine: &Machine, cpu_mask_bits: Option<u32>) -> Self {
        let release = Release::from_kernel(machine.kernel.as_ref());
        let memory = Memory::from_machine(machine, BuiltAt::Boot, release);
        Self {
            facts: Facts::new(machine, release, cpu_mask_bits),
            free_at_start: memory.nodes().iter().map(|node| (node, memory.free_of(node))).collect(),
            memory,
            threads: HashMap::new(),
            processes: HashMap::new(),
            files: HashMap::new(),
            orphans: HashMap::new(),
            kept_threads: 0,
            here: Tree::live(),
            real_cpus: nodewise_syscall::affinity::cpus(nodewise_syscall::Task::CURRENT).unwrap_or_default(),
        }
    }
}
