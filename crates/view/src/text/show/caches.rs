//! Caches, a line per level.

use std::collections::{BTreeMap, BTreeSet};

use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::{Bytes, Machine, NodeSet, check::node_names};

use crate::digest::cache::{CacheLevel, last_level_words};
use crate::style::Ink;
use crate::text::line::{Line, Page};
use crate::text::table::{Align, Column, Keep, Table};

/// Writes the caches, if any are known.
pub(super) fn caches(machine: &Machine, page: &mut Page) {
    let levels = CacheLevel::all(machine);
    let memory_side = memory_side(machine);
    if levels.is_empty() && memory_side.is_empty() {
        return;
    }
    let lines: BTreeSet<Option<u32>> = machine.caches.iter().map(|cache| cache.line_size).collect_set();
    let remark = match lines.first() {
        Some(Some(size)) if lines.len() == 1 => format!("lines of {size} B"),
        _ => String::new(),
    };
    page.heading("Caches", &remark);
    let column = |align| Column { head: "", align, keep: Keep::Always };
    let mut table = Table::new(vec![column(Align::Left), column(Align::Left)]);
    for (at, level) in levels.iter().enumerate() {
        let mut words = Line::from(level.words());
        if let Some(relation) = last_level_words(machine).filter(|_| at + 1 == levels.len()) {
            words.push(Ink::Plain, format!("; {relation}"));
        }
        table.row(vec![Line::new().with(Ink::Strong, &level.name), words]);
    }
    for (size, nodes) in memory_side {
        let each = if nodes.len() > 1 { ", each" } else { "" };
        let words = format!("{size} before the memory of {}{each}", node_names(&nodes));
        table.row(vec![Line::new().with(Ink::Strong, "side"), words.into()]);
    }
    table.write(page);
}

/// The sizes of caches before memory, with the nodes that have one.
fn memory_side(machine: &Machine) -> BTreeMap<Bytes, NodeSet> {
    let mut sizes: BTreeMap<Bytes, NodeSet> = BTreeMap::new();
    for node in machine.nodes.values() {
        for size in node.memory_side_caches.iter().filter_map(|cache| cache.size) {
            sizes.entry(size).or_default().insert(node.id);
        }
    }
    sizes
}
