//! Page faults stall in compaction, because defrag is always.

use nodewise_source::paths::shown;

use crate::finding::{Evidence, Mend, RuleFinding, Severity, Subject, Value};
use crate::rule::{Fact, Rule, any};
use crate::situation::Situation;

pub static RULE: Rule = Rule {
    id: "thp-remote-or-stalling",
    title: "allocations stall in compaction, because the defrag of huge pages is always",
    severity: Severity::Note,
    on: any,
    needs: &[Fact::Rates, Fact::Events],
    sign: "transparent_hugepage/defrag is always, and page faults compacted memory in the window",
    thresholds: &[],
    traps: "HPC programs that want their huge pages at any price",
    explains: &[],
    sources: &["scylladb#8828: stalls by compaction", "Documentation/admin-guide/mm/transhuge.rst"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    diagnose(situation).into_iter().collect()
}

fn diagnose(situation: &Situation<'_>) -> Option<RuleFinding> {
    let defrag = situation.machine.settings.transparent_hugepage_defrag.as_deref()?;
    let stalls = situation.event("compact_stall").filter(|count| *count > 0 && defrag == "always")?;
    let rate = situation.rate(stalls)?;
    let summary = format!("{stalls} allocations waited for compaction in the window");
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, Subject::Machine, summary);
    finding.evidence = vec![
        Evidence::new("stalls", Value::Rate(rate, "compactions"), shown::VMSTAT),
        Evidence::new("defrag", Value::text(defrag), shown::THP_DEFRAG),
    ];
    let what = "compact in the background, and at once only for programs that ask for huge pages";
    finding.mends = vec![Mend::write(what, shown::THP_DEFRAG, "defer+madvise", defrag)];
    Some(finding)
}
