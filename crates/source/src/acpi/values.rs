//! Values that the specification does not define, in structures that are otherwise well.

use nodewise_machine::firmware::hmat::DataType;
use nodewise_machine::firmware::{
    Cedt, CedtEntry, Entry, FirmwareFinding, Hmat, HmatEntry, Msct, MsctEntry, Rule, Srat, SratEntry, Table,
};

/// Adds what is wrong with the values of a table.
pub fn check(table: &Table, findings: &mut Vec<FirmwareFinding>) {
    let name = table.header().name();
    let mut find = |offset: usize, text: String| {
        findings.push(FirmwareFinding::at(name.clone(), offset, Rule::Value, text));
    };
    match table {
        Table::Srat(table) => srat(table, &mut find),
        Table::Hmat(table) => hmat(table, &mut find),
        Table::Cedt(table) => cedt(table, &mut find),
        Table::Msct(table) => msct(table, &mut find),
        Table::Slit(_) | Table::Madt(_) | Table::Other(_) => {}
    }
}

/// Takes an offset and a sentence.
type Find<'a> = dyn FnMut(usize, String) + 'a;

fn srat(table: &Srat, find: &mut Find<'_>) {
    for Entry { offset, body, .. } in &table.entries {
        match body {
            SratEntry::Memory(memory) if memory.base_address.checked_add(memory.length).is_none() => {
                let (base, length) = (memory.base_address, memory.length);
                let text = format!(
                    "memory at {base:#x} of {length:#x} bytes ends beyond the last address of 64 bits"
                );
                find(*offset, text);
            }
            SratEntry::GenericInitiator(device) | SratEntry::GenericPort(device)
                if device.device_handle_type > 1 =>
            {
                let kind = device.device_handle_type;
                find(*offset, format!("device handle type {kind} is not defined: expected 0 or 1"));
            }
            _ => {}
        }
    }
}

fn hmat(table: &Hmat, find: &mut Find<'_>) {
    if !(1..=2).contains(&table.header.revision) {
        let revision = table.header.revision;
        find(8, format!("revision {revision} is not known: read as revision 2"));
    }
    for Entry { offset, body, .. } in &table.entries {
        let HmatEntry::Locality(locality) = body else { continue };
        let data = locality.head.data_type;
        if DataType::from_number(data).is_none() {
            find(*offset, format!("data type {data} is not defined: expected 0 to 5"));
        }
        if locality.head.base_unit == 0 {
            find(*offset, "the entry base unit is 0: no entry says anything".to_owned());
        }
    }
}

fn cedt(table: &Cedt, find: &mut Find<'_>) {
    for Entry { offset, body, .. } in &table.entries {
        let CedtEntry::FixedWindow(window) = body else { continue };
        let head = &window.head;
        if window.ways().is_none() {
            let code = head.interleave_ways;
            find(*offset, format!("{code} is not a number of interleave ways: expected 0 to 4 or 8 to 10"));
        }
        if window.end().is_none() {
            let (base, size) = (head.base_hpa, head.window_size);
            let text =
                format!("the window at {base:#x} of {size:#x} bytes ends beyond the last address of 64 bits");
            find(*offset, text);
        }
    }
}

fn msct(table: &Msct, find: &mut Find<'_>) {
    for Entry { offset, body, .. } in &table.entries {
        let MsctEntry::DomainMaximum(domains) = body else { continue };
        if domains.first > domains.last {
            let (first, last) = (domains.first, domains.last);
            find(*offset, format!("domains {first} to {last} are not a range: expected the smaller first"));
        }
    }
}
