//! Watermarks: how many pages of a zone stay free for whom.
//!
//! # Source
//! `calculate_min_free_kbytes`, `__setup_per_zone_wmarks` and `setup_per_zone_lowmem_reserve` in
//! `mm/page_alloc.c`, `set_recommended_min_free_kbytes` in `mm/khugepaged.c`; 5.10 to at least 7.2.
//! Compared with `/proc/zoneinfo` of 6.12: equal to the page.
//!
//! # Units
//! Pages of the machine's own size, unless a name says KiB.

use crate::zones::{Zone, ZoneKind};

/// Pages in a block that is given to one kind of use as a whole: those whose numbers fill half of a page table's
/// page (2 MiB with pages of 4 KiB).
const fn page_block(page: u64) -> u64 {
    page / 8
}
/// The kernel's own default of `vm.watermark_scale_factor`, in ten-thousandths.
pub const DEFAULT_SCALE: u64 = 10;
/// The kernel's own default of `vm.watermark_boost_factor`, in ten-thousandths of the high watermark: the most by which the
/// watermarks of a zone are raised when pages of one kind are put into blocks of another.
pub const DEFAULT_BOOST: u32 = 15_000;
/// The kernel's own default of `vm.lowmem_reserve_ratio`, by zone; 0 stands for no reserve.
pub const DEFAULT_RATIOS: [u64; 4] = [256, 256, 32, 0];

/// Free pages at which a zone is treated differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Watermarks {
    /// Below this, only reserves are left: an allocation has to reclaim memory itself.
    pub min: u64,
    /// Below this, kswapd is woken and the next zone is tried.
    pub low: u64,
    /// Up to this, kswapd goes on.
    pub high: u64,
    /// Above this, pages can be promoted to the zone without reclaim.
    pub promo: u64,
}

/// `min_free_kbytes` as the kernel works it out at boot without huge pages: the square root of 16
/// times the memory below zone Movable, from 128 KiB to 256 MiB.
pub fn default_min_free_kib(zones: &[Zone], page: u64) -> u64 {
    let kib: u64 =
        below_movable(zones).map(|zone| zone.managed.saturating_mul(page >> 10)).fold(0, u64::saturating_add);
    kib.saturating_mul(16).isqrt().clamp(128, 262_144)
}

/// `min_free_kbytes` as khugepaged raises it: eleven blocks (of 2 MiB with pages of 4 KiB) for every populated zone below
/// Movable, but not more than a twentieth of their memory. Where that is less than the default, the
/// default stays.
pub fn min_free_kib_with_huge_pages(zones: &[Zone], page: u64) -> u64 {
    let populated = below_movable(zones).count() as u64;
    let managed = below_movable(zones).map(|zone| zone.managed).fold(0, u64::saturating_add);
    let recommended = (page_block(page) * populated * 11).min(managed / 20).saturating_mul(page >> 10);
    recommended.max(default_min_free_kib(zones, page))
}

fn below_movable(zones: &[Zone]) -> impl Iterator<Item = &Zone> {
    zones.iter().filter(|zone| zone.kind < ZoneKind::Movable)
}

/// The watermarks of each zone, in the order of the zones.
///
/// `scale` is `vm.watermark_scale_factor`. The kernel works them out at boot before it has given all
/// its start-up memory back, and again whenever one of the settings is written: only from then on
/// they follow from the managed pages that can be read.
pub fn watermarks(zones: &[Zone], min_free_kib: u64, scale: u64, page: u64) -> Vec<Watermarks> {
    let wanted = u128::from(min_free_kib / (page >> 10));
    let all: u128 = below_movable(zones).map(|zone| u128::from(zone.managed)).sum();
    let marks = |zone: &Zone| {
        let managed = u128::from(zone.managed);
        let share = (wanted * managed).checked_div(all).unwrap_or(0);
        let min = if zone.kind == ZoneKind::Movable { (managed / 1024).clamp(32, 128) } else { share };
        let gap = (share / 4).max(managed * u128::from(scale) / 10_000);
        let page = |count: u128| u64::try_from(count).unwrap_or(u64::MAX);
        Watermarks {
            min: page(min),
            low: page(min + gap),
            high: page(min + 2 * gap),
            promo: page(min + 3 * gap),
        }
    };
    zones.iter().map(marks).collect()
}

