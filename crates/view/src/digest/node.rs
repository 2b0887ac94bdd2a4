//! The kind of a node: whether it has CPUs or memory, and its package.

use std::collections::{BTreeMap, BTreeSet};

use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::{Bytes, CpuId, CpuSet, HugePool, Machine, Node, NodeId, NodeSet, PackageId, TierId};

/// The kind of a node, by what it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeKind {
    /// CPUs, and memory as far as is known.
    Ordinary,
    /// Memory and no CPUs, as behind CXL or an emulated node.
    MemoryOnly,
    /// No CPUs, and it is not known whether there is memory.
    NoCpus,
    CpuOnly,
    /// CPUs none of which is online, and memory as far as is known.
    CpusOffline,
    /// Neither CPUs nor memory, but something else that reaches for memory.
    Initiator,
    Empty,
}

impl NodeKind {
    /// Returns the kind of a node.
    pub fn from_node(machine: &Machine, node: &Node) -> Self {
        let size = node.memory_total();
        let no_memory = size.is_some() && !node.has_memory();
        match (!machine.cpus_of(node.id).is_empty(), node.cpus.is_empty()) {
            (true, _) if no_memory => Self::CpuOnly,
            (true, _) => Self::Ordinary,
            (false, _) if no_memory && node.generic_initiator == Some(true) => Self::Initiator,
            (false, _) if no_memory => Self::Empty,
            (false, true) if size.is_none() => Self::NoCpus,
            (false, true) => Self::MemoryOnly,
            (false, false) => Self::CpusOffline,
        }
    }

    /// The remark that marks a node in a table or picture; `None` for an ordinary one.
    pub const fn words(self) -> Option<&'static str> {
        match self {
            Self::Ordinary => None,
            Self::MemoryOnly => Some("memory only"),
            Self::NoCpus => Some("no CPUs"),
            Self::CpuOnly => Some("no memory"),
            Self::CpusOffline => Some("no CPU online"),
            Self::Initiator => Some("generic initiator"),
            Self::Empty => Some("empty"),
        }
    }
}

/// The packages that hold CPUs of each node; a node whose CPUs name none is left out.
pub fn packages_of_nodes(machine: &Machine) -> BTreeMap<NodeId, BTreeSet<PackageId>> {
    let mut packages: BTreeMap<NodeId, BTreeSet<PackageId>> = BTreeMap::new();
    for node in machine.nodes.values() {
        let online = node.cpus.iter().filter_map(|cpu| machine.cpus.get(&cpu)).filter(|cpu| cpu.online);
        for package in online.filter_map(|cpu| cpu.package) {
            packages.entry(node.id).or_default().insert(package);
        }
    }
    packages
}

/// Numbers as the kernel writes lists: `0-1,4`.
pub fn package_list(packages: &BTreeSet<PackageId>) -> String {
    // Package ids can be any 32-bit number (firmware makes some up), and the list printer keeps a
    // bitmap: large ones are written one by one.
    if packages.iter().all(|package| package.number() < 1 << 16) {
        return packages.iter().map(|package| NodeId::new(package.number())).collect::<NodeSet>().to_string();
    }
    packages.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// The tier of each node, where tiers distinguish nodes: more than one tier, or memory in none.
pub fn distinguishing_tiers(machine: &Machine) -> BTreeMap<NodeId, TierId> {
    let tiers: BTreeMap<NodeId, TierId> = machine
        .tiers
        .iter()
        .flat_map(|tier| tier.nodes.iter().map(move |node| (node, tier.id)))
        .collect_map();
    let one_for_all =
        machine.tiers.len() == 1 && machine.nodes_with_memory().iter().all(|node| tiers.contains_key(&node));
    if one_for_all { BTreeMap::new() } else { tiers }
}

/// The huge page pools of a node that hold pages.
pub fn filled_pools(node: &Node) -> impl Iterator<Item = &HugePool> {
    node.huge_pools.iter().filter(|pool| pool.total.is_some_and(|total| total > 0))
}

/// The share of a node's memory that is in use, in percent, rounded; `None` when a size is not
/// known, or free is declared larger than the total.
pub fn used_percent(machine: &Machine, node: NodeId) -> Option<u64> {
    let (total, free) = (machine.memory_of(node)?.get(), machine.free_of(node)?.get());
    let used = u128::from(total.checked_sub(free)?);
    let total = u128::from(total);
    (used * 100 + total / 2).checked_div(total).and_then(|percent| u64::try_from(percent).ok())
}

/// Memory sizes count as alike when they differ by no more than this part of the larger.
const SIZE_TOLERANCE: u64 = 16;

/// Whether two nodes have as good as the same memory: the firmware takes some of the first
/// node's, and no two are equal to the page.
pub fn alike_sizes(a: Option<Bytes>, b: Option<Bytes>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => a.get().abs_diff(b.get()) <= a.get().max(b.get()) / SIZE_TOLERANCE,
        (a, b) => a == b,
    }
}

