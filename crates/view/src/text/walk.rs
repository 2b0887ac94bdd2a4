//! What becomes of a request, step by step: the text of `nodewise explain`.

use nodewise_machine::{Bytes, NodeId, PolicyMode};
use nodewise_model::Counters;
use nodewise_model::pcp::largest_refill;
use nodewise_model::walk::{Mark, OutOfMemory, Share, Stretch};

use super::cost;
use super::explain::rule;
use crate::digest::walk::{Walk, consequence, size};
use crate::style::{Ink, Style};
use crate::text::line::{Line, Page};
use crate::text::table::{Align, Column, Keep, Table};

/// Writes which nodes give the pages of a request, when each gives way, what happens at the end, and
/// what is counted.
pub fn walk(walk: &Walk<'_>, style: &Style) -> String {
    let mut page = Page::new(*style);
    let asked = walk.size_bytes.map_or("all there is".to_owned(), |size| Bytes::new(size).to_string());
    let remark = format!("{asked}, touched by a CPU of node {}, Linux {}", walk.cpu_node, walk.release);
    page.heading(&format!("Memory  {}", walk.policy.effective()), &remark);
    page.line(2, &format!("  {}", rule(&walk.policy.effective())).into());
    page.line(0, &Line::new());
    steps(walk).write(&mut page);
    if let Some(end) = &walk.outcome.out_of_memory {
        page.line(2, &Line::from("  ").with(Ink::Notable, last_step(walk, end)));
    }
    page.heading("Nodes", "pages of 4 KiB");
    nodes(walk).write(&mut page);
    page.heading("Counters", "what numastat gains");
    counters(walk).write(&mut page);
    if let Some(reading) = walk.reading {
        cost::reading(&mut page, reading, walk.cpu_node.number());
    }
    if !walk.trace.is_empty() {
        page.heading("Functions of the kernel", "as Linux 6.12 names them");
        let mut table = Table::new(vec![column("function", Align::Left), column("does", Align::Left)]);
        for passed in walk.trace {
            table.row(vec![passed.function.into(), passed.does.as_str().into()]);
        }
        table.write(&mut page);
    }
    page.line(0, &Line::new());
    for sentence in notes(walk) {
        page.line(2, &Line::new().with(Ink::Faint, sentence));
    }
    page.finish()
}

const fn column(head: &'static str, align: Align) -> Column {
    Column { head, align, keep: Keep::Always }
}

const fn figure(head: &'static str, keep: Keep) -> Column {
    Column { head, align: Align::Right, keep }
}

const fn interleaves(walk: &Walk<'_>) -> bool {
    matches!(walk.policy.mode, PolicyMode::Interleave | PolicyMode::WeightedInterleave)
}

fn steps(walk: &Walk<'_>) -> Table {
    let mut table = Table::new(vec![
        column("step", Align::Right),
        column("pages", Align::Right),
        figure("size", Keep::Unless(1)),
        column("of zones above", Align::Left),
        column("from node:zone", Align::Left),
    ]);
    for (number, stretch) in walk.outcome.stretches.iter().enumerate() {
        let small: u64 = pages(stretch);
        let huge =
            if stretch.order > 0 { format!("{} huge", small >> stretch.order) } else { small.to_string() };
        table.row(vec![
            (number + 1).to_string().into(),
            huge.into(),
            size(small).into(),
            mark(stretch).into(),
            sources(stretch).into(),
        ]);
    }
    table
}

fn pages(stretch: &Stretch) -> u64 {
    stretch.shares.iter().map(|share| share.pages << stretch.order).sum()
}

fn mark(stretch: &Stretch) -> &'static str {
    let has = |mark| stretch.shares.iter().any(|share| share.mark == mark);
    match (has(Mark::Low), has(Mark::Min)) {
        (true, true) => "low or min",
        (false, true) => "min",
        _ => "low",
    }
}

/// The zones of a stretch: one with its node, of several the nodes.
fn sources(stretch: &Stretch) -> String {
    match &stretch.shares[..] {
        [share] => format!("{}:{}", share.node, share.kind),
        shares => {
            let one = |share: &Share| format!("{}:{}={}", share.node, share.kind, share.pages);
            shares.iter().map(one).collect::<Vec<_>>().join(", ")
        }
    }
}

/// What happens when no page is left to give.
fn last_step(walk: &Walk<'_>, end: &OutOfMemory) -> String {
    let consequence = consequence(end, walk.after);
    match walk.size_bytes {
        Some(_) => format!("{} are missing: {consequence}", size(end.pages)),
        None => consequence,
    }
}

fn nodes(walk: &Walk<'_>) -> Table {
    let mut table = Table::new(vec![
        column("node", Align::Right),
        column("free", Align::Right),
        column("taken", Align::Right),
        column("left", Align::Left),
    ]);
    for change in walk.nodes() {
        row(&mut table, change.node, &[change.before, change.before - change.after, change.after]);
    }
    table
}

