//! `--node-memory`: sizes of nodes that a machine does not give.

use nodewise_machine::check::node_names;
use nodewise_machine::printable::quote;
use nodewise_machine::{Bytes, Machine, MeminfoField, NodeSet, OddityKind};
use nodewise_source::parse::set;

/// Gives nodes of unknown size the sizes that were typed.
///
/// # Errors
/// What is not a size, and a node that does not exist or whose size is known.
pub fn supply(machine: &mut Machine, typed: &[String]) -> Result<(), String> {
    for text in typed {
        let wrong = |why: String| format!("--node-memory: {why}");
        let unknown = machine.nodes_of_unknown_size();
        if unknown.is_empty() && !text.contains('=') {
            return Err(wrong("the machine gives the size of all its nodes".to_owned()));
        }
        let (nodes, size) = read(machine, text, unknown).map_err(wrong)?;
        let known = nodes.difference(&machine.nodes_of_unknown_size());
        if !known.is_empty() {
            return Err(wrong(format!("the machine gives the size of {}", node_names(&known))));
        }
        for node in machine.nodes.values_mut().filter(|node| nodes.contains(node.id)) {
            node.meminfo.push(MeminfoField::total(size));
        }
    }
    if !typed.is_empty() && machine.nodes_of_unknown_size().is_empty() {
        machine.oddities.retain(|oddity| oddity.kind != OddityKind::MemoryUnknown);
    }
    Ok(())
}

/// The nodes of `64G`, which are all `others`, or of `0-1=64G`, and the size.
///
/// # Errors
/// What is not a size, and nodes that do not exist.
pub fn read(machine: &Machine, text: &str, others: NodeSet) -> Result<(NodeSet, Bytes), String> {
    let wrong = || format!("{} is not a size: expected one such as 64G or 0-1=64G", quote(text));
    let (nodes, size) = match text.split_once('=') {
        Some((nodes, size)) => (set::list(nodes).map_err(|_| wrong())?, size),
        None => (others, text),
    };
    let gone = nodes.difference(&machine.node_ids());
    if !gone.is_empty() {
        let (gone, all) = (node_names(&gone), node_names(&machine.node_ids()));
        return Err(format!("{gone} not found: this machine has {all}"));
    }
    Ok((nodes, size.parse().map_err(|_| wrong())?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::{NodeId, spec};

    fn check(typed: &[&str], expected: Result<[u64; 3], &str>) {
        let mut machine = spec::machine("3x(1c 1G)").unwrap();
        for node in [1, 2] {
            machine.nodes.get_mut(&NodeId::new(node)).unwrap().meminfo.clear();
        }
        let typed: Vec<String> = typed.iter().map(ToString::to_string).collect();
        let done = supply(&mut machine, &typed);
        let size = |node| machine.memory_of(NodeId::new(node)).map_or(0, |size| size.get() >> 30);
        assert_eq!(done.map(|()| [0, 1, 2].map(size)), expected.map_err(str::to_owned));
    }

    #[test]
    fn sizes_are_supplied_where_the_machine_gives_none() {
        check(&[], Ok([1, 0, 0]));
        check(&["64G"], Ok([1, 64, 64]));
        check(&["1=64G"], Ok([1, 64, 0]));
        check(&["1=64G", "2=0"], Ok([1, 64, 0]));
        check(&["0-1=64G"], Err("--node-memory: the machine gives the size of node 0"));
        check(&["7=64G"], Err("--node-memory: node 7 not found: this machine has nodes 0-2"));
        check(&["64G", "64G"], Err("--node-memory: the machine gives the size of all its nodes"));
        let wrong = "--node-memory: \"much\" is not a size: expected one such as 64G or 0-1=64G";
        check(&["much"], Err(wrong));
    }
}
