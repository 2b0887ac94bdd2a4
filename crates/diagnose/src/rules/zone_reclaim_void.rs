//! Node reclaim is on and can free nothing: MGLRU is on.

use nodewise_source::paths::shown;

use crate::finding::{Evidence, Mend, RuleFinding, Severity, Subject, Value};
use crate::rule::{Fact, Rule, several_nodes};
use crate::situation::Situation;

/// Bits of `vm.zone_reclaim_mode`.
const RECLAIM: u32 = 1;
const WRITE_AND_UNMAP: u32 = 2 | 4;

pub static RULE: Rule = Rule {
    id: "zone-reclaim-void",
    title: "node reclaim is on and can free nothing, because MGLRU is on",
    severity: Severity::Note,
    on: several_nodes,
    needs: &[Fact::Rates, Fact::Events, Fact::ZoneReclaim],
    sign: "vm.zone_reclaim_mode has bit 1 and not both of 2 and 4, lru_gen is on, and the window has failed node \
           reclaims and none that succeeded",
    thresholds: &[],
    traps: "with 2 and 4 set it frees memory under MGLRU, too",
    explains: &[],
    sources: &["12,375 failed node reclaims and none that succeeded, Linux 6.12 in a guest"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    diagnose(situation).into_iter().collect()
}

fn diagnose(situation: &Situation<'_>) -> Option<RuleFinding> {
    let settings = &situation.machine.settings;
    let mode = settings.zone_reclaim_mode?;
    let is_void = mode & RECLAIM != 0 && mode & WRITE_AND_UNMAP != WRITE_AND_UNMAP;
    let failed = situation.event("zone_reclaim_failed")?;
    let succeeded = situation.event("zone_reclaim_success")?;
    if !is_void || settings.lru_gen_enabled != Some(true) || failed == 0 || succeeded > 0 {
        return None;
    }
    let summary = format!("vm.zone_reclaim_mode={mode} was tried {failed} times and freed nothing");
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, Subject::Machine, summary);
    finding.cause =
        Some("MGLRU reclaims on a node only where writing and unmapping are allowed, too".to_owned());
    finding.evidence = vec![
        Evidence::new("failed", Value::Count(failed, "node reclaims"), shown::VMSTAT),
        Evidence::new("succeeded", Value::Count(succeeded, "node reclaims"), shown::VMSTAT),
    ];
    finding.mends = vec![Mend::sysctl(
        "take memory of other nodes at once, as by default",
        "vm.zone_reclaim_mode",
        0,
        u64::from(mode),
    )];
    Some(finding)
}
