//! Two machines, or two moments of one: the differences, those that matter first.

use std::collections::BTreeMap;

use nodewise_machine::{Machine, NodeId, NodeSet};

use crate::digest::counts::{by_count, plural};
use crate::digest::diff::{
    Diff, DiffExtent, Difference, FactGroup, FactName, FactValue, GroupTally, Side, Subjects, UnknownFact,
};
use crate::digest::provenance::date;
use crate::style::{Ink, Style};
use crate::text::line::{Line, Page};
use crate::text::table::{Align, Column, Keep, Table};

/// Lines that a fact may have unless everything is wanted.
const MOST_LINES: usize = 4;
/// Names that a line may have unless everything is wanted.
const MOST_NAMES: usize = 4;
/// Parts of a description of pairs.
const MOST_PAIRS: usize = 3;

/// Writes the conclusion, the two machines, the differences by group, and what was not compared.
pub fn diff(diff: &Diff<'_>, style: &Style) -> String {
    let mut page = Page::new(*style);
    page.line(2, &Line::new().with(Ink::Strong, headline(diff)));
    for (name, machine) in [("A", diff.a), ("B", diff.b)] {
        page.line(
            5,
            &Line::from("  ").with(Ink::Accent, name).with(Ink::Plain, format!("  {}", moment(machine))),
        );
    }
    let whole: Vec<&str> = wholly_different(diff).map(FactGroup::title).collect();
    if !whole.is_empty() {
        page.line(
            4,
            &Line::from("  ").with(Ink::Notable, format!("nothing in common: {}", whole.join(", "))),
        );
    }
    for (group, tally) in diff.tallies.iter().filter(|(_, tally)| tally.differing > 0) {
        group_of(diff, *group, *tally, &mut page);
    }
    unknown(diff, &mut page);
    page.finish()
}

/// The conclusion in a sentence.
fn headline(diff: &Diff<'_>) -> String {
    let compared = plural(diff.compared(), "fact");
    if diff.compared() == 0 {
        return "nothing to compare: no fact is known of both".to_owned();
    }
    if diff.is_equal() {
        return format!("no difference ({compared} compared)");
    }
    let differing: usize = diff.tallies.values().map(|tally| tally.differing).sum();
    let groups = diff.tallies.iter().filter(|(_, tally)| tally.differing > 0);
    let groups: Vec<String> = groups.map(|(group, _)| group.title().to_owned()).collect();
    format!("{differing} of {compared} {}: {}", by_count(&differing, "differs", "differ"), groups.join(", "))
}

fn wholly_different(diff: &Diff<'_>) -> impl Iterator<Item = FactGroup> {
    let tallies = diff.tallies.iter();
    tallies.filter(|(_, tally)| tally.is_wholly_different()).map(|(group, _)| *group)
}

/// The source of a machine, and its date.
fn moment(machine: &Machine) -> String {
    let date = machine.read_at.and_then(date).map(|date| format!(", as of {date}")).unwrap_or_default();
    format!("{}{date}", machine.origin)
}

fn group_of(diff: &Diff<'_>, group: FactGroup, tally: GroupTally, page: &mut Page) {
    page.heading(group.title(), &format!("{} of {}", tally.differing, plural(tally.compared, "fact")));
    let column = |head, align| Column { head, align, keep: Keep::Always };
    let mut table = Table::new(vec![
        column("", Align::Left),
        column("A", Align::Left),
        column("B", Align::Left),
        column("", Align::Left),
    ]);
    let mut by_fact: Vec<(&FactName, Vec<&Difference>)> = Vec::new();
    for difference in diff.in_group(group) {
        match by_fact.last_mut() {
            Some((fact, all)) if **fact == difference.fact => all.push(difference),
            _ => by_fact.push((&difference.fact, vec![difference])),
        }
    }
    let is_all = diff.extent == DiffExtent::Everything;
    for (fact, all) in by_fact {
        let shown = if is_all || all.len() <= MOST_LINES { all.len() } else { MOST_LINES - 1 };
        for difference in &all[..shown] {
            let [a, b] = values(fact, &difference.a, &difference.b);
            let whose = subjects(&difference.subjects, is_all);
            let whose = if whose.is_empty() { Line::blank() } else { Line::from(whose) };
            table.row(vec![Line::from(&*fact.label), Line::from(a), Line::from(b), whose]);
        }
        if shown < all.len() {
            let rest = &all[shown..];
            let things: usize = rest.iter().map(|difference| difference.subjects.count()).sum();
            let text =
                format!("and {} of {}", plural(rest.len(), "more change"), noun(&rest[0].subjects, things));
            let dots = || Line::new().with(Ink::Faint, "…");
            table.row(vec![Line::from(&*fact.label), dots(), dots(), Line::new().with(Ink::Faint, text)]);
        }
    }
    table.write(page);
}

