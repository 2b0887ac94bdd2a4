//! `nodewise.figures/1`: figures that other tools printed. Written, and read back to be drawn.

use std::collections::BTreeMap;

use nodewise_machine::NodeId;
use nodewise_machine::order::CollectOrdered as _;
use nodewise_measure::figures::{
    FigureGroup, FigureTable, FigureTool, FigureUnit, LoadedFigure, MatrixSides, ToolFigures,
};
use nodewise_measure::survey::figure::rounded;
use serde::{Deserialize, Serialize};

use super::perftest::ProblemJson;
use super::pretty;
use super::reading::{Saved, items, named, node, positive};

/// The schema of the document.
pub const SCHEMA: &str = "nodewise.figures/1";

/// More than any tool prints, for documents that are read.
const MOST_TABLES: usize = 256;
const MOST_FIGURES: usize = 1024 * 1024;
const MOST_NOTES: usize = 1024;

/// Writes figures as JSON, indented, with a line end.
pub fn tool_figures(figures: &ToolFigures) -> String {
    pretty(&Document {
        schema: SCHEMA.to_owned(),
        tool: figures.tool.word().to_owned(),
        version: figures.version.clone(),
        tables: figures.groups.iter().map(TableJson::from_group).collect(),
        not_read: figures.problems.iter().map(ProblemJson::from_problem).collect(),
    })
}

/// Reads figures that [`tool_figures`] has written.
///
/// # Errors
/// What is wrong and where, fit to be shown.
pub fn read(saved: &Saved<'_>) -> Result<ToolFigures, String> {
    let document: Document = saved.contents(SCHEMA)?;
    let groups = items("tables", document.tables, MOST_TABLES, TableJson::read)?;
    if groups.is_empty() {
        return Err("tables has no table".to_owned());
    }
    Ok(ToolFigures {
        tool: named("tool", &document.tool, &FigureTool::ALL, FigureTool::word)?,
        version: document.version,
        groups,
        problems: items("not_read", document.not_read, MOST_NOTES, |problem| Ok(problem.read()))?,
    })
}

type Pair = (NodeId, NodeId);

#[derive(Serialize, Deserialize)]
struct Document {
    schema: String,
    tool: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    tables: Vec<TableJson>,
    not_read: Vec<ProblemJson>,
}

#[derive(Serialize, Deserialize)]
struct TableJson {
    title: String,
    notes: Vec<String>,
    #[serde(flatten)]
    contents: ContentsJson,
}

/// The figures of a table, each in fields with its unit.
#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum ContentsJson {
    /// CPUs of `from_node` reach for memory of `memory_node`.
    MemoryLatency {
        cells: Vec<MemoryJson>,
    },
    MemoryBandwidth {
        cells: Vec<MemoryJson>,
    },
    /// A CPU of `reader_node` reads a line that one of `writer_node` has written.
    CacheLatency {
        cells: Vec<CachesJson>,
    },
    CacheBandwidth {
        cells: Vec<CachesJson>,
    },
    Latencies {
        figures: Vec<NamedJson>,
    },
    Bandwidths {
        figures: Vec<NamedJson>,
    },
    Loaded {
        points: Vec<PointJson>,
    },
}

/// A value in the unit of its table.
#[derive(Serialize, Deserialize)]
struct ValueJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    latency_ns: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gb_per_s: Option<f64>,
}

#[derive(Serialize, Deserialize)]
struct MemoryJson {
    from_node: u32,
    memory_node: u32,
    #[serde(flatten)]
    value: ValueJson,
}

#[derive(Serialize, Deserialize)]
struct CachesJson {
    writer_node: u32,
    reader_node: u32,
    #[serde(flatten)]
    value: ValueJson,
}

#[derive(Serialize, Deserialize)]
struct NamedJson {
    name: String,
    #[serde(flatten)]
    value: ValueJson,
}

#[derive(Serialize, Deserialize)]
struct PointJson {
    delay: u32,
    latency_ns: f64,
    gb_per_s: f64,
}

impl ValueJson {
    fn new(unit: FigureUnit, value: f64) -> Self {
        match unit {
            FigureUnit::Ns => Self { latency_ns: Some(rounded(value)), gb_per_s: None },
            FigureUnit::GbPerS => Self { latency_ns: None, gb_per_s: Some(rounded(value)) },
        }
    }

    fn read(&self, unit: FigureUnit) -> Result<f64, String> {
        let (name, value) = match unit {
            FigureUnit::Ns => ("latency_ns", self.latency_ns),
            FigureUnit::GbPerS => ("gb_per_s", self.gb_per_s),
        };
        positive(name, value.ok_or_else(|| format!("{name} is missing"))?)
    }
}

impl TableJson {
    fn from_group(group: &FigureGroup) -> Self {
        Self { title: group.title.clone(), notes: group.notes.clone(), contents: contents(&group.table) }
    }

