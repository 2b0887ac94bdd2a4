//! A request and what became of it, as text and JSON show it.

pub mod answers;
pub mod groups;
pub mod victim;

use std::collections::BTreeMap;

use nodewise_machine::check::node_names;
use nodewise_machine::{Bytes, Machine, NodeCounters, NodeId, NodeSet, Origin};
use nodewise_model::trace::Passed;
use nodewise_model::walk::{Constraint, OutOfMemory, Outcome};
use nodewise_model::{Interval, Memory, Policy, Release, Relief, Verdict};

use super::cost::Reading;
use super::counts::by_count;
use super::process_memory::ProcessMemory;
use groups::WalkGroups;
use victim::VictimAnswer;

/// Where the zones and their free pages come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The kernel's own figures, at this moment or when a capture was made.
    Kernel,
    /// The ranges that the firmware's tables give.
    Firmware,
    /// The sizes of the nodes; where they lie in the address space is assumed.
    Assumed,
    /// The same, and the architecture is assumed too.
    AssumedX86,
}

impl Basis {
    /// The word in JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Firmware => "firmware",
            Self::Assumed | Self::AssumedX86 => "assumed",
        }
    }

    /// The basis where the sizes of a machine's nodes are all that is known of its memory. In a spec the
    /// architecture is x86-64 by definition, unless it names another; in a capture that is a guess.
    pub const fn assumed_of(machine: &Machine) -> Self {
        match machine.origin {
            _ if machine.architecture.is_some() => Self::Assumed,
            Origin::Spec(_) => Self::Assumed,
            _ => Self::AssumedX86,
        }
    }

    /// The architecture that is assumed, as `uname -m` prints it; `None` where the machine gives it.
    pub const fn assumed_architecture(self) -> Option<&'static str> {
        match self {
            Self::AssumedX86 => Some("x86_64"),
            _ => None,
        }
    }

    /// Returns the note that the reader needs on it; `None` where the figures are those of a kernel.
    pub const fn note(self) -> Option<&'static str> {
        match self {
            Self::Kernel => None,
            Self::Firmware => {
                Some("Zones follow from the firmware's ranges of memory, with the kernel's own settings.")
            }
            Self::Assumed => Some(
                "Zones are assumed: nodes one after the other from the bottom of the address space, with the kernel's \
                 own settings.",
            ),
            Self::AssumedX86 => Some(
                "Zones are assumed: those of x86-64 (the machine gives no architecture, --architecture does), nodes one \
                 after the other from the bottom of the address space, with the kernel's own settings.",
            ),
        }
    }
}

/// The kind of memory that is touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryKind {
    /// Private memory: turns go by addresses.
    Private,
    /// Copies of a file's pages: turns go by numbers of pages in it.
    PrivateFile,
    /// A file in memory: turns go by numbers of pages in it, and by its inode.
    Shared,
    /// Pages of the page cache: the task's cursor says whose turn it is.
    Cache,
}

impl MemoryKind {
    /// The word in JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Private => "private",
            Self::PrivateFile => "private-file",
            Self::Shared => "shared",
            Self::Cache => "cache",
        }
    }
}

/// Pages of this many bytes as a size.
pub fn size_of(pages: u64, page: u64) -> String {
    Bytes::new(page).times(pages).to_string()
}

/// The effect of the kernel about pages that find no room, with the memory that it leaves aside.
pub fn consequence(end: &OutOfMemory, memory: &Memory) -> String {
    let inside = inside(end);
    format!("the kernel reclaims and swaps {inside}, then ends {}", ended(end, memory))
}

/// Where a request looks for room.
fn inside(end: &OutOfMemory) -> String {
    match end.constraint {
        Constraint::None => "everywhere".to_owned(),
        Constraint::MemoryPolicy | Constraint::Cpuset => format!("inside {}", node_names(&end.inside)),
    }
}

/// Who is killed, and the memory that is free beside it.
fn ended(end: &OutOfMemory, memory: &Memory) -> String {
    let ended = match end.constraint {
        Constraint::None => return "a process".to_owned(),
        Constraint::MemoryPolicy => "a process that may use them",
        Constraint::Cpuset => "a process of this cpuset",
    };
    let left = memory.nodes().difference(&end.inside);
    let free: u64 = left.iter().map(|node| memory.free_of(node)).sum();
    format!(
        "{ended}, though {} {} {} free",
        node_names(&left),
        by_count(&left.len(), "has", "have"),
        size_of(free, memory.page_bytes())
    )
}

/// An interval of pages as sizes: `330 to 440 MiB`, and `up to 440 MiB` from 0 on.
pub(crate) fn sizes_of(pages: Interval, page: u64) -> String {
    let most = size_of(pages.most, page);
    let least = size_of(pages.least, page);
    match pages.least {
        least_pages if least_pages == pages.most || least == most => most,
        0 => format!("up to {most}"),
        _ => format!("{least} to {most}"),
    }
}

