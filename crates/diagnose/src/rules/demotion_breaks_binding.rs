//! Demotion moves pages of bound programs to nodes that they may not use.

use nodewise_machine::{Bytes, NodeSet, PolicyMode};
use nodewise_source::paths::shown;

use super::words::{self, nodes};
use crate::finding::{Evidence, Mend, RuleFinding, Severity, Value};
use crate::rule::{Fact, Rule, tiered};
use crate::situation::{ProcessState, Situation};
use crate::thresholds;

pub static RULE: Rule = Rule {
    id: "demotion-breaks-binding",
    title: "demotion moves pages of bound programs to nodes that they may not use",
    severity: Severity::Warning,
    on: tiered,
    needs: &[Fact::Pages, Fact::Policies, Fact::Demotion, Fact::Release],
    sign: "demotion is on, the kernel is older than 6.16, and a process has pages on a node of a slower tier that its \
           policy or cpuset leaves out",
    thresholds: &[&thresholds::SIGNIFICANT, &thresholds::SIGNIFICANT_SHARE],
    traps: "pages that were there before the binding",
    explains: &[],
    sources: &["case 39 of the experiments on Linux 6.12 in a guest"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    situation.significant().filter_map(|process| find(situation, process)).collect()
}

fn find(situation: &Situation<'_>, process: &ProcessState<'_>) -> Option<RuleFinding> {
    let machine = situation.machine;
    if machine.settings.demotion_enabled != Some(true) || machine.kernel.as_ref()?.is_at_least(6, 16) {
        return None;
    }
    let bound = match process.policy() {
        Some((policy, _)) if policy.mode == PolicyMode::Bind => policy.nodes.clone(),
        _ => process.allowed_nodes()?.clone(),
    };
    let fastest = machine.tiers.iter().min_by_key(|tier| tier.id)?.nodes.clone();
    let outside: NodeSet = process
        .memory
        .keys()
        .copied()
        .filter(|node| !bound.contains(*node) && !fastest.contains(*node))
        .collect();
    let size: Bytes = outside.iter().filter_map(|node| process.memory.get(&node)).copied().sum();
    if size.get() == 0 {
        return None;
    }
    let summary =
        format!("{size} of {} are on {}, which it may not use", words::process(process), nodes(&outside));
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, process.subject(), summary);
    finding.confidence = process.confidence;
    finding.concerns = Some(size);
    finding.evidence = vec![
        Evidence::new("bound to", Value::text(nodes(&bound)), shown::NUMA_MAPS),
        Evidence::new(format!("memory on {}", nodes(&outside)), Value::Size(size), shown::NUMA_MAPS),
    ];
    finding.cause = Some("before Linux 6.16 demotion looks at no policy and no cpuset".to_owned());
    finding.mends = vec![Mend::write("leave pages where they are", shown::DEMOTION, "0", "1")];
    finding.nodes = outside;
    Some(finding)
}
