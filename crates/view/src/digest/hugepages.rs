//! Pools of huge pages by node and size, and how a change of them ended.

use std::collections::BTreeMap;

use nodewise_machine::check::node_names;
use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::order::Order as _;
use nodewise_machine::plural::plural;
use nodewise_machine::{Bytes, NodeId};

/// The pool of one size on one node. `None`: the kernel does not say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    pub node: NodeId,
    pub page_size: Bytes,
    pub total: Option<u64>,
    pub free: Option<u64>,
    pub surplus: Option<u64>,
    /// Pages that fit into the free blocks of the node that are large enough: those that could be had now at
    /// most, without compaction.
    pub could_add: Option<u64>,
}

/// Figures that the kernel keeps for all nodes together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WholePool {
    pub page_size: Bytes,
    /// Pages promised to mappings that have not touched them yet.
    pub reserved: Option<u64>,
    /// Pages that may come above the pools' size.
    pub overcommit: Option<u64>,
}

/// All pools of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Pools {
    /// By node, then by size.
    pub pools: Vec<Pool>,
    pub whole: Vec<WholePool>,
}

impl Pools {
    /// Memory in pools of a node that no program uses; `None` where a pool does not say.
    pub fn idle(&self) -> Option<Bytes> {
        self.pools.iter().map(|pool| Some(pool.page_size.times(pool.free?))).sum()
    }

    /// Memory in all pools; `None` where one does not say.
    pub fn total(&self) -> Option<Bytes> {
        self.pools.iter().map(|pool| Some(pool.page_size.times(pool.total?))).sum()
    }
}

/// How the change of one pool went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolChange {
    pub node: NodeId,
    pub before: u64,
    /// Pages that were asked for.
    pub asked: u64,
    /// Pages that are there after each try; empty where nothing was written.
    pub tries: Vec<u64>,
    /// How often the node's memory was compacted in between.
    pub compactions: u32,
    /// Why the kernel did not take the value, or could not compact.
    pub refused: Option<String>,
    /// The largest free block of the node afterwards.
    pub largest_free: Option<Bytes>,
}

impl PoolChange {
    /// The pages that are there now.
    pub fn after(&self) -> u64 {
        self.tries.last().copied().unwrap_or(self.before)
    }

    /// Whether there are as many pages as were asked for.
    pub fn is_done(&self) -> bool {
        self.after() == self.asked
    }

    /// The sentence on a pool that is not as it was to be; `None` where it is.
    pub fn shortfall(&self, page_size: Bytes) -> Option<String> {
        let Self { node, asked, .. } = self;
        let (after, size) = (self.after(), |pages| page_size.times(pages));
        if after == *asked {
            return None;
        }
        if after > *asked {
            let more = plural(after - asked, "page");
            return Some(format!(
                "node {node}: {} instead of {}: {more} still in use, freed when programs release them",
                size(after),
                size(*asked)
            ));
        }
        let mut text = format!(
            "node {node}: {} of {}: {} short",
            size(after),
            size(*asked),
            plural(asked - after, "page")
        );
        if let Some(largest) = self.largest_free {
            text.push_str(&format!(", largest free block {largest}"));
        }
        if self.compactions > 0 {
            text.push_str(&format!(" after {}", plural(self.compactions, "compaction")));
        }
        if let Some(why) = &self.refused {
            text.push_str(&format!("; {why}"));
        }
        Some(text)
    }
}

/// A change of the pools of one size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolsChange {
    pub page_size: Bytes,
    pub is_dry: bool,
    pub pools: Vec<PoolChange>,
    /// Whether the pools were put back, because not all pages could be had.
    pub given_back: bool,
    /// The journal that holds the old values.
    pub journal: Option<String>,
}

impl PoolsChange {
    /// Whether every pool is as it was to be.
    pub fn is_done(&self) -> bool {
        self.is_dry || !self.given_back && self.pools.iter().all(PoolChange::is_done)
    }
}

/// Reads how many pages each node is to have: `0=512,1=512`, `0-3=128`, `all=64` or `total=1024`.
///
/// A total is divided in proportion to the memory of the nodes, and the pages that are left over go to the nodes
/// with the largest remainders.
///
/// # Errors
/// A sentence with the word that is wrong, and what was expected.
pub fn parse_pages(text: &str, memory: &BTreeMap<NodeId, Bytes>) -> Result<BTreeMap<NodeId, u64>, String> {
    let mut wanted = BTreeMap::new();
    for word in text.split(',') {
        let (nodes, pages) = word
            .split_once('=')
            .ok_or_else(|| format!("{word:?} is not NODE=PAGES, such as 0=512, all=64 or total=1024"))?;
        let pages: u64 =
            pages.parse().map_err(|_| format!("{pages:?} is not a number of pages (in {word:?})"))?;
        if nodes == "total" {
            if text.contains(',') {
                return Err(
                    "total=PAGES cannot be combined with nodes: it is divided by their memory".to_owned()
                );
            }
            return Ok(divide(pages, memory));
        }
        let nodes = match nodes {
            "all" => memory.keys().copied().collect(),
            _ => nodes.parse::<nodewise_machine::NodeSet>().map_err(|error| error.to_string())?,
        };
        if nodes.is_empty() {
            return Err(format!("{word:?} names no node"));
        }
        for node in &nodes {
            if !memory.contains_key(&node) {
                let known = node_names(memory.keys().copied());
                return Err(format!("node {node} has no pool of this size: this machine has {known}"));
            }
            if wanted.insert(node, pages).is_some() {
                return Err(format!("node {node} is named twice"));
            }
        }
    }
    Ok(wanted)
}

