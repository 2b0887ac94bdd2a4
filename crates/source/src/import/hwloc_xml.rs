//! The XML of hwloc (lstopo), as other tools of high-performance computing exchange topologies.
//!
//! # Source
//! hwloc 2.0 to 2.12, `lstopo --of xml`. In its tree, nodes hang beside the CPUs that are nearest to them: a node
//! without CPUs has the set of the CPUs around it, so that a CPU is counted to the node with the smallest set that has
//! it. Any attribute may be missing, which some releases of lstopo do not survive: what it would say is unknown then.

use std::collections::BTreeMap;

use nodewise_machine::id::Id as _;
use nodewise_machine::node::MemorySideCache;
use nodewise_machine::order::Order as _;
use nodewise_machine::printable::printable;
use nodewise_machine::{
    Access, AccessClass, BookId, Bytes, Cache, CacheKind, ClusterId, CoreId, Cpu, CpuId, CpuModel, CpuSet,
    DieId, DrawerId, HugePool, KernelRelease, Machine, MeminfoField, Node, NodeId, NodeMatrix, NodeSet,
    Oddity, OddityKind, Origin, PackageId,
};
use roxmltree::{Document, Node as Element, ParsingOptions};

use super::{bitmap, hwloc_devices};
use crate::limits::{MOST_CPUS, MOST_NODES};
use crate::parse::{ParseError, Parsed, Problems, digits};
use crate::smbios::slots::known;

/// Elements, texts and comments of a document: a machine of 16,384 CPUs has some 200,000.
const MOST_XML_NODES: u32 = 2 << 20;
/// Objects around one that are looked at: real trees have some twelve.
const MOST_LEVELS: usize = 64;
/// Distances and attributes.
const MOST_VALUES: usize = MOST_NODES * MOST_NODES;
/// Of a matrix that comes from the system (1) and means latency (4).
const LATENCY_OF_SYSTEM: u32 = 1 | 4;

/// Whether a text is one.
pub fn is_hwloc_xml(text: &str) -> bool {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    text.starts_with('<') && text.lines().take(20).any(|line| line.contains("<topology"))
}

/// Reads it.
///
/// # Errors
/// A text that is not XML, or another document.
pub fn parse(text: &str) -> Result<Parsed<Machine>, ParseError> {
    let options =
        ParsingOptions { allow_dtd: true, nodes_limit: MOST_XML_NODES, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options)
        .map_err(|error| ParseError::new(error.pos().row, "well-formed XML", &error.to_string()))?;
    let root = document.root_element();
    if root.tag_name().name() != "topology" {
        return Err(ParseError::new(1, "an element topology", root.tag_name().name()));
    }
    let mut reader = Reader {
        document: &document,
        machine: Machine::new(Origin::Capture(String::new())),
        problems: Problems::default(),
        by_gp_index: BTreeMap::new(),
    };
    reader.read(root);
    if reader.machine.cpus.is_empty() && reader.machine.nodes.is_empty() {
        return Err(ParseError::new(1, "an object of type PU or NUMANode", ""));
    }
    Ok(Parsed { value: reader.machine, problems: reader.problems })
}

/// A document, and what was made of it so far.
pub(super) struct Reader<'d, 't> {
    document: &'d Document<'t>,
    pub(super) machine: Machine,
    problems: Problems,
    /// Nodes by hwloc's own numbers.
    by_gp_index: BTreeMap<u64, NodeId>,
}

/// Whether an element is an object of this type.
fn is_object(element: Element<'_, '_>, kind: &str) -> bool {
    element.has_tag_name("object") && element.attribute("type") == Some(kind)
}

/// The objects around an element, from the inside.
pub(super) fn around<'d, 't>(element: Element<'d, 't>) -> impl Iterator<Item = Element<'d, 't>> {
    element.ancestors().skip(1).take(MOST_LEVELS).filter(|element| element.has_tag_name("object"))
}

