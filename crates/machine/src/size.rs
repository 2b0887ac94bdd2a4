//! Sizes of nodes where the kernel has several: the one place that decides which is right.
//!
//! | what | is |
//! |---|---|
//! | `MemTotal` of a node | what its allocator manages now |
//! | [`Machine::memory_of`] | what it manages once every page structure is initialised |
//! | [`Machine::ram_of`] | what is present, whoever holds it |
//!
//! A kernel that initialises page structures only when a zone runs low counts the rest in `/proc/meminfo`
//! and in no node: node 0 of a machine of 24 GiB read 9.8, 13.9 and 16.7 GiB within 20 minutes, while
//! `/proc/meminfo` read 23.5 GiB and `/proc/zoneinfo` had all pages present from the start. A balloon, a
//! hot-plug driver and reservations at boot take memory from both.

use crate::id::NodeId;
use crate::machine::Machine;
use crate::node::Node;
use crate::set::NodeSet;
use crate::units::Bytes;

/// The kernel's own counts of nodes and system agree to one in this many.
const AGREEMENT: u64 = 100;
/// The memory that a kernel reserves at boot: page structures (1.6 %), its image, a crash kernel. More than
/// this part of a node and this much is worth a word.
const RESERVED: (u64, Bytes) = (8, Bytes::from_mib(512));

/// Memory of a node that programs do not get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldBack {
    pub present: Bytes,
    /// `MemTotal`: what the allocator manages.
    pub managed: Bytes,
    /// The part that is not initialised yet: `/proc/meminfo` counts it, no node does.
    pub uninitialised: Bytes,
}

impl Machine {
    /// Memory that `/proc/meminfo` counts and no node does, as its page structures are not initialised
    /// yet; `None` where they agree to one percent, and where a node is missing below the last one, whose memory
    /// it may be.
    pub fn uncounted(&self) -> Option<Bytes> {
        // Most machines that are described in a line have none, and every node's size is asked for: with a
        // thousand nodes a sum for each of them takes seconds.
        let all = self.system_memory?.get();
        let last = self.nodes.keys().last();
        if self.possible_nodes.iter().any(|node| Some(&node) < last && !self.nodes.contains_key(&node)) {
            return None;
        }
        let counted: Option<Vec<Bytes>> = self.nodes.values().map(Node::memory_total).collect();
        let counted: u64 = counted?.iter().fold(0, |sum, size| sum.saturating_add(size.get()));
        let missing = all.checked_sub(counted)?;
        (!self.nodes.is_empty() && missing > all / AGREEMENT).then(|| Bytes::new(missing))
    }

    /// Memory of a node that is not initialised yet. With several nodes each has its part by what is present
    /// and not managed; 0 where no node says what is present.
    pub fn uninitialised_of(&self, node: NodeId) -> Bytes {
        let none = Bytes::new(0);
        let (Some(missing), Some(own)) = (self.uncounted(), self.nodes.get(&node)) else { return none };
        let kept = |node: &Node| {
            let (present, managed) = (node.present?, node.memory_total()?);
            Some(present.get().saturating_sub(managed.get()))
        };
        if self.nodes.len() == 1 {
            return kept(own).map_or(missing, |kept| missing.min(Bytes::new(kept)));
        }
        let all: u128 = self.nodes.values().filter_map(kept).map(u128::from).sum();
        let part = u128::from(missing.get()) * u128::from(kept(own).unwrap_or(0));
        let part = part.checked_div(all).and_then(|part| u64::try_from(part).ok());
        part.map_or(none, |part| Bytes::new(part.min(kept(own).unwrap_or(0))))
    }

    /// Memory of a node that programs can have: `MemTotal`, and what is not initialised yet. `None` where the
    /// kernel does not say.
    pub fn memory_of(&self, node: NodeId) -> Option<Bytes> {
        let counted = self.nodes.get(&node)?.memory_total()?;
        Some(Bytes::new(counted.get().saturating_add(self.uninitialised_of(node).get())))
    }

    /// Free memory of a node, what is not initialised yet included.
    pub fn free_of(&self, node: NodeId) -> Option<Bytes> {
        let counted = self.nodes.get(&node)?.memory_free()?;
        Some(Bytes::new(counted.get().saturating_add(self.uninitialised_of(node).get())))
    }

    /// RAM of a node: what another start of a kernel finds. The memory of [`Machine::memory_of`] where what is
    /// present is not known.
    pub fn ram_of(&self, node: NodeId) -> Option<Bytes> {
        let memory = self.memory_of(node);
        let present = self.nodes.get(&node)?.present;
        present.max(memory)
    }

