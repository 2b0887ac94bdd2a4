//! Objects inside each other, as hwloc sees a machine: by the CPUs that they have in common.
//!
//! An object lies in the smallest one that has all its CPUs. Nodes are attached beside that
//! tree, to the object whose CPUs are theirs; devices to the object of the CPUs that are local to them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::order::Order as _;
use nodewise_machine::{
    AccessClass, BookId, Cache, CacheKind, ClusterId, CoreId, Cpu, CpuId, CpuSet, Device, DieId, DrawerId,
    Machine, Node, NodeId, NodeSet, PackageId,
};

/// The kind of an object, outermost first.
#[derive(Clone, Copy, Debug)]
pub(super) enum ObjectKind<'a> {
    Machine,
    Drawer(DrawerId),
    Book(BookId),
    Package(PackageId),
    Die(DieId),
    /// A group for a node whose CPUs are those of no other object.
    Around,
    Cluster(ClusterId),
    Cache(&'a Cache),
    Core(Option<CoreId>),
    Cpu(CpuId),
}

impl ObjectKind<'_> {
    /// The order of objects with the same CPUs.
    fn rank(self) -> (u8, u8, bool) {
        match self {
            Self::Machine => (0, 0, false),
            Self::Drawer(_) => (1, 0, false),
            Self::Book(_) => (2, 0, false),
            Self::Package(_) => (3, 0, false),
            Self::Die(_) => (4, 0, false),
            Self::Around => (5, 0, false),
            Self::Cluster(_) => (6, 0, false),
            Self::Cache(cache) => (7, u8::MAX - cache.level, cache.kind == CacheKind::Instruction),
            Self::Core(_) => (8, 0, false),
            Self::Cpu(_) => (9, 0, false),
        }
    }

    /// Whether the object says nothing where another has the same CPUs.
    fn is_group(self) -> bool {
        matches!(self, Self::Drawer(_) | Self::Book(_) | Self::Around | Self::Cluster(_))
    }
}

/// An object.
#[derive(Debug)]
pub(super) struct Object<'a> {
    pub kind: ObjectKind<'a>,
    pub cpus: CpuSet,
    /// The objects in it, by their first CPU.
    pub children: Vec<usize>,
    /// Nodes that are attached to it.
    pub memory: Vec<NodeId>,
    /// Devices that are attached to it.
    pub devices: Vec<&'a Device>,
    /// Nodes that are local to it: those of all objects around and inside.
    pub nodes: NodeSet,
    parent: usize,
}

/// The objects of a machine; the first is the machine itself.
#[derive(Debug)]
pub(super) struct Tree<'a> {
    pub objects: Vec<Object<'a>>,
}

impl<'a> Tree<'a> {
    /// Arranges the objects of a machine.
    pub fn new(machine: &'a Machine) -> Self {
        let online = machine.online_cpus();
        let mut tree = Self { objects: vec![Object::new(ObjectKind::Machine, online.clone(), 0)] };
        let mut smallest: BTreeMap<CpuId, usize> = online.iter().map(|cpu| (cpu, 0)).collect_map();
        for (kind, cpus) in candidates(machine, &online) {
            tree.insert(kind, cpus, &mut smallest);
        }
        for at in 0..tree.objects.len() {
            let mut children = std::mem::take(&mut tree.objects[at].children);
            children.order_by_key(|child| tree.objects[*child].cpus.first());
            tree.objects[at].children = children;
        }
        for node in machine.nodes.values() {
            let at = tree.place(&users(machine, node), &smallest);
            tree.objects[at].memory.push(node.id);
        }
        if machine.nodes.is_empty() {
            tree.objects[0].memory.push(NodeId::new(0));
        }
        // A bridge is an object of another type, with buses that the machine does not hold.
        for device in machine.devices.iter().filter(|device| !is_bridge(device)) {
            let local = device.local_cpus.intersection(&online);
            let home = || machine.home_of(device).and_then(|node| machine.nodes.get(&node));
            let cpus = if local.is_empty() { home().map(|node| users(machine, node)) } else { Some(local) };
            let at = cpus.map_or(0, |cpus| tree.place(&cpus, &smallest));
            tree.objects[at].devices.push(device);
        }
        tree.spread_nodes(0, &NodeSet::new());
        tree
    }