/// Divides pages among nodes by their memory: largest remainders, ties to the lower node.
fn divide(pages: u64, memory: &BTreeMap<NodeId, Bytes>) -> BTreeMap<NodeId, u64> {
    let all: u128 = memory.values().map(|size| u128::from(size.get())).sum();
    if all == 0 {
        return BTreeMap::new();
    }
    let share = |size: &Bytes| u128::from(pages) * u128::from(size.get());
    let mut parts: BTreeMap<NodeId, u64> =
        memory.iter().map(|(node, size)| (*node, (share(size) / all) as u64)).collect_map();
    let mut remainders: Vec<(u128, NodeId)> =
        memory.iter().map(|(node, size)| (share(size) % all, *node)).collect();
    remainders.order_by(|(a, node), (b, other)| b.cmp(a).then(node.cmp(other)));
    let left = pages - parts.values().sum::<u64>();
    for (_, node) in remainders.into_iter().take(left as usize) {
        *parts.entry(node).or_default() += 1;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};

    fn memory(sizes: &[u64]) -> BTreeMap<NodeId, Bytes> {
        (0..).map(NodeId::new).zip(sizes.iter().copied().map(Bytes::from_mib)).collect()
    }

    fn check(text: &str, expected: Result<&[u64], &str>) {
        let found = parse_pages(text, &memory(&[512, 512, 1024]));
        let found = found.map(|pages| pages.into_values().collect::<Vec<_>>());
        assert_eq!(found.as_deref().map_err(String::as_str), expected, "{text}");
    }

    #[test]
    fn pages_are_given_by_node_or_divided_by_memory() {
        check("0=512,1=0", Ok(&[512, 0]));
        check("0-1=3,2=4", Ok(&[3, 3, 4]));
        check("all=5", Ok(&[5, 5, 5]));
        check("total=10", Ok(&[3, 2, 5]));
        check("0", Err("\"0\" is not NODE=PAGES, such as 0=512, all=64 or total=1024"));
        check("0=x", Err("\"x\" is not a number of pages (in \"0=x\")"));
        check("3=1", Err("node 3 has no pool of this size: this machine has nodes 0-2"));
        check("0=1,0=2", Err("node 0 is named twice"));
        check("=1", Err("\"=1\" names no node"));
        check("total=1,0=2", Err("total=PAGES cannot be combined with nodes: it is divided by their memory"));
    }

    #[test]
    fn a_pool_that_is_short_says_by_how_much() {
        let mut change = PoolChange {
            node: NodeId::new(1),
            before: 0,
            asked: 400,
            tries: vec![230, 232, 232],
            compactions: 2,
            refused: None,
            largest_free: Some(Bytes::from_mib(1)),
        };
        assert_eq!(
            change.shortfall(Bytes::from_mib(2)).unwrap(),
            "node 1: 464 MiB of 800 MiB: 168 pages short, largest free block 1 MiB after 2 compactions"
        );
        change.tries = vec![400];
        assert_eq!(change.shortfall(Bytes::from_mib(2)), None);
        change.asked = 8;
        change.tries = vec![9];
        assert_eq!(
            change.shortfall(Bytes::from_mib(2)).unwrap(),
            "node 1: 18 MiB instead of 16 MiB: 1 page still in use, freed when programs release them"
        );
    }

    proptest! {
        #[test]
        fn a_total_is_divided_to_the_page(pages in 0u64..1 << 40, sizes in prop::collection::vec(1u64..1 << 40, 1..20)) {
            let memory = memory(&sizes);
            let parts = divide(pages, &memory);
            prop_assert_eq!(parts.values().sum::<u64>(), pages);
            let all: u128 = memory.values().map(|size| u128::from(size.get())).sum();
            for (node, part) in parts {
                let exact = u128::from(pages) * u128::from(memory[&node].get()) / all;
                prop_assert!((exact..=exact + 1).contains(&u128::from(part)));
            }
        }

        #[test]
        fn any_text_is_survived(text in any::<String>(), near in "([0-9a-z-]{0,5}=?[0-9]{0,21},?){0,4}") {
            let _ = parse_pages(&text, &memory(&[1, 2]));
            let _ = parse_pages(&near, &memory(&[1, 2]));
        }
    }
}
