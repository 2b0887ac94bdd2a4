//! A measured matrix of nodes, ready to be shown: as a table, as a heat map.

use std::collections::BTreeMap;
use std::fmt::Display;

use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::{CpuId, NodeId};
use nodewise_stats::Direction;

use crate::digest::survey::decimals;

/// Ids on the axes of a matrix.
pub trait AxisId: Copy + Ord + Display {
    /// Before the number of a row: `node`.
    const ROW: &str;
    /// Above the heads of the rows: what rows are, and what columns.
    const CORNER: &str;
    /// The meaning of rows and columns, in words.
    const SIDES: &str;
}

impl AxisId for NodeId {
    const ROW: &str = "node";
    const CORNER: &str = "CPU\\mem";
    const SIDES: &str = "CPUs of row, memory of column";
}

impl AxisId for CpuId {
    const ROW: &str = "CPU";
    const CORNER: &str = "to\\from";
    const SIDES: &str = "CPU of row gets a line of CPU of column";
}

/// A cell: a value, and whether it is to be marked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entry {
    /// The value; `None` for a cell that was refused.
    pub value: Option<f64>,
    /// Whether the cell was disturbed and stayed so.
    pub disturbed: bool,
}

/// A value for each pair of a node with CPUs and a node with memory, or of two CPUs.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix<I = NodeId> {
    /// The subject of the values: `huge pages`.
    pub title: String,
    /// The unit of its values: `ns`.
    pub unit: &'static str,
    /// More about that, in a line that begins with the unit.
    pub remark: String,
    pub direction: Direction,
    /// Whether its values are counts, which have no decimals.
    is_counted: bool,
    cells: BTreeMap<(I, I), Entry>,
}

impl<I: AxisId> Matrix<I> {
    /// A matrix without cells.
    pub fn new(
        title: impl Into<String>,
        unit: &'static str,
        remark: impl Into<String>,
        direction: Direction,
    ) -> Self {
        let (title, remark) = (title.into(), remark.into());
        Self { title, unit, remark, direction, is_counted: false, cells: BTreeMap::new() }
    }

    /// The same with values that are counts.
    #[must_use]
    pub fn counted(self) -> Self {
        Self { is_counted: true, ..self }
    }

    /// Sets the cell of CPUs of a node and memory of a node.
    pub fn set(&mut self, from: I, memory: I, entry: Entry) {
        self.cells.insert((from, memory), entry);
    }

    /// A cell; `None` for a pair that was not measured.
    pub fn get(&self, from: I, memory: I) -> Option<&Entry> {
        self.cells.get(&(from, memory))
    }

    /// The nodes with CPUs, ascending.
    pub fn rows(&self) -> Vec<I> {
        self.cells.keys().map(|(from, _)| *from).collect_set().into_iter().collect()
    }

    /// The nodes with memory, ascending.
    pub fn columns(&self) -> Vec<I> {
        self.cells.keys().map(|(_, memory)| *memory).collect_set().into_iter().collect()
    }

    /// Whether no cell has a value.
    pub fn is_empty(&self) -> bool {
        self.values().next().is_none()
    }

    /// The cells that were asked for, by row.
    pub fn cells(&self) -> impl Iterator<Item = &Entry> {
        self.cells.values()
    }

    fn values(&self) -> impl Iterator<Item = f64> {
        self.cells.values().filter_map(|entry| entry.value)
    }

    /// Returns the scale for every cell. It looks at all cells: made once, it serves for each.
    pub fn scale(&self) -> Scale {
        let best = match self.direction {
            Direction::LowerIsBetter => self.values().reduce(f64::min),
            Direction::HigherIsBetter => self.values().reduce(f64::max),
        };
        let most = self.values().map(f64::abs).fold(0.0, f64::max);
        let decimals = if self.is_counted { 0 } else { decimals(most) };
        Scale { best, direction: self.direction, decimals }
    }
}

/// The common scale of the cells of a matrix: the best of them, and how they are written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// The best value; `None` without any.
    best: Option<f64>,
    direction: Direction,
    /// The figures behind the point, in all cells alike: enough to show three digits of the largest.
    decimals: usize,
}

impl Scale {
    /// The value that the best is this many times better than; the best itself for 1.
    pub fn worse_than_best(&self, times: f64) -> Option<f64> {
        self.best.map(|best| match self.direction {
            Direction::LowerIsBetter => best * times,
            Direction::HigherIsBetter => best / times,
        })
    }

