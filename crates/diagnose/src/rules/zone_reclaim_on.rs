//! Node reclaim is on: page cache is dropped while other nodes have free memory.

use nodewise_source::paths::shown;

use crate::finding::{Evidence, Mend, RuleFinding, Severity, Subject, Value};
use crate::rule::{Fact, Rule, several_nodes};
use crate::situation::Situation;

/// Nodes further apart than this are not reclaimed for each other; it is 32 on some AMD machines.
const DISTANCE: u32 = 30;

pub static RULE: Rule = Rule {
    id: "zone-reclaim-on",
    title: "node reclaim drops page cache while other nodes have free memory",
    severity: Severity::Warning,
    on: several_nodes,
    needs: &[Fact::Rates, Fact::Events, Fact::ZoneReclaim],
    sign: "vm.zone_reclaim_mode is not 0, and node reclaims succeeded in the window",
    thresholds: &[],
    traps: "machines that are split on purpose for HPC; where no two nodes are within a distance of 30 the setting does \
            nothing",
    explains: &["kswapd-one-node"],
    sources: &[
        "Documentation/admin-guide/sysctl/vm.rst: leave it off where caching matters",
        "MongoDB production notes",
    ],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    diagnose(situation).into_iter().collect()
}

fn diagnose(situation: &Situation<'_>) -> Option<RuleFinding> {
    let mode = situation.machine.settings.zone_reclaim_mode.filter(|mode| *mode & 7 != 0)?;
    let succeeded = situation.event("zone_reclaim_success").filter(|count| *count > 0)?;
    let failed = situation.event("zone_reclaim_failed").unwrap_or(0);
    let rate = situation.rate(succeeded)?;
    let summary = format!("vm.zone_reclaim_mode={mode} freed page cache {succeeded} times in the window");
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, Subject::Machine, summary);
    finding.evidence = vec![
        Evidence::new("succeeded", Value::Rate(rate, "node reclaims"), shown::VMSTAT),
        Evidence::new("failed", Value::Count(failed, "node reclaims"), shown::VMSTAT),
    ];
    let nodes = situation.memory_nodes();
    let nearest = nodes
        .iter()
        .flat_map(|from| nodes.iter().filter(move |to| *to != from).map(move |to| (from, to)))
        .filter_map(|(from, to)| situation.machine.distance(from, to))
        .min();
    if let Some(nearest) = nearest {
        let evidence =
            Evidence::new("smallest distance", Value::text(nearest.to_string()), shown::NODE_DISTANCE);
        finding
            .evidence
            .push(evidence.against(Value::text(DISTANCE.to_string()), "the kernel's node_reclaim_distance"));
    }
    finding.mends = vec![Mend::sysctl(
        "take memory of other nodes before page cache is dropped, as by default",
        "vm.zone_reclaim_mode",
        0,
        u64::from(mode),
    )];
    Some(finding)
}
