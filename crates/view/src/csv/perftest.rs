//! Tables of perftest, a line per side and size.

use nodewise_measure::perftest::{Column, Comparison};

use super::{known, quoted};
use crate::digest::perftest::kink_sizes;

/// Writes all values; one that is not known is empty.
pub fn perftest(comparisons: &[Comparison]) -> String {
    let names = Column::ALL.map(Column::name).join(",");
    let mut text = format!("table,side,memory_node,size_bytes,iterations,{names},ratio_to_first,kink\n");
    comparisons.iter().for_each(|comparison| write(comparison, &mut text));
    text
}

fn write(comparison: &Comparison, text: &mut String) {
    for (at, side) in comparison.sides().iter().enumerate() {
        let kinks = kink_sizes(side);
        for (size, row) in &side.table.rows {
            let mut fields = vec![
                comparison.kind().word().to_owned(),
                quoted(&side.label),
                known(side.node),
                size.get().to_string(),
                known(row.iterations),
            ];
            fields.extend(Column::ALL.map(|column| known(row.get(column))));
            fields.push(known(comparison.ratio(at, *size)));
            fields.push(kinks.contains(size).to_string());
            text.push_str(&(fields.join(",") + "\n"));
        }
    }
}
