//! Tables, one behind the other, are decoded, written and decoded the same; and a kernel's model makes a
//! machine of them that holds together. As text the same bytes are a dump.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nodewise_machine::Origin;
use nodewise_machine::firmware::{Table, Tables};
use nodewise_model::firmware::{Setting, boot};
use nodewise_source::acpi::{decode, dump, encode};

/// Bytes of a header.
const HEADER: usize = 36;

fuzz_target!(|bytes: &[u8]| {
    let mut tables = Tables::default();
    let mut rest = bytes;
    while rest.len() >= HEADER && tables.tables.len() < 8 {
        // Each table as long as it says, so that one input holds several.
        let said = u32::from_le_bytes([rest[4], rest[5], rest[6], rest[7]]) as usize;
        let (own, behind) = rest.split_at(said.clamp(HEADER, rest.len()));
        if let Some(table) = decode(own, &mut tables.findings) {
            check(&table);
            tables.tables.push(table);
        }
        rest = behind;
    }
    for finding in &tables.findings {
        let text = finding.to_string();
        assert!(!text.chars().any(char::is_control), "{text:?}");
    }
    let booted = boot(&tables, &Setting::default());
    assert!(!booted.online.is_empty() && booted.online.is_subset(&booted.possible));
    let machine = booted.machine(Origin::Firmware(String::new()));
    assert_eq!(machine.node_ids(), booted.online);
    for table in dump::parse(&String::from_utf8_lossy(bytes), &mut Vec::new()) {
        decode(&table.bytes, &mut Vec::new());
    }
});

/// Checks that a written table is read back the same, and is written the same again.
fn check(table: &Table) {
    let mut findings = Vec::new();
    let written = encode(table);
    let again = decode(&written, &mut findings).expect("what was written has a header");
    assert_eq!(encode(&again), written);
}
