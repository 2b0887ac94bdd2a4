//! All tables together: the nodes that a kernel comes up with.

use nodewise_machine::check::node_names;
use nodewise_machine::firmware::{MadtEntry, SratEntry, Tables};
use nodewise_machine::plural::by_count;
use nodewise_machine::{CpuSet, MemoryMap, NodeId, NodeMatrix, NodeSet};

pub use super::blocks::Span;
use super::cpus::{self, BootedCpu, Lost};
use super::domains::Domains;
use super::hmat::{self, Attributes};
use super::note::{Note, NoteKind};
use super::srat::{self, Affinities};
use super::{blocks, distances, spare, windows};
use crate::distance::default_distances;
use crate::ram::{Architecture, Range};
use crate::release::{Change, Release};

/// Facts that the tables do not contain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Setting {
    /// Where RAM is, as the firmware's memory map has it. `None`: in every range of the tables that
    /// is not marked as memory that may be added later.
    pub ram: Option<Vec<Span>>,
    /// Which kernel reads the tables.
    pub release: Release,
}

/// The nodes that a kernel comes up with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Booted {
    /// The architecture, by the kinds of structure in the tables.
    pub architecture: Architecture,
    /// Which kernel read the tables.
    pub release: Release,
    /// Whether the tables were accepted; else there is one node.
    pub is_accepted: bool,
    /// The domain of each node that has one, by node.
    pub domains: Vec<(NodeId, u32)>,
    /// Ranges of memory that hold RAM.
    pub ranges: Vec<Range>,
    /// Ranges in which memory may appear later.
    pub reserved: Vec<Range>,
    /// RAM, as it was given or taken for granted.
    pub ram: Vec<Span>,
    pub possible: NodeSet,
    /// Nodes that are there when the kernel has booted.
    pub online: NodeSet,
    /// Nodes with an initiator that is not a CPU.
    pub initiators: NodeSet,
    /// The CPUs that are there.
    pub cpus: Vec<BootedCpu>,
    /// Distances between all possible nodes.
    pub distances: NodeMatrix<u32>,
    /// The HMAT's figures, where there is one that the kernel takes.
    pub(super) attributes: Option<Attributes>,
    pub notes: Vec<Note>,
}

impl Booted {
    /// The node of a domain.
    pub fn node(&self, domain: u32) -> Option<NodeId> {
        self.domains.iter().find(|(_, other)| *other == domain).map(|(node, _)| *node)
    }

    /// The domain of a node.
    pub fn domain(&self, node: NodeId) -> Option<u32> {
        self.domains.iter().find(|(other, _)| *other == node).map(|(_, domain)| *domain)
    }

    /// The CPUs of a node.
    pub fn cpus_of(&self, node: NodeId) -> CpuSet {
        self.cpus.iter().filter(|cpu| cpu.node == Some(node)).map(|cpu| cpu.id).collect()
    }

    /// One node with everything: what there is without tables, and where a kernel rejects them.
    pub(super) fn one_node(
        architecture: Architecture,
        release: Release,
        ram: Vec<Span>,
        mut cpus: Vec<BootedCpu>,
    ) -> Self {
        let node = NodeId::new(0);
        let nodes = NodeSet::from([0]);
        cpus.iter_mut().for_each(|cpu| cpu.node = Some(node));
        Self {
            architecture,
            release,
            is_accepted: false,
            domains: Vec::new(),
            ranges: ram.iter().map(|(start, end)| Range { start: *start, end: *end, node }).collect(),
            reserved: Vec::new(),
            ram,
            distances: default_distances(&nodes),
            possible: nodes.clone(),
            online: nodes,
            initiators: NodeSet::new(),
            cpus,
            attributes: None,
            notes: Vec::new(),
        }
    }

