//! Facts from hwloc's lstopo, as XML.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use nodewise_machine::CpuSet;
use nodewise_machine::id::CpuId;
use roxmltree::{Document, Node, ParsingOptions};

use crate::program;

const LSTOPO: &str = "lstopo-no-graphics";

/// The release that is installed.
pub(super) fn version() -> Result<String> {
    let text = program::read(Command::new(LSTOPO).arg("--version"))
        .context("lstopo-no-graphics is missing: it is in Debian's package hwloc-nox")?;
    Ok(text.split_ascii_whitespace().last().unwrap_or_default().to_owned())
}

/// Reads hwloc's facts about the machine below a folder.
pub(super) fn facts(folder: &Path) -> Result<Option<BTreeSet<String>>> {
    let mut command = Command::new(LSTOPO);
    command.arg("--input").arg(folder).args(["--if", "fsroot", "--of", "xml", "--disallowed"]);
    command.args(["--filter", "io:all", "--filter", "icache:all"]);
    // Without this it hides the nodes that are the memory of GPUs.
    command.env("HWLOC_KEEP_NVIDIA_GPU_NUMA_NODES", "1");
    of_xml(&program::read(&mut command)?).map(Some)
}

fn of_xml(text: &str) -> Result<BTreeSet<String>> {
    let document =
        Document::parse_with_options(text, ParsingOptions { allow_dtd: true, ..Default::default() })?;
    let objects = || document.descendants().filter(|node| node.has_tag_name("object"));
    let mut facts = BTreeSet::new();
    for object in objects() {
        facts.extend(of_object(object));
    }
    facts.extend(models(&document));
    let kinds: Vec<CpuSet> =
        document.descendants().filter(|node| node.has_tag_name("cpukind")).filter_map(cpus).collect();
    if kinds.len() > 1 {
        facts.extend(kinds.iter().map(|cpus| format!("kind {cpus}")));
    }
    facts.extend(distances(&document));
    Ok(facts)
}

fn of_object(object: Node<'_, '_>) -> Vec<String> {
    let cpus = cpus(object).unwrap_or_default();
    let kind = object.attribute("type").unwrap_or_default();
    let group = |word: &str| vec![format!("{word} {cpus}")];
    let here = |name: Option<&str>| name.map(|name| format!("{name} near {}", around(object)));
    match kind {
        "Package" => group("package"),
        "Core" => group("core"),
        "Group" => match object.attribute("subtype") {
            Some("Book") => group("book"),
            Some("Drawer") => group("drawer"),
            Some("Cluster") => group("cluster"),
            _ => Vec::new(),
        },
        "NUMANode" => match number(object, "os_index") {
            Some(node) => {
                let size = object.attribute("local_memory").unwrap_or("0");
                vec![
                    format!("node {node} cpus {cpus}").trim().to_owned(),
                    format!("node {node} memory {size}"),
                ]
            }
            None => Vec::new(),
        },
        "MemCache" => {
            let size = object.attribute("cache_size").unwrap_or_default();
            let nodes = object.descendants().filter(|inner| inner.attribute("type") == Some("NUMANode"));
            let nodes = nodes.filter_map(|node| number(node, "os_index"));
            nodes.map(|node| format!("side-cache {size} node {node}")).collect()
        }
        "PCIDev" => {
            here(object.attribute("pci_busid")).map(|fact| format!("pci {fact}")).into_iter().collect()
        }
        // Disks, GPUs, network interfaces and RDMA devices; not channels of DMA engines and coprocessors.
        "OSDev" if matches!(object.attribute("osdev_type"), Some("0" | "1" | "2" | "3")) => {
            here(object.attribute("name")).map(|fact| format!("device {fact}")).into_iter().collect()
        }
        _ if kind.ends_with("Cache") => {
            let size = object.attribute("cache_size").unwrap_or_default();
            vec![format!("cache {} {size} {cpus}", cache_name(object, kind))]
        }
        _ => Vec::new(),
    }
}

/// `L1d`, `L1i`, `L2`: hwloc calls data and unified caches alike and says which in `cache_type`.
fn cache_name(object: Node<'_, '_>, kind: &str) -> String {
    let level = kind.trim_end_matches("Cache").trim_end_matches('i');
    match object.attribute("cache_type") {
        Some("1") => format!("{level}d"),
        Some("2") => format!("{level}i"),
        _ => level.to_owned(),
    }
}

