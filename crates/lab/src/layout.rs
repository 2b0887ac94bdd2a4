//! Machine to [`Layout`]: the nodes a guest gets, and in words where they differ from the machine.
//!
//! A guest is smaller than the machine it is for. What is kept exactly: which nodes have CPUs
//! and which have memory, the distances, the attributes that the firmware gives. What is scaled:
//! how many CPUs and how much memory. Whatever could not be kept is in [`Layout::notes`].

mod accesses;
mod cpus;
mod distances;
mod memory;
mod parts;

use nodewise_machine::{Bytes, CpuId, CpuSet, Machine, NodeId, NodeMatrix};

pub use accesses::AccessCell;
pub use cpus::Shape;

/// Most nodes that QEMU lets a guest have (`MAX_NODES` of `include/sysemu/numa.h`, QEMU 10.0).
pub const MOST_NODES: usize = 128;
/// Most CPUs of a guest: more need an interrupt remapping unit on x86 (APIC ids have 8 bits, and 255 is
/// broadcast).
pub const MOST_CPUS: u32 = 255;

/// How large a guest may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// CPUs of all nodes together. Every node that has CPUs keeps at least one, so a guest with
    /// many nodes can have more.
    pub cpus: u32,
    /// Memory of all nodes together. Every node that has memory keeps at least 128 MiB, so a guest
    /// with many nodes can have more.
    pub memory: Bytes,
}

impl Default for Limits {
    /// Eight CPUs and 2 GiB: what a machine with two cores emulates in a bearable time.
    fn default() -> Self {
        Self { cpus: 8, memory: Bytes::from_gib(2) }
    }
}

/// A node of the guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestNode {
    /// Its number in the guest.
    pub id: NodeId,
    /// The node of the machine that it is for.
    pub stands_for: NodeId,
    /// Its CPUs in the guest; empty for a memory-only node.
    pub cpus: CpuSet,
    /// Its memory; `None` for a node that has CPUs only.
    pub memory: Option<Bytes>,
    /// The node whose CPUs the guest's HMAT names as nearest to this memory; itself for a node with
    /// CPUs, `None` when the guest gets no HMAT.
    pub initiator: Option<NodeId>,
}

/// Why a machine cannot become a guest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// It has more nodes than QEMU can build.
    #[error("a machine of {nodes} nodes does not fit into the lab: QEMU builds at most {MOST_NODES}")]
    TooManyNodes { nodes: usize },
    /// No node can hold the kernel.
    #[error("no node of this machine has memory: a kernel needs some to run in")]
    NoMemory,
}

/// The nodes of a guest and what lies between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The nodes in the order of their numbers, which have no holes.
    pub nodes: Vec<GuestNode>,
    /// How the CPUs are grouped.
    pub shape: Shape,
    /// Distances between the guest's nodes; every cell is set and legal in a SLIT.
    pub distances: NodeMatrix<u32>,
    /// The costs of accesses in the guest's HMAT; empty when it gets none.
    pub accesses: Vec<AccessCell>,
    /// Every deviation from the machine, in words, one sentence each.
    pub notes: Vec<String>,
}