    /// Where memory lies: RAM by node, and the ranges of the nodes.
    pub fn memory_map(&self) -> MemoryMap {
        let common = |(start, end): &Span, range: &Range| {
            let (start, end) = (range.start.max(*start), range.end.min(*end));
            (start < end).then_some(Range { start, end, node: range.node })
        };
        let ram =
            self.ram.iter().flat_map(|span| self.ranges.iter().filter_map(move |range| common(span, range)));
        let mut ram: Vec<Range> = ram.collect();
        ram.sort_unstable();
        // Ranges of one node can lie in each other.
        let mut joined: Vec<Range> = Vec::with_capacity(ram.len());
        for range in ram {
            match joined.last_mut().filter(|last| last.node == range.node && range.start <= last.end) {
                Some(last) => last.end = last.end.max(range.end),
                None => joined.push(range),
            }
        }
        MemoryMap { ram: joined, nodes: self.ranges.clone() }
    }

    /// Bytes of RAM on a node.
    pub fn memory(&self, node: NodeId) -> u64 {
        blocks::ram_of(node, &self.ranges, &self.ram)
    }
}

/// Computes the nodes that a kernel makes of these tables.
pub fn boot(tables: &Tables, setting: &Setting) -> Booted {
    let mut notes = Vec::new();
    let architecture = architecture(tables, &mut notes);
    let nodes = several(tables, setting, architecture, &mut notes);
    let mut booted = nodes.unwrap_or_else(|why| {
        notes.push(why);
        one(tables, setting, architecture, &mut notes)
    });
    booted.attributes = tables.hmat().and_then(|hmat| hmat::read(hmat, &booted, &mut notes));
    spare::notes(tables, &mut notes);
    booted.notes = notes;
    booted
}

/// The architecture, by how the tables name CPUs.
fn architecture(tables: &Tables, notes: &mut Vec<Note>) -> Architecture {
    let is_arm = |entry: &SratEntry| matches!(entry, SratEntry::Gicc(_) | SratEntry::GicIts(_));
    let is_riscv = |entry: &SratEntry| matches!(entry, SratEntry::Rintc(_));
    let srat = || tables.srat().into_iter().flat_map(|table| table.bodies());
    let gicc =
        tables.madt().is_some_and(|table| table.bodies().any(|entry| matches!(entry, MadtEntry::Gicc(_))));
    if srat().any(is_riscv) {
        let text = "RISC-V is read by the rules of arm64, which are alike as far as they are known";
        notes.push(Note::new(NoteKind::Assumed, "SRAT", text));
    }
    if gicc || srat().any(|entry| is_arm(entry) || is_riscv(entry)) {
        Architecture::Arm
    } else {
        Architecture::X86
    }
}

/// The nodes of the SRAT; `Err` where the kernel has one.
fn several(
    tables: &Tables,
    setting: &Setting,
    architecture: Architecture,
    notes: &mut Vec<Note>,
) -> Result<Booted, Note> {
    let table = tables
        .srat()
        .ok_or_else(|| Note::new(NoteKind::Assumed, "SRAT", "the table is missing, so there is one node"))?;
    let Affinities { mut domains, cpus, initiators, mut blocks } = srat::read(table, architecture, notes)?;
    let ram = setting.ram.clone().map_or_else(|| blocks::assumed_ram(&blocks), blocks::join);
    let told = domains.clone();
    let in_srat = blocks.len();
    let release = setting.release;
    let made = tables.cedt().map(|cedt| windows::add(cedt, &mut domains, &mut blocks, release, notes));
    let made: NodeSet = made.into_iter().flatten().collect();
    let apart = if release.has(Change::WindowsKeptApart) { in_srat } else { blocks.len() };
    let (fitted, windows) = blocks.split_at(apart);
    let mut cleaned = blocks::clean(fitted, &ram, architecture, notes)?;
    cleaned.reserved.extend(windows.iter().map(|window| window.range));
    note_plugged(&blocks, &made, notes);
    let possible = domains.nodes();
    // A window's node is made after the distances were read, so no table speaks of it.
    let distances = distances::between(&possible, &told, tables.slit(), notes);
    let with_ram: NodeSet = cleaned.used.iter().map(|range| range.node).collect();
    let lost = Lost { architecture, with_ram: &with_ram };
    let cpus = cpus::number(tables.madt(), &cpus, &domains, lost, notes);
    let with_cpus: NodeSet = cpus.iter().filter_map(|cpu| cpu.node).collect();
    let online = match architecture {
        Architecture::X86 => with_ram.union(&with_cpus).union(&initiators),
        _ => possible.clone(),
    };
    note_offline(&possible.difference(&online), &made, notes);
    note_without_memory(&with_cpus.difference(&with_ram), notes);
    if setting.ram.is_none() {
        let text = "the tables do not say where RAM is: each range is taken for full";
        notes.push(Note::new(NoteKind::Assumed, "SRAT", text));
    }
    Ok(Booted {
        architecture,
        release,
        is_accepted: true,
        domains: domains.by_node().into_iter().collect(),
        ranges: cleaned.used,
        reserved: cleaned.reserved,
        ram,
        possible,
        online,
        initiators,
        cpus,
        distances,
        attributes: None,
        notes: Vec::new(),
    })
}

