//! The kubelet's topology manager does not start with this number of nodes.

use nodewise_machine::printable::quote;
use nodewise_source::paths::shown;

use crate::finding::{Confidence, Evidence, Mend, RuleFinding, Scope, Severity, Subject, Value};
use crate::rule::{Fact, Rule, several_nodes};
use crate::situation::Situation;

/// Nodes that it takes without an option.
const MOST: u64 = 8;

pub static RULE: Rule = Rule {
    id: "kubelet-too-many-nodes",
    title: "the kubelet's topology manager does not start with this number of nodes",
    severity: Severity::Warning,
    on: several_nodes,
    needs: &[Fact::Kubelet],
    sign: "more than 8 nodes, a topologyManagerPolicy other than none, and no max-allowable-numa-nodes of at least as many",
    thresholds: &[],
    traps: "an option on the kubelet's command line, which is not read",
    explains: &[],
    sources: &["kubernetes#124144: more than 8 nodes", "kubernetes/website#55714: the option is a number"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    let Some(config) = situation.site.and_then(|site| site.kubelet.known()) else { return Vec::new() };
    let count = situation.machine.nodes.len() as u64;
    let policy = config.topology_manager.as_deref().unwrap_or("none");
    let most = config.most_nodes.map_or(MOST, u64::from).max(MOST);
    if count <= most || policy == "none" {
        return Vec::new();
    }
    let summary = format!("{count} nodes, and the policy {} takes {most} at most", quote(policy));
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, Subject::Machine, summary);
    finding.confidence = Confidence::Likely;
    finding.evidence = vec![
        Evidence::new("nodes", Value::Count(count, ""), shown::NODE_CPUS)
            .against(Value::Count(most, ""), "the kubelet's own limit"),
        Evidence::new("topologyManagerPolicy", Value::text(quote(policy).to_string()), shown::KUBELET),
    ];
    finding.mends = vec![Mend::words(
        format!(
            "in the kubelet's configuration below topologyManagerPolicyOptions: max-allowable-numa-nodes: \"{count}\"; or fewer \
             nodes in the firmware's setup"
        ),
        Scope::Restart,
    )];
    vec![finding]
}
