//! Two moments: the facts of nodes and the processes that changed, each before, after, and the difference.

use std::time::Duration;

use nodewise_diagnose::matching::MatchedBy;
use nodewise_diagnose::{Relation, Window};
use nodewise_machine::{Bytes, NodeId};

use super::{column, percent, size};
use crate::digest::counts::{by_count, plural};
use crate::digest::estimate::{Estimate, signed};
use crate::digest::running::comparison::{
    BeforeAfter, ComparedMoment, FactRow, ProcessComparison, ProcessSide, RunningComparison,
};
use crate::digest::running::fact::FactUnit;
use crate::digest::running::words;
use crate::style::{Ink, Style};
use crate::text::line::{Line, Page};
use crate::text::table::{Align, Keep, Table};

/// Facts of a unit that are listed.
const MOST_FACTS: usize = 24;
/// Nodes that are named of one process.
const NODES: usize = 4;

/// Writes the conclusion, the moments, nodes and processes.
pub fn comparison(comparison: &RunningComparison, style: &Style) -> String {
    let mut page = Page::new(*style);
    page.line(2, &Line::new().with(Ink::Strong, comparison.headline()));
    page.line(4, &Line::from("  ").with(Ink::Faint, moment("before", &comparison.before)));
    page.line(4, &Line::from("  ").with(Ink::Faint, moment("after", &comparison.after)));
    for sentence in warnings(comparison) {
        page.line(4, &Line::from("  ").with(Ink::Notable, sentence));
    }
    facts("Memory of nodes", FactUnit::Bytes, comparison, &mut page);
    facts("Shares of time", FactUnit::Share, comparison, &mut page);
    facts("Per second", FactUnit::PerSecond, comparison, &mut page);
    both(comparison, &mut page);
    only("Only before", &comparison.only_before, comparison.left_out[1], &mut page);
    only("Only after", &comparison.only_after, comparison.left_out[2], &mut page);
    page.finish()
}

fn moment(label: &str, moment: &ComparedMoment) -> String {
    let window = match moment.window {
        Window::Interval(length) => format!("rates of the {} before it", time(length)),
        Window::SinceBoot(_) => "rates since boot: it is the only sample".to_owned(),
    };
    let at = match moment.at {
        at if at.is_zero() => "its beginning".to_owned(),
        at => format!("{} after its beginning", time(at)),
    };
    format!("{label}: {}, {at}; {window}; {}", moment.name, process_count(moment.process_count))
}

fn process_count(processes: usize) -> String {
    format!("{processes} {}", by_count(&processes, "process", "processes"))
}

/// A time with a digit behind the point below a minute, with seconds below an hour.
fn time(time: Duration) -> String {
    match time.as_secs() {
        0..60 => format!("{:.1} s", time.as_secs_f64()),
        seconds @ 60..3600 if seconds % 60 > 0 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => words::duration(time),
    }
}

/// Sentences about what makes the moments less comparable.
fn warnings(comparison: &RunningComparison) -> Vec<String> {
    let mut sentences = Vec::new();
    if let Some(why) = comparison.relation.words() {
        let differences = match comparison.relation {
            Relation::OtherMachine => format!(" ({})", comparison.differences.join("; ")),
            _ => String::new(),
        };
        sentences.push(format!("{why}{differences}: processes are matched by name and service"));
    }
    if comparison.relation == Relation::OtherBoot && !comparison.differences.is_empty() {
        sentences.push(comparison.differences.join("; "));
    }
    if comparison.is_backwards() {
        sentences.push("the moment compared with (--against) is the later one".to_owned());
    }
    sentences
}

fn facts(title: &str, unit: FactUnit, comparison: &RunningComparison, page: &mut Page) {
    let notable = comparison.notable(unit);
    let all = comparison.facts.iter().filter(|fact| fact.unit == unit).count();
    if all == 0 {
        return;
    }
    if notable.is_empty() {
        page.heading(title, "no notable change");
        return;
    }
    page.heading(title, "largest change first");
    let mut table = Table::new(vec![
        column("node", Align::Right, Keep::Always),
        column("before", Align::Right, Keep::Always),
        column("after", Align::Right, Keep::Always),
        column("change", Align::Right, Keep::Always),
        column("", Align::Left, Keep::Always),
    ]);
    for fact in notable.iter().take(MOST_FACTS) {
        table.row(vec![
            Line::new()
                .with(Ink::Strong, fact.node.map_or_else(|| "all".to_owned(), |node| node.to_string())),
            value(unit, fact.value.before),
            value(unit, fact.value.after),
            change(fact),
            Line::from(fact.words()),
        ]);
    }
    table.write(page);
    let left = all - notable.len().min(MOST_FACTS);
    if left > 0 {
        let text = format!("  {} with less change not listed (--json has all)", plural(left, "fact"));
        page.line(2, &Line::new().with(Ink::Faint, text));
    }
}

fn value(unit: FactUnit, value: Option<f64>) -> Line {
    match unit {
        FactUnit::Bytes => size(value.map(|value| Bytes::new(value as u64))),
        FactUnit::Share => percent(value),
        FactUnit::PerSecond => value.map_or_else(Line::new, |value| Line::from(words::grouped(value))),
    }
}

