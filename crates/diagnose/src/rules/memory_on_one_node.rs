//! Modules are in the slots of a package whose nodes have no memory: the tables of the firmware are wrong.

use std::collections::BTreeSet;

use nodewise_machine::memory_slot::{SlotPlace, SlotState};
use nodewise_machine::plural::plural;
use nodewise_machine::{NodeSet, PackageId};
use nodewise_source::paths::shown;

use super::words::nodes;
use crate::finding::{Confidence, Evidence, Mend, RuleFinding, Scope, Severity, Subject, Value};
use crate::rule::{Fact, Rule, with_distance};
use crate::situation::Situation;

pub static RULE: Rule = Rule {
    id: "memory-on-one-node",
    title: "a package has memory modules, and its nodes have no memory",
    severity: Severity::Warning,
    on: with_distance,
    needs: &[Fact::NodeMemory, Fact::Slots, Fact::Packages],
    sign: "a package whose nodes have CPUs and a MemTotal of 0, and modules in the slots that the firmware wires to it",
    thresholds: &[],
    traps: "a node of a package whose other nodes have memory (sub-NUMA clusters without modules at their channels); slots \
            whose socket the firmware does not name",
    explains: &["node-without-memory"],
    sources: &[
        "Dasharo#215: all memory of two sockets on node 0",
        "AmpereComputing LTS#25: ranges of the SRAT that overlap",
    ],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    let packages = situation.machine.packages();
    let empty = packages.into_iter().filter_map(|(package, cpus)| {
        let of_it: NodeSet = cpus.iter().filter_map(|cpu| situation.machine.node_of(cpu)).collect();
        let is_empty = |node| {
            let node = situation.machine.nodes.get(&node);
            node.is_some_and(|node| node.memory_total().is_some() && !node.has_memory())
        };
        (!of_it.is_empty() && of_it.iter().all(is_empty)).then_some((package, of_it))
    });
    let (mut at, mut without) = (BTreeSet::new(), NodeSet::new());
    for (package, of_it) in empty.filter(|(package, _)| modules(situation, *package) > 0) {
        at.insert(package);
        without = without.union(&of_it);
    }
    if without.is_empty() {
        return Vec::new();
    }
    let count = at.iter().map(|package| modules(situation, *package)).sum::<usize>();
    let summary = format!(
        "{} in the slots of {}, and no memory on {}",
        plural(count, "module"),
        plural(at.len(), "package"),
        nodes(&without)
    );
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, Subject::Nodes(without.clone()), summary);
    finding.confidence = Confidence::Likely;
    finding.evidence = vec![
        Evidence::new("modules there", Value::Count(count as u64, ""), shown::SLOTS),
        Evidence::new(format!("memory of {}", nodes(&without)), Value::text("none"), shown::NODE_MEMINFO),
        Evidence::new("memory is on", Value::text(nodes(&situation.memory_nodes())), shown::NODE_MEMINFO),
    ];
    finding.cause = Some("the firmware's SRAT gives the memory of these slots to other nodes".to_owned());
    finding.mends = vec![Mend::words(
        "newer firmware; until then no setting of the kernel brings that memory to its own node (nodewise acpi shows the \
         tables)",
        Scope::Reboot,
    )];
    vec![finding]
}

/// Modules that are wired to a package. Those whose place comes from their addresses have the node of the same table.
fn modules(situation: &Situation<'_>, package: PackageId) -> usize {
    let slots = situation.machine.memory_slots.slots.iter();
    let wired =
        slots.filter(|slot| slot.package == Some(package) && slot.place != Some(SlotPlace::Addresses));
    wired.filter(|slot| matches!(slot.state, SlotState::Installed(_))).count()
}
