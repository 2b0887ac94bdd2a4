//! A program is bound to some of the emulated nodes, so that interleaving is lost.

use nodewise_machine::{NodeSet, PolicyMode};
use nodewise_source::paths::shown;

use super::words::{self, nodes};
use crate::finding::{Confidence, Evidence, Mend, RuleFinding, Scope, Severity, Value};
use crate::rule::{Fact, Rule, emulated};
use crate::situation::{ProcessState, Situation};
use crate::thresholds;

pub static RULE: Rule = Rule {
    id: "fake-nodes-bound",
    title: "a program is bound to some of the emulated nodes, so that its memory is not interleaved over all",
    severity: Severity::Warning,
    on: emulated,
    needs: &[Fact::Pages, Fact::Policies],
    sign: "a policy bind, preferred or interleave, or a cpuset, that leaves out emulated nodes, over at least 300 MiB or 5 % of \
           the smallest node",
    thresholds: &[&thresholds::SIGNIFICANT, &thresholds::SIGNIFICANT_SHARE],
    traps: "on other machines than a Raspberry Pi emulated nodes are for trying things out: info there",
    explains: &["bind-too-small"],
    sources: &["top500-benchmark#55: mpirun confines each rank to one emulated node"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    situation.significant().filter_map(|process| find(situation, process)).collect()
}

/// Nodes that its memory is bound to, by what, and where that is read.
fn bound(process: &ProcessState<'_>) -> Option<(NodeSet, String, &'static str)> {
    if let Some((policy, _)) = process.policy() {
        let names = matches!(
            policy.mode,
            PolicyMode::Bind
                | PolicyMode::Preferred
                | PolicyMode::PreferredMany
                | PolicyMode::Interleave
                | PolicyMode::WeightedInterleave
        );
        if names && !policy.nodes.is_empty() {
            return Some((policy.nodes.clone(), format!("the policy {policy}"), shown::NUMA_MAPS));
        }
    }
    let allowed = process.allowed_nodes()?;
    Some((allowed.clone(), format!("the cpuset's nodes {allowed}"), shown::STATUS))
}

fn find(situation: &Situation<'_>, process: &ProcessState<'_>) -> Option<RuleFinding> {
    let all = situation.memory_nodes();
    let (bound, by, read_from) = bound(process)?;
    if all.is_subset(&bound) || bound.is_disjoint(&all) {
        return None;
    }
    let machine = situation.machine;
    let is_board = machine.kernel.as_ref().is_some_and(nodewise_machine::KernelRelease::is_raspberry_pi);
    let severity = if is_board { RULE.severity } else { Severity::Info };
    let size = process.size();
    let summary = format!(
        "{size} of {} may be on {} of {} emulated nodes only",
        words::process(process),
        nodes(&bound),
        all.len()
    );
    let mut finding = RuleFinding::new(RULE.id, severity, process.subject(), summary);
    finding.confidence = if is_board { process.confidence } else { Confidence::Possible };
    finding.concerns = Some(size);
    finding.evidence = vec![
        Evidence::new("bound by", Value::text(by), read_from),
        Evidence::new("its memory", Value::Size(size), shown::NUMA_MAPS)
            .against(Value::Size(situation.floor()), situation.size_origin(&thresholds::SIGNIFICANT)),
    ];
    finding.cause = Some(
        "emulated nodes share a memory controller: only all of them together keep its banks busy".to_owned(),
    );
    finding.mends = vec![
        Mend {
            commands: vec!["nodewise run --interleave=all -- COMMAND".to_owned()],
            ..Mend::words("start it over all nodes", Scope::Restart)
        },
        Mend {
            commands: vec!["mpirun --bind-to none COMMAND".to_owned()],
            ..Mend::words("where mpirun bound it: without binding", Scope::Restart)
        },
    ];
    finding.nodes = bound;
    Some(finding)
}
