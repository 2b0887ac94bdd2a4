//! Output of `nodewise` alone: this machine in a few lines, and the commands to try next.

use nodewise_machine::{Bytes, Machine, Node, NodeSet, check::node_names};

use crate::digest::counts::plural;
use crate::digest::node::alike_sizes;
use crate::digest::oddity::pointer;
use crate::digest::{Distances, NodeKind};
use crate::style::{Ink, Style};
use crate::text::line::{Line, Page, columns};
use crate::text::show::head;

/// A command to try, and what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hint<'a> {
    pub command: &'a str,
    pub purpose: &'a str,
}

/// The commands to try first.
pub const HINTS: [Hint<'static>; 5] = [
    Hint { command: "nodewise show", purpose: "the machine in full" },
    Hint { command: "nodewise tune -- CMD", purpose: "CMD's fastest placement" },
    Hint { command: "nodewise run --near DEV -- CMD", purpose: "CMD beside a device" },
    Hint { command: "nodewise capture -o FILE", purpose: "the machine as a file" },
    Hint { command: "nodewise lab -- CMD", purpose: "CMD on its virtual twin" },
];

/// Columns before a hint, and between its parts.
const INDENT: usize = 2;
/// Columns a purpose wants beside its command; with less it goes below.
const PURPOSE: usize = 24;

/// Writes the machine in a few lines, then the hints.
pub fn overview(machine: &Machine, hints: &[Hint<'_>], style: &Style) -> String {
    let mut page = Page::new(*style);
    head(machine, &mut page);
    nodes(machine, &mut page);
    let distances = Distances::from_machine(machine);
    if let Some(words) = distances.words().or_else(|| distances.summary()) {
        page.line(2, &format!("distances: {words}").into());
    }
    if let Some(pointer) = pointer(machine) {
        page.line(2, &Line::new().with(Ink::Notable, pointer));
    }
    page.line(0, &Line::new());
    let widest = hints.iter().map(|hint| columns(hint.command)).max().unwrap_or(0);
    for hint in hints {
        let mut line = Line::from("  ").with(Ink::Accent, hint.command);
        if widest + 2 * INDENT + PURPOSE <= page.width() {
            let blank = 2 + widest - columns(hint.command);
            line.push(Ink::Plain, format!("{}{}", " ".repeat(blank), hint.purpose));
            page.line(widest + 4, &line);
        } else {
            page.line(4, &line);
            page.line(6, &format!("      {}", hint.purpose).into());
        }
    }
    page.finish()
}

/// Nodes that are reported in one line: how many CPUs each has, what kind it is, what memory.
struct Group {
    nodes: NodeSet,
    cpus: usize,
    kind: NodeKind,
    sizes: Vec<Bytes>,
}

impl Group {
    fn from_node(machine: &Machine, node: &Node) -> Self {
        Self {
            nodes: NodeSet::from_iter([node.id]),
            cpus: machine.cpus_of(node.id).len(),
            kind: NodeKind::from_node(machine, node),
            sizes: machine.memory_of(node.id).into_iter().collect(),
        }
    }

    fn is_like(&self, other: &Self) -> bool {
        let near = alike_sizes(self.sizes.first().copied(), other.sizes.first().copied());
        (self.cpus, self.kind) == (other.cpus, other.kind) && near
    }

    fn words(&self) -> String {
        let memory = match (self.sizes.iter().min(), self.sizes.iter().max()) {
            (Some(least), Some(most)) if least.to_string() != most.to_string() => {
                Some(format!("{least} to {most}"))
            }
            (_, most) => most.map(ToString::to_string),
        };
        let cpus = (self.cpus > 0).then(|| plural(self.cpus, "CPU"));
        let memory = memory.filter(|_| self.sizes.iter().any(|size| *size > Bytes::new(0)));
        let has: Vec<String> = cpus.into_iter().chain(memory).collect();
        let mark = self.kind.words().map(ToOwned::to_owned);
        let has = Some(has.join(" and ")).filter(|has| !has.is_empty());
        has.into_iter().chain(mark).collect::<Vec<_>>().join(", ")
    }
}

/// The nodes, those that are alike together: `nodes 0-3: each 24 CPUs and 63 GiB`.
fn nodes(machine: &Machine, page: &mut Page) {
    let mut groups: Vec<Group> = Vec::new();
    for node in machine.nodes.values() {
        let one = Group::from_node(machine, node);
        match groups.iter_mut().find(|group| group.is_like(&one)) {
            Some(group) => {
                group.nodes.insert(node.id);
                group.sizes.extend(one.sizes);
            }
            None => groups.push(one),
        }
        if groups.len() > MOST_GROUPS {
            return;
        }
    }
    if machine.nodes.len() < 2 {
        return;
    }
    for group in &groups {
        let each = if group.nodes.len() > 1 { "each " } else { "" };
        page.line(2, &format!("{}: {each}{}", node_names(&group.nodes), group.words()).into());
    }
}

/// Beyond this many different nodes the overview leaves them to `show`.
const MOST_GROUPS: usize = 4;
