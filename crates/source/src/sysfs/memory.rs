//! Comparison of the memory information that is given twice for a node.

use std::collections::BTreeSet;

use nodewise_machine::check::node_names;
use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::{Machine, Node, NodeSet, OddityKind};

use super::Reader;
use crate::paths;

/// Notes where the fields of a node contradict each other, and where a node lacks a field that others have.
pub(super) fn compare(reader: &mut Reader<'_>, machine: &Machine) {
    let known = || machine.nodes.values().filter(|node| !node.meminfo.is_empty());
    let all: BTreeSet<&str> = known().flat_map(fields).collect_set();
    for node in known() {
        let path = paths::of_node(node.id, "meminfo");
        if let Some(text) = contradiction(node) {
            reader.note_in(OddityKind::Disagreement, &path, text);
        }
        // A line that does not parse was noted as such.
        if reader.has_noted(&path) {
            continue;
        }
        let own: BTreeSet<&str> = fields(node).collect_set();
        let lacking: Vec<&str> = all.difference(&own).copied().collect();
        if let Some(first) = lacking.first() {
            let others = match lacking.len() - 1 {
                0 => String::new(),
                1 => " and one other field".to_owned(),
                others => format!(" and {others} other fields"),
            };
            let having = known().filter(|other| fields(other).any(|field| field == *first));
            let having: NodeSet = having.map(|node| node.id).collect();
            let verb = if having.len() == 1 { "has" } else { "have" };
            let text = format!("it lacks {first}{others}, which {} {verb}", node_names(&having));
            reader.note_in(OddityKind::Disagreement, &path, text);
        }
    }
}

fn fields(node: &Node) -> impl Iterator<Item = &str> {
    node.meminfo.iter().map(|field| field.name.as_str())
}

/// The kernel prints what is used as the difference of what there is and what is free, of one moment.
///
/// # Source
/// `node_read_meminfo` in `drivers/base/node.c`: `MemUsed` is `totalram - freeram`.
fn contradiction(node: &Node) -> Option<String> {
    let kib = |field: &str| node.size_of(field).map(|size| size.get() >> 10);
    let (total, free) = (kib("MemTotal")?, kib("MemFree")?);
    if free > total {
        return Some(format!("MemFree is {free} kB, more than MemTotal, {total} kB"));
    }
    let used = kib("MemUsed").filter(|used| *used != total - free)?;
    let text = format!("MemTotal, {total} kB, less MemFree, {free} kB, is not MemUsed, {used} kB");
    Some(text + ": one of them is wrong")
}
