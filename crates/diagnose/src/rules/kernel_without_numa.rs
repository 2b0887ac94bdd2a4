//! A machine of several packages runs a kernel that knows no nodes.

use nodewise_machine::Origin;
use nodewise_source::paths::shown;

use crate::finding::{Confidence, Evidence, Mend, RuleFinding, Scope, Severity, Subject, Value};
use crate::rule::{Fact, Rule};
use crate::situation::{Class, Situation};

pub static RULE: Rule = Rule {
    id: "kernel-without-numa",
    title: "the kernel of a machine with several packages was built without NUMA",
    severity: Severity::Warning,
    on: |class| class == Class::NoNodes,
    needs: &[Fact::RunningSystem, Fact::Packages],
    sign: "CPUs of two packages or more, and no folder of nodes in /sys; a note where the machine is virtual or that is not \
           known",
    thresholds: &[],
    traps: "captures that lack the folder (not examined); sandboxes that hide it; virtual machines, whose packages are made \
            up",
    explains: &[],
    sources: &["Documentation/admin-guide/mm/numa_memory_policy.rst: policies need CONFIG_NUMA"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    let packages = situation.machine.packages().len();
    if packages < 2 || situation.machine.origin != Origin::Live {
        return Vec::new();
    }
    let is_metal = situation.virtual_machine == Some(false);
    let severity = if is_metal { RULE.severity } else { Severity::Note };
    let summary = format!("{packages} packages of CPUs, and a kernel that shows no nodes");
    let mut finding = RuleFinding::new(RULE.id, severity, Subject::Machine, summary);
    finding.confidence = if is_metal { Confidence::Likely } else { Confidence::Possible };
    finding.evidence = vec![
        Evidence::new("packages", Value::Count(packages as u64, ""), shown::PACKAGES),
        Evidence::new(
            "nodes",
            Value::text("none: system calls about policies fail with ENOSYS"),
            shown::NODE_CPUS,
        ),
    ];
    finding.mends = vec![Mend::words(
        "a kernel with CONFIG_NUMA and, on machines with ACPI, CONFIG_ACPI_NUMA; every large distribution's kernel has them",
        Scope::Reboot,
    )];
    vec![finding]
}
