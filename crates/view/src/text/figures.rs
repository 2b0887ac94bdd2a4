//! The text of figures that other tools printed.

use nodewise_measure::figures::{LoadedFigure, ToolFigures};

use crate::digest::figures::{ShownTable, count_words, ending, tables, tool_words, value_words};
use crate::style::{Ink, Style};
use crate::text::line::{Line, Page};
use crate::text::table::{Align, Column, Keep, Table};
use crate::text::{matrix, survey};

/// Writes figures of another tool.
pub fn tool_figures(figures: &ToolFigures, style: &Style) -> String {
    let mut page = Page::new(*style);
    page.heading(&format!("Figures of {}", tool_words(figures)), &count_words(figures));
    for table in tables(figures) {
        match &table {
            ShownTable::Memory(cells) => matrix::write_measured(cells, &mut page),
            ShownTable::Caches(cells) => matrix::write_measured(cells, &mut page),
            ShownTable::List { title, unit, figures } => {
                head(title, unit.name(), &mut page);
                list(figures).write(&mut page);
            }
            ShownTable::Loaded { title, points } => {
                head(title, "one load while other CPUs move data", &mut page);
                loaded(points).write(&mut page);
            }
        }
    }
    survey::write(&ending(figures), &mut page);
    page.finish()
}

fn head(title: &str, remark: &str, page: &mut Page) {
    page.line(4, &Line::from("  ").with(Ink::Strong, title).with(Ink::Faint, format!("  {remark}")));
}

fn list(figures: &[(String, f64)]) -> Table {
    let column = |head, align| Column { head, align, keep: Keep::Always };
    let mut table = Table::new(vec![column("", Align::Right), column("", Align::Left)]);
    for (name, value) in figures {
        table.row(vec![value_words(*value).into(), name.as_str().into()]);
    }
    table
}

fn loaded(points: &[LoadedFigure]) -> Table {
    let column = |head, align| Column { head, align, keep: Keep::Always };
    let mut table = Table::new(vec![
        column("delay", Align::Right),
        column("GB/s", Align::Right),
        column("ns", Align::Right),
        column("", Align::Left),
    ]);
    for point in points {
        table.row(vec![
            point.delay.to_string().into(),
            value_words(point.gb_per_s).into(),
            value_words(point.latency_ns).into(),
            Line::blank(),
        ]);
    }
    table
}
