//! The firmware's tables, a line per field.

use nodewise_machine::firmware::{Entries, Field, Layout, Subtables, Table, TableHeader, Value};

use super::{known, quoted};
use crate::digest::acpi::Acpi;

/// Writes the fields of all tables that are decoded; of others one line with their signature. A field has a number
/// or, where it is not one, its bytes. Offsets are from the start of the table.
pub fn acpi(acpi: &Acpi<'_>) -> String {
    let mut text =
        String::from("table,structure_offset,structure_type,structure,offset,width_bytes,field,value,hex\n");
    for table in &acpi.tables.tables {
        match table {
            Table::Srat(table) => subtables(table, &mut text),
            Table::Hmat(table) => subtables(table, &mut text),
            Table::Cedt(table) => subtables(table, &mut text),
            Table::Msct(table) => subtables(table, &mut text),
            Table::Madt(table) => subtables(table, &mut text),
            Table::Slit(table) => lines(&table.header, None, table.fields(), &mut text),
            Table::Other(table) => text.push_str(&format!("{},,,,,,,,\n", quoted(&table.header.name()))),
        }
    }
    text
}

fn subtables<H: Layout, E: Entries>(table: &Subtables<H, E>, text: &mut String) {
    let mut fixed = Vec::new();
    table.fixed.fields(TableHeader::WIDTH, &mut fixed);
    lines(&table.header, None, fixed, text);
    for entry in &table.entries {
        let structure = (entry.offset, entry.body.kind(), entry.body.name());
        lines(&table.header, Some(structure), entry.fields(), text);
    }
}

type Structure = (usize, u16, Option<&'static str>);

fn lines(header: &TableHeader, structure: Option<Structure>, fields: Vec<Field>, text: &mut String) {
    let (offset, kind, name) = match structure {
        Some((offset, kind, name)) => (Some(offset), Some(kind), name),
        None => (None, None, None),
    };
    for field in fields {
        let (value, hex) = match field.value {
            Value::Number(number) => (Some(number), None),
            Value::Bytes(bytes) => (None, Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect())),
        };
        let fields: [String; 9] = [
            quoted(&header.name()),
            known(offset),
            known(kind),
            quoted(name.unwrap_or_default()),
            field.offset.to_string(),
            field.width.to_string(),
            quoted(field.name),
            known(value),
            hex.unwrap_or_default(),
        ];
        text.push_str(&(fields.join(",") + "\n"));
    }
}
