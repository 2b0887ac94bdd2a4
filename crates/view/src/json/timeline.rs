//! `nodewise.simulation/1`: a scenario that was played.

use std::collections::BTreeMap;

use nodewise_machine::NodeId;
use nodewise_model::Memory;
use serde::Serialize;

use super::pretty;
use crate::digest::timeline::{Moment, Timeline};

/// The schema of the document.
pub const SCHEMA: &str = "nodewise.simulation/1";

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    title: &'a str,
    machine: &'a str,
    kernel: String,
    zones_from: &'static str,
    steps: Vec<StepJson<'a>>,
    nodes: Vec<NodeJson>,
}

#[derive(Serialize)]
struct StepJson<'a> {
    at_s: f64,
    program: &'a str,
    does: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    object: String,
    taken: Vec<Pages>,
    #[serde(skip_serializing_if = "Option::is_none")]
    missing_pages: Option<u64>,
    moved_pages: u64,
    programs: Vec<ProgramJson<'a>>,
    free: Vec<Pages>,
}

#[derive(Serialize)]
struct Pages {
    node: u32,
    pages: u64,
}

#[derive(Serialize)]
struct ProgramJson<'a> {
    name: &'a str,
    memory: Vec<Pages>,
}

#[derive(Serialize)]
struct NodeJson {
    id: u32,
    managed_pages: u64,
    free_pages: u64,
    least_free_pages: u64,
    numa_hit: u64,
    numa_miss: u64,
    numa_foreign: u64,
    interleave_hit: u64,
    local_node: u64,
    other_node: u64,
}

fn pages(nodes: impl IntoIterator<Item = (NodeId, u64)>) -> Vec<Pages> {
    nodes.into_iter().map(|(node, pages)| Pages { node: node.number(), pages }).collect()
}

fn step<'a>(moment: &'a Moment, nodes: &[NodeId]) -> StepJson<'a> {
    let memory = |nodes: &BTreeMap<NodeId, u64>| pages(nodes.iter().map(|(node, pages)| (*node, *pages)));
    StepJson {
        at_s: moment.at_s,
        program: &moment.program,
        does: moment.does(),
        object: moment.object(),
        taken: pages(moment.step.outcome.nodes()),
        missing_pages: moment.step.missing().map(|end| end.pages),
        moved_pages: moment.step.moved,
        programs: moment
            .programs
            .iter()
            .map(|(name, nodes)| ProgramJson { name, memory: memory(nodes) })
            .collect(),
        free: pages(nodes.iter().map(|node| (*node, moment.memory.free_of(*node)))),
    }
}

fn node(id: NodeId, after: &Memory, least_free_pages: u64) -> NodeJson {
    let counters = after.counters().get(&id).copied().unwrap_or_default();
    NodeJson {
        id: id.number(),
        managed_pages: after.managed_of(id),
        free_pages: after.free_of(id),
        least_free_pages,
        numa_hit: counters.hit,
        numa_miss: counters.miss,
        numa_foreign: counters.foreign,
        interleave_hit: counters.interleave_hit,
        local_node: counters.local,
        other_node: counters.other,
    }
}

/// Writes a scenario that was played as JSON.
pub fn timeline(timeline: &Timeline) -> String {
    let ids = timeline.nodes();
    let document = Document {
        schema: SCHEMA,
        title: &timeline.title,
        machine: &timeline.machine,
        kernel: timeline.release.to_string(),
        zones_from: timeline.basis.word(),
        steps: timeline.moments.iter().map(|moment| step(moment, &ids)).collect(),
        nodes: ids.iter().map(|id| node(*id, timeline.after(), timeline.least_free(*id))).collect(),
    };
    pretty(&document)
}
