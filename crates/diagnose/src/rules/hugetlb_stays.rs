//! Balancing is relied on, and the memory is in a pool of huge pages, which it never moves.

use nodewise_source::paths::shown;

use super::words;
use crate::finding::{Evidence, Mend, RuleFinding, Scope, Severity, Value};
use crate::rule::{Fact, Rule, with_distance};
use crate::situation::{ProcessState, Situation};
use crate::thresholds;

pub static RULE: Rule = Rule {
    id: "hugetlb-stays",
    title: "balancing is on, and stranded memory is in a pool, which it never moves",
    severity: Severity::Info,
    on: with_distance,
    needs: &[Fact::Rates, Fact::Mappings, Fact::Policies, Fact::Balancing],
    sign: "automatic balancing is on, the process has no policy, at least 10 % of its memory is stranded, and at least \
           80 % is in pools",
    thresholds: &[
        &thresholds::SIGNIFICANT,
        &thresholds::SIGNIFICANT_SHARE,
        &thresholds::RUNS,
        &thresholds::AT_WORK,
        &thresholds::HUGETLB_STRANDED,
        &thresholds::HUGETLB_POOLS,
    ],
    traps: "a process under a policy is not balanced anyway",
    explains: &[],
    sources: &["kernel/sched/fair.c, task_numa_work, Linux 6.12: mappings of hugetlb are passed over"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    situation.significant().filter_map(|process| find(situation, process)).collect()
}

fn find(situation: &Situation<'_>, process: &ProcessState<'_>) -> Option<RuleFinding> {
    let (size, away) = process.stranded(&situation.places.with_cpus())?;
    let pools = process.in_pools()?;
    let is_on = situation.machine.settings.numa_balancing.is_some_and(|mode| mode & 1 != 0);
    let much = process.share(size) >= situation.limit(&thresholds::HUGETLB_STRANDED)
        && process.share(pools) >= situation.limit(&thresholds::HUGETLB_POOLS);
    if !is_on || !much || !process.has_no_policy() {
        return None;
    }
    let summary = format!(
        "{size} of {} are pages of a pool, which balancing leaves where they are",
        words::process(process)
    );
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, process.subject(), summary);
    finding.concerns = Some(size);
    finding.evidence = vec![
        Evidence::new("in pools", Value::Share(process.share(pools)), shown::NUMA_MAPS)
            .at(situation.thresholds(), &thresholds::HUGETLB_POOLS),
        Evidence::new("stranded", Value::Share(process.share(size)), shown::NUMA_MAPS)
            .at(situation.thresholds(), &thresholds::HUGETLB_STRANDED),
    ];
    finding.mends = vec![Mend::words(
        "place it before it starts: nodewise run --cpunodebind=NODE --membind=NODE -- COMMAND",
        Scope::Restart,
    )];
    finding.nodes = away;
    Some(finding)
}
