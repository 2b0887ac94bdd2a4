//! A virtual machine is strictly bound to nodes that have no room left.

use nodewise_machine::{Bytes, PolicyMode};
use nodewise_source::paths::shown;

use super::words::{self, nodes};
use crate::finding::{Confidence, Evidence, Mend, Owner, RuleFinding, Scope, Severity, Value};
use crate::rule::{Fact, Rule, several_nodes};
use crate::situation::{ProcessState, Situation};
use crate::thresholds;

pub static RULE: Rule = Rule {
    id: "libvirt-strict",
    title: "a virtual machine is strictly bound to nodes that have no room left",
    severity: Severity::Warning,
    on: several_nodes,
    needs: &[Fact::NodeMemory, Fact::Watermarks, Fact::Policies],
    sign: "a process of QEMU, Cloud Hypervisor or Firecracker whose memory is under a policy bind, and each of its nodes has \
           less free memory than its zones' high watermarks and less than 5 % available, while other nodes have more",
    thresholds: &[&thresholds::SIGNIFICANT, &thresholds::SIGNIFICANT_SHARE, &thresholds::STRICT_ROOM],
    traps: "a machine whose memory is all there (locked, or in pools of huge pages): it takes no more of the node",
    explains: &["bind-too-small", "node-at-watermark"],
    sources: &[
        "Red Hat Virtualization Tuning Guide 9.2: strict can kill",
        "tp-libvirt#4000: strict cannot be changed while the machine runs (libvirt 8.0)",
    ],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    let machines = situation.significant().filter(|process| process.is_virtual_machine());
    machines.filter_map(|process| find(situation, process)).collect()
}

fn find(situation: &Situation<'_>, process: &ProcessState<'_>) -> Option<RuleFinding> {
    let (policy, size) = process.policy().filter(|(policy, _)| policy.mode == PolicyMode::Bind)?;
    let all = situation.memory_nodes();
    let elsewhere = all.difference(&policy.nodes);
    // Pages of pools were taken from the node long ago.
    if elsewhere.is_empty() || process.share(process.in_pools()?) >= 0.5 {
        return None;
    }
    let least = situation.limit(&thresholds::STRICT_ROOM);
    let is_short = |node| {
        let state = situation.nodes.get(&node)?;
        Some(state.free < state.high? && state.room() < state.size.share(least))
    };
    let room = |nodes: &nodewise_machine::NodeSet| -> Bytes {
        nodes.iter().filter_map(|node| situation.nodes.get(&node)).map(|state| state.room()).sum()
    };
    if !policy.nodes.iter().all(|node| is_short(node) == Some(true))
        || room(&elsewhere) <= room(&policy.nodes)
    {
        return None;
    }
    let summary = format!(
        "{size} of the machine of {} are under {policy}, and {} has {} left",
        words::process(process),
        nodes(&policy.nodes),
        room(&policy.nodes)
    );
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, process.subject(), summary);
    finding.confidence = process.confidence.min(Confidence::Likely);
    finding.concerns = Some(size);
    let of_bound = policy
        .nodes
        .iter()
        .filter_map(|node| situation.nodes.get(&node))
        .map(|state| state.size)
        .sum::<Bytes>();
    finding.evidence = vec![
        Evidence::new(
            format!("available on {}", nodes(&policy.nodes)),
            Value::Size(room(&policy.nodes)),
            shown::NODE_MEMINFO,
        )
        .at_part(
            Value::Size(of_bound.share(least)),
            situation.thresholds(),
            &thresholds::STRICT_ROOM,
        ),
        Evidence::new(
            format!("available on {}", nodes(&elsewhere)),
            Value::Size(room(&elsewhere)),
            shown::NODE_MEMINFO,
        ),
    ];
    let what = match process.owner() {
        Owner::Libvirt(_) => {
            "<memory mode='preferred'/> below <numatune> of the machine's definition (mode restrictive keeps to its nodes \
             as well, by a cpuset, which can be widened while it runs)"
        }
        _ => "policy=preferred in place of policy=bind of its memory backend",
    };
    finding.mends = vec![Mend::words(
        format!(
            "{what}; a mode that is strict cannot be changed while it runs. Until then make room on the node"
        ),
        Scope::Restart,
    )];
    finding.nodes = policy.nodes.clone();
    Some(finding)
}
