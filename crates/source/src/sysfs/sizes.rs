//! How much memory is present on each node, and in pages of which size.

use std::collections::BTreeMap;

use nodewise_machine::{Bytes, Machine, Node, NodeId};

use super::Reader;
use crate::parse::zoneinfo::{self, Zone};

const ZONEINFO: &str = "/proc/zoneinfo";
/// The smallest and the largest page that Linux is built with.
const PAGES: (u64, u64) = (4 << 10, 256 << 10);

/// Fills what is present on each node, and the page size where zones and sizes show it.
pub(super) fn read(reader: &mut Reader<'_>, machine: &mut Machine) {
    let Some(info) = reader.parsed(ZONEINFO, zoneinfo::parse) else { return };
    let sum = |field: fn(&Zone) -> Option<u64>| {
        let mut sums: BTreeMap<NodeId, u64> = BTreeMap::new();
        for (node, pages) in info.zones.iter().filter_map(|zone| Some((zone.node, field(zone)?))) {
            let sum = sums.entry(node).or_default();
            *sum = sum.saturating_add(pages);
        }
        sums
    };
    if machine.page_size.is_none() {
        machine.page_size = page_size(machine, &sum(|zone| zone.managed));
    }
    let Some(page) = machine.page_size else { return };
    for (id, pages) in sum(|zone| zone.present) {
        if let Some(node) = machine.nodes.get_mut(&id) {
            node.present = pages.checked_mul(page.get()).map(Bytes::new);
        }
    }
}

/// The size of pages when a node manages this many, where all nodes agree: a node's `MemTotal` counts
/// them.
fn page_size(machine: &Machine, managed: &BTreeMap<NodeId, u64>) -> Option<Bytes> {
    let of = |node: &Node| Some((node.memory_total()?, *managed.get(&node.id)?));
    page_of(machine.nodes.values().filter_map(of))
}

/// The size of pages of nodes with these sizes and numbers of managed pages, where all agree.
pub(crate) fn page_of(nodes: impl Iterator<Item = (Bytes, u64)>) -> Option<Bytes> {
    let mut sizes = nodes.filter(|(_, pages)| *pages > 0).map(|(size, pages)| {
        let size = size.get();
        let page = size.checked_div(pages).filter(|page| page.is_power_of_two() && size % pages == 0);
        page.filter(|page| (PAGES.0..=PAGES.1).contains(page))
    });
    let first = sizes.next()??;
    sizes.all(|page| page == Some(first)).then(|| Bytes::new(first))
}
