//! The outcome of an emulation: nodes, CPUs, distances, fallback orders.

use std::collections::BTreeMap;

use nodewise_machine::{Bytes, CpuSet, Machine, MeminfoField, Node, NodeId, NodeMatrix, NodeSet, Origin};

use super::{Fake, Form, Piece, distance, pieces, raspberry_pi_6_6};
use crate::distance::default_distance;
use crate::ram::{Architecture, Range, page_bytes};
use crate::zonelist::{BuiltAt, FallbackOrders};

/// Whose way to cut memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmulationVariant {
    Mainline,
    /// That of the Raspberry Pi kernels 6.6: slices of addresses, CPUs on node 0, distances 20.
    RaspberryPi66,
}

impl EmulationVariant {
    /// The kind of a machine's kernel, by the text of its release: `6.6.31+rpt-rpi-2712`.
    pub fn from_machine(machine: &Machine) -> Self {
        match &machine.kernel {
            Some(kernel) if kernel.version() < (6, 12) && kernel.is_raspberry_pi() => Self::RaspberryPi66,
            _ => Self::Mainline,
        }
    }
}

/// An emulated node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmulatedNode {
    pub id: NodeId,
    /// The node it is cut from.
    pub physical: NodeId,
    /// Its ranges, the end behind the last byte, in the order in which they were made.
    pub ranges: Vec<(u64, u64)>,
    pub memory: Bytes,
    /// The CPUs that it lists.
    pub cpus: CpuSet,
}

/// The outcome of an emulation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emulation {
    pub nodes: Vec<EmulatedNode>,
    pub distances: NodeMatrix<u32>,
    /// The order in which each falls back.
    pub orders: FallbackOrders,
}

/// Emulates a machine under a kernel that is started with `numa=fake=`; `None` where the kernel gives up
/// and has the nodes of the hardware.
///
/// `ram` is where there is memory, `blocks` are the ranges of the physical nodes, holes included.
pub fn emulate(
    fake: &Fake,
    kind: EmulationVariant,
    machine: &Machine,
    ram: &[Range],
    blocks: &[Range],
) -> Option<Emulation> {
    let page = page_bytes(machine);
    let pieces = match (kind, fake.form) {
        (EmulationVariant::Mainline, form) => {
            pieces(form, Architecture::from_machine(machine), page, ram, blocks)?
        }
        (EmulationVariant::RaspberryPi66, Form::Count(count)) => raspberry_pi_6_6(count, page, ram)?,
        (EmulationVariant::RaspberryPi66, _) => return None,
    };
    let nodes = nodes(&pieces, kind, machine, ram);
    let distances = distances(fake, kind, machine, &pieces, &nodes);
    let orders = orders(machine, &nodes, &distances);
    Some(Emulation { nodes, distances, orders })
}

fn nodes(pieces: &[Piece], kind: EmulationVariant, machine: &Machine, ram: &[Range]) -> Vec<EmulatedNode> {
    let mut nodes: BTreeMap<NodeId, EmulatedNode> = BTreeMap::new();
    for piece in pieces {
        let node = nodes.entry(piece.node).or_insert_with(|| EmulatedNode {
            id: piece.node,
            physical: piece.physical,
            ranges: Vec::new(),
            memory: Bytes::new(0),
            cpus: CpuSet::new(),
        });
        let part = |range: &Range| range.end.min(piece.end).saturating_sub(range.start.max(piece.start));
        let bytes: u64 = ram.iter().map(part).sum();
        node.memory = Bytes::new(node.memory.get() + bytes);
        node.ranges.push((piece.start, piece.end));
    }
    let mut nodes: Vec<EmulatedNode> = nodes.into_values().collect();
    match kind {
        EmulationVariant::Mainline => list_cpus(&mut nodes, machine),
        // All on the first node, whatever it is cut from.
        EmulationVariant::RaspberryPi66 => {
            nodes.first_mut().into_iter().for_each(|first| first.cpus = machine.online_cpus());
        }
    }
    nodes
}

/// Each node lists the CPUs of its physical node. CPUs of a physical node that no node is of, as one without
/// memory or one whose piece went to a node that another had begun, are on node 0, and so on all that are of
/// the same physical node. Seen on 6.12 and 6.18.
fn list_cpus(nodes: &mut [EmulatedNode], machine: &Machine) {
    let is_cut = |id: NodeId| nodes.iter().any(|node| node.physical == id);
    let strays = machine.node_ids().iter().filter(|id| !is_cut(*id)).collect();
    let strays = machine.cpus_of_nodes(&strays);
    let first = nodes.first().map(|node| node.physical);
    for node in nodes {
        let own = machine.cpus_of(node.physical);
        node.cpus = if Some(node.physical) == first { own.union(&strays) } else { own };
    }
}

