//! A profile of tuned sets what other rules found to be the cause.

use nodewise_machine::printable::quote;
use nodewise_source::paths::shown;

use super::{balancing_off, zone_reclaim_on, zone_reclaim_void};
use crate::finding::{Confidence, Evidence, Mend, RuleFinding, Scope, Severity, Subject, Value};
use crate::rule::{Fact, Rule, several_nodes};
use crate::situation::Situation;

/// Profiles that switch balancing off: `kernel.numa_balancing=0` of their own files or of those that they include, in tuned
/// 2.20.
const BALANCING_OFF: [&str; 10] = [
    "hpc-compute",
    "oracle",
    "mssql",
    "sap-hana",
    "network-latency",
    "cpu-partitioning",
    "cpu-partitioning-powersave",
    "realtime",
    "realtime-virtual-guest",
    "realtime-virtual-host",
];
/// Profiles that switch node reclaim on: `vm.zone_reclaim_mode=1`, in tuned 2.20.
const RECLAIM_ON: [&str; 1] = ["hpc-compute"];

pub static RULE: Rule = Rule {
    id: "profile-against-workload",
    title: "a profile of tuned sets what other rules found to be the cause",
    severity: Severity::Note,
    on: several_nodes,
    needs: &[Fact::Rates, Fact::Profile],
    sign: "the active profile of tuned switches balancing off while balancing-off-nobody-places finds something, or node reclaim \
           on while zone-reclaim-on or zone-reclaim-void does",
    thresholds: &[],
    traps: "a profile of the site's own with such a name; a setting that was changed after the profile",
    explains: &["balancing-off-nobody-places", "zone-reclaim-on", "zone-reclaim-void"],
    sources: &[
        "tuned 2.20: profiles hpc-compute, oracle, mssql, sap-hana, network-latency, and those that include the last",
        "tuned#283",
    ],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    let Some(active) = situation.site.and_then(|site| site.tuned.known()) else { return Vec::new() };
    // Several profiles can be active, the last one wins.
    let has = |profiles: &[&str]| active.split_ascii_whitespace().any(|word| profiles.contains(&word));
    let finds = |rule: &Rule| rule.lacks(situation).is_empty() && !(rule.check)(situation).is_empty();
    let balancing = has(&BALANCING_OFF) && finds(&balancing_off::RULE);
    let reclaim = has(&RECLAIM_ON) && (finds(&zone_reclaim_on::RULE) || finds(&zone_reclaim_void::RULE));
    let settings = [
        (balancing, "kernel.numa_balancing=0", "kernel.numa_balancing=1"),
        (reclaim, "vm.zone_reclaim_mode=1", "vm.zone_reclaim_mode=0"),
    ];
    let caused = settings.iter().filter(|(is_cause, ..)| *is_cause);
    let (sets, wanted): (Vec<&str>, Vec<&str>) = caused.map(|(_, sets, wanted)| (*sets, *wanted)).unzip();
    if sets.is_empty() {
        return Vec::new();
    }
    let summary = format!("the profile {} sets {}", quote(active), sets.join(" and "));
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, Subject::Machine, summary);
    finding.confidence = Confidence::Likely;
    finding.evidence =
        vec![Evidence::new("active profile", Value::text(quote(active).to_string()), shown::TUNED)];
    finding.mends = vec![Mend::words(
        format!(
            "a profile of your own in /etc/tuned that includes it{} and sets {} below [sysctl]; tuned-adm \
             profile takes it, and the old name takes it back",
            include(active).map_or_else(String::new, |line| format!(" ([main] {line})")),
            wanted.join(" and ")
        ),
        Scope::Now,
    )];
    vec![finding]
}

/// The line that includes these profiles. tuned takes quotes for a part of the name, and parts names by commas; it knows no
/// profile whose name has other characters than these.
fn include(active: &str) -> Option<String> {
    let names: Vec<&str> = active.split_ascii_whitespace().collect();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    let are_plain = names.iter().all(|name| name.chars().all(is_plain));
    are_plain.then(|| format!("include={}", names.join(",")))
}
