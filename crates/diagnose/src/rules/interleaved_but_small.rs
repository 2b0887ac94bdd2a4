//! A process that fits one node is spread over all of them.

use nodewise_machine::PolicyMode;
use nodewise_source::paths::shown;

use super::words;
use crate::finding::{Confidence, Evidence, RuleFinding, Severity, Value};
use crate::rule::{Fact, Rule, with_distance};
use crate::situation::{ProcessState, Situation};
use crate::thresholds;

pub static RULE: Rule = Rule {
    id: "interleaved-but-small",
    title: "a process that fits one node is spread over several",
    severity: Severity::Note,
    on: with_distance,
    needs: &[Fact::Rates, Fact::Policies],
    sign: "most of its memory under interleaving over two nodes or more, less than half of the smallest node, and \
           all CPU time on one node",
    thresholds: &[
        &thresholds::SIGNIFICANT,
        &thresholds::SIGNIFICANT_SHARE,
        &thresholds::RUNS,
        &thresholds::SMALL_FITS,
        &thresholds::SMALL_INTERLEAVED,
        &thresholds::SMALL_ALONE,
    ],
    traps: "programs that need the bandwidth of all controllers; emulated nodes, where interleaving is right",
    explains: &["memory-stranded"],
    sources: &["SERVER-25984", "llama.cpp#5377"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    situation.significant().filter_map(|process| find(situation, process)).collect()
}

fn find(situation: &Situation<'_>, process: &ProcessState<'_>) -> Option<RuleFinding> {
    let (policy, under) = process.policy()?;
    let spreads = matches!(policy.mode, PolicyMode::Interleave | PolicyMode::WeightedInterleave);
    let size = process.size();
    let smallest = situation.smallest()?;
    let fits = smallest.share(situation.limit(&thresholds::SMALL_FITS));
    let runs = process.runs_on();
    let home = runs.first().filter(|_| runs.len() == 1)?;
    let alone =
        process.least_on(home).is_some_and(|share| share >= situation.limit(&thresholds::SMALL_ALONE));
    if !spreads
        || policy.nodes.len() < 2
        || process.share(under) < situation.limit(&thresholds::SMALL_INTERLEAVED)
        || !alone
        || size >= fits
    {
        return None;
    }
    let away = process.memory.iter().filter(|(node, _)| **node != home).map(|(_, size)| *size).sum();
    let summary = format!(
        "{} runs on node {home} alone, and {away} of its {size} are interleaved elsewhere",
        words::process(process)
    );
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, process.subject(), summary);
    finding.confidence = Confidence::Likely;
    finding.concerns = Some(away);
    finding.evidence = vec![
        Evidence::new("memory", Value::Size(size), shown::NUMA_MAPS).at_part(
            Value::Size(fits),
            situation.thresholds(),
            &thresholds::SMALL_FITS,
        ),
        Evidence::new("policy", Value::text(policy.to_string()), shown::NUMA_MAPS),
    ];
    finding.experiment = Some(format!(
        "nodewise tune --placement default --placement 'cpunodebind={home} membind={home}' -- COMMAND"
    ));
    finding.nodes = policy.nodes.clone();
    Some(finding)
}