/// Two values in words, exact where rounded ones would look alike.
fn values(fact: &FactName, a: &FactValue, b: &FactValue) -> [String; 2] {
    let rounded = [a, b].map(|value| value_words(fact, value));
    match (a, b) {
        (FactValue::Size(a), FactValue::Size(b)) if rounded[0] == rounded[1] => {
            let is_kib = [a, b].iter().all(|size| size.get() % 1024 == 0);
            [a, b].map(|size| {
                if is_kib { format!("{} KiB", size.get() / 1024) } else { format!("{} B", size.get()) }
            })
        }
        _ => rounded,
    }
}

fn value_words(fact: &FactName, value: &FactValue) -> String {
    let or_none = |text: String| if text.is_empty() { "none".to_owned() } else { text };
    match value {
        FactValue::Absent => "absent".to_owned(),
        FactValue::Present => "present".to_owned(),
        FactValue::Switch(on) => (if *on { "yes" } else { "no" }).to_owned(),
        // Exact: 3.4 GHz and 3.401 GHz differ.
        FactValue::Number(number) if fact.unit == "kHz" => format!("{} MHz", *number as f64 / 1000.0),
        FactValue::Number(number) if fact.unit.is_empty() => number.to_string(),
        FactValue::Number(number) => format!("{number} {}", fact.unit),
        FactValue::Size(size) => size.to_string(),
        FactValue::Cpus(cpus) => or_none(cpus.to_string()),
        FactValue::Nodes(nodes) => or_none(nodes.to_string()),
        FactValue::Text(text) => or_none(text.clone()),
    }
}

/// Things by number: `12 CPUs`.
fn noun(subjects: &Subjects, count: usize) -> String {
    match subjects {
        Subjects::Machine => plural(count, "machine"),
        Subjects::Nodes(_) => plural(count, "node"),
        Subjects::Cpus(_) => plural(count, "CPU"),
        Subjects::Pairs(_) => plural(count, "pair"),
        Subjects::Names(_) => plural(count, "name"),
    }
}

/// The things of a line; empty for the machine as a whole.
fn subjects(subjects: &Subjects, is_all: bool) -> String {
    match subjects {
        Subjects::Machine => String::new(),
        Subjects::Nodes(nodes) => format!("{} {nodes}", by_count(&nodes.len(), "node", "nodes")),
        Subjects::Cpus(cpus) => format!("{} {cpus}", by_count(&cpus.len(), "CPU", "CPUs")),
        Subjects::Pairs(pairs) => pair_words(pairs, if is_all { usize::MAX } else { MOST_PAIRS }),
        Subjects::Names(names) => {
            // Sentences have commas of their own.
            let between = if names.iter().any(|name| name.contains(", ")) { "; " } else { ", " };
            if is_all || names.len() <= MOST_NAMES {
                return names.join(between);
            }
            let first = &names[..MOST_NAMES - 1];
            format!("{} and {} more", first.join(between), names.len() - first.len())
        }
    }
}