    /// Adds an object, unless it lies across another: sizes only fall, so it lies in the smallest that has its first CPU.
    fn insert(&mut self, kind: ObjectKind<'a>, cpus: CpuSet, smallest: &mut BTreeMap<CpuId, usize>) {
        let around: BTreeSet<Option<usize>> =
            cpus.iter().map(|cpu| smallest.get(&cpu).copied()).collect_set();
        let (Some(Some(parent)), 1) = (around.first().copied(), around.len()) else { return };
        let at = self.objects.len();
        for cpu in &cpus {
            smallest.insert(cpu, at);
        }
        self.objects.push(Object::new(kind, cpus, parent));
        self.objects[parent].children.push(at);
    }

    /// The largest object below the machine with exactly these CPUs, else the smallest with all of them.
    fn place(&self, cpus: &CpuSet, smallest: &BTreeMap<CpuId, usize>) -> usize {
        let Some(mut at) = cpus.first().and_then(|cpu| smallest.get(&cpu).copied()) else { return 0 };
        while !cpus.is_subset(&self.objects[at].cpus) {
            at = self.objects[at].parent;
        }
        // hwloc attaches nothing to a CPU.
        if matches!(self.objects[at].kind, ObjectKind::Cpu(_)) {
            at = self.objects[at].parent;
        }
        loop {
            let parent = self.objects[at].parent;
            if at == 0 || parent == 0 || self.objects[parent].cpus != *cpus {
                return at;
            }
            at = parent;
        }
    }

    /// Gives every object the nodes around it and those inside it; returns the latter.
    fn spread_nodes(&mut self, at: usize, around: &NodeSet) -> NodeSet {
        let own: NodeSet = self.objects[at].memory.iter().copied().collect();
        let around = around.union(&own);
        let mut inside = own;
        for child in self.objects[at].children.clone() {
            inside = inside.union(&self.spread_nodes(child, &around));
        }
        self.objects[at].nodes = around.union(&inside);
        inside
    }
}

impl<'a> Object<'a> {
    const fn new(kind: ObjectKind<'a>, cpus: CpuSet, parent: usize) -> Self {
        Self {
            kind,
            cpus,
            children: Vec::new(),
            memory: Vec::new(),
            devices: Vec::new(),
            nodes: NodeSet::new(),
            parent,
        }
    }
}

/// Whether a device connects two PCI buses: class and subclass of the PCI code and ID assignment.
fn is_bridge(device: &Device) -> bool {
    device.class_code.is_some_and(|class| class >> 8 == 0x0604)
}

