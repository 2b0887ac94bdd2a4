//! Balancing is relied on, and the memory is in a pool of huge pages, which it never moves.

use nodewise_machine::Bytes;
use nodewise_machine::mapping::MappingKind;
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
    finding.mends = mends(situation, process, size);
    finding.nodes = away;
    Some(finding)
}

/// Another start on the node where it runs; before that the pages that this node's pool lacks.
fn mends(situation: &Situation<'_>, process: &ProcessState<'_>, stranded: Bytes) -> Vec<Mend> {
    let Some(home) = process.busiest(&situation.memory_nodes()) else {
        return vec![Mend::words("place it on one node before it starts", Scope::Restart)];
    };
    let of_pools = process.mappings.into_iter().flat_map(|read| &read.mappings);
    let largest = of_pools.filter(|mapping| mapping.kind == MappingKind::HugePool);
    let page_size = largest.max_by_key(|mapping| mapping.resident()).and_then(|mapping| mapping.page_size);
    let pool = page_size.and_then(|size| {
        let pools = &situation.now.node(home)?.pools;
        let (total, free) = pools
            .iter()
            .find(|pool| pool.page_size == size)
            .map_or((0, 0), |pool| (pool.total, pool.free.unwrap_or(0)));
        let short = stranded.get().div_ceil(size.get()).saturating_sub(free);
        let what = "give the node where it runs the pages that it needs";
        let nodes = [(home, total.saturating_add(short), total)];
        (short > 0).then(|| Mend::pool(what, Scope::Restart, size, &nodes))
    });
    let start = Mend {
        commands: vec![format!("nodewise run --cpunodebind={home} --membind={home} -- COMMAND")],
        ..Mend::words("start it on that node", Scope::Restart)
    };
    pool.into_iter().chain([start]).collect()
}
