//! Distances, latencies, bandwidths and caches: SLIT and HMAT.

use nodewise_machine::Bytes;
use nodewise_machine::firmware::hmat::{DataType, INITIATOR_VALID, Locality};
use nodewise_machine::firmware::{Hmat, HmatEntry, Slit};

use super::column;
use crate::text::line::Page;
use crate::text::table::{Align, Table};

/// Writes the SLIT: a row of distances per domain.
pub(super) fn slit(table: &Slit, page: &mut Page) {
    page.heading("SLIT", "distance from each domain to domains 0, 1, 2, ...");
    let mut shown = Table::new(vec![column("from", Align::Right), column("", Align::Left)]);
    for (domain, row) in table.rows().enumerate() {
        shown.row(vec![
            domain.to_string().into(),
            cells(row.iter().map(|cell| Some(u64::from(*cell))), 3).into(),
        ]);
    }
    shown.write(page);
}

/// A row of numbers, each `width` wide so that they are below one another; `-` where one is not
/// known.
fn cells(values: impl Iterator<Item = Option<u64>>, width: usize) -> String {
    let cells: Vec<String> = values.map(|value| format!("{:>width$}", word(value))).collect();
    cells.join(" ")
}

fn word(value: Option<u64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

/// Writes the HMAT, one section per kind of structure.
pub(super) fn hmat(table: &Hmat, page: &mut Page) {
    attached(table, page);
    for body in table.bodies() {
        if let HmatEntry::Locality(locality) = body {
            costs(locality, table.header.revision, page);
        }
    }
    caches(table, page);
}

fn attached(table: &Hmat, page: &mut Page) {
    let mut shown =
        Table::new(vec![column("Memory Domain", Align::Right), column("Attached Initiator", Align::Left)]);
    let mut is_any = false;
    for body in table.bodies() {
        let HmatEntry::DomainAttributes(own) = body else { continue };
        is_any = true;
        let is_valid = own.flags & INITIATOR_VALID != 0;
        let initiator = if is_valid { own.initiator_domain.to_string() } else { "none named".to_owned() };
        shown.row(vec![own.memory_domain.to_string().into(), initiator.into()]);
    }
    if is_any {
        page.heading("HMAT", "Memory Proximity Domain Attributes");
        shown.write(page);
    }
}

/// A matrix of latencies or bandwidths.
fn costs(locality: &Locality, revision: u8, page: &mut Page) {
    let data = DataType::from_number(locality.head.data_type);
    let unit = match (revision, data) {
        (2, Some(data)) if data.is_latency() => "ps",
        (2, Some(_)) => "MB/s",
        // What the first revision's numbers count is not agreed on.
        _ => "units of the table",
    };
    let of = match locality.head.flags & 0xf {
        0 => String::new(),
        level => format!(" of the memory-side cache of level {level}"),
    };
    let name = data.map_or("undefined data type", DataType::name);
    let targets = crate::digest::acpi::ranges(locality.targets.iter().copied());
    page.heading("HMAT", &format!("{name}{of} in {unit}, from each initiator to targets {targets}"));
    let mut shown = Table::new(vec![column("initiator", Align::Right), column("", Align::Left)]);
    let value = |entry: u16| match entry {
        0 | u16::MAX => None,
        entry => locality.head.base_unit.checked_mul(entry.into()),
    };
    let width = locality.entries.iter().map(|entry| word(value(*entry)).len()).max().unwrap_or(0);
    let columns = locality.targets.len().max(1);
    for (row, from) in locality.entries.chunks(columns).zip(&locality.initiators) {
        shown.row(vec![from.to_string().into(), cells(row.iter().map(|entry| value(*entry)), width).into()]);
    }
    shown.write(page);
}

fn caches(table: &Hmat, page: &mut Page) {
    let mut shown = Table::new(vec![
        column("Memory Domain", Align::Right),
        column("Level", Align::Right),
        column("Size", Align::Right),
        column("Line", Align::Right),
        column("Associativity, Write Policy", Align::Left),
    ]);
    let mut is_any = false;
    for body in table.bodies() {
        let HmatEntry::MemorySideCache(cache) = body else { continue };
        is_any = true;
        let word = |value: u8, words: [&str; 3]| {
            words.get(usize::from(value)).map_or_else(|| value.to_string(), |word| (*word).to_owned())
        };
        let associativity = word(cache.associativity(), ["none", "direct mapped", "complex"]);
        let policy = word(cache.write_policy(), ["none", "write back", "write through"]);
        shown.row(vec![
            cache.head.memory_domain.to_string().into(),
            format!("{} of {}", cache.level(), cache.head.attributes & 0xf).into(),
            Bytes::new(cache.head.size).to_string().into(),
            format!("{} B", cache.line_size()).into(),
            format!("{associativity}, {policy}").into(),
        ]);
    }
    if is_any {
        page.heading("HMAT", "Memory Side Cache Information");
        shown.write(page);
    }
}
