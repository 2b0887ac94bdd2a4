//! Much of the CPU time goes into hint faults and moves of pages.

use nodewise_source::paths::shown;

use crate::finding::{Confidence, Evidence, RuleFinding, Severity, Subject, Value};
use crate::rule::{Fact, Rule, several_nodes};
use crate::situation::Situation;
use crate::thresholds;

pub static RULE: Rule = Rule {
    id: "balancing-costly",
    title: "hint faults and moves of pages take more than 3 % of the CPU time",
    severity: Severity::Note,
    on: several_nodes,
    needs: &[Fact::Rates, Fact::Events, Fact::Balancing],
    sign: "hint faults at 1 microsecond and moved pages at 3 are together more than 3 % of the CPU time of all \
           processes in the window",
    thresholds: &[&thresholds::BALANCING_COST, &thresholds::BALANCING_FAULT, &thresholds::BALANCING_MOVE],
    traps: "the prices are guesses: nodewise tune measures the effect",
    explains: &[],
    sources: &["kernel/sched/fair.c, Linux 6.12: scanning is capped at 3 % of a task's time"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    diagnose(situation).into_iter().collect()
}

fn diagnose(situation: &Situation<'_>) -> Option<RuleFinding> {
    let faults = situation.event("numa_hint_faults")?;
    let moved = situation.event("numa_pages_migrated")?;
    let delta = situation.delta.as_ref()?;
    let used: f64 =
        delta.processes.iter().filter_map(|change| Some(change.cpu.as_ref()?.used.as_secs_f64())).sum();
    let (per_fault, per_move) =
        (situation.limit(&thresholds::BALANCING_FAULT), situation.limit(&thresholds::BALANCING_MOVE));
    let cost = (faults as f64 * per_fault + moved as f64 * per_move) / 1e6;
    if used <= 0.0 || cost / used < situation.limit(&thresholds::BALANCING_COST) {
        return None;
    }
    let summary = format!("about {:.1} % of the CPU time goes into balancing", 100.0 * cost / used);
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, Subject::Machine, summary);
    finding.confidence = Confidence::Possible;
    finding.evidence = vec![
        Evidence::new("hint faults", Value::Rate(situation.rate(faults)?, "faults"), shown::VMSTAT),
        Evidence::new("moved pages", Value::Rate(situation.rate(moved)?, "pages"), shown::VMSTAT),
        Evidence::new("part of the CPU time", Value::Share(cost / used), shown::VMSTAT)
            .at(situation.thresholds(), &thresholds::BALANCING_COST),
    ];
    finding.experiment = Some("nodewise tune -- COMMAND".to_owned());
    Some(finding)
}
