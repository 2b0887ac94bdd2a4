//! The mappings of a process at two moments.

use nodewise_diagnose::Relation;
use nodewise_machine::mapping::Mapping;
use nodewise_machine::{Bytes, NodeId};

use super::{GAP, Named, SIZE, columns_of, shortened, zero_or};
use crate::digest::counts::plural;
use crate::digest::maps::comparison::{MappingPair, MapsComparison, SizeChange, TallyPair, signed};
use crate::digest::maps::policy_words;
use crate::style::{Ink, Style};
use crate::text::line::{Line, Page};
use crate::text::table::{Align, Column, Keep, Table};

/// Mappings that are named without `--all`.
const LARGEST: usize = 10;
/// Nodes that are named of one mapping.
const NODES: usize = 3;

/// Writes the conclusion, the change by kind and node, and the mappings that changed.
pub fn comparison(comparison: &MapsComparison<'_>, named: Named, style: &Style) -> String {
    let mut page = Page::new(*style);
    let after = comparison.after;
    let name = after.name.as_deref().unwrap_or("(no name)");
    let head = Line::new()
        .with(Ink::Strong, format!("{} {name}", after.pid))
        .with(Ink::Plain, format!(": {}", comparison.headline()));
    page.line(2, &head);
    for moment in &comparison.moments {
        page.line(4, &Line::from("  ").with(Ink::Faint, moment));
    }
    if !comparison.is_same {
        let why = match comparison.relation {
            Relation::SameBoot => format!("another process: {} before", comparison.before.pid),
            Relation::OtherBoot => "the machine was restarted in between".to_owned(),
            Relation::OtherMachine => "different machines".to_owned(),
            Relation::Unknown => "a recording does not say when its machine started".to_owned(),
        };
        let sentence = format!("{why}, so addresses do not correspond: compared by kind");
        page.line(4, &Line::from("  ").with(Ink::Notable, sentence));
    }
    kinds(comparison, &mut page);
    mappings(comparison, named, &mut page);
    page.finish()
}

fn kinds(comparison: &MapsComparison<'_>, page: &mut Page) {
    page.heading("Change by kind and node", "");
    let all = comparison.all();
    let kinds = comparison.kinds();
    let rows: Vec<(&str, &TallyPair)> =
        kinds.iter().map(|(kind, pair)| (kind.words(), pair)).chain([("all", &all)]).collect();
    let label = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    // A sign more than a size.
    let each = SIZE + 1 + GAP;
    let room = page.width().saturating_sub(2 * GAP + label + 3 * each);
    let (own, others) = columns_of(&comparison.nodes(), &all.after, room.max(each));
    let column = |align| Column { head: "", align, keep: Keep::Always };
    let mut columns = vec![column(Align::Left)];
    columns.extend(own.iter().map(|_| column(Align::Right)));
    columns.extend((!others.is_empty()).then(|| column(Align::Right)));
    columns.extend([column(Align::Right), column(Align::Right), column(Align::Left)]);
    let mut table = Table::new(columns);
    let faint = |text: String| Line::new().with(Ink::Faint, text);
    let mut head = vec![Line::blank()];
    head.extend(own.iter().map(|node| faint(format!("node {node}"))));
    head.extend((!others.is_empty()).then(|| faint(plural(others.len(), "other"))));
    head.extend(["all", "before", "after"].map(|word| faint(word.to_owned())));
    table.row(head);
    for (name, pair) in rows {
        let mut cells = vec![Line::from(name)];
        cells.extend(own.iter().map(|node| change(pair.on(*node))));
        let rest: i128 = others.iter().map(|node| pair.on(*node).change).sum();
        cells.extend((!others.is_empty()).then(|| Line::from(signed(rest))));
        cells.push(Line::from(signed(pair.all())));
        cells.extend([&pair.before, &pair.after].map(|tally| Line::from(zero_or(tally.all()))));
        table.row(cells);
    }
    table.write(page);
    if own.iter().any(|node| !all.on(*node).is_exact()) {
        let note = "  ~ from samples of pages; ? within their chance (95 % intervals overlap)";
        page.line(4, &faint(note.to_owned()));
    }
}

