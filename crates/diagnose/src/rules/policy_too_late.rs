//! A policy is set, and the pages came before it.

use std::collections::BTreeMap;

use nodewise_machine::mapping::{MappedPages, Mapping, MappingKind};
use nodewise_machine::{Bytes, MemPolicy, NodeId, PolicyMode};
use nodewise_source::paths::shown;

use super::words::nodes;
use crate::finding::{Evidence, Mend, OWN, RuleFinding, Scope, Severity, Value};
use crate::rule::{Fact, Rule, several_nodes};
use crate::situation::process::add_pages;
use crate::situation::{ProcessState, Situation};

/// A node's share may differ from an even one by this much.
const OFF: f64 = 0.1;
/// Memory of a policy that says something: 10,000 pages.
const ENOUGH: Bytes = Bytes::from_kib(40_000);

pub static RULE: Rule = Rule {
    id: "policy-too-late",
    title: "a policy is set, and the pages came before it",
    severity: Severity::Note,
    on: several_nodes,
    needs: &[Fact::Policies],
    sign: "under interleaving over k nodes a node has 10 points more or less than 1/k of at least 10,000 pages; under \
           bind pages lie on another node",
    traps: "a node that was full when the pages were touched: then node-at-watermark is the cause; weighted \
            interleaving is uneven by design; pages of files ignore policies",
    explains: &[],
    sources: &["percona-server#6038: a policy counts at the first touch only"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    situation.significant().filter_map(find).collect()
}

fn find(process: &ProcessState<'_>) -> Option<RuleFinding> {
    let mut under: Vec<(&MemPolicy, BTreeMap<NodeId, Bytes>)> = Vec::new();
    for (mapping, policy) in process.placed_mappings().filter(|(mapping, _)| counts(mapping)) {
        let MappedPages::Counted(pages) = &mapping.pages else { continue };
        let at = under.iter().position(|(known, _)| *known == policy).unwrap_or_else(|| {
            under.push((policy, BTreeMap::new()));
            under.len() - 1
        });
        add_pages(&mut under[at].1, pages);
    }
    let (policy, memory, wrong) = under
        .into_iter()
        .filter_map(|(policy, memory)| wrong(policy, &memory).map(|w| (policy, memory, w)))
        .max_by_key(|(_, _, wrong)| *wrong)?;
    let size: Bytes = memory.values().copied().sum();
    let summary = format!("{wrong} of {size} under {policy} are not where that puts them");
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, process.subject(), summary);
    finding.concerns = Some(wrong);
    finding.evidence = memory
        .iter()
        .map(|(node, size)| Evidence::new(format!("on node {node}"), Value::Size(*size), shown::NUMA_MAPS))
        .collect();
    finding.evidence.push(
        Evidence::new("away from the policy", Value::Size(wrong), shown::NUMA_MAPS)
            .against(Value::Size(ENOUGH.share(OFF)), OWN),
    );
    finding.cause =
        Some("the pages were touched before the policy was set, or while a node was full".to_owned());
    let to = match policy.mode {
        PolicyMode::Bind => policy.nodes.to_string(),
        _ => format!("interleave:{}", policy.nodes),
    };
    let what = format!("move its pages to {}", nodes(&policy.nodes));
    finding.mends = vec![
        Mend::migrate(what, process.pid(), None, &to, wrong),
        Mend::words(
            "set the policy before the first write, as nodewise run does, and fill the memory at the start",
            Scope::Restart,
        ),
    ];
    finding.nodes = policy.nodes.clone();
    Some(finding)
}

/// Whether the mapping's pages follow its policy, whoever touches them.
fn counts(mapping: &Mapping) -> bool {
    mapping.kind.follows_policy() && mapping.kind != MappingKind::Shared
}

/// Memory away from the places of a policy; `None` where it is little, or the policy gives no place.
fn wrong(policy: &MemPolicy, memory: &BTreeMap<NodeId, Bytes>) -> Option<Bytes> {
    let size: Bytes = memory.values().copied().sum();
    if size < ENOUGH || policy.nodes.is_empty() {
        return None;
    }
    let outside: Bytes =
        memory.iter().filter(|(node, _)| !policy.nodes.contains(**node)).map(|(_, size)| *size).sum();
    match policy.mode {
        PolicyMode::Bind => Some(outside).filter(|outside| *outside >= ENOUGH.share(OFF)),
        PolicyMode::Interleave if policy.nodes.len() > 1 => {
            let even = 1.0 / policy.nodes.len() as f64;
            let share =
                |node: NodeId| memory.get(&node).map_or(0, |size| size.get()) as f64 / size.get() as f64;
            let is_off = policy.nodes.iter().any(|node| (share(node) - even).abs() > OFF);
            let above: f64 = policy.nodes.iter().map(|node| (share(node) - even).max(0.0)).sum();
            is_off.then(|| size.share(above) + outside)
        }
        _ => None,
    }
}
