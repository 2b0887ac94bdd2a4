//! A policy, or a cpuset, keeps memory on nodes that the process's CPUs exclude.

use nodewise_machine::{NodeSet, PolicyMode};
use nodewise_source::paths::shown;

use super::words::nodes;
use crate::finding::{Evidence, RuleFinding, Severity, Value};
use crate::rule::{Fact, Rule, with_distance};
use crate::situation::{ProcessState, Situation};
use crate::thresholds;

pub static RULE: Rule = Rule {
    id: "bound-away",
    title: "memory is bound to nodes that the CPU mask excludes",
    severity: Severity::Warning,
    on: with_distance,
    needs: &[Fact::Policies, Fact::Pages],
    sign: "a policy bind or preferred, or the cpuset, names no node of the allowed CPUs, over at least 300 MiB or \
           5 % of the smallest node",
    thresholds: &[&thresholds::SIGNIFICANT, &thresholds::SIGNIFICANT_SHARE],
    traps: "nodes without CPUs are bound on purpose: a note; buffers of devices are placed at the device",
    explains: &[],
    sources: &["systemd#13248: two lists that are kept by hand drift apart"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    situation.significant().filter_map(|process| of(situation, process)).collect()
}

fn of(situation: &Situation<'_>, process: &ProcessState<'_>) -> Option<RuleFinding> {
    let reach = process.reach.as_ref().filter(|reach| !reach.is_empty())?;
    let (bound, size, by, read_from) = bound(process)?;
    // Where the whole memory of the machine is elsewhere, nothing can be near.
    if reach.is_disjoint(&situation.memory_nodes()) {
        return None;
    }
    if size < situation.floor() || !bound.is_disjoint(reach) {
        return None;
    }
    let memory_only = bound.intersection(&situation.places.with_cpus()).is_empty();
    let severity = if memory_only { Severity::Note } else { RULE.severity };
    let summary = format!("{size} are bound to {}, its CPUs are those of {}", nodes(&bound), nodes(reach));
    let mut finding = RuleFinding::new(RULE.id, severity, process.subject(), summary);
    finding.confidence = process.reach_confidence;
    finding.concerns = Some(size);
    finding.evidence = vec![
        Evidence::new("memory under it", Value::Size(size), read_from)
            .against(Value::Size(situation.floor()), situation.size_origin(&thresholds::SIGNIFICANT)),
        Evidence::new("bound by", Value::text(by.clone()), read_from),
        Evidence::new(
            "allowed CPUs",
            Value::text(process.allowed_cpus().map_or_else(String::new, ToString::to_string)),
            shown::STATUS,
        ),
    ];
    finding.cause = Some(format!("it was started under {by}"));
    if !memory_only {
        finding.mends = situation.gather(process, &bound, reach, size);
    }
    finding.nodes = bound;
    Some(finding)
}

/// Nodes that its memory is bound to, how much of it, by what, and where that is read.
fn bound(process: &ProcessState<'_>) -> Option<(NodeSet, nodewise_machine::Bytes, String, &'static str)> {
    if let Some((policy, size)) = process.policy() {
        let binds =
            matches!(policy.mode, PolicyMode::Bind | PolicyMode::Preferred | PolicyMode::PreferredMany);
        if binds && !policy.nodes.is_empty() {
            return Some((policy.nodes.clone(), size, policy.to_string(), shown::NUMA_MAPS));
        }
    }
    let allowed = process.allowed_nodes()?;
    Some((allowed.clone(), process.size(), format!("the cpuset's nodes {allowed}"), shown::STATUS))
}
