//! `nodewise.acpi/1`.

use nodewise_machine::NodeId;
use nodewise_machine::firmware::{
    Entries, Entry, Field, Layout, Slit, Subtables, Table, TableHeader, Value, layout::Head,
};
use nodewise_model::firmware::Booted;
use serde::Serialize;

use super::pretty;
use crate::digest::acpi::{Acpi, id};

/// The schema.
pub const SCHEMA: &str = "nodewise.acpi/1";

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    source: &'a str,
    tables: Vec<TableJson>,
    findings: Vec<FindingJson<'a>>,
    kernel: Kernel<'a>,
}

#[derive(Serialize)]
struct TableJson {
    signature: String,
    revision: u8,
    length_bytes: u32,
    checksum: u8,
    oem_id: String,
    oem_table_id: String,
    oem_revision: u32,
    creator_id: String,
    creator_revision: u32,
    fields: Vec<FieldJson>,
    structures: Vec<StructureJson>,
    #[serde(skip_serializing_if = "String::is_empty")]
    rest_hex: String,
}

#[derive(Serialize)]
struct StructureJson {
    offset: usize,
    #[serde(rename = "type")]
    kind: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'static str>,
    length_bytes: usize,
    fields: Vec<FieldJson>,
    #[serde(skip_serializing_if = "String::is_empty")]
    extra_hex: String,
}

#[derive(Serialize)]
struct FieldJson {
    offset: usize,
    width_bytes: usize,
    name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hex: Option<String>,
}

#[derive(Serialize)]
struct FindingJson<'a> {
    table: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<usize>,
    rule: &'static str,
    text: &'a str,
}

#[derive(Serialize)]
struct Kernel<'a> {
    accepted: bool,
    nodes: Vec<NodeJson>,
    distances: Vec<Vec<Option<u32>>>,
    ranges: Vec<RangeJson>,
    reserved: Vec<RangeJson>,
    notes: Vec<NoteJson<'a>>,
}

#[derive(Serialize)]
struct NodeJson {
    node: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    domain: Option<u32>,
    online: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_bytes: Option<u64>,
    cpus: String,
    generic_initiator: bool,
}

#[derive(Serialize)]
struct RangeJson {
    node: u32,
    start: u64,
    end: u64,
}

#[derive(Serialize)]
struct NoteJson<'a> {
    kind: &'static str,
    table: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<usize>,
    text: &'a str,
}

/// Writes tables field by field, what a kernel makes of them, and what is wrong with them.
pub fn acpi(acpi: &Acpi<'_>) -> String {
    let findings = acpi.tables.findings.iter().map(|finding| FindingJson {
        table: &finding.table,
        offset: finding.offset,
        rule: finding.rule.word(),
        text: &finding.text,
    });
    let document = Document {
        schema: SCHEMA,
        source: acpi.source,
        tables: acpi.tables.tables.iter().map(table).collect(),
        findings: findings.collect(),
        kernel: kernel(acpi.booted),
    };
    pretty(&document)
}

fn table(table: &Table) -> TableJson {
    match table {
        Table::Srat(table) => subtables(table),
        Table::Hmat(table) => subtables(table),
        Table::Cedt(table) => subtables(table),
        Table::Msct(table) => subtables(table),
        Table::Madt(table) => subtables(table),
        Table::Slit(table) => slit(table),
        Table::Other(table) => with(&table.header, Vec::new(), Vec::new(), &[]),
    }
}

fn with(header: &TableHeader, fields: Vec<Field>, structures: Vec<StructureJson>, rest: &[u8]) -> TableJson {
    TableJson {
        signature: header.name(),
        revision: header.revision,
        length_bytes: header.length,
        checksum: header.checksum,
        oem_id: id(&header.oem_id),
        oem_table_id: id(&header.oem_table_id),
        oem_revision: header.oem_revision,
        creator_id: id(&header.creator_id),
        creator_revision: header.creator_revision,
        fields: fields.into_iter().map(field).collect(),
        structures,
        rest_hex: hex(rest),
    }
}

fn subtables<H: Layout, E: Entries>(table: &Subtables<H, E>) -> TableJson {
    let mut fixed = Vec::new();
    table.fixed.fields(TableHeader::WIDTH, &mut fixed);
    let structures = table.entries.iter().map(structure).collect();
    with(&table.header, fixed, structures, &table.rest)
}

fn slit(table: &Slit) -> TableJson {
    with(&table.header, table.fields(), Vec::new(), &table.rest)
}

fn structure<E: Entries>(entry: &Entry<E>) -> StructureJson {
    let mut body = Vec::new();
    entry.body.put(&mut body);
    let head: Head = E::HEAD;
    StructureJson {
        offset: entry.offset,
        kind: entry.body.kind(),
        name: entry.body.name(),
        length_bytes: head.width() + body.len() + entry.extra.len(),
        fields: entry.fields().into_iter().map(field).collect(),
        extra_hex: hex(&entry.extra),
    }
}

fn field(field: Field) -> FieldJson {
    let (value, bytes) = match field.value {
        Value::Number(number) => (Some(number), None),
        Value::Bytes(bytes) => (None, Some(hex(&bytes))),
    };
    FieldJson { offset: field.offset, width_bytes: field.width, name: field.name, value, hex: bytes }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn kernel(booted: &Booted) -> Kernel<'_> {
    let range = |range: &nodewise_model::ram::Range| RangeJson {
        node: range.node.number(),
        start: range.start,
        end: range.end,
    };
    let notes = booted.notes.iter().map(|note| NoteJson {
        kind: note.kind.word(),
        table: note.table,
        offset: note.offset,
        text: &note.text,
    });
    Kernel {
        accepted: booted.is_accepted,
        nodes: booted.possible.iter().map(|id| node(booted, id)).collect(),
        distances: booted.distances.rows().map(|(_, row)| row.to_vec()).collect(),
        ranges: booted.ranges.iter().map(range).collect(),
        reserved: booted.reserved.iter().map(range).collect(),
        notes: notes.collect(),
    }
}

fn node(booted: &Booted, id: NodeId) -> NodeJson {
    NodeJson {
        node: id.number(),
        domain: booted.domain(id),
        online: booted.online.contains(id),
        memory_bytes: (!booted.ram.is_empty()).then(|| booted.memory(id)),
        cpus: booted.cpus_of(id).to_string(),
        generic_initiator: booted.initiators.contains(id),
    }
}
