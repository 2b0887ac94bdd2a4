//! Checks of nodewise's facts about the machine against those of the kernel, and against what was asked for.

use std::fs;

use nodewise_machine::NodeId;
use nodewise_model::{BuiltAt, FallbackOrders};
use serde_json::Value;

use super::model::release;
use super::same;
use crate::kernel;
use crate::nodewise::Context;
use crate::setting;

/// A folder for each block of memory.
const BLOCKS: &str = "/sys/devices/system/memory";

fn numbers(nodes: impl IntoIterator<Item = NodeId>) -> Vec<u32> {
    nodes.into_iter().map(NodeId::number).collect()
}

pub fn layout(context: &Context) -> Result<(), String> {
    let wanted = &context.wanted;
    same("nodes", kernel::online_nodes(), numbers(wanted.nodes.keys().copied()))?;
    for (id, node) in &wanted.nodes {
        let cpus: Vec<u32> = node.cpus.iter().map(|cpu| cpu.number()).collect();
        same(&format!("CPUs of node {id}"), kernel::cpus_of(id.number()), cpus)?;
        let row: Vec<u32> = wanted.nodes.keys().filter_map(|to| wanted.distance(*id, *to)).collect();
        same(&format!("distances of node {id}"), kernel::distances_of(id.number()), row)?;
        // The kernel keeps a part for itself: its image and tables, on the first node the most.
        let asked = node.memory_total().expect("every node of a spec has a size").get() / 1024;
        let managed = kernel::memory_of(id.number());
        if managed > asked || managed < asked * 2 / 3 {
            return Err(format!("node {id} has {managed} KiB of {asked}"));
        }
    }
    Ok(())
}

pub fn show_json(context: &Context) -> Result<(), String> {
    let json = context.json(&["show", "--json"])?;
    same("schema", json["schema"].as_str(), Some("nodewise.machine/1"))?;
    let nodes = json["nodes"].as_array().ok_or("no nodes")?;
    let ids: Vec<u32> = nodes.iter().filter_map(|node| Some(node["id"].as_u64()? as u32)).collect();
    same("nodes", ids.clone(), kernel::online_nodes())?;
    for node in nodes {
        let id = node["id"].as_u64().ok_or("a node without id")? as u32;
        same(&format!("CPUs of node {id}"), kernel::list(text(&node["cpus"])), kernel::cpus_of(id))?;
        let total = field(node, "MemTotal").ok_or("no MemTotal")?;
        same(&format!("memory of node {id}"), total, kernel::memory_of(id) * 1024)?;
        let row: Vec<u32> = ids.iter().filter_map(|to| distance(&json, id, *to)).collect();
        same(&format!("distances of node {id}"), row, kernel::distances_of(id))?;
    }
    let online = kernel::list(&kernel::line("/sys/devices/system/cpu/online")?);
    let cpus = json["cpus"].as_array().ok_or("no cpus")?;
    let seen: Vec<u32> = cpus.iter().filter_map(|cpu| Some(cpu["id"].as_u64()? as u32)).collect();
    same("CPUs", seen, online)?;
    let balancing = kernel::line("/proc/sys/kernel/numa_balancing")?;
    same("numa_balancing", json["settings"]["numa_balancing"].as_u64(), balancing.parse().ok())?;
    let release = kernel::line("/proc/sys/kernel/osrelease")?;
    same("kernel", json["kernel"].as_str(), Some(release.as_str()))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn field(node: &Value, name: &str) -> Option<u64> {
    node["meminfo"][name]["size_bytes"].as_u64()
}

fn distance(json: &Value, from: u32, to: u32) -> Option<u32> {
    let nodes = kernel::list(text(&json["distances"]["nodes"]));
    let place = |node| nodes.iter().position(|one| *one == node);
    Some(json["distances"]["rows"][place(from)?][place(to)?].as_u64()? as u32)
}

pub fn show_text(context: &Context) -> Result<(), String> {
    let output = context.output(&["show"])?;
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    for node in kernel::online_nodes() {
        if !shown.lines().any(|line| line.trim_start().starts_with(&format!("{node} "))) {
            return Err(format!("node {node} is missing:\n{shown}"));
        }
    }
    let memory_only = kernel::online_nodes().iter().filter(|node| kernel::cpus_of(**node).is_empty()).count();
    same("nodes marked as memory only", shown.matches("memory only").count(), memory_only)
}

pub fn fallback_orders(context: &Context) -> Result<(), String> {
    let printed = kernel::fallback_orders();
    let orders = FallbackOrders::from_machine(&context.seen, BuiltAt::Boot);
    for node in context.seen.node_ids().iter() {
        let ours = numbers(orders.logged(node, release(context)));
        let kernels =
            printed.get(&node.number()).ok_or_else(|| format!("the log has no order of node {node}"))?;
        same(&format!("fallback order of node {node}"), &ours, kernels)?;
    }
    // A node that has no memory yet (a window for CXL memory) has an order too.
    let possible = |node: &&u32| context.seen.possible_nodes.contains(NodeId::new(**node));
    same("possible nodes in the kernel's log", printed.keys().filter(possible).count(), printed.len())
}

/// Orders that a kernel builds again when a node gains its first memory: those of nodes without CPUs come
/// first now, which at boot they do not.
pub fn rebuilt_orders(context: &Context) -> Result<(), String> {
    // A kernel that does not use what is plugged in on its own is asked to.
    let blocks = fs::read_dir(BLOCKS).map_err(|error| format!("{BLOCKS}: {error}"))?;
    for block in blocks.filter_map(Result::ok).map(|entry| entry.path().join("state")) {
        let state = block.to_str().ok_or("the path of a block is text")?;
        if kernel::line(state).is_ok_and(|state| state == "offline") {
            setting::write(state, "online")?;
        }
    }
    let bare = context.wanted.node_ids().difference(&context.wanted.nodes_with_memory());
    let machine = context.machine()?;
    same("nodes that memory was plugged into", &bare.intersection(&machine.nodes_with_memory()), &bare)?;
    let [boot, rebuilt] =
        [BuiltAt::Boot, BuiltAt::RunTime].map(|built| FallbackOrders::from_machine(&machine, built));
    same("the two orders are alike here", boot == rebuilt, false)?;
    // The last that the log has of each node.
    let printed = kernel::fallback_orders();
    for node in machine.node_ids().iter() {
        let ours = numbers(rebuilt.from(node).iter().copied());
        same(&format!("fallback order of node {node}"), Some(&ours), printed.get(&node.number()))?;
    }
    Ok(())
}

pub fn capture(context: &Context) -> Result<(), String> {
    let path = std::env::temp_dir().join("nodewise-lab.tar.gz");
    let path = path.to_str().ok_or("the path of a temporary file is text")?;
    let output = context.output(&["capture", "-o", path])?;
    if !output.status.success() {
        return Err(crate::nodewise::complaint(&output));
    }
    let json = context.json(&["show", "--json", "--machine", path])?;
    let live = context.json(&["show", "--json"])?;
    for part in ["cpus", "caches", "distances", "tiers", "possible_nodes", "kernel", "architecture"] {
        same(part, &json[part], &live[part])?;
    }
    let sizes = |json: &Value| -> Vec<Option<u64>> {
        json["nodes"].as_array().into_iter().flatten().map(|node| field(node, "MemTotal")).collect()
    };
    same("memory", sizes(&json), sizes(&live))
}
