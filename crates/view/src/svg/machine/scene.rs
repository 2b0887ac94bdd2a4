//! The contents of a picture of a machine, before they have places.

use std::collections::{BTreeMap, BTreeSet};

use nodewise_machine::order::Order as _;
use nodewise_machine::{
    AccessClass, Bytes, CpuId, CpuSet, DeviceClass, Machine, Node, NodeId, NodeSet, PackageId, TierId,
    check::node_names,
};

use crate::digest::DevicesOfNode;
use crate::digest::access::gb_per_s;
use crate::digest::cache::cores_of;
use crate::digest::counts::core_of_each_cpu;
use crate::digest::device::{ShownDevice, devices_by_node};
use crate::digest::node::{
    NodeKind, cpus_in_no_node, distinguishing_tiers, filled_pools, nodes_of_each_cpu, package_list,
    packages_of_nodes, used_percent,
};
use crate::svg::frame::Role;

/// A core: its online CPUs, and whether it is slower than others.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Core {
    pub(super) cpus: Vec<CpuId>,
    pub(super) slow: bool,
}

/// The cores of a node that share a last-level cache.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Block {
    /// `L3 32 MiB`; `None` for cores without a shared cache.
    pub(super) cache: Option<String>,
    pub(super) cores: Vec<Core>,
    /// How many blocks this one stands for.
    pub(super) times: usize,
}

/// A device, or a count of them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Chip {
    pub(super) role: Role,
    pub(super) text: String,
}

/// The memory of a node, or of several alike. `None`: not known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Memory {
    pub(super) least: Option<Bytes>,
    pub(super) most: Option<Bytes>,
    pub(super) used_percent: Option<u64>,
}

/// A node, or several that are alike.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Card {
    pub(super) nodes: NodeSet,
    pub(super) kind: NodeKind,
    pub(super) cpus: CpuSet,
    /// Other nodes that list some of the same CPUs.
    pub(super) shares_cpus_with: NodeSet,
    pub(super) blocks: Vec<Block>,
    pub(super) memory: Memory,
    pub(super) tier: Option<TierId>,
    /// The latency and bandwidth that the firmware declares.
    pub(super) cost: Option<String>,
    /// Huge pages, memory-side caches.
    pub(super) notes: Vec<String>,
    pub(super) chips: Vec<Chip>,
}

/// A package, or several that share a node, or several that are alike.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PackageBox {
    /// `package 0`; `None` when the kernel does not say.
    pub(super) label: Option<String>,
    pub(super) packages: BTreeSet<PackageId>,
    pub(super) cards: Vec<Card>,
    /// All nodes it is for.
    pub(super) nodes: NodeSet,
    /// How many it is for.
    pub(super) times: usize,
}

/// Nodes that are only counted.
#[derive(Clone, Debug, PartialEq, Default)]
pub(super) struct Rest {
    pub(super) nodes: NodeSet,
}

/// Everything that is drawn.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scene {
    pub(super) boxes: Vec<PackageBox>,
    pub(super) loose: Vec<Card>,
    /// Nodes that are not drawn.
    pub(super) rest: Rest,
    /// Devices that hang on no node.
    pub(super) nowhere: Vec<Chip>,
    pub(super) scale: Scale,
}

/// The common parts in all cards of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scale {
    /// The largest memory of a node, which bars are scaled to.
    pub(super) largest: Bytes,
    /// The CPU with the longest number, which every cell has room for.
    pub(super) last_cpu: CpuId,
}

impl Scene {
    /// Everything, one by one.
    pub(super) fn new(machine: &Machine) -> Self {
        let facts = Facts::from_machine(machine);
        let packages = packages_of_nodes(machine);
        let mut scene = Self {
            boxes: Vec::new(),
            loose: Vec::new(),
            rest: Rest::default(),
            nowhere: chips(facts.devices.get(&None)),
            scale: Scale {
                largest: machine
                    .nodes
                    .keys()
                    .filter_map(|node| machine.memory_of(*node))
                    .max()
                    .unwrap_or_default(),
                last_cpu: machine.online_cpus().last().unwrap_or(CpuId::new(0)),
            },
        };
        for node in machine.nodes.values() {
            let card = facts.card(node);
            if card.cpus.is_empty() {
                scene.loose.push(card);
            } else {
                scene.add(card, packages.get(&node.id).cloned().unwrap_or_default());
            }
        }
        let lost = cpus_in_no_node(machine);
        if !lost.is_empty() {
            scene.add(facts.card_without_node(&lost), facts.only_package(&lost));
        }
        for of_box in &mut scene.boxes {
            let word = if of_box.packages.len() == 1 { "package" } else { "packages" };
            let list = package_list(&of_box.packages);
            of_box.label = (!list.is_empty()).then(|| format!("{word} {list}"));
        }
        scene
    }

