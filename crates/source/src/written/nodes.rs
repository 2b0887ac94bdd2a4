//! Files of the nodes and of memory tiers.

use nodewise_machine::{Access, Machine, Node, NodeId, NodeSet};

use super::{Files, meminfo};
use crate::paths::{self, NODES, of_node};

pub(super) fn write(machine: &Machine, files: &mut Files) {
    if !machine.nodes.is_empty() {
        let with = |wanted: fn(&Node) -> bool| -> NodeSet {
            machine.nodes.values().filter(|node| wanted(node)).map(|node| node.id).collect()
        };
        files.line(format!("{NODES}/online"), machine.node_ids());
        files.line(format!("{NODES}/has_cpu"), with(|node| !node.cpus.is_empty()));
        files.line(format!("{NODES}/has_memory"), machine.nodes_with_memory());
        files.line(format!("{NODES}/has_normal_memory"), machine.nodes_with_memory());
        if machine.nodes.values().any(|node| node.generic_initiator.is_some()) {
            let initiators = with(|node| node.generic_initiator == Some(true));
            files.line(format!("{NODES}/has_generic_initiator"), initiators);
        }
    }
    if !machine.possible_nodes.is_empty() {
        files.line(format!("{NODES}/possible"), &machine.possible_nodes);
    }
    for node in machine.nodes.values() {
        of_one(machine, node, files);
    }
    machine.accesses.iter().for_each(|access| attributes(access, files));
    for tier in &machine.tiers {
        let path = format!("/sys/devices/virtual/memory_tiering/memory_tier{}/nodelist", tier.id);
        files.line(path, &tier.nodes);
    }
}

fn of_one(machine: &Machine, node: &Node, files: &mut Files) {
    let id = node.id;
    files.line(of_node(id, "cpumap"), node.cpus.to_mask());
    files.line(of_node(id, "cpulist"), &node.cpus);
    let lines = node.meminfo.iter().map(|field| format!("Node {id} {}", meminfo(&field.name, field.value)));
    files.text(of_node(id, "meminfo"), lines.collect());
    files.known(of_node(id, "distance"), distances(machine, id));
    for pool in &node.huge_pools {
        for (name, count) in
            [("nr_hugepages", pool.total), ("free_hugepages", pool.free), ("surplus_hugepages", pool.surplus)]
        {
            files.known(paths::huge_pool(id, pool.page_size, name), count);
        }
    }
    for cache in &node.memory_side_caches {
        let path = |name: &str| of_node(id, &format!("memory_side_cache/index{}/{name}", cache.level));
        // 0 is how the kernel writes what the firmware does not say.
        files.line(path("size"), cache.size.map_or(0, |size| size.get()));
        files.line(path("line_size"), cache.line_size.unwrap_or(0));
        files.known(path("indexing"), cache.indexing);
        files.known(path("write_policy"), cache.write_policy);
    }
}

/// The row of a node; `None` unless all of it is known.
fn distances(machine: &Machine, from: NodeId) -> Option<String> {
    let distance = |to: &NodeId| machine.distances.get(from, *to).map(|distance| distance.to_string());
    let row: Option<Vec<String>> = machine.nodes.keys().map(distance).collect();
    Some(row?.join(" "))
}

/// Attributes of access. The kernel has a link for each initiator; a folder takes its place, since only names are read.
fn attributes(access: &Access, files: &mut Files) {
    let folder = of_node(access.target, &format!("access{}/initiators", access.class.number()));
    for (name, value) in [
        ("read_latency", access.read_latency_ns),
        ("write_latency", access.write_latency_ns),
        ("read_bandwidth", access.read_bandwidth_mb_per_s),
        ("write_bandwidth", access.write_bandwidth_mb_per_s),
    ] {
        files.line(format!("{folder}/{name}"), value.unwrap_or(0));
    }
    for node in &access.initiators {
        files.line(format!("{folder}/node{node}/cpulist"), "");
    }
}