/// The way in which the kernel makes room for the pages that find none, and whether a process is killed.
///
/// With a size, `289 MiB find no free memory: the kernel drops 289 MiB of ...`; without one, what there is at the end.
pub fn relieved(relief: &Relief, end: &OutOfMemory, memory: &Memory, is_all: bool) -> String {
    let (page, inside) = (memory.page_bytes(), inside(end));
    let (dropped, swapped) = match is_all {
        // Whoever takes all there is takes all that can be freed, too.
        true => (relief.caches, relief.swap.map(|swap| Interval { least: swap, most: swap })),
        false => (relief.dropped, relief.swapped),
    };
    let mut does = Vec::new();
    if relief.has_caches() {
        let of = if dropped.most < relief.caches.most {
            format!(" (of {} that can be)", sizes_of(relief.caches, page))
        } else {
            String::new()
        };
        does.push(format!("drops {} of page cache and slab {inside}{of}", sizes_of(dropped, page)));
    }
    let place = if does.is_empty() { format!(" {inside}") } else { String::new() };
    match swapped {
        None => does.push(format!("swaps{place} if there is swap")),
        Some(Interval { most: 0, .. }) if does.is_empty() => {
            does.push(format!("finds nothing to drop{place} and has no swap"));
        }
        Some(Interval { most: 0, .. }) => {}
        Some(swapped) => does.push(format!("swaps {} out{place}", sizes_of(swapped, page))),
    }
    let does = does.join(" and ");
    let ended = ended(end, memory);
    match relief.verdict() {
        _ if is_all => format!("then the kernel {does}, and ends {ended}"),
        Verdict::Survives => format!("the kernel {does}; it ends no process"),
        Verdict::Killed => {
            format!("the kernel {does}, and ends {ended}: {} have no room", sizes_of(relief.unplaced, page))
        }
        Verdict::Open => format!(
            "the kernel {does}; whether it ends a process is open, as {} may have no room",
            sizes_of(relief.unplaced, page)
        ),
    }
}

/// Why memory is in transparent huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HugeReason {
    /// The machine gives them to all programs.
    Setting,
    /// They were asked for.
    Asked,
}

impl HugeReason {
    /// The word in JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Setting => "setting",
            Self::Asked => "asked",
        }
    }
}

/// A request that the model has played.
#[derive(Clone, Copy, Debug)]
pub struct Walk<'a> {
    /// The policy as the kernel keeps it.
    pub policy: &'a Policy,
    /// Nodes that were asked for and that the kernel leaves out: they cannot be used.
    pub left_out: &'a NodeSet,
    /// The process whose next memory this is, where one was named.
    pub process: Option<&'a ProcessMemory>,
    /// Whether the policy is the system's, for programs that have set none.
    pub is_systems: bool,
    pub kind: MemoryKind,
    /// The number of the first page, where it was named.
    pub first_page: Option<u64>,
    /// The node of the CPU that touches the pages.
    pub cpu_node: NodeId,
    /// Nodes that may be used.
    pub allowed: &'a NodeSet,
    /// How many bytes were asked for; `None` for as much as there is.
    pub size_bytes: Option<u64>,
    pub release: Release,
    /// Where the figures come from.
    pub basis: Basis,
    pub before: &'a Memory,
    pub after: &'a Memory,
    pub outcome: &'a Outcome,
    /// The way in which room is made for pages that find none; `None` where all find room, and where the machine does not
    /// say what it has in caches.
    pub relief: Option<Relief>,
    /// Who is killed; `None` where no process is.
    pub victim: Option<&'a VictimAnswer>,
    /// Pages of caches that can be dropped on the nodes of the request; `None` where the machine does not say.
    pub droppable: Option<Interval>,
    /// Pages that swap takes; `None` where the machine does not say.
    pub swap: Option<u64>,
    /// The control groups of the program; `None` where they are neither known nor typed.
    pub groups: Option<&'a WalkGroups>,
    /// Page cache by node, where a node has some: its pages in the lists of files.
    pub caches: &'a BTreeMap<NodeId, u64>,
    /// Why memory is in transparent huge pages; `None` where it is not.
    pub huge: Option<HugeReason>,
    /// The functions that were passed, where they were asked for.
    pub trace: &'a [Passed],
    /// The cost of reading the memory, where that was asked for.
    pub reading: Option<&'a Reading>,
}

/// A node before and after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeChange {
    pub node: NodeId,
    /// Free pages before.
    pub before: u64,
    /// Free pages after.
    pub after: u64,
    /// Pages of its caches that were given up on the way (`vm.zone_reclaim_mode`).
    pub reclaimed: u64,
    /// Page cache before; `None` where the machine has none, or does not say.
    pub cache: Option<u64>,
    pub counters: NodeCounters,
}

impl NodeChange {
    /// Pages that were taken from it.
    pub const fn taken(&self) -> u64 {
        self.before + self.reclaimed - self.after
    }
}

impl Walk<'_> {
    /// The nodes that were asked for, where the policy works with others.
    pub fn asked_otherwise(&self) -> Option<&NodeSet> {
        self.policy.asked.as_ref().filter(|asked| **asked != self.policy.nodes)
    }

    /// Whether the request takes all that the nodes have.
    pub fn takes_all(&self) -> bool {
        self.size_bytes.is_none() && self.groups.is_none_or(|groups| groups.cut.is_none())
    }

    /// Every node with memory.
    pub fn nodes(&self) -> Vec<NodeChange> {
        let counters = |memory: &Memory, node| memory.counters().get(&node).copied().unwrap_or_default();
        let change = |node| {
            let reclaimed = |memory: &Memory| memory.reclaimed().get(&node).copied().unwrap_or(0);
            let (old, new) = (counters(self.before, node), counters(self.after, node));
            let counters = new.since(old);
            let (before, after) = (self.before.free_of(node), self.after.free_of(node));
            NodeChange {
                node,
                before,
                after,
                reclaimed: reclaimed(self.after) - reclaimed(self.before),
                cache: self.caches.get(&node).copied(),
                counters,
            }
        };
        self.before.nodes().iter().map(change).collect()
    }
}
