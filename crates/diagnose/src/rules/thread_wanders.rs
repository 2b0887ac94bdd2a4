//! Threads of a process change nodes while its memory stays.

use nodewise_machine::plural::plural;
use nodewise_source::paths::shown;
use nodewise_source::sample::TaskSample;

use super::words;
use crate::attribution::by_identity;
use crate::finding::{Confidence, Evidence, Mend, RuleFinding, Scope, Severity, Value};
use crate::rule::{Fact, Rule, with_distance};
use crate::situation::{ProcessState, Situation};
use crate::thresholds;

pub static RULE: Rule = Rule {
    id: "thread-wanders",
    title: "threads of a process change nodes while its memory stays",
    severity: Severity::Note,
    on: with_distance,
    needs: &[Fact::Rates, Fact::Pages],
    sign: "at least half of a process's threads with 10 % of a CPU change CPUs at least once a second and are on another node \
           at the end of the window than at its beginning; 80 % of its memory is on one node, and balancing, if it is on, sees \
           less than 60 % of a thread's faults on one node",
    thresholds: &[
        &thresholds::SIGNIFICANT,
        &thresholds::SIGNIFICANT_SHARE,
        &thresholds::WANDER_RATE,
        &thresholds::WANDER_CPU,
        &thresholds::WANDER_THREADS,
        &thresholds::WANDER_MEMORY,
        &thresholds::WANDER_FAULTS,
    ],
    traps: "servers that fork for each request; the first second of a program; a scheduler that moves a thread once, to idle \
            CPUs",
    explains: &[],
    sources: &["kunpengcompute.github.io#25: 66 % of MySQL's throughput by where its threads run"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    situation.significant().filter_map(|process| find(situation, process)).collect()
}

fn find(situation: &Situation<'_>, process: &ProcessState<'_>) -> Option<RuleFinding> {
    let (busy, wanderers) = wanderers(situation, process)?;
    let share = wanderers as f64 / busy.max(1) as f64;
    let (node, size) = process.memory.iter().max_by_key(|(_, size)| **size)?;
    let on_one = process.share(*size);
    if wanderers == 0
        || share < situation.limit(&thresholds::WANDER_THREADS)
        || on_one < situation.limit(&thresholds::WANDER_MEMORY)
    {
        return None;
    }
    let summary = format!(
        "{} of {busy} busy threads of {} changed nodes; {size} of its memory stay on node {node}",
        wanderers,
        words::process(process)
    );
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, process.subject(), summary);
    finding.confidence = Confidence::Likely;
    finding.concerns = Some(*size);
    let thresholds = situation.thresholds();
    finding.evidence = vec![
        Evidence::new("threads that wander", Value::Share(share), shown::TASK_SCHED)
            .at(thresholds, &thresholds::WANDER_THREADS),
        Evidence::new(format!("memory on node {node}"), Value::Share(on_one), shown::NUMA_MAPS)
            .at(thresholds, &thresholds::WANDER_MEMORY),
    ];
    let has_room =
        process.cpu_share().is_some_and(|share| share <= situation.machine.cpus_of(*node).len() as f64);
    if has_room {
        finding.mends = vec![Mend {
            commands: vec![format!("nodewise run --cpunodebind={node} -- COMMAND")],
            ..Mend::words(
                format!("keep its {} on the node of its memory", plural(busy, "thread")),
                Scope::Restart,
            )
        }];
    }
    finding.experiment = Some("nodewise tune -- COMMAND".to_owned());
    finding.nodes.insert(*node);
    Some(finding)
}

/// The busy threads of a process, and those of them that changed nodes; `None` where its threads were not read twice.
fn wanderers(situation: &Situation<'_>, process: &ProcessState<'_>) -> Option<(usize, usize)> {
    let then = situation.before?.process(process.process.identity)?.tasks.as_deref()?;
    let (then, change) = (by_identity(then), process.change.as_ref()?);
    let (mut busy, mut wander) = (0, 0);
    for task in process.process.tasks.as_deref()? {
        let used = change.tasks.iter().find(|change| change.identity == task.identity);
        let used = used.and_then(|change| change.cpu.as_ref()).map(|cpu| cpu.used);
        if change.window.share(used).is_none_or(|share| share < situation.limit(&thresholds::WANDER_CPU)) {
            continue;
        }
        busy += 1;
        let Some(earlier) = then.get(&task.identity) else { continue };
        let changes = task.cpu_changes.zip(earlier.cpu_changes).and_then(|(now, then)| now.checked_sub(then));
        let often =
            change.window.rate(changes).is_some_and(|rate| rate >= situation.limit(&thresholds::WANDER_RATE));
        let node = |task: &TaskSample| task.processor.and_then(|cpu| situation.places.node(cpu));
        let moved = node(task).zip(node(earlier)).is_some_and(|(now, then)| now != then);
        wander += usize::from(often && moved && !converges(situation, task));
    }
    Some((busy, wander))
}

/// Whether balancing sees most of a thread's faults on one node.
fn converges(situation: &Situation<'_>, task: &TaskSample) -> bool {
    let Some(balancing) = &task.balancing else { return false };
    let count =
        |faults: &nodewise_source::sample::BalancingFaults| faults.private.saturating_add(faults.shared);
    let all = balancing.faults.values().map(count).fold(0, u64::saturating_add);
    let most = balancing.faults.values().map(count).max().unwrap_or(0);
    all > 0 && most as f64 / all as f64 >= situation.limit(&thresholds::WANDER_FAULTS)
}
