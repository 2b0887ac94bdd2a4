//! The facts in hwloc's XML, by object.

use std::collections::BTreeMap;

use roxmltree::{Document, Node, ParsingOptions};

/// The attributes of every object by its name.
pub(super) type Facts = BTreeMap<String, BTreeMap<String, String>>;

/// Attributes that number objects in one file, and infos about who looked and whose machine it was.
const OF_THE_FILE: [&str; 1] = ["gp_index"];
const INFOS: [&str; 2] = ["CPUModel", "Architecture"];

/// Reads every object, the distances, the values of memory and the kinds of CPUs.
pub(super) fn facts(text: &str) -> Facts {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options).expect("it is XML");
    let mut facts = Facts::new();
    for object in document.descendants().filter(|node| node.has_tag_name("object")) {
        let (name, attributes) = of_object(object);
        let known = facts.entry(name).or_default();
        known.extend(attributes);
    }
    distances(&document, &mut facts);
    values(&document, &mut facts);
    for kind in document.descendants().filter(|node| node.has_tag_name("cpukind")) {
        let name = format!("kind of CPUs {}", attribute(kind, "cpuset"));
        facts.entry(name).or_default().insert("exists".to_owned(), String::new());
    }
    facts
}

fn attribute<'a>(node: Node<'a, '_>, name: &str) -> &'a str {
    node.attribute(name).unwrap_or_default()
}

/// The name of an object: its type, and the number or set by which it is known.
fn name(object: Node<'_, '_>) -> String {
    let kind = attribute(object, "type");
    let by = match kind {
        "PU" | "NUMANode" => "os_index",
        "PCIDev" => "pci_busid",
        "OSDev" | "Misc" => "name",
        "Bridge" => "bridge_pci",
        "MemCache" => "nodeset",
        "Machine" => return kind.to_owned(),
        _ => "cpuset",
    };
    let inner = if kind.ends_with("Cache") {
        format!(" of type {}", attribute(object, "cache_type"))
    } else {
        String::new()
    };
    format!("{kind}{inner} {}", attribute(object, by))
}

fn of_object(object: Node<'_, '_>) -> (String, BTreeMap<String, String>) {
    let mut facts: BTreeMap<String, String> = object
        .attributes()
        .filter(|attribute| !OF_THE_FILE.contains(&attribute.name()))
        .map(|attribute| (attribute.name().to_owned(), attribute.value().to_owned()))
        .collect();
    // Behind class, vendor and device are the subsystem and the revision, which a machine does not hold.
    if let Some(kind) = facts.get_mut("pci_type") {
        kind.truncate("0200 [15b3:1017]".len());
    }
    let inner = object.children().filter(|child| child.is_element());
    for child in inner {
        if child.has_tag_name("page_type") {
            facts.insert(
                format!("pages of {}", attribute(child, "size")),
                attribute(child, "count").to_owned(),
            );
        } else if child.has_tag_name("info") && INFOS.contains(&attribute(child, "name")) {
            facts.insert(attribute(child, "name").to_owned(), one_blank(attribute(child, "value")));
        }
    }
    // Nodes and devices lie beside the tree of CPUs.
    if object.attribute("cpuset").is_none() {
        let around = object.ancestors().skip(1).find_map(|node| node.attribute("cpuset"));
        facts.insert("near".to_owned(), around.unwrap_or_default().to_owned());
    }
    facts.insert("exists".to_owned(), String::new());
    (name(object), facts)
}

/// A model without the blanks that some are padded with.
fn one_blank(text: &str) -> String {
    text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

fn numbers(node: Node<'_, '_>, tag: &str) -> Vec<u64> {
    let texts = node.children().filter(|child| child.has_tag_name(tag)).filter_map(|child| child.text());
    texts.flat_map(|text| text.split_ascii_whitespace().filter_map(|word| word.parse().ok())).collect()
}

/// Distances that the kernel gives; hwloc also has matrices that it worked out.
fn distances(document: &Document<'_>, facts: &mut Facts) {
    let matrices = document.descendants().filter(|node| node.has_tag_name("distances2"));
    for matrix in matrices.filter(|matrix| attribute(*matrix, "name") == "NUMALatency") {
        let (nodes, values) = (numbers(matrix, "indexes"), numbers(matrix, "u64values"));
        let pairs = nodes.iter().flat_map(|from| nodes.iter().map(move |to| (from, to)));
        for ((from, to), value) in pairs.zip(values) {
            facts
                .entry("distances".to_owned())
                .or_default()
                .insert(format!("{from} > {to}"), value.to_string());
        }
    }
}

fn values(document: &Document<'_>, facts: &mut Facts) {
    let nodes: BTreeMap<&str, String> = document
        .descendants()
        .filter(|node| node.has_tag_name("object"))
        .map(|object| (attribute(object, "gp_index"), name(object)))
        .collect();
    for table in document.descendants().filter(|node| node.has_tag_name("memattr")) {
        for value in table.children().filter(|node| node.has_tag_name("memattr_value")) {
            let of = nodes.get(attribute(value, "target_obj_gp_index")).cloned().unwrap_or_default();
            let from = attribute(value, "initiator_cpuset");
            let fact = format!("{} from {from}", attribute(table, "name"));
            facts.entry(of).or_default().insert(fact, attribute(value, "value").to_owned());
        }
    }
}
