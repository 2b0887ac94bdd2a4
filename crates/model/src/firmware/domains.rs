//! Proximity domains to nodes.

use std::collections::BTreeMap;

use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::{NodeId, NodeSet};

/// Nodes by domain: numbered without holes, as domains are met.
///
/// # Source
/// `acpi_map_pxm_to_node`.
#[derive(Clone, Debug)]
pub(super) struct Domains {
    nodes: BTreeMap<u32, NodeId>,
    most_nodes: u32,
    most_domains: u32,
}

impl Domains {
    /// No domain yet. Both limits are numbers that are not reached.
    pub(super) const fn new(most_nodes: u32, most_domains: u32) -> Self {
        Self { nodes: BTreeMap::new(), most_nodes, most_domains }
    }

    /// The node of a domain, which gets one if it has none; `None` when there is no room for it.
    pub(super) fn meet(&mut self, domain: u32) -> Option<NodeId> {
        if let Some(node) = self.nodes.get(&domain) {
            return Some(*node);
        }
        let next = u32::try_from(self.nodes.len()).ok().filter(|next| *next < self.most_nodes)?;
        if domain >= self.most_domains {
            return None;
        }
        let node = NodeId::new(next);
        self.nodes.insert(domain, node);
        Some(node)
    }

    /// The node that a domain has.
    pub(super) fn node(&self, domain: u32) -> Option<NodeId> {
        self.nodes.get(&domain).copied()
    }

    /// The largest domain that has a node.
    pub(super) fn largest(&self) -> Option<u32> {
        self.nodes.keys().next_back().copied()
    }

    /// All of them.
    pub(super) fn nodes(&self) -> NodeSet {
        self.nodes.values().copied().collect()
    }

    /// Domain and node, by node.
    pub(super) fn by_node(&self) -> BTreeMap<NodeId, u32> {
        self.nodes.iter().map(|(domain, node)| (*node, *domain)).collect_map()
    }
}
