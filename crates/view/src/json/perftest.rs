//! `nodewise.perftest/1`: tables of perftest side by side. They also are in `nodewise.io/1`.

use std::collections::BTreeMap;

use nodewise_machine::{Bytes, NodeId};
use nodewise_measure::perftest::{Comparison, Kink, Row, Side, kinks};
use serde::Serialize;

use super::pretty;
use crate::digest::perftest::sentences;

/// The schema of the document.
pub const SCHEMA: &str = "nodewise.perftest/1";

/// Writes comparisons as JSON, indented, with a line end.
pub fn perftest(comparisons: &[Comparison]) -> String {
    pretty(&Document { schema: SCHEMA, tables: comparisons.iter().map(ComparisonJson::of).collect() })
}

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    tables: Vec<ComparisonJson>,
}

/// Tables of one kind.
#[derive(Serialize)]
pub(super) struct ComparisonJson {
    kind: &'static str,
    sides: Vec<SideJson>,
    findings: Vec<String>,
}

#[derive(Serialize)]
struct SideJson {
    label: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_node: Option<u32>,
    rows: Vec<RowJson>,
    kinks: Vec<KinkJson>,
    not_read: Vec<ProblemJson>,
}

#[derive(Serialize)]
struct RowJson {
    size_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    iterations: Option<u64>,
    #[serde(flatten)]
    values: BTreeMap<&'static str, f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio_to_first: Option<f64>,
}

#[derive(Serialize)]
struct KinkJson {
    size_bytes: u64,
    sizes_bytes: [u64; 3],
    values: [f64; 3],
    bend: f64,
    falls: bool,
}

#[derive(Serialize)]
struct ProblemJson {
    line: usize,
    what: String,
}

impl ComparisonJson {
    pub(super) fn of(comparison: &Comparison) -> Self {
        let sides = comparison.sides().iter().enumerate();
        Self {
            kind: comparison.kind().word(),
            sides: sides.map(|(at, side)| SideJson::of(comparison, at, side)).collect(),
            findings: sentences(comparison),
        }
    }
}

impl SideJson {
    fn of(comparison: &Comparison, at: usize, side: &Side) -> Self {
        let row = |(size, row): (&Bytes, &Row)| RowJson {
            size_bytes: size.get(),
            iterations: row.iterations,
            values: side.table.columns.iter().filter_map(|of| Some((of.name(), row.get(*of)?))).collect(),
            ratio_to_first: comparison.ratio(at, *size),
        };
        let problems = side.table.problems.iter();
        Self {
            label: side.label.clone(),
            memory_node: side.node.map(NodeId::number),
            rows: side.table.rows.iter().map(row).collect(),
            kinks: kinks(&side.table).iter().map(KinkJson::of).collect(),
            not_read: problems
                .map(|problem| ProblemJson { line: problem.line, what: problem.what.clone() })
                .collect(),
        }
    }
}

impl KinkJson {
    fn of(kink: &Kink) -> Self {
        Self {
            size_bytes: kink.sizes[1].get(),
            sizes_bytes: kink.sizes.map(Bytes::get),
            values: kink.values,
            bend: kink.bend,
            falls: kink.falls,
        }
    }
}
