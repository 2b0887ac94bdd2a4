//! `nodewise.file_bandwidth/1`: files in memory whose pages are on a chosen node.

use nodewise_measure::bandwidth::file::{BLOCK, FileReport, FileWayReport, Place, file_findings};
use serde::Serialize;

use super::cells::{AccountJson, BackingJson, GbPerSJson, ReachJson};
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
    #[serde(flatten)]
    rate: GbPerSJson,
    #[serde(flatten)]
    reach: ReachJson,
    #[serde(flatten)]
    backing: BackingJson,
}

impl WayJson {
    fn of(way: &FileWayReport) -> Self {
        Self {
            operation: way.operation.word(),
            rate: GbPerSJson::of(way.cell.figure),
            reach: ReachJson::of(&way.cell),
            backing: BackingJson::of(&way.cell),
        }
    }
}
