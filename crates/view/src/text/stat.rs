//! The text of `nodewise stat`.

mod comparison;
mod nodes;
mod processes;

use nodewise_diagnose::identity::Unit;
use nodewise_machine::Bytes;

use crate::digest::running::finding::headline;
use crate::digest::running::words::Direction;
use crate::digest::running::{Running, findings, words};
use crate::style::{Ink, Style};
use crate::text::line::{Line, Page};
use crate::text::table::{Align, Column, Keep, Table};

pub use comparison::comparison;

/// Writes the conclusion, nodes, processes, devices, sums, and what could not be read.
pub fn stat(running: &Running, style: &Style) -> String {
    let mut page = Page::new(*style);
    let findings = findings(running);
    page.line(2, &Line::new().with(Ink::Strong, headline(running, &findings)));
    nodes::write(running, &mut page);
    processes::write(running, &mut page);
    processes::services(running, &mut page);
    devices(running, &mut page);
    bandwidth(running, &mut page);
    controllers(running, &mut page);
    checks(running, &mut page);
    raw(running, &mut page);
    if findings.len() > 1 {
        page.heading("Findings", "");
        for finding in &findings {
            page.line(4, &Line::from("  ").with(Ink::Notable, finding.sentence()));
        }
    }
    unread(running, &mut page);
    page.finish()
}

fn column(head: &'static str, align: Align, keep: Keep) -> Column {
    Column { head, align, keep }
}

/// A share in percent: `74 %`; below ten with one decimal.
fn percent(share: Option<f64>) -> Line {
    share.map_or_else(Line::new, |share| Line::from(words::percent(share)))
}

fn size(size: Option<Bytes>) -> Line {
    size.map_or_else(Line::new, |size| Line::from(size.to_string()))
}

/// A rate or a count: `81,203`; below ten with one decimal.
fn number(value: Option<f64>) -> Line {
    value.map_or_else(Line::new, |value| Line::from(words::grouped(value)))
}

fn devices(running: &Running, page: &mut Page) {
    if running.devices.is_empty() {
        return;
    }
    page.heading("Interrupts by node", &format!("per second, {}", words::window(running)));
    let mut table = Table::new(vec![
        column("device", Align::Left, Keep::Always),
        column("node", Align::Right, Keep::Always),
        column("interrupts", Align::Right, Keep::Always),
        column("on other nodes", Align::Right, Keep::Always),
        column("taken by", Align::Left, Keep::Always),
    ]);
    for row in &running.devices {
        table.row(vec![
            Line::from(row.change.device.as_str()),
            row.change.node.map_or_else(Line::new, |node| Line::from(node.to_string())),
            number(running.rate(Some(row.change.count))),
            percent(row.change.wrong_share()),
            Line::from(words::taken_by(row)),
        ]);
    }
    table.write(page);
    queues(running, page);
}

/// Queues of network devices, where one of them steers packets.
fn queues(running: &Running, page: &mut Page) {
    let mut rows = running.devices.iter().filter(|row| row.is_steered()).peekable();
    if rows.peek().is_none() {
        return;
    }
    page.heading("CPUs that queues of network devices name", "");
    let mut table = Table::new(vec![
        column("device", Align::Left, Keep::Always),
        column("node", Align::Right, Keep::Always),
        column("receive (RPS)", Align::Left, Keep::Always),
        column("flows (RFS)", Align::Right, Keep::Always),
        column("transmit (XPS)", Align::Left, Keep::Always),
        column("other nodes only", Align::Left, Keep::Always),
    ]);
    for row in rows {
        let flows = row.queues.iter().filter_map(|steered| steered.queue.flows).reduce(u64::saturating_add);
        table.row(vec![
            Line::from(row.change.device.as_str()),
            row.change.node.map_or_else(Line::new, |node| Line::from(node.to_string())),
            Line::from(words::steering(row, Direction::Receive)),
            number(flows.map(|flows| flows as f64)),
            Line::from(words::steering(row, Direction::Transmit)),
            Line::from(words::remote_queues(row)),
        ]);
    }
    table.write(page);
}

