//! `nodewise.stat-comparison/1`: two moments of the running system, before and after.

use nodewise_diagnose::Window;
use nodewise_diagnose::matching::MatchedBy;
use nodewise_machine::{Bytes, NodeId};
use serde::Serialize;

use super::{pretty, rounded};
use crate::digest::estimate::{Estimate, SizeChange, in_bytes};
use crate::digest::running::comparison::{
    BeforeAfter, ComparedMoment, FactRow, ProcessComparison, ProcessSide, RunningComparison,
};

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    headline: String,
    relation: &'static str,
    differences: Vec<String>,
    backwards: bool,
    before: MomentJson,
    after: MomentJson,
    facts: Vec<FactJson>,
    processes: Vec<ProcessJson>,
    processes_left_out: usize,
    only_before: Vec<ProcessJson>,
    only_before_left_out: usize,
    only_after: Vec<ProcessJson>,
    only_after_left_out: usize,
}

#[derive(Serialize)]
struct MomentJson {
    recording: String,
    at_s: f64,
    taken_at_s: f64,
    since_boot_s: f64,
    /// Missing: since boot.
    #[serde(skip_serializing_if = "Option::is_none")]
    interval_s: Option<f64>,
    process_count: usize,
}

#[derive(Serialize)]
struct FactJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<u32>,
    name: &'static str,
    unit: &'static str,
    #[serde(flatten)]
    value: ValueJson,
}

/// A value at both moments; what is not known is left out.
#[derive(Serialize)]
struct ValueJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<f64>,
}

#[derive(Serialize)]
struct SizeJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    before_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    change_bytes: Option<i64>,
}

#[derive(Serialize)]
struct NodeSizeJson {
    node: u32,
    #[serde(flatten)]
    size: SizeJson,
    /// The ends of the change, where one of the sizes is an estimate.
    #[serde(skip_serializing_if = "Option::is_none")]
    low_bytes: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    high_bytes: Option<i64>,
}

#[derive(Serialize)]
struct ProcessJson {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    matched_by: &'static str,
    pids_before: Vec<u32>,
    pids_after: Vec<u32>,
    resident: SizeJson,
    cpu_share: ValueJson,
    /// Missing where the pages of one side were not looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    by_node: Option<Vec<NodeSizeJson>>,
    /// Whether sizes by node are estimates.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    sampled: bool,
}

/// Writes it.
pub fn stat_comparison(comparison: &RunningComparison) -> String {
    let processes = |rows: &[ProcessComparison]| rows.iter().map(process).collect();
    let [processes_left_out, only_before_left_out, only_after_left_out] = comparison.left_out;
    pretty(&Document {
        schema: "nodewise.stat-comparison/1",
        headline: comparison.headline(),
        relation: comparison.relation.word(),
        differences: comparison.differences.clone(),
        backwards: comparison.is_backwards(),
        before: moment(&comparison.before),
        after: moment(&comparison.after),
        facts: comparison.facts.iter().map(fact).collect(),
        processes: processes(&comparison.processes),
        processes_left_out,
        only_before: processes(&comparison.only_before),
        only_before_left_out,
        only_after: processes(&comparison.only_after),
        only_after_left_out,
    })
}

fn moment(moment: &ComparedMoment) -> MomentJson {
    MomentJson {
        recording: moment.name.clone(),
        at_s: rounded(moment.at.as_secs_f64()),
        taken_at_s: rounded(moment.moment.wall.as_secs_f64()),
        since_boot_s: rounded(moment.moment.since_boot.as_secs_f64()),
        interval_s: match moment.window {
            Window::Interval(length) => Some(rounded(length.as_secs_f64())),
            Window::SinceBoot(_) => None,
        },
        process_count: moment.process_count,
    }
}

fn fact(fact: &FactRow) -> FactJson {
    FactJson {
        node: fact.node.map(|node| node.number()),
        name: fact.name,
        unit: fact.unit.word(),
        value: value(fact.value),
    }
}

fn value(value: BeforeAfter<f64>) -> ValueJson {
    ValueJson {
        before: value.before.map(rounded),
        after: value.after.map(rounded),
        change: value.change().map(rounded),
    }
}

fn size(size: BeforeAfter<Bytes>) -> SizeJson {
    SizeJson {
        before_bytes: size.before.map(Bytes::get),
        after_bytes: size.after.map(Bytes::get),
        change_bytes: size.change().map(in_bytes),
    }
}

fn on_node((node, sizes): (NodeId, BeforeAfter<Estimate>)) -> NodeSizeJson {
    let bytes = |size: Option<Estimate>| size.map(|size| size.size);
    let (low, high) = sizes.change().and_then(SizeChange::ends).unzip();
    NodeSizeJson {
        node: node.number(),
        size: size(BeforeAfter { before: bytes(sizes.before), after: bytes(sizes.after) }),
        low_bytes: low.map(in_bytes),
        high_bytes: high.map(in_bytes),
    }
}

fn process(row: &ProcessComparison) -> ProcessJson {
    let pids = |side: &Option<ProcessSide>| {
        side.iter().flat_map(|side| &side.pids).map(|pid| pid.number()).collect()
    };
    ProcessJson {
        name: row.name.clone(),
        group: row.group.clone(),
        matched_by: match row.by {
            MatchedBy::Identity => "identity",
            MatchedBy::Name => "name",
        },
        pids_before: pids(&row.before),
        pids_after: pids(&row.after),
        resident: size(row.resident()),
        cpu_share: value(row.cpu()),
        by_node: row.nodes().map(|nodes| nodes.into_iter().map(on_node).collect()),
        sampled: [&row.before, &row.after].into_iter().flatten().any(|side| side.is_drawn),
    }
}
