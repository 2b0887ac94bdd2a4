//! Questions about a machine.

use std::collections::BTreeMap;

use crate::cache::{Cache, CacheKind};
use crate::device::{Device, DeviceClass, DeviceRef};
use crate::id::{CpuId, NodeId, PackageId};
use crate::machine::Machine;
use crate::node::{Access, AccessClass, Node};
use crate::set::{CpuSet, NodeSet};
use crate::units::Bytes;

impl Machine {
    /// The ids of all nodes.
    pub fn node_ids(&self) -> NodeSet {
        self.nodes.keys().copied().collect()
    }

    /// The ids of all CPUs, online or not.
    pub fn cpu_ids(&self) -> CpuSet {
        self.cpus.keys().copied().collect()
    }

    /// The CPUs that are online.
    pub fn online_cpus(&self) -> CpuSet {
        self.cpus.values().filter(|cpu| cpu.online).map(|cpu| cpu.id).collect()
    }

    /// Nodes with at least one online CPU.
    pub fn nodes_with_cpus(&self) -> NodeSet {
        let online = self.online_cpus();
        self.nodes.values().filter(|node| !node.cpus.is_disjoint(&online)).map(|node| node.id).collect()
    }

    /// Nodes that are known to have memory.
    pub fn nodes_with_memory(&self) -> NodeSet {
        self.nodes.values().filter(|node| node.has_memory()).map(|node| node.id).collect()
    }

    /// The nodes whose memory can be used: all but those known to have none.
    pub fn memory_nodes(&self) -> NodeSet {
        let has_none = |node: &Node| node.memory_total().is_some() && !node.has_memory();
        self.nodes.values().filter(|node| !has_none(node)).map(|node| node.id).collect()
    }

    /// Online CPUs of a node; empty for an unknown one.
    pub fn cpus_of(&self, node: NodeId) -> CpuSet {
        self.nodes.get(&node).map(|node| node.cpus.intersection(&self.online_cpus())).unwrap_or_default()
    }

    /// Online CPUs of several nodes.
    pub fn cpus_of_nodes(&self, nodes: &NodeSet) -> CpuSet {
        nodes.iter().fold(CpuSet::new(), |cpus, node| cpus.union(&self.cpus_of(node)))
    }

    /// The node a CPU belongs to.
    pub fn node_of(&self, cpu: CpuId) -> Option<NodeId> {
        self.cpus
            .get(&cpu)
            .and_then(|cpu| cpu.node)
            .or_else(|| self.nodes.values().find(|node| node.cpus.contains(cpu)).map(|node| node.id))
    }

    /// The distance between two nodes.
    pub fn distance(&self, from: NodeId, to: NodeId) -> Option<u32> {
        self.distances.get(from, to).copied()
    }

    /// Nodes by distance from one, nearest first, ties by id; the node itself and those without a
    /// distance are left out.
    pub fn closest(&self, from: NodeId) -> Vec<NodeId> {
        let mut others: Vec<(u32, NodeId)> = self
            .nodes
            .keys()
            .filter(|node| **node != from)
            .filter_map(|node| Some((self.distance(from, *node)?, *node)))
            .collect();
        others.sort_unstable();
        others.into_iter().map(|(_, node)| node).collect()
    }

    /// The node itself when it has online CPUs, else the nearest that has.
    ///
    /// Nearness is that of the CPUs' accesses to this memory: the distance from the CPUs' node.
    pub fn nearest_with_cpus(&self, node: NodeId) -> Option<NodeId> {
        let with_cpus = self.nodes_with_cpus();
        if with_cpus.contains(node) {
            return Some(node);
        }
        with_cpus
            .iter()
            .min_by_key(|candidate| (self.distance(*candidate, node).unwrap_or(u32::MAX), *candidate))
    }

    /// The node itself when it has memory, else the nearest that has.
    pub fn nearest_with_memory(&self, node: NodeId) -> Option<NodeId> {
        let with_memory = self.memory_nodes();
        if with_memory.contains(node) {
            return Some(node);
        }
        with_memory
            .iter()
            .min_by_key(|candidate| (self.distance(node, *candidate).unwrap_or(u32::MAX), *candidate))
    }

    /// Memory of all nodes together, what is not initialised yet included; without one node's size that of
    /// the system. `None` where neither is known.
    pub fn memory_total(&self) -> Option<Bytes> {
        let sizes: Option<Vec<Bytes>> = self.nodes.keys().map(|node| self.memory_of(*node)).collect();
        sizes.filter(|sizes| !sizes.is_empty()).map(|sizes| sizes.into_iter().sum()).or(self.system_memory)
    }

    /// Online CPUs grouped by core: the lowest CPU of each core with its siblings.
    pub fn cores(&self) -> BTreeMap<CpuId, CpuSet> {
        let online = self.online_cpus();
        let mut cores = BTreeMap::new();
        for cpu in self.cpus.values().filter(|cpu| cpu.online) {
            let siblings = cpu.siblings.intersection(&online);
            match siblings.first() {
                Some(first) => cores.insert(first, siblings),
                None => cores.insert(cpu.id, CpuSet::from_iter([cpu.id])),
            };
        }
        cores
    }

    /// Packages with their online CPUs.
    pub fn packages(&self) -> BTreeMap<PackageId, CpuSet> {
        let mut packages: BTreeMap<PackageId, CpuSet> = BTreeMap::new();
        for cpu in self.cpus.values().filter(|cpu| cpu.online) {
            if let Some(package) = cpu.package {
                packages.entry(package).or_default().insert(cpu.id);
            }
        }
        packages
    }

