//! Figures that other tools printed, a line for each.

use nodewise_machine::NodeId;
use nodewise_measure::figures::{FigureTable, FigureUnit, LoadedFigure, MatrixSides, ToolFigures};

use super::quoted;

/// Writes all figures. A table has the fields that it needs, and the others are empty.
pub fn tool_figures(figures: &ToolFigures) -> String {
    let mut text =
        String::from("table,kind,from_node,memory_node,writer_node,reader_node,name,delay,ns,gb_per_s\n");
    for group in &figures.groups {
        for fields in rows(&group.table) {
            text.push_str(&format!("{},{}\n", quoted(&group.title), fields.join(",")));
        }
    }
    text
}

fn rows(table: &FigureTable) -> Vec<[String; 9]> {
    let none = String::new;
    let in_unit = |unit: &FigureUnit, value: f64| match unit {
        FigureUnit::Ns => [value.to_string(), none()],
        FigureUnit::GbPerS => [none(), value.to_string()],
    };
    match table {
        FigureTable::Matrix { sides, unit, cells } => {
            let row = |((row, column), value): (&(NodeId, NodeId), &f64)| {
                let [ns, rate] = in_unit(unit, *value);
                let (row, column) = (row.to_string(), column.to_string());
                let [from, memory, writer, reader] = match sides {
                    MatrixSides::Memory => [row, column, none(), none()],
                    MatrixSides::Caches => [none(), none(), row, column],
                };
                ["matrix".to_owned(), from, memory, writer, reader, none(), none(), ns, rate]
            };
            cells.iter().map(row).collect()
        }
        FigureTable::List { unit, figures } => {
            let row = |(name, value): &(String, f64)| {
                let [ns, rate] = in_unit(unit, *value);
                ["list".to_owned(), none(), none(), none(), none(), quoted(name), none(), ns, rate]
            };
            figures.iter().map(row).collect()
        }
        FigureTable::Loaded(points) => {
            let row = |point: &LoadedFigure| {
                let (ns, rate) = (point.latency_ns.to_string(), point.gb_per_s.to_string());
                let delay = point.delay.to_string();
                ["loaded".to_owned(), none(), none(), none(), none(), none(), delay, ns, rate]
            };
            points.iter().map(row).collect()
        }
    }
}
