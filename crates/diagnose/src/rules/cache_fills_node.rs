//! The page cache of one job fills a node, so that others' memory goes elsewhere.

use nodewise_machine::{Bytes, NodeId};
use nodewise_source::paths::shown;

use crate::finding::{Evidence, Mend, RuleFinding, Scope, Severity, Subject, Value};
use crate::rule::{Fact, Rule, several_nodes};
use crate::situation::Situation;
use crate::thresholds;

pub static RULE: Rule = Rule {
    id: "cache-fills-node",
    title: "page cache fills a node, and memory meant for it comes from others",
    severity: Severity::Warning,
    on: several_nodes,
    needs: &[Fact::Rates, Fact::Watermarks, Fact::Allocations],
    sign: "page cache is at least 60 % of the node, free memory is below twice the high watermarks, and other nodes \
           gave at least 1 % of the pages that were meant for it in the window",
    thresholds: &[&thresholds::CACHE_FILLS, &thresholds::CACHE_FOREIGN, &thresholds::CACHE_MARKS],
    traps: "harmless where nothing is allocated there",
    explains: &["node-at-watermark", "kswapd-one-node"],
    sources: &["percona-server#6038: drop the cache before mysqld starts", "llama.cpp#13850"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    situation.nodes.keys().filter_map(|node| find(situation, *node)).collect()
}

fn find(situation: &Situation<'_>, node: NodeId) -> Option<RuleFinding> {
    let state = situation.nodes.get(&node)?;
    let sample = situation.now.node(node)?;
    let cache = sample.size("Active(file)")? + sample.size("Inactive(file)")?;
    let allocations = situation.delta.as_ref()?.node(node)?.allocations;
    let (hit, foreign) = (allocations.hit?, allocations.foreign?);
    let wanted = hit.saturating_add(foreign);
    let share = if wanted == 0 { 0.0 } else { foreign as f64 / wanted as f64 };
    let edge = state.high?.share(situation.limit(&thresholds::CACHE_MARKS));
    let is_full = state.share(cache) >= situation.limit(&thresholds::CACHE_FILLS) && state.free < edge;
    if !is_full || share < situation.limit(&thresholds::CACHE_FOREIGN) {
        return None;
    }
    let percent = share * 100.0;
    let summary = format!(
        "{cache} of page cache fill it; {percent:.0} % of the pages meant for it came from other nodes"
    );
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, Subject::node(node), summary);
    let page = situation.machine.page_size.unwrap_or(Bytes::from_kib(4));
    finding.concerns = Some(page.times(foreign));
    finding.evidence = vec![
        Evidence::new("page cache", Value::Share(state.share(cache)), shown::NODE_MEMINFO)
            .at(situation.thresholds(), &thresholds::CACHE_FILLS),
        Evidence::new("free", Value::Size(state.free), shown::NODE_MEMINFO).at_part(
            Value::Size(edge),
            situation.thresholds(),
            &thresholds::CACHE_MARKS,
        ),
        Evidence::new("from other nodes", Value::Share(share), shown::NODE_NUMASTAT)
            .at(situation.thresholds(), &thresholds::CACHE_FOREIGN),
    ];
    finding.mends = vec![
        Mend::drop_page_cache(
            "drop the page cache once, before the large process starts; reads are slow for a while",
            Scope::Now,
        ),
        Mend {
            commands: vec!["nodewise run --interleave=all -- COMMAND".to_owned()],
            ..Mend::words("spread the cache of the job that reads or copies", Scope::Restart)
        },
    ];
    Some(finding)
}
