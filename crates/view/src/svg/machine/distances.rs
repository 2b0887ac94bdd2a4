//! The table of distances as a picture, with memory tiers below it.

use std::collections::BTreeMap;

use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::{Bytes, Machine, Node, NodeId, NodeSet, check::node_names};

use crate::digest::Distances;
use crate::digest::node::distinguishing_tiers;
use crate::svg::font::Font;
use crate::svg::frame::{Anchor, Frame, Label, Role, Stack, Tone};
use crate::svg::legend::swatch;

/// The widest panel.
const WIDTH: f64 = 276.0;
const TITLE: Font = Font::bold(12.0);
const TEXT: Font = Font::regular(11.0);
const SMALL: Font = Font::regular(9.5);
/// Up to this many rows have numbers in their cells.
const NUMBERED: usize = 12;
/// Up to this many rows are drawn at all: beyond, a cell is smaller than a reader can see.
const MOST: usize = 64;
/// The largest cell.
const CELL: f64 = 34.0;

/// The panel beside the packages; `None` when there is nothing to show.
pub(super) fn panel(machine: &Machine) -> Option<Frame> {
    let distances = Distances::from_machine(machine);
    let several = distances.nodes().len() > 1;
    let tiers = distinguishing_tiers(machine);
    if !several && tiers.is_empty() {
        return None;
    }
    let mut stack = Stack::new(Role::Group, WIDTH, 0.0);
    if several {
        stack.text("Distances", TITLE, Tone::Plain, 1);
        if distances.is_empty() {
            stack.text("none: the kernel does not say", TEXT, Tone::Notable, 1);
        } else {
            stack.text("from row to column, 10 is local", SMALL, Tone::Faint, 1);
            stack.gap(4.0);
            table(&distances, &mut stack);
            if let Some(words) = distances.words() {
                stack.gap(6.0);
                stack.text(&words, TEXT, Tone::Plain, 4);
            }
        }
        stack.gap(14.0);
    }
    if !tiers.is_empty() {
        stack.text("Memory tiers, fastest first", TITLE, Tone::Plain, 1);
        for tier in machine.tiers.iter().take(8) {
            stack.text(&tier_words(machine, &tier.nodes, &tier.id.to_string()), TEXT, Tone::Plain, 2);
        }
    }
    let mut panel = stack.finish();
    let rights = panel.labels.iter().map(|label| label.area().right());
    panel.area.width =
        rights.chain(panel.children.iter().map(|child| child.area.right())).fold(0.0, f64::max);
    Some(panel)
}

fn tier_words(machine: &Machine, nodes: &NodeSet, id: &str) -> String {
    let sizes: Bytes =
        nodes.iter().filter_map(|node| machine.nodes.get(&node)).filter_map(Node::memory_total).sum();
    let names = if nodes.is_empty() { "no node".to_owned() } else { node_names(nodes) };
    format!("tier {id}: {names}, {sizes}")
}

/// Rows and columns are nodes, or classes of like nodes where there are too many of them.
struct Cells {
    heads: Vec<String>,
    values: Vec<Vec<Option<u32>>>,
}

impl Cells {
    fn of_nodes(distances: &Distances<'_>) -> Self {
        let nodes = distances.nodes();
        let row = |from: &NodeId| nodes.iter().map(|to| distances.get(*from, *to)).collect();
        Self {
            heads: nodes.iter().map(ToString::to_string).collect(),
            values: nodes.iter().map(row).collect(),
        }
    }
}

fn table(distances: &Distances<'_>, stack: &mut Stack) {
    let count = distances.nodes().len();
    if count > MOST {
        let summary = distances.summary().filter(|_| distances.words().is_none());
        stack.text(&summary.unwrap_or_default(), TEXT, Tone::Plain, 2);
        return;
    }
    let cells = Cells::of_nodes(distances);
    let numbered = count <= NUMBERED && widest_number(&cells) <= numbered_cell(&cells) - 2.0;
    let steps = if numbered { Steps::absolute(distances) } else { Steps::relative(distances) };
    stack.frame(grid(&cells, &steps, if numbered { Numbers::Shown } else { Numbers::Hidden }));
    if !numbered {
        stack.gap(6.0);
        stack.flow(steps.legend(), 4.0);
    }
}

/// Whether cells have their number in them.
#[derive(Clone, Copy, PartialEq)]
enum Numbers {
    Shown,
    Hidden,
}

fn head_width(cells: &Cells) -> f64 {
    cells.heads.iter().map(|head| SMALL.width(head)).fold(0.0, f64::max) + 5.0
}

fn numbered_cell(cells: &Cells) -> f64 {
    ((WIDTH - head_width(cells)) / cells.heads.len() as f64).min(CELL)
}

fn widest_number(cells: &Cells) -> f64 {
    cells.values.iter().flatten().flatten().map(|value| SMALL.width(&value.to_string())).fold(0.0, f64::max)
}

