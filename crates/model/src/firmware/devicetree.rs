//! A device tree's nodes.
//!
//! # Source
//! `of_numa_init` in `drivers/of/of_numa.c`: arm64 and RISC-V without ACPI. Read, and seen with the tree
//! that QEMU makes.

use nodewise_machine::firmware::devicetree::{DistanceMap, NodeProperty, NumaTree, TreeCpu, TreeMemory};
use nodewise_machine::printable::visible;
use nodewise_machine::{CpuId, NodeId, NodeMatrix, NodeSet};

use super::blocks::{self, Span};
use super::boot::{Booted, Setting};
use super::cpus::{BootedCpu, CpuName};
use super::note::{Note, NoteKind};
use super::srat::Block;
use crate::distance::{LOCAL, default_distances};
use crate::ram::{Architecture, Range};

const TABLE: &str = "device tree";
const ARCHITECTURE: Architecture = Architecture::Arm;

/// Computes the nodes that a kernel makes of a device tree.
pub fn boot(tree: &NumaTree, setting: &Setting) -> Booted {
    let mut notes = Vec::new();
    let mut booted = several(tree, setting, &mut notes).unwrap_or_else(|why| {
        notes.push(why);
        Booted::one_node(ARCHITECTURE, setting.release, ram(tree, setting), cpus(tree, |_| None))
    });
    booted.notes = notes;
    booted
}

fn reject(text: String) -> Note {
    Note::new(NoteKind::Rejected, TABLE, format!("{text}: the kernel has one node"))
}

fn several(tree: &NumaTree, setting: &Setting, notes: &mut Vec<Note>) -> Result<Booted, Note> {
    let mut parsed = NodeSet::new();
    for cpu in &tree.cpus {
        match cpu.own {
            NodeProperty::Id(id) => {
                parsed.insert(accepted(id, &cpu.path)?);
            }
            NodeProperty::Malformed => return Err(malformed(&cpu.path)),
            NodeProperty::Missing => {}
        }
    }
    let blocks = memory(tree, &mut parsed, notes)?;
    if blocks.is_empty() {
        return Err(Note::new(NoteKind::Assumed, TABLE, "no memory names a node, so there is one"));
    }
    let mut distances = default_distances(&parsed);
    if let Some(map) = &tree.distance_map {
        fill(&mut distances, map, notes)?;
    }
    let ram = ram(tree, setting);
    let mut told = Vec::new();
    let cleaned = blocks::clean(&blocks, &ram, ARCHITECTURE, &mut told);
    // The rules are those of ranges of the SRAT.
    notes.extend(told.into_iter().map(of_tree));
    let cleaned = cleaned.map_err(of_tree)?;
    Ok(Booted {
        architecture: ARCHITECTURE,
        release: setting.release,
        is_accepted: true,
        domains: parsed.iter().map(|node| (node, node.number())).collect(),
        ranges: cleaned.used,
        reserved: cleaned.reserved,
        ram,
        online: parsed.clone(),
        initiators: NodeSet::new(),
        cpus: cpus(tree, |cpu| Some(node_of(cpu, &parsed))),
        distances,
        possible: parsed,
        attributes: None,
        notes: Vec::new(),
    })
}

/// The node with a number, if there can be one.
fn accepted(id: u32, path: &str) -> Result<NodeId, Note> {
    let most = ARCHITECTURE.max_nodes();
    if id < most {
        return Ok(NodeId::new(id));
    }
    Err(reject(format!("{}: numa-node-id is {id}, and nodes end at {}", visible(path), most - 1)))
}

fn of_tree(note: Note) -> Note {
    Note { table: TABLE, ..note }
}

fn malformed(path: &str) -> Note {
    reject(format!("{}: numa-node-id is not a number of 32 bits", visible(path)))
}

