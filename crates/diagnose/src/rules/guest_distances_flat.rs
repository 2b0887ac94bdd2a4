//! A virtual machine shows three nodes or more, all equally far from each other.

use std::collections::BTreeSet;

use nodewise_machine::order::CollectOrdered as _;
use nodewise_source::paths::shown;

use crate::finding::{Confidence, Evidence, Mend, RuleFinding, Scope, Severity, Subject, Value};
use crate::rule::{Fact, Rule, with_distance};
use crate::situation::Situation;

pub static RULE: Rule = Rule {
    id: "guest-distances-flat",
    title: "a virtual machine shows all its nodes equally far apart",
    severity: Severity::Info,
    on: with_distance,
    needs: &[Fact::Distances],
    sign: "a virtual machine, at least three nodes with memory, and the distance 20 between all of them, which a hypervisor gives \
           where its definition has none",
    thresholds: &[],
    traps: "a host whose nodes are equally far apart; where it is not known that this is a virtual machine the rule is silent",
    explains: &["distances-flat"],
    sources: &["kubevirt#18829", "QEMU documentation: -numa dist"],
    check,
};

/// The distance of nodes that have none in their definition.
const DEFAULT: u32 = 20;

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    let nodes = situation.memory_nodes();
    let pairs =
        nodes.iter().flat_map(|from| nodes.iter().filter(move |to| *to != from).map(move |to| (from, to)));
    let remote: BTreeSet<Option<u32>> =
        pairs.map(|(from, to)| situation.machine.distance(from, to)).collect_set();
    let is_flat = remote == BTreeSet::from([Some(DEFAULT)]);
    if situation.virtual_machine != Some(true) || nodes.len() < 3 || !is_flat {
        return Vec::new();
    }
    let summary = format!("{} nodes, all {DEFAULT} apart: the hypervisor's default", nodes.len());
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, Subject::Machine, summary);
    finding.confidence = Confidence::Possible;
    finding.evidence =
        vec![Evidence::new("every remote distance", Value::text(DEFAULT.to_string()), shown::NODE_DISTANCE)];
    finding.cause = Some("the definition of the virtual machine has cells without distances".to_owned());
    finding.mends = vec![Mend::words(
        "the host's distances in the definition: <distances> of libvirt's <cell>, -numa dist of QEMU",
        Scope::Reboot,
    )];
    finding.experiment = Some("nodewise latency measures the ways".to_owned());
    vec![finding]
}
