//! A virtual machine claims several packages or last-level caches, and has one node.

use nodewise_machine::settings::parameter;
use nodewise_source::paths::shown;

use crate::finding::{Confidence, Evidence, Mend, RuleFinding, Scope, Severity, Subject, Value};
use crate::rule::{Fact, Rule};
use crate::situation::{Class, Situation};

pub static RULE: Rule = Rule {
    id: "guest-one-node-of-many",
    title: "a virtual machine claims several packages or last-level caches, and has one node",
    severity: Severity::Info,
    on: |class| class == Class::One,
    needs: &[Fact::Packages, Fact::Hypervisor],
    sign: "a virtual machine with one node, whose CPUs are in two packages or more, or below two last-level caches or more",
    thresholds: &[],
    traps: "packages that the hypervisor makes up, often one for each CPU: from inside it cannot be \
            seen whether the machine lies on several nodes of its host",
    explains: &[],
    sources: &["OpenStack Nova, flavors: hw:numa_nodes"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    let machine = situation.machine;
    let (packages, caches) = (machine.packages().len(), machine.last_level_caches().count());
    let line = machine.settings.command_line.as_deref().unwrap_or_default();
    let asked = parameter(line, "numa").next().is_some();
    // Some hypervisors give every CPU a cache and a package of its own.
    let cpus = machine.online_cpus().len();
    let claims = |count: usize| count > 1 && count < cpus;
    if situation.virtual_machine != Some(true) || asked || !(claims(packages) || claims(caches)) {
        return Vec::new();
    }
    let summary = "this virtual machine shows one node; whether its host spreads it over several cannot be seen from inside";
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, Subject::Machine, summary);
    finding.confidence = Confidence::Possible;
    finding.evidence = vec![
        Evidence::new("packages", Value::Count(packages as u64, ""), shown::PACKAGES),
        Evidence::new("last-level caches", Value::Count(caches as u64, ""), shown::CACHES),
        Evidence::new("nodes", Value::Count(1, ""), shown::NODE_CPUS),
    ];
    finding.mends = vec![Mend::words(
        "if it is larger than a node of its host: virtual nodes in its definition (libvirt: <numa> cells and <numatune>; \
         OpenStack: hw:numa_nodes)",
        Scope::Reboot,
    )];
    finding.experiment = Some("nodewise c2c measures how far its CPUs are from each other".to_owned());
    vec![finding]
}
