//! Two sockets and one node: the firmware interleaves, or hides the nodes.

use nodewise_machine::settings::parameter;
use nodewise_source::paths::shown;

use crate::finding::{Confidence, Evidence, Mend, RuleFinding, Scope, Severity, Subject, Value};
use crate::rule::{Fact, Rule};
use crate::situation::{Class, Situation};

pub static RULE: Rule = Rule {
    id: "nodes-hidden",
    title: "several packages and one node: the firmware interleaves, or hides the nodes",
    severity: Severity::Warning,
    on: |class| class == Class::One,
    needs: &[Fact::Packages, Fact::CommandLine],
    sign: "CPUs of two packages or more, one node, no numa= on the command line, and no virtual machine",
    thresholds: &[],
    traps: "virtual machines, whose packages are made up; NPS0, chosen on purpose; small boards",
    explains: &[],
    sources: &["haproxy#1616: 19 to 260 ns between cores of a machine that showed one node"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    let packages = situation.machine.packages();
    let line = situation.machine.settings.command_line.as_deref().unwrap_or_default();
    let asked = parameter(line, "numa").next().is_some();
    if packages.len() < 2 || asked || situation.virtual_machine == Some(true) {
        return Vec::new();
    }
    let summary = format!("{} packages of CPUs, and all memory in one node", packages.len());
    let is_metal = situation.virtual_machine == Some(false);
    let severity = if is_metal { RULE.severity } else { Severity::Info };
    let mut finding = RuleFinding::new(RULE.id, severity, Subject::Machine, summary);
    finding.confidence = if is_metal { Confidence::Likely } else { Confidence::Possible };
    finding.evidence = vec![
        Evidence::new("packages", Value::Count(packages.len() as u64, ""), shown::PACKAGES),
        Evidence::new("nodes", Value::Count(1, ""), shown::NODE_CPUS),
    ];
    finding.mends = vec![Mend::words(
        "in the firmware's setup: Node Interleaving off, or NPS1 and more; nodewise show names the nodes after the reboot",
        Scope::Reboot,
    )];
    finding.experiment =
        Some("nodewise c2c and nodewise latency show whether distances are hidden".to_owned());
    vec![finding]
}
