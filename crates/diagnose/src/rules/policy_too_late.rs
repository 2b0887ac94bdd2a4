//! A policy is set, and the pages came before it.

use nodewise_machine::mapping::{Mapping, MappingKind};
use nodewise_machine::{Bytes, MemPolicy, NodeSet, PolicyMode};
use nodewise_source::paths::shown;

use super::words::{self, nodes};
use crate::finding::{Evidence, Mend, RuleFinding, Scope, Severity, Value};
use crate::rule::{Fact, Rule, several_nodes};
use crate::situation::pages::{NodePages, ShareEstimate};
use crate::situation::{ProcessState, Situation};
use crate::thresholds;

pub static RULE: Rule = Rule {
    id: "policy-too-late",
    title: "a policy is set, and the pages came before it",
    severity: Severity::Note,
    on: several_nodes,
    needs: &[Fact::Policies],
    sign: "under interleaving over k nodes a node has 10 points more or less than 1/k of at least 10,000 pages; under \
           bind pages lie on another node",
    thresholds: &[
        &thresholds::SIGNIFICANT,
        &thresholds::SIGNIFICANT_SHARE,
        &thresholds::POLICY_OFF,
        &thresholds::POLICY_ENOUGH,
    ],
    traps: "a node that was full when the pages were touched: then node-at-watermark is the cause; weighted \
            interleaving is uneven by design; pages of files ignore policies",
    explains: &[],
    sources: &["percona-server#6038: a policy counts at the first touch only"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    situation.significant().filter_map(|process| find(situation, process)).collect()
}

fn find(situation: &Situation<'_>, process: &ProcessState<'_>) -> Option<RuleFinding> {
    let mut under: Vec<(&MemPolicy, NodePages)> = Vec::new();
    for (mapping, policy) in process.placed_mappings().filter(|(mapping, _)| counts(mapping)) {
        let at = under.iter().position(|(known, _)| *known == policy).unwrap_or_else(|| {
            under.push((policy, NodePages::default()));
            under.len() - 1
        });
        under[at].1.add(&mapping.pages);
    }
    let (policy, memory, wrong) = under
        .into_iter()
        .filter_map(|(policy, memory)| wrong(situation, policy, &memory).map(|w| (policy, memory, w)))
        .max_by_key(|(_, _, wrong)| *wrong)?;
    let size = memory.size();
    let enough = situation.thresholds().size(&thresholds::POLICY_ENOUGH);
    let summary = format!("{wrong} of {size} under {policy} are not where that puts them");
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, process.subject(), summary);
    finding.concerns = Some(wrong);
    for node in memory.nodes().iter() {
        let (fact, node) = (format!("on node {node}"), NodeSet::from_iter([node]));
        finding.evidence.push(Evidence::new(fact.clone(), Value::Size(memory.on(&node)), shown::NUMA_MAPS));
        finding.evidence.extend(memory.share(&node).and_then(|share| words::interval(fact, &share)));
    }
    finding.evidence.push(
        Evidence::new("away from the policy", Value::Size(wrong), shown::NUMA_MAPS).at_part(
            Value::Size(enough.share(situation.limit(&thresholds::POLICY_OFF))),
            situation.thresholds(),
            &thresholds::POLICY_ENOUGH,
        ),
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
fn wrong(situation: &Situation<'_>, policy: &MemPolicy, memory: &NodePages) -> Option<Bytes> {
    let (enough, off) =
        (situation.thresholds().size(&thresholds::POLICY_ENOUGH), situation.limit(&thresholds::POLICY_OFF));
    let size = memory.size();
    if size < enough || policy.nodes.is_empty() {
        return None;
    }
    let outside = memory.nodes().difference(&policy.nodes);
    match policy.mode {
        // A sampled page of another node is proof enough; how many there are is not.
        PolicyMode::Bind => Some(memory.on(&outside)).filter(|outside| *outside >= enough.share(off)),
        PolicyMode::Interleave if policy.nodes.len() > 1 => {
            let even = 1.0 / policy.nodes.len() as f64;
            let shares: Vec<ShareEstimate> =
                policy.nodes.iter().filter_map(|node| memory.share(&NodeSet::from_iter([node]))).collect();
            let is_off = shares.iter().any(|share| share.low > even + off || share.high < even - off);
            let above: f64 = shares.iter().map(|share| (share.share - even).max(0.0)).sum();
            is_off.then(|| size.share(above) + memory.on(&outside))
        }
        _ => None,
    }
}
