//! Figures that other tools printed, ready to be shown: matrices, rows, sentences.

use std::fmt;

use nodewise_machine::NodeId;
use nodewise_machine::plural::plural;
use nodewise_machine::printable::printable;
use nodewise_measure::figures::{
    FigureGroup, FigureTable, FigureUnit, LoadedFigure, MatrixSides, ToolFigures,
};
use nodewise_stats::Direction;

use crate::digest::matrix::{AxisId, Entry, Matrix};
use crate::digest::survey::{Ending, FindingSentence, digits};

/// A node whose CPUs hand lines of their caches to those of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CacheNode(NodeId);

impl fmt::Display for CacheNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl AxisId for CacheNode {
    const ROW: &str = "node";
    const CORNER: &str = "writer\\reader";
    const SIDES: &str = "line written by row, read by column";
}

/// A table as it is shown.
#[derive(Clone, Debug, PartialEq)]
pub enum ShownTable<'a> {
    Memory(Matrix),
    Caches(Matrix<CacheNode>),
    List { title: String, unit: FigureUnit, figures: &'a [(String, f64)] },
    Loaded { title: String, points: &'a [LoadedFigure] },
}

/// The tables, in the order of the text.
pub fn tables(figures: &ToolFigures) -> Vec<ShownTable<'_>> {
    figures.groups.iter().map(shown).collect()
}

fn shown(group: &FigureGroup) -> ShownTable<'_> {
    let title = printable(&group.title).into_owned();
    match &group.table {
        FigureTable::Matrix { sides: MatrixSides::Memory, unit, cells } => {
            ShownTable::Memory(matrix(title, *unit, cells.iter().map(|(pair, value)| (*pair, *value))))
        }
        FigureTable::Matrix { sides: MatrixSides::Caches, unit, cells } => {
            let cells =
                cells.iter().map(|((row, column), value)| ((CacheNode(*row), CacheNode(*column)), *value));
            ShownTable::Caches(matrix(title, *unit, cells))
        }
        FigureTable::List { unit, figures } => ShownTable::List { title, unit: *unit, figures },
        FigureTable::Loaded(points) => ShownTable::Loaded { title, points },
    }
}

fn matrix<I: AxisId>(
    title: String,
    unit: FigureUnit,
    cells: impl Iterator<Item = ((I, I), f64)>,
) -> Matrix<I> {
    let direction = match unit {
        FigureUnit::Ns => Direction::LowerIsBetter,
        FigureUnit::GbPerS => Direction::HigherIsBetter,
    };
    let mut matrix = Matrix::new(title, unit.name(), unit.name(), direction);
    for ((row, column), value) in cells {
        matrix.set(row, column, Entry { value: Some(value), disturbed: false });
    }
    matrix
}

/// A value as it is written: three significant digits, small ones too.
pub fn value_words(value: f64) -> String {
    if value >= 0.1 {
        return digits(value);
    }
    // The values that are read begin at 1e-9.
    let decimals = (2.0 - value.log10().floor()).clamp(2.0, 12.0) as usize;
    format!("{value:.decimals$}")
}

/// The tool and its version, in words.
pub fn tool_words(figures: &ToolFigures) -> String {
    let version = figures.version.as_deref().map(|version| format!(" {}", printable(version)));
    format!("{}{}", figures.tool.name(), version.unwrap_or_default())
}

/// How the figures end: what is known of how they were measured, and what could not be read.
pub fn ending(figures: &ToolFigures) -> Ending {
    let unknown = format!(
        "measured by {}, and read from its output, which names neither its machine nor a date; intervals, numbers of \
         samples and the nodes of the pages are unknown",
        tool_words(figures)
    );
    let notes = figures.groups.iter().filter(|group| !group.notes.is_empty()).map(|group| {
        let notes = group.notes.iter().map(|note| printable(note).into_owned());
        format!("{}: {}", printable(&group.title), notes.collect::<Vec<_>>().join("; "))
    });
    let problems = figures.problems.iter().map(|problem| FindingSentence {
        sentence: format!("not read: {}", printable(&problem.to_string())),
        is_noise: true,
    });
    Ending {
        how: std::iter::once(unknown).chain(notes).collect(),
        not_measured: Vec::new(),
        findings: problems.collect(),
    }
}

/// How many figures and tables there are, in words.
pub fn count_words(figures: &ToolFigures) -> String {
    let all: usize = figures.groups.iter().map(|group| group.table.len()).sum();
    format!("{} in {}", plural(all, "figure"), plural(figures.groups.len(), "table"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_values_keep_their_digits() {
        for (value, expected) in
            [(226.1, "226"), (8.24, "8.24"), (0.804, "0.80"), (0.005_26, "0.00526"), (1e-9, "0.00000000100")]
        {
            assert_eq!(value_words(value), expected);
        }
    }
}
