//! [`Spec`] to [`Machine`].

use super::{Body, CpuPart, Distances, Group, MOST_CPUS, MOST_NODES, NodePart, Spec, SpecError, ThreadOrder};
use crate::cache::Cache;
use crate::cpu::Cpu;
use crate::device::{Device, DeviceClass, DeviceName, DeviceRef};
use crate::id::{CoreId, CpuId, DieId, NodeId, PackageId};
use crate::machine::{Machine, Origin};
use crate::matrix::NodeMatrix;
use crate::node::{Access, AccessClass, HugePool, MeminfoField, Node, Tier};
use crate::order::Order as _;
use crate::set::{CpuSet, NodeSet};
use crate::units::Bytes;

/// A node of the unfolded spec: what it holds and which top-level package it is in.
struct Placed<'a> {
    id: NodeId,
    part: &'a NodePart,
    package: usize,
}

/// The first thread of every core of a node, in order, with its package.
struct Core {
    node: usize,
    package: PackageId,
    core: CoreId,
    threads: u32,
}

impl Spec {
    /// Makes the machine.
    ///
    /// # Errors
    /// Counts that do not fit together: more nodes or CPUs than a kernel can have, a matrix of
    /// another size than the nodes, an option that names a missing node.
    pub fn machine(&self) -> Result<Machine, SpecError> {
        let nodes = self.unfold()?;
        let mut machine = Machine::new(Origin::Spec(self.to_string()));
        machine.architecture.clone_from(&self.architecture);
        machine.kernel.clone_from(&self.kernel);
        machine.swap_free = self.swap;
        machine.settings.transparent_hugepage = self.huge_pages.map(str::to_owned);
        machine.possible_nodes = nodes.iter().map(|node| node.id).collect();
        for placed in &nodes {
            machine.nodes.insert(placed.id, node_of(placed));
        }
        self.add_cpus(&mut machine, &nodes);
        self.add_distances(&mut machine, &nodes)?;
        self.add_tiers(&mut machine, &nodes);
        self.add_accesses(&mut machine)?;
        self.add_devices(&mut machine)?;
        for (node, weight) in &self.weights {
            self.known(&machine, *node, "weights")?;
            machine.settings.interleave_weights.insert(*node, *weight);
        }
        machine.check();
        Ok(machine)
    }

    /// An error of the spec as a whole; the caret is under the option it is about.
    fn fail<T>(&self, option: &str, message: String) -> Result<T, SpecError> {
        let text = self.to_string();
        let column = text.find(&format!("; {option}=")).map_or(1, |at| text[..at].chars().count() + 3);
        Err(SpecError { text, column, message })
    }

    fn known(&self, machine: &Machine, node: NodeId, option: &str) -> Result<(), SpecError> {
        if machine.nodes.contains_key(&node) {
            return Ok(());
        }
        self.fail(
            option,
            format!("node {node} does not exist: this machine has nodes {}", machine.node_ids()),
        )
    }

