//! The points that a reader should not miss of a step, as sentences.

use std::collections::BTreeMap;

use nodewise_machine::check::node_names;
use nodewise_machine::{NodeCounters, NodeId, NodeSet};
use nodewise_model::simulate::{Act, Cause, Killed, Relief, Skipped, Step};
use nodewise_model::walk::Constraint;
use nodewise_model::{Memory, Release};

use super::{groups, named, shares};
use crate::digest::counts::by_count;
use crate::digest::walk::{consequence, size_of};

/// The points that a reader should not miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimelineFindingKind {
    /// The kernel refused a call.
    Refused,
    Killed,
    /// A request found no room, and no one could be killed.
    Missing,
    /// A node was full, and others gave what was to come from it.
    Elsewhere,
    /// Pages of caches were given up.
    Dropped,
    /// Pages went to a disk.
    Swapped,
    /// A limit of a control group was met.
    Limited,
    /// Pages went to slower memory.
    Demoted,
    /// A step of the scenario could not happen any more.
    Skipped,
    /// Pages did not move.
    Stayed,
}

impl TimelineFindingKind {
    /// The word at a picture's mark.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Killed => "killed",
            Self::Missing => "no room",
            Self::Elsewhere => "fallback",
            Self::Dropped => "cache",
            Self::Swapped => "swap",
            Self::Limited => "limit",
            Self::Demoted => "demotion",
            Self::Skipped => "skipped",
            Self::Stayed => "stayed",
        }
    }
}

/// A sentence about a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelineFinding {
    pub kind: TimelineFindingKind,
    pub sentence: String,
}

/// A step that is reported.
pub(super) struct ReportedStep<'a> {
    pub at_s: f64,
    pub program: &'a str,
    pub act: &'a Act,
    pub step: &'a Step,
    pub memory: &'a Memory,
    /// The gains of the nodes' counters.
    pub counters: &'a BTreeMap<NodeId, NodeCounters>,
    pub release: Release,
}