impl Layout {
    /// Plans a guest for a machine.
    ///
    /// Nodes with CPUs come first and those without after them, each in the machine's order,
    /// without holes: so Linux numbers them (`acpi_map_pxm_to_node`: proximity domains get node
    /// numbers as they are met, first in the processor entries of the SRAT, then in the memory
    /// entries).
    ///
    /// # Errors
    /// A machine with more than [`MOST_NODES`] nodes, or with no memory at all.
    pub fn new(machine: &Machine, limits: &Limits) -> Result<Self, LayoutError> {
        let mut notes = Vec::new();
        let parts = parts::guest_nodes(machine, &mut notes);
        if parts.len() > MOST_NODES {
            return Err(LayoutError::TooManyNodes { nodes: parts.len() });
        }
        if !parts.iter().any(|part| part.has_memory) {
            return Err(LayoutError::NoMemory);
        }
        let (counts, shape) = cpus::share(&parts, limits.cpus, &mut notes);
        let sizes = memory::share(&parts, limits.memory, &mut notes);
        let mut next_cpu = 0;
        let mut nodes = Vec::new();
        for ((at, part), (count, memory)) in (0..).zip(&parts).zip(counts.into_iter().zip(sizes)) {
            let cpus = (next_cpu..next_cpu + count).map(CpuId::new).collect();
            next_cpu += count;
            nodes.push(GuestNode {
                id: NodeId::new(at),
                stands_for: part.node,
                cpus,
                memory,
                initiator: None,
            });
        }
        let distances = distances::between(machine, &nodes, &mut notes);
        let accesses = accesses::between(machine, &mut nodes, &distances, &mut notes);
        Ok(Self { nodes, shape, distances, accesses, notes })
    }

    /// The guest's node that stands for a node of the machine; `None` when it was left out.
    pub fn guest_node(&self, of_machine: NodeId) -> Option<NodeId> {
        self.nodes.iter().find(|node| node.stands_for == of_machine).map(|node| node.id)
    }

    /// The node of the machine that a guest's node stands for.
    pub fn machine_node(&self, of_guest: NodeId) -> Option<NodeId> {
        self.nodes.iter().find(|node| node.id == of_guest).map(|node| node.stands_for)
    }

    /// Memory of all nodes together.
    pub fn memory(&self) -> Bytes {
        self.nodes.iter().filter_map(|node| node.memory).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::spec;
    use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, proptest};

    /// A layout in one line per node, then the notes.
    fn check(spec: &str, limits: Limits, nodes: &[&str], notes: &[&str]) {
        let layout = Layout::new(&spec::machine(spec).unwrap(), &limits).unwrap();
        let lines: Vec<String> = layout
            .nodes
            .iter()
            .map(|node| {
                let memory = node.memory.map_or("-".to_owned(), Bytes::exact);
                let cpus = if node.cpus.is_empty() { "-".to_owned() } else { node.cpus.to_string() };
                format!("{} <- {}: {cpus} {memory}", node.id, node.stands_for)
            })
            .collect();
        assert_eq!(lines, nodes, "{spec}");
        assert_eq!(layout.notes, notes, "{spec}");
    }

    #[test]
    fn the_four_node_server_keeps_its_packages_and_threads() {
        check(
            "2x(2x(12c2t 128G)); dist=11,20",
            Limits::default(),
            &["0 <- 0: 0-1 512M", "1 <- 1: 2-3 512M", "2 <- 2: 4-5 512M", "3 <- 3: 6-7 512M"],
            &[
                "nodes 0-3 have 2 CPUs each here instead of 24",
                "nodes 0-3 have 512 MiB each here instead of 128 GiB",
            ],
        );
    }

    #[test]
    fn nodes_without_cpus_come_last() {
        check(
            "(4G) (2c 2G) (1c) (2c 2G); ids=0,8,9,16",
            Limits { cpus: 8, memory: Bytes::from_gib(8) },
            &["0 <- 8: 0-1 2G", "1 <- 9: 2 -", "2 <- 16: 3-4 2G", "3 <- 0: - 4G"],
            &[
                "node 8 of the machine is node 0 of the guest, node 9 is node 1, node 16 is node 2, \
                 node 0 is node 3",
                "packages are not kept: the guest's CPUs are cores of one",
            ],
        );
    }

    #[test]
    fn a_pi_with_emulated_nodes_has_cpus_in_node_0_only() {
        check(
            "(4c 1G) 7x(1G)",
            Limits::default(),
            &[
                "0 <- 0: 0-3 256M",
                "1 <- 1: - 256M",
                "2 <- 2: - 256M",
                "3 <- 3: - 256M",
                "4 <- 4: - 256M",
                "5 <- 5: - 256M",
                "6 <- 6: - 256M",
                "7 <- 7: - 256M",
            ],
            &["nodes 0-7 have 256 MiB each here instead of 1 GiB"],
        );
    }

