//! Threads run on several nodes, and one thread touched all memory first.

use nodewise_machine::Bytes;
use nodewise_source::paths::shown;

use super::words;
use crate::finding::{Confidence, Evidence, Mend, RuleFinding, Scope, Severity, Value};
use crate::rule::{Fact, Rule, with_distance};
use crate::situation::{ProcessState, Situation};
use crate::thresholds;

pub static RULE: Rule = Rule {
    id: "first-touch-on-one",
    title: "threads run on several nodes, and the memory lies on one",
    severity: Severity::Warning,
    on: with_distance,
    needs: &[Fact::Rates, Fact::Pages, Fact::Policies],
    sign: "CPU time on two nodes or more, at least 10 % each; 80 % of the memory on one of them, which has at most \
           1.5 times an even share of the CPU time; no policy",
    thresholds: &[
        &thresholds::SIGNIFICANT,
        &thresholds::SIGNIFICANT_SHARE,
        &thresholds::AT_WORK,
        &thresholds::FIRST_TOUCH_ON_ONE,
        &thresholds::FIRST_TOUCH_TIMES,
        &thresholds::FIRST_TOUCH_CPU,
    ],
    traps: "memory of one thread that is alone in using it; less memory than a node's caches",
    explains: &[],
    sources: &["likwid#210", "Stockfish#466", "vllm#24037"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    situation.significant().filter_map(|process| find(situation, process)).collect()
}

fn find(situation: &Situation<'_>, process: &ProcessState<'_>) -> Option<RuleFinding> {
    if !process.is_at_work() || !process.has_no_policy() {
        return None;
    }
    let with_cpus = situation.places.with_cpus();
    let counts = situation.limit(&thresholds::FIRST_TOUCH_CPU);
    let runs: Vec<_> = with_cpus
        .iter()
        .filter(|node| process.least_on(*node).is_some_and(|share| share >= counts))
        .collect();
    let (node, size) =
        process.memory.iter().max_by_key(|(_, size)| **size).map(|(node, size)| (*node, *size))?;
    let share = process.share(size);
    let cpu = process.most_on(node)?;
    let uneven = situation.limit(&thresholds::FIRST_TOUCH_TIMES) / runs.len().max(1) as f64;
    let on_one = situation.limit(&thresholds::FIRST_TOUCH_ON_ONE);
    if runs.len() < 2 || share < on_one || !runs.contains(&node) || cpu > uneven || size < situation.floor() {
        return None;
    }
    let summary = format!("{size} lie on node {node}, its threads run on {} nodes", runs.len());
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, process.subject(), summary);
    finding.confidence = process.confidence.min(Confidence::Likely);
    finding.concerns = Some(Bytes::new((size.get() as f64 * (1.0 - cpu)) as u64));
    finding.evidence = vec![
        Evidence::new(format!("memory on node {node}"), Value::Share(share), shown::NUMA_MAPS)
            .at(situation.thresholds(), &thresholds::FIRST_TOUCH_ON_ONE),
        Evidence::new(format!("CPU time on node {node}"), Value::Share(cpu), shown::TASK_SCHED).at_part(
            Value::Share(uneven),
            situation.thresholds(),
            &thresholds::FIRST_TOUCH_TIMES,
        ),
    ];
    finding.cause =
        Some(format!("{} filled it from one node before its threads spread", words::process(process)));
    finding.mends = vec![Mend::words(
        "fill the memory in the threads that use it (OpenMP: OMP_PROC_BIND=spread OMP_PLACES=numa_domains, and \
         a parallel loop for the first write)",
        Scope::Restart,
    )];
    finding.experiment = Some("nodewise tune -- COMMAND".to_owned());
    finding.nodes.insert(node);
    Some(finding)
}
