//! Memory that a program locked for an accelerator is interleaved, or the program runs away from it.

use nodewise_machine::{Bytes, NodeSet, PolicyMode};
use nodewise_source::paths::shown;

use super::words::{self, nodes};
use crate::finding::{Confidence, Evidence, Mend, RuleFinding, Scope, Severity, Value};
use crate::rule::{Fact, Rule, with_distance};
use crate::situation::{ProcessState, Situation};
use crate::thresholds;

pub static RULE: Rule = Rule {
    id: "gpu-staging-interleaved",
    title: "memory that a program locked for an accelerator is interleaved over nodes away from it",
    severity: Severity::Warning,
    on: with_distance,
    needs: &[Fact::Policies, Fact::OpenFiles],
    sign: "a program with files of accelerators of one node open and at least 64 MiB locked or pinned, most of whose memory is \
           interleaved over other nodes, too",
    thresholds: &[&thresholds::SIGNIFICANT, &thresholds::SIGNIFICANT_SHARE, &thresholds::STAGING],
    traps: "coherent links, where distance costs little; a link of PCI Express that is the limit, where both nodes are equally fast; \
            accelerators of several nodes (silent)",
    explains: &["device-user-remote"],
    sources: &[
        "colibri#82: 2.32 tokens/s, interleaved 0.22",
        "gearshifft#82: 12.2 GB/s to the device, interleaved 3.8",
        "rocm_bandwidth_test#129: no difference",
    ],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    situation.significant().filter_map(|process| find(situation, process)).collect()
}

fn find(situation: &Situation<'_>, process: &ProcessState<'_>) -> Option<RuleFinding> {
    let program = process.program?;
    let computes = |name: &str| ["nvidia", "renderD", "accel"].iter().any(|stem| name.starts_with(stem));
    let open = program.devices.as_deref()?.iter().filter(|device| computes(&device.name));
    let on: NodeSet = open.filter_map(|device| device.node).collect();
    let node = on.first().filter(|_| on.len() == 1)?;
    let held: Bytes = program.locked.into_iter().chain(program.pinned).max()?;
    let interleaves = |mode| matches!(mode, PolicyMode::Interleave | PolicyMode::WeightedInterleave);
    let (policy, size) = process.policy().filter(|(policy, _)| interleaves(policy.mode))?;
    if held < situation.thresholds().size(&thresholds::STAGING) || policy.nodes.is_subset(&on) {
        return None;
    }
    let summary = format!(
        "{held} that {} locked lie under {policy}, its accelerators on node {node}",
        words::process(process)
    );
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, process.subject(), summary);
    finding.confidence = Confidence::Likely;
    finding.concerns = Some(held);
    finding.evidence = vec![
        Evidence::new("locked or pinned", Value::Size(held), shown::STATUS)
            .at(situation.thresholds(), &thresholds::STAGING),
        Evidence::new("interleaved", Value::Size(size), shown::NUMA_MAPS),
        Evidence::new("node of the accelerators", Value::text(node.to_string()), shown::OPEN_FILES),
    ];
    finding.mends = vec![Mend {
        commands: vec![format!("nodewise run --cpunodebind={node} --preferred={node} -- COMMAND")],
        ..Mend::words(
            format!(
                "buffers beside {}: interleave the weights alone, by the program's own option",
                nodes(&on)
            ),
            Scope::Restart,
        )
    }];
    finding.experiment = Some("nodewise tune -- COMMAND".to_owned());
    finding.nodes = policy.nodes.clone();
    Some(finding)
}