/// Ranges of the SRAT in which memory may appear later.
fn note_plugged(blocks: &[srat::Block], made: &NodeSet, notes: &mut Vec<Note>) {
    let is_later = |block: &&srat::Block| block.is_hot_pluggable && !made.contains(block.range.node);
    for block in blocks.iter().filter(is_later) {
        let Range { start, end, node } = block.range;
        if start == end {
            continue;
        }
        let text =
            format!("{start:#x}-{:#x} of node {node} is marked as memory that can be added later", end - 1);
        notes.push(Note::at(NoteKind::Unusual, "SRAT", block.offset, text));
    }
}

/// Nodes that are possible and have nothing yet.
fn note_offline(offline: &NodeSet, made: &NodeSet, notes: &mut Vec<Note>) {
    let windows = offline.intersection(made);
    if !windows.is_empty() {
        let text = format!(
            "windows make {} possible, without memory until a driver adds some",
            node_names(&windows)
        );
        notes.push(Note::new(NoteKind::Unusual, "CEDT", text));
    }
    let others = offline.difference(made);
    if !others.is_empty() {
        let have = by_count(&others.len(), "has", "have");
        let stay = by_count(&others.len(), "stays", "stay");
        let text =
            format!("{} of the table {have} neither CPUs nor RAM, and {stay} offline", node_names(&others));
        notes.push(Note::new(NoteKind::Unusual, "SRAT", text));
    }
}

/// Nodes with CPUs whose memory is elsewhere: modules are missing, or plugged unevenly.
fn note_without_memory(nodes: &NodeSet, notes: &mut Vec<Note>) {
    if !nodes.is_empty() {
        let have = by_count(&nodes.len(), "has", "have");
        let text = format!("{} {have} CPUs and no memory", node_names(nodes));
        notes.push(Note::new(NoteKind::Unusual, "SRAT", text));
    }
}

/// One node with everything, as where there are no tables.
fn one(tables: &Tables, setting: &Setting, architecture: Architecture, notes: &mut Vec<Note>) -> Booted {
    let mut unheard = Vec::new();
    let read = tables.srat().and_then(|table| srat::read(table, architecture, &mut unheard).ok());
    let (blocks, names) = read.map(|affine| (affine.blocks, affine.cpus)).unwrap_or_default();
    let ram = setting.ram.clone().map_or_else(|| blocks::assumed_ram(&blocks), blocks::join);
    let domains = Domains::new(1, u32::MAX);
    let lost = Lost { architecture, with_ram: &NodeSet::from([0]) };
    let cpus = cpus::number(tables.madt(), &names, &domains, lost, &mut unheard);
    if tables.slit().is_some() {
        let text = "the table has no use where there is one node";
        notes.push(Note::new(NoteKind::Ignored, "SLIT", text));
    }
    Booted::one_node(architecture, setting.release, ram, cpus)
}
