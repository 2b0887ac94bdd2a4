//! CPUs are confined to some nodes, memory is not, and went elsewhere.

use nodewise_source::paths::shown;

use super::words::nodes;
use crate::finding::{Evidence, RuleFinding, Severity, Value};
use crate::rule::{Fact, Rule, with_distance};
use crate::situation::{ProcessState, Situation};
use crate::thresholds;

pub static RULE: Rule = Rule {
    id: "cpus-without-mems",
    title: "CPUs are confined to some nodes, memory is not, and went elsewhere",
    severity: Severity::Warning,
    on: with_distance,
    needs: &[Fact::Rates, Fact::Pages, Fact::Policies],
    sign: "the nodes of the allowed CPUs are a part of the allowed memory nodes, no policy, and at least 10 % of the \
           process's own memory is on nodes where it does not run",
    thresholds: &[
        &thresholds::SIGNIFICANT,
        &thresholds::SIGNIFICANT_SHARE,
        &thresholds::RUNS,
        &thresholds::AT_WORK,
        &thresholds::CPUSET_STRANDED,
    ],
    traps: "local allocation usually does right: it counts by its effect only",
    explains: &[],
    sources: &["kubernetes#81009", "backend.ai#11222", "flux-core#7549"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    situation.significant().filter_map(|process| find(situation, process)).collect()
}

fn find(situation: &Situation<'_>, process: &ProcessState<'_>) -> Option<RuleFinding> {
    let (reach, mems) = (process.reach.as_ref()?, process.allowed_nodes()?);
    let memory_nodes = mems.intersection(&situation.memory_nodes());
    let (size, away) = process.stranded(&situation.places.with_cpus())?;
    let is_part = reach.is_subset(&memory_nodes) && reach.len() < memory_nodes.len() && !reach.is_empty();
    let is_much =
        process.share(size) >= situation.limit(&thresholds::CPUSET_STRANDED) && size >= situation.floor();
    if !is_part || !process.has_no_policy() || !is_much {
        return None;
    }
    let summary =
        format!("its CPUs are those of {}, {size} of its memory is on {}", nodes(reach), nodes(&away));
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, process.subject(), summary);
    finding.confidence = process.confidence;
    finding.concerns = Some(size);
    finding.evidence = vec![
        Evidence::new("nodes of its CPUs", Value::text(reach.to_string()), shown::STATUS),
        Evidence::new("nodes of its memory", Value::text(mems.to_string()), shown::STATUS),
        Evidence::new(
            format!("memory on {}", nodes(&away)),
            Value::Share(process.share(size)),
            shown::NUMA_MAPS,
        )
        .at(situation.thresholds(), &thresholds::CPUSET_STRANDED),
    ];
    finding.mends = situation.gather(process, &away, reach, size);
    finding.nodes = away;
    Some(finding)
}
