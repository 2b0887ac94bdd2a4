//! `nodewise.simulation/2`: a scenario that was played, as its changes.

use std::collections::BTreeMap;

use nodewise_machine::{NodeCounters, NodeId};
use nodewise_model::simulate::{Cause, GroupState, Killed, LimitMet, Owner, Placement, Relief, Step};
use nodewise_model::{Errno, Memory, ZoneKind, ZoneState};
use serde::Serialize;

use crate::digest::timeline::groups::{limit_word, outcome_word};
use crate::digest::timeline::{Moment, Timeline, TimelineFinding, skipped_word, state};

/// The schema of the document.
pub const SCHEMA: &str = "nodewise.simulation/2";

#[derive(Serialize)]
struct Head<'a> {
    schema: &'static str,
    title: &'a str,
    machine: &'a str,
    kernel: String,
    page_bytes: u64,
    zones_from: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    assumed_architecture: Option<&'static str>,
    zones: Vec<ZoneJson>,
}

#[derive(Serialize)]
struct StepJson<'a> {
    at_s: f64,
    #[serde(skip_serializing_if = "str::is_empty")]
    program: &'a str,
    does: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    object: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<RefusedJson>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    taken: Vec<Pages>,
    #[serde(skip_serializing_if = "is_zero")]
    moved_pages: u64,
    #[serde(skip_serializing_if = "is_zero")]
    promoted_pages: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    local_after: Option<LocalAfterJson>,
    #[serde(skip_serializing_if = "is_zero")]
    stayed_pages: u64,
    #[serde(skip_serializing_if = "is_zero")]
    swapped_in_pages: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    missing_pages: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    dropped: Vec<DroppedJson>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    from_fragmented: Vec<Pages>,
    #[serde(skip_serializing_if = "is_zero")]
    unwritten_pages: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    swapped_out: Vec<Pages>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    demoted: Vec<DemotedJson>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    limits: Vec<LimitJson<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    killed: Vec<KilledJson<'a>>,
    #[serde(flatten)]
    owners: Owners<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    zones: Vec<FreeJson>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    counters: Vec<CountersJson>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    findings: Vec<&'a str>,
}

/// A band of the share of pages that follow a CPU.
#[derive(Serialize)]
struct LocalAfterJson {
    cpu_time_s: f64,
    low_share: f64,
    high_share: f64,
}

#[derive(Serialize)]
struct After<'a> {
    #[serde(flatten)]
    owners: Owners<'a>,
    zones: Vec<FreeJson>,
    nodes: Vec<NodeJson>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    groups: Vec<GroupJson<'a>>,
}

/// Who has memory, and where.
#[derive(Serialize, Default)]
struct Owners<'a> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    programs: Vec<OwnerJson<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<OwnerJson<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    caches: Vec<OwnerJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pool: Option<Vec<Pages>>,
}

#[derive(Serialize)]
struct Pages {
    node: u32,
    pages: u64,
}

/// Caches of a node that were dropped.
#[derive(Serialize)]
struct DroppedJson {
    node: u32,
    pages: u64,
    #[serde(skip_serializing_if = "is_zero")]
    ahead_pages: u64,
}

#[derive(Serialize)]
struct OwnerJson<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    gone: bool,
    memory: Vec<Pages>,
    #[serde(skip_serializing_if = "is_zero")]
    common_pages: u64,
    #[serde(skip_serializing_if = "is_zero")]
    swapped_pages: u64,
}

#[derive(Serialize)]
struct RefusedJson {
    errno: &'static str,
    number: i32,
}

#[derive(Serialize)]
struct DemotedJson {
    node: u32,
    to_node: u32,
    pages: u64,
}

#[derive(Serialize)]
struct KilledJson<'a> {
    program: &'a str,
    cause: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<&'a str>,
    had: Vec<Pages>,
    #[serde(skip_serializing_if = "Option::is_none")]
    oom_score_adj: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<&'a str>,
}

/// A limit of a control group that was met.
#[derive(Serialize)]
struct LimitJson<'a> {
    group: &'a str,
    limit: &'static str,
    limit_pages: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    dropped: Vec<Pages>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    swapped_out: Vec<Pages>,
    outcome: &'static str,
}

/// A control group: sizes without a limit are left out.
#[derive(Serialize)]
struct GroupJson<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_pages: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    high_pages: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    low_pages: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_pages: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    swap_max_pages: Option<u64>,
    oom_group: bool,
    memory_pages: u64,
    peak_pages: u64,
    swap_pages: u64,
    oom: u64,
    oom_kill: u64,
}

#[derive(Serialize)]
struct ZoneJson {
    node: u32,
    zone: &'static str,
    managed_pages: u64,
    free_pages: u64,
    min_pages: u64,
    low_pages: u64,
    high_pages: u64,
    promo_pages: u64,
    reserve_from_programs_pages: u64,
}

