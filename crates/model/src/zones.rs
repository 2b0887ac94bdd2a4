//! The zones of every node: which there are, and how many pages each spans and holds.
//!
//! # Source
//! `arch_zone_limits_init` of each architecture, `find_zone_movable_pfns_for_nodes` and
//! `calculate_node_totalpages` in `mm/mm_init.c`; 6.1 to at least 7.2. Compared with
//! `/proc/zoneinfo` of 6.12 and 6.18.
//!
//! # Units
//! Pages of the machine's own size.

use std::fmt;

use nodewise_machine::{Machine, NodeId};

use crate::movable::{Movable, movable_starts};
use crate::ram::{Architecture, Range, page_bytes, pages_of, ranges};
use crate::release::{Change, Release};

/// A zone that memory is allocated from, lowest first. (`Device` never gives pages to anybody.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ZoneKind {
    /// For devices that address little: below 16 MiB on x86-64, below 4 GiB on most of arm64.
    Dma,
    /// Below 4 GiB.
    Dma32,
    Normal,
    /// Only for pages that can be moved: those of programs.
    Movable,
}

impl ZoneKind {
    /// Every kind, lowest first.
    pub const ALL: [Self; 4] = [Self::Dma, Self::Dma32, Self::Normal, Self::Movable];

    /// The kernel's name for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dma => "DMA",
            Self::Dma32 => "DMA32",
            Self::Normal => "Normal",
            Self::Movable => "Movable",
        }
    }

    /// The kind with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for ZoneKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A zone of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    pub node: NodeId,
    /// Which zone of the node.
    pub kind: ZoneKind,
    /// The number of its first page.
    pub start_page: u64,
    /// From the first page to the last, holes included.
    pub spanned: u64,
    /// Pages of RAM in it.
    pub present: u64,
    /// Pages that the allocator manages: those present without what the kernel keeps from boot on.
    pub managed: u64,
}

/// The limits of a zone in the whole system: its first page, and the one behind its last.
type Limits = (ZoneKind, u64, u64);

/// First byte above the DMA zone of x86-64.
const X86_DMA_END: u64 = 16 << 20;
/// First byte that 31 bits cannot address: above the DMA zone of s390.
const END_OF_31_BITS: u64 = 2 << 30;
/// First byte that 32 bits cannot address.
const END_OF_32_BITS: u64 = 4 << 30;

/// The facts that decide the limits of zones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    pub architecture: Architecture,
    /// Bytes of a page.
    pub page: u64,
    /// The lowest bound in bytes that an arm64 firmware sets for devices (1 GiB on a Raspberry Pi 4); `None`
    /// where none is below 4 GiB.
    pub device_limit: Option<u64>,
    /// The kernel: before 5.0 all memory of POWER was in zone DMA.
    pub release: Release,
}

impl Layout {
    /// That of an architecture with pages of 4 KiB.
    pub const fn from_architecture(architecture: Architecture) -> Self {
        Self { architecture, page: crate::ram::PAGE, device_limit: None, release: Release::REFERENCE }
    }

    /// That of a machine.
    pub fn from_machine(machine: &Machine) -> Self {
        Self {
            architecture: Architecture::from_machine(machine),
            page: page_bytes(machine),
            device_limit: None,
            release: Release::from_kernel(machine.kernel.as_ref()),
        }
    }
}

/// The limits of the zones Dma, Dma32 and Normal, from what RAM there is.
///
/// # Source
/// `zone_sizes_init` of x86 and RISC-V, `dma_limits_init` of arm64, `paging_init` of s390 and POWER. Those of s390 and
/// POWER were read and not tried: s390 puts what lies below `MAX_DMA_ADDRESS` (2 GiB, `arch/s390/include/asm/dma.h`) into
/// DMA and the rest into Normal. POWER limited all zones to the top of RAM before Linux 5.0, so that the lowest, DMA, had
/// everything; since then `CONFIG_ZONE_DMA` is set for Book3E and 32-bit processors alone
/// (`arch/powerpc/Kconfig`), and servers have Normal.
pub fn limits(layout: Layout, ram: &[Range]) -> [Limits; 3] {
    let page = layout.page;
    let pages = || ram.iter().map(|range| pages_of(*range, page));
    let start = pages().map(|(start, _)| start).min().unwrap_or(0);
    let end = pages().map(|(_, end)| end).max().unwrap_or(0);
    // No zone below Normal ends above the first page.
    const NONE: u64 = 0;
    let (dma, dma32) = match layout.architecture {
        Architecture::X86 => (X86_DMA_END, END_OF_32_BITS),
        Architecture::Arm => {
            // RAM that starts above 4 GiB is all for devices; else they get at most 32 bits.
            let widest = if start < END_OF_32_BITS / page { END_OF_32_BITS } else { u64::MAX };
            (layout.device_limit.unwrap_or(u64::MAX).min(widest), END_OF_32_BITS)
        }
        Architecture::Power if !layout.release.has(Change::PowerInNormal) => (u64::MAX, NONE),
        Architecture::S390 => (END_OF_31_BITS, NONE),
        Architecture::RiscV => (NONE, END_OF_32_BITS),
        Architecture::Power | Architecture::Other => (NONE, NONE),
    };
    let clamp = |byte: u64| (byte / page).clamp(start, end.max(start));
    let first = clamp(dma);
    let second = clamp(dma32).max(first);
    [(ZoneKind::Dma, start, first), (ZoneKind::Dma32, first, second), (ZoneKind::Normal, second, end)]
}

