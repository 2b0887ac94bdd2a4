//! hwloc's XML, format 2.0, which `lstopo --input` and every program with hwloc read (`HWLOC_XMLFILE`).
//!
//! # Source
//! hwloc 2.9, `hwloc2.dtd` and its manual, and experiments: lstopo refuses a file without some of the attributes, and
//! crashes without others, so every set, complete set and `gp_index` is always written.
//!
//! # Shape
//! The objects are in `tree.rs`. Not written: bridges between PCI buses, whose buses a [`Machine`] does not hold, and
//! groups that hwloc itself makes from distances.

mod attributes;
mod tree;

use std::collections::BTreeMap;

use nodewise_machine::node::MemorySideCache;
use nodewise_machine::order::Order as _;
use nodewise_machine::printable::printable;
use nodewise_machine::{AccessClass, CoreType, CpuSet, Device, DeviceName, Machine, NodeId, NodeSet};

use self::attributes::{INITIATOR_ATTRIBUTES, initiator_attributes, mask, name_type, numbered, pci};
use self::tree::{Object, ObjectKind, Tree};
use super::NotExpressible;
use super::measured::MeasuredMemory;
use super::xml::{Attributes, Xml};

/// Names and values of one `memattr_value`.
type MemoryAttribute = [(&'static str, String); 4];

const HEAD: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n";
/// Numbers in one element of a matrix, as hwloc writes them.
const PER_ELEMENT: usize = 10;
/// `HWLOC_DISTANCES_KIND_FROM_OS` and `HWLOC_DISTANCES_KIND_MEANS_LATENCY`.
const LATENCY_OF_THE_SYSTEM: u32 = 1 | 4;

/// Writes a machine as hwloc's XML. Measured latencies and bandwidths take the place of the firmware's.
///
/// # Errors
/// A machine without CPUs, which hwloc does not load.
pub fn hwloc(machine: &Machine, measured: &MeasuredMemory) -> Result<String, NotExpressible> {
    if machine.online_cpus().is_empty() {
        return Err(NotExpressible { format: "hwloc's XML", needs: "online CPUs" });
    }
    let tree = Tree::new(machine);
    let mut writer = Writer {
        machine,
        tree: &tree,
        xml: Xml::beginning_with(HEAD),
        last_index: 0,
        node_indexes: BTreeMap::new(),
    };
    writer.xml.open("topology", &[("version", "2.0".to_owned())]);
    writer.object(0);
    writer.distances();
    writer.memory_attributes(measured);
    writer.cpu_kinds();
    Ok(writer.xml.finish())
}

struct Writer<'a> {
    machine: &'a Machine,
    tree: &'a Tree<'a>,
    xml: Xml,
    /// The last `gp_index`.
    last_index: u64,
    /// The `gp_index` of each node, by which values of its memory name it.
    node_indexes: BTreeMap<NodeId, u64>,
}

impl<'a> Writer<'a> {
    fn next_index(&mut self) -> (&'static str, String) {
        self.last_index += 1;
        ("gp_index", self.last_index.to_string())
    }

    fn object(&mut self, at: usize) {
        let tree = self.tree;
        let Some(object) = tree.objects.get(at) else { return };
        let attributes = self.attributes(object);
        let is_leaf = object.children.is_empty()
            && object.memory.is_empty()
            && object.devices.is_empty()
            && !matches!(object.kind, ObjectKind::Machine | ObjectKind::Package(_));
        if is_leaf {
            return self.xml.empty("object", &attributes);
        }
        self.xml.open("object", &attributes);
        self.infos(object);
        for node in &object.memory {
            self.node(*node, object);
        }
        for child in &object.children {
            self.object(*child);
        }
        for device in &object.devices {
            self.device(device);
        }
        self.xml.close();
    }

    fn attributes(&mut self, object: &Object<'a>) -> Attributes {
        let (name, number) = numbered(object.kind);
        let mut attributes = vec![("type", name)];
        attributes.extend(number.map(|number| ("os_index", number.to_string())));
        let is_machine = matches!(object.kind, ObjectKind::Machine);
        let all = if is_machine { self.machine.cpu_ids() } else { CpuSet::new() };
        attributes.push(("cpuset", mask(&object.cpus)));
        attributes.push(("complete_cpuset", mask(&object.cpus.union(&all))));
        if is_machine {
            attributes
                .push(("allowed_cpuset", mask(&allowed(&object.cpus, self.machine.allowed_cpus.as_ref()))));
        }
        attributes.push(("nodeset", mask(&object.nodes)));
        attributes.push(("complete_nodeset", mask(&object.nodes)));
        if is_machine {
            attributes.push((
                "allowed_nodeset",
                mask(&allowed(&object.nodes, self.machine.allowed_nodes.as_ref())),
            ));
        }
        attributes.push(self.next_index());
        attributes.extend(attributes::of_kind(object.kind));
        attributes
    }

    fn infos(&mut self, object: &Object<'a>) {
        match object.kind {
            ObjectKind::Machine => {
                self.info("Backend", "nodewise");
                if let Some(kernel) = &self.machine.kernel {
                    self.info("OSName", "Linux");
                    self.info("OSRelease", &kernel.to_string());
                }
                if let Some(architecture) = &self.machine.architecture {
                    self.info("Architecture", architecture);
                }
            }
            ObjectKind::Package(_) => {
                if let Some(model) = object.cpus.first().and_then(|cpu| self.machine.model_of(cpu)) {
                    self.info("CPUModel", model);
                }
            }
            _ => {}
        }
    }

    fn info(&mut self, name: &str, value: &str) {
        self.xml.empty("info", &[("name", name.to_owned()), ("value", printable(value).into_owned())]);
    }

    /// A node, inside the caches in front of its memory. Its CPUs are those of the object that it is attached to.
    fn node(&mut self, id: NodeId, around: &Object<'a>) {
        let node = self.machine.nodes.get(&id);
        let nodes = NodeSet::from_iter([id]);
        let sets = |xml: &mut Attributes| {
            xml.push(("cpuset", mask(&around.cpus)));
            xml.push(("complete_cpuset", mask(&around.cpus)));
            xml.push(("nodeset", mask(&nodes)));
            xml.push(("complete_nodeset", mask(&nodes)));
        };
        let mut caches: Vec<&MemorySideCache> =
            node.map(|node| node.memory_side_caches.iter().collect()).unwrap_or_default();
        caches.order_by_key(|cache| cache.level);
        for side in &caches {
            let mut attributes = vec![("type", "MemCache".to_owned())];
            sets(&mut attributes);
            attributes.push(self.next_index());
            attributes.extend(attributes::memory_side_cache(side));
            self.xml.open("object", &attributes);
        }
        let mut attributes = vec![("type", "NUMANode".to_owned()), ("os_index", id.to_string())];
        sets(&mut attributes);
        attributes.push(self.next_index());
        self.node_indexes.insert(id, self.last_index);
        // A kernel that describes no node has one memory, which hwloc calls node 0.
        let memory = node.map_or(self.machine.system_memory, |node| node.memory_total());
        attributes.extend(memory.map(|memory| ("local_memory", memory.get().to_string())));
        let pages = attributes::pages(self.machine, node, memory);
        if pages.is_empty() {
            self.xml.empty("object", &attributes);
        } else {
            self.xml.open("object", &attributes);
            for (size, count) in pages {
                self.xml.empty("page_type", &[("size", size.to_string()), ("count", count.to_string())]);
            }
            self.xml.close();
        }
        for _ in &caches {
            self.xml.close();
        }
    }

    fn device(&mut self, device: &Device) {
        let names: Vec<(&DeviceName, u32, Option<&str>)> = device
            .names
            .iter()
            .filter_map(|name| name_type(name.class).map(|(number, subtype)| (name, number, subtype)))
            .collect();
        if let Some(of_bus) = pci(device) {
            let mut attributes = vec![("type", "PCIDev".to_owned()), self.next_index()];
            attributes.extend(of_bus);
            if names.is_empty() {
                return self.xml.empty("object", &attributes);
            }
            self.xml.open("object", &attributes);
        }
        for (name, number, subtype) in names {
            let mut attributes = vec![
                ("type", "OSDev".to_owned()),
                self.next_index(),
                ("name", printable(&name.name).into_owned()),
            ];
            attributes.extend(subtype.map(|subtype| ("subtype", subtype.to_owned())));
            attributes.push(("osdev_type", number.to_string()));
            self.xml.empty("object", &attributes);
        }
        if device.pci.is_some() {
            self.xml.close();
        }
    }

    /// The distances, where all of them are known.
    fn distances(&mut self) {
        let nodes: Vec<NodeId> = self.machine.nodes.keys().copied().collect();
        let pairs = nodes.iter().flat_map(|from| nodes.iter().map(move |to| (*from, *to)));
        let values: Option<Vec<u32>> = pairs.map(|(from, to)| self.machine.distance(from, to)).collect();
        let Some(values) = values.filter(|_| nodes.len() > 1) else { return };
        let attributes = [
            ("type", "NUMANode".to_owned()),
            ("nbobjs", nodes.len().to_string()),
            ("kind", LATENCY_OF_THE_SYSTEM.to_string()),
            ("name", "NUMALatency".to_owned()),
            ("indexing", "os".to_owned()),
        ];
        self.xml.open("distances2", &attributes);
        self.numbers("indexes", &nodes);
        self.numbers("u64values", &values);
        self.xml.close();
    }

    /// Numbers with a blank behind each; the length counts all bytes, as hwloc checks.
    fn numbers(&mut self, name: &'static str, numbers: &[impl ToString]) {
        for part in numbers.chunks(PER_ELEMENT) {
            let text: String = part.iter().map(|number| number.to_string() + " ").collect();
            self.xml.text(name, &[("length", text.len().to_string())], &text);
        }
    }

    /// Latency and bandwidth from the best initiators, as the firmware says; or measured, from every node.
    fn memory_attributes(&mut self, measured: &MeasuredMemory) {
        let machine = self.machine;
        let measured = measured.tables();
        let is_measured = |name: &str| measured.iter().any(|(names, _)| names.contains(&name));
        let mut tables: BTreeMap<(u8, &str, u32), Vec<MemoryAttribute>> = BTreeMap::new();
        for (node, index) in &self.node_indexes {
            let of = |class| {
                machine.access(*node, class).map(|access| (access, machine.cpus_of_nodes(&access.initiators)))
            };
            let mut known = [AccessClass::Cpu, AccessClass::Any].into_iter().filter_map(of);
            let Some((access, cpus)) = known.find(|(_, cpus)| !cpus.is_empty()) else { continue };
            for (order, (name, flags, value)) in (0..).zip(initiator_attributes(access)) {
                let Some(value) = value.filter(|_| !is_measured(name)) else { continue };
                tables.entry((order, name, flags)).or_default().push(memory_value(*index, value, &cpus));
            }
        }
        for (name, (order, flags)) in INITIATOR_ATTRIBUTES {
            let values =
                measured.iter().filter(|(names, _)| names.contains(&name)).flat_map(|(_, values)| values);
            for ((from, memory), value) in values {
                let Some(index) = self.node_indexes.get(memory) else { continue };
                let value = memory_value(*index, *value, &machine.cpus_of(*from));
                tables.entry((order, name, flags)).or_default().push(value);
            }
        }
        for ((_, name, flags), values) in tables {
            self.xml.open("memattr", &[("name", name.to_owned()), ("flags", flags.to_string())]);
            for value in values {
                self.xml.empty("memattr_value", &value);
            }
            self.xml.close();
        }
    }

    /// CPUs of one speed each, slowest first, where something is known of their speed.
    fn cpu_kinds(&mut self) {
        for kind in self.machine.cpu_kinds().into_iter().rev() {
            let core_type = kind.core_type.map(|core_type| match core_type {
                CoreType::Performance => "IntelCore",
                CoreType::Efficiency | CoreType::LowPower => "IntelAtom",
            });
            let infos = [
                ("CoreType", core_type.map(ToOwned::to_owned)),
                ("LinuxCapacity", kind.capacity.map(|capacity| capacity.to_string())),
                ("FrequencyMaxMHz", kind.max_frequency_khz.map(|frequency| (frequency / 1000).to_string())),
            ];
            if infos.iter().all(|(_, value)| value.is_none()) {
                continue;
            }
            self.xml.open("cpukind", &[("cpuset", mask(&kind.cpus))]);
            for (name, value) in infos {
                if let Some(value) = value {
                    self.info(name, &value);
                }
            }
            self.xml.close();
        }
    }
}

/// The value of an attribute of a node's memory, from these CPUs.
fn memory_value(index: u64, value: u64, cpus: &CpuSet) -> MemoryAttribute {
    [
        ("target_obj_type", "NUMANode".to_owned()),
        ("target_obj_gp_index", index.to_string()),
        ("value", value.to_string()),
        ("initiator_cpuset", mask(cpus)),
    ]
}

/// The allowed part of a set; all of it where nothing is known, or where none would be left.
fn allowed<I: nodewise_machine::id::Id>(
    all: &nodewise_machine::IdSet<I>,
    allowed: Option<&nodewise_machine::IdSet<I>>,
) -> nodewise_machine::IdSet<I> {
    let usable = allowed.map(|allowed| allowed.intersection(all)).filter(|usable| !usable.is_empty());
    usable.unwrap_or_else(|| all.clone())
}
