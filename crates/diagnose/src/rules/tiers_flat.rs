//! Slow memory is in the same tier as the fast one, so that nothing is promoted or demoted.

use nodewise_machine::plural::by_count;
use nodewise_machine::{AccessClass, Machine, NodeId, NodeSet};
use nodewise_source::paths::shown;

use super::words::nodes;
use crate::finding::{Confidence, Evidence, Mend, RuleFinding, Scope, Severity, Subject, Value};
use crate::rule::{Fact, Rule, with_distance};
use crate::situation::Situation;
use crate::thresholds;

pub static RULE: Rule = Rule {
    id: "tiers-flat",
    title: "slow memory is in the same tier as fast memory, so that no page is promoted or demoted",
    severity: Severity::Note,
    on: with_distance,
    needs: &[Fact::Tiers, Fact::Access],
    sign: "one memory tier with a node without CPUs whose latency is at least 1.3 times that of the fastest node, or whose \
           bandwidth is at most that part of it, by the firmware's tables",
    thresholds: &[&thresholds::TIERS_UNLIKE],
    traps: "nodes without CPUs that are as fast as the others; tables of the firmware that are wrong: nodewise latency \
            measures",
    explains: &[],
    sources: &["hmsdk#2", "mm/memory-tiers.c, Linux 6.8: the abstract distance of a node from its HMAT"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    diagnose(situation).into_iter().collect()
}

/// How many times slower than the fastest node a node is: by latency or by bandwidth, whichever is more.
fn times_slower(machine: &Machine, node: NodeId, others: &NodeSet) -> Option<f64> {
    let of = |node| machine.access(node, AccessClass::Any);
    let latency = |node| of(node)?.read_latency_ns;
    let bandwidth = |node| of(node)?.read_bandwidth_mb_per_s;
    let least = others.iter().filter_map(latency).filter(|ns| *ns > 0).min();
    let most = others.iter().filter_map(bandwidth).max();
    let by_latency = latency(node).zip(least).map(|(ns, least)| f64::from(ns) / f64::from(least));
    let slow = bandwidth(node).filter(|rate| *rate > 0);
    let by_bandwidth = slow.zip(most).map(|(rate, most)| f64::from(most) / f64::from(rate));
    by_latency.into_iter().chain(by_bandwidth).reduce(f64::max)
}

fn diagnose(situation: &Situation<'_>) -> Option<RuleFinding> {
    let machine = situation.machine;
    let [tier] = &machine.tiers[..] else { return None };
    let with_cpus = machine.nodes_with_cpus();
    let least = situation.limit(&thresholds::TIERS_UNLIKE);
    let slow: Vec<(NodeId, f64)> = situation
        .memory_nodes()
        .iter()
        .filter(|node| tier.nodes.contains(*node) && !with_cpus.contains(*node))
        .filter_map(|node| Some((node, times_slower(machine, node, &with_cpus)?)))
        .filter(|(_, times)| *times >= least)
        .collect();
    let times = slow.iter().map(|(_, times)| *times).reduce(f64::max)?;
    let slow: NodeSet = slow.into_iter().map(|(node, _)| node).collect();
    let is = by_count(&slow.len(), "is", "are");
    let summary = format!("{} {is} in one tier with memory {times:.1} times as fast", nodes(&slow));
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, Subject::Nodes(slow.clone()), summary);
    finding.confidence = Confidence::Likely;
    finding.concerns =
        Some(slow.iter().filter_map(|node| situation.nodes.get(&node)).map(|state| state.size).sum());
    finding.evidence = vec![
        Evidence::new("nodes of the tier", Value::text(tier.nodes.to_string()), shown::TIERS),
        Evidence::new("slower than the fastest node", Value::text(format!("{times:.1} times")), "HMAT")
            .at(situation.thresholds(), &thresholds::TIERS_UNLIKE),
    ];
    finding.cause = Some(
        "the kernel puts a node in the tier of DRAM unless a driver or the HMAT says otherwise in time"
            .to_owned(),
    );
    finding.mends = vec![Mend::words(
        "a kernel that reads the HMAT into tiers (6.8), or an update of the firmware; nothing changes it at run time",
        Scope::Reboot,
    )];
    finding.experiment = Some("nodewise latency and nodewise bandwidth measure the nodes".to_owned());
    Some(finding)
}
