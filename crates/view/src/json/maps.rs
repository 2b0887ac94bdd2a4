//! A process's mappings (`nodewise.maps/1`), and the nodes of single pages (`nodewise.page_runs/1`).

use nodewise_machine::NodeId;
use nodewise_machine::mapping::{MappedPages, Mapping, MappingKind, MappingsMethod};
use serde::Serialize;

use super::pretty;
use crate::digest::maps::{GroupBy, Maps, PageRuns, Tally, policy_words};

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    pid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resident_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    swapped_bytes: Option<u64>,
    method: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pages_asked: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_time_s: Option<f64>,
    predicted_cpu_time_s: f64,
    nodes: Vec<OnNode>,
    grouped_by: &'static str,
    groups: Vec<Group>,
    policies: Vec<Group>,
    page_sizes: Vec<PageSize>,
    mappings: Vec<Row<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unreadable_processes: Option<usize>,
    findings: Vec<String>,
    notes: &'a [String],
}

#[derive(Serialize)]
struct OnNode {
    node: u32,
    size_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    low_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    high_bytes: Option<u64>,
}

#[derive(Serialize)]
struct Group {
    name: String,
    mappings: usize,
    size_bytes: u64,
    nodes: Vec<OnNode>,
}

#[derive(Serialize)]
struct PageSize {
    name: String,
    size_bytes: u64,
}

#[derive(Serialize)]
struct Row<'a> {
    start: String,
    end: String,
    permissions: String,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inode: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    page_size_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resident_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    transparent_huge_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    swapped_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dirty_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    most_mapped: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pages_drawn: Option<u64>,
    /// Missing where nothing says.
    #[serde(skip_serializing_if = "Option::is_none")]
    nodes: Option<Vec<OnNode>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    unsure: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    also_in: Option<Vec<Process<'a>>>,
}

#[derive(Serialize)]
struct Process<'a> {
    pid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
}

/// Writes the mappings of a process.
pub fn maps(maps: &Maps<'_>) -> String {
    let process = maps.process;
    let (method, asked, seed) = match process.method {
        MappingsMethod::Exact => ("exact", None, None),
        MappingsMethod::NoNodes => ("no_nodes", None, None),
        MappingsMethod::Sampled { asked, seed } => ("sampled", Some(asked), Some(seed)),
    };
    let all = maps.all();
    let nodes = maps.nodes();
    let key = |name: String| match maps.by {
        GroupBy::Kind => {
            let kind = MappingKind::ALL.into_iter().find(|kind| kind.words() == name);
            kind.map_or(name, |kind| kind.key().to_owned())
        }
        GroupBy::File | GroupBy::Policy => name,
    };
    let group = |name: String, tally: &Tally| Group {
        name,
        mappings: tally.mappings,
        size_bytes: tally.all().get(),
        nodes: on_nodes(tally, &nodes),
    };
    pretty(&Document {
        schema: "nodewise.maps/1",
        pid: process.pid.number(),
        name: process.name.as_deref(),
        resident_bytes: process.resident.map(|size| size.get()),
        swapped_bytes: process.swapped.map(|size| size.get()),
        method,
        pages_asked: asked,
        seed,
        cpu_time_s: process.took.map(|took| took.as_secs_f64()),
        predicted_cpu_time_s: process.predicted.as_secs_f64(),
        nodes: on_nodes(&all, &nodes),
        grouped_by: maps.by.word(),
        groups: maps.groups().into_iter().map(|(name, tally)| group(key(name), &tally)).collect(),
        policies: maps.policies().iter().map(|(text, tally)| group((*text).to_owned(), tally)).collect(),
        page_sizes: maps
            .page_sizes()
            .into_iter()
            .map(|(name, size)| PageSize { name, size_bytes: size.get() })
            .collect(),
        mappings: process
            .mappings
            .iter()
            .enumerate()
            .map(|(at, mapping)| row(maps, &nodes, at, mapping))
            .collect(),
        unreadable_processes: maps.shared_with.map(|shared| shared.unreadable),
        findings: maps.findings(),
        notes: &process.notes,
    })
}

/// The memory of each node that has some.
fn on_nodes(tally: &Tally, nodes: &[NodeId]) -> Vec<OnNode> {
    let on = |node: &NodeId| {
        let estimate = tally.on(*node);
        let end = |size: nodewise_machine::Bytes| (!estimate.is_exact()).then_some(size.get());
        OnNode {
            node: node.number(),
            size_bytes: estimate.size.get(),
            low_bytes: end(estimate.low),
            high_bytes: end(estimate.high),
        }
    };
    nodes.iter().map(on).filter(|on| on.size_bytes > 0 || on.high_bytes.is_some()).collect()
}

fn row<'a>(maps: &Maps<'a>, nodes: &[NodeId], at: usize, mapping: &'a Mapping) -> Row<'a> {
    let tally = Tally::from_mappings([mapping]);
    let on = match &mapping.pages {
        // Where nothing was drawn on a node the interval still reaches above 0.
        MappedPages::Drawn(_) => nodes.to_vec(),
        _ => tally.nodes().iter().collect(),
    };
    let is_known = !matches!(mapping.pages, MappedPages::Unknown { .. }) && !tally.is_unseen();
    let also_in = maps.shared_with.map(|shared| {
        let others = shared.processes.get(&at).map_or(&[][..], Vec::as_slice);
        others.iter().map(|(pid, name)| Process { pid: *pid, name: name.as_deref() }).collect()
    });
    Row {
        start: format!("{:x}", mapping.start),
        end: format!("{:x}", mapping.end),
        permissions: mapping.permissions.to_string(),
        kind: mapping.kind.key(),
        name: mapping.name.as_deref(),
        device: mapping.file.map(|file| format!("{:x}:{:x}", file.device.0, file.device.1)),
        inode: mapping.file.map(|file| file.inode),
        policy: policy_words(mapping),
        page_size_bytes: mapping.page_size.map(|size| size.get()),
        resident_bytes: mapping.resident().map(|size| size.get()),
        transparent_huge_bytes: mapping.transparent.map(|size| size.get()),
        swapped_bytes: mapping.swapped.map(|size| size.get()),
        dirty_bytes: mapping.dirty.map(|size| size.get()),
        most_mapped: mapping.most_mapped,
        pages_drawn: matches!(mapping.pages, MappedPages::Drawn(_)).then(|| tally.drawn()),
        nodes: is_known.then(|| on_nodes(&tally, &on)),
        unsure: mapping.unsure,
        also_in,
    }
}

#[derive(Serialize)]
struct Runs {
    schema: &'static str,
    pid: u32,
    page_size_bytes: u64,
    runs: Vec<PageRun>,
}

#[derive(Serialize)]
struct PageRun {
    start: String,
    pages: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<u32>,
}

/// Writes the nodes of single pages.
pub fn page_runs(pid: u32, runs: &PageRuns) -> String {
    let run = |run: &crate::digest::maps::NodeRun| PageRun {
        start: format!("{:x}", run.start),
        pages: run.pages,
        node: run.node.map(NodeId::number),
    };
    pretty(&Runs {
        schema: "nodewise.page_runs/1",
        pid,
        page_size_bytes: runs.page_size,
        runs: runs.runs.iter().map(run).collect(),
    })
}
