//! A node has movable zones only: the kernel's own memory and pinned pages cannot be there.

use nodewise_machine::NodeSet;
use nodewise_source::paths::shown;

use super::words::nodes;
use crate::finding::{Evidence, Mend, RuleFinding, Scope, Severity, Subject, Value};
use crate::rule::{Fact, Rule, several_nodes};
use crate::situation::Situation;

pub static RULE: Rule = Rule {
    id: "node-movable-only",
    title: "a node has movable zones only: page tables, slab and pinned memory cannot be there",
    severity: Severity::Info,
    on: several_nodes,
    needs: &[Fact::Zones],
    sign: "all managed pages of a node are in its zone Movable; a warning where a process with at least 300 MiB or 5 % of the \
           smallest node may use such nodes only",
    thresholds: &[],
    traps: "memory of CXL that was made movable on purpose, so that it can be taken away",
    explains: &[],
    sources: &["Documentation/admin-guide/mm/memory-hotplug.rst: ZONE_MOVABLE"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    let Some(movable) = situation.site.and_then(|site| site.movable_only.known()) else { return Vec::new() };
    if movable.is_empty() || situation.memory_nodes().is_subset(movable) {
        return Vec::new();
    }
    let others = situation.memory_nodes().difference(movable);
    let is_confined = |allowed: Option<&NodeSet>| {
        allowed.is_some_and(|allowed| !allowed.is_empty() && allowed.is_subset(movable))
    };
    let confined = situation.significant().find(|process| is_confined(process.allowed_nodes()));
    let severity = if confined.is_some() { Severity::Warning } else { RULE.severity };
    let summary = format!("{} can hold memory of programs, and nothing of the kernel's", nodes(movable));
    let mut finding = RuleFinding::new(RULE.id, severity, Subject::Nodes(movable.clone()), summary);
    finding.evidence = vec![Evidence::new("zones with pages", Value::text("Movable"), shown::ZONEINFO)];
    if let Some(process) = confined {
        finding.evidence.push(Evidence::new(
            "confined to it",
            Value::text(super::words::process(process)),
            shown::STATUS,
        ));
        finding.cause = Some(
            "its page tables come from other nodes or fail, and pinning its buffers can fail".to_owned(),
        );
    }
    finding.mends = vec![Mend::words(
        format!(
            "let programs there also use {}; or bring the node's memory online as online_kernel at the next boot (movable_node \
             and memhp_default_state on the command line decide it)",
            nodes(&others)
        ),
        Scope::Reboot,
    )];
    vec![finding]
}
