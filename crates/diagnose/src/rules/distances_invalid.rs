//! Distances that cannot be: the kernel shows or replaces a table of the firmware that breaks its own rules.

use nodewise_machine::distance::{LOCAL, REMOTE};
use nodewise_machine::printable::printable;
use nodewise_machine::{Machine, NodeId, NodeSet, OddityKind};
use nodewise_source::paths::shown;

use super::words::nodes;
use crate::finding::{Confidence, Evidence, Mend, RuleFinding, Scope, Severity, Subject, Value};
use crate::rule::{Fact, Rule, with_distance};
use crate::situation::Situation;

/// The distance of nodes that cannot reach each other.
const UNREACHABLE: u32 = 255;
/// The most pairs that a finding names.
const MOST_PAIRS: usize = 4;

pub static RULE: Rule = Rule {
    id: "distances-invalid",
    title: "distances of nodes cannot be, or the kernel rejects the firmware's table of them",
    severity: Severity::Note,
    on: with_distance,
    needs: &[Fact::Distances],
    sign: "the distance of a node to itself is not 10, that of two nodes is missing, not above 10, or 255 and more, or the \
           kernel rejects the SLIT (where the tables of the firmware were read)",
    thresholds: &[],
    traps: "distances that differ by direction, which some machines have; a table that was rejected while all nodes are \
            equally far apart loses nothing",
    explains: &["distances-flat", "guest-distances-flat"],
    sources: &[
        "ACPI 6.5, 5.2.17: a node is at 10 from itself, less has no meaning, and 255 is unreachable",
        "slit_valid in drivers/acpi/numa/srat.c, Linux 6.12",
        "xen-api#6240",
    ],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    diagnose(situation.machine).into_iter().collect()
}

fn diagnose(machine: &Machine) -> Option<RuleFinding> {
    let wrong = wrong_pairs(machine);
    let rejected = rejected_table(machine);
    if wrong.is_empty() && rejected.is_none() {
        return None;
    }
    let mut subjects = NodeSet::new();
    for (from, to, _) in &wrong {
        subjects.extend([*from, *to]);
    }
    let (subject, summary) = match wrong.len() {
        0 => (Subject::Machine, "the kernel rejects the firmware's table of distances".to_owned()),
        1 => (Subject::Nodes(subjects.clone()), format!("a distance of {} cannot be", nodes(&subjects))),
        count => {
            (Subject::Nodes(subjects.clone()), format!("{count} distances of {} cannot be", nodes(&subjects)))
        }
    };
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, subject, summary);
    finding.confidence = Confidence::Certain;
    for (from, to, distance) in wrong.iter().take(MOST_PAIRS) {
        let value = distance.map_or_else(|| "missing".to_owned(), |distance| distance.to_string());
        let others = || format!("{} to {}", LOCAL + 1, UNREACHABLE - 1);
        let expected = if from == to { LOCAL.to_string() } else { others() };
        let evidence =
            Evidence::new(format!("from node {from} to node {to}"), Value::text(value), shown::NODE_DISTANCE);
        finding.evidence.push(evidence.against(Value::text(expected), "ACPI 6.5, 5.2.17"));
    }
    if let Some(why) = rejected {
        finding.evidence.push(Evidence::new("the table", Value::text(why), shown::ACPI_SLIT));
    }
    finding.cause = Some(format!(
        "where a table is rejected, all nodes are {REMOTE} apart, and memory that a node lacks is taken from nodes by number"
    ));
    finding.mends = vec![Mend::words(
        "an update of the firmware, or of the definition of the virtual machine; the kernel cannot be given other distances",
        Scope::Reboot,
    )];
    finding.experiment =
        Some("nodewise acpi names the wrong bytes, and nodewise latency measures the ways".to_owned());
    Some(finding)
}

/// Pairs whose distance is none.
fn wrong_pairs(machine: &Machine) -> Vec<(NodeId, NodeId, Option<u32>)> {
    let ids = machine.node_ids();
    let pairs = ids.iter().flat_map(|from| ids.iter().map(move |to| (from, to)));
    let all = pairs.map(|(from, to)| (from, to, machine.distance(from, to)));
    let is_wrong = |from: NodeId, to: NodeId, distance: Option<u32>| match distance {
        None => true,
        Some(distance) if from == to => distance != LOCAL,
        Some(distance) => distance <= LOCAL || distance >= UNREACHABLE,
    };
    all.filter(|(from, to, distance)| is_wrong(*from, *to, *distance)).collect()
}

/// The reason for which the kernel rejects the SLIT, where the firmware's tables were read and other distances are in force.
fn rejected_table(machine: &Machine) -> Option<String> {
    let replaced =
        |(from, to, distance): (NodeId, NodeId, &u32)| *distance == if from == to { LOCAL } else { REMOTE };
    if !machine.distances.iter().all(replaced) {
        return None;
    }
    let mut rejected = machine.oddities.iter().filter(|oddity| oddity.kind == OddityKind::FirmwareRejected);
    let oddity = rejected.find(|oddity| oddity.text.starts_with("SLIT"))?;
    Some(printable(&oddity.text).into_owned())
}
