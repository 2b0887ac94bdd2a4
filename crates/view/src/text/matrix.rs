//! A measured matrix as a table: nodes with CPUs down, nodes with memory across; or CPUs both ways.

use crate::digest::matrix::{Matrix, Place};
use crate::style::Ink;
use crate::text::line::{Line, Page};

/// Blank columns between two columns of the table.
const GAP: usize = 2;
const INDENT: usize = 2;

/// Writes a matrix below its title; in several blocks of columns where it is too wide for one.
pub(crate) fn write<I: Place>(matrix: &Matrix<I>, page: &mut Page) {
    let head = Line::new().with(Ink::Strong, &matrix.title).with(Ink::Faint, format!("  {}", matrix.remark));
    page.line(INDENT, &Line::from(" ".repeat(INDENT)).joined(&head));
    let rows = matrix.rows();
    let columns = matrix.columns();
    let first = rows.iter().map(|row| row_head(*row).len()).max().unwrap_or(0).max(I::CORNER.len());
    let width = cell_width(matrix, &columns);
    let room = page.width().saturating_sub(INDENT + first) / (GAP + width);
    for block in columns.chunks(room.max(1)) {
        let mut heads = Line::new().with(Ink::Faint, format!("{:INDENT$}{:first$}", "", I::CORNER));
        for column in block {
            heads.push(Ink::Faint, format!("{:GAP$}{:>width$}", "", column_head(*column)));
        }
        page.line(INDENT, &heads);
        for row in &rows {
            page.line(INDENT, &line(matrix, *row, block, (first, width)));
        }
    }
}

fn row_head<I: Place>(place: I) -> String {
    format!("{} {place}", I::ROW)
}

fn column_head<I: Place>(place: I) -> String {
    place.to_string()
}

fn cell_width<I: Place>(matrix: &Matrix<I>, columns: &[I]) -> usize {
    let cells = matrix.rows().into_iter().flat_map(|row| columns.iter().map(move |column| (row, *column)));
    let texts = cells.map(|(row, column)| matrix.text(matrix.get(row, column)).len());
    texts.chain(columns.iter().map(|column| column_head(*column).len())).max().unwrap_or(1)
}

fn line<I: Place>(matrix: &Matrix<I>, row: I, block: &[I], (first, width): (usize, usize)) -> Line {
    let mut line = Line::new().with(Ink::Faint, format!("{:INDENT$}{:<first$}", "", row_head(row)));
    for column in block {
        let entry = matrix.get(row, *column);
        let ink = match entry {
            Some(entry) if entry.disturbed => Ink::Notable,
            Some(entry) if entry.value.is_none() => Ink::Notable,
            _ if row == *column => Ink::Strong,
            _ => Ink::Plain,
        };
        line.push(Ink::Plain, " ".repeat(GAP));
        line.push(ink, format!("{:>width$}", matrix.text(entry)));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::matrix::Entry;
    use crate::style::Style;
    use nodewise_machine::NodeId;
    use nodewise_measure::metric::Direction;

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
}
