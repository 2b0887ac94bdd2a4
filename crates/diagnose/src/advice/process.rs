//! The profile of a process in a situation, and of a program that does not run.

mod family;

use std::collections::BTreeMap;
use std::time::Duration;

use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::placement::Scope;
use nodewise_machine::{Bytes, CpuSet, NodeId, NodeSet, PolicyMode};
use nodewise_source::sample::ProcessSample;

use super::known::{Known, Quality};
use super::profile::{NodeRoom, Profile, Sharing, total};
use crate::diagnosis::Diagnosis;
use crate::finding::{Confidence, Owner, RuleFinding, Subject};
use crate::knowledge::{Application, ProgramFacts, ProgramKind, declared};
use crate::situation::process::add_pages;
use crate::situation::{Class, ProcessState, Situation};
use crate::thresholds::AT_WORK;
use family::Family;

/// Rules about the placement of one process.
const RULES: [&str; 6] = [
    "memory-stranded",
    "bound-away",
    "first-touch-on-one",
    "policy-too-late",
    "interleaved-but-small",
    "bind-too-small",
];
/// The rule that can speak about every process at work: without it nothing is known.
const LEAST: &str = "memory-stranded";
/// A node with this part of the CPU time is one that the process runs on.
const RUNS: f64 = 0.1;
/// The same on a machine of many nodes: this part of an even load.
const RUNS_OF_EVEN: f64 = 0.5;
/// Faults of one kind must outnumber the other by this much.
const OUTNUMBERS: u64 = 2;
/// Faults of automatic balancing that say something about sharing.
const LEAST_FAULTS: u64 = 200;
/// A snapshot may have to copy all memory.
const WITH_COPY: u64 = 2;

/// Facts of a process beside samples: from its folder and its control group.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ProgramReading {
    pub facts: ProgramFacts,
    /// The most that it had resident.
    pub peak: Option<Bytes>,
    /// Memory that it locked.
    pub locked: Option<Bytes>,
    /// Whether a thread has a real-time policy.
    pub real_time: Option<bool>,
    /// The least limit of its control groups; `None` inside: no limit.
    pub limit: Option<Option<Bytes>>,
    /// Nodes of the accelerators and network adapters that it has opened; `None` where its files may not be seen.
    pub devices: Option<Vec<Option<NodeId>>>,
    /// CPUs that the kernel keeps free of other work.
    pub isolated: Option<CpuSet>,
}

/// The profile of a process. Its pages may be unknown.
pub fn from_process(
    situation: &Situation<'_>,
    process: &ProcessSample,
    reading: &ProgramReading,
    application: Option<&Application>,
    horizon: Duration,
) -> Profile {
    let state = situation.processes.iter().find(|state| state.process.identity == process.identity);
    let family = Family::new(situation, process, state);
    let mut profile = unstarted(situation, reading, application, horizon);
    profile.common = state.map(ProcessState::common_memory).unwrap_or_default();
    limit_nodes(&mut profile, situation, process, state, &family);
    profile.age = Known::or_unknown(situation.age(process), Quality::Certain, "the clock went back");
    memory(&mut profile, situation, process, state, reading);
    work(&mut profile, situation, process, state);
    profile.common_away = state.and_then(|state| family.common_away(situation, state));
    if application.is_none() {
        // Only known programs are known to do so.
        profile.snapshot = Known::new(false, Quality::Likely);
        profile.splittable = splittable(situation, process);
    }
    profile.sharing = sharing(process, state, application);
    profile.latency = latency(process, reading, application);
    profile.device = device(reading);
    profile.placed = placed(&profile, situation, process, state, application);
    profile.complaints = complaints(situation, process);
    profile.need = match family.size() {
        _ if profile.declared.value().is_some() || !family.shares_memory() => need(&profile, None),
        Some(size) => need(&profile, Some(size)),
        None => Known::unknown("it shares its memory with other processes, and theirs was not counted"),
    };
    profile
}

/// Children of its own name.
fn workers<'a>(
    situation: &'a Situation<'_>,
    process: &'a ProcessSample,
) -> impl Iterator<Item = &'a ProcessSample> {
    let processes = situation.now.processes.iter().map(AsRef::as_ref);
    processes.filter(|other: &&ProcessSample| {
        other.parent == Some(process.identity.pid) && other.name == process.name
    })
}

