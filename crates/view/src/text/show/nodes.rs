//! The node table, and the huge page pools.

use std::collections::BTreeMap;

use nodewise_machine::order::Order as _;
use nodewise_machine::{Bytes, Machine, Node, NodeId, NodeSet, check::node_names};

use crate::digest::counts::plural;
use crate::digest::node::{
    NodeKind, cpus_in_no_node, distinguishing_tiers, filled_pools, package_list, packages_of_nodes,
    used_percent,
};
use crate::style::Ink;
use crate::text::line::{Line, Page};
use crate::text::table::{Align, Column, Keep, Table};

/// A node with less than this share of its memory free is distinguished, in percent used.
const NEARLY_FULL: u64 = 95;

/// Writes the table of nodes.
pub(super) fn nodes(machine: &Machine, page: &mut Page) {
    page.heading("Nodes", "");
    if machine.nodes.is_empty() {
        page.line(4, &Line::from("  none: the kernel does not describe any"));
        return;
    }
    let right = |head, keep| Column { head, align: Align::Right, keep };
    let mut table = Table::new(vec![
        right("node", Keep::Always),
        right("memory", Keep::Always),
        right("present", Keep::Unless(5)),
        right("free", Keep::Unless(3)),
        right("used", Keep::Unless(1)),
        right("tier", Keep::Unless(4)),
        right("package", Keep::Unless(2)),
        right("CPUs", Keep::Always),
        Column { head: "", align: Align::Left, keep: Keep::Always },
    ]);
    // What is present is worth a column where programs get far less of it.
    let lags = machine.nodes.keys().any(|node| machine.held_back(*node).is_some());
    let tiers = distinguishing_tiers(machine);
    let packages = packages_of_nodes(machine);
    for node in machine.nodes.values() {
        let cpus = machine.cpus_of(node.id);
        table.row(vec![
            Line::new().with(Ink::Strong, node.id.to_string()),
            size(machine.memory_of(node.id)),
            size(machine.ram_of(node.id).filter(|_| lags)),
            size(machine.free_of(node.id)),
            used(machine, node),
            tiers.get(&node.id).map(ToString::to_string).unwrap_or_default().into(),
            packages.get(&node.id).map(package_list).unwrap_or_default().into(),
            cpus.len().to_string().into(),
            which(machine, node),
        ]);
    }
    table.write(page);
    let lost = cpus_in_no_node(machine);
    if !lost.is_empty() {
        let line =
            Line::from("  ").with(Ink::Notable, "in no node:").with(Ink::Plain, format!(" CPUs {lost}"));
        page.line(4, &line);
    }
}

/// A size; nothing where it is not known.
fn size(size: Option<Bytes>) -> Line {
    size.map(|size| size.to_string()).unwrap_or_default().into()
}

/// The share in use; marked where next to nothing is free.
fn used(machine: &Machine, node: &Node) -> Line {
    let Some(percent) = used_percent(machine, node.id) else { return Line::new() };
    let ink = if percent >= NEARLY_FULL { Ink::Notable } else { Ink::Plain };
    Line::new().with(ink, format!("{percent}%"))
}

/// The last column: which CPUs, or what the node has instead.
fn which(machine: &Machine, node: &Node) -> Line {
    let cpus = machine.cpus_of(node.id);
    let mut line = Line::from(cpus.to_string());
    if let Some(words) = NodeKind::from_node(machine, node).words() {
        if !line.is_empty() {
            line.push(Ink::Plain, ", ");
        }
        line.push(Ink::Notable, words);
    }
    line
}

/// One page size and how many pages are in the pool and free: what makes two pools alike.
type Pool = (Bytes, u64, Option<u64>);

/// Writes the pools of huge pages that hold pages; nodes with the same pools share a line.
pub(super) fn huge_pages(machine: &Machine, page: &mut Page) {
    let mut pools: BTreeMap<Pool, NodeSet> = BTreeMap::new();
    for node in machine.nodes.values() {
        for pool in filled_pools(node) {
            let key = (pool.page_size, pool.total.unwrap_or_default(), pool.free);
            pools.entry(key).or_default().insert(node.id);
        }
    }
    if pools.is_empty() {
        return;
    }
    let mut lines: Vec<(NodeId, Pool, NodeSet)> =
        pools.into_iter().filter_map(|(pool, nodes)| Some((nodes.first()?, pool, nodes))).collect();
    lines.order_by_key(|(first, (size, ..), _)| (*size, *first));
    page.heading("Huge pages", "");
    for (_, (size, total, free), nodes) in lines {
        let each = if nodes.len() > 1 { " each" } else { "" };
        let free = match free {
            Some(free) if free == total => ", all free".to_owned(),
            Some(free) => format!(", {free} free"),
            None => String::new(),
        };
        let pages = plural(usize::try_from(total).unwrap_or(usize::MAX), "page");
        page.line(4, &format!("  {}: {pages} of {size}{each}{free}", node_names(&nodes)).into());
    }
}
