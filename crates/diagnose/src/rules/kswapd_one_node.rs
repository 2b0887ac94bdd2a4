//! One node's reclaim thread is at work while the others sleep.

use nodewise_machine::NodeId;
use nodewise_source::paths::shown;

use crate::finding::{Evidence, RuleFinding, Severity, Subject, Value};
use crate::rule::{Fact, Rule, several_nodes};
use crate::situation::Situation;
use crate::thresholds;

pub static RULE: Rule = Rule {
    id: "kswapd-one-node",
    title: "one node's kswapd burns CPU time while others sleep",
    severity: Severity::Warning,
    on: several_nodes,
    needs: &[Fact::Rates, Fact::Processes],
    sign: "kswapdN used at least 20 % of a CPU in the window, those of all other nodes less than 2 %",
    thresholds: &[&thresholds::KSWAPD_BUSY, &thresholds::KSWAPD_ASLEEP, &thresholds::KSWAPD_ROOM],
    traps: "where memory is short everywhere, all of them are at work",
    explains: &[],
    sources: &["laveeshb/linux-kernel-internals#211"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    let (at_work, asleep) =
        (situation.limit(&thresholds::KSWAPD_BUSY), situation.limit(&thresholds::KSWAPD_ASLEEP));
    let shares: Vec<(NodeId, f64)> =
        situation.memory_nodes().iter().filter_map(|node| Some((node, situation.reclaimer(node)?))).collect();
    let busy: Vec<(NodeId, f64)> = shares.iter().copied().filter(|(_, share)| *share >= at_work).collect();
    let [(node, share)] = busy[..] else { return Vec::new() };
    let sleep = shares.iter().all(|(other, share)| *other == node || *share < asleep);
    if !sleep || shares.len() < 2 {
        return Vec::new();
    }
    let percent = (share * 100.0).round();
    let summary = format!("kswapd{node} used {percent} % of a CPU, those of the other nodes slept");
    let subject = Subject::node(node);
    // Page cache that is replaced by other page cache is ordinary.
    let has_room = situation.nodes.get(&node).is_some_and(|state| {
        state.available.is_some_and(|room| state.share(room) >= situation.limit(&thresholds::KSWAPD_ROOM))
    });
    let severity = if has_room { Severity::Note } else { RULE.severity };
    let mut finding = RuleFinding::new(RULE.id, severity, subject, summary);
    finding.evidence = vec![
        Evidence::new(format!("kswapd{node}"), Value::Share(share), shown::STAT)
            .at(situation.thresholds(), &thresholds::KSWAPD_BUSY),
    ];
    vec![finding]
}
