//! Screen 1: every node, and what the kernel does for all of them.

use nodewise_machine::Bytes;
use nodewise_view::digest::running::{NodeRow, Running};
use ratatui::layout::Rect;

use super::{Page, cell, rate, strip};
use crate::app::history::MOST;
use crate::app::{App, Screen};
use crate::ink::Ink;
use crate::paint::{lines, wrapped};
use crate::table::{self, Cell, Column};

/// Draws it.
pub(super) fn draw(page: &mut Page<'_>, running: &Running, area: Rect) {
    let width = usize::from(area.width);
    let notes = &page.app.notes;
    let notes: Vec<(Ink, String)> = notes
        .iter()
        .flat_map(|(ink, note)| wrapped(note, width, 1).into_iter().map(|line| (*ink, line)))
        .collect();
    let for_notes = (notes.len() as u16 + 1).min(area.height / 2);
    let shown = nodes(page, running, lines(area, 0, Some(area.height - for_notes)));
    let below = lines(area, shown + 2, None);
    for (at, (ink, note)) in (0..).zip(&notes) {
        page.line(below, at, *ink, note);
    }
}

/// Draws the table, and returns the lines that it took below its heads.
fn nodes(page: &mut Page<'_>, running: &Running, area: Rect) -> u16 {
    let columns = [
        Column::number("node", 4),
        Column::text("CPU busy", 18, 18),
        Column::text("memory used", 18, 18),
        Column::number("free", 7),
        Column::number("miss/s", 6),
        Column::number("other/s", 7),
        Column::number("foreign/s", 9),
        Column::number("hit/s", 6),
        Column::number("size", 6),
        Column::number("anon", 6),
        Column::number("files", 6),
        Column::number("shared", 6),
        Column::number("slab", 6),
        Column::number("pools", 6),
        Column::number("rest", 6),
        Column::number("busiest CPU", 11),
        // Behind the counters: 160 columns have room for both.
        Column::text("recent free", MOST, MOST),
        Column::number("promoted/s", 6),
        Column::number("demoted/s", 6),
    ];
    let selected = page.app.selected(Screen::Nodes);
    let seen = table::window(running.nodes.len(), selected, table::room(area));
    let first = seen.start;
    let rows: Vec<Vec<Cell>> = running.nodes[seen].iter().map(|row| node(page.app, running, row)).collect();
    table::draw(&columns, &rows, selected.checked_sub(first), area, page.buffer, page.app.inks);
    rows.len() as u16
}

fn node(app: &App, running: &Running, row: &NodeRow) -> Vec<Cell> {
    let size = |size: Option<Bytes>| Cell::from(size.map(cell::size));
    let memory = row.memory.as_ref();
    let busiest =
        row.load.map(|load| format!("{} {} %", load.busiest.0, cell::whole_percent(load.busiest.1)));
    vec![
        Cell::new(Ink::Strong, row.node.to_string()),
        strip::busy_cell(row),
        strip::used_cell(row),
        strip::free_cell(row),
        rate(running, row.allocations.miss).into(),
        rate(running, row.allocations.other).into(),
        rate(running, row.allocations.foreign).into(),
        rate(running, row.allocations.hit).into(),
        size(row.size.map(|size| size.size)),
        size(memory.and_then(|memory| memory.anonymous)),
        size(memory.and_then(|memory| memory.file)),
        size(memory.and_then(|memory| memory.shared)),
        size(memory.and_then(|memory| memory.slab)),
        size(memory.and_then(|memory| memory.huge_pools)),
        size(memory.map(|memory| memory.rest)),
        busiest.into(),
        app.history.free(row.node).map(cell::height).collect::<String>().into(),
        rate(running, row.promoted).into(),
        rate(running, row.demoted).into(),
    ]
}
