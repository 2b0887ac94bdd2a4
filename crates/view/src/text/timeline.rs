//! A scenario that was played, step by step: the text of `nodewise simulate`.

use nodewise_machine::NodeCounters;
use nodewise_model::ZoneState;
use nodewise_model::simulate::Owner;

use crate::digest::timeline::{Moment, Timeline, TimelineFindingKind, shares, state};
use crate::digest::walk::size_of;
use crate::style::{Ink, Style};
use crate::text::line::{Line, Page};
use crate::text::table::{Align, Column, Keep, Table};

/// How much is reported of the zones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zones {
    /// How they are at the end.
    AtTheEnd,
    /// How they are after each step that changed them, with what the step added to the counters.
    AfterEachStep,
}

/// Writes a scenario: what each program does and takes, what went otherwise than it may look, and how the
/// nodes end.
pub fn timeline(timeline: &Timeline, zones: Zones, style: &Style) -> String {
    let mut page = Page::new(*style);
    page.heading(&timeline.title, &format!("{}, Linux {}", timeline.machine, timeline.release));
    if let Some(about) = &timeline.about {
        page.line(2, &Line::from("  ").with(Ink::Plain, about));
    }
    page.line(0, &Line::new());
    steps(timeline).write(&mut page);
    findings(timeline, &mut page);
    page.heading("Programs", "at their largest");
    programs(timeline).write(&mut page);
    others(timeline, &mut page);
    groups(timeline, &mut page);
    if zones == Zones::AfterEachStep {
        page.heading("Zones", "after each step that changed them");
        zones_by_step(timeline).write(&mut page);
        page.heading("Counters", "what each step added");
        counters_by_step(timeline).write(&mut page);
    }
    page.heading("Nodes", "at the end; what numastat counted");
    nodes(timeline).write(&mut page);
    page.heading("Zones", "at the end");
    zones_at_end(timeline).write(&mut page);
    if let Some(note) = timeline.basis.note() {
        page.line(0, &Line::new());
        page.line(2, &Line::new().with(Ink::Faint, note));
    }
    page.finish()
}

const fn column(head: &'static str, align: Align) -> Column {
    Column { head, align, keep: Keep::Always }
}

/// A column that yields, the lowest number first.
const fn weak(head: &'static str, order: u8) -> Column {
    Column { head, align: Align::Right, keep: Keep::Unless(order) }
}

fn steps(timeline: &Timeline) -> Table {
    let mut table = Table::new(vec![
        column("at", Align::Right),
        column("program", Align::Left),
        column("does", Align::Left),
        column("what and where", Align::Left),
    ]);
    for moment in &timeline.moments {
        let program = if moment.program.is_empty() { Line::blank() } else { moment.program.as_str().into() };
        table.row(vec![
            format!("{} s", moment.at_s).into(),
            program,
            moment.does().into(),
            moment_line(moment),
        ]);
    }
    table
}

/// With what a step was, and its outcome.
fn moment_line(moment: &Moment) -> Line {
    let (object, outcome) = (moment.object(), moment.outcome());
    let between = if object.is_empty() || outcome.is_empty() { "" } else { ": " };
    let is_notable = |kind: TimelineFindingKind| {
        matches!(
            kind,
            TimelineFindingKind::Refused
                | TimelineFindingKind::Killed
                | TimelineFindingKind::Skipped
                | TimelineFindingKind::Missing
        )
    };
    let ink = if moment.findings.iter().any(|finding| is_notable(finding.kind)) {
        Ink::Notable
    } else {
        Ink::Plain
    };
    if object.is_empty() && outcome.is_empty() {
        return Line::blank();
    }
    Line::new().with(Ink::Plain, format!("{object}{between}")).with(ink, outcome)
}

fn findings(timeline: &Timeline, page: &mut Page) {
    let mut findings = timeline.findings().peekable();
    if findings.peek().is_none() {
        return;
    }
    page.heading("What to know", "");
    for finding in findings {
        page.line(4, &Line::from("  ").with(Ink::Notable, &finding.sentence));
    }
}

fn programs(timeline: &Timeline) -> Table {
    let page = timeline.before.page_bytes();
    let mut table = Table::new(vec![
        column("program", Align::Left),
        column("size", Align::Right),
        column("node=size", Align::Left),
    ]);
    for (name, nodes) in &timeline.largest {
        let all = nodes.values().sum();
        let told = shares(nodes.iter().map(|(node, pages)| (*node, *pages)), page);
        let told = if told.is_empty() { Line::blank() } else { told.into() };
        table.row(vec![name.as_str().into(), size_of(all, page).into(), told]);
    }
    table
}

