//! A program runs under a policy that was meant for its parent.

use nodewise_source::paths::shown;

use super::words;
use crate::finding::{Confidence, Evidence, Mend, RuleFinding, Scope, Severity, Value};
use crate::rule::{Fact, Rule, with_distance};
use crate::situation::{ProcessState, Situation};
use crate::thresholds;

pub static RULE: Rule = Rule {
    id: "inherited-policy",
    title: "a program runs under a policy that was meant for its parent",
    severity: Severity::Note,
    on: with_distance,
    needs: &[Fact::Rates, Fact::Policies],
    sign: "a process and its parent have the same policy and different names, and at least 10 % of the child's memory \
           is on nodes where it does not run",
    thresholds: &[
        &thresholds::SIGNIFICANT,
        &thresholds::SIGNIFICANT_SHARE,
        &thresholds::RUNS,
        &thresholds::AT_WORK,
        &thresholds::INHERITED_STRANDED,
    ],
    traps: "workers of one server, which have its name or its unit",
    explains: &["memory-stranded", "bound-away"],
    sources: &["set_mempolicy(2): the policy is kept over fork(2) and execve(2)"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    situation.significant().filter_map(|process| find(situation, process)).collect()
}

fn find(situation: &Situation<'_>, process: &ProcessState<'_>) -> Option<RuleFinding> {
    let (policy, _) = process.policy()?;
    let parent = process.process.parent?;
    let parent = situation.processes.iter().find(|other| other.process.identity.pid == parent)?;
    let is_same = parent.policy().is_some_and(|(of_parent, _)| of_parent == policy);
    let is_server = parent.process.name == process.process.name
        || (process.process.group.is_some()
            && parent.process.group == process.process.group
            && matches!(process.owner(), crate::finding::Owner::Service(_)));
    let (size, away) = process.stranded(&situation.places.with_cpus())?;
    if !is_same || is_server || process.share(size) < situation.limit(&thresholds::INHERITED_STRANDED) {
        return None;
    }
    let summary =
        format!("{} has the policy {policy} of {}", words::process(process), words::process(parent));
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, process.subject(), summary);
    finding.confidence = Confidence::Likely;
    finding.concerns = Some(size);
    finding.evidence = vec![
        Evidence::new("policy of both", Value::text(policy.to_string()), shown::NUMA_MAPS),
        Evidence::new("stranded", Value::Share(process.share(size)), shown::NUMA_MAPS)
            .at(situation.thresholds(), &thresholds::INHERITED_STRANDED),
    ];
    finding.mends = vec![Mend {
        commands: vec!["nodewise run --localalloc -- COMMAND".to_owned()],
        ..Mend::words("start the child with a policy of its own", Scope::Restart)
    }];
    finding.nodes = away;
    Some(finding)
}
