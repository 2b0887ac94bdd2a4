//! `nodewise.maps-comparison/1`: the mappings of a process at two moments.

use nodewise_machine::Bytes;
use nodewise_machine::mapping::{Mapping, ProcessMappings};
use serde::Serialize;

use super::pretty;
use crate::digest::maps::comparison::{MappingPair, MapsComparison, TallyPair};
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
    moment: &'a str,
    pid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resident_bytes: Option<u64>,
    mappings: usize,
}

#[derive(Serialize)]
struct Change {
    before_bytes: u64,
    after_bytes: u64,
    change_bytes: i64,
    nodes: Vec<NodeChange>,
}

#[derive(Serialize)]
struct NodeChange {
    node: u32,
    before_bytes: u64,
    after_bytes: u64,
    change_bytes: i64,
    /// The ends of the change, where pages were drawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    low_bytes: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    high_bytes: Option<i64>,
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

fn moment<'a>(words: &'a str, process: &'a ProcessMappings) -> MomentJson<'a> {
    MomentJson {
        moment: words,
        pid: process.pid.number(),
        name: process.name.as_deref(),
        resident_bytes: process.resident.map(Bytes::get),
        mappings: process.mappings.len(),
    }
}

/// A number of bytes that JSON's readers can hold.
fn signed(change: i128) -> i64 {
    i64::try_from(change).unwrap_or(if change < 0 { i64::MIN } else { i64::MAX })
}

fn change(pair: &TallyPair) -> Change {
    let nodes = pair.before.nodes().union(&pair.after.nodes());
    let on = |node| {
        let size = pair.on(node);
        let end = |end: i128| (!size.is_exact()).then(|| signed(end));
        NodeChange {
            node: node.number(),
            before_bytes: pair.before.on(node).size.get(),
            after_bytes: pair.after.on(node).size.get(),
            change_bytes: signed(size.change),
            low_bytes: end(size.low),
            high_bytes: end(size.high),
        }
    };
    Change {
        before_bytes: pair.before.all().get(),
        after_bytes: pair.after.all().get(),
        change_bytes: signed(pair.all()),
        nodes: nodes.iter().map(on).collect(),
    }
}

fn row<'a>(pair: &MappingPair<'a>) -> Option<Row<'a>> {
    let mapping = pair.any()?;
    let other = pair.before.filter(|_| pair.after.is_some());
    let differs = |one: fn(&Mapping) -> u64| other.map(one).filter(|address| *address != one(mapping));
    let hex = |address: u64| format!("{address:x}");
    let policy = policy_words(mapping);
    Some(Row {
        state: match (pair.before, pair.after) {
            (Some(_), Some(_)) => "stayed",
            (None, _) => "came",
            (Some(_), None) => "went",
        },
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