    fn read(self) -> Result<FigureGroup, String> {
        let table = self.contents.read()?;
        if table.is_empty() {
            return Err("it has no figure".to_owned());
        }
        let notes = items("notes", self.notes, MOST_NOTES, Ok)?;
        Ok(FigureGroup { title: self.title, notes, table })
    }
}

fn contents(table: &FigureTable) -> ContentsJson {
    match table {
        FigureTable::Matrix { sides: MatrixSides::Memory, unit, cells } => {
            let cell = |((from, memory), value): (&Pair, &f64)| {
                let (from_node, memory_node) = (from.number(), memory.number());
                MemoryJson { from_node, memory_node, value: ValueJson::new(*unit, *value) }
            };
            let cells = cells.iter().map(cell).collect();
            match unit {
                FigureUnit::Ns => ContentsJson::MemoryLatency { cells },
                FigureUnit::GbPerS => ContentsJson::MemoryBandwidth { cells },
            }
        }
        FigureTable::Matrix { sides: MatrixSides::Caches, unit, cells } => {
            let cell = |((row, column), value): (&Pair, &f64)| {
                let (writer_node, reader_node) = (row.number(), column.number());
                CachesJson { writer_node, reader_node, value: ValueJson::new(*unit, *value) }
            };
            let cells = cells.iter().map(cell).collect();
            match unit {
                FigureUnit::Ns => ContentsJson::CacheLatency { cells },
                FigureUnit::GbPerS => ContentsJson::CacheBandwidth { cells },
            }
        }
        FigureTable::List { unit, figures } => {
            let figure = |(name, value): &(String, f64)| NamedJson {
                name: name.clone(),
                value: ValueJson::new(*unit, *value),
            };
            let figures = figures.iter().map(figure).collect();
            match unit {
                FigureUnit::Ns => ContentsJson::Latencies { figures },
                FigureUnit::GbPerS => ContentsJson::Bandwidths { figures },
            }
        }
        FigureTable::Loaded(points) => ContentsJson::Loaded {
            points: points
                .iter()
                .map(|point| PointJson {
                    delay: point.delay,
                    latency_ns: rounded(point.latency_ns),
                    gb_per_s: rounded(point.gb_per_s),
                })
                .collect(),
        },
    }
}

impl ContentsJson {
    fn read(self) -> Result<FigureTable, String> {
        match self {
            Self::MemoryLatency { cells } => memory(cells, FigureUnit::Ns),
            Self::MemoryBandwidth { cells } => memory(cells, FigureUnit::GbPerS),
            Self::CacheLatency { cells } => caches(cells, FigureUnit::Ns),
            Self::CacheBandwidth { cells } => caches(cells, FigureUnit::GbPerS),
            Self::Latencies { figures } => list(figures, FigureUnit::Ns),
            Self::Bandwidths { figures } => list(figures, FigureUnit::GbPerS),
            Self::Loaded { points } => {
                let point = |point: PointJson| {
                    Ok(LoadedFigure {
                        delay: point.delay,
                        latency_ns: positive("latency_ns", point.latency_ns)?,
                        gb_per_s: positive("gb_per_s", point.gb_per_s)?,
                    })
                };
                Ok(FigureTable::Loaded(items("points", points, MOST_FIGURES, point)?))
            }
        }
    }
}

fn memory(cells: Vec<MemoryJson>, unit: FigureUnit) -> Result<FigureTable, String> {
    let cell =
        |cell: MemoryJson| Ok(((node(cell.from_node)?, node(cell.memory_node)?), cell.value.read(unit)?));
    matrix(MatrixSides::Memory, unit, items("cells", cells, MOST_FIGURES, cell)?)
}

fn caches(cells: Vec<CachesJson>, unit: FigureUnit) -> Result<FigureTable, String> {
    let cell =
        |cell: CachesJson| Ok(((node(cell.writer_node)?, node(cell.reader_node)?), cell.value.read(unit)?));
    matrix(MatrixSides::Caches, unit, items("cells", cells, MOST_FIGURES, cell)?)
}

fn matrix(sides: MatrixSides, unit: FigureUnit, all: Vec<(Pair, f64)>) -> Result<FigureTable, String> {
    let count = all.len();
    let cells: BTreeMap<Pair, f64> = all.into_iter().collect_map();
    if cells.len() == count {
        Ok(FigureTable::Matrix { sides, unit, cells })
    } else {
        Err("cells has a pair of nodes twice: expected one of each".to_owned())
    }
}

fn list(figures: Vec<NamedJson>, unit: FigureUnit) -> Result<FigureTable, String> {
    let figure = |figure: NamedJson| Ok((figure.name, figure.value.read(unit)?));
    Ok(FigureTable::List { unit, figures: items("figures", figures, MOST_FIGURES, figure)? })
}
