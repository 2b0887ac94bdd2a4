//! The nodes in a few lines: CPU, memory, and allocations. Where they are many, the busiest three and a digit for each.

use nodewise_machine::order::Order as _;
use nodewise_view::digest::counts::plural;
use nodewise_view::digest::running::{NodeRow, Running};
use ratatui::layout::Rect;

use super::{Page, cell, rate};
use crate::ink::Ink;
use crate::paint::lines;
use crate::table::{self, Cell, Column};

/// The nodes that are named where they are more.
const NAMED: usize = 3;
/// Cells inside a bar.
const BAR: usize = 10;

/// Lines that the nodes take of an area of this height.
pub(super) fn height(running: &Running, of: u16) -> u16 {
    let count = running.nodes.len();
    let wanted = if count > table::MOST_NODES { NAMED + 4 } else { count + 1 };
    let most = usize::from(of / 2).max(2);
    wanted.min(most) as u16
}

/// Draws them.
pub(super) fn draw(page: &mut Page<'_>, running: &Running, area: Rect) {
    let count = running.nodes.len();
    let room = usize::from(area.height.saturating_sub(1));
    if count <= table::MOST_NODES.min(room) {
        table(page, running, &running.nodes.iter().collect::<Vec<_>>(), area);
        return;
    }
    // The last lines are for all nodes together.
    let all = |share: &dyn Fn(&NodeRow) -> Option<f64>| -> String {
        running.nodes.iter().map(|row| cell::digit(share(row))).collect()
    };
    let digits = [
        format!(" CPU busy {}", all(&|row| Some(row.load?.busy))),
        format!(" memory   {}", all(&used_share)),
    ];
    let mut busiest: Vec<&NodeRow> = running.nodes.iter().collect();
    let busy = |row: &NodeRow| row.load.map_or(-1.0, |load| load.busy);
    busiest.order_by(|one, other| busy(other).total_cmp(&busy(one)).then(one.node.cmp(&other.node)));
    busiest.truncate(NAMED.min(room.saturating_sub(digits.len())));
    let mut at = 0;
    if !busiest.is_empty() {
        at = busiest.len() as u16 + 1;
        table(page, running, &busiest, lines(area, 0, Some(at)));
    }
    if usize::from(at) + digits.len() < usize::from(area.height) {
        let left = plural(count - busiest.len(), "more node");
        page.line(area, at, Ink::Faint, &format!(" {left}; below, one digit per node: tenths, * from 95 %"));
        at += 1;
    }
    for line in &digits {
        page.line(area, at, Ink::Plain, line);
        at += 1;
    }
}

fn table(page: &mut Page<'_>, running: &Running, nodes: &[&NodeRow], area: Rect) {
    let columns = [
        Column::number("node", 4),
        Column::text("CPU busy", BAR + 8, BAR + 8),
        Column::text("memory used", BAR + 8, BAR + 8),
        Column::number("free", 7),
        Column::number("miss/s", 6),
        Column::number("other/s", 7),
        Column::number("hit/s", 6),
        Column::number("foreign/s", 9),
    ];
    let rows: Vec<Vec<Cell>> = nodes
        .iter()
        .map(|row| {
            vec![
                Cell::new(Ink::Strong, row.node.to_string()),
                busy_cell(row),
                used_cell(row),
                free_cell(row),
                rate(running, row.allocations.miss).into(),
                rate(running, row.allocations.other).into(),
                rate(running, row.allocations.hit).into(),
                rate(running, row.allocations.foreign).into(),
            ]
        })
        .collect();
    table::draw(&columns, &rows, None, area, page.buffer, page.app.inks);
}

/// The share of its memory that is not free.
fn used_share(row: &NodeRow) -> Option<f64> {
    let memory = row.memory.filter(|memory| memory.total.get() > 0)?;
    Some(1.0 - memory.free.get() as f64 / memory.total.get() as f64)
}

fn bar_cell(share: Option<f64>, ink: Ink) -> Cell {
    let text = share.map(|share| format!("{} {:>3} %", cell::bar(share, BAR), cell::whole_percent(share)));
    Cell::new(ink, text.unwrap_or_default())
}

/// How busy the CPUs of a node are, as a bar.
pub(super) fn busy_cell(row: &NodeRow) -> Cell {
    bar_cell(row.load.map(|load| load.busy), Ink::Plain)
}

/// How full a node is, as a bar.
pub(super) fn used_cell(row: &NodeRow) -> Cell {
    bar_cell(used_share(row), if row.is_low() { Ink::Notable } else { Ink::Plain })
}

/// Its free memory, marked where it is low.
pub(super) fn free_cell(row: &NodeRow) -> Cell {
    let free = row.size.and_then(|size| size.free).or(row.memory.map(|memory| memory.free));
    let (ink, mark) = if row.is_low() { (Ink::Notable, "!") } else { (Ink::Plain, "") };
    Cell::new(ink, free.map(|free| format!("{}{mark}", cell::size(free))).unwrap_or_default())
}
