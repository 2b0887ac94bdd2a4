//! A file that a process reads lies in the page cache of another node.

use std::collections::BTreeMap;

use nodewise_machine::NodeSet;
use nodewise_machine::mapping::MappingKind;
use nodewise_machine::printable::quote;
use nodewise_source::paths::shown;

use super::words::{self, nodes};
use crate::finding::{Confidence, Evidence, Mend, RuleFinding, Scope, Severity, Value};
use crate::rule::{Fact, Rule, with_distance};
use crate::situation::pages::NodePages;
use crate::situation::{ProcessState, Situation};
use crate::thresholds;

pub static RULE: Rule = Rule {
    id: "file-cache-far",
    title: "a mapped file lies in the page cache of a node where its reader does not run",
    severity: Severity::Warning,
    on: with_distance,
    needs: &[Fact::Rates, Fact::Mappings],
    sign: "a mapped file with at least 1 GiB in memory (5 % of the smallest node on small machines), half of it on \
           nodes with less than 5 % of the process's CPU time",
    thresholds: &[
        &thresholds::SEGMENT,
        &thresholds::SIGNIFICANT_SHARE,
        &thresholds::RUNS,
        &thresholds::AT_WORK,
        &thresholds::FILE_AWAY,
    ],
    traps: "several readers on different nodes: it can be near to one of them only",
    explains: &[],
    sources: &["llama.cpp#1556", "llama.cpp#13850: twice as fast after the cache was dropped"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    let at_work = situation.processes.iter().filter(|process| process.is_at_work());
    at_work.filter_map(|process| find(situation, process)).collect()
}

fn find(situation: &Situation<'_>, process: &ProcessState<'_>) -> Option<RuleFinding> {
    let mut files: BTreeMap<&str, NodePages> = BTreeMap::new();
    for mapping in process.mappings?.mappings.iter().filter(|mapping| mapping.kind == MappingKind::File) {
        let Some(name) = mapping.name.as_deref() else { continue };
        files.entry(name).or_default().add(&mapping.pages);
    }
    let (name, memory) = files.into_iter().max_by_key(|(_, memory)| memory.size())?;
    let size = memory.size();
    let runs = situation.limit(&thresholds::RUNS);
    let far: NodeSet = memory
        .nodes()
        .iter()
        .filter(|node| situation.places.with_cpus().contains(*node))
        .filter(|node| process.most_on(*node).is_some_and(|share| share < runs))
        .collect();
    let away = memory.on(&far);
    let share = memory.share(&far)?;
    let least = situation.large();
    if size < least || share.low < situation.limit(&thresholds::FILE_AWAY) {
        return None;
    }
    let file = quote(name);
    let summary = format!(
        "{away} of {file} lie on {}; {} reads it from {}",
        nodes(&far),
        words::process(process),
        nodes(&process.runs_on())
    );
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, process.subject(), summary);
    finding.confidence = Confidence::Likely;
    finding.concerns = Some(away);
    finding.evidence = vec![
        Evidence::new(format!("{file} on {}", nodes(&far)), Value::Share(share.share), shown::NUMA_MAPS)
            .at(situation.thresholds(), &thresholds::FILE_AWAY),
        Evidence::new("in memory", Value::Size(size), shown::NUMA_MAPS)
            .against(Value::Size(least), situation.size_origin(&thresholds::SEGMENT)),
    ];
    finding.evidence.extend(words::interval(format!("{file} on {}", nodes(&far)), &share));
    finding.cause = Some("another process, or an earlier run, read it first from that node".to_owned());
    finding.mends = vec![Mend::drop_page_cache(
        "stop its readers, drop the page cache (reads are slow until it is filled again), and start the program \
         bound to its node",
        Scope::Restart,
    )];
    finding.nodes = far;
    Some(finding)
}
