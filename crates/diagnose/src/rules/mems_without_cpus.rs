//! Memory is confined to some nodes, threads are not, and run elsewhere.

use nodewise_source::paths::shown;

use super::words::nodes;
use crate::finding::{Evidence, RuleFinding, Severity, Value};
use crate::rule::{Fact, Rule, with_distance};
use crate::situation::{ProcessState, Situation};
use crate::thresholds;

pub static RULE: Rule = Rule {
    id: "mems-without-cpus",
    title: "memory is confined to some nodes, threads are not, and run elsewhere",
    severity: Severity::Warning,
    on: with_distance,
    needs: &[Fact::Rates, Fact::Pages],
    sign: "the allowed memory nodes are a part of the nodes of the allowed CPUs, and at least 10 % of the CPU time was \
           certainly spent on other nodes",
    thresholds: &[
        &thresholds::SIGNIFICANT,
        &thresholds::SIGNIFICANT_SHARE,
        &thresholds::AT_WORK,
        &thresholds::MEMS_ELSEWHERE,
    ],
    traps: "nodes without CPUs, which are filled from elsewhere on purpose",
    explains: &["memory-stranded"],
    sources: &["systemd#13248", "jdk#22395: the JVM then switches off UseNUMA"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    situation.significant().filter_map(|process| find(situation, process)).collect()
}

fn find(situation: &Situation<'_>, process: &ProcessState<'_>) -> Option<RuleFinding> {
    let (reach, mems) = (process.reach.as_ref()?, process.allowed_nodes()?);
    let home = mems.intersection(&situation.places.with_cpus());
    let outside = reach.difference(&home);
    let cpu: f64 = outside.iter().filter_map(|node| process.least_on(node)).sum();
    let is_part = home.is_subset(reach) && !home.is_empty() && !outside.is_empty();
    let is_machine = mems.is_subset(&situation.memory_nodes()) && situation.memory_nodes().is_subset(mems);
    if !is_part || is_machine || cpu < situation.limit(&thresholds::MEMS_ELSEWHERE) || !process.is_at_work() {
        return None;
    }
    let size = process.size();
    let summary =
        format!("its memory may be on {} only, and it runs on {}", nodes(mems), nodes(&process.runs_on()));
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, process.subject(), summary);
    finding.confidence = process.confidence;
    finding.concerns = Some(size.share(cpu));
    finding.evidence = vec![
        Evidence::new("nodes of its memory", Value::text(mems.to_string()), shown::STATUS),
        Evidence::new("nodes of its CPUs", Value::text(reach.to_string()), shown::STATUS),
        Evidence::new(format!("CPU time on {}", nodes(&outside)), Value::Share(cpu), shown::TASK_SCHED)
            .at(situation.thresholds(), &thresholds::MEMS_ELSEWHERE),
    ];
    finding.mends = process.owner().confine(&home, Some(&situation.machine.cpus_of_nodes(&home)), None);
    finding.nodes = home;
    Some(finding)
}