impl<'d, 't> Reader<'d, 't> {
    fn read(&mut self, root: Element<'d, 't>) {
        let objects = || root.descendants().filter(|element| element.has_tag_name("object"));
        self.infos(root);
        for object in objects() {
            match object.attribute("type") {
                Some("PU") => self.cpu(object),
                Some("NUMANode") => self.node(object),
                _ => {}
            }
        }
        let ids = self.machine.cpu_ids();
        for object in objects().filter(|object| is_object(*object, "Machine")) {
            self.machine.allowed_cpus =
                self.cpus(object, "allowed_cpuset").map(|allowed| allowed.intersection(&ids));
            self.machine.allowed_nodes = self.set(object, "allowed_nodeset", NodeId::LIMIT);
            let all: NodeSet = self.set(object, "complete_nodeset", NodeId::LIMIT).unwrap_or_default();
            let missing = all.difference(&self.machine.node_ids());
            if !missing.is_empty() {
                let text = format!(
                    "{} {} not described: hwloc leaves out nodes without memory, and those that it may not use",
                    nodewise_machine::check::node_names(&missing),
                    nodewise_machine::plural::by_count(&missing.len(), "is", "are")
                );
                self.machine.oddities.push(Oddity::new(OddityKind::NodeMissing, text));
            }
        }
        self.cores(root);
        self.own_cpus(root);
        for object in objects() {
            match object.attribute("type") {
                Some("MemCache") => {}
                Some("NUMANode") => self.memory_side_caches(object),
                Some("Package") => self.model(object),
                Some(kind) if kind.ends_with("Cache") => self.cache(object, kind),
                _ => {}
            }
        }
        self.machine.caches.order_by_key(|cache| (cache.level, cache.kind, cache.cpus.first()));
        self.machine.cpu_models.order_by_key(|model| model.cpus.first());
        self.distances(root);
        self.attributes(root);
        for object in objects() {
            hwloc_devices::read(self, object);
        }
        self.machine.devices.order_by_key(|device| (device.pci.is_none(), device.pci));
    }

    /// Notes what is wrong with an element.
    pub(super) fn problem(&mut self, element: Element<'_, '_>, expected: &str, found: &str) {
        // A place costs a look at everything before it, and only the first few are shown.
        let is_shown = self.problems.others == 0 && self.problems.first.len() < 8;
        let line = if is_shown { self.document.text_pos_at(element.range().start).row } else { 0 };
        self.problems.add(line, expected, found);
    }

    /// The number in an attribute; `None` where it is missing, or is not one.
    fn number<T: std::str::FromStr>(&mut self, element: Element<'_, '_>, name: &str) -> Option<T> {
        let text = element.attribute(name)?;
        let number = digits(text);
        if number.is_none() {
            self.problem(element, &format!("a number as {name}"), text);
        }
        number
    }

    /// The id of an object, below a limit; one without is useless.
    fn id(&mut self, element: Element<'_, '_>, most: u32) -> Option<u32> {
        let text = element.attribute("os_index").unwrap_or("");
        let id = digits::<u32>(text).filter(|id| *id < most);
        if id.is_none() {
            self.problem(element, &format!("an os_index below {most}"), text);
        }
        id
    }

    fn set<I: nodewise_machine::id::Id>(
        &mut self,
        element: Element<'_, '_>,
        name: &str,
        most: u32,
    ) -> Option<nodewise_machine::IdSet<I>> {
        let text = element.attribute(name)?;
        let set = bitmap(text, most);
        if set.is_none() {
            self.problem(element, &format!("a set such as 0x0000000f as {name}"), text);
        }
        set
    }

    pub(super) fn cpus(&mut self, element: Element<'_, '_>, name: &str) -> Option<CpuSet> {
        self.set(element, name, MOST_CPUS)
    }

    /// Reads the facts about the machine as a whole: inside the object Machine, since hwloc 3 beside it.
    fn infos(&mut self, root: Element<'_, '_>) {
        let machine = root.children().find(|element| is_object(*element, "Machine"));
        for element in [Some(root), machine].into_iter().flatten() {
            for info in element.children().filter(|element| element.has_tag_name("info")) {
                let (Some(name), Some(value)) = (info.attribute("name"), info.attribute("value")) else {
                    continue;
                };
                let Some(value) = known(value).map(|value| printable(&value).into_owned()) else { continue };
                let product = &mut self.machine.product;
                match name {
                    "Architecture" => self.machine.architecture = Some(value),
                    "OSRelease" => self.machine.kernel = KernelRelease::new(&value),
                    "DMISysVendor" => product.vendor = Some(value),
                    "DMIProductName" => product.name = Some(value),
                    "DMIBIOSVendor" => product.firmware_vendor = Some(value),
                    "DMIBIOSVersion" => product.firmware_version = Some(value),
                    "DMIBIOSDate" => product.firmware_date = Some(value),
                    _ => {}
                }
            }
        }
    }

