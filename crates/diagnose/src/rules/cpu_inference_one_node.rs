//! A program computes with the weights of a model on several nodes, and the weights lie on one.

use std::collections::BTreeMap;

use nodewise_machine::mapping::{Mapping, MappingKind};
use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::{Bytes, NodeId, NodeSet};
use nodewise_source::paths::shown;

use super::words::{self, nodes};
use crate::finding::{Confidence, Evidence, Mend, RuleFinding, Scope, Severity, Value};
use crate::rule::{Fact, Rule, with_distance};
use crate::situation::pages::NodePages;
use crate::situation::{ProcessState, Situation};
use crate::thresholds;

/// Endings of files with weights.
const WEIGHTS: [&str; 2] = [".gguf", ".safetensors"];

pub static RULE: Rule = Rule {
    id: "cpu-inference-one-node",
    title: "a model's weights lie on one node, and CPUs of several nodes compute with them",
    severity: Severity::Warning,
    on: with_distance,
    needs: &[Fact::Rates, Fact::Mappings],
    sign: "mapped files named *.gguf or *.safetensors with at least 8 GiB in memory, 80 % of them on one node, and at least \
           10 % of the process's CPU time on each of two nodes",
    thresholds: &[
        &thresholds::AT_WORK,
        &thresholds::WEIGHTS_SIZE,
        &thresholds::WEIGHTS_ON_ONE,
        &thresholds::WEIGHTS_CPU,
    ],
    traps: "a GPU computes: then the CPUs of one node or of none are busy; weights that were read into memory instead of \
            mapped (--no-mmap): first-touch-on-one",
    explains: &["file-cache-far", "first-touch-on-one"],
    sources: &[
        "llama.cpp#13850: twice as fast after the cache was dropped",
        "vllm#30800: 30 % more with memory interleaved, NPS4",
    ],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    let at_work = situation.processes.iter().filter(|process| process.is_at_work());
    at_work.filter_map(|process| find(situation, process)).collect()
}

fn find(situation: &Situation<'_>, process: &ProcessState<'_>) -> Option<RuleFinding> {
    let mut weights = NodePages::default();
    for mapping in process.mappings?.mappings.iter().filter(|mapping| holds_weights(mapping)) {
        weights.add(&mapping.pages);
    }
    let runs = process.runs_with(situation.limit(&thresholds::WEIGHTS_CPU));
    let size = weights.size();
    let by_node: BTreeMap<NodeId, Bytes> =
        weights.nodes().iter().map(|node| (node, weights.on(&NodeSet::from_iter([node])))).collect_map();
    let node = by_node.into_iter().max_by_key(|(_, size)| *size)?.0;
    let on = NodeSet::from_iter([node]);
    let share = weights.share(&on)?;
    let is_large = size >= situation.thresholds().size(&thresholds::WEIGHTS_SIZE);
    if !is_large || share.low < situation.limit(&thresholds::WEIGHTS_ON_ONE) || runs.len() < 2 {
        return None;
    }
    let summary = format!(
        "{size} of weights lie on node {node}, and {} computes on {}",
        words::process(process),
        nodes(&runs)
    );
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, process.subject(), summary);
    finding.confidence = Confidence::Likely;
    finding.concerns = Some(size);
    let thresholds = situation.thresholds();
    finding.evidence = vec![
        Evidence::new(format!("weights on node {node}"), Value::Share(share.share), shown::NUMA_MAPS)
            .at(thresholds, &thresholds::WEIGHTS_ON_ONE),
        Evidence::new("weights", Value::Size(size), shown::NUMA_MAPS)
            .at(thresholds, &thresholds::WEIGHTS_SIZE),
        Evidence::new("runs on", Value::text(nodes(&runs)), shown::TASK_SCHED)
            .at(thresholds, &thresholds::WEIGHTS_CPU),
    ];
    finding.evidence.extend(words::interval(format!("weights on node {node}"), &share));
    finding.cause = Some("one thread, or an earlier run, read the file first".to_owned());
    finding.mends = vec![
        Mend::drop_page_cache(
            "stop it, drop the page cache (reads are slow until it is filled again), and start it with its own option: \
             llama.cpp --numa distribute",
            Scope::Restart,
        ),
        Mend {
            commands: vec!["nodewise run --interleave=all -- COMMAND".to_owned()],
            ..Mend::words(
                "vLLM: one rank for each node (VLLM_CPU_OMP_THREADS_BIND); other programs, after the cache was dropped: \
                 interleaved, which also places the pages of files that they read first",
                Scope::Restart,
            )
        },
    ];
    finding.nodes = on;
    Some(finding)
}

fn holds_weights(mapping: &Mapping) -> bool {
    let name = mapping.name.as_deref().unwrap_or_default();
    mapping.kind == MappingKind::File && WEIGHTS.iter().any(|end| name.ends_with(end))
}
