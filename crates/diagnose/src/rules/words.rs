//! Nodes and processes in the sentences of findings.

use nodewise_machine::printable::quote;
use nodewise_machine::{CpuSet, NodeSet};

use nodewise_source::paths::shown;
use nodewise_source::sample::Sample;

use crate::finding::{Evidence, Value};
use crate::situation::ProcessState;
use crate::situation::pages::ShareEstimate;

/// `node 1`, `nodes 0-2`.
pub(super) fn nodes(nodes: &NodeSet) -> String {
    match nodes.len() {
        1 => format!("node {nodes}"),
        _ => format!("nodes {nodes}"),
    }
}

/// The nodes of CPUs; `no node` where they have none.
pub(super) fn nodes_of(cpus: &CpuSet, sample: &Sample) -> String {
    let found: NodeSet = cpus.iter().filter_map(|cpu| sample.node_with_cpu(cpu)).collect();
    if found.is_empty() { "no node".to_owned() } else { nodes(&found) }
}

/// The interval of a share of sampled pages.
pub(super) fn interval(fact: String, share: &ShareEstimate) -> Option<Evidence> {
    Some(Evidence::new(fact, Value::Text(share.interval()?), shown::MOVE_PAGES))
}

/// `"mysqld" (2417)`.
pub(super) fn process(process: &ProcessState<'_>) -> String {
    format!("{} ({})", quote(&process.process.name), process.pid())
}