#[derive(Serialize)]
struct FreeJson {
    node: u32,
    zone: &'static str,
    free_pages: u64,
    state: &'static str,
}

#[derive(Serialize)]
struct CountersJson {
    node: u32,
    numa_hit: u64,
    numa_miss: u64,
    numa_foreign: u64,
    interleave_hit: u64,
    local_node: u64,
    other_node: u64,
}

#[derive(Serialize)]
struct NodeJson {
    managed_pages: u64,
    free_pages: u64,
    least_free_pages: u64,
    #[serde(flatten)]
    counters: CountersJson,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn pages(nodes: impl IntoIterator<Item = (NodeId, u64)>) -> Vec<Pages> {
    nodes.into_iter().map(|(node, pages)| Pages { node: node.number(), pages }).collect()
}

fn owners<'a>(all: impl IntoIterator<Item = (&'a Owner, Option<&'a Placement>)>) -> Owners<'a> {
    let mut owners = Owners::default();
    for (owner, placement) in all {
        let memory =
            || pages(placement.into_iter().flat_map(|one| &one.nodes).map(|(node, pages)| (*node, *pages)));
        let named = |name: &'a String| OwnerJson {
            name,
            gone: placement.is_none(),
            memory: memory(),
            common_pages: placement.map_or(0, |one| one.common.values().sum()),
            swapped_pages: placement.map_or(0, |one| one.swapped),
        };
        match owner {
            Owner::Program(name) => owners.programs.push(named(name)),
            Owner::File(name) => owners.files.push(named(name)),
            Owner::Cache(name) => owners.caches.push(named(name)),
            Owner::Pool => owners.pool = Some(memory()),
        }
    }
    owners
}

const fn refused(errno: Errno) -> RefusedJson {
    RefusedJson { errno: errno.name(), number: errno.number() }
}

fn killed(killed: &Killed) -> KilledJson<'_> {
    let cause = match killed.cause {
        Cause::OutOfMemory(_) => "out_of_memory",
        Cause::GroupLimit { .. } => "group_limit",
        Cause::WholeGroup { .. } => "whole_group",
        Cause::NoHugePage => "no_huge_page",
    };
    let group = match &killed.cause {
        Cause::GroupLimit { group, .. } | Cause::WholeGroup { group } => Some(group.as_str()),
        Cause::OutOfMemory(_) | Cause::NoHugePage => None,
    };
    KilledJson {
        program: &killed.program,
        cause,
        group,
        had: pages(killed.had.iter().copied()),
        oom_score_adj: Some(killed.adjustment).filter(|value| *value != 0),
        next: killed.next.as_deref(),
    }
}

fn limit(met: &LimitMet) -> LimitJson<'_> {
    LimitJson {
        group: &met.group,
        limit: limit_word(met.limit),
        limit_pages: met.size,
        dropped: pages(met.dropped.iter().copied()),
        swapped_out: pages(met.swapped.iter().copied()),
        outcome: outcome_word(met.outcome),
    }
}

fn group<'a>((name, own): (&'a String, &'a GroupState)) -> GroupJson<'a> {
    GroupJson {
        name,
        parent: own.parent.as_deref(),
        max_pages: own.limits.max,
        high_pages: own.limits.high,
        low_pages: own.limits.low,
        min_pages: own.limits.min,
        swap_max_pages: own.limits.swap_max,
        oom_group: own.limits.kills_all,
        memory_pages: own.memory,
        peak_pages: own.peak,
        swap_pages: own.swap,
        oom: own.ooms,
        oom_kill: own.killed,
    }
}

fn free(zones: &[ZoneState]) -> Vec<FreeJson> {
    let of = |zone: &ZoneState| FreeJson {
        node: zone.node.number(),
        zone: zone.kind.name(),
        free_pages: zone.free,
        state: state(zone),
    };
    zones.iter().map(of).collect()
}

const fn counters(node: NodeId, own: &NodeCounters) -> CountersJson {
    CountersJson {
        node: node.number(),
        numa_hit: own.hit,
        numa_miss: own.miss,
        numa_foreign: own.foreign,
        interleave_hit: own.interleave_hit,
        local_node: own.local,
        other_node: own.other,
    }
}

/// Caches that were dropped for a step, and those that kswapd may have dropped beside.
fn dropped(step: &Step) -> Vec<DroppedJson> {
    let mut nodes: BTreeMap<NodeId, (u64, u64)> = BTreeMap::new();
    for relief in &step.reliefs {
        if let Relief::Dropped { node, pages } = relief {
            nodes.entry(*node).or_default().0 += pages;
        }
    }
    step.ahead.iter().for_each(|(node, pages)| nodes.entry(*node).or_default().1 += pages);
    let of = |(node, (pages, ahead_pages)): (NodeId, (u64, u64))| DroppedJson {
        node: node.number(),
        pages,
        ahead_pages,
    };
    nodes.into_iter().map(of).collect()
}