/// A change, marked where it is an estimate.
fn change(change: SizeChange) -> Line {
    let mark = match (change.is_exact(), change.may_be_none()) {
        (true, _) => "",
        (false, true) => "?",
        (false, false) => "~",
    };
    Line::from(format!("{mark}{}", signed(change.change)))
}

fn mappings(comparison: &MapsComparison<'_>, named: Named, page: &mut Page) {
    let pairs = comparison.mappings();
    let is_changed = |pair: &&MappingPair<'_>| {
        pair.before.is_none()
            || pair.after.is_none()
            || pair.is_altered()
            || !pair.tallies().changes().is_empty()
    };
    let changed: Vec<&MappingPair<'_>> = pairs.iter().filter(is_changed).collect();
    let of = |wanted: fn(&MappingPair<'_>) -> bool| -> Vec<&MappingPair<'_>> {
        changed.iter().copied().filter(|pair| wanted(pair)).collect()
    };
    if pairs.is_empty() {
        return;
    }
    let sections = [
        ("Mappings that changed", of(|pair| pair.before.is_some() && pair.after.is_some())),
        ("Mappings that came", of(|pair| pair.before.is_none())),
        ("Mappings that went", of(|pair| pair.after.is_none())),
    ];
    for (title, pairs) in sections {
        section(title, &pairs, named, page);
    }
}

fn section(title: &str, pairs: &[&MappingPair<'_>], named: Named, page: &mut Page) {
    if pairs.is_empty() {
        page.heading(title, "none");
        return;
    }
    let most = if named == Named::All { usize::MAX } else { LARGEST };
    let remark = if pairs.len() > most { "--all names the others" } else { "" };
    page.heading(&format!("{title}: {}", pairs.len()), remark);
    let column = |head, align, keep| Column { head, align, keep };
    let mut table = Table::new(vec![
        column("start", Align::Left, Keep::Always),
        column("before", Align::Right, Keep::Unless(2)),
        column("after", Align::Right, Keep::Unless(3)),
        column("change", Align::Right, Keep::Always),
        column("policy", Align::Left, Keep::Unless(1)),
        column("nodes", Align::Left, Keep::Always),
        column("name", Align::Left, Keep::Always),
    ])
    .naming_omitted();
    for pair in pairs.iter().take(most) {
        let Some(mapping) = pair.any() else { continue };
        let tallies = pair.tallies();
        let size = |mapping: Option<&Mapping>| {
            mapping.and_then(Mapping::resident).map_or_else(Line::new, |size| Line::from(zero_or(size)))
        };
        table.row(vec![
            Line::from(format!("{:x}", mapping.start)),
            size(pair.before),
            size(pair.after),
            Line::from(signed(tallies.all())),
            policy(pair),
            Line::from(nodes(&tallies.changes())),
            name(pair, mapping, page.width()),
        ]);
    }
    table.write(page);
}

/// The policy; both where it changed.
fn policy(pair: &MappingPair<'_>) -> Line {
    let words: Vec<&str> = [pair.before, pair.after].into_iter().flatten().filter_map(policy_words).collect();
    match words[..] {
        [before, after] if before != after => Line::from(format!("{before} -> {after}")),
        [first, ..] => Line::from(first),
        [] => Line::new(),
    }
}

fn nodes(changes: &[(NodeId, SizeChange)]) -> String {
    let mut words: Vec<String> = changes
        .iter()
        .take(NODES)
        .map(|(node, size)| {
            let mark = if size.is_exact() { "" } else { "~" };
            format!("{node}: {mark}{}", signed(size.change))
        })
        .collect();
    if let Some(more) = changes.len().checked_sub(NODES).filter(|more| *more > 0) {
        words.push(plural(more, "other"));
    }
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}

/// The name, and by how much the range grew.
fn name(pair: &MappingPair<'_>, mapping: &Mapping, width: usize) -> Line {
    let text = mapping.name.as_deref().unwrap_or(mapping.kind.words());
    let mut line = Line::from(shortened(text, width / 2));
    let length = |mapping: &Mapping| i128::from(mapping.end - mapping.start);
    let grown = pair.before.zip(pair.after).map(|(before, after)| length(after) - length(before));
    if let Some(grown) = grown.filter(|grown| *grown != 0) {
        let length = Bytes::new(mapping.end - mapping.start);
        line.push(Ink::Faint, format!(" (range {} to {length})", signed(grown)));
    }
    line
}
