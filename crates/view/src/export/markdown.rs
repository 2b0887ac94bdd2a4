//! Tables of a machine in Markdown, for issues and wikis.
//!
//! # Source
//! GitHub Flavored Markdown: a table's cells end at `|` unless a backslash is before it; CommonMark: a backslash makes any
//! ASCII punctuation ordinary.

use std::fmt::Write as _;

use nodewise_machine::printable::printable;
use nodewise_machine::{Bytes, Machine};

use super::diagram::device_words;
use crate::digest::node::{NodeKind, package_list, packages_of_nodes};

/// Writes tables of nodes, distances, caches and devices; one without rows is left out.
pub fn markdown(machine: &Machine) -> String {
    let mut text = String::new();
    nodes(machine, &mut text);
    distances(machine, &mut text);
    caches(machine, &mut text);
    devices(machine, &mut text);
    text
}

fn nodes(machine: &Machine, text: &mut String) {
    let packages = packages_of_nodes(machine);
    let rows = machine.nodes.values().map(|node| {
        let cpus = machine.cpus_of(node.id);
        vec![
            node.id.to_string(),
            size(machine.memory_of(node.id)),
            size(machine.free_of(node.id)),
            packages.get(&node.id).map(package_list).unwrap_or_default(),
            cpus.len().to_string(),
            cpus.to_string(),
            NodeKind::from_node(machine, node).words().unwrap_or_default().to_owned(),
        ]
    });
    let head = ["node", "memory", "free", "package", "CPUs", "which", "remark"];
    table("Nodes", &head.map(ToOwned::to_owned), rows.collect(), text);
}

fn distances(machine: &Machine, text: &mut String) {
    let to: Vec<String> = machine.distances.nodes().iter().map(ToString::to_string).collect();
    let rows = machine.distances.rows().map(|(from, row)| {
        let values = row.iter().map(|value| value.map(|value| value.to_string()).unwrap_or_default());
        [from.to_string()].into_iter().chain(values).collect()
    });
    let head: Vec<String> = ["from \\ to".to_owned()].into_iter().chain(to).collect();
    table("Distances", &head, rows.collect(), text);
}

fn caches(machine: &Machine, text: &mut String) {
    let rows = machine.caches.iter().map(|cache| {
        vec![
            cache.name(),
            size(cache.size),
            cache.ways.map(|ways| ways.to_string()).unwrap_or_default(),
            cache.line_size.map(|size| size.to_string()).unwrap_or_default(),
            cache.cpus.to_string(),
        ]
    });
    let head = ["cache", "size", "ways", "line", "CPUs"].map(ToOwned::to_owned);
    table("Caches", &head, rows.collect(), text);
}

fn devices(machine: &Machine, text: &mut String) {
    let rows = machine.devices.iter().filter_map(|device| {
        Some(vec![
            device_words(device)?,
            device.pci.map(|address| address.to_string()).unwrap_or_default(),
            machine.home_of(device).map(|node| node.to_string()).unwrap_or_default(),
            device.link.map(|link| link.to_string()).unwrap_or_default(),
        ])
    });
    let head = ["device", "address", "node", "link"].map(ToOwned::to_owned);
    table("Devices", &head, rows.collect(), text);
}

fn size(size: Option<Bytes>) -> String {
    size.map(|size| size.to_string()).unwrap_or_default()
}

/// Writes a heading and a table, without columns that are empty in every row.
fn table(heading: &str, head: &[String], rows: Vec<Vec<String>>, text: &mut String) {
    if rows.is_empty() {
        return;
    }
    let filled: Vec<usize> = (0..head.len())
        .filter(|at| rows.iter().any(|row| row.get(*at).is_some_and(|cell| !cell.is_empty())))
        .collect();
    if !text.is_empty() {
        text.push('\n');
    }
    // Writing to a String cannot fail.
    let _ = writeln!(text, "### {heading}\n");
    let mut line = |cells: Vec<String>| {
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    };
    let cells = |row: &[String]| {
        filled.iter().map(|at| row.get(*at).map(|cell| escaped(cell)).unwrap_or_default()).collect()
    };
    line(cells(head));
    line(filled.iter().map(|_| "---".to_owned()).collect());
    rows.iter().for_each(|row| line(cells(row)));
}

/// A text without a meaning to Markdown.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in printable(text).chars() {
        if matches!(
            c,
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '<' | '>' | '|' | '#' | '~' | '&' | '!' | '$'
        ) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::spec;

    #[test]
    fn tables_leave_out_columns_and_sections_that_are_empty() {
        let machine = spec::machine("2x(1c 4G); dist=21").unwrap();
        let text = markdown(&machine);
        assert!(
            text.starts_with(
                "### Nodes\n\n| node | memory | package | CPUs | which |\n| --- | --- | --- | --- | --- |\n"
            ),
            "{text}"
        );
        assert!(
            text.contains(
                "### Distances\n\n| from \\\\ to | 0 | 1 |\n| --- | --- | --- |\n| 0 | 10 | 21 |\n"
            ),
            "{text}"
        );
        assert!(!text.contains("Devices"), "{text}");
    }

    #[test]
    fn cells_hold_no_markup() {
        assert_eq!(escaped("a|b<img>\u{1b}[1m"), "a\\|b\\<img\\>\\\\x1b\\[1m");
    }
}
