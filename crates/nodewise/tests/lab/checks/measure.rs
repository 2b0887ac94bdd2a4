//! Measuring: the pages are on the node that a cell names, by the kernel's word, and what cannot be
//! measured says why. How long anything takes means nothing in an emulated machine.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::same;
use crate::cpuset::Cpuset;
use crate::kernel::{cpus_of, memory_of, online_nodes};
use crate::nodewise::{Context, complaint};

/// Small, so that emulation takes seconds: huge pages of 2 MiB fit into it twice. As many cells as there are, with no
/// limit of time.
const SMALL: [&str; 5] = ["latency", "--quick", "--rounds=2", "--json", "--size=4M"];
/// Between two looks at a process that measures. The CPUs of a guest take turns on one of the host: looking all the
/// time would take most of them.
pub(super) const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// The nodes with memory, and those with CPUs, as the kernel reports.
pub(super) fn nodes() -> (BTreeSet<u32>, BTreeSet<u32>) {
    let memory = online_nodes().into_iter().filter(|node| memory_of(*node) > 0).collect();
    let cpus = online_nodes().into_iter().filter(|node| !cpus_of(*node).is_empty()).collect();
    (memory, cpus)
}

pub(super) fn start(command: &mut Command) -> Result<Child, String> {
    let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    spawned.map_err(|error| format!("latency: {error}"))
}

pub(super) fn document(child: Child, code: i32) -> Result<Value, String> {
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.code() != Some(code) {
        return Err(format!("{}: {}\n{text}", output.status, complaint(&output)));
    }
    serde_json::from_str(&text).map_err(|error| format!("{error}: {text}"))
}

fn cells(document: &Value) -> Result<&Vec<Value>, String> {
    document["cells"].as_array().ok_or_else(|| format!("no cells: {document}"))
}

pub(super) fn node_of(cell: &Value, name: &str) -> u32 {
    cell[name].as_u64().and_then(|node| u32::try_from(node).ok()).unwrap_or(u32::MAX)
}

/// The pages of mappings that are bound to one node, by that node and the node they are on: what the
/// kernel says of a process while it runs.
pub(super) fn bound_pages(pid: u32) -> BTreeMap<(u32, u32), u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/numa_maps")).unwrap_or_default();
    let mut pages = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.split(' ').skip(1);
        let policy = words.next().unwrap_or_default();
        let Some(Ok(bound)) =
            policy.strip_prefix("bind").and_then(|rest| Some(rest.rsplit_once(':')?.1.parse::<u32>()))
        else {
            continue;
        };
        for word in words {
            let count = word.strip_prefix('N').and_then(|rest| rest.split_once('='));
            if let Some((Ok(node), Ok(count))) = count.map(|(n, c)| (n.parse::<u32>(), c.parse::<u64>())) {
                *pages.entry((bound, node)).or_default() += count;
            }
        }
    }
    pages
}

/// Every pair of nodes has a figure, in small and in huge pages; nodewise and the kernel agree where the
/// pages are.
pub fn placement(context: &Context) -> Result<(), String> {
    let mut child = start(Command::new(context.path()).args(SMALL))?;
    let mut seen: BTreeSet<u32> = BTreeSet::new();
    while child.try_wait().map_err(|error| error.to_string())?.is_none() {
        for ((bound, node), count) in bound_pages(child.id()) {
            same(&format!("the node of {count} pages that are bound to node {bound}"), node, bound)?;
            seen.insert(node);
        }
        std::thread::sleep(BETWEEN_LOOKS);
    }
    let document = document(child, 0)?;
    let (memory, cpus) = nodes();
    same("nodes that had pages", &seen, &memory)?;
    let mut pairs = BTreeMap::new();
    for cell in cells(&document)? {
        let (from, to) = (node_of(cell, "from_node"), node_of(cell, "memory_node"));
        *pairs.entry((from, to)).or_insert(0) += 1;
        for moment in ["placed_before", "placed_after"] {
            let placed = &cell[moment];
            same(&format!("{moment} of {cell}"), &placed["pages_on_node"], &placed["pages"])?;
            same("pages of 4 MiB", placed["pages"].as_u64(), Some(1024))?;
        }
        if !cell["median_ns"].is_number() {
            return Err(format!("no figure: {cell}"));
        }
        let huge = cell["placed_before"]["huge_bytes"].as_u64();
        let expected = if cell["pages"] == "small" { 0 } else { 4 << 20 };
        same(&format!("bytes in huge pages of {cell}"), huge, Some(expected))?;
        let cpu = cell["cpus"].as_str().and_then(|cpu| cpu.parse().ok()).unwrap_or(u32::MAX);
        same(&format!("whether node {from} has CPU {cpu}"), cpus_of(from).contains(&cpu), true)?;
    }
    let expected = cpus.iter().flat_map(|from| memory.iter().map(move |to| ((*from, *to), 2))).collect();
    same("pairs of nodes, in two kinds of pages", pairs, expected)
}

