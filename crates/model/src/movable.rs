//! Memory that is kept for movable pages: the parameters `kernelcore=` and `movablecore=`.
//!
//! # Source
//! `find_zone_movable_pfns_for_nodes` in `mm/mm_init.c`, the parameters in
//! `Documentation/admin-guide/kernel-parameters.txt`; 6.1 to at least 7.2.

use std::collections::BTreeMap;

use nodewise_machine::settings::parameter;
use nodewise_machine::{Bytes, NodeId};

use crate::ram::{Architecture, Range, pages_of};
use crate::zones::{Layout, ZoneKind};

/// The largest block of the buddy allocator, in pages: zone Movable starts at a multiple of it.
///
/// # Source
/// `MAX_PAGE_ORDER`: 10, unless `ARCH_FORCE_MAX_ORDER` says otherwise, on arm64 11 with pages of 16 KiB and 13
/// with those of 64 KiB, on POWER 8 with those of 64 KiB.
const fn largest_block(layout: Layout) -> u64 {
    1 << match (layout.architecture, layout.page >> 10) {
        (Architecture::Arm, 16) => 11,
        (Architecture::Arm, 64) => 13,
        (Architecture::Power, 64) => 8,
        _ => 10,
    }
}

/// How much memory is kept for movable pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Movable {
    #[default]
    None,
    /// All but this much: `kernelcore=`.
    AllBut(Amount),
    /// This much: `movablecore=`.
    Only(Amount),
}

/// An amount of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    Size(Bytes),
    /// A part of all RAM, in hundredths.
    Percent(u64),
}

impl Amount {
    fn parse(text: &str) -> Option<Self> {
        match text.strip_suffix('%') {
            Some(number) => number.parse().ok().filter(|percent| *percent <= 100).map(Self::Percent),
            None => text.parse().ok().map(Self::Size),
        }
    }

    fn pages(self, total: u64, page: u64) -> u64 {
        match self {
            Self::Size(size) => size.get() / page,
            Self::Percent(percent) => (u128::from(total) * u128::from(percent) / 100) as u64,
        }
    }
}

impl Movable {
    /// Reads the request of a kernel's command line. `kernelcore=` counts before `movablecore=`; of several
    /// of a kind the last counts.
    pub fn from_command_line(text: &str) -> Self {
        let value = |name: &str| parameter(text, name).filter_map(Amount::parse).last();
        match (value("kernelcore"), value("movablecore")) {
            (Some(amount), _) => Self::AllBut(amount),
            (None, Some(amount)) => Self::Only(amount),
            (None, None) => Self::None,
        }
    }

    /// Pages that stay for the kernel; `None` when nothing is kept for movable pages.
    fn kernel_pages(self, total: u64, layout: Layout) -> Option<u64> {
        let block = largest_block(layout);
        let pages = match self {
            Self::None => return None,
            Self::AllBut(amount) => amount.pages(total, layout.page),
            Self::Only(amount) => {
                let movable = amount.pages(total, layout.page).div_ceil(block).saturating_mul(block);
                total - movable.min(total)
            }
        };
        (pages > 0 && pages < total).then_some(pages)
    }
}

/// The first page of zone Movable on each node that has one.
pub(crate) fn movable_starts(
    movable: Movable,
    layout: Layout,
    limits: &[(ZoneKind, u64, u64); 3],
    ram: &[Range],
) -> BTreeMap<NodeId, u64> {
    let pages: Vec<(NodeId, u64, u64)> = {
        let mut sorted = ram.to_vec();
        sorted.sort_unstable();
        let pages = |range: &Range| {
            let (start, end) = pages_of(*range, layout.page);
            (range.node, start, end)
        };
        sorted.iter().map(pages).collect()
    };
    let total: u64 = pages.iter().map(|(_, start, end)| end.saturating_sub(*start)).sum();
    let Some(mut kernel) = movable.kernel_pages(total, layout) else { return BTreeMap::new() };
    // Movable memory is cut out of the highest zone that has RAM; what lies below is the kernel's.
    let holds_ram = |low: u64, high: u64| pages.iter().any(|(_, start, end)| *start < high && *end > low);
    let usable =
        limits.iter().rev().find(|(_, low, high)| holds_ram(*low, *high)).map_or(0, |(_, low, _)| *low);
    let mut nodes: Vec<NodeId> = pages.iter().map(|(node, ..)| *node).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let mut starts: BTreeMap<NodeId, u64> = BTreeMap::new();
    let mut sharers = nodes.len() as u64;
    while sharers > 0 && kernel > sharers {
        let mut share = kernel / sharers;
        for node in &nodes {
            if kernel < share {
                share = kernel / sharers;
            }
            spread(*node, share, usable, &pages, &mut kernel, &mut starts);
        }
        sharers -= 1;
    }
    let block = largest_block(layout);
    let end_of = |node: NodeId| pages.iter().filter(|(n, ..)| *n == node).map(|(.., end)| *end).max();
    starts
        .into_iter()
        .map(|(node, start)| (node, start.div_ceil(block) * block))
        .filter(|(node, start)| end_of(*node).is_some_and(|end| *start < end))
        .collect()
}