    fn cpu(&mut self, object: Element<'_, '_>) {
        let Some(id) = self.id(object, MOST_CPUS).map(CpuId::new) else { return };
        let mut cpu = Cpu::new(id);
        for outer in around(object) {
            let Some(number) = outer.attribute("os_index").and_then(digits::<u32>) else { continue };
            match (outer.attribute("type"), outer.attribute("subtype")) {
                (Some("Core"), _) => cpu.core = Some(CoreId::new(number)),
                (Some("Die"), _) => cpu.die = Some(DieId::new(number)),
                (Some("Package"), _) => cpu.package = Some(PackageId::new(number)),
                (Some("Group"), Some("Cluster")) => cpu.cluster = Some(ClusterId::new(number)),
                (Some("Group"), Some("Book")) => cpu.book = Some(BookId::new(number)),
                (Some("Group"), Some("Drawer")) => cpu.drawer = Some(DrawerId::new(number)),
                _ => {}
            }
        }
        if self.machine.cpus.insert(id, cpu).is_some() {
            self.problem(object, "each PU once", &format!("PU {id}"));
        }
    }

    /// Fills the threads of each core: the CPUs below its object.
    fn cores(&mut self, root: Element<'_, '_>) {
        let mut cores: BTreeMap<usize, CpuSet> = BTreeMap::new();
        for object in root.descendants().filter(|element| is_object(*element, "PU")) {
            let id = object.attribute("os_index").and_then(digits::<u32>).map(CpuId::new);
            let core = around(object).find(|outer| is_object(*outer, "Core"));
            if let (Some(id), Some(core)) = (id.filter(|id| self.machine.cpus.contains_key(id)), core) {
                cores.entry(core.range().start).or_default().insert(id);
            }
        }
        for siblings in cores.values() {
            for id in siblings {
                if let Some(cpu) = self.machine.cpus.get_mut(&id) {
                    cpu.siblings = siblings.clone();
                }
            }
        }
    }

    fn node(&mut self, object: Element<'_, '_>) {
        let Some(id) = self.id(object, NodeId::LIMIT).map(NodeId::new) else { return };
        if self.machine.nodes.len() >= MOST_NODES || self.machine.nodes.contains_key(&id) {
            return self.problem(
                object,
                "each NUMANode once, and no more than a kernel can have",
                &format!("NUMANode {id}"),
            );
        }
        let mut node = Node::new(id);
        if let Some(size) = self.number(object, "local_memory").map(Bytes::new) {
            node.meminfo.push(MeminfoField::total(size));
        }
        self.page_types(object, &mut node);
        if let Some(index) = self.number(object, "gp_index") {
            self.by_gp_index.insert(index, id);
        }
        self.machine.nodes.insert(id, node);
    }

    /// Pages by size: the smallest are the ordinary ones.
    fn page_types(&mut self, object: Element<'_, '_>, node: &mut Node) {
        let mut pools = BTreeMap::new();
        for page in object.children().filter(|element| element.has_tag_name("page_type")) {
            let size: Option<u64> = self.number(page, "size").filter(|size| *size > 0);
            let count: Option<u64> = self.number(page, "count");
            if let Some(size) = size {
                pools.insert(Bytes::new(size), count);
            }
        }
        if let Some((smallest, _)) = pools.pop_first() {
            self.machine.page_size = self.machine.page_size.or(Some(smallest));
        }
        let pool = |(page_size, total)| HugePool { page_size, total, free: None, surplus: None };
        node.huge_pools = pools.into_iter().map(pool).collect();
    }

