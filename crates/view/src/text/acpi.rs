//! Firmware tables: the text of `nodewise acpi`.
//!
//! A section per table, whose columns are named as the specification names the fields, then what a kernel
//! makes of the tables, then what is wrong with them.

mod affinity;
mod attributes;
mod kernel;
mod windows;

use nodewise_machine::firmware::{Entries, Msct, MsctEntry, Subtables, Table};
use nodewise_machine::{Bytes, firmware::Tables};

use crate::digest::acpi::{Acpi, id};
use crate::style::Style;
use crate::text::line::{Line, Page};
use crate::text::table::{Align, Column, Keep, Table as TextTable};

const fn column(head: &'static str, align: Align) -> Column {
    Column { head, align, keep: Keep::Always }
}

const fn extra(head: &'static str, align: Align, order: u8) -> Column {
    Column { head, align, keep: Keep::Unless(order) }
}

/// Writes tables, what a kernel makes of them, and what is wrong with them.
pub fn acpi(acpi: &Acpi<'_>, style: &Style) -> String {
    let mut page = Page::new(*style);
    page.heading("Tables", &format!("from {}", acpi.source));
    overview(acpi.tables).write(&mut page);
    for table in &acpi.tables.tables {
        match table {
            Table::Srat(table) => affinity::srat(table, &mut page),
            Table::Madt(table) => affinity::madt(table, &mut page),
            Table::Slit(table) => attributes::slit(table, &mut page),
            Table::Hmat(table) => attributes::hmat(table, &mut page),
            Table::Cedt(table) => windows::cedt(table, &mut page),
            Table::Msct(table) => msct(table, &mut page),
            Table::Other(_) => {}
        }
    }
    kernel::nodes(acpi.booted, &mut page);
    kernel::findings(acpi.tables, &mut page);
    page.finish()
}

/// A line per table.
fn overview(tables: &Tables) -> TextTable {
    let mut shown = TextTable::new(vec![
        column("Signature", Align::Left),
        column("Revision", Align::Right),
        column("Length", Align::Right),
        extra("OEM ID", Align::Left, 2),
        extra("OEM Table ID", Align::Left, 1),
        column("structures", Align::Left),
    ]);
    for table in &tables.tables {
        let header = table.header();
        let structures = match table {
            Table::Srat(table) => counts(table),
            Table::Hmat(table) => counts(table),
            Table::Cedt(table) => counts(table),
            Table::Msct(table) => counts(table),
            // Most of its structures are about interrupts.
            Table::Madt(table) => table.entries.len().to_string(),
            Table::Slit(table) => format!("{} localities", table.localities),
            Table::Other(_) => "not about nodes".to_owned(),
        };
        shown.row(vec![
            header.name().into(),
            header.revision.to_string().into(),
            header.length.to_string().into(),
            id(&header.oem_id).into(),
            id(&header.oem_table_id).into(),
            structures.into(),
        ]);
    }
    shown
}

/// How many structures there are, and how many of them are not known.
fn counts<H, E: Entries>(table: &Subtables<H, E>) -> String {
    let unknown = table.entries.iter().filter(|entry| !entry.body.is_understood()).count();
    match unknown {
        0 => table.entries.len().to_string(),
        unknown => format!("{}, {unknown} of them shown as bytes in JSON only", table.entries.len()),
    }
}

fn msct(table: &Msct, page: &mut Page) {
    let fixed = &table.fixed;
    page.heading(
        "MSCT",
        &format!(
            "Max Proximity Domains {}, Max Physical Address {:#x}",
            u64::from(fixed.max_proximity_domains) + 1,
            fixed.max_physical_address
        ),
    );
    let mut shown = TextTable::new(vec![
        column("Proximity Domains", Align::Left),
        column("Processor Capacity", Align::Right),
        column("Memory Capacity", Align::Left),
    ]);
    for body in table.bodies() {
        let MsctEntry::DomainMaximum(domains) = body else { continue };
        let range = match domains.first == domains.last {
            true => domains.first.to_string(),
            false => format!("{}-{}", domains.first, domains.last),
        };
        // 0 says that there can be none.
        let capacity = |value: u64, text: String| if value == 0 { "none".to_owned() } else { text };
        shown.row(vec![
            range.into(),
            capacity(domains.processors.into(), domains.processors.to_string()).into(),
            capacity(domains.memory, Bytes::new(domains.memory).to_string()).into(),
        ]);
    }
    shown.write(page);
}

/// A number as addresses are written.
fn address(value: u64) -> Line {
    format!("{value:#x}").into()
}

/// The words of the bits that are set, then those that have none.
fn flags(value: u32, words: &[&str]) -> String {
    let known = words.iter().enumerate().filter(|(bit, _)| value >> bit & 1 == 1);
    let mut list: Vec<String> = known.map(|(_, word)| (*word).to_owned()).collect();
    let rest = value & !(u32::MAX.checked_shr(32 - words.len() as u32).unwrap_or(0));
    if rest != 0 {
        list.push(format!("{rest:#x}"));
    }
    if list.is_empty() { "none".to_owned() } else { list.join(", ") }
}

#[cfg(test)]
mod tests;
