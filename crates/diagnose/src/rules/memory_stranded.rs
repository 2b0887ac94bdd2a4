//! Pages lie on nodes where their process does not run.

use nodewise_machine::{NodeId, NodeSet};
use nodewise_source::paths::shown;

use super::scan_too_slow::WINDOW;
use super::words::nodes;
use crate::finding::{Evidence, RuleFinding, Severity, Value};
use crate::rule::{Fact, Rule, with_distance};
use crate::situation::{ProcessState, Situation};
use crate::thresholds;

/// A page moves when it faults from the same node twice, each time in another pass over the process's memory:
/// `should_numa_migrate_memory` of kernel/sched/fair.c.
const PASSES: f64 = 2.0;
/// CPU time of a thread between two passes at least, in seconds: `sysctl_numa_balancing_scan_period_min` there.
const PERIOD: f64 = 1.0;

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
            the scheduler moved a moment ago is on its way: a note, while it has not had the CPU time of two passes of automatic \
            balancing in the window (two seconds, longer beyond 2,560 MiB)",
    explains: &["bound-away", "cpus-without-mems"],
    sources: &[
        "numad 0.5+20150602: its target of 90 %",
        "VictoriaMetrics#2656",
        "kernel/sched/fair.c, Linux 6.12: a page moves at its second fault, passes are a second of CPU time apart",
    ],
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
    let too_early = too_early_to_tell(situation, process, home);
    let severity = if too_early.is_some() { Severity::Note } else { RULE.severity };
    let mut finding = RuleFinding::new(RULE.id, severity, process.subject(), summary);
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
    if let Some((used, needed)) = too_early {
        finding.cause = Some(format!(
            "the scheduler moved it, and automatic balancing has had {used:.1} of the {needed:.1} s of CPU time that it takes to \
             follow: watch longer (--window)"
        ));
    }
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

/// The CPU time in the window and what two passes of balancing take, in seconds, while that is more: whether the kernel brings
/// the memory to its threads is not known yet.
fn too_early_to_tell(
    situation: &Situation<'_>,
    process: &ProcessState<'_>,
    home: NodeId,
) -> Option<(f64, f64)> {
    let is_on = situation.machine.settings.numa_balancing.is_some_and(|mode| mode & 1 == 1);
    let may_move =
        process.has_no_policy() && process.allowed_nodes().is_none_or(|nodes| nodes.contains(home));
    if !is_on || !may_move {
        return None;
    }
    let used = process.cpu()?.used.as_secs_f64();
    let scanned = process.size().get().saturating_sub(process.in_pools()?.get());
    let needed = PASSES * PERIOD.max(scanned as f64 / WINDOW.get() as f64);
    (used < needed).then_some((used, needed))
}

/// The CPU time on a node.
fn cpu(process: &ProcessState<'_>, node: NodeId) -> Option<Evidence> {
    let share = process.least_on(node)?;
    Some(Evidence::new(format!("CPU time on node {node}"), Value::Share(share), shown::TASK_SCHED))
}
