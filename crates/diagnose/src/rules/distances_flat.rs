//! All nodes are equally far from each other although they belong to several packages.

use std::collections::BTreeSet;

use nodewise_machine::order::CollectOrdered as _;
use nodewise_source::paths::shown;

use crate::finding::{Confidence, Evidence, Mend, RuleFinding, Scope, Severity, Subject, Value};
use crate::rule::{Fact, Rule, with_distance};
use crate::situation::Situation;

pub static RULE: Rule = Rule {
    id: "distances-flat",
    title: "all nodes are equally far apart although several share a package",
    severity: Severity::Info,
    on: with_distance,
    needs: &[Fact::Distances, Fact::Packages],
    sign: "at least four nodes in two packages or more, several to a package, and one distance between all of them",
    thresholds: &[],
    traps: "machines whose fabric is uniform",
    explains: &[],
    sources: &["kubevirt#18829", "ACPI 6.5, 5.2.17: the SLIT"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    let machine = situation.machine;
    let nodes: Vec<_> = machine.nodes_with_cpus().iter().collect();
    let pairs =
        nodes.iter().flat_map(|from| nodes.iter().filter(move |to| *to != from).map(move |to| (*from, *to)));
    let remote: BTreeSet<Option<u32>> = pairs.map(|(from, to)| machine.distance(from, to)).collect_set();
    let packages = machine.packages().len();
    let (Some(Some(distance)), 1) = (remote.first().copied(), remote.len()) else { return Vec::new() };
    if nodes.len() < 4 || packages < 2 || nodes.len() <= packages {
        return Vec::new();
    }
    let summary = format!("{} nodes in {packages} packages, all {distance} apart", nodes.len());
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, Subject::Machine, summary);
    finding.confidence = Confidence::Possible;
    finding.evidence =
        vec![Evidence::new("every remote distance", Value::text(distance.to_string()), shown::NODE_DISTANCE)];
    finding.cause = Some(
        "memory that a node lacks is then taken from nodes by number, not from the same package".to_owned(),
    );
    finding.mends = vec![Mend::words(
        "an update of the firmware, or <distances> in the definition of the virtual machine",
        Scope::Reboot,
    )];
    finding.experiment = Some("nodewise latency measures the ways".to_owned());
    vec![finding]
}
