//! `nodewise.perftest/1`: tables of perftest side by side. They also are in the documents of `io`. Written, and
//! read back to be drawn.

use std::collections::BTreeMap;

use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::{Bytes, NodeId};
use nodewise_measure::perftest::{
    Column, Comparison, Kink, PerftestQuantity, Problem, Row, Side, Table, kinks,
};
use nodewise_measure::survey::figure::rounded;
use serde::{Deserialize, Serialize};

use super::pretty;
use super::reading::{Saved, items, named, node, positive};
use crate::digest::perftest::sentences;

/// The schema of the document.
pub const SCHEMA: &str = "nodewise.perftest/1";

/// More than perftest prints, for documents that are read: a table of each kind for 1,024 nodes, with
/// all sizes of messages.
const MOST_TABLES: usize = 2;
const MOST_SIDES: usize = 1024;
const MOST_ROWS: usize = 1024;
const MOST_PROBLEMS: usize = 1024;

/// Writes comparisons as JSON, indented, with a line end.
pub fn perftest(comparisons: &[Comparison]) -> String {
    pretty(&Document {
        schema: SCHEMA.to_owned(),
        tables: comparisons.iter().map(ComparisonJson::from_comparison).collect(),
    })
}

/// Reads comparisons that [`perftest`] has written.
///
/// # Errors
/// What is wrong and where, fit to be shown.
pub fn read(saved: &Saved<'_>) -> Result<Vec<Comparison>, String> {
    let document: Document = saved.contents(SCHEMA)?;
    let comparisons = tables("tables", document.tables)?;
    if comparisons.is_empty() { Err("tables has no table".to_owned()) } else { Ok(comparisons) }
}

/// Reads the comparisons of a list.
pub(super) fn tables(name: &str, tables: Vec<ComparisonJson>) -> Result<Vec<Comparison>, String> {
    let sides = items(name, tables, MOST_TABLES, ComparisonJson::read)?;
    Ok(Comparison::from_sides(sides.into_iter().flatten().collect()))
}

/// The document. Values derived of the rows are written for readers and not read.
#[derive(Serialize, Deserialize)]
struct Document {
    schema: String,
    tables: Vec<ComparisonJson>,
}

/// Tables of one kind.
#[derive(Serialize, Deserialize)]
pub(super) struct ComparisonJson {
    kind: String,
    sides: Vec<SideJson>,
    #[serde(skip_deserializing)]
    findings: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct SideJson {
    label: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_node: Option<u32>,
    rows: Vec<RowJson>,
    #[serde(skip_deserializing)]
    kinks: Vec<KinkJson>,
    not_read: Vec<ProblemJson>,
}

#[derive(Serialize, Deserialize)]
struct RowJson {
    size_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    iterations: Option<u64>,
    #[serde(flatten)]
    values: BTreeMap<String, f64>,
    /// Read, too, so that it is not taken for a value.
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

#[derive(Serialize, Deserialize)]
pub(super) struct ProblemJson {
    line: usize,
    what: String,
}

impl ProblemJson {
    pub(super) fn from_problem(problem: &Problem) -> Self {
        Self { line: problem.line, what: problem.what.clone() }
    }

    pub(super) fn read(self) -> Problem {
        Problem { line: self.line, what: self.what }
    }
}

impl ComparisonJson {
    pub(super) fn from_comparison(comparison: &Comparison) -> Self {
        let sides = comparison.sides().iter().enumerate();
        Self {
            kind: comparison.kind().word().to_owned(),
            sides: sides.map(|(at, side)| SideJson::from_side(comparison, at, side)).collect(),
            findings: sentences(comparison),
        }
    }

    fn read(self) -> Result<Vec<Side>, String> {
        let kind = named("kind", &self.kind, &PerftestQuantity::ALL, PerftestQuantity::word)?;
        items("sides", self.sides, MOST_SIDES, |side| side.read(kind))
    }
}

impl SideJson {
    fn from_side(comparison: &Comparison, at: usize, side: &Side) -> Self {
        let row = |(size, row): (&Bytes, &Row)| RowJson {
            size_bytes: size.get(),
            iterations: row.iterations,
            values: side
                .table
                .columns
                .iter()
                .filter_map(|of| Some((of.name().to_owned(), rounded(row.get(*of)?))))
                .collect_map(),
            ratio_to_first: comparison.ratio(at, *size),
        };
        let problems = side.table.problems.iter();
        Self {
            label: side.label.clone(),
            memory_node: side.node.map(NodeId::number),
            rows: side.table.rows.iter().map(row).collect(),
            kinks: kinks(&side.table).iter().map(KinkJson::from_kink).collect(),
            not_read: problems.map(ProblemJson::from_problem).collect(),
        }
    }

    fn read(self, kind: PerftestQuantity) -> Result<Side, String> {
        let mut rows = BTreeMap::new();
        for (size, row) in items("rows", self.rows, MOST_ROWS, |row| row.read(kind))? {
            if rows.insert(size, row).is_some() {
                return Err(format!("rows has two of {} bytes: expected one", size.get()));
            }
        }
        let problem = |problem: ProblemJson| Ok(problem.read());
        let table = Table::new(kind, rows, items("not_read", self.not_read, MOST_PROBLEMS, problem)?);
        if table.curve().is_empty() {
            let columns: Vec<&str> = kind.compared().iter().map(|column| column.name()).collect();
            return Err(format!("rows has none with a value to compare: expected {}", columns.join(" or ")));
        }
        Ok(Side { label: self.label, node: self.memory_node.map(node).transpose()?, table })
    }
}

impl RowJson {
    /// The row by its size. Values that a table of this kind does not have are left out: a later release
    /// may write more.
    fn read(self, kind: PerftestQuantity) -> Result<(Bytes, Row), String> {
        let mut values = BTreeMap::new();
        for column in Column::ALL.into_iter().filter(|column| column.kind().is_none_or(|of| of == kind)) {
            if let Some(value) = self.values.get(column.name()) {
                // perftest prints 0 where a value is too small for its two digits.
                let value = if *value == 0.0 { 0.0 } else { positive(column.name(), *value)? };
                values.insert(column, value);
            }
        }
        Ok((Bytes::new(self.size_bytes), Row::new(self.iterations, values)))
    }
}

impl KinkJson {
    fn from_kink(kink: &Kink) -> Self {
        Self {
            size_bytes: kink.sizes[1].get(),
            sizes_bytes: kink.sizes.map(Bytes::get),
            values: kink.values,
            bend: kink.bend,
            falls: kink.falls,
        }
    }
}
