//! `nodewise.file_bandwidth/2`: files in memory whose pages are on a chosen node. Written, and read back
//! to be drawn.

use nodewise_machine::Bytes;
use nodewise_measure::bandwidth::file::{BLOCK, FileReport, FileTransferReport, Operation, TmpfsLocation};
use serde::{Deserialize, Serialize};

use super::cells::{AccountJson, BackingJson, GbPerSJson, ReachJson};
use super::conditions::ConditionsJson;
use super::pretty;
use super::reading::{Saved, items, named};
use crate::digest::file::finding_sentences;

/// The schema of the document.
pub const SCHEMA: &str = "nodewise.file_bandwidth/2";

/// The schemas of documents that are read. Version 1 had the number of disturbed samples without causes.
pub const READ: [&str; 2] = [SCHEMA, "nodewise.file_bandwidth/1"];

/// More than any machine has, for documents that are read: 1,024 nodes either way, three operations.
const MOST_WAYS: usize = 3 * 1024 * 1024;

/// Writes a report as JSON, indented, with a line end.
pub fn file(report: &FileReport) -> String {
    let folder = match &report.place {
        TmpfsLocation::Kernel => None,
        TmpfsLocation::Folder(folder) => Some(folder.to_string_lossy().into_owned()),
    };
    pretty(&Document {
        schema: SCHEMA.to_owned(),
        conditions: ConditionsJson::from_conditions(&report.account.conditions),
        size_bytes: report.size.get(),
        block_bytes: BLOCK.get(),
        folder,
        account: AccountJson::from_account(&report.account),
        files: report.ways.iter().map(WayJson::from_transfer).collect(),
        findings: finding_sentences(report).into_iter().map(|finding| finding.sentence).collect(),
    })
}

/// Reads a report that [`file`] has written.
///
/// # Errors
/// What is wrong and where, fit to be shown.
pub fn read(saved: &Saved<'_>) -> Result<FileReport, String> {
    let document: Document = saved.contents_of(&READ)?;
    Ok(FileReport {
        account: document.account.read(document.conditions.read())?,
        size: Bytes::new(document.size_bytes),
        place: document.folder.map_or(TmpfsLocation::Kernel, |folder| TmpfsLocation::Folder(folder.into())),
        ways: items("files", document.files, MOST_WAYS, WayJson::read)?,
    })
}

/// The document. Values derived of the ways are written for readers and not read.
#[derive(Serialize, Deserialize)]
struct Document {
    schema: String,
    conditions: ConditionsJson,
    size_bytes: u64,
    #[serde(skip_deserializing)]
    block_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    folder: Option<String>,
    #[serde(flatten)]
    account: AccountJson,
    files: Vec<WayJson>,
    #[serde(skip_deserializing)]
    findings: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct WayJson {
    operation: String,
    #[serde(flatten)]
    rate: GbPerSJson,
    #[serde(flatten)]
    reach: ReachJson,
    #[serde(flatten)]
    backing: BackingJson,
}

impl WayJson {
    fn from_transfer(way: &FileTransferReport) -> Self {
        Self {
            operation: way.operation.word().to_owned(),
            rate: GbPerSJson::from_figure(way.cell.figure),
            reach: ReachJson::from_cell(&way.cell),
            backing: BackingJson::from_cell(&way.cell),
        }
    }

    fn read(self) -> Result<FileTransferReport, String> {
        Ok(FileTransferReport {
            operation: named("operation", &self.operation, &Operation::ALL, Operation::word)?,
            cell: self.reach.read(&self.rate, self.backing)?,
        })
    }
}
