//! The order of the rows of a table.

use super::options::SortBy;
use super::table::Table;

/// The value of a blank or missing cell.
const NOTHING: f64 = 0.0;
/// The number that the originals find in the place of a missing one: a piece of a pointer, tiny as a number.
const TINY: f64 = f64::MIN_POSITIVE;

/// The key of every row: its cell in the column of the node, or in the last one.
///
/// The originals take the node that is named for a place in the list of nodes, and the node that
/// is there for a place in the row. Where numbers have holes, that can lie behind the row.
pub fn keys(table: &Table, by: SortBy, strict: bool) -> Vec<f64> {
    let total = table.heads.len().saturating_sub(1);
    let place = match by {
        SortBy::Total => None,
        SortBy::Node(node) if strict => {
            table.nodes.get(node.number() as usize).map(|found| found.number() as usize)
        }
        SortBy::Node(node) => table.nodes.iter().position(|known| *known == node),
    };
    let place = place.unwrap_or(total);
    (0..table.rows.len()).map(|row| cell(table, row, place)).collect()
}

/// The cell at a place counted from the first of a row, through the rows behind it.
fn cell(table: &Table, row: usize, place: usize) -> f64 {
    // A row begins with its name.
    let stride = table.heads.len() + 1;
    let (below, at) = ((place + 1) / stride, (place + 1) % stride);
    match (table.rows.get(row + below), at) {
        (None, _) | (_, 0) => TINY,
        (Some(row), at) => row.cells[at - 1].unwrap_or(NOTHING),
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::Row;
    use super::*;
    use nodewise_machine::NodeId;

    fn check(by: SortBy, strict: bool, expected: [f64; 3]) {
        let nodes = [0, 2, 5].map(NodeId::new);
        let mut table = Table::with_total(&nodes);
        for (name, cells) in [("a", [1.0, 2.0, 3.0]), ("b", [4.0, 5.0, 6.0]), ("c", [7.0, 8.0, 9.0])] {
            let cells = cells.map(Some).into_iter().chain([None]).collect();
            table.rows.push(Row { name: name.into(), cells });
        }
        table.add_totals();
        assert_eq!(keys(&table, by, strict), expected, "{by:?}");
    }

    #[test]
    fn a_node_is_its_own_column_and_any_other_is_the_total() {
        check(SortBy::Node(NodeId::new(2)), false, [2.0, 5.0, 8.0]);
        check(SortBy::Node(NodeId::new(5)), false, [3.0, 6.0, 9.0]);
        check(SortBy::Node(NodeId::new(1)), false, [6.0, 15.0, 24.0]);
        check(SortBy::Total, false, [6.0, 15.0, 24.0]);
    }

    #[test]
    fn the_originals_look_behind_the_row() {
        check(SortBy::Node(NodeId::new(0)), true, [1.0, 4.0, 7.0]);
        check(SortBy::Node(NodeId::new(1)), true, [3.0, 6.0, 9.0]);
        check(SortBy::Node(NodeId::new(2)), true, [4.0, 7.0, TINY]);
        check(SortBy::Node(NodeId::new(5)), true, [6.0, 15.0, 24.0]);
    }
}
