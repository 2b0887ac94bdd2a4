//! Screen 5: devices and their interrupts.

use nodewise_view::digest::running::{Running, words};
use ratatui::layout::Rect;

use super::{Page, cell, rate};
use crate::app::{Origin, Screen};
use crate::ink::Ink;
use crate::table::{self, Cell, Column};

/// Readings after their request that have them: one may be under way, and rates need two.
const READINGS: usize = 3;

/// Draws it.
pub(super) fn draw(page: &mut Page<'_>, running: &Running, area: Rect) {
    if running.devices.is_empty() {
        let why = match page.app.origin {
            Origin::Live => page.app.waiting(READINGS).unwrap_or("no interrupts of devices were found"),
            Origin::Recording(_) => "this recording has no interrupts of devices (nodewise record --irq)",
        };
        return page.line(area, 0, Ink::Plain, &format!(" {why}"));
    }
    let columns = [
        Column::text("device", 20, 32),
        Column::number("node", 4),
        Column::number("interrupts/s", 12),
        Column::number("on other nodes", 14),
        Column::text("taken by", 20, 80),
        Column::text("lines", 5, 24),
    ];
    let selected = page.app.selected(Screen::Devices);
    let seen = table::window(running.devices.len(), selected, table::room(area));
    let first = seen.start;
    let rows: Vec<Vec<Cell>> = running.devices[seen]
        .iter()
        .map(|row| {
            let is_notable = row.notably_wrong(running.window).is_some();
            let (ink, mark) = if is_notable { (Ink::Notable, "!") } else { (Ink::Plain, "") };
            let wrong =
                row.change.wrong_share().map(|share| format!("{} %{mark}", cell::whole_percent(share)));
            let lines: Vec<String> = row.lines.iter().map(ToString::to_string).collect();
            vec![
                Cell::new(Ink::Strong, row.change.device.as_str()),
                row.change.node.map(|node| node.to_string()).into(),
                rate(running, Some(row.change.count)).into(),
                Cell::new(ink, wrong.unwrap_or_default()),
                words::taken_by(row).into(),
                lines.join(",").into(),
            ]
        })
        .collect();
    table::draw(&columns, &rows, selected.checked_sub(first), area, page.buffer, page.app.inks);
}
