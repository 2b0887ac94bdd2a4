//! Screen 3: one process, its memory and its threads against the nodes.

use std::collections::BTreeMap;

use nodewise_machine::NodeId;
use nodewise_machine::printable::visible;
use nodewise_view::digest::counts::plural;
use nodewise_view::digest::running::process::TaskRow;
use nodewise_view::digest::running::{CpuTime, ProcessRow, Running, words};
use ratatui::layout::Rect;

use super::{Page, cell};
use crate::app::{Origin, Screen};
use crate::ink::Ink;
use crate::paint::lines;
use crate::table::{self, Cell, Column};

/// Readings after their request that have the threads: one may be under way.
const READINGS: usize = 2;

/// Draws it.
pub(super) fn draw(page: &mut Page<'_>, running: &Running, area: Rect) {
    let Some(row) = page.app.opened() else {
        let why = match page.app.opened {
            Some(opened) => format!(" process {} has ended", opened.pid),
            None => " no process selected: choose one on screen 2".to_owned(),
        };
        return page.line(area, 0, Ink::Plain, &why);
    };
    page.line(area, 0, Ink::Strong, &format!(" {} {}", row.identity.pid, visible(&row.name)));
    page.line(area, 1, Ink::Plain, &format!(" {}", facts(row)));
    let mut at = 2;
    if let Some(group) = &row.group {
        page.line(area, at, Ink::Faint, &format!(" control group {group}"));
        at += 1;
    }
    let most = usize::from(area.height.saturating_sub(at) / 2).max(2);
    at += nodes(page, running, row, lines(area, at, Some(most as u16)));
    threads(page, running, row, lines(area, at, None));
}

fn facts(row: &ProcessRow) -> String {
    let mut facts = Vec::new();
    facts.extend(words::user(row).map(|user| format!("user {user}")));
    facts.push(plural(row.threads as usize, "thread"));
    facts.extend(row.cpu_share.map(|share| format!("CPU {} %", words::percent_number(share))));
    facts.extend(row.resident.map(|size| format!("memory {size}")));
    if let Some(locality) = &row.locality {
        facts.extend(locality.local_index.map(|share| format!("local {}", words::percent(share))));
        facts.extend(locality.stranded.as_ref().map(|stranded| {
            let on =
                if stranded.nodes.is_empty() { String::new() } else { format!(" on {}", stranded.nodes) };
            format!("stranded {}{on}", words::percent(stranded.share))
        }));
    }
    let moved = row.window.rate(row.migrated_pages).filter(|rate| *rate > 0.0);
    facts.extend(moved.map(|rate| format!("{} pages moved/s", cell::short(rate))));
    facts.join("  ")
}

/// Draws a line for each node with a part in the process; returns how many lines that took.
fn nodes(page: &mut Page<'_>, running: &Running, row: &ProcessRow, area: Rect) -> u16 {
    let columns = [
        Column::number("node", 4),
        Column::number("CPU time", 8),
        Column::number("memory", 8),
        Column::number("share", 6),
        Column::number("own", 9),
        Column::number("preferred by", 12),
        Column::text("95 % interval", 13, 24),
    ];
    let room = table::room(area);
    let mut rows: Vec<Vec<Cell>> = running
        .nodes
        .iter()
        .map(|node| node.node)
        .filter(|node| running.nodes.len() <= room || takes_part(row, *node))
        .map(|node| on_node(row, node))
        .collect();
    let unsure = row.cpu.as_ref().and_then(|cpu| cpu.share(cpu.unsure)).filter(|share| *share > 0.0);
    let left = rows.len().saturating_sub(room);
    rows.truncate(room);
    let mut taken = rows.len() as u16 + 1;
    table::draw(&columns, &rows, None, area, page.buffer, page.app.inks);
    let mut notes = Vec::new();
    notes.extend(unsure.map(|share| format!("CPU time whose node is unsure: {}", words::percent(share))));
    notes.extend((left > 0).then(|| plural(left, "more node")));
    if row.pages.is_none() {
        let is_empty = row.kernel_thread || row.resident.is_some_and(|size| size.get() == 0);
        let why = match (row.denied, &page.app.origin) {
            (Some(denied), _) => words::denied(denied),
            (None, _) if is_empty => "none",
            (None, Origin::Live) => "not read yet",
            (None, Origin::Recording(_)) => "not recorded",
        };
        notes.push(format!("memory by node: {why}"));
    }
    if row.is_drawn() {
        notes.push("memory by node is from sampled pages".to_owned());
    }
    if !notes.is_empty() && taken < area.height {
        page.line(area, taken, Ink::Faint, &format!(" {}", notes.join("; ")));
        taken += 1;
    }
    taken
}

