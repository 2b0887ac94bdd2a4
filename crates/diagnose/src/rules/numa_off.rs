//! The command line switches the nodes off.

use std::collections::BTreeSet;

use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::settings::parameter;
use nodewise_source::paths::shown;

use crate::finding::{Confidence, Evidence, Mend, RuleFinding, Scope, Severity, Subject, Value};
use crate::rule::{Fact, Rule};
use crate::situation::{Class, Situation};

pub static RULE: Rule = Rule {
    id: "numa-off",
    title: "the kernel's command line switches the nodes off",
    severity: Severity::Warning,
    on: |class| matches!(class, Class::One | Class::NoNodes),
    needs: &[Fact::CommandLine],
    sign: "numa=off or numa=noacpi, and tables of the firmware or packages of CPUs for several nodes",
    thresholds: &[],
    traps: "old advice for databases, which has been revised since",
    explains: &["nodes-hidden"],
    sources: &["kevinclosson.net, 2009 and 2010", "Documentation/admin-guide/kernel-parameters.txt: numa="],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    let machine = situation.machine;
    let line = machine.settings.command_line.as_deref().unwrap_or_default();
    let Some(word) = parameter(line, "numa").find(|value| matches!(*value, "off" | "noacpi")) else {
        return Vec::new();
    };
    let listed: BTreeSet<_> = machine.memory_map.nodes.iter().map(|range| range.node).collect_set();
    let packages = machine.packages().len();
    if listed.len() < 2 && packages < 2 {
        return Vec::new();
    }
    let summary = format!("numa={word} hides the nodes of this machine");
    // Packages of a virtual machine are made up.
    let is_known = listed.len() > 1 || situation.virtual_machine == Some(false);
    let severity = if is_known { RULE.severity } else { Severity::Info };
    let mut finding = RuleFinding::new(RULE.id, severity, Subject::Machine, summary);
    finding.confidence = if listed.len() > 1 { Confidence::Certain } else { Confidence::Likely };
    finding.evidence =
        vec![Evidence::new("command line", Value::text(format!("numa={word}")), shown::COMMAND_LINE)];
    if listed.len() > 1 {
        finding.evidence.push(Evidence::new(
            "nodes in the SRAT",
            Value::Count(listed.len() as u64, ""),
            "SRAT",
        ));
    } else {
        finding.evidence.push(Evidence::new("packages", Value::Count(packages as u64, ""), shown::PACKAGES));
    }
    finding.mends = vec![Mend::words(
        format!("take numa={word} from the kernel's command line in the boot loader's configuration"),
        Scope::Reboot,
    )];
    vec![finding]
}