/// A cpuset marks the cells of the nodes that it forbids, and the others come.
pub fn forbidden_node(context: &Context) -> Result<(), String> {
    let group = Cpuset::new("0", "1")?;
    let mut words = vec![context.path()];
    words.extend(SMALL);
    words.push("--huge-pages=never");
    let document = document(start(&mut group.command(&words))?, 0)?;
    for cell in cells(&document)? {
        let (from, memory) = (node_of(cell, "from_node"), node_of(cell, "memory_node"));
        let why = cell["refused"].as_str().unwrap_or_default();
        if from != 0 {
            same("why", why, &format!("no CPU of node {from} may be used by this process"))?;
        } else if memory != 1 {
            same("why", why, &format!("node {memory} is outside of this cpuset's memory nodes 1"))?;
        } else {
            same("a figure inside the cpuset", cell["median_ns"].is_number(), true)?;
        }
    }
    Ok(())
}

/// More than a node has is refused with the figure; no one is killed for it. So are huge pages that no one
/// has reserved.
pub fn too_little_memory(context: &Context) -> Result<(), String> {
    let mut command = Command::new(context.path());
    let document =
        document(start(command.args(["latency", "--quick", "--rounds=2", "--json", "--size=8G"]))?, 3)?;
    for cell in cells(&document)? {
        let (why, node) = (cell["refused"].as_str().unwrap_or_default(), node_of(cell, "memory_node"));
        let figure = why.strip_prefix(&format!("node {node} has "));
        let figure = figure.and_then(|rest| rest.strip_suffix(" are needed: try a smaller --size"));
        let mebibytes = figure.and_then(|rest| rest.split_once(" MiB to spare, "));
        let spare = mebibytes.and_then(|(number, _)| number.parse::<f64>().ok());
        let total = memory_of(node) as f64 / 1024.0;
        if !spare.is_some_and(|spare| spare > 0.0 && spare < total) {
            return Err(format!("node {node} with {total} MiB: {why}"));
        }
    }
    let mut command = Command::new(context.path());
    let document = self::document(start(command.args(SMALL).arg("--huge-pages=2M"))?, 0)?;
    for cell in cells(&document)? {
        let (why, node) = (cell["refused"].as_str().unwrap_or_default(), node_of(cell, "memory_node"));
        let expected = if cell["pages"] == "small" {
            String::new()
        } else {
            format!(
                "node {node} has 0 free huge pages of 2 MiB, 2 are needed: reserve them in its pool \
                 (nr_hugepages), or use --huge-pages=thp"
            )
        };
        same("why", why, &expected)?;
    }
    Ok(())
}

/// A CPU that is switched off while it measures costs the cells of its node, and no others.
pub fn lost_cpu(context: &Context) -> Result<(), String> {
    let (_, cpus) = nodes();
    // Node 0 keeps CPU 0, which cannot be switched off everywhere.
    let node = *cpus.last().ok_or("no node has CPUs")?;
    let Some(cpu) = cpus_of(node).into_iter().find(|cpu| *cpu != 0) else {
        // The only CPU of this layout's only node with CPUs.
        return Ok(());
    };
    let mut child = start(Command::new(context.path()).args(SMALL).arg("--huge-pages=never"))?;
    let status = format!("/proc/{}/status", child.id());
    let own = format!("Cpus_allowed_list:\t{cpu}");
    while !fs::read_to_string(&status).unwrap_or_default().lines().any(|line| line == own) {
        if child.try_wait().map_err(|error| error.to_string())?.is_some() {
            return Err(format!("it ended before it came to CPU {cpu}: {}", document(child, 0)?));
        }
        std::thread::yield_now();
    }
    let switch = format!("/sys/devices/system/cpu/cpu{cpu}/online");
    fs::write(&switch, "0").map_err(|error| format!("{switch}: {error}"))?;
    let ended = document(child, if cpus.len() > 1 { 0 } else { 3 });
    fs::write(&switch, "1").map_err(|error| format!("{switch}: {error}"))?;
    for cell in cells(&ended?)? {
        let why = cell["refused"].as_str().unwrap_or_default();
        let lost = format!("CPU {cpu} is not online, or not allowed to this process any more");
        let expected = if node_of(cell, "from_node") == node { lost.as_str() } else { "" };
        same("why", why, expected)?;
    }
    Ok(())
}
