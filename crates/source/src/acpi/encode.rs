//! A table to bytes.

use nodewise_machine::firmware::{Entries, Layout, Subtables, Table};

/// Writes a table, with the length and the checksum that are right for it.
pub fn encode(table: &Table) -> Vec<u8> {
    let mut bytes = Vec::new();
    table.header().put(&mut bytes);
    match table {
        Table::Srat(table) => subtables(table, &mut bytes),
        Table::Hmat(table) => subtables(table, &mut bytes),
        Table::Cedt(table) => subtables(table, &mut bytes),
        Table::Msct(table) => subtables(table, &mut bytes),
        Table::Madt(table) => subtables(table, &mut bytes),
        Table::Slit(table) => {
            bytes.extend(table.localities.to_le_bytes());
            bytes.extend_from_slice(&table.distances);
            bytes.extend_from_slice(&table.rest);
        }
        Table::Other(table) => bytes.extend_from_slice(&table.bytes),
    }
    seal(&mut bytes);
    bytes
}

fn subtables<H: Layout, E: Entries>(table: &Subtables<H, E>, bytes: &mut Vec<u8>) {
    table.fixed.put(bytes);
    for entry in &table.entries {
        let mut body = Vec::new();
        entry.body.put(&mut body);
        body.extend_from_slice(&entry.extra);
        E::HEAD.put(entry.body.kind(), entry.reserved, E::HEAD.width() + body.len(), bytes);
        bytes.append(&mut body);
    }
    bytes.extend_from_slice(&table.rest);
}

/// Sets length and checksum.
fn seal(bytes: &mut [u8]) {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    bytes[4..8].copy_from_slice(&length.to_le_bytes());
    bytes[9] = 0;
    bytes[9] = bytes.iter().fold(0u8, |sum, byte| sum.wrapping_sub(*byte));
}