    /// Counts each CPU to the node with the smallest set that has it, of several the lowest.
    fn own_cpus(&mut self, root: Element<'_, '_>) {
        let mut claims: Vec<(usize, NodeId, CpuSet)> = Vec::new();
        let known = self.machine.cpu_ids();
        for object in root.descendants().filter(|element| is_object(*element, "NUMANode")) {
            let id = object.attribute("os_index").and_then(digits::<u32>).map(NodeId::new);
            let Some(id) = id.filter(|id| self.machine.nodes.contains_key(id)) else { continue };
            if claims.len() < MOST_NODES {
                let cpus = self.cpus(object, "cpuset").unwrap_or_default().intersection(&known);
                claims.push((cpus.len(), id, cpus));
            }
        }
        claims.order();
        let mut left = known;
        let mut without = NodeSet::new();
        for (_, id, cpus) in claims {
            let own = cpus.intersection(&left);
            left = left.difference(&own);
            if own.is_empty() && !cpus.is_empty() {
                without.insert(id);
            }
            for cpu in &own {
                if let Some(cpu) = self.machine.cpus.get_mut(&cpu) {
                    cpu.node = Some(id);
                }
            }
            if let Some(node) = self.machine.nodes.get_mut(&id) {
                node.cpus = own;
            }
        }
        if !without.is_empty() {
            let text = format!(
                "{} taken for memory-only: hwloc gives the CPUs around a node, and others have these",
                nodewise_machine::check::node_names(&without)
            );
            self.machine.oddities.push(Oddity::new(OddityKind::FirmwareAssumed, text));
        }
    }

    /// Fills the caches in front of a node, which are around it.
    fn memory_side_caches(&mut self, object: Element<'_, '_>) {
        let Some(id) = object.attribute("os_index").and_then(digits::<u32>).map(NodeId::new) else { return };
        for outer in around(object).filter(|outer| is_object(*outer, "MemCache")) {
            let Some(level) = self.number(outer, "depth") else { continue };
            let size = self.number::<u64>(outer, "cache_size").filter(|size| *size > 0).map(Bytes::new);
            let line_size = self.number::<u32>(outer, "cache_linesize").filter(|size| *size > 0);
            if let Some(node) = self.machine.nodes.get_mut(&id) {
                let cache = MemorySideCache { level, size, line_size, indexing: None, write_policy: None };
                node.memory_side_caches.push(cache);
            }
        }
    }

    fn cache(&mut self, object: Element<'_, '_>, name: &str) {
        let known = self.machine.cpu_ids();
        let kind = match object.attribute("cache_type") {
            Some("0") => CacheKind::Unified,
            Some("1") => CacheKind::Data,
            Some("2") => CacheKind::Instruction,
            other => return self.problem(object, "0, 1 or 2 as cache_type", other.unwrap_or("")),
        };
        let level = self.number(object, "depth").or_else(|| {
            let digits: String = name.chars().filter(char::is_ascii_digit).collect();
            digits.parse().ok()
        });
        let Some(level) = level else { return self.problem(object, "the level of a cache as depth", "") };
        let ways = match object.attribute("cache_associativity") {
            // Fully associative, which the kernel writes as 0; hwloc's 0 is unknown.
            Some("-1") => Some(0),
            _ => self.number::<u32>(object, "cache_associativity").filter(|ways| *ways > 0),
        };
        let cache = Cache {
            level,
            kind,
            size: self.number::<u64>(object, "cache_size").filter(|size| *size > 0).map(Bytes::new),
            line_size: self.number::<u32>(object, "cache_linesize").filter(|size| *size > 0),
            ways,
            sets: None,
            cpus: self.cpus(object, "cpuset").unwrap_or_default().intersection(&known),
        };
        if self.machine.caches.len() < 8 * MOST_CPUS as usize {
            self.machine.caches.push(cache);
        }
    }

    fn model(&mut self, object: Element<'_, '_>) {
        let infos = object.children().filter(|element| element.has_tag_name("info"));
        let mut model = infos.filter(|info| info.attribute("name") == Some("CPUModel"));
        let Some(name) = model.find_map(|info| info.attribute("value")) else { return };
        let known = self.machine.cpu_ids();
        let cpus = self.cpus(object, "cpuset").unwrap_or_default().intersection(&known);
        let name = printable(&name.split_ascii_whitespace().collect::<Vec<_>>().join(" ")).into_owned();
        if cpus.is_empty() || name.is_empty() {
            return;
        }
        match self.machine.cpu_models.iter_mut().find(|model| model.name == name) {
            Some(model) => model.cpus = model.cpus.union(&cpus),
            None => self.machine.cpu_models.push(CpuModel { name, cpus }),
        }
    }

