//! A diagram in the language of Mermaid, which pages of Markdown draw.
//!
//! # Source
//! Mermaid, "Flowcharts": a text in quotes may hold anything, entities are written `#35;`, and backticks begin Markdown.

use std::fmt::Write as _;

use nodewise_machine::Machine;

use super::diagram::{Diagram, NodeBox};

/// Writes the nodes of a machine in their packages, devices beside their nodes, and distances between nodes.
pub fn mermaid(machine: &Machine) -> String {
    let diagram = Diagram::new(machine);
    let mut text = String::from("flowchart LR\n");
    // Writing to a String cannot fail.
    for (package, boxes) in &diagram.packages {
        let _ = writeln!(text, "  subgraph p{package}[\"package {package}\"]");
        boxes.iter().for_each(|node| node_box(node, "    ", &mut text));
        text.push_str("  end\n");
    }
    diagram.others.iter().for_each(|node| node_box(node, "  ", &mut text));
    for (number, device) in diagram.devices.iter().enumerate() {
        let _ = writeln!(text, "  d{number}([\"{}\"])", quoted(&device.words));
        if let Some(node) = device.node {
            let _ = writeln!(text, "  d{number} -.- n{node}");
        }
    }
    for line in &diagram.lines {
        let [from, to] = line.nodes;
        let _ = writeln!(text, "  n{from} ---|\"{}\"| n{to}", line.distance);
    }
    text
}

fn node_box(node: &NodeBox, indent: &str, text: &mut String) {
    let words: Vec<String> = node.words.iter().map(|words| quoted(words)).collect();
    let _ = writeln!(text, "{indent}n{}[\"{}\"]", node.node, words.join("<br/>"));
}

/// A text fit for the inside of quotes: whatever has a meaning to Mermaid, Markdown or HTML becomes an entity.
fn quoted(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if c.is_ascii_punctuation() && !matches!(c, '-' | '.' | ',' | ':' | '/' | '(' | ')') {
            // Writing to a String cannot fail.
            let _ = write!(out, "#{};", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::spec;

    #[test]
    fn nodes_lie_in_packages_with_devices_and_distances_beside_them() {
        let machine = spec::machine("1x(2c 4G) (2G); dist=10,17/28,10; dev=net:eth0@0").unwrap();
        assert_eq!(
            mermaid(&machine),
            r#"flowchart LR
  subgraph p0["package 0"]
    n0["node 0<br/>4 GiB<br/>CPUs 0-1"]
  end
  n1["node 1<br/>2 GiB<br/>memory only"]
  d0(["eth0"])
  d0 -.- n0
  n0 ---|"17 / 28"| n1
"#
        );
    }

    #[test]
    fn a_name_stays_inside_its_quotes() {
        assert_eq!(quoted("a\"]#`<b>"), "a#34;#93;#35;#96;#60;b#62;");
    }
}