/// The profile of a program that does not run: of what it does, nothing is known.
pub fn unstarted(
    situation: &Situation<'_>,
    reading: &ProgramReading,
    application: Option<&Application>,
    horizon: Duration,
) -> Profile {
    const REASON: &str = "it was not watched";
    let scope = Scope::from_machine(situation.machine);
    let node = |id: NodeId| {
        let state = situation.nodes.get(&id)?;
        let cpus = scope.cpus_of(id).len();
        let change = situation.delta.as_ref().and_then(|delta| delta.node(id));
        let free = change.and_then(|change| change.cpus).map(|load| (1.0 - load.busy) * cpus as f64);
        Some((id, NodeRoom { size: state.size, room: state.room(), cpus, free_cpus: free }))
    };
    let is = |kind| application.is_some_and(|application| application.is(kind));
    let named = |kind| match application {
        Some(_) => Known::new(is(kind), Quality::Likely),
        None => Known::unknown("the program is not known"),
    };
    let machine = situation.machine;
    let fast = machine.tiers.first().map_or_else(NodeSet::new, |tier| tier.nodes.clone());
    let mut profile = Profile {
        class: situation.class,
        nodes: scope.memory_nodes.iter().filter_map(node).collect_map(),
        fast,
        has_weights: situation.class == Class::Tiered && !machine.settings.interleave_weights.is_empty(),
        memory: Known::unknown(REASON),
        common: BTreeMap::new(),
        common_away: None,
        size: Known::unknown(REASON),
        peak: Known::unknown(REASON),
        declared: Known::or_unknown(
            application.and_then(|application| declared(application, &reading.facts)).map(|of| of.size),
            Quality::Declared,
            "its command line names no size",
        ),
        limit: match reading.limit {
            Some(Some(limit)) => Known::new(limit, Quality::Declared),
            Some(None) => Known::unknown("its control groups have none"),
            None => Known::unknown(REASON),
        },
        growth: Known::unknown(REASON),
        growth_edge: 0.0,
        need: Known::unknown(REASON),
        horizon,
        threads: Known::unknown(REASON),
        parallelism: Known::unknown(REASON),
        runs_on: Known::unknown(REASON),
        remote: Known::unknown(REASON),
        stranded: Known::unknown(REASON),
        sharing: sharing_by_name(application),
        bandwidth: Known::unknown("no counter of a program's memory traffic was read"),
        latency: named(ProgramKind::Latency),
        device: Known::unknown(REASON),
        snapshot: named(ProgramKind::Snapshot),
        splittable: named(ProgramKind::Splittable),
        placed: Known::certain(None),
        complaints: Known::unknown(REASON),
        cpus: Known::unknown(REASON),
        policy: Known::unknown(REASON),
        age: Known::unknown(REASON),
        scope,
    };
    profile.need = need(&profile, None);
    profile
}

/// Keeps the nodes that the process may use, and adds to their room what it has there already.
fn limit_nodes(
    profile: &mut Profile,
    situation: &Situation<'_>,
    process: &ProcessSample,
    state: Option<&ProcessState<'_>>,
    family: &Family<'_>,
) {
    if let Some(allowed) = process.allowed.as_ref().and_then(|allowed| allowed.nodes.as_ref()) {
        profile.scope.memory_nodes = profile.scope.memory_nodes.intersection(allowed);
        profile.nodes.retain(|node, _| allowed.contains(*node));
    }
    // Other CPUs may be outside of its cpuset.
    if let Some(cpus) = process.allowed.as_ref().and_then(|allowed| allowed.cpus.as_ref()) {
        profile.scope.cpus = profile.scope.cpus.intersection(cpus);
        let of_node = std::mem::take(&mut profile.scope.cpus_of).into_iter();
        profile.scope.cpus_of = of_node
            .map(|(node, of_node)| (node, of_node.intersection(cpus)))
            .filter(|(_, of_node)| !of_node.is_empty())
            .collect();
        for (id, node) in &mut profile.nodes {
            node.cpus = profile.scope.cpus_of(*id).len();
        }
    }
    for (id, node) in &mut profile.nodes {
        let own = state.and_then(|state| state.memory.get(id)).copied().unwrap_or_default();
        let common = profile.common.get(id).copied().unwrap_or_default();
        // Sums of pages can be ahead of the node's own counters.
        node.room = (node.room + own + common).min(node.size);
        node.free_cpus = node.free_cpus.map(|free| (free + family.busy_on(*id)).min(node.cpus as f64));
    }
    // Nodes without an answer from the kernel have no room that is known.
    profile.nodes.retain(|node, _| situation.nodes.contains_key(node));
}

