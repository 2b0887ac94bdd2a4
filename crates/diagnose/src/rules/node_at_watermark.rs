//! A node is at the edge where the kernel reclaims, while others have room.

use std::cmp::Reverse;

use nodewise_machine::order::Order as _;
use nodewise_machine::{Bytes, NodeId, NodeSet};
use nodewise_source::paths::shown;

use super::words;
use crate::finding::{Confidence, Evidence, Mend, RuleFinding, Scope, Severity, Subject, Value};
use crate::rule::{Fact, Rule, several_nodes};
use crate::situation::{NodeState, ProcessState, Situation};
use crate::thresholds;

/// Processes that are named.
const HOLDERS: usize = 5;

pub static RULE: Rule = Rule {
    id: "node-at-watermark",
    title: "a node is at its reclaim edge while others have room",
    severity: Severity::Warning,
    on: several_nodes,
    needs: &[Fact::NodeMemory],
    sign: "free memory below the zones' high watermarks in both samples (the kernel's own edge), with at least 10 % \
           of the machine available on other nodes; without watermarks less than 1 % free beside a node with more \
           than 10 %, which is a note",
    thresholds: &[
        &thresholds::WATERMARK_ELSEWHERE,
        &thresholds::WATERMARK_SHORT,
        &thresholds::WATERMARK_LITTLE,
        &thresholds::WATERMARK_ROOM,
    ],
    traps: "page cache is meant to fill memory: what it holds counts as available",
    explains: &["kswapd-one-node"],
    sources: &["polardb#692", "STAR#264", "proxysql#3393"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    let full = situation.nodes.iter().filter(|(_, state)| state.size.get() > 0);
    full.filter_map(|(node, state)| {
        by_marks(situation, *node, state).or_else(|| by_share(situation, *node, state))
    })
    .collect()
}

/// The memory that the other nodes must have available.
fn least_elsewhere(situation: &Situation<'_>) -> Bytes {
    situation.total().share(situation.limit(&thresholds::WATERMARK_ELSEWHERE))
}

fn by_marks(situation: &Situation<'_>, node: NodeId, state: &NodeState) -> Option<RuleFinding> {
    let high = state.high?;
    let then = situation.state_in(situation.before?, node)?.free;
    let elsewhere = situation.room_elsewhere(node);
    let least = least_elsewhere(situation);
    if state.free >= high || then >= high || elsewhere < least {
        return None;
    }
    // Page cache that can be dropped is room: the kernel reclaims, and nothing is short.
    let short = state.size.share(situation.limit(&thresholds::WATERMARK_SHORT));
    let is_short = state.available.is_none_or(|available| available < short);
    // Fast memory above slower memory is full on purpose, and memory without CPUs is filled by whoever chose it.
    let is_meant = !state.has_cpus || situation.machine.settings.demotion_enabled == Some(true);
    let is_short = is_short && !is_meant;
    let severity = if is_short { RULE.severity } else { Severity::Note };
    let summary = format!(
        "{} are free, below the edge where the kernel reclaims; other nodes have {elsewhere}",
        state.free
    );
    let mut finding = finding(situation, node, severity, summary);
    finding.evidence.push(
        Evidence::new("free", Value::Size(state.free), shown::NODE_MEMINFO)
            .against(Value::Size(high), "the sum of its zones' high watermarks"),
    );
    finding.evidence.extend(
        state
            .available
            .map(|available| Evidence::new("available", Value::Size(available), shown::NODE_MEMINFO)),
    );
    finding.evidence.push(
        Evidence::new("available on other nodes", Value::Size(elsewhere), shown::NODE_MEMINFO).at_part(
            Value::Size(least),
            situation.thresholds(),
            &thresholds::WATERMARK_ELSEWHERE,
        ),
    );
    let foreign = situation.delta.as_ref().and_then(|delta| delta.node(node)?.allocations.foreign);
    if let Some(rate) = foreign.and_then(|count| situation.rate(count)).filter(|rate| *rate > 0.0) {
        let fact = "pages meant for it that other nodes gave";
        finding.evidence.push(Evidence::new(fact, Value::Rate(rate, "pages"), shown::NODE_NUMASTAT));
    }
    hold(situation, node, &mut finding);
    Some(finding)
}

fn by_share(situation: &Situation<'_>, node: NodeId, state: &NodeState) -> Option<RuleFinding> {
    let (little, much) =
        (situation.limit(&thresholds::WATERMARK_LITTLE), situation.limit(&thresholds::WATERMARK_ROOM));
    let has_room = |(other, state): (&NodeId, &NodeState)| *other != node && state.share(state.free) > much;
    let marks_say = state.high.is_some() && situation.before.is_some();
    if marks_say || state.share(state.free) >= little || !situation.nodes.iter().any(has_room) {
        return None;
    }
    let (most, other) = situation
        .nodes
        .iter()
        .filter(|(other, _)| **other != node)
        .map(|(id, state)| (state.free, *id))
        .max()?;
    let summary = format!("{} of {} are free, and {most} on node {other}", state.free, state.size);
    let mut finding = finding(situation, node, Severity::Note, summary);
    finding.confidence = Confidence::Possible;
    finding.evidence.push(
        Evidence::new("free", Value::Share(state.share(state.free)), shown::NODE_MEMINFO)
            .at(situation.thresholds(), &thresholds::WATERMARK_LITTLE),
    );
    finding.cause = Some(
        "whether page cache or programs fill it is not known from one moment without watermarks".to_owned(),
    );
    Some(finding)
}

fn finding(situation: &Situation<'_>, node: NodeId, severity: Severity, summary: String) -> RuleFinding {
    let mut finding = RuleFinding::new(RULE.id, severity, Subject::node(node), summary);
    finding.concerns = situation.nodes.get(&node).map(|state| state.size);
    finding
}

/// Who holds the node's memory, and how the largest of them gives some back.
fn hold(situation: &Situation<'_>, node: NodeId, finding: &mut RuleFinding) {
    let on = |process: &&ProcessState<'_>| process.memory.get(&node).copied().unwrap_or_default();
    let mut holders: Vec<_> =
        situation.processes.iter().filter(|process| on(process) >= situation.floor()).collect();
    holders.order_by_key(|process| Reverse(on(process)));
    let holds = |process: &&ProcessState<'_>| {
        Evidence::new(
            format!("held by {}", words::process(process)),
            Value::Size(on(process)),
            shown::NUMA_MAPS,
        )
    };
    finding.evidence.extend(holders.iter().take(HOLDERS).map(holds));
    // One that does not run there loses nothing by a move.
    let runs_there = |process: &ProcessState<'_>| process.runs_on().contains(node);
    let elsewhere = holders.iter().find(|process| !runs_there(process));
    let Some(largest) = elsewhere.or(holders.first()) else { return };
    let held = on(largest);
    let name = words::process(largest);
    let price = if runs_there(largest) { "; it runs there, so that its memory is remote then" } else { "" };
    let others: NodeSet = situation.memory_nodes().iter().filter(|other| *other != node).collect();
    let left = situation.room_elsewhere(node).get().saturating_sub(held.get());
    let may_go = largest.allowed_nodes().is_none_or(|allowed| others.is_subset(allowed));
    if !may_go || !largest.has_no_policy() || Bytes::new(left) < least_elsewhere(situation) {
        finding.mends.push(Mend::words(
            format!(
                "spread what {name} needs: nodewise run --interleave={} -- COMMAND",
                situation.memory_nodes()
            ),
            Scope::Restart,
        ));
        return;
    }
    let what = format!("move what {name} has there to the other nodes{price}");
    let to = format!("interleave:{others}");
    let from = NodeSet::from_iter([node]);
    finding.mends.push(Mend::migrate(what, largest.pid(), Some(&from), &to, held));
}
