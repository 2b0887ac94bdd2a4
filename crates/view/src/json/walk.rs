//! `nodewise.explain/1`: a request and what became of it.

use nodewise_model::charge::LimitRoom;
use nodewise_model::cost::Bottleneck;
use nodewise_model::walk::{Constraint, Mark, OutOfMemory, Share, Stretch};
use nodewise_model::{Interval, Relief, Verdict};
use serde::Serialize;

use super::pretty;
use crate::digest::cost::{Part, Reading};
use crate::digest::process_memory::{NodeMemory, ProcessMemory};
use crate::digest::walk::answers::Answers;
use crate::digest::walk::groups::{GroupAnswer, WalkGroup, WalkGroups, file};
use crate::digest::walk::victim::{Next, Victim, VictimAnswer};
use crate::digest::walk::{HugeReason, NodeChange, Walk};

/// The schema of the document.
pub const SCHEMA: &str = "nodewise.explain/1";

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    answers: AnswersJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    process: Option<ProcessJson>,
    policy: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    asked_nodes: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out_nodes: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    home_node: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    huge_pages: Option<&'static str>,
    memory: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_page: Option<u64>,
    cpu_node: u32,
    allowed_nodes: String,
    kernel: String,
    zones_from: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    assumed_architecture: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size_bytes: Option<u64>,
    steps: Vec<Step>,
    #[serde(skip_serializing_if = "Option::is_none")]
    out_of_memory: Option<EndJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    busy_nodes: Option<BusyJson>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    control_groups: Vec<GroupJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    control_groups_unknown: Option<String>,
    nodes: Vec<Node>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    functions: Vec<Function>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<CostJson>,
}

#[derive(Serialize)]
struct AnswersJson {
    summary: String,
    verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    falls_back_to_nodes: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    falls_back_after_pages: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    killed: Option<KilledJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<GroupAnswerJson>,
    page_cache: &'static str,
    swapping: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    swapping_after_pages: Option<StartJson>,
}

#[derive(Serialize)]
struct GroupAnswerJson {
    verdict: &'static str,
    reclaims_after_pages: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    max: Option<LimitJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    slowed_by: Option<LimitJson>,
}

#[derive(Serialize)]
struct LimitJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    file: &'static str,
    room_pages: StartJson,
    kills_all: bool,
}

#[derive(Serialize)]
struct GroupJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_pages: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    high_pages: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    swap_max_pages: Option<u64>,
    used_pages: IntervalJson,
    caches_pages: IntervalJson,
    swap_used_pages: u64,
}

#[derive(Serialize)]
struct KilledJson {
    kind: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    worst: Vec<VictimJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<VictimJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_of: Option<ManyJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<VictimJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unread_processes: Option<usize>,
}

#[derive(Serialize)]
struct ManyJson {
    processes: usize,
    most_badness_per_mille: i64,
}

#[derive(Serialize)]
struct VictimJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    asks: bool,
    size_pages: IntervalJson,
    oom_score_adj: i32,
    badness_per_mille: BadnessJson,
}

#[derive(Serialize)]
struct BadnessJson {
    least: i64,
    most: i64,
}

#[derive(Serialize)]
struct StartJson {
    least: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    most: Option<u64>,
}

#[derive(Serialize)]
struct ProcessJson {
    pid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    memory: String,
    policy: String,
    policy_of: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    other_policies: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_nodes: Option<String>,
    allowed_nodes: String,
    sampled: bool,
    nodes: Vec<ProcessNodeJson>,
}

#[derive(Serialize)]
struct ProcessNodeJson {
    node: u32,
    size_bytes: u64,
    reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    numa_miss: Option<u64>,
}

#[derive(Serialize)]
struct CostJson {
    threads: u32,
    access: &'static str,
    least_s: f64,
    gb_per_s: f64,
    bottleneck: BottleneckJson,
    ways: Vec<WayJson>,
}

#[derive(Serialize)]
struct BottleneckJson {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    from_node: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_node: Option<u32>,
}

#[derive(Serialize)]
struct WayJson {
    memory_node: u32,
    size_bytes: u64,
    latency_ns: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    link_gb_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_gb_per_s: Option<f64>,
}

#[derive(Serialize)]
struct Step {
    page_bytes: u64,
    shares: Vec<ShareJson>,
}

#[derive(Serialize)]
struct ShareJson {
    node: u32,
    zone: &'static str,
    above: &'static str,
    pages: u64,
}

#[derive(Serialize)]
struct EndJson {
    missing_pages: u64,
    inside_nodes: String,
    constraint: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    relief: Option<ReliefJson>,
}

#[derive(Serialize)]
struct ReliefJson {
    verdict: &'static str,
    caches_pages: IntervalJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    swap_free_pages: Option<u64>,
    dropped_pages: IntervalJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    swapped_pages: Option<IntervalJson>,
    unplaced_pages: IntervalJson,
}

