//! Pages lie on nodes where their process does not run.

use nodewise_machine::{NodeId, NodeSet};
use nodewise_source::paths::shown;

use super::words::nodes;
use crate::finding::{Evidence, RuleFinding, Severity, Value};
use crate::rule::{Fact, Rule, with_distance};
use crate::situation::{ProcessState, Situation};
use crate::thresholds;

pub static RULE: Rule = Rule {
    id: "memory-stranded",
    title: "pages of a process lie on nodes where it does not run",
    severity: Severity::Warning,
    on: with_distance,
    needs: &[Fact::Rates, Fact::Pages],
    sign: "at least 10 % of the process's own memory (numad's target is 90 % local), and at least 300 MiB or 5 % of \
           the smallest node, at the beginning and at the end of the window, on nodes with less than 5 % of its CPU \
           time",
    thresholds: &[
        &thresholds::SIGNIFICANT,
        &thresholds::SIGNIFICANT_SHARE,
        &thresholds::RUNS,
        &thresholds::AT_WORK,
        &thresholds::MEMORY_STRANDED,
    ],
    traps: "pages of files and libraries are not counted; memory out of use looks the same; a process that \
            balancing moved a moment ago is on its way",
    explains: &["bound-away", "cpus-without-mems"],
    sources: &["numad 0.5+20150602: its target of 90 %", "VictoriaMetrics#2656"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    let with_cpus = situation.places.with_cpus();
    situation.significant().filter_map(|process| of(situation, process, &with_cpus)).collect()
}

fn of(situation: &Situation<'_>, process: &ProcessState<'_>, with_cpus: &NodeSet) -> Option<RuleFinding> {
    let (size, away) = process.stranded(with_cpus)?;
    let share = process.share(size);
    if share < situation.limit(&thresholds::MEMORY_STRANDED) || size < situation.floor() {
        return None;
    }
    let runs = process.runs_on();
    // Of virtual machines another rule speaks where their policies are known.
    let is_in_cells = || process.cells().is_none_or(|cells| runs.is_subset(&cells) && away.is_subset(&cells));
    if process.is_virtual_machine() && is_in_cells() {
        return None;
    }
    // Threads on a node without memory cannot have any near them.
    let home = process.busiest(&situation.memory_nodes())?;
    let summary = format!("{size} of its memory on {} is used from {}", nodes(&away), nodes(&runs));
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, process.subject(), summary);
    finding.confidence = process.confidence;
    finding.concerns = Some(size);
    finding.nodes = away.clone();
    finding.evidence = vec![
        Evidence::new(format!("memory on {}", nodes(&away)), Value::Share(share), shown::NUMA_MAPS)
            .at(situation.thresholds(), &thresholds::MEMORY_STRANDED),
        Evidence::new(format!("memory on {}", nodes(&away)), Value::Size(size), shown::NUMA_MAPS)
            .against(Value::Size(situation.floor()), situation.size_origin(&thresholds::SIGNIFICANT)),
    ];
    finding.evidence.extend(runs.iter().filter_map(|node| cpu(process, node)));
    if let Some((policy, _)) = process.policy() {
        finding.cause = Some(format!("its memory is under the policy {policy}"));
    }
    let room = situation.nodes.get(&home).map(|node| node.room());
    if room.is_none_or(|room| room >= size) {
        finding.mends = situation.gather(process, &away, &NodeSet::from_iter([home]), size);
    } else {
        finding.experiment = Some(format!(
            "node {home} has no room for all of it: compare placements with nodewise tune -- COMMAND"
        ));
    }
    Some(finding)
}

/// The CPU time on a node.
fn cpu(process: &ProcessState<'_>, node: NodeId) -> Option<Evidence> {
    let share = process.least_on(node)?;
    Some(Evidence::new(format!("CPU time on node {node}"), Value::Share(share), shown::TASK_SCHED))
}
