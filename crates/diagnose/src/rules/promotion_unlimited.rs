//! Pages move between memory tiers without a limit that slows them down.

use nodewise_machine::Bytes;
use nodewise_source::paths::shown;

use crate::finding::{Confidence, Evidence, Mend, RuleFinding, Scope, Severity, Subject, Value};
use crate::rule::{Fact, Rule, tiered};
use crate::situation::Situation;
use crate::thresholds;

/// Pages that moved up or down.
const MOVES: [&str; 4] = ["pgpromote_success", "pgdemote_kswapd", "pgdemote_direct", "pgdemote_khugepaged"];

pub static RULE: Rule = Rule {
    id: "promotion-unlimited",
    title: "a GiB of pages a second moves between memory tiers",
    severity: Severity::Info,
    on: tiered,
    needs: &[Fact::Rates, Fact::Events],
    sign: "promoted and demoted pages of the window are at least 1,024 MiB a second together, both ways",
    thresholds: &[&thresholds::TIER_TRAFFIC],
    traps: "a program that just changed its working set; demotion alone makes room for new memory",
    explains: &[],
    sources: &["Linux c6833e10008f: half the traffic for 3 % of the score, by a limit"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    diagnose(situation).into_iter().collect()
}

fn diagnose(situation: &Situation<'_>) -> Option<RuleFinding> {
    let page = situation.machine.page_size.unwrap_or(Bytes::from_kib(4));
    let moved = |name: &str| situation.event(name).unwrap_or(0);
    let up = moved(MOVES[0]);
    let down = MOVES[1..].iter().map(|name| moved(name)).fold(0, u64::saturating_add);
    let in_mib = |pages: u64| Some(situation.rate(pages)? * page.get() as f64 / (1024.0 * 1024.0));
    let (up, down) = (in_mib(up)?, in_mib(down)?);
    if up == 0.0 || down == 0.0 || up + down < situation.limit(&thresholds::TIER_TRAFFIC) {
        return None;
    }
    let summary = "pages that are brought to fast memory push others out at the same pace";
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, Subject::Machine, summary);
    finding.confidence = Confidence::Likely;
    finding.evidence = vec![
        Evidence::new("promoted", Value::Rate(up, "MiB"), shown::VMSTAT),
        Evidence::new("demoted", Value::Rate(down, "MiB"), shown::VMSTAT),
        Evidence::new("both", Value::Rate(up + down, "MiB"), shown::VMSTAT)
            .at(situation.thresholds(), &thresholds::TIER_TRAFFIC),
    ];
    finding.mends = vec![Mend::words(
        "lower kernel.numa_balancing_promote_rate_limit_MBps (65536 by default, which limits nothing) step by step",
        Scope::Now,
    )];
    Some(finding)
}