    /// The memory that a node does not give to programs, where that is far more than a kernel reserves at
    /// boot.
    pub fn held_back(&self, node: NodeId) -> Option<HeldBack> {
        let own = self.nodes.get(&node)?;
        let managed = own.memory_total()?;
        let uninitialised = self.uninitialised_of(node);
        let present = self.ram_of(node)?;
        let kept = present.get().saturating_sub(managed.get());
        let (part, least) = RESERVED;
        let is_far = kept > present.get() / part && kept > least.get();
        (uninitialised > Bytes::new(0) || is_far).then_some(HeldBack { present, managed, uninitialised })
    }

    /// The nodes whose memory size is not known.
    pub fn nodes_of_unknown_size(&self) -> NodeSet {
        self.nodes.values().filter(|node| node.memory_total().is_none()).map(|node| node.id).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec;

    fn n(number: u32) -> NodeId {
        NodeId::new(number)
    }

    fn sizes(spec: &str, system: u64, present: &[u64]) -> Vec<(u64, u64, u64)> {
        let mut machine = spec::machine(spec).unwrap();
        machine.system_memory = Some(Bytes::from_mib(system));
        for (node, mib) in machine.nodes.values_mut().zip(present) {
            node.present = Some(Bytes::from_mib(*mib));
        }
        let mib = |size: Option<Bytes>| size.map_or(u64::MAX, |size| size.get() >> 20);
        let of = |id: NodeId| {
            (mib(machine.memory_of(id)), mib(machine.ram_of(id)), machine.uninitialised_of(id).get() >> 20)
        };
        machine.nodes.keys().map(|id| of(*id)).collect()
    }

    #[test]
    fn a_node_that_lags_has_what_the_system_counts() {
        // 16.7 of 23.5 GiB counted, 24 GiB present.
        assert_eq!(sizes("(2c 17100M)", 24064, &[24576]), [(24064, 24576, 6964)]);
        // Without zones the system's count is all that is known.
        assert_eq!(sizes("(2c 17100M)", 24064, &[]), [(24064, 24064, 6964)]);
    }

    #[test]
    fn what_several_nodes_lack_is_split_by_what_is_present() {
        assert_eq!(
            sizes("(2c 4000M) (2c 7000M)", 15000, &[8000, 8000]),
            [(7200, 8000, 3200), (7800, 8000, 800)]
        );
    }

    #[test]
    fn what_a_kernel_reserves_is_no_lag() {
        assert_eq!(sizes("(2c 24000M)", 24010, &[24576]), [(24000, 24576, 0)]);
        let mut machine = spec::machine("(2c 24000M)").unwrap();
        machine.nodes.get_mut(&n(0)).unwrap().present = Some(Bytes::from_mib(24576));
        assert_eq!(machine.held_back(n(0)), None);
        // A balloon takes from both counts.
        machine.nodes.get_mut(&n(0)).unwrap().present = Some(Bytes::from_mib(32768));
        let held = machine.held_back(n(0)).unwrap();
        assert_eq!((held.uninitialised, held.present), (Bytes::new(0), Bytes::from_mib(32768)));
        assert_eq!(machine.memory_of(n(0)), Some(Bytes::from_mib(24000)));
    }

    #[test]
    fn memory_of_a_node_that_is_missing_is_not_anothers() {
        let mut machine = spec::machine("2x(2c 64G)").unwrap();
        machine.system_memory = Some(Bytes::from_gib(126));
        machine.nodes.remove(&n(0));
        assert_eq!((machine.uncounted(), machine.memory_of(n(1))), (None, Some(Bytes::from_gib(64))));
        // Nor is there more of a node than is present.
        machine.possible_nodes = NodeSet::from([1]);
        machine.nodes.get_mut(&n(1)).unwrap().present = Some(Bytes::from_gib(65));
        assert_eq!(machine.memory_of(n(1)), Some(Bytes::from_gib(65)));
    }

    #[test]
    fn an_unknown_size_stays_unknown() {
        let mut machine = spec::machine("2x(2c 4G)").unwrap();
        machine.system_memory = Some(Bytes::from_gib(64));
        machine.nodes.get_mut(&n(1)).unwrap().meminfo.clear();
        assert_eq!((machine.memory_of(n(1)), machine.ram_of(n(1))), (None, None));
        assert_eq!(machine.uninitialised_of(n(0)), Bytes::new(0));
        assert_eq!(machine.nodes_of_unknown_size(), NodeSet::from([1]));
    }
}