    #[test]
    fn a_machine_that_fits_is_kept_without_a_word() {
        check("2x(2c 1G); dist=21", Limits::default(), &["0 <- 0: 0-1 1G", "1 <- 1: 2-3 1G"], &[]);
    }

    #[test]
    fn nodes_are_found_by_either_number() {
        let machine = spec::machine("2x(1c 1G); ids=3,7").unwrap();
        let layout = Layout::new(&machine, &Limits::default()).unwrap();
        assert_eq!(layout.guest_node(NodeId::new(7)), Some(NodeId::new(1)));
        assert_eq!(layout.machine_node(NodeId::new(0)), Some(NodeId::new(3)));
        assert_eq!(layout.guest_node(NodeId::new(1)), None);
        assert_eq!(layout.memory(), Bytes::from_gib(2));
    }

    #[test]
    fn what_cannot_be_built_is_refused() {
        let refuse = |spec: &str| {
            Layout::new(&spec::machine(spec).unwrap(), &Limits::default()).unwrap_err().to_string()
        };
        assert_eq!(
            refuse("200x(1c 1G)"),
            "a machine of 200 nodes does not fit into the lab: QEMU builds at most 128"
        );
        assert_eq!(refuse("2x(1c)"), "no node of this machine has memory: a kernel needs some to run in");
    }

    /// Specs of machines of every kind: nodes with and without CPUs and memory.
    fn any_spec() -> impl Strategy<Value = String> {
        let node = (0u32..6, 1u32..3, any::<bool>(), 1u64..300);
        proptest::collection::vec(node, 1..12).prop_map(|nodes| {
            let mut text = String::from("(1c 1G)");
            for (cores, threads, memory, gib) in nodes {
                let cpus = if cores > 0 { format!("{cores}c{threads}t") } else { String::new() };
                let size = if memory || cores == 0 { format!("{gib}G") } else { String::new() };
                text.push_str(&format!(" ({cpus} {size})"));
            }
            text
        })
    }

    proptest! {
        #[test]
        fn every_layout_can_be_built(
            spec in any_spec(),
            distance in (0u32..12, 0u32..12, 0u32..400),
            cpus in 0u32..40,
            gib in 0u64..20,
        ) {
            let mut machine = spec::machine(&spec).unwrap();
            machine.distances.set(NodeId::new(distance.0), NodeId::new(distance.1), distance.2);
            let limits = Limits { cpus, memory: Bytes::from_gib(gib) };
            let layout = Layout::new(&machine, &limits).unwrap();
            let mut next = 0;
            for (at, node) in (0u32..).zip(&layout.nodes) {
                prop_assert_eq!(node.id, NodeId::new(at));
                prop_assert_eq!(machine.cpus_of(node.stands_for).is_empty(), node.cpus.is_empty());
                prop_assert_eq!(machine.nodes[&node.stands_for].has_memory(), node.memory.is_some());
                for cpu in &node.cpus {
                    prop_assert_eq!(cpu.number(), next);
                    next += 1;
                }
                if let Some(memory) = node.memory {
                    prop_assert!(memory.mib() >= 128 && memory.mib() % 128 == 0);
                }
            }
            prop_assert_eq!(layout.shape.cpus(), next);
            prop_assert!(next <= cpus.max(layout.nodes.len() as u32));
            for (from, to) in layout.nodes.iter().flat_map(|a| layout.nodes.iter().map(move |b| (a.id, b.id))) {
                let distance = *layout.distances.get(from, to).unwrap();
                let legal = if from == to { 10..=10 } else { 11..=254 };
                prop_assert!(legal.contains(&distance));
            }
        }
    }
}
