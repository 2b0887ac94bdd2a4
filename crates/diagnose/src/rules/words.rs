//! Nodes and processes in the sentences of findings.

use nodewise_machine::NodeSet;
use nodewise_machine::printable::quote;

use nodewise_source::paths::shown;

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

/// The interval of a share of sampled pages.
pub(super) fn interval(fact: String, share: &ShareEstimate) -> Option<Evidence> {
    Some(Evidence::new(fact, Value::Text(share.interval()?), shown::MOVE_PAGES))
}

/// `"mysqld" (2417)`.
pub(super) fn process(process: &ProcessState<'_>) -> String {
    format!("{} ({})", quote(&process.process.name), process.pid())
}
