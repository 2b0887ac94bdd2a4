//! A process's mappings: the text of `nodewise maps`.

mod comparison;

use nodewise_machine::mapping::{Mapping, MappingsMethod};
use nodewise_machine::{Bytes, NodeId};

use crate::digest::counts::{by_count, plural};
use crate::digest::maps::{GroupBy, Maps, PageRuns, Tally, policy_words};
use crate::style::{Ink, Style};
use crate::text::line::{Line, Page};
use crate::text::table::{Align, Column, Keep, Table};

pub use comparison::{age_words, comparison};

/// The columns that a size takes: `999.9 GiB`, and the room before it.
const SIZE: usize = 9;
const GAP: usize = 2;
/// Mappings that are named without `--all`, and groups of files or policies.
const LARGEST: usize = 5;
const GROUPS: usize = 20;
/// Nodes that are named of one mapping.
const NODES: usize = 3;
/// Processes that are named of one file.
const PROCESSES: usize = 4;

/// How many mappings the text names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    Largest,
    All,
}

/// Writes the mappings of a process.
pub fn maps(maps: &Maps<'_>, named: Named, style: &Style) -> String {
    let mut page = Page::new(*style);
    head(maps, &mut page);
    groups(maps, &mut page);
    page_sizes(maps, &mut page);
    policies(maps, &mut page);
    mappings(maps, named, &mut page);
    let findings = maps.findings();
    if !findings.is_empty() {
        page.heading("Findings", "");
        for finding in findings {
            page.line(4, &Line::new().with(Ink::Notable, format!("  {finding}")));
        }
    }
    for note in &maps.process.notes {
        page.line(2, &Line::new().with(Ink::Notable, format!("Note: {note}")));
    }
    page.finish()
}

fn head(maps: &Maps<'_>, page: &mut Page) {
    let process = maps.process;
    let name = process.name.as_deref().unwrap_or("(no name)");
    let resident = process.resident.unwrap_or_else(|| maps.all().all());
    let count = plural(process.mappings.len(), "mapping");
    let line = Line::new()
        .with(Ink::Strong, format!("{} {name}", process.pid))
        .with(Ink::Plain, format!(": {resident} resident in {count}"));
    page.line(2, &line);
    page.line(2, &Line::new().with(Ink::Faint, format!("  {}", maps.method())));
}

/// The nodes that have a column each, ascending, and those that share the last one. Those that come first are
/// the most important.
fn columns_of(mut own: Vec<NodeId>, fit: usize) -> (Vec<NodeId>, Vec<NodeId>) {
    let fit = fit.max(1);
    let others = if own.len() <= fit { Vec::new() } else { own.split_off((fit - 1).max(1)) };
    own.sort_unstable();
    (own, others)
}

fn groups(maps: &Maps<'_>, page: &mut Page) {
    let groups = maps.groups();
    let (what, most) = match maps.by {
        GroupBy::Kind => ("kind", usize::MAX),
        GroupBy::File => ("file", GROUPS),
        GroupBy::Policy => ("policy", GROUPS),
    };
    page.heading(&format!("Memory by {what} and node"), "");
    let all = maps.all();
    let rows: Vec<(&str, &Tally)> =
        groups.iter().take(most).map(|(name, tally)| (name.as_str(), tally)).chain([("all", &all)]).collect();
    let widest = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let label = widest.min(page.width() / 3);
    let room = page.width().saturating_sub(2 * GAP + label + SIZE + GAP);
    let nodes = all.shares().into_iter().map(|(node, _)| node).collect();
    let (own, others) = columns_of(nodes, room / (SIZE + GAP));
    let column = |align| Column { head: "", align, keep: Keep::Always };
    let mut columns = vec![column(Align::Left)];
    columns.extend(own.iter().map(|_| column(Align::Right)));
    columns.extend((!others.is_empty()).then(|| column(Align::Right)));
    columns.push(column(Align::Left));
    let mut table = Table::new(columns);
    let faint = |text: String| Line::new().with(Ink::Faint, text);
    let mut head = vec![Line::blank()];
    head.extend(own.iter().map(|node| faint(format!("node {node}"))));
    head.extend((!others.is_empty()).then(|| faint(plural(others.len(), "other"))));
    head.push(faint(format!("{:>SIZE$}", "all")));
    table.row(head);
    for (name, tally) in rows {
        // Where no page was drawn, no node is known.
        let size = |size: Bytes| if tally.is_unseen() { Line::new() } else { Line::from(zero_or(size)) };
        let mut cells = vec![Line::from(shortened(name, label))];
        cells.extend(own.iter().map(|node| size(tally.on(*node).size)));
        let rest: Bytes = others.iter().map(|node| tally.on(*node).size).sum();
        cells.extend((!others.is_empty()).then(|| size(rest)));
        cells.push(Line::from(format!("{:>SIZE$}", zero_or(tally.all()))));
        table.row(cells);
    }
    table.write(page);
    if let Some(left) = groups.len().checked_sub(most).filter(|left| *left > 0) {
        page.line(2, &faint(format!("  and {left} more (--json has all)")));
    }
    intervals(&all, &own, page);
    page.line(2, &faint("  Shared pages count in each process that maps them.".to_owned()));
}

/// The intervals of all memory, where it was sampled.
fn intervals(all: &Tally, nodes: &[NodeId], page: &mut Page) {
    if all.is_exact() {
        return;
    }
    let words: Vec<String> = nodes
        .iter()
        .map(|node| {
            let estimate = all.on(*node);
            format!("node {node} {} to {}", estimate.low, estimate.high)
        })
        .collect();
    page.line(4, &Line::new().with(Ink::Faint, format!("  95 % intervals: {}", words.join("; "))));
}

