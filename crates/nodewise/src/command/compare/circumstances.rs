//! Circumstances of a session besides [`nodewise_machine::conditions`]: anything that a change before the
//! next session may be, or may come with.

use std::collections::BTreeMap;

use nodewise_experiment::suite::session::Session;
use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::{Bytes, Machine};
use nodewise_source::capture::command_line;
use nodewise_source::system;
use nodewise_source::tree::Tree;
use nodewise_syscall::mempolicy;

/// The name of the nodes that are online.
pub const NODES: &str = "nodes";
/// The name of the policy that a program begins with.
pub const POLICY: &str = "policy of a new program";

/// The name of the kernel's command line.
const COMMAND_LINE: &str = "kernel command line";

/// The settings by the names that tables give them; what is not known is left out.
pub fn settings(machine: &Machine) -> BTreeMap<String, String> {
    let settings = &machine.settings;
    let number = |value: Option<u32>| value.map(|value| value.to_string());
    let known = [
        (COMMAND_LINE, settings.command_line.as_deref().map(identified_by_nothing)),
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
    known.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect_map()
}

/// Hides in a saved session what identifies its machine, as in a new one: otherwise the two differ where
/// nothing has changed.
pub fn hide_identity(session: &mut Session) {
    if let Some(line) = session.settings.get_mut(COMMAND_LINE) {
        *line = identified_by_nothing(line);
    }
}

/// A kernel command line without the values of parameters that may identify the machine, e.g. `root=`.
fn identified_by_nothing(line: &str) -> String {
    command_line(line).trim_end().to_owned()
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
    fn a_session_holds_no_parameter_that_identifies_its_machine() {
        let line = "root=UUID=0f1e-77 numa=fake=2 hostname=venus mitigations=off ro";
        let hidden = "root=… numa=fake=2 hostname=… mitigations=off ro";
        let mut machine = nodewise_machine::spec::machine("2x(2c 4G)").unwrap();
        machine.settings.command_line = Some(line.to_owned());
        assert_eq!(settings(&machine).get(COMMAND_LINE).map(String::as_str), Some(hidden));
        // An older session saved all of it.
        let text = include_str!("../../../../../suites/recorded/pi4-with.json");
        let mut session = nodewise_view::json::suite::read(text).unwrap();
        session.settings.insert(COMMAND_LINE.to_owned(), line.to_owned());
        hide_identity(&mut session);
        assert_eq!(session.settings[COMMAND_LINE], hidden);
        hide_identity(&mut session);
        assert_eq!(session.settings[COMMAND_LINE], hidden, "what is hidden stays as it is");
    }

    #[test]
    fn memory_is_told_by_node() {
        let of = |spec: &str| memory(&nodewise_machine::spec::machine(spec).unwrap());
        assert_eq!(of("(4c 8G)").as_deref(), Some("8 GiB on 0"));
        assert_eq!(of("2x(2c 4G) (1G)").as_deref(), Some("4 GiB on each of 0,1; 1 GiB on 2"));
    }
}
