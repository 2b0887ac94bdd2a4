//! A process's mappings, a line per mapping and node.

use super::{known, quoted};
use crate::digest::maps::{Maps, Tally, policy_words};

/// Writes the mappings. One without pages has a line without a node; the ends of an interval are empty where pages
/// were counted.
pub fn maps(maps: &Maps<'_>) -> String {
    let mut text =
        String::from("start,end,kind,file,policy,page_size_bytes,node,size_bytes,low_bytes,high_bytes\n");
    for mapping in &maps.process.mappings {
        let head = [
            format!("{:x}", mapping.start),
            format!("{:x}", mapping.end),
            mapping.kind.key().to_owned(),
            mapping.name.as_deref().map(quoted).unwrap_or_default(),
            policy_words(mapping).map(quoted).unwrap_or_default(),
            known(mapping.page_size.map(|size| size.get())),
        ]
        .join(",");
        let tally = Tally::from_mappings([mapping]);
        let nodes = tally.nodes();
        if nodes.is_empty() {
            text.push_str(&format!("{head},,{},,\n", known(mapping.resident().map(|size| size.get()))));
        }
        for node in &nodes {
            let estimate = tally.on(node);
            let ends =
                [estimate.low, estimate.high].map(|end| known((!estimate.is_exact()).then_some(end.get())));
            text.push_str(&format!("{head},{node},{},{},{}\n", estimate.size.get(), ends[0], ends[1]));
        }
    }
    text
}
