//! The JSON of `nodewise bandwidth`.

use std::collections::BTreeMap;

use nodewise_measure::bandwidth::{Report, WayReport, findings};
use nodewise_measure::survey::Declared;
use serde::Serialize;

use super::cells::{AccountJson, BackingJson, GbPerSJson, ReachJson};
use super::conditions::ConditionsJson;
use super::pretty;
use crate::digest::bandwidth::sentence;

/// The schema of the document.
pub const SCHEMA: &str = "nodewise.bandwidth/1";

/// Writes a report as JSON, indented, with a line end.
pub fn bandwidth(report: &Report) -> String {
    pretty(&Document::of(report))
}

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    conditions: ConditionsJson,
    size_bytes: u64,
    #[serde(flatten)]
    account: AccountJson,
    kernel: &'static str,
    matrix: Vec<WayJson>,
    kernels: Vec<WayJson>,
    threads: Vec<WayJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    knee_threads: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    all_nodes: Option<WayJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    interleave_weights: Option<BTreeMap<u32, u32>>,
    declared: Vec<DeclaredJson>,
    findings: Vec<String>,
}

#[derive(Serialize)]
struct WayJson {
    kernel: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    variant: Option<String>,
    threads: usize,
    #[serde(flatten)]
    reach: ReachJson,
    #[serde(flatten)]
    rate: GbPerSJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    bus_gb_per_s_at_most: Option<f64>,
    #[serde(flatten)]
    backing: BackingJson,
}

#[derive(Serialize)]
struct DeclaredJson {
    from_node: u32,
    memory_node: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    distance: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    read_gb_per_s: Option<f64>,
}

impl Document {
    fn of(report: &Report) -> Self {
        let ways = |ways: &[WayReport]| ways.iter().map(WayJson::of).collect();
        let weights = report.weights().map(|weights| {
            weights.weights.into_iter().map(|(node, weight)| (node.number(), weight)).collect()
        });
        Self {
            schema: SCHEMA,
            conditions: ConditionsJson::of(&report.account.conditions),
            size_bytes: report.size.get(),
            account: AccountJson::of(&report.account),
            kernel: report.kernel.name(),
            matrix: ways(&report.matrix),
            kernels: ways(&report.kernels),
            threads: ways(&report.scaling),
            knee_threads: report.knee(),
            all_nodes: report.everywhere.as_ref().map(WayJson::of),
            interleave_weights: weights,
            declared: report.declared.iter().map(DeclaredJson::of).collect(),
            findings: findings(report).iter().map(sentence).collect(),
        }
    }
}

impl WayJson {
    fn of(way: &WayReport) -> Self {
        Self {
            kernel: way.kernel.name(),
            variant: way.variant.clone(),
            threads: way.threads,
            reach: ReachJson::of(&way.cell),
            rate: GbPerSJson::of(way.cell.figure),
            bus_gb_per_s_at_most: way.bus_gb_per_s(),
            backing: BackingJson::of(&way.cell),
        }
    }
}

impl DeclaredJson {
    const fn of(declared: &Declared) -> Self {
        Self {
            from_node: declared.from.number(),
            memory_node: declared.memory.number(),
            distance: declared.distance,
            read_gb_per_s: declared.read_gb_per_s,
        }
    }
}