fn memory(
    profile: &mut Profile,
    situation: &Situation<'_>,
    process: &ProcessSample,
    state: Option<&ProcessState<'_>>,
    reading: &ProgramReading,
) {
    const DENIED: &str = "the places of its pages may not be read";
    let by_confidence = |state: &ProcessState<'_>| match state.confidence {
        Confidence::Certain => Quality::Certain,
        Confidence::Likely | Confidence::Possible => Quality::Sampled,
    };
    let all = state.map(|state| {
        let mut all = state.memory.clone();
        add_pages(&mut all, &profile.common);
        (all, by_confidence(state))
    });
    let all = all.filter(|(all, _)| total(all).get() > 0);
    profile.size = match &all {
        Some((all, quality)) => Known::new(total(all), *quality),
        None => Known::or_unknown(process.resident, Quality::Certain, "its size may not be read"),
    };
    profile.memory = match all {
        Some((all, quality)) => Known::new(all, quality),
        None => Known::unknown(DENIED),
    };
    // The peak counts pages of files, too: it says nothing less than the size.
    let peak = reading.peak.or(process.resident);
    let peak = peak.max(profile.size.value().copied());
    profile.peak = Known::or_unknown(peak, Quality::Certain, "its peak may not be read");
    let before = situation.before.and_then(|before| before.process(process.identity));
    let window = before.and_then(|before| {
        let time = process.polled.since_boot.checked_sub(before.polled.since_boot)?;
        // A process that was idle was not read again: it did not grow.
        Some(if time.is_zero() { situation.window()? } else { time })
    });
    let change = before.and_then(|before| {
        let (then, now) = (before.resident?, process.resident?);
        Some(now.get() as f64 - then.get() as f64)
    });
    if let (Some(window), Some(size)) = (window.filter(|window| !window.is_zero()), profile.size.value()) {
        profile.growth_edge = Profile::edge_of_growth(*size, window, profile.horizon);
        let growth = change.map(|change| change / window.as_secs_f64());
        let is_young = profile.is_young().unwrap_or(true);
        profile.growth = match growth {
            Some(growth) if is_young && growth > 0.0 => Known::unknown("it is younger than a minute"),
            growth => Known::or_unknown(growth, Quality::Sampled, "its size may not be read"),
        };
    } else {
        profile.growth = Known::unknown("one moment only");
    }
}

fn work(
    profile: &mut Profile,
    situation: &Situation<'_>,
    process: &ProcessSample,
    state: Option<&ProcessState<'_>>,
) {
    const IDLE: &str = "it was idle, or was seen once";
    profile.threads = Known::certain(u64::from(process.threads));
    let change = situation.delta.as_ref().and_then(|delta| delta.process(process.identity));
    let busy_of = |identity| {
        let change = situation.delta.as_ref()?.process(identity)?;
        change.window.share(Some(change.cpu.as_ref()?.used))
    };
    let workers: Option<f64> = workers(situation, process).map(|worker| busy_of(worker.identity)).sum();
    let busy = busy_of(process.identity).zip(workers).map(|(own, workers)| own + workers);
    profile.parallelism =
        Known::or_unknown(busy.filter(|busy| *busy >= AT_WORK.default), Quality::Certain, IDLE);
    let cpu = change.and_then(|change| change.cpu.as_ref());
    let share = |node: NodeId| {
        let cpu = cpu?;
        cpu.share(cpu.bounds(node).0)
    };
    let with_cpus = situation.places.with_cpus();
    let least = RUNS.min(RUNS_OF_EVEN / with_cpus.len().max(1) as f64);
    let nodes: NodeSet =
        with_cpus.iter().filter(|node| share(*node).is_some_and(|share| share >= least)).collect();
    let reason =
        if busy.is_some_and(|busy| busy > 0.0) { "the nodes of its CPU time are not known" } else { IDLE };
    profile.runs_on =
        Known::or_unknown(Some(nodes).filter(|nodes| !nodes.is_empty()), Quality::Sampled, reason);
    let remote = profile.memory.value().and_then(|memory| {
        let all: f64 = memory.values().map(|size| size.get() as f64).sum();
        let certain: f64 = situation.places.with_cpus().iter().filter_map(share).sum();
        // With CPU time whose node is not known this would be a guess.
        let is_known = all > 0.0 && certain > 0.9;
        let local =
            |(node, size): (&NodeId, &Bytes)| size.get() as f64 / all * share(*node).unwrap_or(0.0) / certain;
        is_known.then(|| 1.0 - memory.iter().map(local).sum::<f64>())
    });
    profile.remote = Known::or_unknown(remote, Quality::Sampled, IDLE);
    let stranded = state.filter(|state| state.is_at_work()).map(|state| {
        let own = state.stranded(&situation.places.with_cpus()).map_or(Bytes::default(), |(size, _)| size);
        own + state.elsewhere(&profile.common, &situation.places.with_cpus())
    });
    profile.stranded = Known::or_unknown(stranded, Quality::Sampled, IDLE);
    let allowed = process.allowed.as_ref();
    let cpus = allowed.and_then(|allowed| allowed.cpus.clone());
    profile.cpus = Known::or_unknown(cpus, Quality::Certain, "its status may not be read");
    profile.policy = match state.and_then(|state| Some((state, state.known_policy()?))) {
        Some((state, policy)) => {
            let quality = if state.infers_policies() { Quality::Likely } else { Quality::Certain };
            Known::new(policy.map(|(policy, _)| policy.clone()), quality)
        }
        None => Known::unknown("the policies of its memory were not read"),
    };
}