    /// Puts a node into the box of its packages; boxes that it ties together become one.
    fn add(&mut self, card: Card, packages: BTreeSet<PackageId>) {
        let mut target = PackageBox::new(card, packages);
        if !target.packages.is_empty() {
            let mut at = 0;
            while at < self.boxes.len() {
                if self.boxes[at].packages.is_disjoint(&target.packages) {
                    at += 1;
                } else {
                    let mut earlier = self.boxes.remove(at);
                    earlier.packages.append(&mut target.packages);
                    earlier.cards.append(&mut target.cards);
                    earlier.nodes = earlier.nodes.union(&target.nodes);
                    target = earlier;
                }
            }
        }
        self.boxes.push(target);
        self.boxes.order_by_key(|of_box| of_box.nodes.first());
    }
}

impl PackageBox {
    fn new(card: Card, packages: BTreeSet<PackageId>) -> Self {
        Self { label: None, packages, nodes: card.nodes.clone(), cards: vec![card], times: 1 }
    }
}

/// The facts that every card needs, looked up once.
struct Facts<'a> {
    machine: &'a Machine,
    core_of: BTreeMap<CpuId, CpuId>,
    nodes_of: BTreeMap<CpuId, NodeSet>,
    tiers: BTreeMap<NodeId, TierId>,
    devices: BTreeMap<Option<NodeId>, DevicesOfNode<'a>>,
    /// CPUs that are not of the fastest kind.
    slow: CpuSet,
    /// Whether any last-level cache serves several cores; one per core is not a reason for a block.
    caches_are_shared: bool,
}

impl<'a> Facts<'a> {
    fn from_machine(machine: &'a Machine) -> Self {
        let core_of = core_of_each_cpu(machine);
        let caches_are_shared = machine.last_level_caches().any(|cache| cores_of(cache, &core_of).len() > 1);
        Self {
            machine,
            core_of,
            caches_are_shared,
            nodes_of: nodes_of_each_cpu(machine),
            tiers: distinguishing_tiers(machine),
            devices: devices_by_node(machine),
            slow: machine.cpu_kinds().iter().skip(1).flat_map(|kind| kind.cpus.iter()).collect(),
        }
    }

    fn card(&self, node: &Node) -> Card {
        let cpus = self.machine.cpus_of(node.id);
        let owners =
            cpus.iter().filter_map(|cpu| self.nodes_of.get(&cpu)).fold(NodeSet::new(), |a, b| a.union(b));
        let size = self.machine.memory_of(node.id);
        Card {
            nodes: NodeSet::from_iter([node.id]),
            kind: NodeKind::from_node(self.machine, node),
            shares_cpus_with: owners.difference(&NodeSet::from_iter([node.id])),
            blocks: self.blocks(&cpus),
            cpus,
            memory: Memory { least: size, most: size, used_percent: used_percent(self.machine, node.id) },
            tier: self.tiers.get(&node.id).copied(),
            cost: self.cost(node.id),
            notes: self.nearest_cpus(node.id).into_iter().chain(notes(node)).collect(),
            chips: chips(self.devices.get(&Some(node.id))),
        }
    }

    fn card_without_node(&self, cpus: &CpuSet) -> Card {
        Card {
            nodes: NodeSet::new(),
            kind: NodeKind::CpuOnly,
            cpus: cpus.clone(),
            shares_cpus_with: NodeSet::new(),
            blocks: self.blocks(cpus),
            memory: Memory { least: None, most: None, used_percent: None },
            tier: None,
            cost: None,
            notes: Vec::new(),
            chips: Vec::new(),
        }
    }

