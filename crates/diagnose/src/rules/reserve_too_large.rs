//! The kernel's reserves hold back too much of a node.

use nodewise_machine::{NodeId, NodeSet};
use nodewise_source::paths::shown;

use crate::finding::{Evidence, Mend, RuleFinding, Scope, Severity, Subject, Value};
use crate::rule::{Fact, Rule, several_nodes};
use crate::situation::Situation;
use crate::thresholds;

pub static RULE: Rule = Rule {
    id: "reserve-too-large",
    title: "watermarks hold back more than 7.5 % of a node",
    severity: Severity::Note,
    on: several_nodes,
    needs: &[Fact::Watermarks, Fact::NodeMemory],
    sign: "the sum of the zones' high watermarks is more than 7.5 % of the node: the kernel caps its own minimum at 5 %, \
           and the high watermark is half as much above it",
    thresholds: &[&thresholds::RESERVE],
    traps: "reserves for packets that are received in interrupts, set on purpose; many small nodes, whose zones each \
            have a reserve",
    explains: &[],
    sources: &["mm/page_alloc.c and mm/khugepaged.c, Linux 6.12: the cap of 5 %"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    let cap = situation.limit(&thresholds::RESERVE);
    let large: Vec<NodeId> = situation
        .nodes
        .iter()
        .filter(|(_, state)| state.high.is_some_and(|high| state.share(high) > cap))
        .map(|(node, _)| *node)
        .collect();
    let Some(first) = large.first().and_then(|node| situation.nodes.get(node)) else { return Vec::new() };
    let (high, size) = (first.high.unwrap_or_default(), first.size);
    let summary = format!("{high} of {size} are held back by watermarks on the first of them");
    let nodes = NodeSet::from_iter(large);
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, Subject::Nodes(nodes), summary);
    finding.concerns = Some(high);
    finding.evidence = vec![
        Evidence::new("high watermarks", Value::Share(first.share(high)), shown::ZONEINFO)
            .at(situation.thresholds(), &thresholds::RESERVE),
    ];
    if let Some(kib) = situation.machine.settings.min_free_kib {
        finding.evidence.push(Evidence::new("vm.min_free_kbytes", Value::Count(kib, "KiB"), shown::MIN_FREE));
    }
    finding.mends = vec![Mend::words(
        "lower vm.min_free_kbytes or vm.watermark_scale_factor; nodewise zones shows the watermarks",
        Scope::Now,
    )];
    vec![finding]
}
