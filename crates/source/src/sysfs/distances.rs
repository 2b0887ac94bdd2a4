//! Distances: which node a number in a row stands for.

use nodewise_machine::{Machine, NodeId, NodeMatrix, NodeSet, OddityKind};

use super::Reader;
use crate::parse::distance;
use crate::paths;

/// Fills the distances.
///
/// The kernel prints one number per *online* node, so a row is matched with those; a kernel that
/// was caught while a node went offline prints one per possible node.
pub(super) fn read(reader: &mut Reader<'_>, machine: &mut Machine, online: Option<&NodeSet>) {
    let existing = machine.node_ids();
    let online = online.unwrap_or(&existing);
    let mut matrix = NodeMatrix::new(&existing);
    for from in &existing {
        let path = paths::of_node(from, "distance");
        let Some(row) = reader.value(&path, distance::parse) else { continue };
        let columns: Vec<NodeId> = if row.len() == online.len() {
            online.iter().collect()
        } else if row.len() == existing.len() {
            existing.iter().collect()
        } else if row.len() == machine.possible_nodes.len() {
            let text = format!("{}: read as one per possible node", mismatch(row.len(), online.len()));
            reader.note_in(OddityKind::Disagreement, &path, text);
            machine.possible_nodes.iter().collect()
        } else {
            let text = format!("{}: the row is left out", mismatch(row.len(), online.len()));
            reader.note_in(OddityKind::Disagreement, &path, text);
            continue;
        };
        for (to, distance) in columns.into_iter().zip(row) {
            matrix.set(from, to, distance);
        }
    }
    if !matrix.is_empty() {
        machine.distances = matrix;
    }
}

fn mismatch(numbers: usize, nodes: usize) -> String {
    format!(
        "it has {numbers} number{}, expected {nodes} (one per online node)",
        if numbers == 1 { "" } else { "s" }
    )
}
