//! `nodewise.file_bandwidth/1`: files in memory whose pages are on a chosen node.

use nodewise_measure::bandwidth::file::{BLOCK, FileReport, FileWayReport, Place, file_findings};
use serde::Serialize;

use super::cells::{AccountJson, ReachJson};
use super::conditions::ConditionsJson;
use super::pretty;
use crate::digest::file::sentence;

/// The schema of the document.
pub const SCHEMA: &str = "nodewise.file_bandwidth/1";

/// Writes a report as JSON, indented, with a line end.
pub fn file(report: &FileReport) -> String {
    let folder = match &report.place {
        Place::Kernel => None,
        Place::Folder(folder) => Some(folder.to_string_lossy().into_owned()),
    };
    pretty(&Document {
        schema: SCHEMA,
        conditions: ConditionsJson::of(&report.account.conditions),
        size_bytes: report.size.get(),
        block_bytes: BLOCK.get(),
        folder,
        account: AccountJson::of(&report.account),
        files: report.ways.iter().map(WayJson::of).collect(),
        findings: file_findings(report).iter().map(sentence).collect(),
    })
}

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    conditions: ConditionsJson,
    size_bytes: u64,
    block_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    folder: Option<String>,
    #[serde(flatten)]
    account: AccountJson,
    files: Vec<WayJson>,
    findings: Vec<String>,
}

#[derive(Serialize)]
struct WayJson {
    operation: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    median_gb_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    median_interval_95_gb_per_s: Option<[f64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    best_gb_per_s: Option<f64>,
    #[serde(flatten)]
    reach: ReachJson,
}

impl WayJson {
    fn of(way: &FileWayReport) -> Self {
        let figure = way.cell.figure;
        let interval = figure.and_then(|figure| figure.interval);
        Self {
            operation: way.operation.word(),
            median_gb_per_s: figure.map(|figure| figure.median),
            median_interval_95_gb_per_s: interval.map(|interval| [interval.low, interval.high]),
            best_gb_per_s: figure.map(|figure| figure.best),
            reach: ReachJson::of(&way.cell),
        }
    }
}
