//! Two agents move the same processes.

use nodewise_machine::printable::quote;
use nodewise_source::paths::shown;

use crate::finding::{Confidence, Evidence, Mend, RuleFinding, Scope, Severity, Subject, Value};
use crate::rule::{Fact, Rule, several_nodes};
use crate::situation::Situation;

/// Programs that place others' processes or pages.
pub(crate) const PLACERS: [&str; 4] = ["numad", "memtierd", "katalyst-agent", "numabalanced"];

pub static RULE: Rule = Rule {
    id: "two-placers",
    title: "two agents move the same processes",
    severity: Severity::Warning,
    on: several_nodes,
    needs: &[Fact::Processes, Fact::Balancing],
    sign: "a program that places others' processes runs, and automatic balancing is on or a second one runs",
    thresholds: &[],
    traps: "a program that only listens for advice",
    explains: &["memory-stranded"],
    sources: &["numad 0.5+20150602: sets the affinity of every thread and looks at no cpuset"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    let found: Vec<_> = situation
        .now
        .processes
        .iter()
        .filter(|process| PLACERS.iter().any(|name| *name == &*process.name) && !process.kernel_thread)
        .collect();
    let balancing = situation.machine.settings.numa_balancing.unwrap_or(0);
    if found.is_empty() || (balancing == 0 && found.len() < 2) {
        return Vec::new();
    }
    let mut names: Vec<String> = found.iter().map(|process| quote(&process.name)).collect();
    if balancing != 0 {
        names.push("the kernel's balancing".to_owned());
    }
    let summary = format!("{} all move processes or their pages", names.join(", "));
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, Subject::Machine, summary);
    finding.confidence = Confidence::Likely;
    finding.evidence = found
        .iter()
        .map(|process| {
            Evidence::new(
                quote(&process.name),
                Value::text(format!("process {}", process.identity.pid)),
                shown::STAT,
            )
        })
        .collect();
    finding.evidence.push(Evidence::new(
        "kernel.numa_balancing",
        Value::text(balancing.to_string()),
        shown::BALANCING,
    ));
    finding.mends = vec![Mend::words("leave the work to one of them, and stop the others", Scope::Now)];
    vec![finding]
}
