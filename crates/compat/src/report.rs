//! The results of the small tools, as JSON behind `--json`.

use std::io::Write;

use nodewise_machine::{NodeId, NodeSet};
use nodewise_syscall::pages::PageCounts;
use serde_json::{Value, json};

/// Writes a document and ends its last line.
pub fn write(out: &mut dyn Write, document: &Value) {
    let _ = serde_json::to_writer_pretty(&mut *out, document);
    let _ = out.write_all(b"\n");
}

/// The numbers of nodes.
pub fn numbers(nodes: &NodeSet) -> Value {
    nodes.iter().map(NodeId::number).collect()
}

/// Where pages are; `null` where the kernel does not say.
pub fn places<E>(counts: Result<PageCounts, E>) -> Value {
    let Ok(counts) = counts else { return Value::Null };
    let place = |node: NodeId| json!({ "node": node.number(), "pages": counts.on(node) });
    counts.node_set().iter().map(place).collect()
}
