//! Interleaving covers a slow node: every k-th page is on it.

use nodewise_machine::{NodeSet, PolicyMode};
use nodewise_source::paths::shown;

use super::words::{self, nodes};
use crate::finding::{Evidence, Mend, RuleFinding, Scope, Severity, Value};
use crate::rule::{Fact, Rule, tiered};
use crate::situation::{ProcessState, Situation};
use crate::thresholds;

pub static RULE: Rule = Rule {
    id: "slow-node-in-interleave",
    title: "interleaving covers a node of a slower tier",
    severity: Severity::Warning,
    on: tiered,
    needs: &[Fact::Policies],
    sign: "a policy interleave over nodes of several memory tiers, with pages on the slow ones",
    thresholds: &[&thresholds::SIGNIFICANT, &thresholds::SIGNIFICANT_SHARE],
    traps: "weighted interleaving, which gives a slow node its part",
    explains: &[],
    sources: &["numactl#226", "cxlbench#37"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    situation.significant().filter_map(|process| find(situation, process)).collect()
}

fn find(situation: &Situation<'_>, process: &ProcessState<'_>) -> Option<RuleFinding> {
    let (policy, _) = process.policy().filter(|(policy, _)| policy.mode == PolicyMode::Interleave)?;
    let fastest = situation
        .machine
        .tiers
        .iter()
        .min_by_key(|tier| tier.id)
        .map(|tier| tier.nodes.clone())
        .unwrap_or_default();
    let slow: NodeSet = policy.nodes.difference(&fastest);
    let size =
        slow.iter().filter_map(|node| process.memory.get(&node)).copied().sum::<nodewise_machine::Bytes>();
    if slow.is_empty() || policy.nodes.is_disjoint(&fastest) || size < situation.floor() {
        return None;
    }
    let fast = policy.nodes.intersection(&fastest);
    let summary =
        format!("{size} of {} are on {}, memory of a slower tier", words::process(process), nodes(&slow));
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, process.subject(), summary);
    finding.concerns = Some(size);
    finding.evidence = vec![
        Evidence::new("policy", Value::text(policy.to_string()), shown::NUMA_MAPS),
        Evidence::new("nodes of the fastest tier", Value::text(fastest.to_string()), shown::TIERS),
        Evidence::new(format!("memory on {}", nodes(&slow)), Value::Size(size), shown::NUMA_MAPS),
    ];
    finding.mends = vec![
        Mend {
            commands: vec![format!("nodewise run --interleave={fast} -- COMMAND")],
            ..Mend::words("interleave over the fast nodes", Scope::Restart)
        },
        Mend {
            commands: vec![format!("nodewise run --weighted-interleave={} -- COMMAND", policy.nodes)],
            ..Mend::words(
                "give each node its part by bandwidth (Linux 6.9; nodewise bandwidth --apply-weights)",
                Scope::Restart,
            )
        },
    ];
    finding.nodes = slow;
    Some(finding)
}