/// Ranges of memory that name a node.
fn memory(tree: &NumaTree, parsed: &mut NodeSet, notes: &mut Vec<Note>) -> Result<Vec<Block>, Note> {
    let mut blocks = Vec::new();
    let last = tree.memory.len().wrapping_sub(1);
    for (at, TreeMemory { path, node, ranges }) in tree.memory.iter().enumerate() {
        let id = match node {
            NodeProperty::Id(id) => accepted(*id, path)?,
            NodeProperty::Malformed => return Err(malformed(path)),
            NodeProperty::Missing if at == last => {
                let text = format!("{} is the last memory and has no numa-node-id", visible(path));
                return Err(reject(text));
            }
            NodeProperty::Missing => {
                let text = format!("{} has no numa-node-id and is passed over", visible(path));
                notes.push(Note::new(NoteKind::Ignored, TABLE, text));
                continue;
            }
        };
        let ranges = ranges.as_deref().unwrap_or_default();
        if ranges.is_empty() {
            return Err(reject(format!("{} has no range of memory in its reg", visible(path))));
        }
        parsed.insert(id);
        for reg in ranges {
            let Some(end) = reg.end() else {
                return Err(reject(format!("{} ends beyond all addresses", visible(path))));
            };
            let range = Range { start: reg.start, end, node: id };
            blocks.push(Block { range, offset: 0, is_hot_pluggable: false, is_persistent: false });
        }
    }
    Ok(blocks)
}

/// RAM is what memory nodes say, those without a node too.
fn ram(tree: &NumaTree, setting: &Setting) -> Vec<Span> {
    let told = || {
        let ranges = tree.memory.iter().filter_map(|memory| memory.ranges.as_deref()).flatten();
        ranges.map(|reg| (reg.start, reg.end().unwrap_or(u64::MAX))).collect()
    };
    blocks::join(setting.ram.clone().unwrap_or_else(told))
}

/// Takes the triples in their order; one towards a larger number holds for the way back too, unless
/// a later one says otherwise.
fn fill(distances: &mut NodeMatrix<u32>, map: &DistanceMap, notes: &mut Vec<Note>) -> Result<(), Note> {
    if !map.is_known {
        let text = "distance-map is not compatible with numa-distance-map-v1: distances are 10 and 20";
        notes.push(Note::new(NoteKind::Ignored, TABLE, text));
        return Ok(());
    }
    let triples = map.triples.as_deref().filter(|triples| !triples.is_empty());
    let triples = triples
        .ok_or_else(|| reject("distance-map has no distance-matrix of three numbers each".to_owned()))?;
    for [from, to, distance] in triples {
        let is_local = from == to;
        if is_local != (*distance == LOCAL) || *distance < LOCAL {
            let right = if is_local { "10" } else { "above 10" };
            return Err(reject(format!("distance-map: {from} to {to} is {distance}, not {right}")));
        }
        let (one, two) = (NodeId::new(*from), NodeId::new(*to));
        if !distances.set(one, two, *distance) {
            let text = format!("distance-map: {from} to {to} names a node that neither CPUs nor memory have");
            notes.push(Note::new(NoteKind::Ignored, TABLE, text));
            continue;
        }
        if to > from {
            distances.set(two, one, *distance);
        }
    }
    Ok(())
}

/// A CPU's own node or that of the nearest parent with one; 0 where that is not a node.
fn node_of(cpu: &TreeCpu, parsed: &NodeSet) -> NodeId {
    match cpu.inherited {
        NodeProperty::Id(id) if parsed.contains(NodeId::new(id)) => NodeId::new(id),
        _ => NodeId::new(0),
    }
}

