//! The SRAT's two passes: CPUs and other initiators, then memory.
//!
//! # Source
//! `acpi_numa_init` and the handlers of its structures; `acpi_table_parse_entries_array`, which ends a
//! pass at the first handler that reports an error.

use nodewise_machine::firmware::srat::{ENABLED, HOT_PLUGGABLE, NON_VOLATILE};
use nodewise_machine::firmware::{Entry, Srat, SratEntry};
use nodewise_machine::{NodeId, NodeSet};

use super::domains::Domains;
use super::note::{Note, NoteKind};
use crate::ram::{Architecture, Range};

const TABLE: &str = "SRAT";

/// How a CPU is named by a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CpuName {
    /// By its APIC or x2APIC.
    Apic(u32),
    /// By the number that ACPI has for it.
    Uid(u32),
}

impl CpuName {
    /// Whether kernels for an architecture know their CPUs by such names.
    pub(super) fn is_of(self, architecture: Architecture) -> bool {
        matches!(self, Self::Apic(_)) == (architecture == Architecture::X86)
    }
}

/// A range of memory as the table has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) range: Range,
    pub(super) offset: usize,
    /// Whether the table marks it as memory that can be added later.
    pub(super) is_hot_pluggable: bool,
    /// Whether the memory keeps its contents, so that it is not RAM.
    pub(super) is_persistent: bool,
}

/// The contents of an SRAT.
#[derive(Clone, Debug)]
pub(super) struct Affinities {
    pub(super) domains: Domains,
    /// Each CPU that was seen, with its domain.
    pub(super) cpus: Vec<(CpuName, u32)>,
    /// Nodes with an initiator that is not a CPU.
    pub(super) initiators: NodeSet,
    pub(super) blocks: Vec<Block>,
}

/// Why an SRAT is rejected as a whole.
pub(super) type Rejected = Note;

/// Reads the table as the kernel does.
pub(super) fn read(
    table: &Srat,
    architecture: Architecture,
    notes: &mut Vec<Note>,
) -> Result<Affinities, Rejected> {
    refuse_broken(table)?;
    let limits = (architecture.max_nodes(), most_domains(architecture));
    let mut reading = Reading {
        has_wide_domains: table.header.revision >= 2,
        affinities: Affinities {
            domains: Domains::new(limits.0, limits.1),
            cpus: Vec::new(),
            initiators: NodeSet::new(),
            blocks: Vec::new(),
        },
        limits,
        notes,
    };
    reading.initiators(table, architecture)?;
    reading.memory(table)?;
    if reading.affinities.blocks.is_empty() {
        return Err(Note::new(NoteKind::Rejected, TABLE, "no memory is enabled, so there is one node"));
    }
    Ok(reading.affinities)
}

/// Domains are below this number (`MAX_PXM_DOMAINS`).
const fn most_domains(architecture: Architecture) -> u32 {
    match architecture {
        Architecture::X86 => Architecture::X86.max_nodes(),
        _ => 256,
    }
}

/// Structures whose length is wrong cost the table, enabled or not.
fn refuse_broken(table: &Srat) -> Result<(), Rejected> {
    for Entry { offset, body, extra, .. } in &table.entries {
        let is_broken = match body {
            // The processor's structure alone must have its exact length.
            SratEntry::ProcessorApic(_) => !extra.is_empty(),
            SratEntry::Unknown(kind, _) => SratEntry::name_of(*kind).is_some(),
            _ => false,
        };
        if is_broken {
            let text = "a structure of the wrong length: the kernel rejects the table and has one node";
            return Err(Note::at(NoteKind::Rejected, TABLE, *offset, text));
        }
    }
    // A length of 0 ends both passes with an error; two bytes or less at the end are not looked at.
    if table.rest.len() > 2 && table.rest[1] == 0 {
        let text = "a structure of length 0: the kernel rejects the table and has one node";
        return Err(Note::new(NoteKind::Rejected, TABLE, text));
    }
    Ok(())
}

struct Reading<'a> {
    has_wide_domains: bool,
    affinities: Affinities,
    limits: (u32, u32),
    notes: &'a mut Vec<Note>,
}