/// The points that a reader should not miss of a step.
pub(super) fn findings(told: &ReportedStep<'_>) -> Vec<TimelineFinding> {
    let ReportedStep { at_s, program, step, memory, .. } = told;
    let page = memory.page_bytes();
    let mut findings = Vec::new();
    let mut tell = |kind, sentence: String| {
        findings.push(TimelineFinding { kind, sentence: format!("At {at_s} s {sentence}") })
    };
    if let Some(errno) = step.refused {
        tell(
            TimelineFindingKind::Refused,
            format!(
                "Linux {} answers {errno} to {} of {program}{}",
                told.release,
                call(told.act, page),
                after(told.act)
            ),
        );
    }
    if let Some(why) = step.skipped {
        let why = match why {
            Skipped::Killed => "it was killed",
            Skipped::NotStarted => "its policy was refused when it started",
            Skipped::NotMapped => "the memory was refused",
        };
        tell(TimelineFindingKind::Skipped, format!("{program} cannot do what it is to do: {why}"));
    }
    if let Some(sentence) = elsewhere(told) {
        tell(TimelineFindingKind::Elsewhere, sentence);
    }
    // What was done to have room came before anybody was killed.
    let before = |node: NodeId| match step.killed.first() {
        Some(killed) => free_before(killed, node),
        None => memory.free_of(node),
    };
    for relief in &step.reliefs {
        match relief {
            Relief::Dropped { node, pages } => tell(
                TimelineFindingKind::Dropped,
                format!(
                    "{} of page cache and slab are dropped on node {node}{}",
                    size_of(*pages, page),
                    ahead(step, *node, page)
                ),
            ),
            Relief::Swapped { node, pages } => {
                let others = memory.nodes().difference(&NodeSet::from_iter([*node]));
                tell(
                    TimelineFindingKind::Swapped,
                    format!(
                        "{} of node {node} go to swap{}",
                        size_of(*pages, page),
                        though(&others, before, page)
                    ),
                );
            }
            Relief::Demoted { node, to, pages } => {
                tell(
                    TimelineFindingKind::Demoted,
                    format!("{} of node {node} are demoted to node {to}", size_of(*pages, page)),
                );
            }
        }
    }
    for (node, pages) in step.ahead.iter().filter(|(node, _)| !drops(step, *node)) {
        tell(
            TimelineFindingKind::Dropped,
            format!(
                "up to {} of page cache may be dropped on node {node}: kswapd frees ahead",
                size_of(*pages, page)
            ),
        );
    }
    for (node, pages) in &step.raised {
        tell(
            TimelineFindingKind::Dropped,
            format!(
                "up to {} of the page cache may be on node {node} instead: if its memory is fragmented, raised watermarks \
                 (vm.watermark_boost_factor) make kswapd drop older page cache there",
                size_of(*pages, page)
            ),
        );
    }
    if step.unwritten > 0 {
        tell(
            TimelineFindingKind::Stayed,
            format!("{} of page cache stay, as they are not on the disk yet", size_of(step.unwritten, page)),
        );
    }
    for met in &step.limits {
        if let Some(sentence) = groups::sentence(met, program, memory, &before) {
            tell(TimelineFindingKind::Limited, sentence);
        }
    }
    for killed in &step.killed {
        let had = match killed.had.as_slice() {
            [] => String::new(),
            had => format!(" (it had {})", shares(had.iter().copied(), page)),
        };
        let name = &killed.program;
        let sentence = match &killed.cause {
            Cause::NoHugePage => {
                format!(
                    "{name} touches a huge page that the pool does not have, and is killed by SIGBUS{had}"
                )
            }
            Cause::WholeGroup { group } => {
                format!("{name} is killed with it: memory.oom.group of the group {group} is set{had}")
            }
            Cause::GroupLimit { group, missing } => {
                let size = step.limits.iter().find(|met| met.group == *group).map_or(0, |met| met.size);
                let (size, missing) = (size_of(size, page), size_of(*missing, page));
                let whose = if program.is_empty() { "too much" } else { "missing" };
                let though = groups::though(memory, &|node| free_before(killed, node));
                let (adjusted, next) = (adjusted(killed), next(killed));
                format!(
                    "the group {group} reached its memory.max of {size} ({missing} {whose}), and none of its pages can be \
                     swapped out: the OOM killer ends {name}, the largest of the group{adjusted}{had}{though}{next}"
                )
            }
            Cause::OutOfMemory(end) => {
                let others = memory.nodes().difference(&end.inside);
                let though = though(&others, |node| free_before(killed, node), page);
                let (missing, inside) = (size_of(end.pages, page), node_names(&end.inside));
                let whom = largest(end.constraint);
                let (adjusted, next) = (adjusted(killed), next(killed));
                format!(
                    "{missing} of {program} find no room on {inside}{though}: the OOM killer ends {name}, \
                     {whom}{adjusted}{had}{next}"
                )
            }
        };
        tell(TimelineFindingKind::Killed, sentence);
    }
    if let Some(end) = &step.missing {
        let consequence = consequence(end, memory);
        tell(
            TimelineFindingKind::Missing,
            format!(
                "{} of {program} find no room, and no program here may be killed for them: {consequence}",
                size_of(end.pages, page)
            ),
        );
    }
    if step.stayed > 0 {
        tell(
            TimelineFindingKind::Stayed,
            format!(
                "{} of {program} do not move: there is no room, or others have them too",
                size_of(step.stayed, page)
            ),
        );
    }
    findings
}

/// Whether caches of a node are dropped for what a step takes.
fn drops(step: &Step, of: NodeId) -> bool {
    step.reliefs.iter().any(|relief| matches!(relief, Relief::Dropped { node, .. } if *node == of))
}

/// Page cache that may go beside what is wanted.
fn ahead(step: &Step, of: NodeId, page: u64) -> String {
    let ahead = step.ahead.iter().find(|(node, _)| *node == of);
    ahead.map_or_else(String::new, |(_, pages)| {
        format!(", and up to {} more, as kswapd frees ahead", size_of(*pages, page))
    })
}

