//! Watermarks are so low that programs have to reclaim memory themselves.

use nodewise_machine::NodeId;
use nodewise_source::paths::shown;

use crate::finding::{Confidence, Evidence, Mend, RuleFinding, Scope, Severity, Subject, Value};
use crate::rule::{Fact, Rule, any};
use crate::situation::Situation;
use crate::thresholds;

/// Allocations that reclaimed memory themselves, by zone; kernels before 4.10 have one counter.
const STALLS: [&str; 6] = [
    "allocstall",
    "allocstall_dma",
    "allocstall_dma32",
    "allocstall_normal",
    "allocstall_movable",
    "allocstall_device",
];

pub static RULE: Rule = Rule {
    id: "reserve-too-small",
    title: "watermarks are so low that allocations reclaim memory themselves while kswapd sleeps",
    severity: Severity::Note,
    on: any,
    needs: &[Fact::Rates, Fact::Events, Fact::Watermarks],
    sign: "at least 1 allocation a second reclaimed memory itself, the sum of a node's high watermarks is less than 0.12 % of \
           it (the kernel's own are more than 0.2 %), at most 2 % of it is free, and its kswapd used less than 20 % of a CPU",
    thresholds: &[
        &thresholds::SMALL_STALLS,
        &thresholds::SMALL_RESERVE,
        &thresholds::SMALL_FREE,
        &thresholds::SMALL_KSWAPD,
    ],
    traps: "limits of control groups reclaim without these counters; memory that is short all the time keeps kswapd at work",
    explains: &[],
    sources: &["kubernetes/website#51428", "Documentation/admin-guide/sysctl/vm.rst: watermark_scale_factor"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    situation.memory_nodes().iter().filter_map(|node| find(situation, node)).collect()
}

fn find(situation: &Situation<'_>, node: NodeId) -> Option<RuleFinding> {
    let stalls = STALLS.iter().filter_map(|name| situation.event(name)).reduce(u64::saturating_add)?;
    let rate = situation.rate(stalls)?;
    let state = situation.nodes.get(&node)?;
    let share = state.share(state.high?);
    let sleeps = situation.reclaimer(node)? < situation.limit(&thresholds::SMALL_KSWAPD);
    if rate < situation.limit(&thresholds::SMALL_STALLS)
        || share >= situation.limit(&thresholds::SMALL_RESERVE)
        || state.share(state.free) > situation.limit(&thresholds::SMALL_FREE)
        || !sleeps
    {
        return None;
    }
    let summary =
        format!("{stalls} allocations in the window waited for memory that they reclaimed themselves");
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, Subject::node(node), summary);
    finding.confidence = Confidence::Likely;
    finding.evidence = vec![
        Evidence::new("stalled", Value::Rate(rate, "allocations"), shown::VMSTAT)
            .at(situation.thresholds(), &thresholds::SMALL_STALLS),
        Evidence::new(
            "high watermarks",
            Value::text(format!("{:.2} % of the node", share * 100.0)),
            shown::ZONEINFO,
        )
        .at_part(
            Value::text(format!("{:.2} %", situation.limit(&thresholds::SMALL_RESERVE) * 100.0)),
            situation.thresholds(),
            &thresholds::SMALL_RESERVE,
        ),
        Evidence::new(
            format!("free on node {node}"),
            Value::Share(state.share(state.free)),
            shown::NODE_MEMINFO,
        )
        .at(situation.thresholds(), &thresholds::SMALL_FREE),
    ];
    finding.mends = vec![Mend {
        commands: vec![
            "sysctl vm.watermark_scale_factor".to_owned(),
            "sysctl -w vm.watermark_scale_factor=100".to_owned(),
        ],
        needs_root: true,
        ..Mend::words(
            "raise the watermarks, so that kswapd begins earlier; the first command shows the old value (10 by default), which \
             takes it back; nodewise zones shows the watermarks",
            Scope::Now,
        )
    }];
    Some(finding)
}
