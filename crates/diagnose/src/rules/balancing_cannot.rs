//! A policy forbids the balancing that would bring the memory near.

use nodewise_machine::{ModeFlags, PolicyMode};
use nodewise_source::paths::shown;

use super::words;
use crate::finding::{Evidence, Mend, RuleFinding, Scope, Severity, Value};
use crate::rule::{Fact, Rule, with_distance};
use crate::situation::{ProcessState, Situation};
use crate::thresholds;

pub static RULE: Rule = Rule {
    id: "balancing-cannot",
    title: "memory is stranded, and its policy forbids balancing",
    severity: Severity::Info,
    on: with_distance,
    needs: &[Fact::Rates, Fact::Policies, Fact::Balancing, Fact::Release],
    sign: "balancing is on, the policy is bind over two nodes or more without the flag balancing, at least 10 % of the \
           memory is stranded, and the kernel knows the flag (5.12)",
    thresholds: &[
        &thresholds::SIGNIFICANT,
        &thresholds::SIGNIFICANT_SHARE,
        &thresholds::RUNS,
        &thresholds::AT_WORK,
        &thresholds::BALANCING_CANNOT_STRANDED,
    ],
    traps: "a policy over one node leaves nothing to balance",
    explains: &[],
    sources: &["numactl#104", "set_mempolicy(2): MPOL_F_NUMA_BALANCING"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    situation.significant().filter_map(|process| find(situation, process)).collect()
}

fn find(situation: &Situation<'_>, process: &ProcessState<'_>) -> Option<RuleFinding> {
    let machine = situation.machine;
    let (policy, _) = process.policy()?;
    let is_on = machine.settings.numa_balancing.is_some_and(|mode| mode & 1 != 0);
    let knows = machine.kernel.as_ref()?.is_at_least(5, 12);
    let forbids = policy.mode == PolicyMode::Bind
        && policy.nodes.len() > 1
        && !policy.flags.contains(ModeFlags::NUMA_BALANCING);
    let (size, away) = process.stranded(&situation.places.with_cpus())?;
    if !is_on
        || !knows
        || !forbids
        || process.share(size) < situation.limit(&thresholds::BALANCING_CANNOT_STRANDED)
    {
        return None;
    }
    let summary = format!(
        "{size} of {} are stranded, and {policy} forbids that balancing moves them",
        words::process(process)
    );
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, process.subject(), summary);
    finding.concerns = Some(size);
    finding.evidence = vec![
        Evidence::new("stranded", Value::Share(process.share(size)), shown::NUMA_MAPS)
            .at(situation.thresholds(), &thresholds::BALANCING_CANNOT_STRANDED),
        Evidence::new("policy", Value::text(policy.to_string()), shown::NUMA_MAPS),
    ];
    finding.mends = vec![Mend {
        commands: vec![format!("nodewise run --membind={} --balancing -- COMMAND", policy.nodes)],
        ..Mend::words("allow balancing within the nodes of the policy", Scope::Restart)
    }];
    finding.nodes = away;
    Some(finding)
}