/// Where pages come from instead of a full node. Counters count huge pages as one: sizes are stated where all pages are small.
fn elsewhere(told: &ReportedStep<'_>) -> Option<String> {
    let ReportedStep { program, step, memory, counters, .. } = told;
    let nodes = |counted: fn(&NodeCounters) -> u64| -> NodeSet {
        counters.iter().filter(|(_, gained)| counted(gained) > 0).map(|(node, _)| *node).collect()
    };
    let (full, others) = (nodes(|gained| gained.foreign), nodes(|gained| gained.miss));
    if step.taken.is_empty() || full.is_empty() || others.is_empty() {
        return None;
    }
    let counted: u64 = counters.values().map(|gained| gained.hit + gained.miss).sum();
    let taken: u64 = step.taken.iter().map(|(_, pages)| pages).sum();
    let missed = others.iter().filter_map(|node| Some((node, counters.get(&node)?.miss)));
    let missed: Vec<(NodeId, u64)> = missed.filter(|_| counted == taken).collect();
    let page = memory.page_bytes();
    let whence = match missed[..] {
        [] => format!("pages come from {} instead", node_names(&others)),
        [(node, pages)] => format!("{} come from node {node} instead", size_of(pages, page)),
        _ => format!("pages come from {} instead ({})", node_names(&others), shares(missed, page)),
    };
    let was = by_count(&full.len(), "was", "were");
    Some(format!("{} {was} full for {program}: {whence}", node_names(&full)))
}

/// Who is killed, by what kept the request from other nodes.
const fn largest(constraint: Constraint) -> &'static str {
    match constraint {
        Constraint::None => "the largest",
        Constraint::MemoryPolicy => "the largest of those that are bound there or not bound at all",
        Constraint::Cpuset => "the largest of those whose cpuset is there",
    }
}

/// Nodes that had memory free; empty without any.
fn though(nodes: &NodeSet, free: impl Fn(NodeId) -> u64, page: u64) -> String {
    if nodes.is_empty() {
        return String::new();
    }
    let free: u64 = nodes.iter().map(free).sum();
    format!(
        ", though {} {} {} free",
        node_names(nodes),
        by_count(&nodes.len(), "has", "have"),
        size_of(free, page)
    )
}

/// The value by which a killed program was ranked, where it has one.
fn adjusted(killed: &Killed) -> String {
    match killed.adjustment {
        0 => String::new(),
        value => format!(" (with oom_score_adj {value})"),
    }
}

fn next(killed: &Killed) -> String {
    killed.next.as_ref().map_or_else(String::new, |next| format!("; {next} would be next"))
}

/// Free pages of a node just before a program was killed.
fn free_before(killed: &Killed, node: NodeId) -> u64 {
    killed.free.iter().find(|(own, _)| *own == node).map_or(0, |(_, pages)| *pages)
}

/// The call that an act is, in the kernel's words.
fn call(act: &Act, page: u64) -> String {
    match act {
        Act::Start { policy, .. } | Act::SetPolicy(policy) => format!("set_mempolicy({policy})"),
        Act::Map(mapping) | Act::Allocate(mapping) => match &mapping.policy {
            Some(policy) => format!("mbind({}, {policy})", mapping.region),
            None => format!("mmap({}, {})", mapping.region, size_of(mapping.pages, page)),
        },
        Act::Bind { part, policy, .. } => format!("mbind({}, {policy})", named(part, page)),
        Act::SetHome { part, node } => format!("set_mempolicy_home_node({}, {node})", named(part, page)),
        Act::MovePages { part, node, .. } => format!("move_pages({}, {node})", named(part, page)),
        Act::Migrate { old, new } => format!("migrate_pages({old}, {new})"),
        Act::Touch(part) => format!("a write to {}", named(part, page)),
        Act::Remap { region, .. } => format!("mremap({region})"),
        _ => "a call".to_owned(),
    }
}

/// Describes the state after the refusal.
const fn after(act: &Act) -> &'static str {
    match act {
        Act::Start { .. } => ": it does not start",
        Act::Map(_) | Act::Allocate(_) => ": it goes on without this memory",
        _ => "",
    }
}