fn cpus(tree: &NumaTree, node: impl Fn(&TreeCpu) -> Option<NodeId>) -> Vec<BootedCpu> {
    let enabled = tree.cpus.iter().filter(|cpu| cpu.enabled);
    (0..)
        .zip(enabled)
        .map(|(id, cpu)| BootedCpu { id: CpuId::new(id), name: CpuName::Uid(id), node: node(cpu) })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use NodeProperty::{Id, Malformed, Missing};
    use nodewise_machine::firmware::devicetree::Reg;

    const MIB: u64 = 1 << 20;

    fn memory(node: NodeProperty, at: u64) -> TreeMemory {
        let reg = Reg { start: at * MIB, size: 256 * MIB };
        TreeMemory { path: format!("/memory@{at:x}"), node, ranges: Some(vec![reg]) }
    }

    fn tree(ids: &[NodeProperty], triples: &[[u32; 3]]) -> NumaTree {
        let cpu = |own| TreeCpu { path: "/cpus/cpu@0".to_owned(), own, inherited: own, enabled: true };
        NumaTree {
            model: None,
            cpus: vec![cpu(Id(0)), cpu(Missing)],
            memory: (0..).zip(ids).map(|(at, id)| memory(*id, at * 256)).collect(),
            distance_map: (!triples.is_empty())
                .then(|| DistanceMap { is_known: true, triples: Some(triples.to_vec()) }),
        }
    }

    /// Whether the nodes of the tree are taken, and what is said.
    fn check(tree: &NumaTree, is_accepted: bool, notes: &[&str]) -> Booted {
        let booted = boot(tree, &Setting::default());
        let told: Vec<&str> = booted.notes.iter().map(|note| note.text.as_str()).collect();
        assert_eq!((booted.is_accepted, told), (is_accepted, notes.to_vec()));
        booted
    }

    #[test]
    fn nodes_keep_their_numbers() {
        let booted = check(&tree(&[Id(0), Id(7)], &[]), true, &[]);
        assert_eq!(booted.online, NodeSet::from([0, 7]));
        assert_eq!(booted.memory(NodeId::new(7)), 256 * MIB);
        assert!(booted.cpus.iter().all(|cpu| cpu.node == Some(NodeId::new(0))));
    }

    #[test]
    fn a_distance_holds_for_the_way_back_unless_that_has_its_own() {
        let distances = |triples: &[[u32; 3]]| {
            let booted = check(&tree(&[Id(0), Id(1)], triples), true, &[]);
            let of = |from, to| *booted.distances.get(NodeId::new(from), NodeId::new(to)).unwrap();
            (of(0, 1), of(1, 0))
        };
        assert_eq!(distances(&[]), (20, 20));
        assert_eq!(distances(&[[0, 1, 30]]), (30, 30));
        assert_eq!(distances(&[[0, 1, 30], [1, 0, 40]]), (30, 40));
        assert_eq!(distances(&[[1, 0, 40]]), (20, 40));
    }

    #[test]
    fn what_costs_the_nodes_is_told() {
        let refuse = |tree: &NumaTree, text: &str| {
            check(tree, false, &[&format!("{text}: the kernel has one node")]);
        };
        refuse(&tree(&[Id(0), Missing], &[]), "/memory@100 is the last memory and has no numa-node-id");
        refuse(&tree(&[Malformed, Id(1)], &[]), "/memory@0: numa-node-id is not a number of 32 bits");
        refuse(&tree(&[Id(16)], &[]), "/memory@0: numa-node-id is 16, and nodes end at 15");
        refuse(&tree(&[Id(0), Id(1)], &[[0, 1, 10]]), "distance-map: 0 to 1 is 10, not above 10");
        refuse(&tree(&[Id(0), Id(1)], &[[1, 1, 11]]), "distance-map: 1 to 1 is 11, not 10");
        let mut broken = tree(&[Id(0), Id(1)], &[[0, 1, 20]]);
        broken.distance_map = Some(DistanceMap { is_known: true, triples: None });
        refuse(&broken, "distance-map has no distance-matrix of three numbers each");
    }

    #[test]
    fn memory_without_a_node_is_passed_over_and_is_ram_of_no_node() {
        let notes = [
            "/memory@0 has no numa-node-id and is passed over",
            "256 MiB of RAM at 0x0 belongs to no node: the kernel rejects the table and has one node",
        ];
        check(&tree(&[Missing, Id(1)], &[]), false, &notes);
    }
}