/// The memory that it will need within the horizon, with that of other processes of its program.
fn need(profile: &Profile, of_family: Option<Bytes>) -> Known<Bytes> {
    let limit = profile.limit.value().copied();
    let copies = if profile.snapshot.value() == Some(&true) { WITH_COPY } else { 1 };
    let with_copy = |size: Bytes| Bytes::new(size.get().saturating_mul(copies));
    let least = profile.peak.value().or(profile.size.value()).copied().max(of_family);
    // A control group ends it before it is larger; what it has already counts.
    let limited = |size: Bytes| match (limit, least) {
        (Some(limit), Some(least)) => size.min(limit.max(least)),
        (Some(limit), None) => size.min(limit),
        (None, _) => size,
    };
    let more = |growth: f64| growth.max(0.0) * profile.horizon.as_secs_f64();
    let grown = least.map(|least| {
        let more = profile.growth.value().map_or(0.0, |growth| more(*growth));
        Bytes::new(least.get().saturating_add(more as u64))
    });
    if let Some(declared) = profile.declared.value() {
        // Below its declared size it grows as declared.
        let is_beyond = least.is_some_and(|least| least > *declared);
        let size = if is_beyond { grown.unwrap_or(*declared) } else { *declared };
        return Known::new(limited(with_copy(size)), Quality::Declared);
    }
    let (Some(least), Some(grown)) = (least, grown) else { return Known::unknown("its size is not known") };
    match (profile.growth.value(), limit) {
        (Some(growth), _) => {
            let quality = if *growth > 0.0 { Quality::Sampled } else { Quality::Certain };
            Known::new(limited(with_copy(grown)), quality)
        }
        (None, Some(limit)) => Known::new(limited(with_copy(limit.max(least))), Quality::Declared),
        (None, None) => Known::unknown("its growth is not known"),
    }
}

/// A program with several children of its own name is a server with workers.
fn splittable(situation: &Situation<'_>, process: &ProcessSample) -> Known<bool> {
    match workers(situation, process).count() {
        0 | 1 => Known::unknown("the program is not known"),
        _ => Known::new(true, Quality::Likely),
    }
}

fn sharing_by_name(application: Option<&Application>) -> Known<Sharing> {
    match application {
        Some(application) if application.is(ProgramKind::Shared) => {
            Known::new(Sharing::Shared, Quality::Likely)
        }
        _ => Known::unknown("automatic balancing saw no faults of it"),
    }
}

/// By the faults of automatic balancing, by segments that several processes map, else by the name.
fn sharing(
    process: &ProcessSample,
    state: Option<&ProcessState<'_>>,
    application: Option<&Application>,
) -> Known<Sharing> {
    let tasks = process.tasks.iter().flatten().filter_map(|task| task.balancing.as_ref());
    let faults = tasks.flat_map(|balancing| balancing.faults.values());
    let (private, shared) = faults.fold((0_u64, 0_u64), |(private, shared), faults| {
        (private.saturating_add(faults.private), shared.saturating_add(faults.shared))
    });
    if private.saturating_add(shared) >= LEAST_FAULTS && process.threads > 1 {
        return if shared >= private.saturating_mul(OUTNUMBERS) {
            Known::new(Sharing::Shared, Quality::Likely)
        } else if private >= shared.saturating_mul(OUTNUMBERS) {
            Known::new(Sharing::Private, Quality::Likely)
        } else {
            Known::unknown("automatic balancing saw as many shared faults of it as private ones")
        };
    }
    if state.is_some_and(|state| total(&state.common_memory()) > state.size()) {
        return Known::new(Sharing::Shared, Quality::Likely);
    }
    sharing_by_name(application)
}

