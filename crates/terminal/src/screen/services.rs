//! Screen 6: services, containers and other control groups, and the nodes of the memory that they are charged for.

use nodewise_machine::{Bytes, NodeId};
use nodewise_view::digest::running::{Running, ServiceRow, words};
use ratatui::layout::Rect;

use super::{Page, cell};
use crate::app::{Origin, Screen};
use crate::ink::Ink;
use crate::table::{self, Cell, Column};

/// Readings after their request that have them: one may be under way.
const READINGS: usize = 2;

/// Draws it.
pub(super) fn draw(page: &mut Page<'_>, running: &Running, area: Rect) {
    let services = page.app.services();
    if services.is_empty() {
        let why = match page.app.origin {
            Origin::Live => page.app.waiting(READINGS).unwrap_or("no services were found"),
            Origin::Recording(_) => "this recording has no services",
        };
        return page.line(area, 0, Ink::Plain, &format!(" {why}"));
    }
    let nodes: Vec<NodeId> = running.nodes.iter().map(|row| row.node).collect();
    let nodes = if nodes.len() <= table::MOST_NODES { nodes } else { Vec::new() };
    let mut columns = vec![
        Column::text("service", 20, 32),
        Column::text("kind", 7, 10),
        Column::number("CPU%", 5),
        Column::number("memory", 7),
    ];
    columns.extend(nodes.iter().map(|node| Column::number(format!("N{node}"), 3)));
    if nodes.is_empty() {
        columns.push(Column::text("memory on", 10, 32));
    }
    columns.extend([
        Column::number("anon", 6),
        Column::number("files", 6),
        Column::text("may use nodes", 13, 20),
        Column::text("control group", 20, 60),
    ]);
    let selected = page.app.selected(Screen::Services);
    let seen = table::window(services.len(), selected, table::room(area));
    let first = seen.start;
    let rows: Vec<Vec<Cell>> = services[seen].iter().map(|row| service(row, &nodes)).collect();
    table::draw(&columns, &rows, selected.checked_sub(first), area, page.buffer, page.app.inks);
}

fn service(row: &ServiceRow, nodes: &[NodeId]) -> Vec<Cell> {
    let size = |size: Option<Bytes>| Cell::from(size.map(cell::size));
    let mut cells = vec![
        Cell::new(Ink::Strong, row.name.as_str()),
        row.kind_word().into(),
        row.cpu_share.map(words::percent_number).into(),
        size(row.size()),
    ];
    cells.extend(nodes.iter().map(|node| Cell::from(share(row, *node).map(cell::whole_percent))));
    if nodes.is_empty() {
        cells.push(words::charged_on(row).into());
    }
    cells.extend([
        size(row.anonymous),
        size(row.files),
        row.nodes.as_ref().map(ToString::to_string).into(),
        row.path.as_ref().into(),
    ]);
    cells
}

/// The share of its memory on a node; `None` where it has none, or nothing says.
fn share(row: &ServiceRow, node: NodeId) -> Option<f64> {
    let all = row.size().filter(|size| size.get() > 0)?;
    let on = row.memory.as_ref()?.get(&node).copied().unwrap_or_default();
    Some(on.get() as f64 / all.get() as f64)
}
