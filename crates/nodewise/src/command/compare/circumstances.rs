//! What a session notes of the system besides [`nodewise_machine::conditions`]: what a change before the
//! next session may be, or may come with.

use std::collections::BTreeMap;

use nodewise_machine::{Bytes, Machine};
use nodewise_source::system;
use nodewise_source::tree::Tree;
use nodewise_syscall::mempolicy;

/// The name of the nodes that are online.
pub const NODES: &str = "nodes";
/// The name of the policy that a program begins with.
pub const POLICY: &str = "policy of a new program";

/// The settings by the names that tables give them; what is not known is left out.
pub fn settings(machine: &Machine) -> BTreeMap<String, String> {
    let settings = &machine.settings;
    let number = |value: Option<u32>| value.map(|value| value.to_string());
    let known = [
        ("kernel command line", settings.command_line.clone()),
        ("microcode", system::microcode(&Tree::live())),
        (NODES, Some(machine.node_ids().to_string()).filter(|nodes| !nodes.is_empty())),
        ("memory by node", memory(machine)),
        ("online CPUs", Some(machine.online_cpus().to_string()).filter(|cpus| !cpus.is_empty())),
        (POLICY, mempolicy::thread_policy().ok().map(|policy| policy.to_string())),
        ("zone_reclaim_mode", number(settings.zone_reclaim_mode)),
        ("swappiness", number(settings.swappiness)),
        ("transparent huge pages, defrag", settings.transparent_hugepage_defrag.clone()),
        ("demotion", settings.demotion_enabled.map(|on| if on { "on" } else { "off" }.to_owned())),
        ("interleave weights", weights(machine)),
    ];
    known.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// Memory of each node, nodes of the same size together. To the nearest 16 MiB: what the kernel keeps for
/// itself differs a little from start to start.
fn memory(machine: &Machine) -> Option<String> {
    const STEP: u64 = 16 << 20;
    let mut by_size: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for node in machine.nodes.values() {
        let size = machine.memory_of(node.id)?.get();
        by_size.entry((size + STEP / 2) / STEP * STEP).or_default().push(node.id.to_string());
    }
    let words = by_size.iter().rev().map(|(size, nodes)| match nodes.len() {
        1 => format!("{} on {}", Bytes::new(*size), nodes[0]),
        _ => format!("{} on each of {}", Bytes::new(*size), nodes.join(",")),
    });
    let text = words.collect::<Vec<_>>().join("; ");
    (!text.is_empty()).then_some(text)
}

fn weights(machine: &Machine) -> Option<String> {
    let weights = machine.settings.interleave_weights.iter();
    let text = weights.map(|(node, weight)| format!("{node}:{weight}")).collect::<Vec<_>>().join(",");
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_told_by_node() {
        let of = |spec: &str| memory(&nodewise_machine::spec::machine(spec).unwrap());
        assert_eq!(of("(4c 8G)").as_deref(), Some("8 GiB on 0"));
        assert_eq!(of("2x(2c 4G) (1G)").as_deref(), Some("4 GiB on each of 0,1; 1 GiB on 2"));
    }
}