fn step(moment: &Moment) -> StepJson<'_> {
    let step = &moment.step;
    let swapped = step.reliefs.iter().filter_map(|relief| match relief {
        Relief::Swapped { node, pages } => Some((*node, *pages)),
        Relief::Dropped { .. } | Relief::Demoted { .. } => None,
    });
    let demoted = step.reliefs.iter().filter_map(|relief| match relief {
        Relief::Demoted { node, to, pages } => {
            Some(DemotedJson { node: node.number(), to_node: to.number(), pages: *pages })
        }
        Relief::Dropped { .. } | Relief::Swapped { .. } => None,
    });
    StepJson {
        at_s: moment.at_s,
        program: &moment.program,
        does: moment.does(),
        object: moment.object(),
        skipped: step.skipped.map(skipped_word),
        refused: step.refused.map(refused),
        taken: pages(step.taken.iter().copied()),
        moved_pages: step.moved,
        promoted_pages: step.promoted,
        local_after: step.local_after.map(|after| LocalAfterJson {
            cpu_time_s: after.time.as_secs_f64(),
            low_share: f64::from(after.low_permille) / 1000.0,
            high_share: f64::from(after.high_permille) / 1000.0,
        }),
        stayed_pages: step.stayed,
        swapped_in_pages: step.swapped_in,
        missing_pages: step.missing.as_ref().map(|end| end.pages),
        dropped: dropped(step),
        from_fragmented: pages(step.raised.iter().copied()),
        unwritten_pages: step.unwritten,
        swapped_out: pages(swapped),
        demoted: demoted.collect(),
        limits: step.limits.iter().map(limit).collect(),
        killed: step.killed.iter().map(killed).collect(),
        owners: owners(step.changed.iter().map(|(owner, placement)| (owner, placement.as_ref()))),
        zones: free(&moment.zones),
        counters: moment.counters.iter().map(|(node, own)| counters(*node, own)).collect(),
        findings: moment.findings.iter().map(|TimelineFinding { sentence, .. }| sentence.as_str()).collect(),
    }
}

fn node(id: NodeId, after: &Memory, least_free_pages: u64) -> NodeJson {
    let own = after.counters().get(&id).copied().unwrap_or_default();
    NodeJson {
        managed_pages: after.managed_of(id),
        free_pages: after.free_of(id),
        least_free_pages,
        counters: counters(id, &own),
    }
}

fn zone(zone: &ZoneState) -> ZoneJson {
    ZoneJson {
        node: zone.node.number(),
        zone: zone.kind.name(),
        managed_pages: zone.managed,
        free_pages: zone.free,
        min_pages: zone.marks.min,
        low_pages: zone.marks.low,
        high_pages: zone.marks.high,
        promo_pages: zone.marks.promo,
        reserve_from_programs_pages: zone.reserves[ZoneKind::Movable as usize],
    }
}

/// A scenario that was played as JSON, piece by piece, so that no more than a step of it is text at a time.
pub fn timeline(timeline: &Timeline) -> impl Iterator<Item = String> + '_ {
    let head = Head {
        schema: SCHEMA,
        title: &timeline.title,
        machine: &timeline.machine,
        kernel: timeline.release.to_string(),
        page_bytes: timeline.before.page_bytes(),
        zones_from: timeline.basis.word(),
        assumed_architecture: timeline.basis.assumed_architecture(),
        zones: timeline.before.zones().iter().map(zone).collect(),
    };
    let nodes = timeline.least_free.iter();
    let after = After {
        owners: owners(timeline.placements.iter().map(|(owner, placement)| (owner, Some(placement)))),
        zones: free(timeline.after.zones()),
        nodes: nodes.map(|(id, least)| node(*id, &timeline.after, *least)).collect(),
        groups: timeline.groups.iter().map(group).collect(),
    };
    let head = text(&head, 0);
    let open = format!("{},\n  \"steps\": [", head.trim_end_matches(['}', '\n']));
    let first = |at: usize| if at == 0 { "\n    " } else { ",\n    " };
    let steps = timeline.moments.iter().enumerate();
    let steps = steps.map(move |(at, moment)| format!("{}{}", first(at), text(&step(moment), 4)));
    let close = if timeline.moments.is_empty() { "]" } else { "\n  ]" };
    let close = format!("{close},\n  \"after\": {}\n}}\n", text(&after, 2));
    [open].into_iter().chain(steps).chain([close])
}

/// A part of the document, indented behind its first line.
fn text(part: &impl Serialize, indent: usize) -> String {
    let text = serde_json::to_string_pretty(part).expect("the document holds no map with foreign keys");
    // Line ends in strings are escaped, so every one that is here is one of the form.
    text.replace('\n', &format!("\n{}", " ".repeat(indent)))
}
