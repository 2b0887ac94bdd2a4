//! Free memory, page cache and swap that are typed in the place of what the machine says.

use nodewise_machine::{Bytes, Machine, NodeSet};

use crate::cli::explain::Explain;
use crate::node_memory;

/// Gives a machine what was typed; the nodes that it changes.
///
/// # Errors
/// What is not a size, nodes that do not exist, and more than a node has.
pub(super) fn supply(machine: &mut Machine, args: &Explain) -> Result<NodeSet, String> {
    machine.swap_free = args.swap.or(machine.swap_free);
    let mut changed = NodeSet::new();
    // The cache first: what is free then leaves it what is left.
    for (option, texts) in [("--cache", &args.cache), ("--free", &args.free)] {
        for text in texts {
            let wrong = |why: String| format!("{option}: {why}");
            let (nodes, size) =
                node_memory::read(machine, text, machine.nodes_with_memory()).map_err(wrong)?;
            for node in &nodes {
                set(machine, node, option, size).map_err(wrong)?;
                changed.insert(node);
            }
        }
    }
    Ok(changed)
}

fn set(machine: &mut Machine, id: nodewise_machine::NodeId, option: &str, size: Bytes) -> Result<(), String> {
    let all = machine.memory_of(id).unwrap_or_default();
    if size > all {
        return Err(format!("node {id} has {all}"));
    }
    let left = Bytes::new(all.get() - size.get());
    let Some(node) = machine.nodes.get_mut(&id) else { return Ok(()) };
    let files = ["Active(file)", "Inactive(file)"].map(|field| node.size_of(field).unwrap_or_default().get());
    let cache = Bytes::new(files.iter().fold(0, |sum, size| sum.saturating_add(*size)));
    match option {
        "--cache" => node.set_use(node.memory_free().unwrap_or(left).min(left), size),
        _ => node.set_use(size, cache.min(left)),
    }
    Ok(())
}
