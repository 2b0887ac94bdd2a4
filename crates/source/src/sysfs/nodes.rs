//! Nodes: which there are, their CPUs, memory, huge pages.

use nodewise_machine::check::node_names;
use nodewise_machine::node::MemorySideCache;
use nodewise_machine::order::Order as _;
use nodewise_machine::{Bytes, CpuSet, HugePool, Machine, Node, NodeId, NodeSet, OddityKind};

use super::{Reader, access, distances, memory, sizes};
use crate::limits::MOST_NODES;
use crate::parse::{meminfo, number};
use crate::paths::{self, NODES};

/// Fills nodes, distances, access attributes and tiers.
pub(super) fn read(reader: &mut Reader<'_>, machine: &mut Machine) {
    let online = reader.node_list(&format!("{NODES}/online"));
    machine.possible_nodes = reader.node_list(&format!("{NODES}/possible")).unwrap_or_default();
    let pools = wants_pools(reader);
    for id in &existing(reader, online.as_ref()) {
        let node = read_node(reader, id, pools);
        machine.nodes.insert(id, node);
    }
    distances::read(reader, machine, online.as_ref());
    if reader.wants_only_nodes() {
        return;
    }
    sizes::read(reader, machine);
    access::read(reader, machine);
    read_initiators(reader, machine);
    if !reader.trusts_files() {
        compare(reader, machine);
        memory::compare(reader, machine);
    }
}

/// The nodes that are there: those with a folder. A running kernel's `online` is believed without
/// looking at the folders, since it makes both.
fn existing(reader: &mut Reader<'_>, online: Option<&NodeSet>) -> NodeSet {
    let believed = online.filter(|_| reader.trusts_files());
    let mut nodes = believed.cloned().unwrap_or_else(|| reader.node_entries(NODES));
    if nodes.len() > MOST_NODES {
        nodes = nodes.iter().take(MOST_NODES).collect();
        let text = format!("it has more than {MOST_NODES} nodes: the rest is left out");
        reader.note_in(OddityKind::Unparseable, NODES, text);
    }
    if let Some(online) = online {
        let path = format!("{NODES}/online");
        let gone = online.difference(&nodes);
        if !gone.is_empty() {
            let text = format!("it names {} without a folder", node_names(&gone));
            reader.note_in(OddityKind::NodeMissing, &path, text);
        }
        let unnamed = nodes.difference(online);
        if !unnamed.is_empty() {
            let text = format!("it does not name {}, though there is a folder", node_names(&unnamed));
            reader.note_in(OddityKind::Disagreement, &path, text);
        }
    }
    nodes
}

/// Whether the pools of huge pages are worth reading: three files for each size and node, all of them
/// 0 on most systems. One line of `/proc/meminfo` says so (Linux 4.20).
fn wants_pools(reader: &mut Reader<'_>) -> bool {
    let none = |text: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix("Hugetlb:"));
        line.is_some_and(|line| line.trim() == "0 kB")
    };
    if reader.wants_only_nodes() {
        return false;
    }
    let none = reader.is_quick() && reader.text("/proc/meminfo", none) == Some(true);
    !none
}

fn read_node(reader: &mut Reader<'_>, id: NodeId, pools: bool) -> Node {
    let folder = paths::node(id);
    let mut node = Node::new(id);
    node.cpus = read_cpus(reader, &folder);
    node.meminfo =
        reader.parsed(&format!("{folder}/meminfo"), |text| meminfo::parse(text, id)).unwrap_or_default();
    if pools {
        node.huge_pools = read_huge_pools(reader, &folder);
    }
    if !reader.is_quick() {
        node.memory_side_caches = read_side_caches(reader, &folder);
    }
    node
}

/// CPUs of a node. Where mask and list differ the mask counts, as it does for libnuma; where there
/// is neither, links to the CPUs are looked for.
fn read_cpus(reader: &mut Reader<'_>, folder: &str) -> CpuSet {
    let mask = reader.cpu_mask(&format!("{folder}/cpumap"));
    if let Some(mask) = &mask {
        if reader.trusts_files() {
            return mask.clone();
        }
    }
    let path = format!("{folder}/cpulist");
    let list = reader.cpu_list(&path);
    match (mask, list) {
        (Some(mask), Some(list)) => {
            if mask != list {
                let text = format!(
                    "it names {}, but cpumap names {}: cpumap is believed, as by libnuma",
                    cpu_names(&list),
                    cpu_names(&mask)
                );
                reader.note_in(OddityKind::Disagreement, &path, text);
            }
            mask
        }
        (Some(cpus), None) | (None, Some(cpus)) => cpus,
        (None, None) => reader.cpu_entries(folder),
    }
}