/// The populated zones of every node, by node and then lowest first, with every page that is
/// present counted as managed.
pub fn zones(layout: Layout, movable: Movable, ram: &[Range]) -> Vec<Zone> {
    let limits = limits(layout, ram);
    let starts = movable_starts(movable, layout, &limits, ram);
    let mut nodes: Vec<NodeId> = ram.iter().map(|range| range.node).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let mut zones = Vec::new();
    for node in nodes {
        let own: Vec<(u64, u64)> = ram
            .iter()
            .filter(|range| range.node == node)
            .map(|range| pages_of(*range, layout.page))
            .collect();
        let first = own.iter().map(|(start, _)| *start).min().unwrap_or(0);
        let last = own.iter().map(|(_, end)| *end).max().unwrap_or(0);
        let movable = starts.get(&node).copied().unwrap_or(last);
        for (kind, low, high) in limits {
            let (start, end) = (first.clamp(low, high.max(low)), last.clamp(low, high.max(low)));
            zones.extend(zone(node, kind, start, end.min(movable), &own));
        }
        zones.extend(zone(node, ZoneKind::Movable, movable, last, &own));
    }
    zones
}

/// The zone between two pages; `None` without RAM in it.
fn zone(node: NodeId, kind: ZoneKind, start: u64, end: u64, ram: &[(u64, u64)]) -> Option<Zone> {
    let spanned = end.saturating_sub(start);
    let inside = |(first, last): &(u64, u64)| (*last).min(end).saturating_sub((*first).max(start));
    let present: u64 = ram.iter().map(inside).sum();
    (present > 0).then_some(Zone { node, kind, start_page: start, spanned, present, managed: present })
}

/// The zones that a machine has with its [`ranges`]. Whether they are known says [`check`](crate::ram::check).
pub fn machine_zones(machine: &Machine) -> Vec<Zone> {
    let movable = machine.settings.command_line.as_deref().map_or(Movable::None, Movable::from_command_line);
    let layout = Layout::from_machine(machine);
    let mut zones = zones(layout, movable, &ranges(machine));
    for node in machine.nodes.keys() {
        if let Some(memory) = machine.memory_of(*node) {
            let own = zones.iter_mut().filter(|zone| zone.node == *node);
            keep(&mut own.collect::<Vec<_>>(), memory.get() / layout.page);
        }
    }
    zones
}

