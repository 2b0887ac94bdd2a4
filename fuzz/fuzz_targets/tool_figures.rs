//! Figures that are read are above nothing, and a matrix is printed and read back the same.
#![no_main]

use std::fmt::Write as _;

use libfuzzer_sys::fuzz_target;
use nodewise_measure::figures::{FigureTable, FigureUnit, MatrixSides, ToolFigures};

/// A matrix of latencies as Intel Memory Latency Checker prints it, with `-` for what is not measured.
fn printed(
    cells: &std::collections::BTreeMap<(nodewise_machine::NodeId, nodewise_machine::NodeId), f64>,
) -> String {
    let columns: std::collections::BTreeSet<_> = cells.keys().map(|(_, column)| *column).collect();
    let rows: std::collections::BTreeSet<_> = cells.keys().map(|(row, _)| *row).collect();
    let mut text = "Measuring idle latencies (in ns)...\nNuma node".to_owned();
    columns.iter().for_each(|column| write!(text, "\t{column}").expect("a text takes all"));
    for row in rows {
        write!(text, "\n{row}").expect("a text takes all");
        for column in &columns {
            match cells.get(&(row, *column)) {
                Some(value) => write!(text, "\t{value}").expect("a text takes all"),
                None => text.push_str("\t-"),
            }
        }
    }
    text
}

fuzz_target!(|text: &str| {
    let Some(Ok(figures)) = ToolFigures::parse(text) else { return };
    assert!(!figures.groups.is_empty());
    for group in &figures.groups {
        assert!(!group.table.is_empty());
        match &group.table {
            FigureTable::Matrix { sides, unit, cells } => {
                assert!(cells.values().all(|value| *value > 0.0 && value.is_finite()));
                if (*sides, *unit) == (MatrixSides::Memory, FigureUnit::Ns) {
                    let again =
                        ToolFigures::parse(&printed(cells)).expect("it is known").expect("it was printed");
                    assert_eq!(again.groups[0].table, group.table);
                }
            }
            FigureTable::List { figures, .. } => assert!(figures.iter().all(|(_, value)| *value > 0.0)),
            FigureTable::Loaded(points) => {
                assert!(points.iter().all(|point| point.latency_ns > 0.0 && point.gb_per_s > 0.0));
            }
        }
    }
});
