//! Labels for Node Feature Discovery, as a file in its folder `features.d`.
//!
//! # Source
//! Node Feature Discovery, "Customization guide", local source: a `name=value` per line; a value is a label, of at most 63
//! letters, digits, `-`, `_` and `.`.

use std::fmt::Write as _;

use nodewise_machine::Machine;
use nodewise_machine::distance::LOCAL;

use crate::digest::node::NodeKind;

/// The longest value of a label.
const LONGEST: usize = 63;

/// Writes what schedulers may choose by: how many nodes of each kind there are, and how far apart.
pub fn nfd(machine: &Machine) -> String {
    let of_kind = |wanted: NodeKind| {
        machine.nodes.values().filter(|node| NodeKind::from_node(machine, node) == wanted).count().to_string()
    };
    let remote = machine.distances.iter().filter(|(from, to, _)| from != to).map(|(.., distance)| *distance);
    let has_nodes = !machine.nodes.is_empty();
    let sizes: Option<Vec<u64>> =
        machine.memory_nodes().iter().map(|node| Some(machine.memory_of(node)?.get() >> 30)).collect();
    let labels = [
        ("nodes", has_nodes.then(|| machine.nodes.len().to_string())),
        ("nodes-memory-only", has_nodes.then(|| of_kind(NodeKind::MemoryOnly))),
        ("nodes-cpu-only", has_nodes.then(|| of_kind(NodeKind::CpuOnly))),
        (
            "packages",
            Some(machine.packages().len()).filter(|count| *count > 0).map(|count| count.to_string()),
        ),
        ("tiers", Some(machine.tiers.len()).filter(|count| *count > 0).map(|count| count.to_string())),
        ("distance-local", has_nodes.then(|| LOCAL.to_string()).filter(|_| !machine.distances.is_empty())),
        ("distance-max", remote.max().map(|distance| distance.to_string())),
        ("smallest-node-gib", sizes.and_then(|sizes| sizes.into_iter().min()).map(|size| size.to_string())),
        ("cpu-model", machine.cpu_models.first().and_then(|model| label(&model.name))),
    ];
    let mut text = String::new();
    for (name, value) in labels {
        if let Some(value) = value {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "nodewise.{name}={value}");
        }
    }
    text
}

/// A text as a label's value: other characters become `-`, and its ends are letters or digits.
fn label(text: &str) -> Option<String> {
    let legal = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '.') { c } else { '-' };
    let words: String = text.chars().map(legal).collect();
    let words: Vec<&str> = words.split('-').filter(|word| !word.is_empty()).collect();
    let text: String = words.join("-").chars().take(LONGEST).collect();
    let text = text.trim_matches(|c: char| !c.is_ascii_alphanumeric()).to_owned();
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::spec;

    #[test]
    fn labels_say_how_many_nodes_of_each_kind_there_are() {
        let machine = spec::machine("2x(2c 4G) (8G); dist=10,21,24/21,10,24/24,24,10").unwrap();
        assert_eq!(
            nfd(&machine),
            "nodewise.nodes=3\nnodewise.nodes-memory-only=1\nnodewise.nodes-cpu-only=0\nnodewise.packages=2\n\
             nodewise.distance-local=10\nnodewise.distance-max=24\nnodewise.smallest-node-gib=4\n"
        );
    }

    #[test]
    fn a_name_becomes_a_legal_value() {
        assert_eq!(label("Intel(R) Xeon(R) @ 2.10GHz").as_deref(), Some("Intel-R-Xeon-R-2.10GHz"));
        assert_eq!(label("(\u{1b}[1m)").as_deref(), Some("1m"));
        assert_eq!(label("___"), None);
        assert_eq!(label(&"x".repeat(80)).map(|text| text.len()), Some(63));
    }
}
