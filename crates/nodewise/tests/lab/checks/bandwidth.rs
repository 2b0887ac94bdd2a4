//! Bandwidth and core-to-core latency: the memory is on the node that a way names, and the threads on
//! its CPUs. How long anything takes means nothing in an emulated machine.

use std::collections::BTreeSet;
use std::process::{Command, Output};

use serde_json::Value;

use super::same;
use crate::kernel::{cpus_of, line, memory_of, online_nodes};
use crate::nodewise::{Context, complaint};

fn run(context: &Context, words: &[&str]) -> Result<Output, String> {
    Command::new(context.path()).args(words).output().map_err(|error| format!("{words:?}: {error}"))
}

fn document(context: &Context, words: &[&str]) -> Result<Value, String> {
    document_of(context, words, &[0])
}

/// A document, from a command that ends in one of these ways.
fn document_of(context: &Context, words: &[&str], codes: &[i32]) -> Result<Value, String> {
    let output = run(context, words)?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.code().is_some_and(|code| codes.contains(&code)) {
        return Err(format!("{words:?}: {}: {}\n{text}", output.status, complaint(&output)));
    }
    serde_json::from_str(&text).map_err(|error| format!("{error}: {text}"))
}

fn rows<'a>(document: &'a Value, name: &str) -> Result<&'a Vec<Value>, String> {
    document[name].as_array().ok_or_else(|| format!("no {name}: {document}"))
}

fn number(value: &Value, name: &str) -> u32 {
    value[name].as_u64().and_then(|number| u32::try_from(number).ok()).unwrap_or(u32::MAX)
}

/// Every pair of a node with CPUs and a node with memory has a figure, with a thread on each of the CPUs
/// and every page on the node.
pub fn placement(context: &Context) -> Result<(), String> {
    let words =
        ["bandwidth", "--quick", "--rounds=2", "--json", "--matrix", "--huge-pages=never", "--size=4M"];
    let document = document(context, &words)?;
    let with = |has: fn(u32) -> bool| online_nodes().into_iter().filter(move |node| has(*node));
    let expected: BTreeSet<(u32, u32)> = with(|node| !cpus_of(node).is_empty())
        .flat_map(|from| with(|node| memory_of(node) > 0).map(move |memory| (from, memory)))
        .collect();
    let mut seen = BTreeSet::new();
    for way in rows(&document, "matrix")? {
        let (from, memory) = (number(way, "from_node"), number(way, "memory_node"));
        seen.insert((from, memory));
        for moment in ["placed_before", "placed_after"] {
            let placed = &way[moment];
            same(&format!("{moment} of {way}"), &placed["pages_on_node"], &placed["pages"])?;
            same("pages of 4 MiB", placed["pages"].as_u64(), Some(1024))?;
        }
        same(&format!("threads of {way}"), number(way, "threads") as usize, cpus_of(from).len())?;
        if !way["median_gb_per_s"].is_number() || !way["variant"].is_string() {
            return Err(format!("no figure, or nothing won: {way}"));
        }
    }
    same("pairs of nodes", seen, expected)
}

/// Weights of two nodes are set in proportion, and put back from the file that kept them.
pub fn weights(context: &Context) -> Result<(), String> {
    let weight = |node: u32| line(&format!("/sys/kernel/mm/mempolicy/weighted_interleave/node{node}"));
    let nodes: Vec<u32> = online_nodes().into_iter().filter(|node| memory_of(*node) > 0).collect();
    // The first node with CPUs has to be among them: no one would reach the others.
    let first = nodes.iter().copied().find(|node| !cpus_of(*node).is_empty());
    let Some(first) = first else { return Ok(()) };
    let second = nodes.iter().copied().find(|node| *node != first).ok_or("there is one node with memory")?;
    let file = std::env::temp_dir().join("old.weights");
    let (apply, undo) =
        (format!("--apply-weights={}", file.display()), format!("--undo-weights={}", file.display()));
    let named = format!("--nodes={first},{second}");
    let words = [
        "bandwidth",
        "--quick",
        "--rounds=2",
        "--matrix",
        "--huge-pages=never",
        "--size=4M",
        "--json",
        &named,
        &apply,
    ];
    if weight(first).is_err() {
        return same("the exit code without weights", run(context, &words)?.status.code(), Some(3));
    }
    let all = || nodes.iter().map(|node| weight(*node)).collect::<Result<Vec<String>, String>>();
    let before = all()?;
    let document = document(context, &words)?;
    let after = all()?;
    for ((node, old), new) in nodes.iter().zip(&before).zip(&after) {
        let proposed = document["interleave_weights"][node.to_string()].to_string();
        let expected = if [first, second].contains(node) { &proposed } else { old };
        same(&format!("weight of node {node}"), new, expected)?;
    }
    let dry = run(context, &["bandwidth", &undo, "--dry-run"])?;
    same(&format!("the end of --dry-run: {}", complaint(&dry)), dry.status.code(), Some(0))?;
    same("weights after --dry-run", all()?, after)?;
    let undone = run(context, &["bandwidth", &undo])?;
    same(&format!("the end of undoing: {}", complaint(&undone)), undone.status.code(), Some(0))?;
    same("weights that were put back", all()?, before)?;
    std::fs::remove_file(&file).map_err(|error| error.to_string())
}

/// Lines are on the nodes that are their homes: those of the two CPUs, and one of neither.
pub fn cores(context: &Context) -> Result<(), String> {
    let all: Vec<u32> = online_nodes().into_iter().flat_map(cpus_of).collect();
    let (Some(first), Some(last)) = (all.first(), all.last()) else { return Err("no CPU".to_owned()) };
    let cpus = format!("--cpus={first},{last}");
    let words = ["c2c", "--quick", "--rounds=2", "--json", "--transfer=dirty", &cpus];
    if first == last {
        return same("the exit code with one CPU", run(context, &words)?.status.code(), Some(3));
    }
    // The clock of an emulated machine may be too slow for a line; where the lines are shows anyway.
    let document = document_of(context, &words, &[0, 3])?;
    let pairs = rows(&document, "pairs")?;
    let with_memory: BTreeSet<u32> = online_nodes().into_iter().filter(|node| memory_of(*node) > 0).collect();
    for pair in pairs {
        let home = number(pair, "home_node");
        let on = |cpu: u32| cpus_of(home).contains(&cpu);
        let expected = match (on(number(pair, "to_cpu")), on(number(pair, "from_cpu"))) {
            (true, _) => "near",
            (false, true) => "far",
            (false, false) => "elsewhere",
        };
        same(&format!("the home of {pair}"), pair["home"].as_str(), Some(expected))?;
        same(&format!("whether node {home} has memory"), with_memory.contains(&home), true)?;
        for moment in ["placed_before_share", "placed_after_share"] {
            same(&format!("{moment} of {pair}"), pair[moment].as_f64(), Some(1.0))?;
        }
    }
    let homes: BTreeSet<u32> = pairs.iter().map(|pair| number(pair, "home_node")).collect();
    // Both CPUs' nodes where they have memory, and another one where there is any.
    let own: BTreeSet<u32> = online_nodes()
        .into_iter()
        .filter(|node| cpus_of(*node).iter().any(|cpu| cpu == first || cpu == last))
        .filter(|node| with_memory.contains(node))
        .collect();
    let elsewhere = usize::from(with_memory.len() > own.len());
    same("homes beside those of the CPUs", homes.difference(&own).count() >= elsewhere, true)?;
    same("homes of the CPUs", own.is_subset(&homes), true)
}