/// The pool, files and page cache, where they have memory that no program has.
fn others(timeline: &Timeline, out: &mut Page) {
    let page = timeline.before.page_bytes();
    let mut table = Table::new(vec![
        column("of", Align::Left),
        column("size", Align::Right),
        column("node=size", Align::Left),
    ]);
    let mut any = false;
    for (owner, placement) in &timeline.placements {
        let name = match owner {
            Owner::Program(_) => continue,
            Owner::File(name) => format!("file {name}"),
            Owner::Cache(name) => format!("page cache of {name}"),
            Owner::Pool => "pool of huge pages".to_owned(),
        };
        any = true;
        let mut told = shares(placement.nodes.iter().map(|(node, pages)| (*node, *pages)), page);
        if placement.swapped > 0 {
            let between = if told.is_empty() { "" } else { ", " };
            told += &format!("{between}swap={}", size_of(placement.swapped, page).replace(' ', ""));
        }
        table.row(vec![
            name.into(),
            size_of(placement.pages() + placement.swapped, page).into(),
            told.into(),
        ]);
    }
    if any {
        out.heading("Nobody's", "at the end");
        table.write(out);
    }
}

/// The control groups, where the scenario has any.
fn groups(timeline: &Timeline, out: &mut Page) {
    if timeline.groups.is_empty() {
        return;
    }
    let page = timeline.before.page_bytes();
    let mut table = Table::new(vec![
        column("group", Align::Left),
        column("memory", Align::Right),
        weak("at most", 2),
        column("max", Align::Right),
        weak("high", 3),
        column("swap", Align::Right),
        weak("oom", 1),
        column("killed", Align::Right),
        column("", Align::Left),
    ]);
    let limit = |size: Option<u64>| size.map_or_else(|| "-".to_owned(), |size| size_of(size, page));
    for (name, own) in &timeline.groups {
        table.row(vec![
            name.as_str().into(),
            size_of(own.memory, page).into(),
            size_of(own.peak, page).into(),
            limit(own.limits.max).into(),
            limit(own.limits.high).into(),
            size_of(own.swap, page).into(),
            own.ooms.to_string().into(),
            own.killed.to_string().into(),
            Line::blank(),
        ]);
    }
    out.heading("Groups", "at the end");
    table.write(out);
}

fn nodes(timeline: &Timeline) -> Table {
    let page = timeline.before.page_bytes();
    let mut table = counting([
        column("node", Align::Right),
        column("size", Align::Right),
        column("free", Align::Right),
        weak("least free", 5),
    ]);
    let after = &timeline.after;
    for (node, least) in &timeline.least_free {
        let counters = after.counters().get(node).copied().unwrap_or_default();
        let row = [
            node.to_string(),
            size_of(after.managed_of(*node), page),
            size_of(after.free_of(*node), page),
            size_of(*least, page),
        ];
        table.row(counted(row, &counters));
    }
    table
}

/// A table that ends with the counters of nodes.
fn counting(first: impl IntoIterator<Item = Column>) -> Table {
    let counters = [
        weak("hit", 4),
        column("miss", Align::Right),
        column("foreign", Align::Right),
        weak("interleave", 1),
        weak("local", 2),
        weak("other", 3),
        column("", Align::Left),
    ];
    Table::new(first.into_iter().chain(counters).collect())
}

/// A row of it.
fn counted(first: impl IntoIterator<Item = String>, counters: &NodeCounters) -> Vec<Line> {
    let NodeCounters { hit, miss, foreign, interleave_hit, local, other } = counters;
    let counts = [hit, miss, foreign, interleave_hit, local, other].map(u64::to_string);
    first.into_iter().chain(counts).map(Line::from).chain([Line::blank()]).collect()
}

fn zones_at_end(timeline: &Timeline) -> Table {
    let page = timeline.before.page_bytes();
    let mut table = Table::new(vec![
        column("node", Align::Right),
        column("zone", Align::Left),
        column("free", Align::Right),
        weak("min", 2),
        weak("low", 3),
        weak("high", 1),
        column("it is", Align::Left),
    ]);
    for zone in timeline.after.zones() {
        table.row(vec![
            zone.node.to_string().into(),
            zone.kind.name().into(),
            size_of(zone.free, page).into(),
            size_of(zone.marks.min, page).into(),
            size_of(zone.marks.low, page).into(),
            size_of(zone.marks.high, page).into(),
            state(zone).into(),
        ]);
    }
    table
}

fn zones_by_step(timeline: &Timeline) -> Table {
    let page = timeline.before.page_bytes();
    let mut table = Table::new(vec![
        column("at", Align::Right),
        column("node", Align::Right),
        column("zone", Align::Left),
        column("free", Align::Right),
        column("it is", Align::Left),
    ]);
    let row = |at_s: f64, zone: &ZoneState| -> Vec<Line> {
        vec![
            format!("{at_s} s").into(),
            zone.node.to_string().into(),
            zone.kind.name().into(),
            size_of(zone.free, page).into(),
            state(zone).into(),
        ]
    };
    for moment in &timeline.moments {
        for zone in &moment.zones {
            table.row(row(moment.at_s, zone));
        }
    }
    table
}

fn counters_by_step(timeline: &Timeline) -> Table {
    let mut table = counting([column("at", Align::Right), column("node", Align::Right)]);
    for moment in &timeline.moments {
        for (node, counters) in &moment.counters {
            table.row(counted([format!("{} s", moment.at_s), node.to_string()], counters));
        }
    }
    table
}

#[cfg(test)]
mod tests;