fn change(fact: &FactRow) -> Line {
    let Some(change) = fact.value.change() else { return Line::new() };
    Line::from(match fact.unit {
        FactUnit::Bytes => signed(change as i128),
        FactUnit::Share => signed_share(change),
        FactUnit::PerSecond => format!("{}{}", sign(change < 0.0), words::grouped(change.abs())),
    })
}

const fn sign(is_negative: bool) -> &'static str {
    if is_negative { "-" } else { "+" }
}

fn signed_share(change: f64) -> String {
    // What rounds to nothing has no sign.
    if change.abs() < 0.0005 {
        return "0 %".to_owned();
    }
    format!("{}{}", sign(change < 0.0), words::percent(change.abs()))
}

fn both(comparison: &RunningComparison, page: &mut Page) {
    let notable = comparison.notable_processes();
    if comparison.processes.is_empty() {
        return;
    }
    if notable.is_empty() {
        page.heading("Processes of both moments", "no notable change");
        return;
    }
    page.heading("Processes of both moments", "largest change first");
    let right = |head, keep| column(head, Align::Right, keep);
    let mut table = Table::new(vec![
        right("PID", Keep::Always),
        column("name", Align::Left, Keep::Always),
        right("before", Keep::Unless(3)),
        right("after", Keep::Unless(4)),
        right("memory +/-", Keep::Always),
        right("CPU before", Keep::Unless(1)),
        right("CPU after", Keep::Unless(2)),
        right("CPU +/-", Keep::Always),
        column("memory by node", Align::Left, Keep::Always),
    ]);
    for row in &notable {
        let (memory, cpu) = (row.resident(), row.cpu());
        table.row(vec![
            Line::from(pids(row)),
            Line::new().with(Ink::Strong, &row.name),
            size(memory.before),
            size(memory.after),
            memory.change().map_or_else(Line::new, |change| Line::from(signed(change))),
            percent(cpu.before),
            percent(cpu.after),
            cpu.change().map_or_else(Line::new, |change| Line::from(signed_share(change))),
            Line::from(by_node(row)),
        ]);
    }
    table.write(page);
    let mut notes = Vec::new();
    if notable.iter().any(|row| row.by == MatchedBy::Name) {
        notes.push("= matched by name and service: another process of the name, or all of them".to_owned());
    }
    if notable.iter().any(|row| is_drawn(row)) {
        notes.push("~ from a sample of pages".to_owned());
    }
    let left = comparison.processes.len() - notable.len() + comparison.left_out[0];
    if left > 0 {
        let entries = by_count(&left, "entry", "entries");
        notes.push(format!("{left} {entries} with less change not listed (--top N, --json)"));
    }
    for note in notes {
        page.line(2, &Line::from("  ").with(Ink::Faint, note));
    }
}

fn is_drawn(row: &ProcessComparison) -> bool {
    [&row.before, &row.after].into_iter().flatten().any(|side| side.is_drawn)
}

/// The number of a process; of several the first, marked.
fn pids(row: &ProcessComparison) -> String {
    let side = row.after.as_ref().or(row.before.as_ref());
    let first = side.and_then(|side| side.pids.first()).map(ToString::to_string).unwrap_or_default();
    if row.by == MatchedBy::Name { format!("={first}") } else { first }
}

/// The nodes whose part changed, largest first; what sampling alone can explain is left out.
fn by_node(row: &ProcessComparison) -> String {
    let mark = if is_drawn(row) { "~" } else { "" };
    let changed = |(node, sizes): (NodeId, BeforeAfter<Estimate>)| {
        let change = sizes.change().filter(|change| !change.may_be_none())?;
        Some(format!("{node}: {mark}{}", signed(change.change)))
    };
    let words: Vec<String> = row.nodes().into_iter().flatten().filter_map(changed).collect();
    if words.len() <= NODES {
        return words.join(", ");
    }
    format!("{}, {}", words[..NODES].join(", "), plural(words.len() - NODES, "other node"))
}

fn only(title: &str, rows: &[ProcessComparison], left_out: usize, page: &mut Page) {
    if rows.is_empty() {
        return;
    }
    page.heading(title, "largest first");
    let mut table = Table::new(vec![
        column("PID", Align::Right, Keep::Always),
        column("memory", Align::Right, Keep::Always),
        column("CPU", Align::Right, Keep::Always),
        column("name", Align::Left, Keep::Always),
    ]);
    for row in rows {
        let Some(side) = row.after.as_ref().or(row.before.as_ref()) else { continue };
        table.row(vec![
            Line::from(side.pids.first().map(ToString::to_string).unwrap_or_default()),
            size(side.resident),
            percent(side.cpu_share),
            Line::new().with(Ink::Strong, &row.name).with(Ink::Faint, others(side)),
        ]);
    }
    table.write(page);
    if left_out > 0 {
        page.line(2, &Line::from("  ").with(Ink::Faint, format!("and {left_out} more (--top N)")));
    }
}

/// How many processes of the name there are beside the first.
fn others(side: &ProcessSide) -> String {
    match side.pids.len() {
        0 | 1 => String::new(),
        count => format!(" and {} of the name", plural(count - 1, "other")),
    }
}
