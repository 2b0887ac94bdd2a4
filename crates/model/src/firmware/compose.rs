//! A machine to tables of the firmware: the way back from [`boot`](super::boot()).
//!
//! Domains are numbered as the kernel numbers nodes, so that a domain is the node with its number: those with CPUs first.
//! Tables name CPUs and addresses, which are those of some hardware: that for which they are written.

mod costs;
mod shares;

use std::fmt;

use nodewise_machine::check::node_names;
use nodewise_machine::firmware::madt::{self, LocalApic, LocalX2Apic, MadtFixed};
use nodewise_machine::firmware::srat::{
    self, ENABLED, Gicc, Memory, ProcessorApic, ProcessorX2Apic, SratFixed,
};
use nodewise_machine::firmware::{MadtEntry, Slit, SratEntry, Subtables, Table, TableHeader, slit};
use nodewise_machine::plural::plural;
use nodewise_machine::{Bytes, Machine, NodeId};

pub use super::blocks::Span;
use super::boot::Booted;
use super::cpus::CpuName;
use crate::ram::{Architecture, PAGE, Range};

/// Distances outside of these have a meaning of their own, or none: 10 is the node itself, 255 is unreachable.
const DISTANCES: std::ops::RangeInclusive<u32> = 11..=254;
const LOCAL: u8 = 10;
/// The distance where the machine gives none, as Linux takes it.
const REMOTE: u8 = 20;

/// The hardware that tables are written for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hardware {
    /// Where RAM is, ascending.
    pub ram: Vec<Span>,
    /// The names of its CPUs, in the order of their numbers.
    pub cpus: Vec<CpuName>,
    /// Headers of its own tables: those that are written take their place.
    pub own: Vec<TableHeader>,
}

impl Hardware {
    /// A virtual PC as large as a machine: QEMU's q35. Its CPUs have the machine's numbers as APIC ids.
    ///
    /// # Source
    /// `pc_q35_init` in QEMU's `hw/i386/pc_q35.c` (10.0): RAM of 2.75 GiB and more has 2 GiB below 4 GiB, and the rest
    /// from there on.
    pub fn virtual_pc(machine: &Machine) -> Self {
        const GIB: u64 = 1 << 30;
        const SPLIT_FROM: u64 = 11 * GIB / 4;
        let total = shares::parts(machine).iter().map(|part| part.memory).fold(0, u64::saturating_add);
        let low = if total >= SPLIT_FROM { 2 * GIB } else { total };
        let high = (4 * GIB, (4 * GIB).saturating_add(total - low));
        let ram = [(0, low), high].into_iter().filter(|(start, end)| start < end).collect();
        let cpus = machine.online_cpus().iter().map(|cpu| CpuName::Apic(cpu.number())).collect();
        Self { ram, cpus, own: Vec::new() }
    }

    /// The hardware below a kernel that came up, with the headers of its tables.
    pub fn from_booted(booted: &Booted, own: Vec<TableHeader>) -> Self {
        let cpus = booted.cpus.iter().map(|cpu| cpu.name).collect();
        Self { ram: booted.ram.clone(), cpus, own }
    }

    /// The table by which a kernel numbers its CPUs.
    pub fn madt(&self) -> Table {
        let cpus = self.cpus.iter().map(|name| match *name {
            CpuName::Apic(id) if id < 0xff => {
                MadtEntry::LocalApic(LocalApic { processor_uid: id as u8, apic_id: id as u8, flags: ENABLED })
            }
            CpuName::Apic(id) => MadtEntry::LocalX2Apic(LocalX2Apic {
                reserved: 0,
                x2apic_id: id,
                flags: ENABLED,
                processor_uid: id,
            }),
            CpuName::Uid(processor_uid) => MadtEntry::Gicc(madt::Gicc {
                reserved: 0,
                interface_number: processor_uid,
                processor_uid,
                flags: ENABLED,
            }),
        });
        let fixed = MadtFixed { local_apic_address: 0, flags: 0 };
        Table::Madt(Subtables::new(TableHeader::new(madt::SIGNATURE, 3), fixed, cpus))
    }

    /// The header of a table that takes the place of its own: the kernel compares makers, and takes the later revision.
    ///
    /// # Source
    /// `acpi_table_initrd_override` in `drivers/acpi/tables.c`.
    fn header(&self, signature: [u8; 4], revision: u8) -> TableHeader {
        let new = TableHeader::new(signature, revision);
        match self.own.iter().find(|own| own.signature == signature) {
            None => new,
            Some(own) => TableHeader {
                oem_id: own.oem_id,
                oem_table_id: own.oem_table_id,
                oem_revision: own.oem_revision.saturating_add(1),
                ..new
            },
        }
    }

    fn has_own(&self, signature: [u8; 4]) -> bool {
        self.own.iter().any(|own| own.signature == signature)
    }
}

/// Why a machine cannot be written as tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ComposeError {
    UnknownSize(Vec<NodeId>),
    NoMemory,
    NoCpu,
    TooFewCpus { nodes: usize, cpus: usize },
    TooLittleMemory { nodes: usize, size: Bytes, least: Bytes },
    TooManyNodes { nodes: usize, most: u32 },
}

