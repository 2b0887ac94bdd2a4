//! A process that fits one node is spread over all of them.

use nodewise_machine::PolicyMode;
use nodewise_source::paths::shown;

use super::words;
use crate::finding::{Confidence, Evidence, OWN, RuleFinding, Severity, Value};
use crate::rule::{Fact, Rule, with_distance};
use crate::situation::{ProcessState, Situation};

/// The part of the smallest node that it may fill.
const FITS: f64 = 0.5;

pub static RULE: Rule = Rule {
    id: "interleaved-but-small",
    title: "a process that fits one node is spread over several",
    severity: Severity::Note,
    on: with_distance,
    needs: &[Fact::Rates, Fact::Policies],
    sign: "most of its memory under interleaving over two nodes or more, less than half of the smallest node, and \
           all CPU time on one node",
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
    let runs = process.runs_on();
    let home = runs.first().filter(|_| runs.len() == 1)?;
    let alone = process.least_on(home).is_some_and(|share| share >= 0.9);
    if !spreads
        || policy.nodes.len() < 2
        || process.share(under) < 0.5
        || !alone
        || size >= smallest.share(FITS)
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
        Evidence::new("memory", Value::Size(size), shown::NUMA_MAPS)
            .against(Value::Size(smallest.share(FITS)), OWN),
        Evidence::new("policy", Value::text(policy.to_string()), shown::NUMA_MAPS),
    ];
    finding.experiment = Some(format!(
        "nodewise tune --placement default --placement 'cpunodebind={home} membind={home}' -- COMMAND"
    ));
    finding.nodes = policy.nodes.clone();
    Some(finding)
}