    /// The caches of the highest level that hold data.
    pub fn last_level_caches(&self) -> impl Iterator<Item = &Cache> {
        let level = self
            .caches
            .iter()
            .filter(|cache| cache.kind != CacheKind::Instruction)
            .map(|cache| cache.level)
            .max();
        self.caches
            .iter()
            .filter(move |cache| Some(cache.level) == level && cache.kind != CacheKind::Instruction)
    }

    /// The firmware's facts about reaching a node's memory.
    pub fn access(&self, target: NodeId, class: AccessClass) -> Option<&Access> {
        self.accesses.iter().find(|access| access.target == target && access.class == class)
    }

    /// GPUs and accelerators as `gpu:N` counts them: in order of PCI address, without display
    /// adapters when there is anything that computes (a server's console is not a GPU).
    pub fn gpus(&self) -> Vec<&Device> {
        let compute: Vec<&Device> = self.devices.iter().filter(|device| device.is_compute()).collect();
        if compute.is_empty() {
            self.devices.iter().filter(|device| device.is_display()).collect()
        } else {
            compute
        }
    }

    /// The node that a device hangs on: its own; else the node that holds all its local CPUs; else the only
    /// node of the machine. `None` where several nodes are possible.
    pub fn home_of(&self, device: &Device) -> Option<NodeId> {
        device.node.or_else(|| self.node_around(&device.local_cpus)).or_else(|| self.only_node())
    }

    /// The one node that lists all these CPUs, apart from those that no node lists.
    pub fn node_around(&self, cpus: &CpuSet) -> Option<NodeId> {
        let mut touched = self.nodes.values().filter(|node| !node.cpus.is_disjoint(cpus));
        touched.next().filter(|_| touched.next().is_none()).map(|node| node.id)
    }

    /// The node of a machine that has one.
    pub fn only_node(&self) -> Option<NodeId> {
        self.nodes.keys().next().copied().filter(|_| self.nodes.len() == 1)
    }

    /// The device a user names; `None` when there is none, and always for files and hosts, which
    /// only the live system can look up.
    pub fn device(&self, reference: &DeviceRef) -> Option<&Device> {
        let named =
            |class, name: &str| self.devices.iter().find(|device| device.name_in(class) == Some(name));
        match reference {
            DeviceRef::Net(name) => named(DeviceClass::Net, name),
            DeviceRef::Block(name) => {
                named(DeviceClass::Block, name).or_else(|| named(DeviceClass::Nvme, name))
            }
            DeviceRef::Infiniband(name) => named(DeviceClass::Infiniband, name),
            DeviceRef::Gpu(index) => self.gpus().get(*index).copied(),
            DeviceRef::Pci(address) => self.devices.iter().find(|device| device.pci == Some(*address)),
            DeviceRef::File(_) | DeviceRef::Ip(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec;

    fn n(number: u32) -> NodeId {
        NodeId::new(number)
    }

    #[test]
    fn nearness_follows_the_direction_of_the_access() {
        let machine = spec::machine("(4c 8G) (4c 8G) (16G); dist=10,20,30/20,10,17/14,17,10").unwrap();
        assert_eq!(machine.closest(n(2)), [n(0), n(1)]);
        assert_eq!(
            machine.nearest_with_cpus(n(2)),
            Some(n(1)),
            "the CPUs' distance to the memory counts: 17 < 30"
        );
        assert_eq!(machine.nearest_with_cpus(n(0)), Some(n(0)));
    }

    #[test]
    fn sets_of_nodes_follow_cpus_and_memory() {
        let machine = spec::machine("(2c 8G) (2c) (16G)").unwrap();
        assert_eq!(machine.nodes_with_cpus(), NodeSet::from([0, 1]));
        assert_eq!(machine.nodes_with_memory(), NodeSet::from([0, 2]));
        assert_eq!(machine.memory_total(), Some(Bytes::from_gib(24)));
        assert_eq!(machine.nearest_with_memory(n(1)), Some(n(0)));
    }

    #[test]
    fn a_device_without_a_node_is_where_its_local_cpus_are() {
        let home = |machine: &str, node: Option<u32>, cpus: &[u32]| {
            let mut machine = spec::machine(machine).unwrap();
            machine.devices.push(Device {
                node: node.map(NodeId::new),
                local_cpus: cpus.iter().copied().map(CpuId::new).collect(),
                ..Device::default()
            });
            machine.home_of(&machine.devices[0])
        };
        assert_eq!(home("2x(2c 8G)", None, &[2, 3]), Some(n(1)));
        assert_eq!(home("2x(2c 8G)", None, &[3, 9]), Some(n(1)), "CPU 9 is in no node");
        assert_eq!(home("2x(2c 8G)", None, &[1, 2]), None);
        assert_eq!(home("2x(2c 8G)", None, &[]), None);
        assert_eq!(home("2x(2c 8G)", Some(0), &[2, 3]), Some(n(0)), "the kernel's own word counts");
        assert_eq!(home("(2c 8G)", None, &[]), Some(n(0)));
    }

    #[test]
    fn cores_group_threads() {
        let machine = spec::machine("(2c2t 1G)").unwrap();
        let cores: Vec<String> = machine.cores().values().map(ToString::to_string).collect();
        assert_eq!(cores, ["0,2", "1,3"]);
    }
}
