//! A node is short while its pool of huge pages is not used.

use nodewise_machine::{Bytes, NodeId};
use nodewise_source::paths::shown;

use crate::finding::{Confidence, Evidence, Mend, RuleFinding, Scope, Severity, Subject, Value};
use crate::rule::{Fact, Rule, any};
use crate::situation::Situation;
use crate::thresholds;

pub static RULE: Rule = Rule {
    id: "hugepages-idle",
    title: "a node is short of memory while its pool of huge pages is not used",
    severity: Severity::Note,
    on: any,
    needs: &[Fact::Pools, Fact::Watermarks],
    sign: "free pages of pools are at least 10 % of the node, and its free memory is below the high watermarks",
    thresholds: &[&thresholds::POOL_IDLE],
    traps: "pages that are reserved for a program that has not touched them yet: the kernel counts these for the whole \
            machine only",
    explains: &["node-at-watermark"],
    sources: &["Documentation/admin-guide/mm/hugetlbpage.rst"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    situation.nodes.keys().filter_map(|node| find(situation, *node)).collect()
}

fn find(situation: &Situation<'_>, node: NodeId) -> Option<RuleFinding> {
    let state = situation.nodes.get(&node)?;
    let sample = situation.now.node(node)?;
    let (pool, free) = sample
        .pools
        .iter()
        .filter_map(|pool| Some((pool, pool.free?)))
        .max_by_key(|(pool, free)| pool.page_size.times(*free))?;
    let idle: Bytes = sample.pools.iter().filter_map(|pool| Some(pool.page_size.times(pool.free?))).sum();
    let high = state.high?;
    if state.share(idle) < situation.limit(&thresholds::POOL_IDLE) || state.free >= high {
        return None;
    }
    let summary = format!("{} are free beside {idle} of huge pages that no program uses", state.free);
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, Subject::node(node), summary);
    finding.confidence = Confidence::Likely;
    finding.concerns = Some(idle);
    finding.evidence = vec![
        Evidence::new("free in pools", Value::Share(state.share(idle)), shown::NODE_POOL)
            .at(situation.thresholds(), &thresholds::POOL_IDLE),
        Evidence::new("free", Value::Size(state.free), shown::NODE_MEMINFO)
            .against(Value::Size(high), "the sum of its zones' high watermarks"),
    ];
    let what = "give the unused pages back; growing the pool again later may get fewer";
    let used = pool.total - free.min(pool.total);
    finding.mends = vec![Mend::pool(what, Scope::Now, pool.page_size, &[(node, used, pool.total)])];
    Some(finding)
}