#[derive(Serialize)]
struct IntervalJson {
    least: u64,
    most: u64,
}

#[derive(Serialize)]
struct BusyJson {
    after_pages: u64,
    nodes: String,
}

#[derive(Serialize)]
struct Node {
    id: u32,
    free_before_pages: u64,
    free_after_pages: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    reclaimed_pages: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    page_cache_pages: Option<u64>,
    numa_hit: u64,
    numa_miss: u64,
    numa_foreign: u64,
    interleave_hit: u64,
    local_node: u64,
    other_node: u64,
}

#[derive(Serialize)]
struct Function {
    name: &'static str,
    does: String,
}

/// Writes a request and what became of it as JSON.
pub fn walk(walk: &Walk<'_>) -> String {
    let document = Document {
        schema: SCHEMA,
        answers: answers(walk),
        process: walk.process.map(process),
        policy: walk.policy.effective().to_string(),
        asked_nodes: walk.asked_otherwise().map(ToString::to_string),
        left_out_nodes: Some(walk.left_out).filter(|nodes| !nodes.is_empty()).map(ToString::to_string),
        huge_pages: walk.huge.map(HugeReason::word),
        home_node: walk.policy.home.map(|node| node.number()),
        memory: walk.kind.word(),
        first_page: walk.first_page,
        cpu_node: walk.cpu_node.number(),
        allowed_nodes: walk.allowed.to_string(),
        kernel: walk.release.to_string(),
        zones_from: walk.basis.word(),
        assumed_architecture: walk.basis.assumed_architecture(),
        size_bytes: walk.size_bytes,
        steps: walk.outcome.stretches.iter().map(|stretch| step(stretch, walk.before.page_bytes())).collect(),
        out_of_memory: walk.outcome.out_of_memory.as_ref().map(|end| out_of_memory(end, walk)),
        busy_nodes: (walk.outcome.busy.as_ref())
            .map(|busy| BusyJson { after_pages: busy.after, nodes: busy.nodes.to_string() }),
        control_groups: walk.groups.iter().flat_map(|groups| groups.groups.iter().map(group)).collect(),
        control_groups_unknown: walk.groups.and_then(|groups| groups.unknown.clone()),
        nodes: nodes(walk),
        functions: walk
            .trace
            .iter()
            .map(|passed| Function { name: passed.function, does: passed.does.clone() })
            .collect(),
        cost: walk.reading.map(cost),
    };
    pretty(&document)
}

fn answers(walk: &Walk<'_>) -> AnswersJson {
    let found = Answers::from_walk(walk);
    let falls_back = !found.fallback.is_empty();
    AnswersJson {
        summary: found.summary(walk),
        verdict: verdict(found.verdict),
        falls_back_to_nodes: falls_back.then(|| found.fallback.to_string()),
        falls_back_after_pages: falls_back.then_some(found.fallback_after),
        killed: walk.victim.map(killed),
        group: found.group.zip(walk.groups).map(|(answer, groups)| group_answer(&answer, groups)),
        page_cache: found.cache.word(),
        swapping: found.swapping.word(),
        swapping_after_pages: found.swapping.start().map(|(least, most)| StartJson { least, most }),
    }
}

fn group_answer(answer: &GroupAnswer, groups: &WalkGroups) -> GroupAnswerJson {
    let limit = |limit: LimitRoom| {
        let own = groups.groups.get(limit.group);
        LimitJson {
            group: own.and_then(|own| own.path.clone()),
            file: file(limit.limit),
            room_pages: StartJson {
                least: limit.room.least,
                most: Some(limit.room.most).filter(|most| *most < u64::MAX),
            },
            kills_all: own.is_some_and(|own| own.kills_all),
        }
    };
    GroupAnswerJson {
        verdict: verdict(answer.verdict),
        reclaims_after_pages: answer.first.free,
        max: answer.max.map(limit),
        slowed_by: answer.slows.map(|(high, _)| limit(high)),
    }
}

fn group(own: &WalkGroup) -> GroupJson {
    GroupJson {
        group: own.path.clone(),
        max_pages: own.memory.max,
        high_pages: own.memory.high,
        swap_max_pages: own.swap_max,
        used_pages: interval(own.memory.used),
        caches_pages: interval(own.memory.caches),
        swap_used_pages: own.swap_used,
    }
}

const fn interval(pages: Interval) -> IntervalJson {
    IntervalJson { least: pages.least, most: pages.most }
}