/// The pieces name the physical nodes; of several with the same number the first counts.
fn distances(
    fake: &Fake,
    kind: EmulationVariant,
    machine: &Machine,
    pieces: &[Piece],
    nodes: &[EmulatedNode],
) -> NodeMatrix<u32> {
    let first = |id: NodeId| pieces.iter().find(|piece| piece.node == id);
    let count = u32::try_from(nodes.len()).unwrap_or(u32::MAX);
    let mut matrix = NodeMatrix::new(nodes.iter().map(|node| node.id));
    for from in nodes {
        for to in nodes {
            let value = match (kind, first(from.id).zip(first(to.id))) {
                (EmulationVariant::RaspberryPi66, _) | (_, None) => default_distance(from.id, to.id),
                (EmulationVariant::Mainline, Some((one, other))) => {
                    let physical = machine.distance(from.physical, to.physical);
                    let assumed = default_distance(from.physical, to.physical);
                    distance(fake, count, one, other, physical.unwrap_or(assumed))
                }
            };
            matrix.set(from.id, to.id, value);
        }
    }
    matrix
}

fn orders(machine: &Machine, nodes: &[EmulatedNode], distances: &NodeMatrix<u32>) -> FallbackOrders {
    let mut emulated = Machine::new(Origin::Live);
    emulated.architecture.clone_from(&machine.architecture);
    emulated.distances = distances.clone();
    for node in nodes {
        emulated.nodes.insert(node.id, node_of(node.id, node.cpus.clone(), node.memory));
    }
    emulated.possible_nodes = emulated.node_ids();
    FallbackOrders::from_machine(&emulated, BuiltAt::Boot)
}

fn node_of(id: NodeId, cpus: CpuSet, memory: Bytes) -> Node {
    Node { cpus, meminfo: vec![MeminfoField::total(memory)], ..Node::new(id) }
}

/// The machine under an emulation: the nodes of the hardware with the CPUs of the nodes that were cut
/// from them, and the distances between those. `None` where a piece lies in no block.
pub fn physical(machine: &Machine, emulated: &[Range], blocks: &[Range]) -> Option<Machine> {
    let block_of =
        |piece: &Range| blocks.iter().find(|block| (block.start..block.end).contains(&piece.start));
    let mut parts: BTreeMap<NodeId, NodeSet> = BTreeMap::new();
    for piece in emulated {
        parts.entry(block_of(piece)?.node).or_default().insert(piece.node);
    }
    let mut hardware = Machine::new(machine.origin.clone());
    hardware.architecture.clone_from(&machine.architecture);
    hardware.kernel.clone_from(&machine.kernel);
    hardware.page_size = machine.page_size;
    hardware.cpus.clone_from(&machine.cpus);
    hardware.possible_cpus.clone_from(&machine.possible_cpus);
    hardware.distances = NodeMatrix::new(parts.keys().copied());
    for (id, own) in &parts {
        let size = blocks.iter().filter(|block| block.node == *id).map(|block| block.end - block.start).sum();
        hardware.nodes.insert(*id, node_of(*id, machine.cpus_of_nodes(own), Bytes::new(size)));
        for (other, others) in &parts {
            let pair = own.first().zip(others.first());
            if let Some(value) = pair.and_then(|(from, to)| machine.distance(from, to)) {
                hardware.distances.set(*id, *other, value);
            }
        }
    }
    hardware.possible_nodes = hardware.node_ids();
    Some(hardware)
}

/// Why a kernel gave up, or made another number of nodes than was asked for; `None` where it makes
/// what was asked for.
pub fn remark(fake: &Fake, kind: EmulationVariant, made: Option<&Emulation>) -> Option<String> {
    let Some(made) = made else {
        return Some(match (kind, fake.form) {
            (EmulationVariant::RaspberryPi66, Form::Size(_) | Form::PerNode(_)) => {
                "this kernel reads a number of nodes only: it starts without emulation".to_owned()
            }
            (_, Form::PerNode(_)) => {
                "a node of the hardware is too small for this number of 32 MiB each: the kernel starts without emulation"
                    .to_owned()
            }
            _ => "there is not enough memory for this number of nodes of 32 MiB: the kernel starts without emulation"
                .to_owned(),
        });
    };
    let got = made.nodes.len();
    let hardware: NodeSet = made.nodes.iter().map(|node| node.physical).collect();
    let asked = match fake.form {
        Form::Count(asked) => asked as usize,
        Form::PerNode(asked) => asked as usize * hardware.len(),
        Form::Size(size) => {
            let small = made.nodes.iter().filter(|node| node.memory < size).count();
            return (small > 0).then(|| {
                let total = Bytes::new(made.nodes.iter().map(|node| node.memory.get()).sum());
                format!("{total} of memory is not a multiple of {size}, so nodes differ in size")
            });
        }
    };
    (asked != got).then(|| {
        let fewer = if got < asked { "fewer" } else { "more" };
        format!(
            "{got} {nodes} instead of {asked}: pieces grow in steps of 32 MiB around holes, so {fewer} come out",
            nodes = if got == 1 { "node" } else { "nodes" }
        )
    })
}

#[cfg(test)]
mod tests;
