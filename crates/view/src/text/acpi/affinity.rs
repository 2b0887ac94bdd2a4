//! CPUs, memory and devices by domain: SRAT and MADT.

use std::collections::BTreeMap;

use nodewise_machine::Bytes;
use nodewise_machine::firmware::srat::{ENABLED, GenericDevice, Memory};
use nodewise_machine::firmware::{Entries, Madt, MadtEntry, Srat, SratEntry, madt};

use super::{address, column, extra, flags};
use crate::digest::acpi::{id, ranges};
use crate::text::line::{Line, Page};
use crate::text::table::{Align, Table};

/// Writes the SRAT: CPUs folded by domain, and each range of memory.
pub(super) fn srat(table: &Srat, page: &mut Page) {
    page.heading("SRAT", "processors by Proximity Domain");
    processors(table).write(page);
    if table.bodies().any(|body| matches!(body, SratEntry::Memory(_))) {
        page.heading("SRAT", "Memory Affinity");
        memory(table).write(page);
    }
    let is_device = |body: &&SratEntry| device(body).is_some();
    if table.bodies().any(|body| is_device(&body)) {
        page.heading("SRAT", "devices");
        devices(table).write(page);
    }
}

/// Kind, domain, whether it is enabled: the numbers of the CPUs that are alike in this.
type Alike = BTreeMap<(u16, u32, bool), Vec<u32>>;

fn processors(table: &Srat) -> Table {
    let mut alike = Alike::new();
    for body in table.bodies() {
        let number = match body {
            SratEntry::ProcessorApic(cpu) => cpu.apic_id.into(),
            SratEntry::ProcessorX2Apic(cpu) => cpu.x2apic_id,
            SratEntry::Gicc(cpu) => cpu.processor_uid,
            SratEntry::Rintc(cpu) => cpu.processor_uid,
            SratEntry::GicIts(its) => its.its_id,
            _ => continue,
        };
        let Some((domain, flags)) = body.domain_and_flags() else { continue };
        alike.entry((body.kind(), domain, flags & ENABLED == 0)).or_default().push(number);
    }
    let mut shown = Table::new(vec![
        column("domain", Align::Right),
        column("structures", Align::Right),
        column("Enabled", Align::Left),
        extra("Type", Align::Left, 1),
        column("APIC, UID or ITS ids", Align::Left),
    ]);
    for ((kind, domain, is_disabled), numbers) in alike {
        shown.row(vec![
            domain.to_string().into(),
            numbers.len().to_string().into(),
            if is_disabled { "no" } else { "yes" }.into(),
            SratEntry::name_of(kind).unwrap_or_default().trim_end_matches(" Affinity").into(),
            ranges(numbers).into(),
        ]);
    }
    shown
}

fn memory(table: &Srat) -> Table {
    let mut shown = Table::new(vec![
        column("domain", Align::Right),
        column("Base Address", Align::Right),
        extra("end", Align::Right, 1),
        column("Address Length", Align::Right),
        extra("structures", Align::Right, 2),
        column("Flags", Align::Left),
    ]);
    let folded = folded(table);
    let is_any_folded = folded.iter().any(|(_, alike)| *alike > 1);
    for (memory, alike) in folded {
        // The last byte, as the kernel's log has it; a range of no bytes has none.
        let end = memory.length.checked_sub(1).and_then(|less| memory.base_address.checked_add(less));
        shown.row(vec![
            memory.proximity_domain.to_string().into(),
            address(memory.base_address),
            end.map(address).unwrap_or_default(),
            Bytes::new(memory.length).to_string().into(),
            if is_any_folded { alike.to_string().into() } else { Line::new() },
            flags(memory.flags, &["enabled", "hot-pluggable", "non-volatile"]).into(),
        ]);
    }
    shown
}

/// Structures of memory with how many that are alike follow one another: firmware keeps room for
/// memory that is missing.
fn folded(table: &Srat) -> Vec<(&Memory, usize)> {
    let mut folded: Vec<(&Memory, usize)> = Vec::new();
    for body in table.bodies() {
        let SratEntry::Memory(memory) = body else { continue };
        match folded.last_mut() {
            Some((last, alike)) if *last == memory => *alike += 1,
            _ => folded.push((memory, 1)),
        }
    }
    folded
}

/// The device of a structure that has one, and what the structure is.
const fn device(body: &SratEntry) -> Option<(&'static str, &GenericDevice)> {
    match body {
        SratEntry::GenericInitiator(device) => Some(("Generic Initiator", device)),
        SratEntry::GenericPort(device) => Some(("Generic Port", device)),
        _ => None,
    }
}

fn devices(table: &Srat) -> Table {
    let mut shown = Table::new(vec![
        column("domain", Align::Right),
        column("Type", Align::Left),
        column("Device Handle", Align::Left),
        column("Flags", Align::Left),
    ]);
    for (kind, device) in table.bodies().filter_map(device) {
        shown.row(vec![
            device.proximity_domain.to_string().into(),
            kind.into(),
            handle(device).into(),
            flags(device.flags, &["enabled", "architectural"]).into(),
        ]);
    }
    shown
}

/// A PCI address or an ACPI name, by the handle's type.
fn handle(device: &GenericDevice) -> String {
    let bytes = device.device_handle;
    match device.device_handle_type {
        0 => {
            let uid = u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]);
            format!("{} UID {uid}", id(&bytes[..8]))
        }
        1 => {
            let segment = u16::from_le_bytes([bytes[0], bytes[1]]);
            // Bus in the first byte, device and function in the second.
            let (bus, function) = (bytes[2], bytes[3]);
            format!("PCI {segment:04x}:{bus:02x}:{:02x}.{}", function >> 3, function & 7)
        }
        _ => bytes.map(|byte| format!("{byte:02x}")).concat(),
    }
}

/// Writes the CPUs of the MADT.
pub(super) fn madt(table: &Madt, page: &mut Page) {
    let mut alike: BTreeMap<(u16, u32), Vec<u32>> = BTreeMap::new();
    for body in table.bodies() {
        let (number, flags) = match body {
            MadtEntry::LocalApic(cpu) => (cpu.apic_id.into(), cpu.flags),
            MadtEntry::LocalX2Apic(cpu) => (cpu.x2apic_id, cpu.flags),
            MadtEntry::Gicc(cpu) => (cpu.processor_uid, cpu.flags),
            MadtEntry::Unknown(..) => continue,
        };
        let flags = flags & (madt::ENABLED | madt::ONLINE_CAPABLE);
        alike.entry((body.kind(), flags)).or_default().push(number);
    }
    page.heading("APIC", "processors of the MADT, by which the kernel numbers CPUs");
    let mut shown = Table::new(vec![
        column("structures", Align::Right),
        column("Flags", Align::Left),
        extra("Type", Align::Left, 1),
        column("APIC ids or UIDs", Align::Left),
    ]);
    for ((kind, bits), numbers) in alike {
        shown.row(vec![
            numbers.len().to_string().into(),
            flags(bits, &["enabled", "online capable"]).into(),
            MadtEntry::name_of(kind).unwrap_or_default().into(),
            ranges(numbers).into(),
        ]);
    }
    shown.write(page);
}
