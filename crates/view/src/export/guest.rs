//! A virtual machine like a machine: its nodes and CPUs numbered from 0 without holes, as hypervisors want them.

use std::collections::BTreeMap;

use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::{AccessClass, Bytes, CpuId, CpuSet, Machine, NodeId};

/// Distances that a SLIT can hold: 10 is local, 255 unreachable.
const DISTANCES: std::ops::RangeInclusive<u32> = 10..=254;

/// A node of the guest.
pub(super) struct Cell {
    /// The node of the machine that it is like.
    pub node: NodeId,
    /// Its CPUs, as the guest numbers them.
    pub cpus: CpuSet,
    pub memory: Bytes,
}

/// Cost of an access between two cells.
pub(super) struct Link {
    pub initiator: usize,
    pub target: usize,
    /// Of reading, then of writing.
    pub latency_ns: [Option<u32>; 2],
    pub bandwidth_mb_per_s: [Option<u32>; 2],
}

/// A virtual machine.
pub(super) struct Guest {
    /// The CPU of the machine for each of its CPUs.
    pub cpus: Vec<CpuId>,
    pub cells: Vec<Cell>,
    /// Row by row; `None` where one is not known, or is none that firmware could state.
    pub distances: Option<Vec<Vec<u32>>>,
    pub links: Vec<Link>,
}

impl Guest {
    /// Plans a guest as large as the machine. `None` where no CPU is known, or the memory of no node.
    pub fn new(machine: &Machine) -> Option<Self> {
        let cpus: Vec<CpuId> =
            machine.online_cpus().iter().filter(|cpu| machine.node_of(*cpu).is_some()).collect();
        let numbers: BTreeMap<CpuId, CpuId> = cpus.iter().copied().zip((0..).map(CpuId::new)).collect_map();
        let cells: Vec<Cell> = machine
            .nodes
            .values()
            .filter_map(|node| {
                // A CPU that several nodes list is in one of them.
                let own = machine.cpus_of(node.id);
                let own = own.iter().filter(|cpu| machine.node_of(*cpu) == Some(node.id));
                let cpus: CpuSet = own.filter_map(|cpu| numbers.get(&cpu).copied()).collect();
                let memory = machine.ram_of(node.id)?;
                (!cpus.is_empty() || memory > Bytes::new(0)).then_some(Cell { node: node.id, cpus, memory })
            })
            .collect();
        let placed: usize = cells.iter().map(|cell| cell.cpus.len()).sum();
        if cells.is_empty() || cpus.is_empty() || placed != cpus.len() {
            return None;
        }
        let distances = distances(machine, &cells);
        let links = links(machine, &cells);
        Some(Self { cpus, cells, distances, links })
    }

    /// Memory of all cells.
    pub fn memory(&self) -> Bytes {
        self.cells.iter().map(|cell| cell.memory).sum()
    }
}

fn distances(machine: &Machine, cells: &[Cell]) -> Option<Vec<Vec<u32>>> {
    let distance = |from: &Cell, to: &Cell| {
        let value = machine.distance(from.node, to.node).filter(|value| DISTANCES.contains(value))?;
        ((from.node == to.node) == (value == *DISTANCES.start())).then_some(value)
    };
    cells.iter().map(|from| cells.iter().map(|to| distance(from, to)).collect()).collect()
}

fn links(machine: &Machine, cells: &[Cell]) -> Vec<Link> {
    let place = |node: NodeId| cells.iter().position(|cell| cell.node == node);
    let mut links = Vec::new();
    for (target, cell) in cells.iter().enumerate() {
        let classes = [AccessClass::Cpu, AccessClass::Any].into_iter();
        let Some(access) = classes.filter_map(|class| machine.access(cell.node, class)).next() else {
            continue;
        };
        // A guest's initiator has CPUs.
        let initiators = access.initiators.iter().filter_map(place);
        links.extend(initiators.filter(|at| cells.get(*at).is_some_and(|cell| !cell.cpus.is_empty())).map(
            |initiator| Link {
                initiator,
                target,
                latency_ns: [access.read_latency_ns, access.write_latency_ns],
                bandwidth_mb_per_s: [access.read_bandwidth_mb_per_s, access.write_bandwidth_mb_per_s],
            },
        ));
    }
    links
}

/// Sockets, cores of each and threads of each, where all are alike.
pub(super) fn shape(machine: &Machine, cpus: usize) -> Option<[usize; 3]> {
    let (packages, cores) = (machine.packages(), machine.cores());
    let per_package = cores.len().checked_div(packages.len())?;
    let threads = cpus.checked_div(cores.len())?;
    let regular = packages.values().all(|package| package.len() == per_package * threads)
        && cores.values().all(|core| core.len() == threads)
        && packages.len() * per_package * threads == cpus;
    regular.then_some([packages.len(), per_package, threads])
}