    fn unfold(&self) -> Result<Vec<Placed<'_>>, SpecError> {
        let mut parts: Vec<(&NodePart, usize)> = Vec::new();
        let mut package = 0;
        for group in &self.groups {
            for _ in 0..group.count {
                push(&group.body, package, &mut parts);
                package += 1;
                if parts.len() > MOST_NODES as usize {
                    return self.fail("", format!("expected at most {MOST_NODES} nodes"));
                }
            }
        }
        let cpus: u64 = parts.iter().filter_map(|(part, _)| part.cpus).map(count).sum();
        if cpus > u64::from(MOST_CPUS) {
            return self.fail("", format!("expected at most {MOST_CPUS} CPUs: these are {cpus}"));
        }
        let ids: Vec<NodeId> = match &self.ids {
            None => (0..parts.len() as u32).map(NodeId::new).collect(),
            Some(ids) if ids.len() == parts.len() => ids.iter().collect(),
            Some(ids) => {
                let message = format!(
                    "expected {} node numbers, one for each node: these are {}",
                    parts.len(),
                    ids.len()
                );
                return self.fail("ids", message);
            }
        };
        let placed = ids.into_iter().zip(parts).map(|(id, (part, package))| Placed { id, part, package });
        Ok(placed.collect())
    }

    fn add_cpus(&self, machine: &mut Machine, nodes: &[Placed<'_>]) {
        let cores = cores_of(nodes);
        let total: u32 = cores.iter().map(|core| core.threads).sum();
        let most = cores.iter().map(|core| core.threads).max().unwrap_or(0);
        // (core, thread) in the order of CPU numbers.
        let order: Vec<(usize, u32)> = match self.smt {
            ThreadOrder::Adjacent => cores
                .iter()
                .enumerate()
                .flat_map(|(at, core)| (0..core.threads).map(move |thread| (at, thread)))
                .collect(),
            ThreadOrder::Split => (0..most)
                .flat_map(|thread| {
                    cores
                        .iter()
                        .enumerate()
                        .filter(move |(_, core)| thread < core.threads)
                        .map(move |(at, _)| (at, thread))
                })
                .collect(),
        };
        let mut siblings: Vec<CpuSet> = vec![CpuSet::new(); cores.len()];
        for (number, (core, _)) in (0..total).zip(&order) {
            siblings[*core].insert(CpuId::new(number));
        }
        for (number, (core, _)) in (0..total).zip(&order) {
            let id = CpuId::new(number);
            let Core { node, package, core: core_id, .. } = cores[*core];
            let node = nodes[node].id;
            machine.cpus.insert(
                id,
                Cpu {
                    node: Some(node),
                    core: Some(core_id),
                    die: Some(DieId::new(0)),
                    package: Some(package),
                    siblings: siblings[*core].clone(),
                    ..Cpu::new(id)
                },
            );
            machine.possible_cpus.insert(id);
            if let Some(node) = machine.nodes.get_mut(&node) {
                node.cpus.insert(id);
            }
        }
        machine.caches = caches_of(nodes, &cores, &siblings);
    }

    fn add_distances(&self, machine: &mut Machine, nodes: &[Placed<'_>]) -> Result<(), SpecError> {
        let mut matrix = NodeMatrix::new(nodes.iter().map(|node| node.id));
        if let Some(Distances::Matrix(rows)) = &self.distances {
            if rows.len() != nodes.len() || rows.iter().any(|row| row.len() != nodes.len()) {
                return self.fail(
                    "dist",
                    format!("expected {0} rows of {0} distances, one for each node", nodes.len()),
                );
            }
        }
        for (row, from) in nodes.iter().enumerate() {
            for (column, to) in nodes.iter().enumerate() {
                let distance = match &self.distances {
                    Some(Distances::Matrix(rows)) => rows[row][column],
                    _ if row == column => 10,
                    None => 20,
                    Some(Distances::Remote(remote)) => *remote,
                    Some(Distances::Packages(same, other)) => {
                        if from.package == to.package {
                            *same
                        } else {
                            *other
                        }
                    }
                };
                matrix.set(from.id, to.id, distance);
            }
        }
        machine.distances = matrix;
        Ok(())
    }

    fn add_tiers(&self, machine: &mut Machine, nodes: &[Placed<'_>]) {
        let mut tiers: Vec<Tier> = Vec::new();
        for node in nodes {
            let Some(id) = node.part.tier else { continue };
            match tiers.iter_mut().find(|tier| tier.id == id) {
                Some(tier) => {
                    tier.nodes.insert(node.id);
                }
                None => tiers.push(Tier { id, nodes: NodeSet::from_iter([node.id]) }),
            }
        }
        tiers.order_by_key(|tier| tier.id);
        machine.tiers = tiers;
    }

    fn add_accesses(&self, machine: &mut Machine) -> Result<(), SpecError> {
        for part in &self.accesses {
            for node in part.initiators.iter().chain([part.target]) {
                self.known(machine, node, "access")?;
            }
            let with_cpus = part.initiators.is_subset(&machine.nodes_with_cpus());
            for class in [AccessClass::Any, AccessClass::Cpu] {
                if class == AccessClass::Cpu && !with_cpus {
                    continue;
                }
                machine.accesses.push(Access {
                    target: part.target,
                    class,
                    initiators: part.initiators.clone(),
                    read_latency_ns: Some(part.latency_ns.0),
                    write_latency_ns: Some(part.latency_ns.1),
                    read_bandwidth_mb_per_s: part.bandwidth_mb_per_s.map(|(read, _)| read),
                    write_bandwidth_mb_per_s: part.bandwidth_mb_per_s.map(|(_, write)| write),
                });
            }
        }
        machine.accesses.order_by_key(|access| (access.target, access.class));
        Ok(())
    }

    fn add_devices(&self, machine: &mut Machine) -> Result<(), SpecError> {
        for (reference, node) in &self.devices {
            self.known(machine, *node, "dev")?;
            let name = |class, name: &str| vec![DeviceName { class, name: name.to_owned() }];
            let names = match reference {
                DeviceRef::Net(text) => name(DeviceClass::Net, text),
                DeviceRef::Block(text) => name(DeviceClass::Block, text),
                DeviceRef::Infiniband(text) => name(DeviceClass::Infiniband, text),
                DeviceRef::Gpu(index) => name(DeviceClass::Accelerator, &format!("accel{index}")),
                DeviceRef::Pci(_) | DeviceRef::File(_) | DeviceRef::Ip(_) => Vec::new(),
            };
            let pci = if let DeviceRef::Pci(address) = reference { Some(*address) } else { None };
            let local_cpus = machine.cpus_of(*node);
            machine.devices.push(Device {
                pci,
                class_code: None,
                vendor: None,
                device: None,
                names,
                node: Some(*node),
                local_cpus,
                link: None,
                dax: None,
            });
        }
        machine
            .devices
            .order_by(|a, b| (a.pci.is_none(), a.pci, &a.names).cmp(&(b.pci.is_none(), b.pci, &b.names)));
        Ok(())
    }
}

fn push<'a>(body: &'a Body, package: usize, parts: &mut Vec<(&'a NodePart, usize)>) {
    match body {
        Body::Node(node) => parts.push((node, package)),
        Body::Package(groups) => {
            for Group { count, body } in groups {
                for _ in 0..*count {
                    // Whatever is beyond the limit is counted by the caller, not stored.
                    if parts.len() <= MOST_NODES as usize {
                        push(body, package, parts);
                    }
                }
            }
        }
    }
}

fn count(cpus: CpuPart) -> u64 {
    u64::from(cpus.packages) * u64::from(cpus.cores) * u64::from(cpus.threads)
}

fn node_of(placed: &Placed<'_>) -> Node {
    let mut node = Node::new(placed.id);
    // A kernel prints MemTotal 0 for a node without memory; a spec says so by leaving it out.
    let total = placed.part.memory.unwrap_or(Bytes::new(0));
    node.meminfo = vec![MeminfoField::total(total)];
    let (free, cache) = (placed.part.free, placed.part.cache);
    if free.is_some() || cache.is_some() {
        let cache = cache.unwrap_or_default();
        node.set_use(free.unwrap_or(Bytes::new(total.get().saturating_sub(cache.get()))), cache);
    }
    node.huge_pools = placed
        .part
        .huge
        .iter()
        .map(|(page_size, count)| HugePool {
            page_size: *page_size,
            total: Some(*count),
            free: Some(*count),
            surplus: Some(0),
        })
        .collect();
    node.huge_pools.order_by_key(|pool| pool.page_size);
    node
}

fn cores_of(nodes: &[Placed<'_>]) -> Vec<Core> {
    let mut cores = Vec::new();
    let mut next_package = 0;
    // The package number of each top-level group, once it has been given one.
    let mut numbers: Vec<(usize, u32)> = Vec::new();
    let mut used: Vec<u32> = Vec::new();
    for (at, placed) in nodes.iter().enumerate() {
        let Some(cpus) = placed.part.cpus else { continue };
        let first = match numbers.iter().find(|(group, _)| *group == placed.package) {
            Some((_, number)) if cpus.packages == 1 => *number,
            _ => {
                numbers.push((placed.package, next_package));
                next_package += cpus.packages;
                used.resize(next_package as usize, 0);
                next_package - cpus.packages
            }
        };
        for package in first..first + cpus.packages {
            for _ in 0..cpus.cores {
                let core = CoreId::new(used[package as usize]);
                used[package as usize] += 1;
                cores.push(Core { node: at, package: PackageId::new(package), core, threads: cpus.threads });
            }
        }
    }
    cores
}

fn caches_of(nodes: &[Placed<'_>], cores: &[Core], siblings: &[CpuSet]) -> Vec<Cache> {
    let mut caches = Vec::new();
    for (at, placed) in nodes.iter().enumerate() {
        let own: Vec<&CpuSet> =
            cores.iter().zip(siblings).filter(|(core, _)| core.node == at).map(|(_, cpus)| cpus).collect();
        for part in &placed.part.caches {
            for group in own.chunks(part.cores as usize) {
                caches.push(Cache {
                    level: part.level,
                    kind: part.kind,
                    size: Some(part.size),
                    line_size: None,
                    ways: None,
                    sets: None,
                    cpus: group.iter().fold(CpuSet::new(), |all, cpus| all.union(cpus)),
                });
            }
        }
    }
    caches.order_by_key(|cache| (cache.level, cache.kind, cache.cpus.first()));
    caches
}

#[cfg(test)]
mod tests {
    use super::super::machine;
    use crate::id::{CpuId, NodeId, PackageId};
    use crate::node::AccessClass;
    use crate::units::Bytes;

    fn n(number: u32) -> NodeId {
        NodeId::new(number)
    }

    fn refuse(text: &str, expected: &str) {
        let message = machine(text).unwrap_err().to_string();
        assert_eq!(message.lines().next().unwrap(), expected);
    }

    #[test]
    fn threads_are_numbered_as_linux_does_on_x86() {
        let machine = machine("2x(10c2t 64G); dist=21").unwrap();
        assert_eq!(machine.nodes[&n(0)].cpus.to_string(), "0-9,20-29");
        assert_eq!(machine.nodes[&n(1)].cpus.to_string(), "10-19,30-39");
        assert_eq!(machine.cpus[&CpuId::new(30)].siblings.to_string(), "10,30");
        assert_eq!(machine.cpus[&CpuId::new(30)].package, Some(PackageId::new(1)));
        assert_eq!(machine.distance(n(0), n(1)), Some(21));
        assert!(machine.oddities.is_empty(), "{:?}", machine.oddities);
    }

    #[test]
    fn packages_hold_nodes_and_shape_distances() {
        let machine = machine("2x(2x(2c 1G l3=32M/2c)); dist=11,20; smt=adjacent").unwrap();
        let rows: Vec<Vec<u32>> =
            machine.distances.rows().map(|(_, row)| row.iter().flatten().copied().collect()).collect();
        assert_eq!(rows, [[10, 11, 20, 20], [11, 10, 20, 20], [20, 20, 10, 11], [20, 20, 11, 10]]);
        assert_eq!(machine.packages().len(), 2);
        assert_eq!(machine.last_level_caches().count(), 4);
        assert_eq!(machine.caches[1].cpus.to_string(), "2-3");
    }

    #[test]
    fn a_pi_with_emulated_nodes_has_seven_without_cpus() {
        let machine = machine("(4c 1G) 7x(1G)").unwrap();
        assert_eq!(machine.nodes.len(), 8);
        assert_eq!(machine.nodes_with_cpus().to_string(), "0");
        assert_eq!(machine.memory_total(), Some(Bytes::from_gib(8)));
    }

    #[test]
    fn firmware_attributes_reach_both_classes_from_cpus_only() {
        let machine = machine("(2c 1G) (1G) (1G); access=0>1:250ns,300ns/30G; access=1>2:90ns").unwrap();
        let access = machine.access(n(1), AccessClass::Cpu).unwrap();
        assert_eq!((access.read_latency_ns, access.write_latency_ns), (Some(250), Some(300)));
        assert_eq!(access.read_bandwidth_mb_per_s, Some(30_000));
        assert!(machine.access(n(2), AccessClass::Any).is_some());
        assert!(machine.access(n(2), AccessClass::Cpu).is_none());
    }

    #[test]
    fn what_is_neither_free_nor_cache_is_used() {
        let machine = machine(
            "(1c 8G free=1G) (1c 8G cache=3G) (1c 8G free=1G cache=3G) (1c 8G); swap=16G; thp=always",
        );
        let machine = machine.unwrap();
        let gib = |node, field| machine.nodes[&n(node)].size_of(field).map(|size| size.get() >> 30);
        let fields = ["MemFree", "FilePages", "Inactive(file)"];
        assert_eq!(fields.map(|field| gib(0, field)), [Some(1), Some(0), Some(0)]);
        assert_eq!(fields.map(|field| gib(1, field)), [Some(5), Some(3), Some(3)]);
        assert_eq!(fields.map(|field| gib(2, field)), [Some(1), Some(3), Some(3)]);
        assert_eq!(fields.map(|field| gib(3, field)), [None; 3]);
        assert_eq!(machine.swap_free, Some(Bytes::from_gib(16)));
        assert_eq!(machine.settings.transparent_hugepage.as_deref(), Some("always"));
        assert!(machine.oddities.is_empty(), "{:?}", machine.oddities);
    }

    #[test]
    fn sparse_ids_name_the_nodes() {
        let machine = machine("3x(1c 1G); ids=0,2,5").unwrap();
        assert_eq!(machine.node_ids().to_string(), "0,2,5");
        assert_eq!(machine.distance(n(2), n(5)), Some(20));
    }

    #[test]
    fn counts_must_fit_together() {
        refuse("3x(1c 1G); ids=0,2", "expected 3 node numbers, one for each node: these are 2 (column 12)");
        refuse(
            "2x(1c 1G); dist=10,20/20,10/1,1",
            "expected 2 rows of 2 distances, one for each node (column 12)",
        );
        refuse("1024x(1024x(1c))", "expected at most 1024 nodes (column 1)");
        refuse("2x(8192c)", "expected at most 8192 CPUs: these are 16384 (column 1)");
        refuse("(1c 1G); access=0>3:1ns", "node 3 does not exist: this machine has nodes 0 (column 10)");
    }
}