    /// How many times the best is better than a value; 1 for the best itself. `None` where that is not a
    /// number, as for differences around zero.
    pub fn times_worse(&self, value: f64) -> Option<f64> {
        let best = self.best?;
        let times = match self.direction {
            Direction::LowerIsBetter => value / best,
            Direction::HigherIsBetter => best / value,
        };
        (best > 0.0 && value > 0.0 && times.is_finite()).then_some(times)
    }

    /// A cell as it is written: `-` for a pair without value, `!` behind what was disturbed.
    pub fn text(&self, entry: Option<&Entry>) -> String {
        match entry.and_then(|entry| Some((entry.value?, entry.disturbed))) {
            Some((value, disturbed)) => {
                let mark = if disturbed { "!" } else { "" };
                // What rounds to nothing has no sign.
                let text = format!("{value:.*}", self.decimals);
                let nothing = text.starts_with('-') && text.bytes().all(|byte| b"-0.".contains(&byte));
                format!("{}{mark}", if nothing { &text[1..] } else { &text })
            }
            None => "-".to_owned(),
        }
    }
}

/// Why a matrix is not shown: it has more than the most rows or columns that a form has room for.
pub fn too_many(rows: usize, columns: usize, most: usize) -> String {
    format!("{rows} rows of {columns} columns are more than the {most} that are shown; --csv has all")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(direction: Direction, values: &[(u32, u32, Option<f64>)]) -> Matrix {
        let mut matrix = Matrix::new("", "ns", "", direction);
        for (from, memory, value) in values {
            let entry = Entry { value: *value, disturbed: false };
            matrix.set(NodeId::new(*from), NodeId::new(*memory), entry);
        }
        matrix
    }

    #[test]
    fn counts_have_no_decimals_however_small_they_are() {
        let mut measured: Matrix<NodeId> = Matrix::new("lines", "lines", "", Direction::LowerIsBetter);
        let node = NodeId::new(0);
        measured.set(node, node, Entry { value: Some(7.0), disturbed: false });
        let text = |matrix: &Matrix<NodeId>| matrix.scale().text(matrix.get(node, node));
        assert_eq!(text(&measured), "7.00");
        assert_eq!(text(&measured.counted()), "7");
    }

    #[test]
    fn rows_and_columns_are_the_nodes_that_were_measured() {
        let matrix = matrix(Direction::LowerIsBetter, &[(0, 4, Some(1.0)), (0, 2, None), (7, 4, None)]);
        assert_eq!(matrix.rows(), [NodeId::new(0), NodeId::new(7)]);
        assert_eq!(matrix.columns(), [NodeId::new(2), NodeId::new(4)]);
        assert_eq!(matrix.scale().text(matrix.get(NodeId::new(7), NodeId::new(2))), "-");
        assert!(!matrix.is_empty());
    }

    #[test]
    fn the_best_is_the_least_time_and_the_most_bandwidth() {
        let values = [(0, 0, Some(80.0)), (0, 1, Some(160.0)), (1, 0, Some(0.0))];
        let times = |direction, value| matrix(direction, &values[..2]).scale().times_worse(value);
        assert_eq!(times(Direction::LowerIsBetter, 160.0), Some(2.0));
        assert_eq!(times(Direction::HigherIsBetter, 80.0), Some(2.0));
        let lower = |values| matrix(Direction::LowerIsBetter, values).scale();
        assert_eq!(lower(&values).times_worse(80.0), None, "the best is 0");
        assert_eq!(lower(&[]).times_worse(80.0), None);
    }

    #[test]
    fn values_have_as_many_figures_as_tell() {
        let check = |values: &[f64], expected: &[&str]| {
            let cells: Vec<_> = (0_u32..).zip(values).map(|(node, value)| (0, node, Some(*value))).collect();
            let matrix = matrix(Direction::LowerIsBetter, &cells);
            let text = |node: &NodeId| matrix.scale().text(matrix.get(NodeId::new(0), *node));
            let texts: Vec<String> = matrix.columns().iter().map(text).collect();
            assert_eq!(texts, expected);
        };
        check(&[136.24, 98.5], &["136", "98"]);
        check(&[36.24, 9.5], &["36.2", "9.5"]);
        check(&[1.204, -0.001], &["1.20", "0.00"]);
        let mut disturbed = matrix(Direction::LowerIsBetter, &[]);
        disturbed.set(NodeId::new(0), NodeId::new(0), Entry { value: Some(12.3), disturbed: true });
        assert_eq!(disturbed.scale().text(disturbed.get(NodeId::new(0), NodeId::new(0))), "12.3!");
    }
}
