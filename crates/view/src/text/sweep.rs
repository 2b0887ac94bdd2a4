//! The texts of `nodewise latency --sweep` and `--table`.

use std::collections::HashMap;

use nodewise_machine::{Bytes, NodeId};
use nodewise_measure::cell::PageKind;
use nodewise_measure::latency::sweep::{ChaseReport, SweepReport, levels};
use nodewise_measure::survey::Figure;

use crate::digest::counts::each_once;
use crate::digest::survey::{digits, pages_words};
use crate::digest::sweep::{ending, nodes_with_memory, page_kinds, pattern_words, short};
use crate::style::{Ink, Style};
use crate::text::line::{Line, Page};
use crate::text::survey;
use crate::text::table::{Align, Column, Keep, Table};

/// The least room for a figure in the table, with the blanks before it.
const FIGURE: usize = 8;

/// Writes a sweep: a line per size, and the levels that it shows.
pub fn sweep(report: &SweepReport, style: &Style) -> String {
    let mut page = Page::new(*style);
    for node in nodes_with_memory(report) {
        for pages in page_kinds(report) {
            if !of(report, node, pages).any(|chase| chase.cell.is_reached()) {
                continue;
            }
            let remark = format!("by the size of what is chased, in {}; ns per load", pages_words(pages));
            page.heading(&format!("Latency to node {node}"), &remark);
            sizes(report, node, pages).write(&mut page);
        }
        let levels = found(report, node);
        if levels.is_empty() {
            continue;
        }
        page.heading(
            &format!("Levels to node {node}"),
            "found from the best samples, beside what the system claims",
        );
        levels.write(&mut page);
    }
    if report.chases.iter().all(|chase| chase.cell.is_reached()) {
        unseen(report, &mut page);
    }
    survey::write(&ending(report), &mut page);
    page.finish()
}

const fn column(head: &'static str, align: Align, keep: Keep) -> Column {
    Column { head, align, keep }
}

fn text(figure: Option<&Figure>, of: &dyn Fn(&Figure) -> Option<f64>) -> Line {
    figure.and_then(of).map_or_else(Line::new, |value| Line::from(digits(value)))
}

fn sizes(report: &SweepReport, node: NodeId, pages: PageKind) -> Table {
    let mut table = Table::new(vec![
        column("size", Align::Right, Keep::Always),
        column("median", Align::Right, Keep::Always),
        column("95% interval", Align::Right, Keep::Unless(1)),
        column("best", Align::Right, Keep::Always),
        column("", Align::Left, Keep::Always),
    ]);
    for chase in of(report, node, pages).filter(|chase| chase.cell.is_reached()) {
        let figure = chase.cell.figure.as_ref();
        let interval = figure.and_then(|figure| figure.interval);
        table.row(vec![
            chase.size.to_string().into(),
            text(figure, &|figure| Some(figure.median)),
            interval.map_or_else(Line::new, |interval| {
                Line::from(format!("{}-{}", digits(interval.low), digits(interval.high)))
            }),
            text(figure, &|figure| Some(figure.best)),
            remark(chase),
        ]);
    }
    table
}

/// The chases to the memory of a node in one kind of pages.
fn of(report: &SweepReport, node: NodeId, pages: PageKind) -> impl Iterator<Item = &ChaseReport> {
    report.chases.iter().filter(move |chase| (chase.cell.memory, chase.cell.pages) == (node, pages))
}

fn remark(chase: &ChaseReport) -> Line {
    match (&chase.cell.refused, chase.cell.disturbed) {
        (Some(why), _) => Line::new().with(Ink::Notable, why),
        (None, true) => Line::new().with(Ink::Notable, "disturbed"),
        (None, false) => Line::blank(),
    }
}

