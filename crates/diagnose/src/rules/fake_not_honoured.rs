//! Emulated nodes were asked for, and are missing.

use nodewise_machine::Bytes;
use nodewise_machine::plural::plural;
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
    traps: "numa=fake=1 and numa=fake=1U, which ask for one",
    explains: &[],
    sources: &["Documentation/admin-guide/kernel-parameters.txt: numa=fake; arm64 since 6.12"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    let line = situation.machine.settings.command_line.as_deref().unwrap_or_default();
    let asked = parameter(line, "numa").find_map(|value| value.strip_prefix("fake="));
    // 1U: each node in one part.
    let Some(asked) = asked.filter(|asked| !["1", "1U"].contains(asked)) else { return Vec::new() };
    let too_large = size(asked).filter(|size| situation.total().get() > 0 && *size >= situation.total());
    let asked = nodewise_machine::printable::quote(asked);
    let count = plural(situation.machine.nodes.len() as u64, "node");
    let summary = format!("numa=fake={asked} was asked for, and this kernel has {count}");
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, Subject::Machine, summary);
    finding.evidence =
        vec![Evidence::new("command line", Value::text(format!("numa=fake={asked}")), shown::COMMAND_LINE)];
    let (cause, mend) = match too_large {
        Some(size) => (
            format!("one node of {size} holds all memory of this machine: {}", situation.total()),
            "a smaller size, or a number of nodes",
        ),
        None => (
            "the kernel was built without NUMA_EMU, or does not read the value".to_owned(),
            "see what this kernel can do",
        ),
    };
    finding.cause = Some(cause);
    finding.mends = vec![Mend {
        commands: vec!["nodewise emulation status".to_owned()],
        ..Mend::words(mend, Scope::Reboot)
    }];
    vec![finding]
}

/// The size of each node, where the value is one: the kernel takes a value with M or G for a size, others for a number.
fn size(value: &str) -> Option<Bytes> {
    let is_size = value.ends_with(['M', 'G']);
    is_size.then(|| value.parse().ok()).flatten()
}
