//! `nodewise.latency_sweep/1` and `nodewise.latency_table/1`: latency by the size of what is chased.

use nodewise_measure::cell::PageKind;
use nodewise_measure::latency::Pattern;
use nodewise_measure::latency::sweep::{SweepReport, levels};
use serde::Serialize;

use super::conditions::ConditionsJson;
use super::latency::CellJson;
use super::pretty;
use crate::digest::latency::nodes_with_memory;

/// The schema of a sweep.
pub const SWEEP_SCHEMA: &str = "nodewise.latency_sweep/1";
/// The schema of a table.
pub const TABLE_SCHEMA: &str = "nodewise.latency_table/1";

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    conditions: ConditionsJson,
    seed: u64,
    took_s: f64,
    interrupted: bool,
    chases: Vec<ChaseJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    levels: Option<Vec<LevelJson<'a>>>,
    claimed_caches: Vec<ClaimedJson<'a>>,
}

#[derive(Serialize)]
struct ChaseJson {
    size_bytes: u64,
    pattern: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    stride_elements: Option<u32>,
    #[serde(flatten)]
    cell: CellJson,
}

#[derive(Serialize)]
struct LevelJson<'a> {
    memory_node: u32,
    holds_bytes: u64,
    latency_ns: f64,
    holds_more_than_tried: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    claimed_as: Option<&'a str>,
}

#[derive(Serialize)]
struct ClaimedJson<'a> {
    name: &'a str,
    size_bytes: u64,
}

/// Writes a sweep as JSON.
pub fn sweep(report: &SweepReport) -> String {
    write(report, SWEEP_SCHEMA, Some(found(report)))
}

/// Writes a table as JSON.
pub fn table(report: &SweepReport) -> String {
    write(report, TABLE_SCHEMA, None)
}

fn found(report: &SweepReport) -> Vec<LevelJson<'_>> {
    let pages = report.chases.first().map_or(PageKind::Small, |chase| chase.cell.pages);
    let of_node = |node| {
        levels(&report.staircase(node, pages)).into_iter().map(move |level| LevelJson {
            memory_node: node.number(),
            holds_bytes: level.holds.get(),
            latency_ns: level.ns,
            holds_more_than_tried: level.is_last,
            claimed_as: report.claim_of(&level).map(|claimed| claimed.name.as_str()),
        })
    };
    nodes_with_memory(report).into_iter().flat_map(of_node).collect()
}

fn write(report: &SweepReport, schema: &'static str, levels: Option<Vec<LevelJson<'_>>>) -> String {
    let chase = |chase: &nodewise_measure::latency::sweep::ChaseReport| {
        let (pattern, stride_elements) = match chase.pattern {
            Pattern::Random => ("random", None),
            Pattern::Stride(elements) => ("stride", Some(elements)),
        };
        ChaseJson { size_bytes: chase.size.get(), pattern, stride_elements, cell: CellJson::of(&chase.cell) }
    };
    let claimed = report.claimed.iter();
    let document = Document {
        schema,
        conditions: ConditionsJson::of(&report.account.conditions),
        seed: report.account.seed,
        took_s: report.account.took.as_secs_f64(),
        interrupted: report.account.interrupted,
        chases: report.chases.iter().map(chase).collect(),
        levels,
        claimed_caches: claimed
            .map(|claimed| ClaimedJson { name: &claimed.name, size_bytes: claimed.size.get() })
            .collect(),
    };
    pretty(&document)
}
