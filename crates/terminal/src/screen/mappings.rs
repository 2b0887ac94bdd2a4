//! Screen 4: the mappings of one process.

use nodewise_machine::NodeId;
use nodewise_machine::mapping::{Mapping, ProcessMappings};
use nodewise_view::digest::maps::{GroupBy, Maps, Tally, policy_words};
use ratatui::layout::Rect;

use super::{Page, cell};
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
        None => return page.line(area, 0, Ink::Plain, " no process is selected: choose one on screen 2"),
        Some(Mappings::Asked(pid)) => {
            return page.line(area, 0, Ink::Plain, &format!(" reading the mappings of process {pid} ..."));
        }
        Some(Mappings::Failed(pid, why)) => {
            return page.line(area, 0, Ink::Plain, &format!(" process {pid}: {why}"));
        }
        Some(Mappings::Read(process)) => process,
    };
    let maps = Maps { process, by: GroupBy::Kind, shared_with: None };
    let name = process.name.as_deref().unwrap_or("(no name)");
    let count = process.mappings.len();
    page.line(area, 0, Ink::Strong, &format!(" {} {name}", process.pid));
    page.line(area, 1, Ink::Plain, &format!(" {count} mappings, {}", maps.method()));
    let mut at = 2;
    for finding in maps.findings().iter().take(2) {
        page.line(area, at, Ink::Notable, &format!(" ! {finding}"));
        at += 1;
    }
    for note in process.notes.iter().take(1) {
        page.line(area, at, Ink::Faint, &format!(" {note}"));
        at += 1;
    }
    let nodes = maps.nodes();
    let nodes = if nodes.len() <= table::MOST_NODES { nodes } else { Vec::new() };
    let left = area.height.saturating_sub(at);
    at += groups(page, &maps, &nodes, lines(area, at, Some((left / 2).min(MOST_GROUPS + 1))));
    list(page, process, &nodes, lines(area, at, None));
}

/// Draws the memory by kind and node; returns the lines that it took.
fn groups(page: &mut Page<'_>, maps: &Maps<'_>, nodes: &[NodeId], area: Rect) -> u16 {
    let mut columns = vec![Column::text("kind", 15, 15), Column::number("all", 8)];
    columns.extend(places(nodes));
    let all = ("all".to_owned(), maps.all());
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    for (name, tally) in maps.groups().into_iter().chain([all]).take(table::room(area)) {
        let mut cells = vec![Cell::new(Ink::Strong, name), cell::size(tally.all()).into()];
        cells.extend(tally_cells(&tally, nodes));
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

fn list(page: &mut Page<'_>, process: &ProcessMappings, nodes: &[NodeId], area: Rect) {
    let mut columns = vec![Column::text("address", 12, 16), Column::number("memory", 8)];
    columns.extend(places(nodes));
    columns.extend([
        Column::text("kind", 9, 15),
        Column::text("policy", 8, 24),
        Column::text("name", 12, 80),
        Column::number("size", 8),
        Column::text("access", 6, 6),
    ]);
    // The largest first, as `maps` names them.
    let mut order: Vec<&Mapping> = process.mappings.iter().collect();
    order.sort_by_key(|mapping| (std::cmp::Reverse(mapping.resident()), mapping.start));
    let selected = page.app.selected(Screen::Mappings);
    let seen = table::window(order.len(), selected, table::room(area));
    let first = seen.start;
    let rows: Vec<Vec<Cell>> = order[seen].iter().map(|mapping| line(mapping, nodes)).collect();
    let mark = selected.checked_sub(first).filter(|_| !rows.is_empty());
    table::draw(&columns, &rows, mark, area, page.buffer, page.app.inks);
}

fn line(mapping: &Mapping, nodes: &[NodeId]) -> Vec<Cell> {
    let tally = Tally::from_mappings([mapping]);
    let mut cells: Vec<Cell> =
        vec![format!("{:x}", mapping.start).into(), mapping.resident().map(cell::size).into()];
    cells.extend(tally_cells(&tally, nodes));
    let size = nodewise_machine::Bytes::new(mapping.end.saturating_sub(mapping.start));
    cells.extend([
        mapping.kind.words().into(),
        policy_words(mapping).unwrap_or_default().into(),
        mapping.name.as_deref().unwrap_or_default().into(),
        cell::size(size).into(),
        mapping.permissions.to_string().into(),
    ]);
    cells
}