fn bandwidth(running: &Running, page: &mut Page) {
    if running.bandwidth.is_empty() {
        return;
    }
    page.heading("Memory bandwidth by last-level cache", &format!("GB/s, {}", words::window(running)));
    let mut table = Table::new(vec![
        column("CPUs", Align::Left, Keep::Always),
        column("node", Align::Right, Keep::Always),
        column("all", Align::Right, Keep::Always),
        column("own node", Align::Right, Keep::Always),
        column("other nodes", Align::Right, Keep::Always),
        column("cache", Align::Right, Keep::Unless(0)),
    ]);
    for row in &running.bandwidth {
        table.row(vec![
            Line::from(row.cpus.to_string()),
            Line::from(row.nodes.to_string()),
            gigabytes(running, row.total_bytes),
            gigabytes(running, row.local_bytes),
            gigabytes(running, row.other_bytes()),
            Line::from(row.domain.to_string()),
        ]);
    }
    table.write(page);
}

fn controllers(running: &Running, page: &mut Page) {
    if running.controllers.is_empty() {
        return;
    }
    page.heading("Traffic of memory controllers by die", &format!("GB/s, {}", words::window(running)));
    let mut table = Table::new(vec![
        column("CPUs", Align::Left, Keep::Always),
        column("node", Align::Right, Keep::Always),
        column("read", Align::Right, Keep::Always),
        column("written", Align::Right, Keep::Always),
        column("all", Align::Right, Keep::Always),
        column("controllers", Align::Right, Keep::Unless(0)),
    ]);
    for row in &running.controllers {
        table.row(vec![
            Line::from(row.cpus.to_string()),
            Line::from(row.nodes.to_string()),
            gigabytes(running, row.read_bytes),
            gigabytes(running, row.written_bytes),
            gigabytes(running, row.total_bytes()),
            Line::from(row.controllers.to_string()),
        ]);
    }
    table.write(page);
}

/// Bytes of a window in GB/s.
fn gigabytes(running: &Running, bytes: Option<u64>) -> Line {
    running.rate(bytes).map_or_else(Line::new, |rate| Line::from(format!("{:.2}", rate / 1e9)))
}

fn checks(running: &Running, page: &mut Page) {
    if running.checks.is_empty() {
        return;
    }
    let failed = running.checks.iter().filter(|check| !check.holds).count();
    let summary = match failed {
        0 => format!("all {} hold", running.checks.len()),
        _ => format!("{failed} of {} fail", running.checks.len()),
    };
    page.heading("Sums that must hold", &summary);
    let mut table = Table::new(vec![
        column("", Align::Left, Keep::Always),
        column("difference", Align::Right, Keep::Always),
        column("tolerance", Align::Right, Keep::Always),
        column("sum", Align::Left, Keep::Always),
    ]);
    for check in &running.checks {
        let amount = |value: u64| match check.unit {
            Unit::Pages => Line::from(words::grouped(value as f64)),
            Unit::Bytes => Line::from(Bytes::new(value).to_string()),
            Unit::Milliseconds => Line::from(format!("{} ms", words::grouped(value as f64))),
        };
        let (ink, word) = if check.holds { (Ink::Faint, "holds") } else { (Ink::Notable, "FAILS") };
        table.row(vec![
            Line::new().with(ink, word),
            amount(check.difference),
            amount(check.tolerance),
            Line::from(check.name.as_str()),
        ]);
    }
    table.write(page);
}

fn raw(running: &Running, page: &mut Page) {
    if running.raw.is_empty() {
        return;
    }
    page.heading("Counters", &format!("of /proc/vmstat and of each node, {}", words::window(running)));
    let mut table = Table::new(vec![
        column("node", Align::Left, Keep::Always),
        column("value", Align::Right, Keep::Always),
        column("per second", Align::Right, Keep::Always),
        column("counter", Align::Left, Keep::Always),
    ]);
    for counter in &running.raw {
        table.row(vec![
            Line::from(counter.node.map_or_else(|| "all".to_owned(), |node| node.to_string())),
            Line::from(counter.value.to_string()),
            number(running.rate(counter.count)),
            Line::from(counter.name.as_str()),
        ]);
    }
    table.write(page);
}

fn unread(running: &Running, page: &mut Page) {
    if running.unread.is_empty() {
        return;
    }
    page.heading("Not read", "");
    for unread in &running.unread {
        page.line(4, &Line::from(format!("  {}", words::unread(unread))));
    }
}
