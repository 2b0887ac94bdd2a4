//! Nodes as a kernel comes up with them, to a [`Machine`].

use nodewise_machine::{
    AccessClass, Bytes, Cpu, Machine, MeminfoField, Node, NodeId, NodeMatrix, NodeSet, Origin,
};

use super::boot::Booted;
use super::hmat;
use super::note::Note;
use crate::ram::{Architecture, PAGE};

impl Booted {
    /// The machine with these nodes, and what the HMAT among the tables says of them. Notes become
    /// oddities; what the tables do not say is missing.
    pub fn machine(&self, origin: Origin) -> Machine {
        let mut machine = self.bare(origin);
        let with_cpus: NodeSet = self.cpus.iter().filter_map(|cpu| cpu.node).collect();
        let with_memory = machine.nodes_with_memory();
        if let Some(attributes) = &self.attributes {
            for target in &with_memory {
                let classes = [AccessClass::Any, AccessClass::Cpu];
                let accesses =
                    classes.into_iter().filter_map(|class| attributes.access(target, class, &with_cpus));
                machine.accesses.extend(accesses);
                if let Some(node) = machine.nodes.get_mut(&target) {
                    node.memory_side_caches = attributes.caches(target);
                }
            }
        }
        machine.tiers = hmat::tiers(&machine.accesses, &with_memory, &with_cpus, self.release);
        machine.check();
        machine
    }

    /// Nodes, CPUs, distances and sizes.
    fn bare(&self, origin: Origin) -> Machine {
        let mut machine = Machine::new(origin);
        let (architecture, page) = match self.architecture {
            Architecture::X86 => ("x86_64", Some(Bytes::new(PAGE))),
            // A kernel for arm64 is built for pages of 4, 16 or 64 KiB.
            _ => ("aarch64", None),
        };
        machine.architecture = Some(architecture.to_owned());
        machine.page_size = page;
        machine.memory_map = self.memory_map();
        machine.possible_nodes = self.possible.clone();
        machine.nodes = self.online.iter().map(|id| (id, self.node_of(id))).collect();
        machine.cpus =
            self.cpus.iter().map(|cpu| (cpu.id, Cpu { node: cpu.node, ..Cpu::new(cpu.id) })).collect();
        machine.possible_cpus = self.cpus.iter().map(|cpu| cpu.id).collect();
        machine.distances = NodeMatrix::new(&self.online);
        for (from, to, distance) in self.distances.iter() {
            // Nodes that are not online have no row.
            machine.distances.set(from, to, *distance);
        }
        machine.oddities = self.notes.iter().map(Note::oddity).collect();
        machine
    }

    fn node_of(&self, id: NodeId) -> Node {
        let size = Bytes::new(self.memory(id));
        // Where no table says anything of memory, its size is not known; 0 would be a claim.
        let is_known = !self.ram.is_empty();
        Node {
            cpus: self.cpus_of(id),
            meminfo: is_known.then(|| MeminfoField::total(size)).into_iter().collect(),
            generic_initiator: Some(self.initiators.contains(id)),
            ..Node::new(id)
        }
    }
}
