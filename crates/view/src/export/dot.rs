//! A diagram in the language of Graphviz, for `dot -Tsvg`.
//!
//! # Source
//! Graphviz, "DOT language": in a quoted text a backslash escapes, and entities such as `&amp;` are read.

use std::fmt::Write as _;

use nodewise_machine::Machine;

use super::diagram::{Diagram, NodeBox};

/// Writes the nodes of a machine in their packages, devices beside their nodes, and distances between nodes.
pub fn dot(machine: &Machine) -> String {
    let diagram = Diagram::new(machine);
    let mut text = String::from("graph machine {\n  node [shape=box];\n");
    // Writing to a String cannot fail.
    for (package, boxes) in &diagram.packages {
        let _ = writeln!(text, "  subgraph cluster_package{package} {{\n    label=\"package {package}\";");
        boxes.iter().for_each(|node| node_box(node, "    ", &mut text));
        text.push_str("  }\n");
    }
    diagram.others.iter().for_each(|node| node_box(node, "  ", &mut text));
    for (number, device) in diagram.devices.iter().enumerate() {
        let _ = writeln!(text, "  d{number} [shape=ellipse, label=\"{}\"];", quoted(&device.words));
        if let Some(node) = device.node {
            let _ = writeln!(text, "  d{number} -- n{node} [style=dotted];");
        }
    }
    for line in &diagram.lines {
        let [from, to] = line.nodes;
        let _ = writeln!(text, "  n{from} -- n{to} [label=\"{}\"];", line.distance);
    }
    text.push_str("}\n");
    text
}

fn node_box(node: &NodeBox, indent: &str, text: &mut String) {
    let words: Vec<String> = node.words.iter().map(|words| quoted(words)).collect();
    let _ = writeln!(text, "{indent}n{} [label=\"{}\"];", node.node, words.join("\\n"));
}

/// A text fit for the inside of quotes.
fn quoted(text: &str) -> String {
    text.replace('&', "&amp;").replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::spec;

    #[test]
    fn nodes_lie_in_packages_with_devices_and_distances_beside_them() {
        let machine = spec::machine("2x(2c 4G); dist=21; dev=net:eth0@1").unwrap();
        assert_eq!(
            dot(&machine),
            r#"graph machine {
  node [shape=box];
  subgraph cluster_package0 {
    label="package 0";
    n0 [label="node 0\n4 GiB\nCPUs 0-1"];
  }
  subgraph cluster_package1 {
    label="package 1";
    n1 [label="node 1\n4 GiB\nCPUs 2-3"];
  }
  d0 [shape=ellipse, label="eth0"];
  d0 -- n1 [style=dotted];
  n0 -- n1 [label="21"];
}
"#
        );
    }

    #[test]
    fn a_name_stays_inside_its_quotes() {
        assert_eq!(quoted(r#"a"\N&lt;"#), r#"a\"\\N&amp;lt;"#);
    }
}
