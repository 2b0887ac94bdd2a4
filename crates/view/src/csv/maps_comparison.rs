//! The mappings of a process at two moments, a line per mapping and node.

use super::{known, optional};
use crate::digest::estimate::{Estimate, SizeChange};
use crate::digest::maps::comparison::{MapsComparison, TallyPair};

/// The first line.
const HEAD: &str =
    "state,start,end,kind,file,node,before_bytes,after_bytes,change_bytes,low_bytes,high_bytes\n";

/// Writes the mappings; for different processes the kinds, without addresses. A mapping without pages at both
/// moments has a line without a node. What is not known is empty, and so are the ends of a change where pages were
/// counted.
pub fn maps_comparison(comparison: &MapsComparison<'_>) -> String {
    let mut text = String::from(HEAD);
    if !comparison.is_same {
        for (kind, pair) in comparison.kinds() {
            lines(&format!("other_process,,,{},", kind.key()), &pair, &mut text);
        }
        return text;
    }
    for pair in comparison.mappings() {
        let Some(mapping) = pair.any() else { continue };
        let head = [
            pair.state().word().to_owned(),
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
    let nodes = pair.nodes();
    let mut line = |node: String, sizes: [Option<Estimate>; 2], change: Option<SizeChange>| {
        let [before, after] = sizes.map(|size| known(size.map(|size| size.size.get())));
        let (low, high) = change.and_then(SizeChange::ends).unzip();
        let (low, high) = (known(low), known(high));
        let change = known(change.map(|change| change.change));
        text.push_str(&format!("{head},{node},{before},{after},{change},{low},{high}\n"));
    };
    if nodes.is_empty() {
        line(String::new(), [pair.before.present(), pair.after.present()], pair.all());
    }
    for node in &nodes {
        let sizes = [pair.before.known_on(node), pair.after.known_on(node)];
        line(node.to_string(), sizes, pair.on(node));
    }
}
