//! Moving the pages of a process that runs: what is to go where, and the engine that moves it.
//!
//! The engine takes what it moves, the time and the state of the system through traits, so that tests drive it
//! without a process.

pub mod engine;
pub mod goal;
pub mod live;

use std::collections::BTreeMap;

use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::{Bytes, NodeId};
use nodewise_source::mapped::saved::Run;
use nodewise_source::mapped::{Mapped, MemoryKind};

use goal::Goal;

/// Addresses whose pages may be moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    pub start: u64,
    pub end: u64,
    pub kind: MemoryKind,
    pub page_size: Bytes,
    /// Pages that are known to be there; beyond these nothing is looked for.
    pub present: Option<u64>,
    /// Memory of its mapping that leaves each node, as the mappings have it.
    pub leaving: BTreeMap<NodeId, Bytes>,
    /// Whether transparent huge pages may be among them.
    pub may_be_huge: bool,
    pub goal: Goal,
}

/// Memory by kind and node.
pub type ByKind = BTreeMap<(MemoryKind, NodeId), Bytes>;

/// Sums mappings by kind and node.
pub fn sums<'m>(mappings: impl IntoIterator<Item = &'m Mapped>) -> ByKind {
    let mut sums = ByKind::new();
    for mapped in mappings {
        for (node, pages) in &mapped.pages {
            *sums.entry((mapped.kind, *node)).or_default() += mapped.page_size.times(*pages);
        }
    }
    sums
}

/// The part of the mappings that is of these kinds and within these addresses.
pub fn regions(
    mappings: &[Mapped],
    kinds: &[MemoryKind],
    range: Option<(u64, u64)>,
    goal: &Goal,
) -> Vec<Region> {
    let mut regions = Vec::new();
    for mapped in mappings.iter().filter(|mapped| kinds.contains(&mapped.kind)) {
        let (first, last) = range.unwrap_or((0, u64::MAX));
        let size = mapped.page_size.get();
        // Whole pages: a huge page that the range cuts belongs to it.
        let start = mapped.start.max(first) / size * size;
        let end = mapped.end.min(last);
        let is_whole = start <= mapped.start && end >= mapped.end;
        let leaving = mapped.pages.iter().filter(|(node, _)| goal.leaves(**node));
        let leaving: BTreeMap<NodeId, Bytes> =
            leaving.map(|(node, pages)| (*node, mapped.page_size.times(*pages))).collect_map();
        if start < end && !leaving.is_empty() {
            regions.push(Region {
                start: start.max(mapped.start),
                end,
                kind: mapped.kind,
                page_size: mapped.page_size,
                present: is_whole
                    .then(|| mapped.pages.values().fold(0u64, |sum, pages| sum.saturating_add(*pages))),
                leaving,
                may_be_huge: mapped.may_be_huge,
                goal: goal.clone(),
            });
        }
    }
    regions
}

/// The pages of a file of moved pages, each run back to where it was.
pub fn regions_back(runs: &[Run]) -> Vec<Region> {
    let region = |run: &Run| Region {
        start: run.start,
        end: run.end(),
        kind: run.kind,
        page_size: run.page_size,
        present: None,
        leaving: BTreeMap::new(),
        may_be_huge: run.kind != MemoryKind::Hugetlb,
        goal: Goal::Back(run.node),
    };
    runs.iter().map(region).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::NodeSet;

    #[test]
    fn a_range_cuts_mappings_at_whole_pages() {
        let mapped = |start, end, kind, kib: u64| Mapped {
            start,
            end,
            kind,
            page_size: Bytes::from_kib(kib),
            pages: [(NodeId::new(0), 4)].into(),
            may_be_huge: false,
        };
        let mappings = [
            mapped(0x1000, 0x5000, MemoryKind::Anon, 4),
            mapped(0x20_0000, 0xa0_0000, MemoryKind::Hugetlb, 2048),
            mapped(0xb0_0000, 0xb0_1000, MemoryKind::File, 4),
        ];
        let goal = Goal::nodes(&NodeSet::from([0]), &NodeSet::from([1])).unwrap();
        let check = |range, expected: &[(u64, u64, Option<u64>)]| {
            let kinds = [MemoryKind::Anon, MemoryKind::Hugetlb];
            let found: Vec<_> = regions(&mappings, &kinds, range, &goal)
                .iter()
                .map(|region| (region.start, region.end, region.present))
                .collect();
            assert_eq!(found, expected, "{range:?}");
        };
        check(None, &[(0x1000, 0x5000, Some(4)), (0x20_0000, 0xa0_0000, Some(4))]);
        check(Some((0x2000, 0x50_0000)), &[(0x2000, 0x5000, None), (0x20_0000, 0x50_0000, None)]);
        check(Some((0x50_0000, 0x60_0000)), &[(0x40_0000, 0x60_0000, None)]);
        check(Some((0x10_0000, 0x20_0000)), &[]);
        let within = regions(&mappings, &[MemoryKind::Anon], Some((0x1000, 0x2000)), &goal);
        assert_eq!(
            within[0].leaving,
            [(NodeId::new(0), Bytes::from_kib(16))].into(),
            "only what the range meets"
        );
        assert_eq!(within.len(), 1);
    }
}
