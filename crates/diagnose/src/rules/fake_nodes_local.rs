//! Emulated nodes are filled one after the other, and bring nothing.

use nodewise_machine::settings::parameter;
use nodewise_source::paths::shown;

use crate::finding::{Confidence, Evidence, Mend, RuleFinding, Scope, Severity, Subject, Value};
use crate::rule::{Fact, Rule, emulated};
use crate::situation::Situation;

pub static RULE: Rule = Rule {
    id: "fake-nodes-local",
    title: "emulated nodes are filled one after the other, and bring nothing",
    severity: Severity::Warning,
    on: emulated,
    needs: &[Fact::CommandLine],
    sign: "emulated nodes on a kernel for the Raspberry Pi, and no numa_policy=interleave on its command line",
    thresholds: &[],
    traps: "on other machines emulated nodes are for trying things out: a note there; programs that are started under \
            interleaving one by one",
    explains: &[],
    sources: &["top500-benchmark#55"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    let machine = situation.machine;
    let line = machine.settings.command_line.as_deref().unwrap_or_default();
    if parameter(line, "numa_policy").any(|value| value.starts_with("interleave")) {
        return Vec::new();
    }
    let is_board = machine.kernel.as_ref().is_some_and(nodewise_machine::KernelRelease::is_raspberry_pi);
    let severity = if is_board { RULE.severity } else { Severity::Info };
    let summary =
        format!("{} emulated nodes, and memory is taken from one after the other", machine.nodes.len());
    let mut finding = RuleFinding::new(RULE.id, severity, Subject::Machine, summary);
    finding.confidence = if is_board { Confidence::Likely } else { Confidence::Possible };
    finding.evidence =
        vec![Evidence::new("numa_policy", Value::text("not on the command line"), shown::COMMAND_LINE)];
    if is_board {
        finding.mends = vec![Mend {
            commands: vec!["nodewise emulation plan".to_owned()],
            ..Mend::words("interleave all programs; nodewise emulation enable writes the plan", Scope::Reboot)
        }];
    }
    finding.mends.push(Mend {
        commands: vec!["nodewise run --interleave=all -- COMMAND".to_owned()],
        ..Mend::words("interleave one program", Scope::Restart)
    });
    vec![finding]
}
