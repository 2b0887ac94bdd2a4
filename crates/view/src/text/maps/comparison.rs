//! The mappings of a process at two moments.

use std::time::Duration;

use nodewise_machine::mapping::Mapping;
use nodewise_machine::{Bytes, NodeId};

use super::{GAP, Named, SIZE, columns_of, shortened, zero_or};
use crate::digest::counts::plural;
use crate::digest::estimate::{SizeChange, signed};
use crate::digest::maps::comparison::{MappingPair, MappingState, MapsComparison, MapsMoment, TallyPair};
use crate::digest::maps::policy_words;
use crate::style::{Ink, Style};
use crate::text::line::{Line, Page};
use crate::text::table::{Align, Column, Keep, Table};

/// Mappings that are named without `--all`.
const LARGEST: usize = 10;
/// Nodes that are named of one mapping.
const NODES: usize = 3;
/// The columns that the signs of a change take beside its size: `~+`.
const MARKS: usize = 2;

/// Writes the conclusion, the change by kind and node, and the mappings that changed.
pub fn comparison(comparison: &MapsComparison<'_>, named: Named, style: &Style) -> String {
    let mut page = Page::new(*style);
    let after = comparison.after;
    let name = after.name.as_deref().unwrap_or("(no name)");
    let head = Line::new()
        .with(Ink::Strong, format!("{} {name}", after.pid))
        .with(Ink::Plain, format!(": {}", comparison.headline()));
    page.line(2, &head);
    for (label, of) in ["before", "after"].into_iter().zip(&comparison.moments) {
        page.line(4, &Line::from("  ").with(Ink::Faint, moment(label, of)));
    }
    if !comparison.is_same {
        let why = comparison
            .relation
            .words()
            .map_or_else(|| format!("another process: {} before", comparison.before.pid), str::to_owned);
        let sentence = format!("{why}, so addresses do not correspond: compared by kind");
        page.line(4, &Line::from("  ").with(Ink::Notable, sentence));
    }
    kinds(comparison, &mut page);
    mappings(comparison, named, &mut page);
    page.finish()
}

fn moment(label: &str, moment: &MapsMoment) -> String {
    let age = moment.age.map(|age| format!("; {}", age_words(age))).unwrap_or_default();
    format!("{label}: {}, {:.1} s after its beginning{age}", moment.recording, moment.at.as_secs_f64())
}

/// How long before a moment the mappings were read, as a sentence.
pub fn age_words(age: Duration) -> String {
    let age = age.as_secs_f64();
    format!("the mappings were read {age:.1} s before that, because reading them may take 1 % of a CPU")
}

fn kinds(comparison: &MapsComparison<'_>, page: &mut Page) {
    page.heading("Change by kind and node", "");
    let all = comparison.all();
    let kinds = comparison.kinds();
    let rows: Vec<(&str, &TallyPair)> =
        kinds.iter().map(|(kind, pair)| (kind.words(), pair)).chain([("all", &all)]).collect();
    let label = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let each = SIZE + MARKS + GAP;
    // The column of the change of all, and the sizes before and after.
    let room = page.width().saturating_sub(2 * GAP + label + each + 2 * (SIZE + GAP));
    let (own, others) = columns_of(all.nodes_by_change(), room / each);
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
        let on = |node: &NodeId| pair.on(*node);
        let rest = others.iter().map(on).reduce(|sum, more| Some(sum? + more?));
        cells.extend(rest.map(change));
        cells.push(change(pair.all()));
        cells.extend([&pair.before, &pair.after].map(|tally| {
            tally.present().map_or_else(Line::new, |present| Line::from(zero_or(present.size)))
        }));
        table.row(cells);
    }
    table.write(page);
    if own.iter().any(|node| all.on(*node).is_some_and(|change| !change.is_exact())) {
        let note = "  ~ from samples of pages; ? within their chance (95 % intervals overlap)";
        page.line(4, &faint(note.to_owned()));
    }
}

/// A change, marked where it is an estimate; nothing where it is not known.
fn change(change: Option<SizeChange>) -> Line {
    let Some(change) = change else { return Line::new() };
    let mark = match (change.is_exact(), change.may_be_none()) {
        (true, _) => "",
        (false, true) => "?",
        (false, false) => "~",
    };
    Line::from(format!("{mark}{}", signed(change.change)))
}

fn mappings(comparison: &MapsComparison<'_>, named: Named, page: &mut Page) {
    let pairs = comparison.mappings();
    if pairs.is_empty() {
        return;
    }
    let sections = [
        ("Changed mappings", MappingState::Stayed),
        ("Added mappings", MappingState::Added),
        ("Removed mappings", MappingState::Removed),
    ];
    for (title, state) in sections {
        let pairs: Vec<&MappingPair<'_>> =
            pairs.iter().filter(|pair| pair.is_changed() && pair.state() == state).collect();
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
            change(tallies.all()),
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
    words.join(", ")
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