/// The CPUs of the nearest object with CPUs around a device.
fn around(object: Node<'_, '_>) -> CpuSet {
    object.ancestors().skip(1).find_map(cpus).unwrap_or_default()
}

/// The model of each package, with the CPUs of all packages of that model.
fn models(document: &Document<'_>) -> Vec<String> {
    let mut models: BTreeMap<String, CpuSet> = BTreeMap::new();
    for info in document.descendants().filter(|node| node.attribute("name") == Some("CPUModel")) {
        if let (Some(name), Some(cpus)) = (info.attribute("value"), info.parent().and_then(cpus)) {
            let known = models.entry(super::one_blank(name)).or_default();
            *known = known.union(&cpus);
        }
    }
    models.into_iter().map(|(name, cpus)| format!("model {cpus} {name}")).collect()
}

/// Distances that the kernel gives; hwloc also has matrices that it worked out.
fn distances(document: &Document<'_>) -> Vec<String> {
    let numbers = |node: Node<'_, '_>, tag: &str| -> Vec<u64> {
        let texts = node.children().filter(|child| child.has_tag_name(tag)).filter_map(|child| child.text());
        texts.flat_map(|text| text.split_ascii_whitespace().filter_map(|word| word.parse().ok())).collect()
    };
    let matrix = document
        .descendants()
        .find(|node| node.has_tag_name("distances2") && node.attribute("name") == Some("NUMALatency"));
    let Some(matrix) = matrix else { return Vec::new() };
    let (nodes, values) = (numbers(matrix, "indexes"), numbers(matrix, "u64values"));
    let pairs = nodes.iter().flat_map(|from| nodes.iter().map(move |to| (from, to)));
    pairs.zip(values).map(|((from, to), value)| format!("distance {from} {to} {value}")).collect()
}

fn number(object: Node<'_, '_>, name: &str) -> Option<u32> {
    object.attribute(name)?.parse().ok()
}

/// The CPUs of an object: words of 32 bits as `0x000000ff,0xffff0000,0x0`, the lowest last.
fn cpus(object: Node<'_, '_>) -> Option<CpuSet> {
    let mut set = CpuSet::new();
    for (at, word) in (0u32..).zip(object.attribute("cpuset")?.rsplit(',')) {
        let bits = u32::from_str_radix(word.trim_start_matches("0x"), 16).unwrap_or(0);
        set.extend((0..32).filter(|bit| bits & (1 << bit) != 0).map(|bit| CpuId::new(at * 32 + bit)));
    }
    Some(set)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_become_facts() {
        let xml = r#"<!DOCTYPE topology SYSTEM "hwloc2.dtd"><topology>
            <object type="Machine" cpuset="0x3"><object type="Package" cpuset="0x1"><info name="CPUModel" value="A "/>
            <object type="NUMANode" os_index="0" cpuset="0x1" local_memory="4096"/>
            <object type="L1Cache" cpuset="0x1" cache_size="32768" cache_type="1"/>
            <object type="Bridge"><object type="PCIDev" pci_busid="0000:00:01.0">
            <object type="OSDev" name="eth0" osdev_type="2"/><object type="OSDev" name="dma0" osdev_type="4"/></object></object></object>
            <object type="Package" cpuset="0x1,0x0"/>
            <object type="NUMANode" os_index="4" cpuset="0x1,0x0"/></object>
            <distances2 name="NUMALatency"><indexes>0 4</indexes><u64values>10 20</u64values><u64values>21 10</u64values></distances2>
            <cpukind cpuset="0x1"/><cpukind cpuset="0x1,0x0"/></topology>"#;
        let facts: Vec<String> = of_xml(xml).unwrap().into_iter().collect();
        assert_eq!(
            facts,
            [
                "cache L1d 32768 0",
                "device eth0 near 0",
                "distance 0 0 10",
                "distance 0 4 20",
                "distance 4 0 21",
                "distance 4 4 10",
                "kind 0",
                "kind 32",
                "model 0 A",
                "node 0 cpus 0",
                "node 0 memory 4096",
                "node 4 cpus 32",
                "node 4 memory 0",
                "package 0",
                "package 32",
                "pci 0000:00:01.0 near 0",
            ]
        );
    }
}
