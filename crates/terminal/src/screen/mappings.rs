//! Screen 4: the mappings of one process.

use nodewise_machine::mapping::{Mapping, ProcessMappings};
use nodewise_machine::{Bytes, NodeId};
use nodewise_view::digest::counts::plural;
use nodewise_view::digest::maps::{Tally, policy_words};
use nodewise_view::digest::running::Identity;
use ratatui::layout::Rect;

use super::{Page, cell};
use crate::app::worked_out::MappingsTable;
use crate::app::{Mappings, Screen};
use crate::ink::Ink;
use crate::paint::lines;
use crate::table::{self, Cell, Column};

/// Lines of groups at most.
const MOST_GROUPS: u16 = 8;
/// Nodes that are named in words.
const NAMED: usize = 3;

/// Draws it.
pub(super) fn draw(page: &mut Page<'_>, area: Rect) {
    let app = page.app;
    let process = match &app.mappings {
        None => return page.line(area, 0, Ink::Plain, " no process selected: choose one on screen 2"),
        Some(Mappings::Asked(Identity { pid, .. })) => {
            return page.line(area, 0, Ink::Plain, &format!(" reading the mappings of process {pid} ..."));
        }
        Some(Mappings::Failed(Identity { pid, .. }, why)) => {
            return page.line(area, 0, Ink::Plain, &format!(" process {pid}: {why}"));
        }
        Some(Mappings::Read(_, process)) => process,
    };
    let Some(known) = &app.mappings_table else { return };
    let name = process.name.as_deref().unwrap_or("(no name)");
    let count = plural(process.mappings.len(), "mapping");
    page.line(area, 0, Ink::Strong, &format!(" {} {name}", process.pid));
    page.line(area, 1, Ink::Plain, &format!(" {count}, {}", known.method));
    let mut at = 2;
    for finding in known.findings.iter().take(2) {
        page.line(area, at, Ink::Notable, &format!(" ! {finding}"));
        at += 1;
    }
    for note in process.notes.iter().take(1) {
        page.line(area, at, Ink::Faint, &format!(" {note}"));
        at += 1;
    }
    let left = area.height.saturating_sub(at);
    at += groups(page, known, lines(area, at, Some((left / 2).min(MOST_GROUPS + 1))));
    list(page, process, known, lines(area, at, None));
}

/// Draws the memory by kind and node; returns the lines that it took.
fn groups(page: &mut Page<'_>, known: &MappingsTable, area: Rect) -> u16 {
    let mut columns = vec![Column::text("kind", 15, 15), Column::number("all", 8)];
    columns.extend(places(&known.nodes));
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    for (name, tally) in known.groups.iter().take(table::room(area)) {
        let mut cells = vec![Cell::new(Ink::Strong, name), cell::size(tally.all()).into()];
        cells.extend(tally_cells(tally, &known.nodes));
        rows.push(cells);
    }
    table::draw(&columns, &rows, None, area, page.buffer, page.app.inks);
    rows.len() as u16 + 1
}

/// The columns for the shares of nodes.
fn places(nodes: &[NodeId]) -> Vec<Column> {
    if nodes.is_empty() {
        return vec![Column::text("nodes", 12, 40)];
    }
    nodes.iter().map(|node| Column::number(format!("N{node}"), 4)).collect()
}

fn tally_cells(tally: &Tally, nodes: &[NodeId]) -> Vec<Cell> {
    if nodes.is_empty() {
        return vec![if tally.is_unseen() { Cell::default() } else { tally.words(NAMED).into() }];
    }
    let mark = if tally.is_exact() { "" } else { "~" };
    let share = |node: &NodeId| tally.share(*node).filter(|_| !tally.is_unseen());
    nodes
        .iter()
        .map(|node| share(node).map(|share| format!("{mark}{}", cell::whole_percent(share))).into())
        .collect()
}

fn list(page: &mut Page<'_>, process: &ProcessMappings, known: &MappingsTable, area: Rect) {
    let nodes = &known.nodes;
    let mut columns = vec![Column::text("address", 12, 16), Column::number("memory", 8)];
    columns.extend(places(nodes));
    columns.extend([
        Column::text("kind", 9, 15),
        Column::text("policy", 8, 24),
        Column::text("name", 12, 80),
        Column::number("size", 8),
        Column::text("access", 6, 6),
    ]);
    let selected = page.app.selected(Screen::Mappings);
    let seen = table::window(known.order.len(), selected, table::room(area));
    let first = seen.start;
    let rows: Vec<Vec<Cell>> =
        known.order[seen].iter().map(|at| line(&process.mappings[*at], nodes)).collect();
    let mark = selected.checked_sub(first).filter(|_| !rows.is_empty());
    table::draw(&columns, &rows, mark, area, page.buffer, page.app.inks);
}

fn line(mapping: &Mapping, nodes: &[NodeId]) -> Vec<Cell> {
    let tally = Tally::from_mappings([mapping]);
    let mut cells: Vec<Cell> =
        vec![format!("{:x}", mapping.start).into(), mapping.resident().map(cell::size).into()];
    cells.extend(tally_cells(&tally, nodes));
    let size = Bytes::new(mapping.end.saturating_sub(mapping.start));
    cells.extend([
        mapping.kind.words().into(),
        policy_words(mapping).unwrap_or_default().into(),
        mapping.name.as_deref().unwrap_or_default().into(),
        cell::size(size).into(),
        mapping.permissions.to_string().into(),
    ]);
    cells
}
