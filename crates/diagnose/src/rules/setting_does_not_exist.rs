//! The command line sets a parameter that this kernel does not have.

use nodewise_machine::printable::quote;
use nodewise_machine::settings::parameter;
use nodewise_source::paths::shown;

use crate::finding::{Confidence, Evidence, Mend, RuleFinding, Scope, Severity, Subject, Value};
use crate::rule::{Fact, Rule, any};
use crate::situation::Situation;

/// Values of `numa=` that some kernel knows, up to the first sign that ends the word.
const VALUES: [&str; 6] = ["on", "off", "noacpi", "nohmat", "fake", "debug"];

pub static RULE: Rule = Rule {
    id: "setting-does-not-exist",
    title: "the command line sets a parameter that this kernel ignores",
    severity: Severity::Note,
    on: any,
    needs: &[Fact::CommandLine, Fact::Release],
    sign: "numa_policy= on a kernel that is not the Raspberry Pi's, or a value of numa= that no kernel knows",
    thresholds: &[],
    traps: "vendors' kernels may know more",
    explains: &["fake-not-honoured"],
    sources: &[
        "Documentation/admin-guide/kernel-parameters.txt: numa=",
        "llama.cpp#1437 quotes an invented setting",
    ],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    let settings = &situation.machine.settings;
    let line = settings.command_line.as_deref().unwrap_or_default();
    let is_board =
        situation.machine.kernel.as_ref().is_some_and(nodewise_machine::KernelRelease::is_raspberry_pi);
    let policies =
        parameter(line, "numa_policy").filter(|_| !is_board).map(|value| format!("numa_policy={value}"));
    let unknown = |value: &&str| {
        value.split(',').any(|part| {
            let word = part.split('=').next().unwrap_or_default();
            !VALUES.contains(&word) && !part.starts_with(|c: char| c.is_ascii_digit())
        })
    };
    let values = parameter(line, "numa").filter(unknown).map(|value| format!("numa={value}"));
    policies.chain(values).map(|word| finding(&word)).collect()
}

fn finding(word: &str) -> RuleFinding {
    let summary = format!("{} does nothing on this kernel", quote(word));
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, Subject::Machine, summary);
    finding.confidence = Confidence::Likely;
    finding.evidence = vec![Evidence::new("command line", Value::text(quote(word)), shown::COMMAND_LINE)];
    finding.mends = vec![Mend::words(
        "take it from the boot loader's configuration; nodewise run --interleave=all places single programs",
        Scope::Reboot,
    )];
    finding
}