    /// The package of these CPUs, if it is one.
    fn only_package(&self, cpus: &CpuSet) -> BTreeSet<PackageId> {
        let package = |cpu| self.machine.cpus.get(&cpu).and_then(|cpu| cpu.package);
        let packages: Option<BTreeSet<PackageId>> = cpus.iter().map(package).collect();
        packages.filter(|packages| packages.len() == 1).unwrap_or_default()
    }

    /// The CPUs of a node as cores, by last-level cache.
    fn blocks(&self, cpus: &CpuSet) -> Vec<Block> {
        let mut cores: BTreeMap<CpuId, Vec<CpuId>> = BTreeMap::new();
        for cpu in cpus {
            cores.entry(self.core_of.get(&cpu).copied().unwrap_or(cpu)).or_default().push(cpu);
        }
        let core = |cpus: Vec<CpuId>| Core { slow: self.is_slow(&cpus), cpus };
        let mut blocks = Vec::new();
        for cache in self.machine.last_level_caches().filter(|_| self.caches_are_shared) {
            let under = cores_of(cache, &self.core_of);
            let inside: Vec<Core> = under.iter().filter_map(|first| cores.remove(first)).map(core).collect();
            if !inside.is_empty() {
                let size = cache.size.map(|size| format!(" {size}")).unwrap_or_default();
                blocks.push(Block { cache: Some(cache.name() + &size), cores: inside, times: 1 });
            }
        }
        if !cores.is_empty() {
            blocks.push(Block { cache: None, cores: cores.into_values().map(core).collect(), times: 1 });
        }
        blocks
    }

    fn is_slow(&self, cpus: &[CpuId]) -> bool {
        cpus.iter().any(|cpu| self.slow.contains(*cpu))
    }

    /// Where the CPUs are that reach a memory-only node best, if some do better than others.
    fn nearest_cpus(&self, node: NodeId) -> Option<String> {
        let with_cpus = self.machine.nodes_with_cpus();
        let distance = |from| self.machine.distance(from, node);
        let nearest = with_cpus.iter().filter_map(distance).min()?;
        let near: NodeSet = with_cpus.iter().filter(|from| distance(*from) == Some(nearest)).collect();
        let tells = !with_cpus.contains(node) && near != with_cpus;
        tells.then(|| format!("nearest CPUs: {}", node_names(&near)))
    }

    fn cost(&self, node: NodeId) -> Option<String> {
        let access = self
            .machine
            .access(node, AccessClass::Cpu)
            .or_else(|| self.machine.access(node, AccessClass::Any))?;
        let latency = access.read_latency_ns.map(|ns| format!("{ns} ns"));
        let rate = access.read_bandwidth_mb_per_s.map(gb_per_s);
        let words: Vec<String> = latency.into_iter().chain(rate).collect();
        (!words.is_empty()).then(|| format!("declared: {}", words.join(", ")))
    }
}

fn notes(node: &Node) -> Vec<String> {
    let huge = filled_pools(node)
        .map(|pool| format!("{} huge pages of {}", pool.total.unwrap_or_default(), pool.page_size));
    let caches = node.memory_side_caches.iter().filter_map(|cache| cache.size);
    huge.chain(caches.map(|size| format!("memory-side cache {size}"))).collect()
}

fn chips(devices: Option<&DevicesOfNode<'_>>) -> Vec<Chip> {
    let chip = |shown: &ShownDevice<'_>| {
        let link = shown.device.link.map(|link| link.to_string()).filter(|text| !text.is_empty());
        let text = shown.names.iter().cloned().chain(link).collect::<Vec<_>>().join(" ");
        Chip { role: role(shown), text }
    };
    let mut chips: Vec<Chip> =
        devices.map(|devices| devices.shown.iter().map(chip).collect()).unwrap_or_default();
    let order = [Role::Compute, Role::Network, Role::Disk, Role::OtherDevice];
    chips.order_by_key(|chip| order.iter().position(|role| *role == chip.role));
    chips
}

fn role(shown: &ShownDevice<'_>) -> Role {
    let has = |class| shown.device.name_in(class).is_some();
    if shown.device.is_compute() || shown.device.is_display() {
        Role::Compute
    } else if has(DeviceClass::Infiniband) || has(DeviceClass::Net) {
        Role::Network
    } else if has(DeviceClass::Block) || has(DeviceClass::Nvme) {
        Role::Disk
    } else {
        Role::OtherDevice
    }
}
