//! Latency under load: chase and traffic have their pages on the nodes that a path names, and their
//! threads on its CPUs. How long anything takes means nothing in an emulated machine.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use serde_json::Value;

use super::measure::{BETWEEN_LOOKS, bound_pages, document, node_of, nodes, start};
use super::same;
use crate::kernel::cpus_of;
use crate::nodewise::Context;

/// Small, so that emulation takes seconds. A number of rounds instead of the time limit of `--quick`, which an
/// emulated guest on a busy host can reach before its first sample.
const SMALL: [&str; 9] = [
    "latency",
    "--loaded",
    "--json",
    "--quick",
    "--rounds=2",
    "--size=4M",
    "--huge-pages=never",
    "--mix=read",
    "--pauses=0,5000",
];

/// The only CPUs that threads of a process may run on, of those that are bound to one.
fn seats(pid: u32) -> BTreeSet<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let status = tasks.filter_map(|task| fs::read_to_string(task.path().join("status")).ok());
    let allowed = status.filter_map(|status| {
        status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:\t")?.parse().ok())
    });
    allowed.collect()
}

/// Measures, and compares all the while what the kernel says of the process: nodes of bound pages, and
/// CPUs of bound threads.
fn watched(context: &Context, more: &[&str]) -> Result<Value, String> {
    let mut child = start(Command::new(context.path()).args(SMALL).args(more))?;
    let (mut pages, mut seen) = (BTreeSet::new(), BTreeSet::new());
    while child.try_wait().map_err(|error| error.to_string())?.is_none() {
        for ((bound, node), count) in bound_pages(child.id()) {
            same(&format!("the node of {count} pages that are bound to node {bound}"), node, bound)?;
            pages.insert(node);
        }
        seen.append(&mut seats(child.id()));
        std::thread::sleep(BETWEEN_LOOKS);
    }
    let document = document(child, 0)?;
    let (mut named, mut cpus) = (BTreeSet::new(), BTreeSet::new());
    for path in paths(&document)? {
        named.extend([node_of(&path["idle"], "memory_node"), node_of(path, "traffic_memory_node")]);
        cpus.extend(list(&path["idle"]["cpus"])?);
        cpus.extend(list(&path["traffic_cpus"])?);
    }
    same("nodes that had pages", &pages, &named)?;
    // Threads of the traffic are new for every sample: not each of them is seen.
    same("CPUs that had threads, but no path names", seen.difference(&cpus).next(), None)?;
    Ok(document)
}

fn paths(document: &Value) -> Result<&Vec<Value>, String> {
    document["paths"].as_array().ok_or_else(|| format!("no paths: {document}"))
}

/// CPUs of a list as `0,2-3`.
fn list(text: &Value) -> Result<BTreeSet<u32>, String> {
    let text = text.as_str().unwrap_or_default();
    let mut cpus = BTreeSet::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        match (first.parse::<u32>(), last.parse::<u32>()) {
            (Ok(first), Ok(last)) => cpus.extend(first..=last),
            _ => return Err(format!("{text:?} is no list of CPUs")),
        }
    }
    Ok(cpus)
}

/// Everything of a path is where it says, by its pages and by the kernel's lists of CPUs.
fn check(path: &Value) -> Result<(), String> {
    let (chaser, traffic) = (list(&path["idle"]["cpus"])?, list(&path["traffic_cpus"])?);
    same("CPUs that chase", chaser.len(), 1)?;
    same("CPUs that chase and move data", chaser.intersection(&traffic).count(), 0)?;
    let of_node =
        |name: &str, cell: &Value| cpus_of(node_of(cell, name)).into_iter().collect::<BTreeSet<_>>();
    same("the chase is on its node", chaser.is_subset(&of_node("from_node", &path["idle"])), true)?;
    same("the traffic is on its node", traffic.is_subset(&of_node("traffic_from_node", path)), true)?;
    let points = path["curves"][0]["points"].as_array().cloned().unwrap_or_default();
    same("points", points.len(), 2)?;
    // 4 MiB each for the chase and for the traffic.
    let idle = std::iter::once((&path["idle"], 1024));
    for (point, pages) in idle.chain(points.iter().map(|point| (point, 2048))) {
        for moment in ["placed_before", "placed_after"] {
            same(&format!("{moment} of {point}"), point[moment]["pages_on_node"].as_u64(), Some(pages))?;
            same(&format!("{moment} of {point}"), point[moment]["pages"].as_u64(), Some(pages))?;
        }
        same(&format!("a figure of {point}"), point["median_ns"].is_number(), true)?;
    }
    same("traffic", points.iter().all(|point| point["median_gb_per_s"].is_number()), true)
}

/// The paths that are measured by default: near, and far.
pub fn placement(context: &Context) -> Result<(), String> {
    let document = watched(context, &[])?;
    let paths = paths(&document)?;
    same("paths of a machine with several nodes", paths.len(), 2)?;
    paths.iter().try_for_each(check)
}

/// Paths that are named: the last node with CPUs moves data of the last memory while the first chases.
pub fn cross_traffic(context: &Context) -> Result<(), String> {
    let (memory, cpus) = nodes();
    let ends = |nodes: &BTreeSet<u32>| nodes.first().copied().zip(nodes.last().copied());
    let (from, mover) = ends(&cpus).ok_or("no node has CPUs")?;
    let (near, far) = ends(&memory).ok_or("no node has memory")?;
    let words = [format!("--chase={from}:{far}"), format!("--traffic={mover}:{near}")];
    let document = watched(context, &words.each_ref().map(String::as_str))?;
    let [path] = &paths(&document)?[..] else { return Err(format!("one path: {document}")) };
    check(path)?;
    same("the node that chases", node_of(&path["idle"], "from_node"), from)?;
    same("the node that is chased", node_of(&path["idle"], "memory_node"), far)?;
    same("the node that moves", node_of(path, "traffic_from_node"), mover)?;
    same("the node that is moved", node_of(path, "traffic_memory_node"), near)
}
