//! The mappings of a process at two moments, a line per mapping and node.

use nodewise_machine::Bytes;

use super::optional;
use crate::digest::maps::comparison::{MapsComparison, TallyPair};

/// Writes the mappings; for different processes the kinds, without addresses. A mapping without pages at both
/// moments has a line without a node.
pub fn maps_comparison(comparison: &MapsComparison<'_>) -> String {
    let mut text = String::from("state,start,end,kind,file,node,before_bytes,after_bytes,change_bytes\n");
    if !comparison.is_same {
        for (kind, pair) in comparison.kinds() {
            lines(&format!("other_process,,,{},", kind.key()), &pair, &mut text);
        }
        return text;
    }
    for pair in comparison.mappings() {
        let Some(mapping) = pair.any() else { continue };
        let state = match (pair.before, pair.after) {
            (Some(_), Some(_)) => "stayed",
            (None, _) => "came",
            (Some(_), None) => "went",
        };
        let head = [
            state.to_owned(),
            format!("{:x}", mapping.start),
            format!("{:x}", mapping.end),
            mapping.kind.key().to_owned(),
            optional(mapping.name.as_deref()),
        ];
        lines(&head.join(","), &pair.tallies(), &mut text);
    }
    text
}

fn lines(head: &str, pair: &TallyPair, text: &mut String) {
    let nodes = pair.before.nodes().union(&pair.after.nodes());
    let mut line = |node: String, before: Bytes, after: Bytes, change: i128| {
        text.push_str(&format!("{head},{node},{},{},{change}\n", before.get(), after.get()));
    };
    if nodes.is_empty() {
        line(String::new(), pair.before.all(), pair.after.all(), pair.all());
    }
    for node in &nodes {
        let (before, after) = (pair.before.on(node).size, pair.after.on(node).size);
        line(node.to_string(), before, after, pair.on(node).change);
    }
}