/// Every object below the machine, larger ones first, each once.
fn candidates<'a>(machine: &'a Machine, online: &CpuSet) -> Vec<(ObjectKind<'a>, CpuSet)> {
    let mut all: Vec<(ObjectKind<'a>, CpuSet)> = Vec::new();
    let packages = machine.packages();
    all.extend(grouped(machine, |cpu| cpu.drawer.map(|drawer| (drawer, ObjectKind::Drawer(drawer)))));
    all.extend(grouped(machine, |cpu| cpu.book.map(|book| ((cpu.drawer, book), ObjectKind::Book(book)))));
    all.extend(packages.iter().map(|(package, cpus)| (ObjectKind::Package(*package), cpus.clone())));
    let dies = grouped(machine, |cpu| cpu.die.map(|die| ((cpu.package, die), ObjectKind::Die(die))));
    // The kernel numbers a die in every package, also where it is all of it.
    all.extend(dies.into_iter().filter(|(_, cpus)| !packages.values().any(|package| package == cpus)));
    all.extend(machine.nodes.values().map(|node| (ObjectKind::Around, users(machine, node))));
    all.extend(grouped(machine, |cpu| {
        cpu.cluster.map(|cluster| ((cpu.package, cluster), ObjectKind::Cluster(cluster)))
    }));
    let caches = machine.caches.iter().filter(|cache| is_known_to_hwloc(cache));
    all.extend(caches.map(|cache| (ObjectKind::Cache(cache), cache.cpus.intersection(online))));
    let cores = machine.cores().into_iter().filter_map(|(first, cpus)| {
        let cpu = machine.cpus.get(&first)?;
        (cpu.core.is_some() || !cpu.siblings.is_empty()).then_some((ObjectKind::Core(cpu.core), cpus))
    });
    all.extend(cores);
    all.extend(online.iter().map(|cpu| (ObjectKind::Cpu(cpu), CpuSet::from_iter([cpu]))));

    let may_hold_a_node = |kind: ObjectKind<'_>| !kind.is_group() && !matches!(kind, ObjectKind::Cpu(_));
    let mut taken: BTreeSet<CpuSet> =
        all.iter().filter(|(kind, _)| may_hold_a_node(*kind)).map(|(_, cpus)| cpus.clone()).collect_set();
    taken.insert(online.clone());
    all.retain(|(kind, cpus)| !cpus.is_empty() && (!kind.is_group() || taken.insert(cpus.clone())));
    all.sort_by_cached_key(|(kind, cpus)| (Reverse(cpus.len()), cpus.clone(), kind.rank()));
    all.dedup_by(|(kind, cpus), (before, cpus_before)| cpus == cpus_before && kind.rank() == before.rank());
    all
}

/// Online CPUs by a property, with the kind of object that it makes.
fn grouped<'a, K: Ord>(
    machine: &Machine,
    property: impl Fn(&Cpu) -> Option<(K, ObjectKind<'a>)>,
) -> Vec<(ObjectKind<'a>, CpuSet)> {
    let mut groups: BTreeMap<K, (ObjectKind<'a>, CpuSet)> = BTreeMap::new();
    for cpu in machine.cpus.values().filter(|cpu| cpu.online) {
        if let Some((key, kind)) = property(cpu) {
            groups.entry(key).or_insert((kind, CpuSet::new())).1.insert(cpu.id);
        }
    }
    groups.into_values().collect()
}

/// hwloc has types for five levels of caches, and for three of instructions.
fn is_known_to_hwloc(cache: &Cache) -> bool {
    let most = if cache.kind == CacheKind::Instruction { 3 } else { 5 };
    (1..=most).contains(&cache.level)
}

/// The online CPUs to which a node is local: its own; else those of its best initiators; else those of the nearest
/// nodes with CPUs; else all.
pub(super) fn users(machine: &Machine, node: &Node) -> CpuSet {
    let own = machine.cpus_of(node.id);
    if !own.is_empty() {
        return own;
    }
    let initiators = initiators(machine, node.id);
    if !initiators.is_empty() {
        return initiators;
    }
    let with_cpus = machine.nodes_with_cpus();
    let distance = |from: NodeId| machine.distance(from, node.id);
    let nearest = with_cpus.iter().filter_map(distance).min();
    let near: NodeSet = with_cpus.iter().filter(|from| distance(*from) == nearest).collect();
    machine.cpus_of_nodes(&near)
}

/// The online CPUs of the nodes from which this one is reached best, as the firmware says.
pub(super) fn initiators(machine: &Machine, target: NodeId) -> CpuSet {
    let classes = [AccessClass::Cpu, AccessClass::Any].into_iter();
    let sets = classes.filter_map(|class| machine.access(target, class));
    sets.map(|access| machine.cpus_of_nodes(&access.initiators))
        .find(|cpus| !cpus.is_empty())
        .unwrap_or_default()
}