impl fmt::Display for ComposeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownSize(nodes) => {
                let names = node_names(nodes.iter().copied());
                write!(f, "the size of {names} is not known: tables name the addresses of all memory")
            }
            Self::NoMemory => f.write_str("no node has memory: tables need a range for a kernel to run in"),
            Self::NoCpu => f.write_str("no node has an online CPU: tables need one for a kernel to run on"),
            Self::TooFewCpus { nodes, cpus } => write!(
                f,
                "{nodes} nodes have CPUs, and the hardware has {cpus}: expected at least one CPU for each"
            ),
            Self::TooLittleMemory { nodes, size, least } => {
                write!(
                    f,
                    "{nodes} nodes have memory, and the hardware has {size}: expected at least {least} for each"
                )
            }
            Self::TooManyNodes { nodes, most } => {
                write!(f, "{nodes} nodes are more than a kernel takes: expected at most {most}")
            }
        }
    }
}

impl std::error::Error for ComposeError {}

/// Tables of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Composed {
    /// SRAT and SLIT, and an HMAT where the machine or the hardware has one.
    pub tables: Vec<Table>,
    /// In which way they differ from the machine, a sentence each.
    pub notes: Vec<String>,
}

/// Writes the tables of a machine for some hardware. CPUs and memory of each node are those of the machine where the
/// hardware has as much, else a share.
///
/// # Errors
/// A machine with unknown sizes, and hardware that is too small for its nodes.
pub fn compose(machine: &Machine, hardware: &Hardware) -> Result<Composed, ComposeError> {
    let mut notes = Vec::new();
    let parts = shares::checked(machine, &mut notes)?;
    let is_arm = hardware.cpus.iter().any(|name| name.is_of(Architecture::Arm));
    let most = if is_arm { Architecture::Arm } else { Architecture::X86 }.max_nodes();
    if u32::try_from(parts.len()).is_ok_and(|nodes| nodes > most) {
        return Err(ComposeError::TooManyNodes { nodes: parts.len(), most });
    }
    let cpus = shares::cpus(&parts, hardware, &mut notes)?;
    let ranges = shares::memory(&parts, hardware, &mut notes)?;
    let nodes: Vec<NodeId> = parts.iter().map(|part| part.node).collect();
    let mut tables = vec![srat(hardware, &cpus, &ranges), slit(machine, hardware, &nodes, &mut notes)];
    tables.extend(costs::hmat(machine, hardware, &nodes, &mut notes));
    Ok(Composed { tables, notes })
}

/// Affinities of CPUs, then those of memory, domain by domain: nodes get their numbers in this order.
fn srat(hardware: &Hardware, cpus: &[(CpuName, u32)], ranges: &[Range]) -> Table {
    let cpus = cpus.iter().map(|(name, domain)| cpu(*name, *domain));
    let memory = ranges.iter().map(|range| {
        SratEntry::Memory(Memory {
            proximity_domain: range.node.number(),
            reserved1: 0,
            base_address: range.start,
            length: range.end - range.start,
            reserved2: 0,
            flags: ENABLED,
            reserved3: 0,
        })
    });
    // Revision 3 has domains of 32 bits, as kernels read them from 2 on.
    let header = hardware.header(srat::SIGNATURE, 3);
    Table::Srat(Subtables::new(header, SratFixed { table_revision: 1, reserved: 0 }, cpus.chain(memory)))
}

fn cpu(name: CpuName, proximity_domain: u32) -> SratEntry {
    let (flags, clock_domain) = (ENABLED, 0);
    match name {
        // 255 means every CPU there.
        CpuName::Apic(id) if id < 0xff => {
            let [domain_low, a, b, c] = proximity_domain.to_le_bytes();
            SratEntry::ProcessorApic(ProcessorApic {
                domain_low,
                apic_id: id as u8,
                flags,
                sapic_eid: 0,
                domain_high: [a, b, c],
                clock_domain,
            })
        }
        CpuName::Apic(x2apic_id) => SratEntry::ProcessorX2Apic(ProcessorX2Apic {
            reserved1: 0,
            proximity_domain,
            x2apic_id,
            flags,
            clock_domain,
            reserved2: 0,
        }),
        CpuName::Uid(processor_uid) => {
            SratEntry::Gicc(Gicc { proximity_domain, processor_uid, flags, clock_domain })
        }
    }
}

fn slit(machine: &Machine, hardware: &Hardware, nodes: &[NodeId], notes: &mut Vec<String>) -> Table {
    let (mut missing, mut illegal) = (0usize, 0usize);
    let mut distance = |from: &NodeId, to: &NodeId| match machine.distances.get(*from, *to) {
        own if from == to => {
            illegal += usize::from(own.is_some_and(|own| *own != u32::from(LOCAL)));
            LOCAL
        }
        None => {
            missing += 1;
            REMOTE
        }
        Some(distance) => {
            illegal += usize::from(!DISTANCES.contains(distance));
            (*distance).clamp(*DISTANCES.start(), *DISTANCES.end()) as u8
        }
    };
    let rows: Vec<Vec<u8>> =
        nodes.iter().map(|from| nodes.iter().map(|to| distance(from, to)).collect()).collect();
    if missing > 0 {
        let pairs = plural(missing, "pair");
        notes.push(format!("distances of {pairs} of nodes are not known, and {REMOTE} in the table"));
    }
    if illegal > 0 {
        notes.push(format!(
            "distances of {illegal} pairs of nodes are not legal in a table, which has the nearest"
        ));
    }
    Table::Slit(Slit { header: hardware.header(slit::SIGNATURE, 1), ..Slit::new(&rows) })
}

#[cfg(test)]
mod tests;