fn takes_part(row: &ProcessRow, node: NodeId) -> bool {
    row.cpu.as_ref().is_some_and(|cpu| cpu.certain.contains_key(&node))
        || row.pages.as_ref().is_some_and(|pages| pages.nodes.contains_key(&node))
        || row.preferred.contains_key(&node)
}

fn on_node(row: &ProcessRow, node: NodeId) -> Vec<Cell> {
    let pages = row.pages.as_ref().map(|pages| pages.nodes.get(&node).copied().unwrap_or_default());
    let share = row.memory_shares().filter(|shares| !shares.is_empty());
    let share = share.map(|shares| shares.iter().find(|(on, _)| *on == node).map_or(0.0, |on| on.1));
    let interval = pages.filter(|pages| pages.low != pages.high);
    vec![
        Cell::new(Ink::Strong, node.to_string()),
        certain(row.cpu.as_ref(), node).into(),
        pages.map(|pages| cell::size(pages.size)).into(),
        share.map(words::percent).into(),
        pages.and_then(|pages| pages.own).map(cell::size).into(),
        row.preferred.get(&node).map(|count| plural(*count, "thread")).into(),
        interval.map(|pages| format!("{} to {}", cell::size(pages.low), cell::size(pages.high))).into(),
    ]
}

/// The share of the CPU time that was certainly spent on a node.
fn certain(cpu: Option<&CpuTime>, node: NodeId) -> Option<String> {
    let cpu = cpu.filter(|cpu| !cpu.used.is_zero())?;
    cpu.share(cpu.certain.get(&node).copied().unwrap_or_default()).map(words::percent)
}

fn threads(page: &mut Page<'_>, running: &Running, row: &ProcessRow, area: Rect) {
    if row.tasks.is_empty() {
        let why = match page.app.origin {
            Origin::Live => page.app.waiting(READINGS).unwrap_or("not known"),
            Origin::Recording(_) => "not recorded",
        };
        return page.line(area, 0, Ink::Faint, &format!(" threads: {why}"));
    }
    let nodes: Vec<NodeId> = running.nodes.iter().map(|row| row.node).collect();
    let nodes = if nodes.len() <= table::MOST_NODES { nodes } else { Vec::new() };
    let mut columns = vec![
        Column::number("TID", 6),
        Column::text("thread", 15, 20),
        Column::number("CPU%", 5),
        Column::number("last CPU", 8),
        Column::number("preferred", 9),
    ];
    columns.extend(nodes.iter().map(|node| Column::number(format!("on {node}"), 5)));
    columns.push(if nodes.is_empty() { Column::text("ran on", 10, 40) } else { Column::number("unsure", 6) });
    columns.push(Column::number("moved/s", 7));
    columns.push(Column::text("hint faults by node, decayed", 12, 60));
    let selected = page.app.selected(Screen::Process);
    let seen = table::window(row.tasks.len(), selected, table::room(area));
    let first = seen.start;
    let rows: Vec<Vec<Cell>> = row.tasks[seen].iter().map(|task| thread(row, task, &nodes)).collect();
    table::draw(&columns, &rows, selected.checked_sub(first), area, page.buffer, page.app.inks);
}

fn thread(row: &ProcessRow, task: &TaskRow, nodes: &[NodeId]) -> Vec<Cell> {
    let cpu = task.cpu.as_ref().filter(|cpu| !cpu.used.is_zero());
    let mut cells: Vec<Cell> = vec![
        task.identity.pid.to_string().into(),
        Cell::new(Ink::Strong, visible(&task.name)),
        task.cpu_share.map(words::percent_number).into(),
        task.processor.map(|cpu| cpu.to_string()).into(),
        task.preferred.map(|node| format!("node {node}")).into(),
    ];
    cells.extend(nodes.iter().map(|node| Cell::from(certain(cpu, *node))));
    cells.push(if nodes.is_empty() {
        cpu.map(words::by_node).into()
    } else {
        cpu.and_then(|cpu| cpu.share(cpu.unsure)).map(words::percent).into()
    });
    cells.push(row.window.rate(task.migrated_pages).map(cell::short).into());
    cells.push(faults(&task.faults).into());
    cells
}

fn faults(faults: &BTreeMap<NodeId, nodewise_view::digest::running::BalancingFaults>) -> String {
    let words = faults
        .iter()
        .filter(|(_, faults)| faults.private + faults.shared > 0)
        .map(|(node, faults)| format!("{node}: {} private, {} shared", faults.private, faults.shared));
    words.collect::<Vec<_>>().join("; ")
}