fn found(report: &SweepReport, node: NodeId) -> Table {
    let mut table = Table::new(vec![
        column("holds", Align::Right, Keep::Always),
        column("ns", Align::Right, Keep::Always),
        column("the system claims", Align::Left, Keep::Always),
    ]);
    let pages = page_kinds(report).first().copied().unwrap_or(PageKind::Small);
    for level in levels(&report.staircase(node, pages)) {
        let holds = if level.is_last { format!("{} and more", level.holds) } else { level.holds.to_string() };
        let claim = match report.claim_of(&level) {
            Some(claimed) => Line::from(format!("{} {}", claimed.name, claimed.size)),
            None if level.is_last => Line::from("memory, or a cache larger than what was tried"),
            None => Line::new().with(Ink::Notable, "nothing of this size"),
        };
        table.row(vec![holds.into(), digits(level.ns).into(), claim]);
    }
    table
}

/// Caches that are claimed and do not show.
fn unseen(report: &SweepReport, page: &mut Page) {
    let pages = page_kinds(report).first().copied().unwrap_or(PageKind::Small);
    let seen: Vec<&str> = nodes_with_memory(report)
        .into_iter()
        .flat_map(|node| levels(&report.staircase(node, pages)))
        .filter_map(|level| report.claim_of(&level).map(|claimed| claimed.name.as_str()))
        .collect();
    for claimed in report.claimed.iter().filter(|claimed| !seen.contains(&claimed.name.as_str())) {
        let line = format!("  {} of {} is claimed and does not show", claimed.name, claimed.size);
        page.line(4, &Line::new().with(Ink::Notable, line));
    }
}

/// Writes the table of sizes and ways, one block for each node.
pub fn table(report: &SweepReport, style: &Style) -> String {
    let mut page = Page::new(*style);
    let mut sizes: Vec<Bytes> = report.chases.iter().map(|chase| chase.size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let patterns = each_once(report.chases.iter().map(|chase| chase.pattern));
    let names: Vec<String> = patterns.iter().map(|pattern| pattern_words(*pattern)).collect();
    let first = names.iter().map(String::len).max().unwrap_or(0);
    let room = (page.width().saturating_sub(first + 2) / FIGURE).max(1);
    let mut chases = HashMap::new();
    for chase in &report.chases {
        chases.entry((chase.cell.memory, chase.size, chase.pattern)).or_insert(chase);
    }
    for node in nodes_with_memory(report) {
        if report.chases.iter().all(|chase| chase.cell.memory != node || !chase.cell.is_reached()) {
            continue;
        }
        let from = report.chases.iter().find(|chase| chase.cell.memory == node).map(|chase| chase.cell.from);
        let place = match from {
            Some(from) if from == node => "local".to_owned(),
            Some(from) => format!("remote, from node {from}"),
            None => String::new(),
        };
        page.heading(&format!("Memory of node {node}"), &format!("{place}; ns"));
        for block in sizes.chunks(room) {
            let mut heads = Line::from(format!("  {:first$}", ""));
            block.iter().for_each(|size| heads.push(Ink::Faint, format!("{:>FIGURE$}", short(*size))));
            page.line(2, &heads);
            for (pattern, name) in patterns.iter().zip(&names) {
                let mut line = Line::from(format!("  {name:<first$}"));
                for size in block {
                    let chase = chases.get(&(node, *size, *pattern));
                    let figure = chase.and_then(|chase| chase.cell.figure.as_ref());
                    let mark = if chase.is_some_and(|chase| chase.cell.disturbed) { "!" } else { "" };
                    let text =
                        figure.map_or_else(|| "-".to_owned(), |f| format!("{}{mark}", digits(f.median)));
                    line.push(Ink::Plain, format!("{text:>FIGURE$}"));
                }
                page.line(2, &line);
            }
        }
    }
    page.line(2, &Line::new());
    let words = "  random is the latency of a load; stride N steps over N elements of 8 bytes until all were \
                 visited: the cost of an access that caches can fetch ahead, no latency. ! was disturbed.";
    page.line(2, &Line::new().with(Ink::Faint, words));
    survey::write(&ending(report), &mut page);
    page.finish()
}
