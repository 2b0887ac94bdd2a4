//! `nodewise.latency/1`: a matrix of latencies, with how each cell was measured. Written, and read
//! back to be drawn.

use nodewise_machine::id::Id as _;
use nodewise_machine::printable::quote;
use nodewise_machine::{Bytes, CpuSet, NodeId};
use nodewise_measure::cell::{HugePageSize, PageKind};
use nodewise_measure::latency::{Lookup, Report, findings};
use nodewise_measure::stats::Interval;
use nodewise_measure::survey::{CellReport, Declared, Figure, Marks};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::cells::{AccountJson, PlacedJson, page_kind};
use super::conditions::ConditionsJson;
use super::pretty;
use crate::digest::latency::sentence;

/// The schema of the document.
pub const SCHEMA: &str = "nodewise.latency/1";

/// More cells than any machine has, for documents that are read: 1,024 nodes either way are beyond
/// what Linux can number on x86, and two kinds of pages.
const MOST_CELLS: usize = 2 * 1024 * 1024;

/// Writes a report as JSON, indented, with a line end.
pub fn latency(report: &Report) -> String {
    pretty(&Document::of(report))
}

/// Reads a report that [`latency`] has written.
///
/// # Errors
/// What is wrong and where, fit to be shown.
pub fn read(text: &str) -> Result<Report, String> {
    let document: Document = document(text, SCHEMA)?;
    document.read()
}

/// The schema that a document names.
///
/// # Errors
/// What is wrong, fit to be shown.
pub fn schema(text: &str) -> Result<String, String> {
    #[derive(Deserialize)]
    struct Named {
        schema: String,
    }
    let named: Named = serde_json::from_str(text).map_err(|error| fault(&error))?;
    Ok(named.schema)
}

/// A document that names this schema.
pub(super) fn document<D: DeserializeOwned>(text: &str, expected: &str) -> Result<D, String> {
    let schema = schema(text)?;
    if schema != expected {
        return Err(format!("its schema is {}: expected {expected}", quote(&schema)));
    }
    serde_json::from_str(text).map_err(|error| fault(&error))
}

fn fault(error: &serde_json::Error) -> String {
    nodewise_machine::printable::printable(&error.to_string()).into_owned()
}

#[derive(Serialize, Deserialize)]
struct Document {
    schema: String,
    conditions: ConditionsJson,
    size_bytes: u64,
    #[serde(flatten)]
    account: AccountJson,
    cells: Vec<CellJson>,
    page_walks: Vec<WalkJson>,
    declared: Vec<DeclaredJson>,
    findings: Vec<String>,
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

#[derive(Serialize, Deserialize)]
struct MarksJson {
    stolen: usize,
    switched: usize,
    faulted: usize,
    slower: usize,
    any: usize,
    of: usize,
}

#[derive(Serialize, Deserialize)]
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
    fn of(report: &Report) -> Self {
        let (lookup, targets) = (Lookup::of(report), report.targets());
        let pairs =
            report.sources().into_iter().flat_map(|from| targets.iter().map(move |memory| (from, *memory)));
        let walk = |(from, memory): (NodeId, NodeId)| {
            Some(WalkJson {
                from_node: from.number(),
                memory_node: memory.number(),
                page_walk_ns: rounded(lookup.page_walk_ns(from, memory)?),
            })
        };
        Self {
            schema: SCHEMA.to_owned(),
            conditions: ConditionsJson::of(&report.account.conditions),
            size_bytes: report.size.get(),
            account: AccountJson::of(&report.account),
            cells: report.cells.iter().map(CellJson::of).collect(),
            page_walks: pairs.filter_map(walk).collect(),
            declared: report.declared.iter().map(DeclaredJson::of).collect(),
            findings: findings(report).iter().map(sentence).collect(),
        }
    }