    /// Numbers in the children of this name, which hwloc writes in pieces.
    fn values(&mut self, element: Element<'_, '_>, name: &str) -> Option<Vec<u64>> {
        let mut values = Vec::new();
        for child in element.children().filter(|child| child.has_tag_name(name)) {
            for word in child.text().unwrap_or("").split_ascii_whitespace() {
                let Some(value) = digits(word).filter(|_| values.len() < MOST_VALUES) else {
                    self.problem(child, &format!("numbers in {name}"), word);
                    return None;
                };
                values.push(value);
            }
        }
        Some(values)
    }

    fn distances(&mut self, root: Element<'_, '_>) {
        for matrix in root.children().filter(|element| element.has_tag_name("distances2")) {
            let kind: Option<u32> = self.number(matrix, "kind");
            let is_nodes = matrix.attribute("type") == Some("NUMANode");
            let is_latency = kind.is_some_and(|kind| kind & LATENCY_OF_SYSTEM == LATENCY_OF_SYSTEM);
            if !is_nodes || !is_latency || !self.machine.distances.is_empty() {
                continue;
            }
            let (Some(indexes), Some(values)) =
                (self.values(matrix, "indexes"), self.values(matrix, "u64values"))
            else {
                continue;
            };
            let is_gp = matrix.attribute("indexing") == Some("gp");
            let node = |index: &u64| {
                if is_gp {
                    return self.by_gp_index.get(index).copied();
                }
                let id = u32::try_from(*index).ok().map(NodeId::new)?;
                self.machine.nodes.contains_key(&id).then_some(id)
            };
            let nodes: Option<Vec<NodeId>> = indexes.iter().map(node).collect();
            let Some(nodes) = nodes.filter(|nodes| nodes.len() * nodes.len() == values.len()) else {
                self.problem(matrix, "an index of a node for each row, and a value for each pair", "");
                continue;
            };
            let mut distances = NodeMatrix::new(self.machine.nodes.keys().copied());
            let pairs = nodes.iter().flat_map(|from| nodes.iter().map(move |to| (*from, *to)));
            for ((from, to), value) in pairs.zip(values) {
                if let Ok(value) = u32::try_from(value) {
                    distances.set(from, to, value);
                }
            }
            self.machine.distances = distances;
        }
    }

    /// Latency and bandwidth from the nearest initiators; averages of reads and writes are left out.
    fn attributes(&mut self, root: Element<'_, '_>) {
        let mut accesses: BTreeMap<NodeId, Access> = BTreeMap::new();
        for attribute in root.children().filter(|element| element.has_tag_name("memattr")) {
            let name = attribute.attribute("name").unwrap_or("");
            if !["ReadLatency", "WriteLatency", "ReadBandwidth", "WriteBandwidth"].contains(&name) {
                continue;
            }
            for value in attribute.children().filter(|element| element.has_tag_name("memattr_value")) {
                let target: Option<u64> = self.number(value, "target_obj_gp_index");
                let target = target.and_then(|index| self.by_gp_index.get(&index).copied());
                let number = self.number(value, "value").filter(|number: &u32| *number > 0);
                let cpus = self.cpus(value, "initiator_cpuset");
                let (Some(target), Some(cpus)) = (target, cpus) else { continue };
                let nodes = self.machine.nodes.values();
                let near = nodes.filter(|node| !node.cpus.is_disjoint(&cpus)).map(|node| node.id);
                let access = accesses.entry(target).or_insert_with(|| Access {
                    target,
                    class: AccessClass::Any,
                    initiators: near.collect(),
                    read_latency_ns: None,
                    write_latency_ns: None,
                    read_bandwidth_mb_per_s: None,
                    write_bandwidth_mb_per_s: None,
                });
                match name {
                    "ReadLatency" => access.read_latency_ns = number,
                    "WriteLatency" => access.write_latency_ns = number,
                    "ReadBandwidth" => access.read_bandwidth_mb_per_s = number,
                    _ => access.write_bandwidth_mb_per_s = number,
                }
            }
        }
        self.machine.accesses = accesses.into_values().collect();
    }
}

#[cfg(test)]
mod tests;
