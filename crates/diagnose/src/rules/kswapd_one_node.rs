//! One node's reclaim thread is at work while the others sleep.

use nodewise_machine::NodeId;
use nodewise_source::paths::shown;

use crate::finding::{Evidence, OWN, RuleFinding, Severity, Subject, Value};
use crate::rule::{Fact, Rule, several_nodes};
use crate::situation::Situation;

/// The share of a CPU from which a thread is at work, and below which it sleeps.
const BUSY: f64 = 0.2;
const ASLEEP: f64 = 0.02;

/// With this part of the node available, nothing is short.
const ROOM: f64 = 0.1;

pub static RULE: Rule = Rule {
    id: "kswapd-one-node",
    title: "one node's kswapd burns CPU time while others sleep",
    severity: Severity::Warning,
    on: several_nodes,
    needs: &[Fact::Rates, Fact::Processes],
    sign: "kswapdN used at least 20 % of a CPU in the window, those of all other nodes less than 2 %",
    traps: "where memory is short everywhere, all of them are at work",
    explains: &[],
    sources: &["laveeshb/linux-kernel-internals#211"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    let shares: Vec<(NodeId, f64)> =
        situation.memory_nodes().iter().filter_map(|node| Some((node, situation.reclaimer(node)?))).collect();
    let busy: Vec<(NodeId, f64)> = shares.iter().copied().filter(|(_, share)| *share >= BUSY).collect();
    let [(node, share)] = busy[..] else { return Vec::new() };
    let sleep = shares.iter().all(|(other, share)| *other == node || *share < ASLEEP);
    if !sleep || shares.len() < 2 {
        return Vec::new();
    }
    let percent = (share * 100.0).round();
    let summary = format!("kswapd{node} used {percent} % of a CPU, those of the other nodes slept");
    let subject = Subject::node(node);
    // Page cache that is replaced by other page cache is ordinary.
    let has_room = situation
        .nodes
        .get(&node)
        .is_some_and(|state| state.available.is_some_and(|room| state.share(room) >= ROOM));
    let severity = if has_room { Severity::Note } else { RULE.severity };
    let mut finding = RuleFinding::new(RULE.id, severity, subject, summary);
    finding.evidence = vec![
        Evidence::new(format!("kswapd{node}"), Value::Share(share), shown::STAT)
            .against(Value::Share(BUSY), OWN),
    ];
    vec![finding]
}
