//! A node has CPUs and no memory.

use nodewise_machine::NodeSet;
use nodewise_source::paths::shown;

use super::words::nodes;
use crate::finding::{Evidence, Mend, RuleFinding, Scope, Severity, Subject, Value};
use crate::rule::{Fact, Rule, with_distance};
use crate::situation::Situation;

pub static RULE: Rule = Rule {
    id: "node-without-memory",
    title: "a node has CPUs and no memory: its threads always go elsewhere",
    severity: Severity::Note,
    on: with_distance,
    needs: &[Fact::NodeMemory],
    sign: "MemTotal of a node with CPUs is 0",
    thresholds: &[],
    traps: "machines of few DIMMs with NPS4 or sub-NUMA clusters, where that is known and accepted",
    explains: &[],
    sources: &[
        "Dell EMC, balanced memory with EPYC: NPS4 needs memory at each pair of channels",
        "numactl#165",
    ],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    let empty: NodeSet = situation
        .machine
        .nodes
        .values()
        .filter(|node| !node.cpus.is_empty() && node.memory_total().is_some() && !node.has_memory())
        .map(|node| node.id)
        .collect();
    if empty.is_empty() {
        return Vec::new();
    }
    let cpus = situation.machine.cpus_of_nodes(&empty);
    let with_memory = situation.memory_nodes();
    // Memory on one node of many is a table of the firmware that is wrong more often than a choice.
    let severity = if with_memory.len() == 1 && empty.len() > 1 { Severity::Warning } else { RULE.severity };
    let summary = format!("CPUs {cpus} have no memory of their own");
    let mut finding = RuleFinding::new(RULE.id, severity, Subject::Nodes(empty.clone()), summary);
    finding.evidence = vec![
        Evidence::new(format!("memory of {}", nodes(&empty)), Value::text("none"), shown::NODE_MEMINFO),
        Evidence::new("memory is on", Value::text(nodes(&with_memory)), shown::NODE_MEMINFO),
    ];
    finding.mends = vec![Mend::words(
        "fill the empty channels, or fewer nodes per socket in the firmware's setup (NPS1, no sub-NUMA clusters)",
        Scope::Hardware,
    )];
    finding.experiment = Some("nodewise zonelist shows where their memory comes from".to_owned());
    vec![finding]
}
