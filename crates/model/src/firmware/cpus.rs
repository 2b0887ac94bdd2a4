//! CPUs: numbered by the MADT, and brought to nodes by the SRAT.

use std::collections::{BTreeMap, BTreeSet};

use nodewise_machine::firmware::{Madt, MadtEntry, madt};
use nodewise_machine::{CpuId, NodeId};

use super::domains::Domains;
use super::note::{Note, NoteKind};
pub use super::srat::CpuName;
use crate::ram::Architecture;

/// The APIC id that means "every CPU", for the two kinds of structure.
const BROADCAST: (u32, u32) = (0xff, u32::MAX);

/// A CPU as the kernel will have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BootedCpu {
    /// Its number.
    pub id: CpuId,
    /// How the tables name it.
    pub name: CpuName,
    /// Its node; `None` when the tables do not say and the kernel chooses one.
    pub node: Option<NodeId>,
}

/// The CPUs that are there, in the order of their numbers.
///
/// The kernel numbers them as the MADT lists them, but for the one that it boots on, which is 0; that is
/// nearly always the first. Without a MADT the order is that of the SRAT.
pub(super) fn number(
    table: Option<&Madt>,
    affine: &[(CpuName, u32)],
    domains: &Domains,
    architecture: Architecture,
    notes: &mut Vec<Note>,
) -> Vec<BootedCpu> {
    let known: BTreeMap<CpuName, u32> = affine.iter().rev().copied().collect();
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
        .map(|(id, name)| BootedCpu { id: CpuId::new(id), name: *name, node: node(name) })
        .collect();
    let lost = cpus.iter().filter(|cpu| cpu.node.is_none()).count();
    if lost > 0 && !affine.is_empty() {
        let where_to = match architecture {
            Architecture::X86 => "the kernel chooses a node for each when it starts",
            Architecture::Arm => "the kernel counts them to node 0",
        };
        let text = format!("{lost} CPUs of the MADT have no enabled structure: {where_to}");
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
