//! Pages are swapped out while another node has memory.

use nodewise_machine::{Bytes, NodeSet};
use nodewise_source::paths::shown;

use super::words::{self, nodes};
use crate::finding::{Confidence, Evidence, Mend, RuleFinding, Scope, Severity, Subject, Value};
use crate::rule::{Fact, Rule, several_nodes};
use crate::situation::{ProcessState, Situation};
use crate::thresholds;

pub static RULE: Rule = Rule {
    id: "swap-while-free",
    title: "pages are swapped out while another node has free memory",
    severity: Severity::Critical,
    on: several_nodes,
    needs: &[Fact::Rates, Fact::NodeMemory, Fact::Watermarks, Fact::Events],
    sign: "pages swapped out in the window, a node at its watermarks with less than 10 % available, and another node with at least 1 GiB and 5 % \
           available (a quarter of it where nodes are small)",
    thresholds: &[
        &thresholds::SWAP_ROOM,
        &thresholds::SWAP_ROOM_SHARE,
        &thresholds::SWAP_ROOM_SMALL,
        &thresholds::SWAP_SHORT,
        &thresholds::SWAP_MARKS,
        &thresholds::SIGNIFICANT,
        &thresholds::SIGNIFICANT_SHARE,
    ],
    traps: "a memory limit of a control group swaps without any node being short; so does MADV_PAGEOUT",
    explains: &["node-at-watermark", "kswapd-one-node", "bind-too-small"],
    sources: &["jcole.us, the MySQL \"swap insanity\" problem", "VictoriaMetrics#2656", "rethinkdb#2274"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    diagnose(situation).into_iter().collect()
}

fn diagnose(situation: &Situation<'_>) -> Option<RuleFinding> {
    let swapped = situation.event("pswpout").filter(|pages| *pages > 0)?;
    let enough = |size: Bytes| {
        let least = situation.thresholds().size(&thresholds::SWAP_ROOM);
        let wanted = least.max(size.share(situation.limit(&thresholds::SWAP_ROOM_SHARE)));
        wanted.min(size.share(situation.limit(&thresholds::SWAP_ROOM_SMALL)))
    };
    let marks = situation.limit(&thresholds::SWAP_MARKS);
    let short: NodeSet = situation
        .nodes
        .iter()
        .filter(|(_, state)| state.high.is_some_and(|high| state.free < high.share(marks)))
        // A node full of page cache has memory to give.
        .filter(|(_, state)| state.room() < state.size.share(situation.limit(&thresholds::SWAP_SHORT)))
        .map(|(node, _)| *node)
        .collect();
    let roomy: NodeSet = situation
        .nodes
        .iter()
        .filter(|(node, state)| {
            !short.contains(**node) && state.size.get() > 0 && state.room() >= enough(state.size)
        })
        .map(|(node, _)| *node)
        .collect();
    if short.is_empty() || roomy.is_empty() {
        return None;
    }
    let rate = situation.rate(swapped)?;
    let room: Bytes =
        roomy.iter().filter_map(|node| situation.nodes.get(&node)).map(|state| state.room()).sum();
    let sizes = roomy.iter().filter_map(|node| situation.nodes.get(&node)).map(|state| state.size);
    let least = sizes.map(enough).min()?;
    let summary =
        format!("pages of {} are swapped out while {} have {room} available", nodes(&short), nodes(&roomy));
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, Subject::Nodes(short.clone()), summary);
    finding.confidence = Confidence::Likely;
    let page = situation.machine.page_size.unwrap_or(Bytes::from_kib(4));
    finding.concerns = Some(page.times(swapped));
    finding.evidence = vec![
        Evidence::new("swapped out", Value::Rate(rate, "pages"), shown::VMSTAT),
        Evidence::new(format!("available on {}", nodes(&roomy)), Value::Size(room), shown::NODE_MEMINFO)
            .at_part(Value::Size(least), situation.thresholds(), &thresholds::SWAP_ROOM),
    ];
    for node in &short {
        let Some(state) = situation.nodes.get(&node) else { continue };
        let evidence =
            Evidence::new(format!("free on node {node}"), Value::Size(state.free), shown::ZONEINFO);
        finding.evidence.push(match state.high {
            Some(high) => evidence.against(Value::Size(high), "the sum of its zones' high watermarks"),
            None => evidence,
        });
    }
    explain(situation, &short, &roomy, &mut finding);
    Some(finding)
}

/// The cause: a process that may use the full nodes only, or node reclaim.
fn explain(situation: &Situation<'_>, short: &NodeSet, roomy: &NodeSet, finding: &mut RuleFinding) {
    let on = |process: &ProcessState<'_>| -> Bytes {
        short.iter().filter_map(|node| process.memory.get(&node)).copied().sum()
    };
    let confined = |process: &&ProcessState<'_>| {
        let by_policy = process.policy().is_some_and(|(policy, _)| {
            policy.mode == nodewise_machine::PolicyMode::Bind && policy.nodes.is_subset(short)
        });
        let by_cpuset = process.allowed_nodes().is_some_and(|nodes| nodes.is_subset(short));
        (by_policy || by_cpuset) && on(process) >= situation.floor()
    };
    if let Some(process) = situation.processes.iter().filter(confined).max_by_key(|process| on(process)) {
        let name = words::process(process);
        let bound = process.policy().filter(|(policy, _)| policy.mode == nodewise_machine::PolicyMode::Bind);
        let by = bound.map_or_else(|| "its cpuset".to_owned(), |(policy, _)| format!("the policy {policy}"));
        finding.cause = Some(format!("{name} may use {} only: {by}", nodes(short)));
        finding.confidence = Confidence::Certain;
        finding.subject = process.subject();
        finding.nodes = short.clone();
        let all = short.union(roomy);
        if bound.is_none() {
            finding.mends.extend(process.owner().confine(&all, None, None));
            return;
        }
        finding.mends.push(Mend {
            commands: vec![format!("nodewise run --preferred-many={short} -- COMMAND")],
            ..Mend::words(
                "start it with a policy that goes on elsewhere when its nodes are full",
                Scope::Restart,
            )
        });
        return;
    }
    let mode = situation.machine.settings.zone_reclaim_mode.unwrap_or(0);
    if mode & 4 != 0 {
        finding.cause =
            Some(format!("vm.zone_reclaim_mode is {mode}: bit 4 swaps on a node before another is tried"));
        finding.mends.push(Mend::sysctl(
            "take memory of other nodes first",
            "vm.zone_reclaim_mode",
            0,
            u64::from(mode),
        ));
    }
}
