//! The counters of allocations are switched off: every tool that reads them shows 0.

use nodewise_machine::NodeCounters;
use nodewise_source::paths::shown;

use crate::finding::{Evidence, Mend, RuleFinding, Severity, Subject, Value};
use crate::rule::{Fact, Rule, several_nodes};
use crate::situation::Situation;
use crate::thresholds;

/// Pages that the system took since boot, as every kernel since 2.6 counts them by zone.
const TAKEN: [&str; 5] =
    ["pgalloc_dma", "pgalloc_dma32", "pgalloc_normal", "pgalloc_movable", "pgalloc_device"];

pub static RULE: Rule = Rule {
    id: "counters-off",
    title: "the counters of allocations by node are switched off, and show 0",
    severity: Severity::Info,
    on: several_nodes,
    needs: &[Fact::Events, Fact::Allocations],
    sign: "every counter of every node is 0, and the system took at least 100,000 pages since boot",
    thresholds: &[&thresholds::COUNTERS_TAKEN],
    traps: "a machine that started a moment ago",
    explains: &[],
    sources: &[
        "Documentation/admin-guide/sysctl/vm.rst: numa_stat; writing 0 resets the counters, Linux 6.12 in a guest",
    ],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    diagnose(situation).into_iter().collect()
}

fn diagnose(situation: &Situation<'_>) -> Option<RuleFinding> {
    let events = &situation.now.events;
    let taken = TAKEN.iter().filter_map(|name| events.get(name)).fold(0, u64::saturating_add);
    let are_zero = |of: &NodeCounters<Option<u64>>| {
        let all = [of.hit, of.miss, of.foreign, of.interleave_hit, of.local, of.other];
        of.hit.is_some() && all.into_iter().flatten().all(|count| count == 0)
    };
    // A node whose counters are not known may count.
    let is_off = situation.now.nodes.iter().all(|node| are_zero(&node.allocations));
    if !is_off || (taken as f64) < situation.limit(&thresholds::COUNTERS_TAKEN) {
        return None;
    }
    let summary = "numastat and the rules that need these counters see no allocation";
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, Subject::Machine, summary);
    finding.evidence = vec![
        Evidence::new("allocations by node since boot", Value::Count(0, "pages"), shown::NODE_NUMASTAT),
        Evidence::new("pages taken since boot", Value::Count(taken, "pages"), shown::VMSTAT)
            .at(situation.thresholds(), &thresholds::COUNTERS_TAKEN),
    ];
    finding.cause = Some("vm.numa_stat is 0".to_owned());
    finding.mends = vec![Mend::sysctl("count again, from 0", "vm.numa_stat", 1, 0)];
    Some(finding)
}
