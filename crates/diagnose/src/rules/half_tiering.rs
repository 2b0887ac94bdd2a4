//! Demotion without promotion, or the reverse.

use nodewise_source::paths::shown;

use crate::finding::{Confidence, Evidence, Mend, RuleFinding, Severity, Subject, Value};
use crate::rule::{Fact, Rule, tiered};
use crate::situation::Situation;

/// Bit of `kernel.numa_balancing` for memory tiers.
const TIERING: u32 = 2;

pub static RULE: Rule = Rule {
    id: "half-tiering",
    title: "pages go to slow memory and not back, or the reverse",
    severity: Severity::Note,
    on: tiered,
    needs: &[Fact::Balancing, Fact::Demotion],
    sign: "demotion is on and bit 2 of kernel.numa_balancing is off, or the bit is on and demotion is off",
    thresholds: &[],
    traps: "a scheme of DAMON that promotes",
    explains: &[],
    sources: &["damo#34", "Documentation/admin-guide/sysctl/kernel.rst: numa_balancing"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    diagnose(situation).into_iter().collect()
}

fn diagnose(situation: &Situation<'_>) -> Option<RuleFinding> {
    let settings = &situation.machine.settings;
    let (mode, demotes) = (settings.numa_balancing?, settings.demotion_enabled?);
    let promotes = mode & TIERING != 0;
    if promotes == demotes {
        return None;
    }
    let summary = if demotes {
        "cold pages go to slow memory, and none comes back when it gets hot"
    } else {
        "hot pages are to come back to fast memory, and nothing makes room there"
    };
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, Subject::Machine, summary);
    finding.confidence = Confidence::Likely;
    finding.evidence = vec![
        Evidence::new("demotion", Value::text(if demotes { "on" } else { "off" }), shown::DEMOTION),
        Evidence::new("kernel.numa_balancing", Value::text(mode.to_string()), shown::BALANCING),
    ];
    for event in ["pgdemote_kswapd", "pgdemote_direct", "pgpromote_success"] {
        let rate = situation.event(event).and_then(|count| situation.rate(count));
        finding
            .evidence
            .extend(rate.map(|rate| Evidence::new(event, Value::Rate(rate, "pages"), shown::VMSTAT)));
    }
    finding.mends = vec![if demotes {
        let what = "bring hot pages back";
        Mend::sysctl(what, "kernel.numa_balancing", u64::from(mode | TIERING), u64::from(mode))
    } else {
        Mend::write("make room in fast memory", shown::DEMOTION, "1", "0")
    }];
    Some(finding)
}
