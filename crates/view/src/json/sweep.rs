//! `nodewise.latency_sweep/1` and `nodewise.latency_table/1`: latency by the size of what is chased.
//! Written, and read back to be drawn.

use nodewise_machine::Bytes;
use nodewise_machine::printable::quote;
use nodewise_measure::cell::PageKind;
use nodewise_measure::latency::Pattern;
use nodewise_measure::latency::sweep::{ChaseReport, Claimed, SweepReport, levels};
use nodewise_measure::survey::figure::rounded;
use serde::{Deserialize, Serialize};

use super::cells::AccountJson;
use super::conditions::ConditionsJson;
use super::latency::CellJson;
use super::pretty;
use super::reading::{Saved, items};
use crate::digest::sweep::nodes_with_memory;

/// The schema of a sweep.
pub const SWEEP_SCHEMA: &str = "nodewise.latency_sweep/1";
/// The schema of a table.
pub const TABLE_SCHEMA: &str = "nodewise.latency_table/1";

/// More chases than anybody makes, for documents that are read; and more caches than a machine has.
const MOST_CHASES: usize = 1 << 16;
const MOST_CLAIMED: usize = 64;
/// The sizes that are read: a word, and more than any node has.
const LEAST: u64 = 8;
const MOST: u64 = 1 << 50;

/// Writes a sweep as JSON.
pub fn sweep(report: &SweepReport) -> String {
    pretty(&Document::from_report(report, SWEEP_SCHEMA, Some(found(report))))
}

/// Writes a table as JSON.
pub fn table(report: &SweepReport) -> String {
    pretty(&Document::from_report(report, TABLE_SCHEMA, None))
}

/// Reads a report that [`sweep`] or [`table`] has written, as its schema says.
///
/// # Errors
/// What is wrong and where, fit to be shown.
pub fn read(saved: &Saved<'_>) -> Result<SweepReport, String> {
    let schema = if saved.schema() == TABLE_SCHEMA { TABLE_SCHEMA } else { SWEEP_SCHEMA };
    saved.contents::<Document>(schema)?.read()
}

#[derive(Serialize, Deserialize)]
struct Document {
    schema: String,
    conditions: ConditionsJson,
    #[serde(flatten)]
    account: AccountJson,
    chases: Vec<ChaseJson>,
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    levels: Option<Vec<LevelJson>>,
    claimed_caches: Vec<ClaimedJson>,
}

#[derive(Serialize, Deserialize)]
struct ChaseJson {
    size_bytes: u64,
    pattern: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    stride_elements: Option<u32>,
    #[serde(flatten)]
    cell: CellJson,
}

/// Derived from the chases, and so not read.
#[derive(Serialize)]
struct LevelJson {
    memory_node: u32,
    holds_bytes: u64,
    latency_ns: f64,
    holds_more_than_tried: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    claimed_as: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct ClaimedJson {
    name: String,
    size_bytes: u64,
}

fn found(report: &SweepReport) -> Vec<LevelJson> {
    let pages = report.chases.first().map_or(PageKind::Small, |chase| chase.cell.pages);
    let of_node = |node| {
        levels(&report.staircase(node, pages)).into_iter().map(move |level| LevelJson {
            memory_node: node.number(),
            holds_bytes: level.holds.get(),
            latency_ns: rounded(level.ns),
            holds_more_than_tried: level.is_last,
            claimed_as: report.claim_of(&level).map(|claimed| claimed.name.clone()),
        })
    };
    nodes_with_memory(report).into_iter().flat_map(of_node).collect()
}

impl Document {
    fn from_report(report: &SweepReport, schema: &str, levels: Option<Vec<LevelJson>>) -> Self {
        let claimed =
            |claimed: &Claimed| ClaimedJson { name: claimed.name.clone(), size_bytes: claimed.size.get() };
        Self {
            schema: schema.to_owned(),
            conditions: ConditionsJson::from_conditions(&report.account.conditions),
            account: AccountJson::from_account(&report.account),
            chases: report.chases.iter().map(ChaseJson::from_chase).collect(),
            levels,
            claimed_caches: report.claimed.iter().map(claimed).collect(),
        }
    }

    fn read(self) -> Result<SweepReport, String> {
        let claimed =
            |claimed: ClaimedJson| Ok(Claimed { name: claimed.name, size: size(claimed.size_bytes)? });
        Ok(SweepReport {
            account: self.account.read(self.conditions.read())?,
            chases: items("chases", self.chases, MOST_CHASES, ChaseJson::read)?,
            claimed: items("claimed_caches", self.claimed_caches, MOST_CLAIMED, claimed)?,
        })
    }
}

impl ChaseJson {
    fn from_chase(chase: &ChaseReport) -> Self {
        let (pattern, stride_elements) = match chase.pattern {
            Pattern::Random => ("random", None),
            Pattern::Stride(elements) => ("stride", Some(elements)),
        };
        let pattern = pattern.to_owned();
        Self {
            size_bytes: chase.size.get(),
            pattern,
            stride_elements,
            cell: CellJson::from_cell(&chase.cell),
        }
    }

    fn read(self) -> Result<ChaseReport, String> {
        let pattern = match (self.pattern.as_str(), self.stride_elements) {
            ("random", None) => Pattern::Random,
            ("stride", Some(elements)) if elements > 0 => Pattern::Stride(elements),
            (word, _) => {
                let word = quote(word);
                return Err(format!("pattern is {word}: expected random, stride with stride_elements"));
            }
        };
        Ok(ChaseReport { size: size(self.size_bytes)?, pattern, cell: self.cell.read()? })
    }
}

fn size(bytes: u64) -> Result<Bytes, String> {
    let right = (LEAST..=MOST).contains(&bytes).then(|| Bytes::new(bytes));
    right.ok_or_else(|| format!("size_bytes is {bytes}: expected {LEAST} to {MOST}"))
}