/// Pages of a zone that are kept from allocations which may also use higher zones of the same node:
/// `reserve(kind of the request)`, by [`ZoneKind::ALL`]. A column of `protection` in
/// `/proc/zoneinfo`.
///
/// `zones` are all zones of the zone's node; `ratios` is `vm.lowmem_reserve_ratio`.
pub fn reserves(zone: &Zone, zones: &[Zone], ratios: [u64; 4]) -> [u64; 4] {
    let ratio = ratios[zone.kind as usize];
    ZoneKind::ALL.map(|class| {
        let above = zones
            .iter()
            .filter(|other| other.node == zone.node && other.kind > zone.kind && other.kind <= class)
            .map(|other| other.managed)
            .fold(0, u64::saturating_add);
        above.checked_div(ratio).unwrap_or(0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ram::PAGE;
    use nodewise_machine::NodeId;
    use proptest::prelude::{any, prop_assert, proptest};

    fn zone(node: u32, kind: ZoneKind, managed: u64) -> Zone {
        Zone { node: NodeId::new(node), kind, start_page: 0, spanned: managed, present: managed, managed }
    }

    /// Four nodes of 512 MiB.
    fn small_server() -> Vec<Zone> {
        vec![
            zone(0, ZoneKind::Dma, 3840),
            zone(0, ZoneKind::Dma32, 115_209),
            zone(1, ZoneKind::Dma32, 128_915),
            zone(2, ZoneKind::Dma32, 128_915),
            zone(3, ZoneKind::Dma32, 128_360),
        ]
    }

    #[test]
    fn the_default_is_a_square_root() {
        // The guest said 5660 before it gave its start-up memory back, 1 % less than here.
        assert_eq!(default_min_free_kib(&small_server(), PAGE), 5686);
        assert_eq!(default_min_free_kib(&[], PAGE), 128);
        assert_eq!(default_min_free_kib(&[zone(0, ZoneKind::Normal, 1 << 40)], PAGE), 262_144);
    }

    #[test]
    fn huge_pages_raise_it_to_eleven_blocks_a_zone() {
        // A twentieth is the limit here: the guest said 100112, of what it managed at that time.
        assert_eq!(min_free_kib_with_huge_pages(&small_server(), PAGE), 505_239 / 20 * 4);
        let server = [
            zone(0, ZoneKind::Dma, 3840),
            zone(0, ZoneKind::Dma32, 500_000),
            zone(0, ZoneKind::Normal, 15 << 20),
            zone(1, ZoneKind::Normal, 16 << 20),
        ];
        assert_eq!(min_free_kib_with_huge_pages(&server, PAGE), 512 * 4 * 11 * 4);
    }

    #[test]
    fn zone_movable_has_a_minimum_of_its_own() {
        let zones = [zone(0, ZoneKind::Normal, 100_000), zone(0, ZoneKind::Movable, 100_000)];
        let marks = watermarks(&zones, 4000, DEFAULT_SCALE, PAGE);
        assert_eq!((marks[0].min, marks[1].min), (1000, 97));
        assert_eq!(marks[1].low, 97 + 250, "its gaps follow from its share");
    }

    #[test]
    fn the_reserve_is_what_lies_above_in_the_same_node() {
        // A node of 4.5 GiB: DMA keeps more than it has from user pages.
        let zones = [
            zone(0, ZoneKind::Dma, 3840),
            zone(0, ZoneKind::Dma32, 765_951),
            zone(0, ZoneKind::Normal, 374_082),
            zone(1, ZoneKind::Normal, 257_000),
        ];
        assert_eq!(reserves(&zones[0], &zones, DEFAULT_RATIOS), [0, 2991, 4453, 4453]);
        assert_eq!(reserves(&zones[1], &zones, DEFAULT_RATIOS), [0, 0, 1461, 1461]);
        assert_eq!(reserves(&zones[2], &zones, DEFAULT_RATIOS), [0; 4]);
    }

    proptest! {
        #[test]
        fn watermarks_stand_in_order(
            managed in proptest::collection::vec((0usize..4, any::<u64>()), 1..9),
            free in any::<u64>(),
            scale in 1u64..=3000,
        ) {
            let zones: Vec<Zone> = managed.iter().zip(0..).map(|((kind, managed), node)| zone(node, ZoneKind::ALL[*kind], *managed)).collect();
            let _ = (default_min_free_kib(&zones, PAGE), min_free_kib_with_huge_pages(&zones, PAGE));
            for (zone, marks) in zones.iter().zip(watermarks(&zones, free, scale, PAGE)) {
                prop_assert!(marks.min <= marks.low && marks.low <= marks.high && marks.high <= marks.promo);
                let _ = reserves(zone, &zones, DEFAULT_RATIOS);
            }
        }
    }
}
