//! A process that uses pages of a pool runs on a node whose pool has none left.

use std::collections::BTreeMap;

use nodewise_machine::mapping::{Mapping, MappingKind};
use nodewise_machine::{Bytes, NodeId, PolicyMode};
use nodewise_source::paths::shown;

use super::words::{self, nodes};
use crate::finding::{Confidence, Evidence, Mend, RuleFinding, Scope, Severity, Value};
use crate::rule::{Fact, Rule, with_distance};
use crate::situation::process::add_pages;
use crate::situation::{ProcessState, Situation};
use crate::thresholds;

pub static RULE: Rule = Rule {
    id: "hugepages-wrong-node",
    title: "a process with pages of a pool runs where that pool is used up",
    severity: Severity::Warning,
    on: with_distance,
    needs: &[Fact::Rates, Fact::Mappings, Fact::Policies, Fact::Pools],
    sign: "a process maps pages of a pool, the nodes where it runs have no free page of that size, another node has, \
           and part of its pages came from there",
    thresholds: &[&thresholds::RUNS, &thresholds::AT_WORK],
    traps: "a process that took all the pages it needs from its own node",
    explains: &["memory-stranded", "hugetlb-stays"],
    sources: &["grout#199", "ndn-dpdk#43", "openNetVM#162"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    let at_work = situation.processes.iter().filter(|process| process.is_at_work());
    at_work.filter_map(|process| find(situation, process)).collect()
}

fn find(situation: &Situation<'_>, process: &ProcessState<'_>) -> Option<RuleFinding> {
    let runs = process.runs_on();
    let mappings = &process.mappings?.mappings;
    let of_pools = mappings.iter().filter(|mapping| mapping.kind == MappingKind::HugePool);
    let size = of_pools.clone().filter_map(|mapping| mapping.page_size).max()?;
    let mut on: BTreeMap<NodeId, Bytes> = BTreeMap::new();
    // A binding put them there, or a policy that was not read; and a pool of another size is another matter.
    let is_bound = |mapping: &&Mapping| {
        let policy = mapping.policy.as_ref().and_then(|policy| policy.policy.as_ref());
        policy.is_none_or(|policy| policy.mode == PolicyMode::Bind)
    };
    for mapping in of_pools.filter(|mapping| mapping.page_size == Some(size) && !is_bound(mapping)) {
        if let nodewise_machine::mapping::MappedPages::Counted(pages) = &mapping.pages {
            add_pages(&mut on, pages);
        }
    }
    let free = |node: NodeId| {
        let sample = situation.now.node(node)?;
        sample.pools.iter().find(|pool| pool.page_size == size)?.free
    };
    let is_used_up = !runs.is_empty() && runs.iter().all(|node| free(node) == Some(0));
    let other = situation
        .memory_nodes()
        .iter()
        .filter(|node| !runs.contains(*node))
        .find(|node| free(*node) > Some(0))?;
    let away: Bytes = on.iter().filter(|(node, _)| !runs.contains(**node)).map(|(_, size)| *size).sum();
    if !is_used_up || away.get() == 0 {
        return None;
    }
    let summary = format!(
        "{} runs on {}, whose pool of {size} pages is used up; {away} of its huge pages are elsewhere",
        words::process(process),
        nodes(&runs)
    );
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, process.subject(), summary);
    finding.confidence = Confidence::Certain;
    finding.concerns = Some(away);
    finding.evidence = vec![
        Evidence::new(format!("free on {}", nodes(&runs)), Value::Count(0, "pages"), shown::NODE_POOL),
        Evidence::new(format!("free on node {other}"), Value::Count(free(other)?, "pages"), shown::NODE_POOL),
    ];
    let pages = away.get().div_ceil(size.get());
    let home = runs.first()?;
    let has = situation.now.node(home)?;
    let total = has.pools.iter().find(|pool| pool.page_size == size)?.total;
    finding.mends = vec![Mend::pool(
        "give that node a pool, and start the program again: pages of a pool stay",
        Scope::Restart,
        size,
        &[(home, total.saturating_add(pages), total)],
    )];
    finding.nodes = runs;
    Some(finding)
}
