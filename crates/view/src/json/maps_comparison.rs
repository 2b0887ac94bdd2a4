//! `nodewise.maps-comparison/1`: the mappings of a process at two moments.

use nodewise_machine::mapping::{Mapping, ProcessMappings};
use nodewise_machine::{Bytes, NodeId};
use serde::Serialize;

use super::{pretty, rounded};
use crate::digest::estimate::{Estimate, SizeChange, in_bytes};
use crate::digest::maps::comparison::{MappingPair, MapsComparison, MapsMoment, TallyPair};
use crate::digest::maps::policy_words;

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    headline: String,
    relation: &'static str,
    same_process: bool,
    before: MomentJson<'a>,
    after: MomentJson<'a>,
    all: Change,
    kinds: Vec<Kind>,
    /// Missing where addresses do not correspond.
    #[serde(skip_serializing_if = "Option::is_none")]
    mappings: Option<Vec<Row<'a>>>,
}

#[derive(Serialize)]
struct MomentJson<'a> {
    recording: &'a str,
    at_s: f64,
    /// How long before that the mappings were read.
    #[serde(skip_serializing_if = "Option::is_none")]
    age_s: Option<f64>,
    pid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resident_bytes: Option<u64>,
    mappings: usize,
}

/// Sizes at both moments; what is not known is left out.
#[derive(Serialize)]
struct Sizes {
    #[serde(skip_serializing_if = "Option::is_none")]
    before_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    change_bytes: Option<i64>,
    /// The ends of the change, where pages were drawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    low_bytes: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    high_bytes: Option<i64>,
}

#[derive(Serialize)]
struct Change {
    #[serde(flatten)]
    sizes: Sizes,
    nodes: Vec<NodeChange>,
}

#[derive(Serialize)]
struct NodeChange {
    node: u32,
    #[serde(flatten)]
    sizes: Sizes,
}

#[derive(Serialize)]
struct Kind {
    kind: &'static str,
    #[serde(flatten)]
    change: Change,
}

#[derive(Serialize)]
struct Row<'a> {
    state: &'static str,
    start: String,
    end: String,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_before: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_before: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy_before: Option<&'a str>,
    #[serde(flatten)]
    change: Change,
}

/// Writes it.
pub fn maps_comparison(comparison: &MapsComparison<'_>) -> String {
    let [before, after] = &comparison.moments;
    let kinds = comparison.kinds();
    let kinds = kinds.iter().map(|(kind, pair)| Kind { kind: kind.key(), change: change(pair) });
    let rows = || comparison.mappings().iter().filter_map(row).collect();
    pretty(&Document {
        schema: "nodewise.maps-comparison/1",
        headline: comparison.headline(),
        relation: comparison.relation.word(),
        same_process: comparison.is_same,
        before: moment(before, comparison.before),
        after: moment(after, comparison.after),
        all: change(&comparison.all()),
        kinds: kinds.collect(),
        mappings: comparison.is_same.then(rows),
    })
}

fn moment<'a>(moment: &'a MapsMoment, process: &'a ProcessMappings) -> MomentJson<'a> {
    MomentJson {
        recording: &moment.recording,
        at_s: rounded(moment.at.as_secs_f64()),
        age_s: moment.age.map(|age| rounded(age.as_secs_f64())),
        pid: process.pid.number(),
        name: process.name.as_deref(),
        resident_bytes: process.resident.map(Bytes::get),
        mappings: process.mappings.len(),
    }
}

fn sizes(before: Option<Estimate>, after: Option<Estimate>, change: Option<SizeChange>) -> Sizes {
    let (low, high) = change.and_then(SizeChange::ends).unzip();
    Sizes {
        before_bytes: before.map(|size| size.size.get()),
        after_bytes: after.map(|size| size.size.get()),
        change_bytes: change.map(|change| in_bytes(change.change)),
        low_bytes: low.map(in_bytes),
        high_bytes: high.map(in_bytes),
    }
}

fn change(pair: &TallyPair) -> Change {
    let on = |node: NodeId| NodeChange {
        node: node.number(),
        sizes: sizes(pair.before.known_on(node), pair.after.known_on(node), pair.on(node)),
    };
    Change {
        sizes: sizes(pair.before.present(), pair.after.present(), pair.all()),
        nodes: pair.nodes().iter().map(on).collect(),
    }
}

fn row<'a>(pair: &MappingPair<'a>) -> Option<Row<'a>> {
    let mapping = pair.any()?;
    let other = pair.before.filter(|_| pair.after.is_some());
    let differs = |one: fn(&Mapping) -> u64| other.map(one).filter(|address| *address != one(mapping));
    let hex = |address: u64| format!("{address:x}");
    let policy = policy_words(mapping);
    Some(Row {
        state: pair.state().word(),
        start: hex(mapping.start),
        end: hex(mapping.end),
        kind: mapping.kind.key(),
        name: mapping.name.as_deref(),
        start_before: differs(|mapping| mapping.start).map(hex),
        end_before: differs(|mapping| mapping.end).map(hex),
        policy,
        policy_before: other.and_then(policy_words).filter(|before| Some(*before) != policy),
        change: change(&pair.tallies()),
    })
}