/// Gives the kernel up to `share` pages of a node, from where it stopped before.
fn spread(
    node: NodeId,
    share: u64,
    usable: u64,
    pages: &[(NodeId, u64, u64)],
    kernel: &mut u64,
    starts: &mut BTreeMap<NodeId, u64>,
) {
    let mut left = share;
    for (_, start, end) in pages.iter().filter(|(n, ..)| *n == node) {
        let mut at = (*start).max(starts.get(&node).copied().unwrap_or(0));
        if at >= *end {
            continue;
        }
        if at < usable {
            let below = (*end).min(usable) - at;
            *kernel -= below.min(*kernel);
            left -= below.min(left);
            at = (*end).min(usable);
            starts.insert(node, at);
            if *end <= usable {
                continue;
            }
        }
        let taken = (*end - at).min(left);
        starts.insert(node, at + taken);
        *kernel -= taken.min(*kernel);
        left -= taken;
        if left == 0 {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ram::Architecture;
    use crate::zones::zones;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    fn range(start: u64, end: u64, node: u32) -> Range {
        Range { start: start << 20, end: end << 20, node: NodeId::new(node) }
    }

    fn check(words: &str, ram: &[Range], expected: &[(u32, &str, u64)]) {
        let zones: Vec<(u32, &str, u64)> =
            zones(Layout::from_architecture(Architecture::X86), Movable::from_command_line(words), ram)
                .iter()
                .map(|zone| (zone.node.number(), zone.kind.name(), (zone.present * 4096) >> 20))
                .collect();
        assert_eq!(zones, expected, "{words}");
    }

    #[test]
    fn the_kernel_shares_its_part_over_the_nodes() {
        let ram = [range(4096, 5120, 0), range(5120, 6144, 1)];
        check(
            "quiet kernelcore=512M",
            &ram,
            &[(0, "Normal", 256), (0, "Movable", 768), (1, "Normal", 256), (1, "Movable", 768)],
        );
        check(
            "movablecore=25%",
            &ram,
            &[(0, "Normal", 768), (0, "Movable", 256), (1, "Normal", 768), (1, "Movable", 256)],
        );
    }

    #[test]
    fn what_is_below_the_highest_zone_counts_for_the_kernel() {
        // A node below 4 GiB fills its share without giving anything; the other gives the rest.
        let ram = [range(1, 1025, 0), range(4096, 6144, 1)];
        check(
            "kernelcore=2G",
            &ram,
            &[(0, "DMA", 15), (0, "DMA32", 1009), (1, "Normal", 1024), (1, "Movable", 1024)],
        );
    }

    #[test]
    fn all_or_nothing_leaves_no_movable_zone() {
        let ram = [range(4096, 5120, 0)];
        for words in
            ["", "kernelcore=2G", "kernelcore=0", "movablecore=0", "kernelcore=many", "-- kernelcore=512M"]
        {
            check(words, &ram, &[(0, "Normal", 1024)]);
        }
    }

    proptest! {
        #[test]
        fn movable_memory_is_never_more_than_was_left(kernel in 1u64..8192, sizes in proptest::collection::vec(1u64..4096, 1..6)) {
            let mut at = 1;
            let ram: Vec<Range> = sizes.iter().zip(0..).map(|(size, node)| {
                at += size;
                range(at - size, at, node)
            }).collect();
            let total: u64 = sizes.iter().sum::<u64>() << 8;
            let movable = Movable::AllBut(Amount::Size(Bytes::from_mib(kernel)));
            let zones = zones(Layout::from_architecture(Architecture::X86), movable, &ram);
            prop_assert_eq!(zones.iter().map(|zone| zone.present).sum::<u64>(), total);
            let in_movable: u64 = zones.iter().filter(|zone| zone.kind == ZoneKind::Movable).map(|zone| zone.present).sum();
            // The kernel gives up to stay just under one page per node.
            prop_assert!(in_movable <= total.saturating_sub(kernel << 8) + sizes.len() as u64);
        }

        #[test]
        fn any_command_line_is_read(text in any::<String>(), near in "(kernelcore|movablecore)=[0-9]{0,25}[%KMG]?") {
            let _ = Movable::from_command_line(&text);
            let _ = Movable::from_command_line(&near).kernel_pages(u64::MAX, Layout::from_architecture(Architecture::X86));
        }
    }
}
