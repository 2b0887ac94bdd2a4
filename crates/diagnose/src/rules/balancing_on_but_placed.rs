//! Balancing scans, although nearly all memory is placed by policies and cpusets.

use nodewise_machine::{Bytes, ModeFlags};
use nodewise_source::paths::shown;

use crate::finding::{Confidence, Evidence, RuleFinding, Severity, Subject, Value};
use crate::rule::{Fact, Rule, with_distance};
use crate::situation::{ProcessState, Situation};
use crate::thresholds;

pub static RULE: Rule = Rule {
    id: "balancing-on-but-placed",
    title: "balancing scans, although policies and cpusets place nearly all memory",
    severity: Severity::Note,
    on: with_distance,
    needs: &[Fact::Rates, Fact::Pages, Fact::Policies, Fact::Balancing, Fact::Events],
    sign: "kernel.numa_balancing is on, at least 90 % of the memory of significant processes is under policies or in a cpuset \
           of one node, and the window has at least 1,000 changed page table entries a second",
    thresholds: &[
        &thresholds::SIGNIFICANT,
        &thresholds::SIGNIFICANT_SHARE,
        &thresholds::PLACED_SHARE,
        &thresholds::PLACED_UPDATES,
    ],
    traps: "bound tasks are scanned and cause no faults, so the cost is in helper threads that are not bound: tune measures \
            it; policies with the flag balancing rely on it",
    explains: &["balancing-costly"],
    sources: &["DeepEP#624: task_numa_work took 5 ms on average, up to 31", "scylladb#1120"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    diagnose(situation).into_iter().collect()
}

/// The part of a process's memory that a policy or a cpuset places; `None` where that is not known.
fn placed(situation: &Situation<'_>, process: &ProcessState<'_>) -> Option<Bytes> {
    let nodes = process.allowed_nodes()?.intersection(&situation.memory_nodes());
    if nodes.len() == 1 {
        return Some(process.size());
    }
    process.known_policy()?;
    let relies =
        |(_, policy): &(&_, &nodewise_machine::MemPolicy)| !policy.flags.contains(ModeFlags::NUMA_BALANCING);
    Some(process.placed_mappings().filter(relies).filter_map(|(mapping, _)| mapping.resident()).sum())
}

fn diagnose(situation: &Situation<'_>) -> Option<RuleFinding> {
    let mode = situation.machine.settings.numa_balancing.filter(|mode| mode & 1 != 0)?;
    let updates = situation.rate(situation.event("numa_pte_updates")?)?;
    let all: Bytes = situation.significant().map(ProcessState::size).sum();
    // One whose policies are not known may rely on balancing.
    let placed: Option<Bytes> = situation.significant().map(|process| placed(situation, process)).sum();
    let share = placed?.get() as f64 / all.get().max(1) as f64;
    if all.get() == 0
        || share < situation.limit(&thresholds::PLACED_SHARE)
        || updates < situation.limit(&thresholds::PLACED_UPDATES)
    {
        return None;
    }
    let summary = format!("{:.0} % of {all} are placed already, and the kernel scans them", share * 100.0);
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, Subject::Machine, summary);
    finding.confidence = Confidence::Likely;
    finding.evidence = vec![
        Evidence::new("placed by policies and cpusets", Value::Share(share), shown::NUMA_MAPS)
            .at(situation.thresholds(), &thresholds::PLACED_SHARE),
        Evidence::new("scanned", Value::Rate(updates, "page table entries"), shown::VMSTAT)
            .at(situation.thresholds(), &thresholds::PLACED_UPDATES),
        Evidence::new("kernel.numa_balancing", Value::text(mode.to_string()), shown::BALANCING),
    ];
    // Under a policy, and local allocation is one, pages stay where they are.
    finding.experiment =
        Some("nodewise tune --placement default --placement localalloc -- COMMAND".to_owned());
    Some(finding)
}