/// Leaves the zones of a node as many managed pages as its kernel manages, each its part of what is present; the
/// highest has what is left of the division.
fn keep(zones: &mut [&mut Zone], managed: u64) {
    let present: u64 = zones.iter().map(|zone| zone.present).sum();
    let kept = managed.min(present);
    let mut left = kept;
    for zone in zones.iter_mut() {
        let part = u128::from(kept) * u128::from(zone.present) / u128::from(present.max(1));
        zone.managed = u64::try_from(part).unwrap_or(u64::MAX);
        left = left.saturating_sub(zone.managed);
    }
    if let Some(highest) = zones.last_mut() {
        highest.managed += left;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::{Bytes, spec};
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    /// Node, zone, first page, spanned, present.
    type Row = (u32, &'static str, u64, u64, u64);

    fn check(architecture: Architecture, limit: Option<u64>, ram: &[(u64, u64, u32)], expected: &[Row]) {
        check_layout(
            Layout { device_limit: limit, ..Layout::from_architecture(architecture) },
            ram,
            expected,
        );
    }

    fn check_layout(layout: Layout, ram: &[(u64, u64, u32)], expected: &[Row]) {
        let ram: Vec<Range> = ram
            .iter()
            .map(|(start, end, node)| Range { start: *start, end: *end, node: NodeId::new(*node) })
            .collect();
        let zones: Vec<Row> = zones(layout, Movable::None, &ram)
            .iter()
            .map(|zone| (zone.node.number(), zone.kind.name(), zone.start_page, zone.spanned, zone.present))
            .collect();
        assert_eq!(zones, expected);
    }

    #[test]
    fn a_node_above_and_below_four_gibibytes_has_three_zones() {
        // The ranges of a PC with 4.5 GiB on node 0 and 1 GiB on node 1.
        check(
            Architecture::X86,
            None,
            &[
                (0x1000, 0x9f000, 0),
                (0x10_0000, 0xc000_0000, 0),
                (0x1_0000_0000, 0x1_6000_0000, 0),
                (0x1_6000_0000, 0x1_a000_0000, 1),
            ],
            &[
                (0, "DMA", 1, 4095, 3998),
                (0, "DMA32", 4096, 1_044_480, 782_336),
                (0, "Normal", 1_048_576, 393_216, 393_216),
                (1, "Normal", 1_441_792, 262_144, 262_144),
            ],
        );
    }

    #[test]
    fn dma_covers_all_below_four_gibibytes_on_arm64() {
        // The ranges of a guest of 2 GiB, and a Raspberry Pi 4, whose devices reach 1 GiB.
        check(
            Architecture::Arm,
            None,
            &[(0x4000_0000, 0xc000_0000, 0)],
            &[(0, "DMA", 262_144, 524_288, 524_288)],
        );
        check(
            Architecture::Arm,
            Some(1 << 30),
            &[(0, 8 << 30, 0)],
            &[
                (0, "DMA", 0, 262_144, 262_144),
                (0, "DMA32", 262_144, 786_432, 786_432),
                (0, "Normal", 1_048_576, 1_048_576, 1_048_576),
            ],
        );
    }

    #[test]
    fn ram_that_starts_above_four_gibibytes_is_all_dma_on_arm64() {
        check(Architecture::Arm, None, &[(8 << 30, 9 << 30, 0)], &[(0, "DMA", 2_097_152, 262_144, 262_144)]);
    }

    #[test]
    fn other_architectures_have_zones_of_their_own() {
        let ram = [(0, 8 << 30, 0)];
        let large = |architecture| Layout { page: 64 << 10, ..Layout::from_architecture(architecture) };
        // POWER has all in Normal, and had all in DMA before 5.0.
        check_layout(large(Architecture::Power), &ram, &[(0, "Normal", 0, 131_072, 131_072)]);
        let old = Layout { release: Release::new(4, 18), ..large(Architecture::Power) };
        check_layout(old, &ram, &[(0, "DMA", 0, 131_072, 131_072)]);
        check(
            Architecture::S390,
            None,
            &ram,
            &[(0, "DMA", 0, 524_288, 524_288), (0, "Normal", 524_288, 1_572_864, 1_572_864)],
        );
        check(
            Architecture::RiscV,
            None,
            &[(2 << 30, 8 << 30, 0)],
            &[(0, "DMA32", 524_288, 524_288, 524_288), (0, "Normal", 1_048_576, 1_048_576, 1_048_576)],
        );
        check_layout(
            large(Architecture::Arm),
            &[(1 << 30, 8 << 30, 0)],
            &[(0, "DMA", 16_384, 49_152, 49_152), (0, "Normal", 65_536, 65_536, 65_536)],
        );
    }

    #[test]
    fn what_is_present_and_not_managed_is_kept_by_the_kernel() {
        let mut machine = spec::machine("(1c 6000M); arch=x86_64").unwrap();
        machine.nodes.values_mut().for_each(|node| node.present = Some(Bytes::from_gib(8)));
        let sums = |zones: &[Zone], pages: fn(&Zone) -> u64| zones.iter().map(pages).sum::<u64>() >> 8;
        let zones = machine_zones(&machine);
        assert_eq!((sums(&zones, |zone| zone.present), sums(&zones, |zone| zone.managed)), (8192, 6000));
        assert!(zones.iter().all(|zone| zone.managed <= zone.present));
    }

    #[test]
    fn interleaved_nodes_span_each_other() {
        check(
            Architecture::X86,
            None,
            &[(4 << 30, 5 << 30, 0), (5 << 30, 6 << 30, 1), (6 << 30, 7 << 30, 0)],
            &[(0, "Normal", 1_048_576, 786_432, 524_288), (1, "Normal", 1_310_720, 262_144, 262_144)],
        );
    }

    proptest! {
        #[test]
        fn no_page_is_lost_or_counted_twice(
            sizes in proptest::collection::vec(1u64..9000, 1..9),
            arm in proptest::bool::ANY,
        ) {
            let nodes: Vec<String> = sizes.iter().map(|size| format!("(1c {size}M)")).collect();
            let arch = if arm { "aarch64" } else { "x86_64" };
            let machine = spec::machine(&format!("{}; arch={arch}", nodes.join(" "))).unwrap();
            let zones = machine_zones(&machine);
            for node in machine.nodes.values() {
                let managed: u64 =
                    zones.iter().filter(|zone| zone.node == node.id).map(|zone| zone.managed).sum();
                prop_assert_eq!(Some(Bytes::new(managed * 4096)), node.memory_total());
            }
            for zone in &zones {
                prop_assert!(zone.present <= zone.spanned);
            }
        }
    }
}