    fn read(self) -> Result<Report, String> {
        if self.cells.len() > MOST_CELLS || self.declared.len() > MOST_CELLS {
            return Err(format!("it has more than {MOST_CELLS} cells"));
        }
        Ok(Report {
            account: self.account.read(self.conditions.read())?,
            size: Bytes::new(self.size_bytes),
            cells: self.cells.into_iter().map(CellJson::read).collect::<Result<_, _>>()?,
            declared: self.declared.into_iter().map(DeclaredJson::read).collect::<Result<_, _>>()?,
        })
    }
}

pub(super) fn node(number: u32) -> Result<NodeId, String> {
    let most = NodeId::LIMIT;
    (number < most).then(|| NodeId::new(number)).ok_or_else(|| format!("node {number} is beyond {most}"))
}

/// A latency: above nothing, and finite.
pub(super) fn positive(name: &str, value: f64) -> Result<f64, String> {
    let right = value.is_finite() && value > 0.0;
    right.then_some(value).ok_or_else(|| format!("{name} is {value}: expected a number above 0"))
}

/// To a ten-thousandth: no clock tells more of a load, and so few digits are read back exactly.
pub(super) fn rounded(nanos: f64) -> f64 {
    (nanos * 1e4).round() / 1e4
}

impl CellJson {
    pub(super) fn of(cell: &CellReport) -> Self {
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
            placed_before: cell.before.as_ref().map(PlacedJson::of),
            placed_after: cell.after.as_ref().map(PlacedJson::of),
            disturbed: cell.disturbed,
            measured_again: cell.again,
            disturbed_samples: MarksJson::of(&cell.marks),
        }
    }

    pub(super) fn read(self) -> Result<CellReport, String> {
        let figure = match (self.median_ns, self.best_ns) {
            (Some(median), Some(best)) => Some(Figure {
                median: positive("median_ns", median)?,
                interval: self.median_interval_95_ns.map(interval).transpose()?,
                best: positive("best_ns", best)?,
                rounds: self.rounds,
                samples: self.samples,
            }),
            _ => None,
        };
        Ok(CellReport {
            from: node(self.from_node)?,
            cpus: set("cpus", &self.cpus)?,
            memory: node(self.memory_node)?,
            pages: pages(&self.pages, self.huge_page_bytes)?,
            figure,
            refused: self.refused,
            before: self.placed_before.map(PlacedJson::read).transpose()?,
            after: self.placed_after.map(PlacedJson::read).transpose()?,
            marks: self.disturbed_samples.read(),
            disturbed: self.disturbed,
            again: self.measured_again,
        })
    }
}

pub(super) fn interval([low, high]: [f64; 2]) -> Result<Interval, String> {
    let interval = Interval { low: positive("an interval", low)?, high: positive("an interval", high)? };
    (low <= high).then_some(interval).ok_or_else(|| format!("an interval from {low} to {high} is none"))
}

pub(super) fn pages(word: &str, size: Option<u64>) -> Result<PageKind, String> {
    match (word, size.map(Bytes::new).map(HugePageSize::new)) {
        ("small", None) => Ok(PageKind::Small),
        ("transparent_huge", None) => Ok(PageKind::TransparentHuge),
        ("hugetlb", Some(Some(size))) => Ok(PageKind::Hugetlb(size)),
        _ => Err(format!(
            "pages are {}: expected small, transparent_huge, or hugetlb with huge_page_bytes",
            quote(word)
        )),
    }
}

pub(super) fn set(name: &str, text: &str) -> Result<CpuSet, String> {
    text.parse().map_err(|error| format!("{name}: {error}"))
}

impl MarksJson {
    const fn of(marks: &Marks) -> Self {
        let Marks { stolen, switched, faulted, slower, disturbed, samples } = *marks;
        Self { stolen, switched, faulted, slower, any: disturbed, of: samples }
    }

    const fn read(self) -> Marks {
        let Self { stolen, switched, faulted, slower, any, of } = self;
        Marks { stolen, switched, faulted, slower, disturbed: any, samples: of }
    }
}

impl DeclaredJson {
    const fn of(declared: &Declared) -> Self {
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