/// Online CPUs that no node lists.
pub fn cpus_in_no_node(machine: &Machine) -> CpuSet {
    let listed: CpuSet = machine.nodes.values().flat_map(|node| node.cpus.iter()).collect::<CpuSet>();
    machine.online_cpus().difference(&listed)
}

/// The nodes that list each online CPU.
pub(crate) fn nodes_of_each_cpu(machine: &Machine) -> BTreeMap<CpuId, NodeSet> {
    let mut owners: BTreeMap<CpuId, NodeSet> = BTreeMap::new();
    for node in machine.nodes.values() {
        for cpu in &node.cpus {
            if machine.cpus.get(&cpu).is_some_and(|cpu| cpu.online) {
                owners.entry(cpu).or_default().insert(node.id);
            }
        }
    }
    owners
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::{MeminfoField, MeminfoValue, spec};

    fn n(number: u32) -> NodeId {
        NodeId::new(number)
    }

    #[test]
    fn kinds_follow_cpus_and_memory() {
        let mut machine = spec::machine("(2c 8G) (2c) (16G) (2c 1G) (1G) (1G)").unwrap();
        for cpu in machine.nodes[&n(3)].cpus.clone().iter() {
            machine.cpus.get_mut(&cpu).unwrap().online = false;
        }
        let zero = MeminfoField::total(Bytes::new(0));
        machine.nodes.get_mut(&n(4)).unwrap().meminfo = vec![zero.clone()];
        let initiator = machine.nodes.get_mut(&n(5)).unwrap();
        initiator.meminfo = vec![zero];
        initiator.generic_initiator = Some(true);
        let kinds: Vec<NodeKind> =
            machine.nodes.values().map(|node| NodeKind::from_node(&machine, node)).collect();
        assert_eq!(
            kinds,
            [
                NodeKind::Ordinary,
                NodeKind::CpuOnly,
                NodeKind::MemoryOnly,
                NodeKind::CpusOffline,
                NodeKind::Empty,
                NodeKind::Initiator
            ]
        );
    }

    #[test]
    fn one_tier_for_all_memory_tells_nothing() {
        assert!(distinguishing_tiers(&spec::machine("2x(1c 1G tier=4)").unwrap()).is_empty());
        let tiers = distinguishing_tiers(&spec::machine("(1c 1G tier=4) (1G tier=22)").unwrap());
        assert_eq!(tiers.len(), 2);
        assert_eq!(distinguishing_tiers(&spec::machine("(1c 1G tier=4) (1G)").unwrap()).len(), 1);
    }

    #[test]
    fn a_share_is_told_only_of_sizes_that_fit() {
        let field = |name: &str, size| MeminfoField {
            name: name.to_owned(),
            value: MeminfoValue::Size(Bytes::from_gib(size)),
        };
        let used = |meminfo: &[MeminfoField]| {
            let mut machine = spec::machine("(1c 1G)").unwrap();
            machine.nodes.get_mut(&n(0)).unwrap().meminfo = meminfo.to_vec();
            used_percent(&machine, n(0))
        };
        let total = field("MemTotal", 8);
        assert_eq!(used(&[total.clone(), field("MemFree", 3)]), Some(63));
        assert_eq!(used(&[total.clone(), field("MemFree", 9)]), None);
        assert_eq!(used(&[total]), None);
    }

    #[test]
    fn a_node_of_unknown_memory_is_not_called_memory_only() {
        let mut machine = spec::machine("(2c 8G) (8G)").unwrap();
        machine.nodes.get_mut(&n(1)).unwrap().meminfo.clear();
        assert_eq!(NodeKind::from_node(&machine, &machine.nodes[&n(1)]).words(), Some("no CPUs"));
    }

    #[test]
    fn packages_are_listed_as_ranges() {
        let set = |numbers: &[u32]| numbers.iter().map(|number| PackageId::new(*number)).collect();
        assert_eq!(package_list(&set(&[0, 1, 2, 5])), "0-2,5");
        assert_eq!(package_list(&set(&[3, 4_000_000_000])), "3,4000000000");
    }
}
