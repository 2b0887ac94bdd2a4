//! The SLIT: distances by domain to distances by node.
//!
//! # Source
//! `slit_valid` and `acpi_parse_slit`, `numa_alloc_distance`.

use std::collections::BTreeMap;

use nodewise_machine::check::node_names;
use nodewise_machine::firmware::slit::FIXED;
use nodewise_machine::firmware::{Slit, srat};
use nodewise_machine::plural::by_count;
use nodewise_machine::{NodeId, NodeMatrix, NodeSet};

use super::domains::Domains;
use super::note::{Note, NoteKind};
use crate::distance::{LOCAL, default_distances};

const TABLE: &str = "SLIT";

/// Distances between nodes. Those that no table gives are 10 and 20, and so are those of nodes
/// that were made after the table was read.
pub(super) fn between(
    nodes: &NodeSet,
    domains: &Domains,
    slit: Option<&Slit>,
    notes: &mut Vec<Note>,
) -> NodeMatrix<u32> {
    if slit.is_none() && nodes.len() > 1 {
        let text = "the table is missing, so distances are 10 and 20";
        notes.push(Note::new(NoteKind::Assumed, TABLE, text));
    }
    let slit = slit.filter(|slit| is_used(slit, notes));
    let by_node: BTreeMap<NodeId, u32> = domains.by_node();
    let mut matrix = default_distances(nodes);
    let mut beyond = NodeSet::new();
    for from in nodes {
        for to in nodes {
            let pair = by_node.get(&from).zip(by_node.get(&to));
            let told = slit.zip(pair).and_then(|(slit, (from, to))| slit.distance(*from, *to));
            if slit.is_some() && told.is_none() && pair.is_some() {
                beyond.insert(from.max(to));
            }
            if let Some(distance) = told {
                matrix.set(from, to, distance.into());
            }
        }
    }
    if !beyond.is_empty() {
        let domains = by_count(&beyond.len(), "domain", "domains");
        let beyond = node_names(&beyond);
        let text =
            format!("its localities end before the {domains} of {beyond}: distances there are 10 and 20");
        notes.push(Note::new(NoteKind::Unusual, TABLE, text));
    }
    if let Some(slit) = slit {
        note_unused(slit, domains, notes);
    }
    matrix
}

/// All of the table is used, or nothing of it.
fn is_used(slit: &Slit, notes: &mut Vec<Note>) -> bool {
    let mut reject = |offset, text: String| {
        let text = format!("{text}: the kernel rejects the table, and distances are 10 and 20");
        notes.push(Note::at(NoteKind::Rejected, TABLE, offset, text));
        false
    };
    if !slit.is_whole() {
        return reject(FIXED - 8, format!("{} localities, and not all their distances", slit.localities));
    }
    for (from, row) in slit.rows().enumerate() {
        for (to, cell) in row.iter().enumerate() {
            let offset = FIXED + from * row.len() + to;
            if from == to && u32::from(*cell) != LOCAL {
                return reject(offset, format!("the distance of domain {from} to itself is {cell}, not 10"));
            }
            if from != to && u32::from(*cell) <= LOCAL {
                let text = format!("the distance from domain {from} to {to} is {cell}, not above 10");
                return reject(offset, text);
            }
        }
    }
    true
}

/// Localities that no structure of the SRAT names.
fn note_unused(slit: &Slit, domains: &Domains, notes: &mut Vec<Note>) {
    let limit = u32::try_from(slit.localities).unwrap_or(u32::MAX);
    let unused: Vec<String> = (0..limit)
        .filter(|domain| domains.node(*domain).is_none())
        .map(|domain| domain.to_string())
        .collect();
    if unused.is_empty() {
        return;
    }
    let shown = if unused.len() > 8 { format!("{}, ...", unused[..8].join(", ")) } else { unused.join(", ") };
    let text = format!(
        "{} localities, but no enabled structure of the {} names {}: {shown}",
        slit.localities,
        String::from_utf8_lossy(&srat::SIGNATURE),
        unused.len()
    );
    notes.push(Note::new(NoteKind::Unusual, TABLE, text));
}
