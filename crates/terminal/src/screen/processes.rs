//! Screen 2: processes, below the nodes in a few lines.

use nodewise_machine::NodeId;
use nodewise_machine::printable::visible;
use nodewise_view::digest::running::{ProcessRow, Running, words};
use ratatui::layout::Rect;

use super::{Page, cell, strip};
use crate::app::Screen;
use crate::app::order::SortBy;
use crate::ink::Ink;
use crate::paint::lines;
use crate::table::{self, Align, Cell, Column};

/// Cells of such a column, the blank before it included.
const COLUMN: usize = 4;
/// Cells of the columns that are worth more.
const OTHERS: usize = 48;

/// Draws it.
pub(super) fn draw(page: &mut Page<'_>, running: &Running, area: Rect) {
    let strip = strip::height(running, area.height);
    strip::draw(page, running, lines(area, 0, Some(strip)));
    status(page, running, lines(area, strip, Some(1)));
    list(page, running, lines(area, strip + 1, None));
}

/// The order, the filter, and how many processes there are.
fn status(page: &mut Page<'_>, running: &Running, area: Rect) {
    let app = page.app;
    let turned = if app.order.reversed { ", reversed" } else { "" };
    let filter = if app.filter.text().is_empty() { "-" } else { app.filter.text() };
    let drawn = if running.processes.iter().any(ProcessRow::is_drawn) { "   ~ sampled pages" } else { "" };
    let text = format!(
        " {} of {} processes   sort {}{turned}   filter {filter}{drawn}",
        app.listed.len(),
        running.process_count,
        app.order.by.word(),
    );
    page.line(area, 0, Ink::Accent, &text);
}

fn list(page: &mut Page<'_>, running: &Running, area: Rect) {
    let app = page.app;
    let nodes: Vec<NodeId> = running.nodes.iter().map(|row| row.node).collect();
    let has_columns =
        nodes.len() <= table::MOST_NODES && OTHERS + nodes.len() * COLUMN <= usize::from(area.width);
    let nodes = if has_columns { nodes } else { Vec::new() };
    let selected = app.selected(Screen::Processes);
    let seen = table::window(app.listed.len(), selected, table::room(area));
    let first = seen.start;
    // Only the lines that are seen are written: 5,000 processes cost as much as 20.
    let rows: Vec<Vec<Cell>> =
        seen.filter_map(|line| app.listed(line)).map(|row| process(row, &nodes)).collect();
    let mark = selected.checked_sub(first).filter(|_| !rows.is_empty());
    table::draw(&columns(app.order.by, &nodes), &rows, mark, area, page.buffer, app.inks);
    if rows.is_empty() {
        let why = if running.processes.is_empty() {
            " no process was read"
        } else {
            " no process matches the filter: \\ clears it"
        };
        page.line(area, 1, Ink::Plain, why);
    }
}

/// The columns, the one that decides the order with a mark.
fn columns(by: SortBy, nodes: &[NodeId]) -> Vec<Column> {
    let head = |fact: SortBy, word: &str| if fact == by { format!("{word}*") } else { word.to_owned() };
    let mut columns = vec![
        Column::number(head(SortBy::Pid, "PID"), 6),
        Column::text(head(SortBy::Name, "name"), 15, 20),
        Column::number(head(SortBy::Cpu, "CPU%"), 5),
        Column::number(head(SortBy::Memory, "memory"), 7),
        Column::number(head(SortBy::Stranded, "stranded"), 8),
    ];
    if nodes.is_empty() {
        columns.push(Column::text("memory on", 10, 32));
    }
    columns.extend(nodes.iter().map(|node| Column::number(format!("N{node}"), COLUMN - 1)));
    columns.extend([
        Column::number(head(SortBy::Local, "local"), 5),
        Column::text("runs on", 10, 32),
        Column::number(head(SortBy::Threads, "threads"), 7),
        Column::text("user", 5, 12),
        Column::number(head(SortBy::Moved, "moved/s"), 7),
        Column { align: Align::Left, ..Column::text("control group", 20, 60) },
    ]);
    columns
}

fn process(row: &ProcessRow, nodes: &[NodeId]) -> Vec<Cell> {
    let share = |share: Option<f64>| share.map(|share| format!("{} %", cell::whole_percent(share)));
    let ink = if row.notably_stranded().is_some() { Ink::Notable } else { Ink::Plain };
    let mark = if row.notably_stranded().is_some() { "!" } else { "" };
    let stranded = share(row.stranded_share()).map(|share| format!("{share}{mark}"));
    let mut cells = vec![
        row.identity.pid.to_string().into(),
        Cell::new(Ink::Strong, visible(&row.name)),
        row.cpu_share.map(words::percent_number).into(),
        row.resident.map(cell::size).into(),
        Cell::new(
            ink,
            stranded.unwrap_or_else(|| row.denied.map(words::denied).unwrap_or_default().to_owned()),
        ),
    ];
    if nodes.is_empty() {
        cells.push(words::memory_on(row).into());
    }
    let shares = row.memory_shares();
    let sampled = if row.is_drawn() { "~" } else { "" };
    cells.extend(nodes.iter().map(|node| {
        let shares = shares.as_ref().filter(|shares| !shares.is_empty());
        let on =
            |shares: &Vec<(NodeId, f64)>| shares.iter().find(|(at, _)| at == node).map_or(0.0, |at| at.1);
        Cell::from(shares.map(|shares| format!("{sampled}{}", cell::whole_percent(on(shares)))))
    }));
    cells.extend([
        share(row.locality.as_ref().and_then(|locality| locality.local_index)).into(),
        words::runs_on(row).into(),
        row.threads.to_string().into(),
        words::user(row).into(),
        row.window.rate(row.migrated_pages).map(cell::short).into(),
        row.group.as_deref().unwrap_or_default().into(),
    ]);
    cells
}
