//! The parts of a diagram of a machine, for every language of diagrams: boxes of nodes in their packages, devices beside
//! their nodes, and lines between nodes.

use std::collections::{BTreeMap, BTreeSet};

use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::printable::printable;
use nodewise_machine::{Device, Machine, Node, NodeId, PackageId};

use crate::digest::counts::cpu_names;
use crate::digest::node::{NodeKind, package_list, packages_of_nodes};

/// Up to this many nodes every pair has a line; with more, a node has lines to its nearest only.
const MOST_IN_PAIRS: usize = 8;
/// The characters of a list of CPUs beyond which their number says more.
const LONG_LIST: usize = 40;

/// A diagram.
pub(super) struct Diagram {
    /// Packages whose nodes are theirs alone, with these nodes.
    pub packages: BTreeMap<PackageId, Vec<NodeBox>>,
    /// The other nodes.
    pub others: Vec<NodeBox>,
    pub devices: Vec<DeviceBox>,
    pub lines: Vec<NodeLine>,
}

/// A node.
pub(super) struct NodeBox {
    pub node: NodeId,
    /// Its words, a line each.
    pub words: Vec<String>,
}

/// A device and its node.
pub(super) struct DeviceBox {
    pub words: String,
    pub node: Option<NodeId>,
}

/// Two nodes and their distance in words: `21`, or `21 / 24` where the way back is another.
pub(super) struct NodeLine {
    pub nodes: [NodeId; 2],
    pub distance: String,
}

impl Diagram {
    /// Arranges the boxes and lines of a machine.
    pub fn new(machine: &Machine) -> Self {
        let of_nodes = packages_of_nodes(machine);
        let mut packages: BTreeMap<PackageId, Vec<NodeBox>> = BTreeMap::new();
        let mut others = Vec::new();
        for node in machine.nodes.values() {
            let own = of_nodes.get(&node.id);
            let mut words = node_words(machine, node);
            match own.and_then(only) {
                Some(package) => packages.entry(package).or_default().push(NodeBox { node: node.id, words }),
                None => {
                    words.extend(own.map(|own| format!("packages {}", package_list(own))));
                    others.push(NodeBox { node: node.id, words });
                }
            }
        }
        Self { packages, others, devices: devices(machine), lines: lines(machine) }
    }
}

fn only(packages: &BTreeSet<PackageId>) -> Option<PackageId> {
    packages.first().copied().filter(|_| packages.len() == 1)
}

/// The number of a node, its memory and its CPUs, as far as they are known.
pub(super) fn node_words(machine: &Machine, node: &Node) -> Vec<String> {
    let cpus = machine.cpus_of(node.id);
    let list = cpu_names(&cpus);
    let cpus = match cpus.len() {
        0 => None,
        count if list.len() > LONG_LIST => Some(format!("{count} CPUs")),
        _ => Some(list),
    };
    let kind = NodeKind::from_node(machine, node).words().map(ToOwned::to_owned);
    let memory = machine.memory_of(node.id).map(|size| size.to_string());
    [Some(format!("node {}", node.id)), memory, cpus, kind].into_iter().flatten().collect()
}

/// The names of a device, fit for a terminal; of one without a name that computes, its address. `None` for others.
pub(super) fn device_words(device: &Device) -> Option<String> {
    let names: Vec<&str> = device.names.iter().map(|name| name.name.as_str()).collect();
    if !names.is_empty() {
        return Some(printable(&names.join(" ")).into_owned());
    }
    let address = device.pci.filter(|_| device.is_compute())?;
    Some(format!("accelerator {address}"))
}

fn devices(machine: &Machine) -> Vec<DeviceBox> {
    let row = |device| Some(DeviceBox { words: device_words(device)?, node: machine.home_of(device) });
    machine.devices.iter().filter_map(row).collect()
}

/// Lines with distances: of every pair where nodes are few, else of each node and its nearest.
fn lines(machine: &Machine) -> Vec<NodeLine> {
    let nodes: Vec<NodeId> = machine.nodes.keys().copied().collect();
    let nearest: BTreeMap<NodeId, u32> = nodes
        .iter()
        .filter_map(|node| Some((*node, machine.distance(*node, *machine.closest(*node).first()?)?)))
        .collect_map();
    let is_near =
        |from: NodeId, distance: Option<u32>| distance.is_some() && distance == nearest.get(&from).copied();
    let mut lines = Vec::new();
    for (at, from) in nodes.iter().enumerate() {
        for to in nodes.iter().skip(at + 1) {
            let (there, back) = (machine.distance(*from, *to), machine.distance(*to, *from));
            if nodes.len() > MOST_IN_PAIRS && !is_near(*from, there) && !is_near(*to, back) {
                continue;
            }
            let words =
                |distance: Option<u32>| distance.map_or("?".to_owned(), |distance| distance.to_string());
            let distance = match (there, back) {
                (None, None) => continue,
                (there, back) if there == back => words(there),
                (there, back) => format!("{} / {}", words(there), words(back)),
            };
            lines.push(NodeLine { nodes: [*from, *to], distance });
        }
    }
    lines
}
