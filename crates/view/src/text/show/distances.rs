//! The table of distances, in whatever form stays legible.
//!
//! In this order: words, where a sentence says the whole table exactly (with the table beside them
//! for few nodes); the table, for up to some nodes; a table of classes of like nodes; the whole
//! table, if a row fits on a line; a list with an entry per class. Nothing is left out in any of
//! them, and no row of a table is ever wrapped.

use nodewise_machine::{Machine, NodeId, NodeSet};

use crate::digest::Distances;
use crate::style::Ink;
use crate::text::line::{Line, Page, columns};

/// Up to this many nodes the table is shown beside the words that describe it.
const FEW: usize = 8;
/// From this many nodes on, classes are tried before the table.
const MANY: usize = 17;

/// Writes the distances, if there is more than one node.
pub(in crate::text) fn distances(machine: &Machine, page: &mut Page) {
    let distances = Distances::from_machine(machine);
    let nodes = distances.nodes();
    if nodes.len() < 2 {
        return;
    }
    if distances.is_empty() {
        page.heading("Distances", "");
        page.line(2, &Line::new().with(Ink::Notable, "  none: the kernel does not say"));
        return;
    }
    page.heading("Distances", "from row to column, 10 is local");
    let words = distances.words();
    // Two columns per node at least: a table that cannot fit is not made.
    let table = (2 * nodes.len() < page.width()).then(|| Grid::of_nodes(&distances));
    let table = table.filter(|table| table.step(page.width()).is_some());
    if let Some(words) = words {
        if let Some(table) = table.filter(|_| nodes.len() <= FEW) {
            table.write(page);
            page.line(4, &format!("  {words}").into());
        } else {
            page.line(4, &format!("  {}: {words}", machine.node_ids()).into());
        }
        return;
    }
    if let Some(table) = table.as_ref().filter(|_| nodes.len() < MANY) {
        table.write(page);
        return;
    }
    let classes = distances.classes();
    if let Some(grouped) =
        Grid::of_classes(&distances, &classes).filter(|grid| grid.step(page.width()).is_some())
    {
        grouped.write(page);
        let itself = distances.itself().map(written).unwrap_or_default();
        let remark = format!("  {itself} to itself; numbers on the diagonal: to others of the same row");
        page.line(2, &Line::new().with(Ink::Faint, remark));
    } else if let Some(table) = table {
        table.write(page);
    } else {
        list(&distances, &classes, page);
    }
}

/// One entry per class of like nodes.
fn list(distances: &Distances<'_>, classes: &[NodeSet], page: &mut Page) {
    let widest = classes.iter().map(|class| class.to_string().len()).max().unwrap_or(0);
    let hang = widest.min(12) + 4;
    for class in classes {
        let name = class.to_string();
        let mut line = Line::from(" ".repeat(2 + widest.min(12).saturating_sub(name.len())));
        line.push(Ink::Strong, name);
        line.push(Ink::Plain, format!(": {}", distances.row_words(class)));
        page.line(hang, &line);
    }
}

/// Letters that stand for classes in the heads of columns.
fn letters() -> impl Iterator<Item = char> {
    'A'..='Z'
}

/// A table with short cells that is written whole or not at all.
struct Grid {
    heads: Vec<String>,
    rows: Vec<(String, Vec<(Ink, String)>)>,
    head: usize,
    cell: usize,
}

impl Grid {
    fn new(heads: Vec<String>, rows: Vec<(String, Vec<(Ink, String)>)>) -> Self {
        let texts = rows.iter().flat_map(|(_, cells)| cells).map(|(_, text)| text);
        let cell = texts.chain(&heads).map(|text| columns(text)).max().unwrap_or(0);
        let head = rows.iter().map(|(head, _)| columns(head)).max().unwrap_or(0);
        Self { heads, rows, head, cell }
    }

    fn of_nodes(distances: &Distances<'_>) -> Self {
        let nodes = distances.nodes();
        let cell = |from: NodeId, to: NodeId| {
            let ink = if from == to { Ink::Faint } else { Ink::Plain };
            (ink, distances.get(from, to).map_or_else(missing, written))
        };
        let row = |from: &NodeId| (from.to_string(), nodes.iter().map(|to| cell(*from, *to)).collect());
        Self::new(nodes.iter().map(ToString::to_string).collect(), nodes.iter().map(row).collect())
    }

    /// A row per class of like nodes, named by its nodes and a letter. On the diagonal is the
    /// distance between two nodes of the class. `None` when there are more classes than letters, or
    /// this many that they are not shorter, or when nodes differ in their distance to themselves.
    fn of_classes(distances: &Distances<'_>, classes: &[NodeSet]) -> Option<Self> {
        distances.itself()?;
        if classes.len() > letters().count() || 2 * classes.len() > distances.nodes().len() {
            return None;
        }
        let cell = |from: &NodeSet, to: &NodeSet| {
            let first = from.first()?;
            let other = if from == to { from.nth(1) } else { to.first() };
            let ink = if from == to { Ink::Faint } else { Ink::Plain };
            let Some(other) = other else { return Some((ink, String::new())) };
            Some((ink, distances.get(first, other).map_or_else(missing, written)))
        };
        let row = |(from, letter): (&NodeSet, char)| {
            let cells = classes.iter().filter_map(|to| cell(from, to)).collect();
            (format!("{from}  {letter}"), cells)
        };
        let rows = classes.iter().zip(letters()).map(row).collect();
        Some(Self::new(letters().take(classes.len()).map(String::from).collect(), rows))
    }

    /// The width of a column with the blanks before it: two, or one where two are too many.
    fn step(&self, width: usize) -> Option<usize> {
        let room = width.saturating_sub(2 + self.head);
        let steps = [2 + self.cell, 1 + self.cell];
        steps.into_iter().find(|step| self.heads.len() * step <= room)
    }

    fn write(&self, page: &mut Page) {
        let Some(step) = self.step(page.width()) else { return };
        let mut line = Line::from(" ".repeat(2 + self.head));
        for head in &self.heads {
            line.push(Ink::Faint, format!("{head:>step$}"));
        }
        page.line(0, &line);
        for (head, cells) in &self.rows {
            let mut line = Line::new().with(Ink::Strong, format!("{head:>0$}", 2 + self.head));
            for (ink, text) in cells {
                line.push(*ink, format!("{text:>step$}"));
            }
            page.line(0, &line);
        }
    }
}

fn written(distance: u32) -> String {
    distance.to_string()
}

fn missing() -> String {
    "-".to_owned()
}
