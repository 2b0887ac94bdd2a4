//! Nodes: a column each where they fit, otherwise a row each.

use nodewise_diagnose::MemoryUse;
use nodewise_machine::Bytes;

use super::{column, number, percent, size};
use crate::digest::running::fact::fact_words;
use crate::digest::running::{NodeRow, Running, words};
use crate::style::Ink;
use crate::text::line::{Line, Page};
use crate::text::table::{Align, Keep, Table};

/// Blank columns between two nodes.
const GAP: usize = 2;

/// A fact of every node.
struct Fact {
    label: String,
    /// A node below its high watermark and similar is marked.
    cells: Vec<Line>,
    all: Line,
}

/// Writes the nodes.
pub(super) fn write(running: &Running, page: &mut Page) {
    page.heading("Nodes", &words::window(running));
    if running.nodes.is_empty() {
        page.line(4, &Line::from("  none: the kernel does not describe any"));
        return;
    }
    let facts = facts(running);
    if !columns(running, &facts, page) {
        rows(running, page);
    }
    for remark in words::remarks(running) {
        page.line(4, &Line::from(format!("  {remark}")));
    }
}

fn facts(running: &Running) -> Vec<Fact> {
    let mut facts = Vec::new();
    let mut add = |label: &str, cell: &dyn Fn(&NodeRow) -> Line, all: Line| {
        let cells: Vec<Line> = running.nodes.iter().map(cell).collect();
        if cells.iter().any(|cell| !cell.is_empty()) {
            facts.push(Fact { label: label.to_owned(), cells, all });
        }
    };
    add(
        "CPU busy",
        &|row| percent(row.load.map(|load| load.busy)),
        percent(running.cpus.map(|load| load.busy)),
    );
    add(
        "  busiest CPU",
        &|row| percent(row.load.map(|load| load.busiest.1)),
        percent(running.cpus.map(|load| load.busiest.1)),
    );
    add(
        "memory",
        &|row| size(row.size.map(|size| size.size)),
        size(running.total(|row| Some(row.size?.size))),
    );
    add("  free", &free, size(running.total(|row| row.size?.free)));
    for (at, name) in MemoryUse::PARTS.into_iter().enumerate() {
        let part = |row: &NodeRow| {
            row.memory.and_then(|memory| memory.parts()[at].1).filter(|size| at < 4 || size.get() > 0)
        };
        add(&format!("  {}", fact_words(name)), &|row| size(part(row)), size(running.total(part)));
    }
    let rest = |row: &NodeRow| row.memory.map(|memory| memory.rest);
    add("  rest", &|row| size(rest(row)), size(running.total(rest)));
    let mut count = |label: &str, count: &dyn Fn(&NodeRow) -> Option<u64>| {
        add(label, &|row| number(running.rate(count(row))), number(running.rate(running.count(count))));
    };
    count("pages given per second", &|row| Some(row.allocations.hit?.saturating_add(row.allocations.miss?)));
    count(&format!("  {}", fact_words("hit")), &|row| row.allocations.hit);
    count(&format!("  {}", fact_words("miss")), &|row| row.allocations.miss);
    count(&format!("  {}", fact_words("other")), &|row| row.allocations.other);
    count(fact_words("foreign"), &|row| row.allocations.foreign);
    let moved = |count: Option<u64>| count.filter(|count| *count > 0);
    count("promoted pages per second", &|row| moved(row.promoted));
    count("demoted pages per second", &|row| moved(row.demoted));
    facts
}

/// Free memory, marked where it is below the watermark.
fn free(row: &NodeRow) -> Line {
    let free = row.size.and_then(|size| size.free);
    free.map_or_else(Line::new, |free| {
        if row.is_low() {
            Line::new().with(Ink::Notable, format!("{free}!"))
        } else {
            Line::from(free.to_string())
        }
    })
}

/// Writes a column for each node; says whether they fit.
fn columns(running: &Running, facts: &[Fact], page: &mut Page) -> bool {
    let has_all = running.nodes.len() > 1;
    let label = facts.iter().map(|fact| fact.label.len()).max().unwrap_or(0);
    let head = |at: usize| format!("node {}", running.nodes[at].node);
    let widths: Vec<usize> = (0..running.nodes.len())
        .map(|at| {
            facts.iter().map(|fact| fact.cells[at].columns()).chain([head(at).len()]).max().unwrap_or(0)
        })
        .collect();
    let all = facts.iter().map(|fact| fact.all.columns()).chain([3]).max().unwrap_or(0);
    let taken = GAP + label + widths.iter().map(|width| GAP + width).sum::<usize>();
    if taken + if has_all { GAP + all } else { 0 } > page.width() {
        return false;
    }
    let mut write = |name: &str, cells: &[Line], last: &Line| {
        let mut line = Line::from(format!("  {name:label$}"));
        let cells = cells.iter().zip(&widths);
        for (cell, width) in cells.chain(has_all.then_some((last, &all))) {
            let cell = if cell.is_empty() { &Line::new().with(Ink::Faint, "-") } else { cell };
            line.push(Ink::Plain, " ".repeat(GAP + width.saturating_sub(cell.columns())));
            line.append(cell);
        }
        page.line(GAP, &line);
    };
    let heads: Vec<Line> =
        (0..running.nodes.len()).map(|at| Line::new().with(Ink::Faint, head(at))).collect();
    write("", &heads, &Line::new().with(Ink::Faint, "all"));
    for fact in facts {
        write(&fact.label, &fact.cells, &fact.all);
    }
    true
}

/// Writes a row for each node, with the columns that there is room for.
fn rows(running: &Running, page: &mut Page) {
    let right =
        |head, order| column(head, Align::Right, if order == 0 { Keep::Always } else { Keep::Unless(order) });
    let mut table = Table::new(vec![
        right("node", 0),
        right("CPU", 0),
        right("busiest", 9),
        right("memory", 12),
        right("free", 0),
        right("anon", 11),
        right("files", 10),
        right("shared", 5),
        right("slab", 4),
        right("pools", 6),
        right("rest", 3),
        right("hit/s", 2),
        right("miss/s", 8),
        right("foreign/s", 7),
        right("other/s", 1),
        column("", Align::Left, Keep::Always),
    ])
    .naming_omitted();
    for row in &running.nodes {
        let rate = |count: Option<u64>| number(running.rate(count));
        let memory = |part: fn(&MemoryUse) -> Option<Bytes>| size(row.memory.as_ref().and_then(part));
        table.row(vec![
            Line::new().with(Ink::Strong, row.node.to_string()),
            percent(row.load.map(|load| load.busy)),
            percent(row.load.map(|load| load.busiest.1)),
            size(row.size.map(|size| size.size)),
            free(row),
            memory(|memory| memory.anonymous),
            memory(|memory| memory.file),
            memory(|memory| memory.shared),
            memory(|memory| memory.slab),
            memory(|memory| memory.huge_pools),
            memory(|memory| Some(memory.rest)),
            rate(row.allocations.hit),
            rate(row.allocations.miss),
            rate(row.allocations.foreign),
            rate(row.allocations.other),
            if row.is_low() { Line::new().with(Ink::Notable, "low") } else { Line::blank() },
        ]);
    }
    table.write(page);
}