fn killed(answer: &VictimAnswer) -> KilledJson {
    let (mut worst, mut program, mut unread_processes) = (Vec::new(), None, None);
    let (mut next, mut next_of) = (None, None);
    match answer {
        VictimAnswer::NoProcesses(own) => program = Some(victim(own)),
        VictimAnswer::Panics { .. } => {}
        VictimAnswer::Kills { worst: all, next: behind, unread } => {
            worst.extend(all.iter().map(victim));
            match behind {
                None => {}
                Some(Next::Process(behind)) => next = Some(victim(behind)),
                Some(Next::OneOf { processes, most_share }) => {
                    next_of = Some(ManyJson { processes: *processes, most_badness_per_mille: *most_share });
                }
            }
            unread_processes = Some(*unread).filter(|unread| *unread > 0);
        }
    }
    KilledJson { kind: answer.word(), worst, next, next_of, program, unread_processes }
}

fn victim(own: &Victim) -> VictimJson {
    let (least, most) = own.share;
    VictimJson {
        pid: own.pid,
        name: own.name.clone(),
        asks: own.is_asking,
        size_pages: interval(own.size),
        oom_score_adj: own.adjustment,
        badness_per_mille: BadnessJson { least, most },
    }
}

const fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Survives => "survives",
        Verdict::Killed => "killed",
        Verdict::Open => "open",
    }
}

fn cost(reading: &Reading) -> CostJson {
    let way = |part: &Part| WayJson {
        memory_node: part.node.number(),
        size_bytes: part.bytes,
        latency_ns: part.latency_ns,
        link_gb_per_s: part.link.map(|rate| rate / 1e9),
        memory_gb_per_s: part.controller.map(|rate| rate / 1e9),
    };
    let (kind, from, memory) = match reading.bottleneck {
        Bottleneck::Threads(from) => ("threads", Some(from), None),
        Bottleneck::Link(from, memory) => ("link", Some(from), Some(memory)),
        Bottleneck::Controller(memory) => ("memory", None, Some(memory)),
    };
    let bottleneck = BottleneckJson {
        kind,
        from_node: from.map(|node| node.number()),
        memory_node: memory.map(|node| node.number()),
    };
    CostJson {
        threads: reading.threads,
        access: reading.access.word(),
        least_s: reading.seconds,
        gb_per_s: reading.gb_per_s(),
        bottleneck,
        ways: reading.parts.iter().map(way).collect(),
    }
}

fn step(stretch: &Stretch, page: u64) -> Step {
    let share = |share: &Share| ShareJson {
        node: share.node.number(),
        zone: share.kind.name(),
        above: match share.mark {
            Mark::Low => "low",
            Mark::Min => "min",
        },
        pages: share.pages,
    };
    Step { page_bytes: page << stretch.order, shares: stretch.shares.iter().map(share).collect() }
}

fn process(memory: &ProcessMemory) -> ProcessJson {
    let node = |own: &NodeMemory| ProcessNodeJson {
        node: own.node.number(),
        size_bytes: own.size.get(),
        reason: memory.reason(own.node).word(),
        numa_miss: own.missed,
    };
    ProcessJson {
        pid: memory.pid,
        name: memory.name.clone(),
        memory: memory.what.clone(),
        policy: memory.policy_text.clone(),
        policy_of: memory.owner.word(),
        other_policies: memory.other_policies.clone(),
        cpu_nodes: memory.cpu_nodes.as_ref().map(ToString::to_string),
        allowed_nodes: memory.allowed.to_string(),
        sampled: memory.is_sampled,
        nodes: memory.nodes.iter().map(node).collect(),
    }
}

fn relief(relief: &Relief) -> ReliefJson {
    ReliefJson {
        verdict: verdict(relief.verdict()),
        caches_pages: interval(relief.caches),
        swap_free_pages: relief.swap,
        dropped_pages: interval(relief.dropped),
        swapped_pages: relief.swapped.map(interval),
        unplaced_pages: interval(relief.unplaced),
    }
}

fn out_of_memory(end: &OutOfMemory, walk: &Walk<'_>) -> EndJson {
    EndJson {
        missing_pages: end.pages,
        inside_nodes: end.inside.to_string(),
        constraint: match end.constraint {
            Constraint::None => "none",
            Constraint::Cpuset => "cpuset",
            Constraint::MemoryPolicy => "memory_policy",
        },
        relief: walk.relief.as_ref().map(relief),
    }
}

fn nodes(walk: &Walk<'_>) -> Vec<Node> {
    let node = |change: NodeChange| Node {
        id: change.node.number(),
        free_before_pages: change.before,
        free_after_pages: change.after,
        reclaimed_pages: Some(change.reclaimed).filter(|pages| *pages > 0),
        page_cache_pages: change.cache,
        numa_hit: change.counters.hit,
        numa_miss: change.counters.miss,
        numa_foreign: change.counters.foreign,
        interleave_hit: change.counters.interleave_hit,
        local_node: change.counters.local,
        other_node: change.counters.other,
    };
    walk.nodes().into_iter().map(node).collect()
}