fn latency(
    process: &ProcessSample,
    reading: &ProgramReading,
    application: Option<&Application>,
) -> Known<bool> {
    let cpus = process.allowed.as_ref().and_then(|allowed| allowed.cpus.as_ref());
    let isolated = reading.isolated.as_ref().filter(|isolated| !isolated.is_empty());
    let on_isolated = cpus.zip(isolated).is_some_and(|(cpus, isolated)| cpus.is_subset(isolated));
    let has_locked = reading.locked.is_some_and(|locked| locked.get() > 0);
    // Half of its memory locked is intent; a key of a few pages is not.
    let locks_much = has_locked
        && reading.locked.zip(process.resident).is_some_and(|(locked, all)| locked >= all.share(0.5));
    let by_name = application.is_some_and(|of| of.kinds.first() == Some(&ProgramKind::Latency));
    if reading.real_time == Some(true) || on_isolated || locks_much || by_name {
        return Known::new(true, Quality::Likely);
    }
    match (reading.real_time, reading.locked) {
        (Some(false), Some(_)) => Known::new(false, Quality::Likely),
        (Some(false), None) => Known::unknown("its locked memory may not be read"),
        _ => Known::unknown("its scheduling policy may not be read"),
    }
}

fn device(reading: &ProgramReading) -> Known<Option<NodeId>> {
    let Some(devices) = &reading.devices else { return Known::unknown("its open files may not be read") };
    let nodes: Option<NodeSet> = devices.iter().copied().collect();
    match nodes {
        Some(nodes) if nodes.len() == 1 => Known::new(nodes.first(), Quality::Likely),
        Some(_) => Known::new(None, Quality::Likely),
        None => Known::unknown("the node of its device is not known"),
    }
}

fn placed(
    profile: &Profile,
    situation: &Situation<'_>,
    process: &ProcessSample,
    state: Option<&ProcessState<'_>>,
    application: Option<&Application>,
) -> Known<Option<String>> {
    let places = [ProgramKind::PlacesItself, ProgramKind::Manager];
    if application.is_some_and(|of| of.kinds.first().is_some_and(|kind| places.contains(kind))) {
        return Known::new(Some("by itself".to_owned()), Quality::Likely);
    }
    if let Some(Some(policy)) = profile
        .policy
        .value()
        .filter(|policy| policy.as_ref().is_some_and(|policy| policy.mode != PolicyMode::Default))
    {
        return Known::certain(Some(format!("memory policy {policy}")));
    }
    let who = match state.map(ProcessState::owner).unwrap_or_else(|| Owner::from_process(process)) {
        Owner::Itself => String::new(),
        owner => format!(", by {}", owner.kind()),
    };
    let allowed = process.allowed.as_ref();
    // Compared with all CPUs: those of nodewise may be fewer.
    let online = situation.machine.online_cpus();
    let is_part = |cpus: &&CpuSet| !cpus.is_empty() && !online.is_subset(cpus);
    if let Some(cpus) = allowed.and_then(|allowed| allowed.cpus.as_ref()).filter(is_part) {
        return Known::certain(Some(format!("CPUs {cpus}{who}")));
    }
    if profile.scope.memory_nodes.len() < situation.memory_nodes().len() {
        return Known::certain(Some(format!("memory of nodes {}{who}", profile.scope.memory_nodes)));
    }
    match (&profile.policy, allowed) {
        (Known::Value { .. }, Some(_)) => Known::certain(None),
        (Known::Unknown { reason }, _) => Known::unknown(reason.clone()),
        (_, None) => Known::unknown("its status may not be read"),
    }
}

/// Rules that found something about this process.
fn complaints(situation: &Situation<'_>, process: &ProcessSample) -> Known<Vec<&'static str>> {
    let diagnosis = Diagnosis::new(situation, &RULES.map(str::to_owned));
    let mut found = Vec::new();
    about(&diagnosis.findings, process, &mut found);
    found.sort_unstable();
    found.dedup();
    let is_at_work =
        situation.significant().any(|state| state.process.identity == process.identity && state.is_at_work());
    let was_examined = is_at_work
        && diagnosis.examined.iter().any(|rule| rule.id == LEAST)
        && !diagnosis.left_out.iter().any(|left| left.rule == LEAST && is_about(&left.process, process));
    let quality = if diagnosis.not_examined.is_empty() { Quality::Certain } else { Quality::Likely };
    if found.is_empty() && !was_examined {
        return Known::unknown("the rules of doctor lack facts about it");
    }
    Known::new(found, quality)
}

fn about(findings: &[RuleFinding], process: &ProcessSample, found: &mut Vec<&'static str>) {
    for finding in findings {
        if is_about(&finding.subject, process) {
            found.push(finding.rule);
        }
        about(&finding.explains, process, found);
    }
}

fn is_about(subject: &Subject, process: &ProcessSample) -> bool {
    matches!(subject, Subject::Process { identity, .. } if *identity == process.identity)
}

#[cfg(test)]
mod tests;
