//! Figures that other tools printed: Intel Memory Latency Checker, STREAM, `perf bench` and `perf stat`.
//!
//! [`ToolFigures::parse`] reads one text. Facts that such a text lacks are missing here, too: intervals, numbers of
//! samples, seeds, the nodes of pages, and the machine.
//!
//! # Units
//! Latencies in ns; bandwidths in GB/s (10^9 bytes per second), whatever unit a tool prints.

mod mlc;
mod perf;
mod stream;
mod text;

use std::collections::BTreeMap;
use std::fmt;

use nodewise_machine::NodeId;

pub use crate::perftest::Problem;

/// A tool whose output is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FigureTool {
    Mlc,
    Stream,
    Perf,
}

impl FigureTool {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::Mlc, Self::Stream, Self::Perf];

    /// The word for scripts.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Mlc => "mlc",
            Self::Stream => "stream",
            Self::Perf => "perf",
        }
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mlc => "Intel Memory Latency Checker",
            Self::Stream => "STREAM",
            Self::Perf => "perf",
        }
    }
}

/// A unit of figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FigureUnit {
    /// Nanoseconds: less is better.
    Ns,
    /// 10^9 bytes per second: more is better.
    GbPerS,
}

impl FigureUnit {
    /// How it is written: `GB/s`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ns => "ns",
            Self::GbPerS => "GB/s",
        }
    }
}

/// The places that a matrix is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MatrixSides {
    /// CPUs of the row's node reach for memory of the column's.
    Memory,
    /// A CPU of the column's node reads a line that one of the row's has written.
    Caches,
}

/// A point of latency under load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadedFigure {
    /// The pause of each thread of the traffic, in the tool's own unit.
    pub delay: u32,
    pub latency_ns: f64,
    pub gb_per_s: f64,
}

/// Figures of one kind.
#[derive(Clone, Debug, PartialEq)]
pub enum FigureTable {
    /// A figure for pairs of nodes.
    Matrix { sides: MatrixSides, unit: FigureUnit, cells: BTreeMap<(NodeId, NodeId), f64> },
    /// Figures under the tool's own names.
    List { unit: FigureUnit, figures: Vec<(String, f64)> },
    /// Latency against traffic, in the order of the text.
    Loaded(Vec<LoadedFigure>),
}

impl FigureTable {
    /// Whether the figures are latencies; those under load are both, and count as such.
    pub const fn is_latency(&self) -> bool {
        match self {
            Self::Matrix { unit, .. } | Self::List { unit, .. } => matches!(unit, FigureUnit::Ns),
            Self::Loaded(_) => true,
        }
    }

    /// How many figures it holds.
    pub fn len(&self) -> usize {
        match self {
            Self::Matrix { cells, .. } => cells.len(),
            Self::List { figures, .. } => figures.len(),
            Self::Loaded(points) => points.len(),
        }
    }

    /// Whether the table holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A table with the words around it.
#[derive(Clone, Debug, PartialEq)]
pub struct FigureGroup {
    /// Its subject: `idle latency, random access`.
    pub title: String,
    /// Lines in which the tool says how it measured, as they were printed.
    pub notes: Vec<String>,
    pub table: FigureTable,
}

/// The figures of a text.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolFigures {
    pub tool: FigureTool,
    /// The version, where it is printed.
    pub version: Option<String>,
    /// In the order of the text, each with at least one figure.
    pub groups: Vec<FigureGroup>,
    /// The lines that could not be read; the rest is there anyway.
    pub problems: Vec<Problem>,
}

/// Why a text of a tool has no figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoFigures {
    pub tool: FigureTool,
    /// The fault in the first figure, if there is one.
    pub problem: Option<Problem>,
}

impl fmt::Display for NoFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "this output of {} has no figure that can be read", self.tool.name())?;
        match &self.problem {
            Some(problem) => write!(f, ": {problem}"),
            None => write!(f, ": expected {}", expected(self.tool)),
        }
    }
}

impl std::error::Error for NoFigures {}

const fn expected(tool: FigureTool) -> &'static str {
    match tool {
        FigureTool::Mlc => "a section that begins with \"Measuring\", and numbers below it",
        FigureTool::Stream => "a line as \"Triad: 12345.6\" below a line that begins with \"Function\"",
        FigureTool::Perf => "a line that ends in GB/sec, or a count in MiB with the seconds that it took",
    }
}

impl ToolFigures {
    /// The tool that has printed a text; `None` for other texts.
    pub fn tool_of(text: &str) -> Option<FigureTool> {
        text.lines().take(text::MOST_SEARCHED).find_map(|line| {
            let line = line.trim();
            let begins = |tool: &FigureTool| match tool {
                FigureTool::Mlc => mlc::is_beginning(line),
                FigureTool::Stream => stream::is_beginning(line),
                FigureTool::Perf => perf::is_beginning(line),
            };
            FigureTool::ALL.into_iter().find(begins)
        })
    }

    /// Reads the figures in a text; `None` where no tool that is known has printed it.
    ///
    /// # Errors
    /// A text of a tool without any figure that could be read. Single lines that cannot be read are among the
    /// [problems](Self::problems).
    pub fn parse(text: &str) -> Option<Result<Self, NoFigures>> {
        let tool = Self::tool_of(text)?;
        let read = match tool {
            FigureTool::Mlc => mlc::parse(text),
            FigureTool::Stream => stream::parse(text),
            FigureTool::Perf => perf::parse(text),
        };
        Some(read.finish(tool))
    }

    /// The figures about latency, or those about bandwidth; `None` where there are none.
    pub fn only(&self, is_latency: bool) -> Option<Self> {
        let groups = self.groups.iter().filter(|group| group.table.is_latency() == is_latency);
        let groups: Vec<FigureGroup> = groups.cloned().collect();
        (!groups.is_empty()).then(|| Self { groups, ..self.clone() })
    }
}

#[cfg(test)]
mod tests;
