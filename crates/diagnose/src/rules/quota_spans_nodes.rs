//! A container with CPU time for part of a node runs on several.

use nodewise_source::paths::shown;

use super::words::{self, nodes};
use crate::finding::{Confidence, Evidence, RuleFinding, Severity, Value};
use crate::rule::{Fact, Rule, with_distance};
use crate::situation::{ProcessState, Situation};
use crate::thresholds;

pub static RULE: Rule = Rule {
    id: "quota-spans-nodes",
    title: "a quota allows the CPU time of one node at most, and the program runs on several",
    severity: Severity::Note,
    on: with_distance,
    needs: &[Fact::Rates, Fact::Pages, Fact::Programs],
    sign: "cpu.max of the program's control groups allows at most as many CPUs as the smallest node has, its CPUs are those of \
           two nodes or more, it runs on two nodes with at least 10 % of its CPU time each, and at least 10 % of its memory is \
           on each of two nodes",
    thresholds: &[
        &thresholds::SIGNIFICANT,
        &thresholds::SIGNIFICANT_SHARE,
        &thresholds::AT_WORK,
        &thresholds::QUOTA_NODE,
    ],
    traps: "memory that fits no node; a program that a cpuset or a policy places",
    explains: &["cpus-without-mems", "thread-wanders"],
    sources: &[
        "Documentation/admin-guide/cgroup-v2.rst: cpu.max limits time, not places",
        "kubernetes#81009: CPU limits without the static CPU manager",
    ],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    situation.significant().filter_map(|process| find(situation, process)).collect()
}

fn find(situation: &Situation<'_>, process: &ProcessState<'_>) -> Option<RuleFinding> {
    let quota = process.program?.quota.flatten()? as f64 / 1000.0;
    let with_cpus = situation.places.with_cpus();
    let cpus = |node| situation.machine.cpus_of(node).len();
    let smallest = with_cpus.iter().map(cpus).filter(|count| *count > 0).min()?;
    let reach = process.reach.as_ref()?;
    if !process.is_at_work() || quota > smallest as f64 || reach.len() < 2 {
        return None;
    }
    let least = situation.limit(&thresholds::QUOTA_NODE);
    let runs = process.runs_with(least);
    let counts = |size| process.share(size) >= least;
    let holds = process.memory.values().filter(|size| counts(**size)).count();
    let size = process.size();
    let fits = situation.nodes.values().any(|state| state.has_cpus && size <= state.size);
    if runs.len() < 2 || holds < 2 || !fits || process.policy().is_some() {
        return None;
    }
    let home = reach.iter().max_by_key(|node| process.memory.get(node).copied())?;
    let summary =
        format!("{} may use {quota} CPUs' time, and runs on {}", words::process(process), nodes(&runs));
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, process.subject(), summary);
    finding.confidence = process.confidence.min(Confidence::Likely);
    finding.concerns = Some(size);
    finding.evidence = vec![
        Evidence::new("quota", Value::text(format!("{quota} CPUs")), shown::CPU_MAX)
            .against(Value::text(format!("{smallest} CPUs")), "CPUs of the smallest node"),
        Evidence::new("runs on", Value::text(nodes(&runs)), shown::TASK_SCHED)
            .at(situation.thresholds(), &thresholds::QUOTA_NODE),
        Evidence::new("nodes with its memory", Value::Count(holds as u64, "nodes"), shown::NUMA_MAPS)
            .at(situation.thresholds(), &thresholds::QUOTA_NODE),
    ];
    let to = nodewise_machine::NodeSet::from_iter([home]);
    finding.mends = process.owner().confine(&to, Some(&situation.machine.cpus_of(home)), None);
    finding.nodes = runs;
    Some(finding)
}
