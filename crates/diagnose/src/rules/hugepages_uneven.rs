//! The pool of a size lies unevenly over nodes although it was asked for as one number.

use std::collections::{BTreeMap, BTreeSet};

use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::{Bytes, NodeId, NodeSet};
use nodewise_source::paths::shown;

use super::words::nodes;
use crate::finding::{Confidence, Evidence, Mend, RuleFinding, Scope, Severity, Subject, Value};
use crate::rule::{Fact, Rule, several_nodes};
use crate::situation::Situation;
use crate::thresholds;

/// Numbers of pages that people choose are multiples of one of these.
const ROUND: [u64; 2] = [16, 50];
/// Pages of this size are few on each node.
const LARGE: Bytes = Bytes::from_gib(1);

pub static RULE: Rule = Rule {
    id: "hugepages-uneven",
    title: "a pool of huge pages is short on one node while its sum looks right",
    severity: Severity::Warning,
    on: several_nodes,
    needs: &[Fact::Pools, Fact::NodeMemory],
    sign: "every node with memory has pages of the size, and one has less than 90 % of the mean",
    thresholds: &[&thresholds::POOL_SHORT],
    traps: "numbers that were chosen by node: a node with none at all, or a boot line that names nodes; round numbers, \
            pages of 1 GiB, and a short node that still has free pages while others use theirs are a note, possible",
    explains: &[],
    sources: &["240 asked for, 63 63 62 52 got, Linux 6.12 in a guest", "libhugetlbfs#31", "atop#287"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    let sizes: BTreeSet<Bytes> =
        situation.now.nodes.iter().flat_map(|node| &node.pools).map(|pool| pool.page_size).collect_set();
    sizes.into_iter().filter_map(|size| find(situation, size)).collect()
}

fn find(situation: &Situation<'_>, size: Bytes) -> Option<RuleFinding> {
    let with_memory = situation.memory_nodes();
    let pools: BTreeMap<NodeId, u64> = situation
        .now
        .nodes
        .iter()
        .filter(|node| with_memory.contains(node.node))
        .filter_map(|node| {
            let pool = node.pools.iter().find(|pool| pool.page_size == size)?;
            // Surplus pages come and go with their users.
            Some((node.node, pool.total.saturating_sub(pool.surplus.unwrap_or(0))))
        })
        .collect_map();
    let by_node = situation.machine.settings.command_line.as_deref().is_some_and(|line| {
        nodewise_machine::settings::parameter(line, "hugepages").any(|value| value.contains(':'))
    });
    let mean = pools.values().map(|count| *count as f64).sum::<f64>() / pools.len().max(1) as f64;
    // Rounded down: three pages on two nodes are as even as can be.
    let mean = mean as u64;
    let short: NodeSet = pools
        .iter()
        .filter(|(_, count)| (**count as f64) < situation.limit(&thresholds::POOL_SHORT) * mean as f64)
        .map(|(node, _)| *node)
        .collect();
    if by_node || pools.len() < 2 || pools.values().any(|count| *count == 0) || short.is_empty() {
        return None;
    }
    let lacks = |count: &u64| mean.saturating_sub(*count);
    let missing = short.iter().filter_map(|node| pools.get(&node)).map(lacks).fold(0, u64::saturating_add);
    let summary =
        format!("{} lack {missing} of {size} pages that an even pool would have there", nodes(&short));
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, Subject::Nodes(short.clone()), summary);
    finding.confidence = Confidence::Likely;
    let used =
        |node: &NodeId| situation.now.node(*node)?.pools.iter().find(|pool| pool.page_size == size)?.used();
    let chosen = chosen(&pools, &short, size, used);
    if chosen.is_some() {
        (finding.severity, finding.confidence) = (Severity::Note, Confidence::Possible);
    }
    finding.evidence = pools
        .iter()
        .map(|(node, count)| {
            Evidence::new(format!("node {node}"), Value::Count(*count, "pages"), shown::NODE_POOL)
        })
        .collect();
    finding.evidence.push(
        Evidence::new("mean", Value::Count(mean, "pages"), shown::NODE_POOL)
            .at(situation.thresholds(), &thresholds::POOL_SHORT),
    );
    let in_turn = "the kernel gives pages to the nodes in turn, and passes over a node without room";
    finding.cause = Some(match chosen {
        Some(why) => format!("either {in_turn}, or the numbers were chosen by node: {why}"),
        None => in_turn.to_owned(),
    });
    let wanted: Vec<(NodeId, u64, u64)> =
        short.iter().filter_map(|node| Some((node, mean, *pools.get(&node)?))).collect();
    let what = "ask each node for its part, with compaction and retries";
    finding.mends = vec![Mend::pool(what, Scope::Now, size, &wanted)];
    Some(finding)
}

/// The sign that someone chose the numbers by node, where there is one. Nothing in the kernel says who did.
fn chosen(
    pools: &BTreeMap<NodeId, u64>,
    short: &NodeSet,
    size: Bytes,
    used: impl Fn(&NodeId) -> Option<u64>,
) -> Option<&'static str> {
    let is_round = |count: &u64| ROUND.iter().any(|step| count % step == 0);
    let is_used = |node: &NodeId| used(node).is_some_and(|used| used > 0);
    let has_room = |node: &NodeId| pools.get(node).copied() > used(node);
    let others = || pools.keys().filter(|node| !short.contains(**node));
    if size >= LARGE {
        Some("so few and so large pages are often assigned by hand")
    } else if pools.values().all(is_round) {
        Some("all of them are round")
    } else if others().any(is_used) && short.iter().all(|node| used(&node).is_some() && has_room(&node)) {
        Some("the pages are in use where there are more, and the short node has free ones")
    } else {
        None
    }
}