fn grid(cells: &Cells, steps: &Steps, numbers: Numbers) -> Frame {
    const HEAD: f64 = 14.0;
    let left = head_width(cells);
    // Cells that touch must begin and end on whole pixels, or seams show between them.
    let (cell, gap) = match numbers {
        Numbers::Shown => (numbered_cell(cells), 1.0),
        Numbers::Hidden => (numbered_cell(cells).floor(), 0.0),
    };
    let count = cells.heads.len() as f64;
    let mut frame = Frame::new(Role::Group, left + count * cell, HEAD + count * cell);
    // The same heads above and on the left, as many as fit in both places.
    let every = (left.max(SMALL.size + 1.0) / cell).ceil().max(1.0) as usize;
    for at in (0..cells.heads.len()).step_by(every) {
        let x = left + (at as f64 + 0.5) * cell;
        let label = Label::new(&cells.heads[at], SMALL, x, (0.0, HEAD - 2.0)).anchored(Anchor::Middle);
        // The head of a thin last column would stand out on the right.
        if label.area().right() <= frame.area.width {
            frame.labels.push(label.toned(Tone::Faint));
        }
    }
    for at in (0..cells.heads.len()).step_by(every) {
        let top = HEAD + at as f64 * cell;
        let height = cell.max(SMALL.size);
        if top + height <= frame.area.height + 0.1 {
            let label = Label::new(&cells.heads[at], SMALL, left - 4.0, (top, height));
            frame.labels.push(label.anchored(Anchor::End).toned(Tone::Faint));
        }
    }
    for (row, values) in cells.values.iter().enumerate() {
        let top = HEAD + row as f64 * cell;
        for (first, last) in runs(values, numbers) {
            let value = values[first];
            let width = (last - first + 1) as f64 * cell - gap;
            let role = steps.role(value);
            let mut run = Frame::new(role, width, cell - gap);
            if numbers == Numbers::Shown {
                let text = value.map_or_else(|| "-".to_owned(), |value| value.to_string());
                let label = Label::new(&text, SMALL, width / 2.0, (0.0, cell - gap));
                run.labels.push(label.anchored(Anchor::Middle).toned(Tone::on(role)));
            }
            frame.children.push(run.moved(left + first as f64 * cell, top));
        }
    }
    frame
}

/// Neighbours with the same value, as (first, last); each by itself where numbers are shown.
fn runs(values: &[Option<u32>], numbers: Numbers) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (at, value) in values.iter().enumerate() {
        match runs.last_mut() {
            Some((first, last)) if numbers == Numbers::Hidden && values[*first] == *value => *last = at,
            _ => runs.push((at, at)),
        }
    }
    runs
}

/// Distances by colour: local, then from the nearest to the farthest.
struct Steps {
    of_value: BTreeMap<u32, u8>,
}

impl Steps {
    /// The same colour for the same distance in every picture. The bands are those in which
    /// firmware places neighbours, packages, and what is beyond (10 is local, 20 the default).
    fn absolute(distances: &Distances<'_>) -> Self {
        let step = |value: u32| match value {
            0..=12 => 1,
            13..=17 => 2,
            18..=21 => 3,
            22..=31 => 4,
            _ => 5,
        };
        let of_value = distances.remote_values().into_iter().map(|value| (value, step(value))).collect_map();
        Self { of_value }.with_local(distances)
    }

    /// The colours spread from the nearest to the farthest, for cells without numbers.
    fn relative(distances: &Distances<'_>) -> Self {
        let values = distances.remote_values();
        let (nearest, farthest) = (values.first().copied(), values.last().copied());
        let mut of_value = BTreeMap::new();
        for value in values {
            let (Some(nearest), Some(farthest)) = (nearest, farthest) else { continue };
            let span = f64::from(farthest - nearest);
            let share = if span > 0.0 { f64::from(value - nearest) / span } else { 0.25 };
            of_value.insert(value, 1 + (share * f64::from(Role::FARTHEST - 1)).round() as u8);
        }
        Self { of_value }.with_local(distances)
    }

    /// With a node's distance to itself, unless another node is as near.
    fn with_local(mut self, distances: &Distances<'_>) -> Self {
        for node in distances.nodes() {
            if let Some(own) = distances.get(*node, *node) {
                self.of_value.entry(own).or_insert(0);
            }
        }
        self
    }

    fn role(&self, value: Option<u32>) -> Role {
        value
            .and_then(|value| self.of_value.get(&value))
            .map_or(Role::NoDistance, |step| Role::Distance(*step))
    }

    /// A swatch with the distances of each colour.
    fn legend(&self) -> Vec<Frame> {
        let mut of_step: BTreeMap<u8, Vec<u32>> = BTreeMap::new();
        for (value, step) in &self.of_value {
            of_step.entry(*step).or_default().push(*value);
        }
        let words = |values: &Vec<u32>| match (values.first(), values.last()) {
            (Some(first), Some(last)) if first != last => format!("{first} to {last}"),
            (first, _) => first.map(ToString::to_string).unwrap_or_default(),
        };
        of_step.iter().map(|(step, values)| swatch(Role::Distance(*step), &words(values))).collect()
    }
}