/// Pairs of nodes in few words: `between nodes 0-3`, `between nodes 0-1 and 2-3`, `from node 0 to nodes 1-3`.
fn pair_words(pairs: &[(NodeId, NodeId)], most: usize) -> String {
    let mut targets: BTreeMap<NodeId, NodeSet> = BTreeMap::new();
    for (from, to) in pairs {
        targets.entry(*from).or_default().insert(*to);
    }
    let all: NodeSet = targets.keys().copied().collect();
    let others = |node: NodeId| all.difference(&NodeSet::from_iter([node]));
    if all.len() > 1 && targets.iter().all(|(from, to)| *to == others(*from)) {
        return format!("between nodes {all}");
    }
    let mut sources: BTreeMap<&NodeSet, NodeSet> = BTreeMap::new();
    for (from, to) in &targets {
        sources.entry(to).or_default().insert(*from);
    }
    let name = |nodes: &NodeSet| format!("{} {nodes}", by_count(&nodes.len(), "node", "nodes"));
    let parts: Vec<(&NodeSet, &NodeSet)> = sources.iter().map(|(to, from)| (from, *to)).collect();
    if let [(from, to), (back, again)] = parts[..] {
        if from == again && back == to {
            let (one, other) = if from.first() < to.first() { (from, to) } else { (to, from) };
            return format!("between {} and {}", name(one), name(other));
        }
    }
    if pairs.iter().all(|(from, to)| from == to) {
        return format!("from {} to {}", name(&all), by_count(&all.len(), "itself", "themselves"));
    }
    let shown = if parts.len() > most { most - 1 } else { parts.len() };
    let words: Vec<String> =
        parts[..shown].iter().map(|(from, to)| format!("from {} to {}", name(from), name(to))).collect();
    let rest: usize = parts[shown..].iter().map(|(from, to)| from.len() * to.len()).sum();
    let rest = if rest > 0 { format!("; and {}", plural(rest, "more pair")) } else { String::new() };
    format!("{}{rest}", words.join("; "))
}

/// Writes the facts that only one side knows.
fn unknown(diff: &Diff<'_>, page: &mut Page) {
    if diff.unknown.is_empty() {
        return;
    }
    page.heading("Not compared", "known of one side only");
    let is_all = diff.extent == DiffExtent::Everything;
    for (side, name) in [(Side::A, "A"), (Side::B, "B")] {
        let facts: Vec<String> = diff
            .unknown
            .iter()
            .filter(|fact| fact.known_of == side)
            .map(|fact| unknown_words(fact, is_all))
            .collect();
        if !facts.is_empty() {
            page.line(
                4,
                &Line::from("  only ")
                    .with(Ink::Accent, name)
                    .with(Ink::Plain, format!(": {}", facts.join("; "))),
            );
        }
    }
}

fn unknown_words(unknown: &UnknownFact, is_all: bool) -> String {
    let (label, whose) = (&unknown.fact.label, subjects(&unknown.subjects, is_all));
    match &unknown.subjects {
        Subjects::Machine => label.to_string(),
        // The label ends in a colon, or the names follow it.
        Subjects::Names(_) if label.ends_with(':') => format!("{label} {whose}"),
        _ => format!("{label} of {whose}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_nodes_are_few_words_where_they_are_alike() {
        let check = |pairs: &[(u32, u32)], expected: &str| {
            let pairs: Vec<_> =
                pairs.iter().map(|(from, to)| (NodeId::new(*from), NodeId::new(*to))).collect();
            assert_eq!(pair_words(&pairs, MOST_PAIRS), expected);
        };
        check(&[(0, 1)], "from node 0 to node 1");
        check(&[(0, 1), (1, 0)], "between nodes 0-1");
        check(&[(0, 0)], "from node 0 to itself");
        check(&[(0, 0), (1, 1)], "from nodes 0-1 to themselves");
        check(&[(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)], "between nodes 0-2");
        check(
            &[(0, 2), (0, 3), (1, 2), (1, 3), (2, 0), (3, 0), (2, 1), (3, 1)],
            "between nodes 0-1 and nodes 2-3",
        );
        check(
            &[(0, 1), (1, 2), (2, 3), (3, 4)],
            "from node 0 to node 1; from node 1 to node 2; and 2 more pairs",
        );
    }
}