fn zero_or(size: Bytes) -> String {
    if size == Bytes::new(0) { "0".to_owned() } else { size.to_string() }
}

/// The end of a text that is too long: of a path it says most.
fn shortened(text: &str, most: usize) -> String {
    let length = text.chars().count();
    if length <= most {
        return text.to_owned();
    }
    let skip = length - most.saturating_sub(3);
    format!("...{}", text.chars().skip(skip).collect::<String>())
}

fn page_sizes(maps: &Maps<'_>, page: &mut Page) {
    let sizes = maps.page_sizes();
    let all: Bytes = sizes.iter().map(|(_, size)| *size).sum();
    let words: Vec<String> = sizes
        .iter()
        .map(|(name, size)| format!("{name} {size} ({:.0} %)", size.get() as f64 / all.get() as f64 * 100.0))
        .collect();
    if !words.is_empty() {
        page.heading("Page sizes", "");
        page.line(2, &Line::from(format!("  {}", words.join(", "))));
    }
}

fn policies(maps: &Maps<'_>, page: &mut Page) {
    let policies = maps.policies();
    if policies.is_empty() {
        if maps.process.method != MappingsMethod::NoNodes {
            page.heading("Policies", "not read: they are in numa_maps (--exact)");
        }
        return;
    }
    page.heading("Policies", "");
    let column = |align| Column { head: "", align, keep: Keep::Always };
    let mut table = Table::new(vec![column(Align::Left), column(Align::Right), column(Align::Left)]);
    for (text, tally) in policies.iter().take(GROUPS) {
        table.row(vec![
            Line::from(*text),
            Line::from(tally.all().to_string()),
            Line::from(tally.words(NODES)),
        ]);
    }
    table.write(page);
    if let Some(left) = policies.len().checked_sub(GROUPS).filter(|left| *left > 0) {
        page.line(2, &Line::new().with(Ink::Faint, format!("  and {left} more (--json has all)")));
    }
}

fn mappings(maps: &Maps<'_>, named: Named, page: &mut Page) {
    let mappings: Vec<(usize, &Mapping)> = match named {
        Named::Largest => maps.largest(LARGEST),
        Named::All => maps.process.mappings.iter().enumerate().collect(),
    };
    if mappings.is_empty() {
        return;
    }
    let remark = if named == Named::Largest { "--all names the others" } else { "" };
    page.heading(if named == Named::Largest { "Largest mappings" } else { "Mappings" }, remark);
    let column = |head, align, keep| Column { head, align, keep };
    let mut table = Table::new(vec![
        column("start", Align::Left, Keep::Always),
        column("resident", Align::Right, Keep::Always),
        column("page", Align::Right, Keep::Unless(1)),
        column("THP", Align::Right, Keep::Unless(2)),
        column("swapped", Align::Right, Keep::Unless(3)),
        column("policy", Align::Left, Keep::Unless(4)),
        column("nodes", Align::Left, Keep::Always),
        column("name", Align::Left, Keep::Always),
    ])
    .naming_omitted();
    let known = |size: Option<Bytes>| {
        size.filter(|size| *size > Bytes::new(0)).map_or_else(Line::new, |size| Line::from(size.to_string()))
    };
    for (at, mapping) in mappings {
        let tally = Tally::from_mappings([mapping]);
        let mut name = Line::from(mapping.name.as_deref().unwrap_or(mapping.kind.words()));
        if let Some(others) = maps.shared_with.and_then(|shared| shared.processes.get(&at)) {
            name.push(Ink::Plain, format!(" (also in {})", processes(others)));
        }
        if mapping.unsure {
            name.push(Ink::Notable, " (changed while it was read)");
        }
        let resident = mapping.resident().map(zero_or).unwrap_or_default();
        table.row(vec![
            format!("{:x}", mapping.start).into(),
            resident.into(),
            mapping.page_size.map(|size| Line::from(size.exact())).unwrap_or_default(),
            known(mapping.transparent),
            known(mapping.swapped),
            policy_words(mapping).map(Line::from).unwrap_or_default(),
            tally.words(NODES).into(),
            name,
        ]);
    }
    table.write(page);
    if let Some(unreadable) = maps.shared_with.map(|shared| shared.unreadable).filter(|count| *count > 0) {
        let text = format!(
            "  {unreadable} {} could not be read: others may map the same (root may read them)",
            by_count(&unreadable, "process", "processes")
        );
        page.line(2, &Line::new().with(Ink::Faint, text));
    }
}

/// `812 postgres, 813 postgres, 9 more`.
fn processes(others: &[(u32, Option<String>)]) -> String {
    let mut words: Vec<String> = others
        .iter()
        .take(PROCESSES)
        .map(|(pid, name)| name.as_ref().map_or_else(|| pid.to_string(), |name| format!("{pid} {name}")))
        .collect();
    if let Some(more) = others.len().checked_sub(PROCESSES).filter(|more| *more > 0) {
        words.push(format!("{more} more"));
    }
    words.join(", ")
}

/// Writes the nodes of single pages as runs.
pub fn page_runs(runs: &PageRuns, style: &Style) -> String {
    let mut page = Page::new(*style);
    for run in &runs.runs {
        let node = run.node.map_or_else(|| "not present".to_owned(), |node| format!("node {node}"));
        page.line(4, &Line::from(format!("{:x}  {}  {node}", run.start, plural(run.pages, "page"))));
    }
    page.finish()
}
