//! Automatic balancing is off, no policy places the programs, and memory is stranded.

use nodewise_source::paths::shown;

use super::words::nodes;
use crate::finding::{Confidence, Evidence, Mend, Owner, RuleFinding, Severity, Subject, Value};
use crate::rule::{Fact, Rule, with_distance};
use crate::situation::{ProcessState, Situation};
use crate::thresholds;

pub static RULE: Rule = Rule {
    id: "balancing-off-nobody-places",
    title: "balancing is off, no policy places the programs, and their memory is stranded",
    severity: Severity::Warning,
    on: with_distance,
    needs: &[Fact::Rates, Fact::Pages, Fact::Policies, Fact::Balancing],
    sign: "kernel.numa_balancing is 0, and processes without policy, cpuset or orchestrator have at least 10 % of their \
           memory on nodes where they do not run",
    thresholds: &[
        &thresholds::SIGNIFICANT,
        &thresholds::SIGNIFICANT_SHARE,
        &thresholds::RUNS,
        &thresholds::AT_WORK,
        &thresholds::BALANCING_OFF_STRANDED,
    ],
    traps: "a machine on which everything is placed by hand",
    explains: &["memory-stranded"],
    sources: &["tuned#283: off cost up to 20 % on AMD machines, and was taken back"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    diagnose(situation).into_iter().collect()
}

/// Whether nothing but the scheduler and the first touch places it.
fn is_free(situation: &Situation<'_>, process: &ProcessState<'_>) -> bool {
    let everywhere =
        process.reach.as_ref().is_some_and(|reach| situation.places.with_cpus().is_subset(reach));
    let all_memory = process.allowed_nodes().is_none_or(|nodes| situation.memory_nodes().is_subset(nodes));
    let owned = matches!(process.owner(), Owner::Kubelet | Owner::Slurm | Owner::Libvirt(_));
    everywhere && all_memory && !owned && process.has_no_policy()
}

fn diagnose(situation: &Situation<'_>) -> Option<RuleFinding> {
    if situation.machine.settings.numa_balancing != Some(0) {
        return None;
    }
    let with_cpus = situation.places.with_cpus();
    let least = situation.limit(&thresholds::BALANCING_OFF_STRANDED);
    let stranded: Vec<_> = situation
        .significant()
        .filter(|process| is_free(situation, process))
        .filter_map(|process| Some((process, process.stranded(&with_cpus)?)))
        .filter(|(process, (size, _))| process.share(*size) >= least && *size >= situation.floor())
        .collect();
    if stranded.is_empty() {
        return None;
    }
    let size = stranded.iter().map(|(_, (size, _))| *size).sum();
    let away =
        stranded.iter().fold(nodewise_machine::NodeSet::new(), |all, (_, (_, nodes))| all.union(nodes));
    let count = stranded.len();
    let plural = if count == 1 { "process" } else { "processes" };
    let summary =
        format!("{size} of {count} {plural} are stranded on {}, and nothing moves them", nodes(&away));
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, Subject::Machine, summary);
    finding.confidence =
        stranded.iter().map(|(process, _)| process.confidence).min().unwrap_or(Confidence::Likely);
    finding.concerns = Some(size);
    finding.evidence = vec![Evidence::new("kernel.numa_balancing", Value::Count(0, ""), shown::BALANCING)];
    finding.evidence.extend(stranded.iter().map(|(process, (size, _))| {
        Evidence::new(super::words::process(process), Value::Share(process.share(*size)), shown::NUMA_MAPS)
            .at(situation.thresholds(), &thresholds::BALANCING_OFF_STRANDED)
    }));
    let what = "let the kernel bring memory to the threads that use it; the profiles of tuned, and files of sysctl.d, \
                may switch it off again";
    finding.mends = vec![Mend::sysctl(what, "kernel.numa_balancing", 1, 0)];
    finding.nodes = away;
    Some(finding)
}
