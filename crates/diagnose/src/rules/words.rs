//! Nodes and processes in the sentences of findings.

use nodewise_machine::NodeSet;
use nodewise_machine::printable::quote;

use crate::situation::ProcessState;

/// `node 1`, `nodes 0-2`.
pub(super) fn nodes(nodes: &NodeSet) -> String {
    match nodes.len() {
        1 => format!("node {nodes}"),
        _ => format!("nodes {nodes}"),
    }
}

/// `"mysqld" (2417)`.
pub(super) fn process(process: &ProcessState<'_>) -> String {
    format!("{} ({})", quote(&process.process.name), process.pid())
}
