//! A policy names nodes, and the cpuset leaves nothing of it.

use nodewise_machine::{Bytes, MemPolicy, NodeSet, PolicyMode};
use nodewise_source::paths::shown;

use super::words::{self, nodes};
use crate::finding::{Evidence, Mend, Owner, RuleFinding, Scope, Severity, Value};
use crate::rule::{Fact, Rule, several_nodes};
use crate::situation::{ProcessState, Situation};
use crate::thresholds;

pub static RULE: Rule = Rule {
    id: "cpuset-eats-policy",
    title: "a cpuset leaves nothing of a policy's nodes, or one of those that it interleaves over",
    severity: Severity::Note,
    on: several_nodes,
    needs: &[Fact::Policies],
    sign: "a policy over at least 300 MiB or 5 % of the smallest node names nodes outside of the process's Mems_allowed, \
           or interleaves over the one node that Mems_allowed has",
    thresholds: &[&thresholds::SIGNIFICANT, &thresholds::SIGNIFICANT_SHARE],
    traps: "the kernel shows a policy as the cpuset left it: of one that lost some of several nodes nothing is seen; a \
            container of one node on purpose, whose program interleaves wherever it can",
    explains: &[],
    sources: &[
        "set_mempolicy(2): nodes outside of the cpuset are left out",
        "mysql-server#104 and #138: interleaving over nodes that the cpuset does not allow",
    ],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    if situation.memory_nodes().len() < 2 {
        return Vec::new();
    }
    situation.significant().filter_map(|process| find(situation, process)).collect()
}

fn find(situation: &Situation<'_>, process: &ProcessState<'_>) -> Option<RuleFinding> {
    let allowed = process.allowed_nodes().filter(|allowed| !allowed.is_empty())?;
    let mut sizes: Vec<(&MemPolicy, Bytes)> = Vec::new();
    for (mapping, policy) in process.placed_mappings().filter(|(_, policy)| is_eaten(policy, allowed)) {
        let size = mapping.resident().unwrap_or_default();
        match sizes.iter_mut().find(|(known, _)| *known == policy) {
            Some((_, sum)) => *sum += size,
            None => sizes.push((policy, size)),
        }
    }
    let (policy, size) = sizes.into_iter().max_by_key(|(_, size)| *size)?;
    if size < situation.floor() {
        return None;
    }
    let outside = policy.nodes.difference(allowed);
    let effect = match outside.len() {
        0 => "interleaves over one node".to_owned(),
        _ => format!("names {}, which its cpuset does not allow", nodes(&outside)),
    };
    let summary = format!("{policy} of {} {effect}", words::process(process));
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, process.subject(), summary);
    finding.concerns = Some(size);
    finding.evidence = vec![
        Evidence::new("memory under it", Value::Size(size), shown::NUMA_MAPS)
            .against(Value::Size(situation.floor()), situation.size_origin(&thresholds::SIGNIFICANT)),
        Evidence::new("nodes of the cpuset", Value::text(allowed.to_string()), shown::STATUS),
    ];
    finding.cause = Some(format!("its cpuset allows {} only", nodes(allowed)));
    finding.mends = mends(situation, process, policy);
    finding.nodes = policy.nodes.clone();
    Some(finding)
}

/// Whether a cpuset takes from a policy what it is for.
fn is_eaten(policy: &MemPolicy, allowed: &NodeSet) -> bool {
    let interleaves = matches!(policy.mode, PolicyMode::Interleave | PolicyMode::WeightedInterleave);
    let is_one = interleaves && policy.nodes.len() == 1 && *allowed == policy.nodes;
    !policy.nodes.is_subset(allowed) || is_one
}

fn mends(situation: &Situation<'_>, process: &ProcessState<'_>, policy: &MemPolicy) -> Vec<Mend> {
    let wanted = match policy.nodes.len() {
        1 => situation.memory_nodes(),
        _ => policy.nodes.clone(),
    };
    let narrow = Mend::words(
        "or start it without the policy: a cpuset of one node already says where its memory comes from",
        Scope::Restart,
    );
    let wide = match process.owner() {
        Owner::Itself => {
            vec![Mend::words(format!("let its cpuset allow {}", nodes(&wanted)), Scope::Restart)]
        }
        owner => owner.confine(&wanted, None, None),
    };
    wide.into_iter().chain([narrow]).collect()
}
