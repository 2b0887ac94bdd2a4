//! Emulated nodes were asked for, and are missing.

use nodewise_machine::settings::parameter;
use nodewise_source::paths::shown;

use crate::finding::{Evidence, Mend, RuleFinding, Scope, Severity, Subject, Value};
use crate::rule::{Fact, Rule};
use crate::situation::{Class, Situation};

pub static RULE: Rule = Rule {
    id: "fake-not-honoured",
    title: "numa=fake= is on the command line, and there is one node",
    severity: Severity::Note,
    on: |class| matches!(class, Class::One | Class::NoNodes),
    needs: &[Fact::CommandLine],
    sign: "numa=fake= with more than one node, and at most one node",
    thresholds: &[],
    traps: "numa=fake=1, which asks for one",
    explains: &[],
    sources: &["Documentation/admin-guide/kernel-parameters.txt: numa=fake; arm64 since 6.12"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    let line = situation.machine.settings.command_line.as_deref().unwrap_or_default();
    let asked = parameter(line, "numa").find_map(|value| value.strip_prefix("fake="));
    let Some(asked) = asked.filter(|asked| *asked != "1") else { return Vec::new() };
    let asked = nodewise_machine::printable::quote(asked);
    let summary = format!(
        "numa=fake={asked} was asked for, and this kernel has {} node",
        situation.machine.nodes.len()
    );
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, Subject::Machine, summary);
    finding.evidence =
        vec![Evidence::new("command line", Value::text(format!("numa=fake={asked}")), shown::COMMAND_LINE)];
    finding.cause = Some("the kernel was built without NUMA_EMU, or does not read the value".to_owned());
    finding.mends = vec![Mend {
        commands: vec!["nodewise emulation status".to_owned()],
        ..Mend::words("see what this kernel can do", Scope::Reboot)
    }];
    vec![finding]
}
