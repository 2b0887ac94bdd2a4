//! A measured matrix as a table: nodes with CPUs down, nodes with memory across; or CPUs both ways.

use crate::digest::matrix::{AxisId, Matrix, Scale, too_many};
use crate::style::Ink;
use crate::text::line::{Line, Page};

/// Blank columns between two columns of the table.
const GAP: usize = 2;
const INDENT: usize = 2;

/// Up to this many rows and columns are written: the kernel numbers no more nodes, and a document that is
/// read back may name any.
const MOST: usize = 1024;

/// Writes a matrix that has any value; why there is none, the end of a report says.
pub(crate) fn write_measured<I: AxisId>(matrix: &Matrix<I>, page: &mut Page) {
    if !matrix.is_empty() {
        write(matrix, page);
    }
}

/// Writes a matrix below its title; in several blocks of columns where it is too wide for one.
pub(crate) fn write<I: AxisId>(matrix: &Matrix<I>, page: &mut Page) {
    let head = Line::new().with(Ink::Strong, &matrix.title).with(Ink::Faint, format!("  {}", matrix.remark));
    page.line(INDENT, &Line::from(" ".repeat(INDENT)).joined(&head));
    let (rows, columns) = (matrix.rows(), matrix.columns());
    if rows.len().max(columns.len()) > MOST {
        let text = format!("{:INDENT$}{}", "", too_many(rows.len(), columns.len(), MOST));
        page.line(INDENT, &Line::new().with(Ink::Notable, text));
        return;
    }
    Grid::new(matrix, &rows, &columns).write(page);
}

/// A matrix on its way to lines of text.
struct Grid<'m, I> {
    matrix: &'m Matrix<I>,
    rows: &'m [I],
    columns: &'m [I],
    scale: Scale,
    /// The width of the heads of the rows, and that of a column.
    first: usize,
    width: usize,
}

impl<'m, I: AxisId> Grid<'m, I> {
    fn new(matrix: &'m Matrix<I>, rows: &'m [I], columns: &'m [I]) -> Self {
        let scale = matrix.scale();
        let first = rows.iter().map(|row| row_head(*row).len()).max().unwrap_or(0).max(I::CORNER.len());
        let heads = columns.iter().map(|column| column.to_string().len());
        let cells = matrix.cells().map(|entry| scale.text(Some(entry)).len());
        let width = heads.chain(cells).max().unwrap_or(1);
        Self { matrix, rows, columns, scale, first, width }
    }

    fn write(&self, page: &mut Page) {
        let (first, width) = (self.first, self.width);
        let room = page.width().saturating_sub(INDENT + first) / (GAP + width);
        for block in self.columns.chunks(room.max(1)) {
            let mut heads = Line::new().with(Ink::Faint, format!("{:INDENT$}{:first$}", "", I::CORNER));
            for column in block {
                heads.push(Ink::Faint, format!("{:GAP$}{column:>width$}", ""));
            }
            page.line(INDENT, &heads);
            for row in self.rows {
                page.line(INDENT, &self.line(*row, block));
            }
        }
    }

    fn line(&self, row: I, block: &[I]) -> Line {
        let (first, width) = (self.first, self.width);
        let mut line = Line::new().with(Ink::Faint, format!("{:INDENT$}{:<first$}", "", row_head(row)));
        for column in block {
            let entry = self.matrix.get(row, *column);
            let ink = match entry {
                Some(entry) if entry.disturbed => Ink::Notable,
                Some(entry) if entry.value.is_none() => Ink::Notable,
                _ if row == *column => Ink::Strong,
                _ => Ink::Plain,
            };
            line.push(Ink::Plain, " ".repeat(GAP));
            line.push(ink, format!("{:>width$}", self.scale.text(entry)));
        }
        line
    }
}

fn row_head<I: AxisId>(place: I) -> String {
    format!("{} {place}", I::ROW)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::matrix::Entry;
    use crate::style::Style;
    use nodewise_machine::NodeId;
    use nodewise_stats::Direction;

    fn check(width: usize, nodes: u32, expected: &str) {
        let mut matrix = Matrix::new("huge pages", "ns", "ns", Direction::LowerIsBetter);
        for from in 0..nodes.min(2) {
            for memory in 0..nodes {
                let value = (from, memory) != (1, 0);
                let value = value.then_some(if from == memory { 80.0 } else { 151.5 });
                let entry = Entry { value, disturbed: (from, memory) == (0, 1) };
                matrix.set(NodeId::new(from), NodeId::new(memory), entry);
            }
        }
        let mut page = Page::new(Style::plain(width));
        write(&matrix, &mut page);
        assert_eq!(page.finish(), expected);
    }

    #[test]
    fn a_matrix_has_its_nodes_on_both_sides() {
        check(
            60,
            2,
            "  huge pages  ns\n  CPU\\mem     0     1\n  node 0     80  152!\n  node 1      -    80\n",
        );
    }

    #[test]
    fn a_matrix_that_is_too_wide_goes_on_below() {
        check(
            40,
            7,
            "  huge pages  ns\n  CPU\\mem     0     1     2     3     4\n  node 0     80  152!   152   152   152\n  node 1      -    80   152   152   152\n  CPU\\mem     5     6\n  node 0    152   152\n  node 1    152   152\n",
        );
    }

    #[test]
    fn a_matrix_that_no_machine_has_is_not_written_out() {
        let mut matrix = Matrix::new("small pages", "ns", "ns", Direction::LowerIsBetter);
        for node in 0..1025 {
            let entry = Entry { value: Some(80.0), disturbed: false };
            matrix.set(NodeId::new(node), NodeId::new(node), entry);
        }
        let mut page = Page::new(Style::plain(100));
        write(&matrix, &mut page);
        assert_eq!(
            page.finish(),
            "  small pages  ns\n  1025 rows of 1025 columns are more than the 1024 that are shown; --csv has all\n"
        );
    }
}