fn counters(walk: &Walk<'_>) -> Table {
    // Where all do not fit: nothing falls to turns without interleaving, and what is local follows from
    // the CPU's node.
    let (turns, local) = if interleaves(walk) { (2, 1) } else { (1, 2) };
    let mut table = Table::new(vec![
        column("node", Align::Right),
        column("hit", Align::Right),
        column("miss", Align::Right),
        column("foreign", Align::Right),
        figure("interleave", Keep::Unless(turns)),
        figure("local", Keep::Unless(local)),
        column("other", Align::Left),
    ]);
    for change in walk.nodes() {
        let Counters { hit, miss, foreign, interleave_hit, local, other } = change.counters;
        row(&mut table, change.node, &[hit, miss, foreign, interleave_hit, local, other]);
    }
    table
}

fn row(table: &mut Table, node: NodeId, figures: &[u64]) {
    let figures = figures.iter().map(|figure| figure.to_string().into());
    table.row(std::iter::once(node.to_string().into()).chain(figures).collect());
}

/// How far this can be relied on.
fn notes(walk: &Walk<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    let largest = walk.before.zones().iter().map(|zone| largest_refill(zone.managed)).max().unwrap_or(0);
    if walk.outcome.stretches.len() > 1 || walk.outcome.out_of_memory.is_some() {
        notes.push(format!(
            "The order of nodes is exact. Where one gives way to the next a CPU may hold back up to {largest} pages, and \
             what the kernel reclaims meanwhile comes on top."
        ));
    }
    notes.extend(walk.basis.note().map(str::to_owned));
    if walk.reading.is_some() {
        notes.push(
            "The cost is a bound: latency is that of an idle machine, and nothing else is running."
                .to_owned(),
        );
    }
    if interleaves(walk) {
        notes.push("The first page is taken to be one whose turn falls on the first node.".to_owned());
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::walk::Basis;
    use crate::json;
    use nodewise_machine::{MemPolicy, spec};
    use nodewise_model::policy::interleave::Place;
    use nodewise_model::policy::set::Scope;
    use nodewise_model::walk::{Class, Request};
    use nodewise_model::{BuiltAt, Memory, Policy, Release, Weights, trace};

    /// The text and the JSON of a request on the four-node server.
    fn both(policy: &str, gib: Option<u64>, traced: bool) -> (String, String) {
        let machine = spec::machine("2x(2x(4c 4G)); dist=11,20").unwrap();
        let allowed = machine.nodes_with_memory();
        let policy: MemPolicy = policy.parse().unwrap();
        let release = Release::REFERENCE;
        let policy = Policy::of(&policy, Scope { allowed: &allowed, max_nodes: 1024, release }).unwrap();
        let before = Memory::of(&machine, BuiltAt::Boot, release);
        let mut after = before.clone();
        let cpu_node = NodeId::new(0);
        let outcome = after.allocate(&Request {
            policy: &policy,
            weights: &Weights::new(),
            cpu_node,
            allowed: &allowed,
            pages: gib.map_or(1 << 30, |gib| gib << 18),
            order: 0,
            place: Place::Address(0),
            class: Class::User,
        });
        let trace = if traced { trace::trace(policy.mode, &outcome) } else { Vec::new() };
        let shown = Walk {
            policy: &policy,
            cpu_node,
            allowed: &allowed,
            size_bytes: gib.map(|gib| gib << 30),
            release,
            basis: Basis::Assumed,
            before: &before,
            after: &after,
            outcome: &outcome,
            trace: &trace,
            reading: None,
        };
        (walk(&shown, &Style::plain(80)), json::walk::walk(&shown))
    }

    #[test]
    fn a_bound_request_is_told_to_its_end() {
        let (text, _) = both("bind:1,3", Some(9), true);
        assert_eq!(text, include_str!("../../tests/golden/walk-bind.txt"));
    }

    #[test]
    fn interleaving_tells_each_zone_of_a_step() {
        let (text, _) = both("interleave:0-3", None, false);
        assert_eq!(text, include_str!("../../tests/golden/walk-interleave.txt"));
    }

    #[test]
    fn text_and_json_tell_the_same() {
        for policy in ["default", "bind:1,3", "interleave:0-3", "prefer (many):2-3"] {
            let (text, json) = both(policy, Some(9), false);
            let json: serde_json::Value = serde_json::from_str(&json).unwrap();
            assert_eq!(json["schema"], "nodewise.explain/1");
            let table = |heading: &str| -> Vec<Vec<&str>> {
                let below = text.lines().skip_while(|line| !line.starts_with(heading)).skip(2).take(4);
                below.map(|line| line.split_whitespace().collect()).collect()
            };
            let steps = text.lines().filter(|line| line.contains(" low ") || line.contains(" min ")).count();
            assert!(steps >= json["steps"].as_array().unwrap().len());
            let nodes = json["nodes"].as_array().unwrap();
            for ((row, counters), node) in table("Nodes").iter().zip(table("Counters")).zip(nodes) {
                let number = |name: &str| node[name].as_u64().unwrap();
                let (before, after) = (number("free_before_pages"), number("free_after_pages"));
                let figures = [number("id"), before, before - after, after];
                assert_eq!(*row, figures.map(|figure| figure.to_string()), "{policy}");
                let names = [
                    "id",
                    "numa_hit",
                    "numa_miss",
                    "numa_foreign",
                    "interleave_hit",
                    "local_node",
                    "other_node",
                ];
                assert_eq!(counters, names.map(|name| number(name).to_string()), "{policy}");
            }
        }
    }
}
