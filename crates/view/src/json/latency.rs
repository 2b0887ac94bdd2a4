//! `nodewise.latency/1`: a matrix of latencies, with how each cell was measured. Written, and read
//! back to be drawn.

use std::collections::BTreeSet;

use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::{Bytes, NodeId};
use nodewise_measure::latency::{LatencyReport, Lookup};
use nodewise_measure::survey::figure::rounded;
use nodewise_measure::survey::{CellReport, Declared};
use serde::{Deserialize, Serialize};

use super::cells::{AccountJson, MarksJson, PlacedJson, page_kind};
use super::conditions::ConditionsJson;
use super::pretty;
use super::published::PublishedJson;
use super::reading::{Fields, Saved, items, node, other_schema, pages, set};
use crate::digest::latency::{finding_sentences, published};

/// The schema of the document.
pub const SCHEMA: &str = "nodewise.latency/1";

/// More cells than any machine has, for documents that are read: 1,024 nodes either way are beyond
/// what Linux can number on x86, and two kinds of pages.
const MOST_CELLS: usize = 2 * 1024 * 1024;

/// Writes a report as JSON, indented, with a line end.
pub fn latency(report: &LatencyReport) -> String {
    pretty(&Document::from_report(report))
}

/// Reads a report that [`latency`] has written.
///
/// # Errors
/// What is wrong and where, fit to be shown.
pub fn read(saved: &Saved<'_>) -> Result<LatencyReport, String> {
    saved.contents::<Document>(SCHEMA)?.read()
}

#[derive(Serialize, Deserialize)]
pub(super) struct Document {
    schema: String,
    conditions: ConditionsJson,
    size_bytes: u64,
    #[serde(flatten)]
    account: AccountJson,
    cells: Vec<CellJson>,
    #[serde(skip_deserializing)]
    page_walks: Vec<WalkJson>,
    declared: Vec<DeclaredJson>,
    #[serde(skip_deserializing)]
    findings: Vec<String>,
    #[serde(skip_deserializing)]
    published: Vec<PublishedJson>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct CellJson {
    from_node: u32,
    cpus: String,
    memory_node: u32,
    pages: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    huge_page_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    median_ns: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    median_interval_95_ns: Option<[f64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    best_ns: Option<f64>,
    rounds: usize,
    samples: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    placed_before: Option<PlacedJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    placed_after: Option<PlacedJson>,
    disturbed: bool,
    measured_again: bool,
    disturbed_samples: MarksJson,
}

#[derive(Serialize)]
struct WalkJson {
    from_node: u32,
    memory_node: u32,
    page_walk_ns: f64,
}

#[derive(Serialize, Deserialize)]
struct DeclaredJson {
    from_node: u32,
    memory_node: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    distance: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    read_latency_ns: Option<u32>,
}

impl Document {
    fn from_report(report: &LatencyReport) -> Self {
        let lookup = Lookup::new(report);
        let pairs: BTreeSet<(NodeId, NodeId)> =
            report.cells.iter().map(|cell| (cell.from, cell.memory)).collect_set();
        let walk = |(from, memory): (NodeId, NodeId)| {
            Some(WalkJson {
                from_node: from.number(),
                memory_node: memory.number(),
                page_walk_ns: rounded(lookup.page_walk_ns(from, memory)?),
            })
        };
        Self {
            schema: SCHEMA.to_owned(),
            conditions: ConditionsJson::from_conditions(&report.account.conditions),
            size_bytes: report.size.get(),
            account: AccountJson::from_account(&report.account),
            cells: report.cells.iter().map(CellJson::from_cell).collect(),
            page_walks: pairs.into_iter().filter_map(walk).collect(),
            declared: report.declared.iter().map(DeclaredJson::from_declared).collect(),
            findings: finding_sentences(report).into_iter().map(|finding| finding.sentence).collect(),
            published: published(report).into_iter().map(PublishedJson::from_range).collect(),
        }
    }

    /// The report, of a document inside another one.
    pub(super) fn embedded(self) -> Result<LatencyReport, String> {
        if self.schema == SCHEMA { self.read() } else { Err(other_schema(&self.schema, &[SCHEMA])) }
    }

    fn read(self) -> Result<LatencyReport, String> {
        Ok(LatencyReport {
            account: self.account.read(self.conditions.read())?,
            size: Bytes::new(self.size_bytes),
            cells: items("cells", self.cells, MOST_CELLS, CellJson::read)?,
            declared: items("declared", self.declared, MOST_CELLS, DeclaredJson::read)?,
        })
    }
}

impl CellJson {
    pub(super) fn from_cell(cell: &CellReport) -> Self {
        let figure = cell.figure.as_ref();
        let (pages, huge_page_bytes) = page_kind(cell.pages);
        Self {
            from_node: cell.from.number(),
            cpus: cell.cpus.to_string(),
            memory_node: cell.memory.number(),
            pages: pages.to_owned(),
            huge_page_bytes,
            median_ns: figure.map(|figure| rounded(figure.median)),
            median_interval_95_ns: figure
                .and_then(|figure| figure.interval)
                .map(|interval| [rounded(interval.low), rounded(interval.high)]),
            best_ns: figure.map(|figure| rounded(figure.best)),
            rounds: figure.map_or(0, |figure| figure.rounds),
            samples: figure.map_or(0, |figure| figure.samples),
            refused: cell.refused.clone(),
            placed_before: cell.before.as_ref().map(PlacedJson::from_placed),
            placed_after: cell.after.as_ref().map(PlacedJson::from_placed),
            disturbed: cell.disturbed,
            measured_again: cell.again,
            disturbed_samples: MarksJson::from_marks(&cell.marks),
        }
    }

    pub(super) fn read(self) -> Result<CellReport, String> {
        let figure = Fields {
            unit: "ns",
            median: self.median_ns,
            interval: self.median_interval_95_ns,
            best: self.best_ns,
            rounds: self.rounds,
            samples: self.samples,
        };
        Ok(CellReport {
            from: node(self.from_node)?,
            cpus: set("cpus", &self.cpus)?,
            memory: node(self.memory_node)?,
            pages: pages(&self.pages, self.huge_page_bytes)?,
            figure: figure.read()?,
            refused: self.refused,
            before: self.placed_before.map(PlacedJson::read).transpose()?,
            after: self.placed_after.map(PlacedJson::read).transpose()?,
            marks: self.disturbed_samples.read(),
            disturbed: self.disturbed,
            again: self.measured_again,
        })
    }
}

impl DeclaredJson {
    const fn from_declared(declared: &Declared) -> Self {
        Self {
            from_node: declared.from.number(),
            memory_node: declared.memory.number(),
            distance: declared.distance,
            read_latency_ns: declared.read_latency_ns,
        }
    }

    fn read(self) -> Result<Declared, String> {
        Ok(Declared {
            from: node(self.from_node)?,
            memory: node(self.memory_node)?,
            distance: self.distance,
            read_latency_ns: self.read_latency_ns,
            read_gb_per_s: None,
        })
    }
}
