//! Kernel memory that cannot be reclaimed sits on one node.

use nodewise_machine::{Bytes, NodeId};
use nodewise_source::paths::shown;

use crate::finding::{Evidence, RuleFinding, Severity, Subject, Value};
use crate::rule::{Fact, Rule, several_nodes};
use crate::situation::Situation;
use crate::thresholds;

pub static RULE: Rule = Rule {
    id: "kernel-memory-lopsided",
    title: "kernel memory that cannot be reclaimed sits on one node",
    severity: Severity::Info,
    on: several_nodes,
    needs: &[Fact::NodeMemory],
    sign: "SUnreclaim, page tables and kernel stacks of a node are at least three times its fair share of them, and at \
           least 5 % of the node",
    thresholds: &[&thresholds::KERNEL_TIMES, &thresholds::KERNEL_SHARE, &thresholds::KERNEL_PART],
    traps: "with two nodes three times a fair share cannot be: then nine tenths of all count",
    explains: &[],
    sources: &["Documentation/filesystems/proc.rst: fields of meminfo"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    let held = |node: NodeId| -> Option<Bytes> {
        let sample = situation.now.node(node)?;
        let fields = ["SUnreclaim", "PageTables", "KernelStack"];
        Some(sample.size("SUnreclaim")? + fields[1..].iter().filter_map(|field| sample.size(field)).sum())
    };
    let nodes: Vec<(NodeId, Bytes)> =
        situation.memory_nodes().iter().filter_map(|node| Some((node, held(node)?))).collect();
    let all: Bytes = nodes.iter().map(|(_, size)| *size).sum();
    let total = situation.total();
    let find = |(node, size): &(NodeId, Bytes)| {
        let state = situation.nodes.get(node)?;
        let fair = state.size.get() as f64 / total.get() as f64;
        let share = size.get() as f64 / all.get().max(1) as f64;
        let limit = (situation.limit(&thresholds::KERNEL_TIMES) * fair)
            .min(situation.limit(&thresholds::KERNEL_SHARE));
        if share < limit || state.share(*size) < situation.limit(&thresholds::KERNEL_PART) {
            return None;
        }
        let summary = format!("{size} of the kernel's {all} that cannot be reclaimed are on node {node}");
        let mut finding = RuleFinding::new(RULE.id, RULE.severity, Subject::node(*node), summary);
        finding.concerns = Some(*size);
        finding.evidence = vec![
            Evidence::new("part of the kernel's", Value::Share(share), shown::NODE_MEMINFO).at_part(
                Value::Share(limit),
                situation.thresholds(),
                &thresholds::KERNEL_TIMES,
            ),
            Evidence::new("part of the node", Value::Share(state.share(*size)), shown::NODE_MEMINFO)
                .at(situation.thresholds(), &thresholds::KERNEL_PART),
        ];
        Some(finding)
    };
    nodes.iter().filter_map(find).collect()
}