/// CPUs in a sentence.
pub(super) fn cpu_names(cpus: &CpuSet) -> String {
    match cpus.len() {
        0 => "no CPU".to_owned(),
        1 => format!("CPU {cpus}"),
        _ => format!("CPUs {cpus}"),
    }
}

fn read_huge_pools(reader: &mut Reader<'_>, folder: &str) -> Vec<HugePool> {
    let root = format!("{folder}/hugepages");
    let size = |name: &str| {
        let kib = name.strip_prefix("hugepages-")?.strip_suffix("kB")?;
        number::number::<u64>(kib).ok()?.checked_mul(1024).map(Bytes::new)
    };
    let names = reader.list(&root);
    let mut pools: Vec<HugePool> = names
        .iter()
        .filter_map(|name| {
            let mut count = |file: &str| reader.value(&format!("{root}/{name}/{file}"), number::number);
            Some(HugePool {
                page_size: size(name)?,
                total: count("nr_hugepages"),
                free: count("free_hugepages"),
                surplus: count("surplus_hugepages"),
            })
        })
        .collect();
    pools.order_by_key(|pool| pool.page_size);
    for pool in &pools {
        let more = |part: Option<u64>| part.zip(pool.total).is_some_and(|(part, total)| part > total);
        // Both are counted in the total. On the running system they can change between two reads.
        if !reader.trusts_files() && (more(pool.free) || more(pool.surplus)) {
            let text =
                format!("of its pools that of {} has more free or surplus pages than pages", pool.page_size);
            reader.note_in(OddityKind::Disagreement, &root, text);
        }
    }
    pools
}

fn read_side_caches(reader: &mut Reader<'_>, folder: &str) -> Vec<MemorySideCache> {
    let root = format!("{folder}/memory_side_cache");
    let levels = reader.numbered(&root, "index");
    let levels = levels.into_iter().filter_map(|level| u8::try_from(level).ok());
    let mut caches = Vec::new();
    for level in levels {
        let path = |file: &str| format!("{root}/index{level}/{file}");
        let size: Option<u64> = reader.value(&path("size"), number::number);
        let line_size: Option<u32> = reader.value(&path("line_size"), number::number);
        caches.push(MemorySideCache {
            level,
            size: size.filter(|size| *size > 0).map(Bytes::new),
            line_size: line_size.filter(|size| *size > 0),
            indexing: reader.value(&path("indexing"), number::number),
            write_policy: reader.value(&path("write_policy"), number::number),
        });
    }
    caches
}

fn read_initiators(reader: &mut Reader<'_>, machine: &mut Machine) {
    // An initiator without CPUs is reported from a node with CPUs: there must be two.
    if machine.nodes.len() == 1 && reader.is_quick() {
        return;
    }
    let initiators = reader.node_list(&format!("{NODES}/has_generic_initiator"));
    for node in machine.nodes.values_mut() {
        node.generic_initiator = initiators.as_ref().map(|set| set.contains(node.id));
    }
}

/// Compares the kernel's lists of kinds of nodes with what the nodes' own files say.
fn compare(reader: &mut Reader<'_>, machine: &Machine) {
    let all = machine.node_ids();
    let with_cpus: NodeSet =
        machine.nodes.values().filter(|node| !node.cpus.is_empty()).map(|node| node.id).collect();
    let path = format!("{NODES}/has_cpu");
    if let Some(named) = reader.node_list(&path).filter(|named| *named != with_cpus) {
        let text = format!("it names {}, but {} CPUs", some_nodes(&named), have(&with_cpus));
        reader.note_in(OddityKind::Disagreement, &path, text);
    }
    let path = format!("{NODES}/possible");
    let impossible = all.difference(&machine.possible_nodes);
    if !impossible.is_empty() && reader.exists(&path) {
        let text = format!("it does not name {}, though there is a folder", node_names(&impossible));
        reader.note_in(OddityKind::Disagreement, &path, text);
    }
    for (file, must_name_all) in [("has_memory", true), ("has_normal_memory", false)] {
        let path = format!("{NODES}/{file}");
        let Some(named) = reader.node_list(&path) else { continue };
        let strange = named.difference(&all);
        if !strange.is_empty() {
            let text = format!("it names {}, not online", node_names(&strange));
            reader.note_in(OddityKind::Disagreement, &path, text);
        }
        let lost = machine.nodes_with_memory().difference(&named);
        if must_name_all && !lost.is_empty() {
            let text = format!("it does not name {}, though there is memory", node_names(&lost));
            reader.note_in(OddityKind::Disagreement, &path, text);
        }
    }
}

fn some_nodes(nodes: &NodeSet) -> String {
    if nodes.is_empty() { "no node".to_owned() } else { node_names(nodes) }
}

fn have(nodes: &NodeSet) -> String {
    format!("{} {}", some_nodes(nodes), if nodes.len() > 1 { "have" } else { "has" })
}
