//! The firmware's facts about memory: tiers, latency and bandwidth.

use std::collections::BTreeMap;

use nodewise_machine::order::Order as _;
use nodewise_machine::{Access, AccessClass, Bytes, Machine, Node, NodeSet, check::node_names};

use crate::digest::access::gb_per_s;
use crate::digest::node::distinguishing_tiers;
use crate::style::Ink;
use crate::text::line::{Line, Page};
use crate::text::table::{Align, Column, Keep, Table};

/// Writes the memory tiers, where they distinguish nodes.
pub(super) fn tiers(machine: &Machine, page: &mut Page) {
    if distinguishing_tiers(machine).is_empty() {
        return;
    }
    page.heading("Memory tiers", "fastest first");
    let left = |head| Column { head, align: Align::Left, keep: Keep::Always };
    let mut table = Table::new(vec![left(""), left("")]);
    for tier in &machine.tiers {
        let sizes: Vec<Bytes> = tier
            .nodes
            .iter()
            .filter_map(|node| machine.nodes.get(&node))
            .filter_map(Node::memory_total)
            .collect();
        let size =
            if sizes.is_empty() { String::new() } else { format!(", {}", sizes.into_iter().sum::<Bytes>()) };
        let nodes = if tier.nodes.is_empty() { "no node".to_owned() } else { node_names(&tier.nodes) };
        table.row(vec![format!("tier {}", tier.id).into(), format!("{nodes}{size}").into()]);
    }
    table.write(page);
}

/// The reported figures of one way to memory; ways that agree share a line.
type Cost = (Option<u32>, Option<u32>, Option<u32>, Option<u32>);

const fn cost(access: &Access) -> Cost {
    (
        access.read_latency_ns,
        access.write_latency_ns,
        access.read_bandwidth_mb_per_s,
        access.write_bandwidth_mb_per_s,
    )
}

/// From where a line's memory is reached.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum From {
    Itself,
    Nodes(NodeSet),
}

/// Writes firmware latency and bandwidth, if there are any.
pub(super) fn accesses(machine: &Machine, page: &mut Page) {
    let told: Vec<&Access> = machine.accesses.iter().filter(|access| worth(machine, access)).collect();
    if told.is_empty() {
        return;
    }
    page.heading("Memory access as the firmware declares it", "not measured");
    let mut lines: BTreeMap<(From, AccessClass, Cost), NodeSet> = BTreeMap::new();
    for access in told {
        let alone = NodeSet::from_iter([access.target]);
        let from =
            if access.initiators == alone { From::Itself } else { From::Nodes(access.initiators.clone()) };
        lines.entry((from, access.class, cost(access))).or_default().insert(access.target);
    }
    let mut lines: Vec<_> = lines.into_iter().collect();
    lines.order_by_key(|((_, class, _), targets)| (targets.first(), *class));
    // Firmware mostly declares one number for both directions.
    let even = lines.iter().all(|((_, _, (read, write, from, to)), _)| read == write && from == to);
    let right = |head, keep| Column { head, align: Align::Right, keep };
    let mut table = Table::new(vec![
        right(if even { "latency" } else { "read" }, Keep::Always),
        right("write", Keep::Unless(2)),
        right(if even { "bandwidth" } else { "read" }, Keep::Always),
        right("write", Keep::Unless(1)),
        Column { head: "memory of", align: Align::Left, keep: Keep::Always },
    ]);
    for ((from, class, (read_ns, write_ns, read_rate, write_rate)), targets) in lines {
        table.row(vec![
            nanos(read_ns),
            nanos(write_ns.filter(|_| !even)),
            rate(read_rate),
            rate(write_rate.filter(|_| !even)),
            way(&targets, &from, class),
        ]);
    }
    table.write(page);
}

/// Whether an access says anything that the access of any initiator to this target does not.
fn worth(machine: &Machine, access: &Access) -> bool {
    let known = cost(access) != (None, None, None, None);
    let any = machine.access(access.target, AccessClass::Any);
    let repeats = access.class == AccessClass::Cpu
        && any.is_some_and(|any| any.initiators == access.initiators && cost(any) == cost(access));
    known && !repeats
}

fn way(targets: &NodeSet, from: &From, class: AccessClass) -> Line {
    let mut line = Line::new().with(Ink::Strong, node_names(targets));
    let from = match from {
        From::Itself if targets.len() == 1 => "itself".to_owned(),
        From::Itself => "itself, each".to_owned(),
        From::Nodes(nodes) if nodes.is_empty() => "unnamed nodes".to_owned(),
        From::Nodes(nodes) => node_names(nodes),
    };
    line.push(Ink::Plain, format!(" from {from}"));
    if class == AccessClass::Cpu {
        line.push(Ink::Faint, " (nearest with CPUs)");
    }
    line
}

fn nanos(value: Option<u32>) -> Line {
    value.map(|value| format!("{value} ns")).unwrap_or_default().into()
}

fn rate(value: Option<u32>) -> Line {
    value.map(gb_per_s).unwrap_or_default().into()
}