impl Reading<'_> {
    /// The first pass.
    fn initiators(&mut self, table: &Srat, architecture: Architecture) -> Result<(), Rejected> {
        for (at, entry) in table.entries.iter().enumerate() {
            let offset = entry.offset;
            let Some((domain, flags)) = entry.body.domain_and_flags() else { continue };
            let is_enabled = flags & ENABLED != 0;
            let name = match &entry.body {
                SratEntry::ProcessorApic(cpu) => CpuName::Apic(cpu.apic_id.into()),
                SratEntry::ProcessorX2Apic(cpu) => CpuName::Apic(cpu.x2apic_id),
                SratEntry::Gicc(cpu) => CpuName::Uid(cpu.processor_uid),
                SratEntry::Rintc(cpu) => CpuName::Uid(cpu.processor_uid),
                SratEntry::GenericInitiator(_) if !is_enabled => {
                    self.note_rest(&table.entries[at..]);
                    return Ok(());
                }
                SratEntry::GenericInitiator(_) => {
                    let node = self.meet(domain, offset)?;
                    self.affinities.initiators.insert(node);
                    continue;
                }
                _ => continue,
            };
            if is_enabled && name.is_of(architecture) {
                let domain = self.read_part(domain);
                self.meet(domain, offset)?;
                self.affinities.cpus.push((name, domain));
            }
        }
        Ok(())
    }

    /// Everything behind a disabled initiator that the first pass would have read.
    fn note_rest(&mut self, entries: &[Entry<SratEntry>]) {
        let Some((first, rest)) = entries.split_first() else { return };
        let lost = rest.iter().filter(|entry| {
            let is_read = !matches!(
                entry.body,
                SratEntry::Memory(_)
                    | SratEntry::GicIts(_)
                    | SratEntry::GenericPort(_)
                    | SratEntry::Unknown(..)
            );
            is_read && entry.body.domain_and_flags().is_some_and(|(_, flags)| flags & ENABLED != 0)
        });
        let lost = lost.count();
        if lost > 0 {
            let text = format!(
                "a generic initiator that is not enabled ends the kernel's reading of CPUs: {lost} enabled \
                 structures behind it are ignored"
            );
            self.notes.push(Note::at(NoteKind::Ignored, TABLE, first.offset, text));
        }
    }

    /// The second pass.
    fn memory(&mut self, table: &Srat) -> Result<(), Rejected> {
        for entry in &table.entries {
            let SratEntry::Memory(memory) = &entry.body else { continue };
            if memory.flags & ENABLED == 0 {
                continue;
            }
            let offset = entry.offset;
            let domain = self.read_part(memory.proximity_domain);
            let node = self.meet(domain, offset)?;
            let Some(end) = memory.base_address.checked_add(memory.length) else {
                let text = "a range that ends beyond all addresses is left out here";
                self.notes.push(Note::at(NoteKind::Ignored, TABLE, offset, text));
                continue;
            };
            if memory.length == 0 {
                let text =
                    format!("a range of memory without a byte: all it does is to make node {node} known");
                self.notes.push(Note::at(NoteKind::Unusual, TABLE, offset, text));
            }
            self.affinities.blocks.push(Block {
                range: Range { start: memory.base_address, end, node },
                offset,
                is_hot_pluggable: memory.flags & HOT_PLUGGABLE != 0,
                is_persistent: memory.flags & NON_VOLATILE != 0,
            });
            let most = 2 * self.limits.0 as usize;
            if self.affinities.blocks.len() > most {
                let text = format!("more than {most} ranges of memory: the kernel has one node");
                return Err(Note::at(NoteKind::Rejected, TABLE, offset, text));
            }
        }
        Ok(())
    }

    /// The part of a domain's number that a table of this revision has.
    fn read_part(&self, domain: u32) -> u32 {
        if self.has_wide_domains { domain } else { domain & 0xff }
    }

    fn meet(&mut self, domain: u32, offset: usize) -> Result<NodeId, Rejected> {
        let (nodes, domains) = self.limits;
        self.affinities.domains.meet(domain).ok_or_else(|| {
            let text = format!(
                "domain {domain} has no room: the kernel takes {nodes} nodes and domains below {domains}, \
                 rejects the table and has one node"
            );
            Note::at(NoteKind::Rejected, TABLE, offset, text)
        })
    }
}
