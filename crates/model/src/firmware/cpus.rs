//! CPUs: numbered by the MADT, and brought to nodes by the SRAT.

use std::collections::{BTreeMap, BTreeSet};

use nodewise_machine::check::node_names;
use nodewise_machine::firmware::{Madt, MadtEntry, madt};
use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::plural::{by_count, plural};
use nodewise_machine::{CpuId, NodeId, NodeSet};

use super::domains::Domains;
use super::note::{Note, NoteKind};
pub use super::srat::CpuName;
use crate::ram::Architecture;

/// The APIC id that means "every CPU", for the two kinds of structure.
const BROADCAST: (u32, u32) = (0xff, u32::MAX);

/// A CPU as the kernel will have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BootedCpu {
    pub id: CpuId,
    /// How the tables name it.
    pub name: CpuName,
    /// Its node; `None` when the tables do not say and the kernel chooses one.
    pub node: Option<NodeId>,
}

/// Where CPUs go that no enabled structure of the SRAT names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lost<'a> {
    pub(super) architecture: Architecture,
    pub(super) with_ram: &'a NodeSet,
}

impl Lost<'_> {
    /// The node of such a CPU.
    ///
    /// arm64 counts it to node 0. x86 hands all CPUs round the nodes with RAM first; a CPU that the table does not
    /// name keeps that node where Intel made it, and goes to the node with the number of its last-level cache, as a
    /// rule 0, where AMD did. Tables do not say who made a CPU: it is taken for AMD's.
    ///
    /// # Source
    /// `numa_init_array` and `init_cpu_to_node` in `arch/x86/mm/numa.c`, `srat_detect_node` in
    /// `arch/x86/kernel/cpu/{amd,intel}.c`. Seen with AMD's on 6.12 and 6.18; Intel's was read and not tried, as guests
    /// of QEMU's TCG have processors of AMD's kind. There a CPU whose structure is missing keeps the value of
    /// `numa_init_array`: the nodes that are online then, in turn by the CPU's number.
    fn node(self) -> NodeId {
        let none = NodeId::new(0);
        if self.architecture != Architecture::X86 || self.with_ram.contains(none) {
            return none;
        }
        self.with_ram.first().unwrap_or(none)
    }

    /// The node that the same CPU has where Intel made it.
    fn of_intel(self, cpu: usize) -> Option<NodeId> {
        self.with_ram.iter().nth(cpu.checked_rem(self.with_ram.len())?)
    }

    /// Where such CPUs go, in words.
    fn words(self, cpus: &[usize]) -> String {
        let node = self.node();
        let words = format!("the kernel counts them to node {node}");
        let others: NodeSet = cpus.iter().filter_map(|cpu| self.of_intel(*cpu)).collect();
        if self.architecture != Architecture::X86 || others == NodeSet::from_iter([node]) {
            return words;
        }
        format!(
            "{words} on AMD processors (by their last-level cache), to {} on Intel's in turn",
            node_names(&others)
        )
    }
}

/// The CPUs that are there, in the order of their numbers.
///
/// The kernel numbers them as the MADT lists them, but for the one that it boots on, which is 0; that is
/// nearly always the first. Without a MADT the order is that of the SRAT.
pub(super) fn number(
    table: Option<&Madt>,
    affine: &[(CpuName, u32)],
    domains: &Domains,
    lost: Lost<'_>,
    notes: &mut Vec<Note>,
) -> Vec<BootedCpu> {
    let architecture = lost.architecture;
    let known: BTreeMap<CpuName, u32> = affine.iter().rev().copied().collect_map();
    let mut names = table.map(|table| listed(table, architecture)).unwrap_or_default();
    if names.is_empty() {
        names = affine.iter().map(|(name, _)| *name).collect();
        if !names.is_empty() {
            let text = "without a MADT, CPUs are numbered in the order of the SRAT";
            notes.push(Note::new(NoteKind::Assumed, "SRAT", text));
        }
    }
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(*name));
    let node = |name: &CpuName| known.get(name).and_then(|domain| domains.node(*domain));
    let cpus: Vec<BootedCpu> = (0..)
        .zip(&names)
        .map(|(id, name)| BootedCpu {
            id: CpuId::new(id),
            name: *name,
            node: node(name).or(Some(lost.node())),
        })
        .collect();
    let unnamed = (0..).zip(&names).filter(|(_, name)| node(name).is_none()).map(|(at, _)| at);
    let unnamed: Vec<usize> = unnamed.collect();
    if !unnamed.is_empty() {
        let have = by_count(&unnamed.len(), "has", "have");
        let cpus = plural(unnamed.len(), "CPU");
        let text = format!("{cpus} of the MADT {have} no enabled structure: {}", lost.words(&unnamed));
        notes.push(Note::new(NoteKind::Unusual, "SRAT", text));
    }
    cpus
}

/// The enabled CPUs of a MADT, in its order.
fn listed(table: &Madt, architecture: Architecture) -> Vec<CpuName> {
    let mut names = Vec::new();
    for body in table.bodies() {
        let (name, flags) = match body {
            MadtEntry::LocalApic(cpu) if u32::from(cpu.apic_id) != BROADCAST.0 => {
                (CpuName::Apic(cpu.apic_id.into()), cpu.flags)
            }
            MadtEntry::LocalX2Apic(cpu) if cpu.x2apic_id != BROADCAST.1 => {
                (CpuName::Apic(cpu.x2apic_id), cpu.flags)
            }
            MadtEntry::Gicc(cpu) => (CpuName::Uid(cpu.processor_uid), cpu.flags),
            _ => continue,
        };
        if flags & madt::ENABLED != 0 && name.is_of(architecture) {
            names.push(name);
        }
    }
    names
}
