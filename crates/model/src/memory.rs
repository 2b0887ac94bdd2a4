//! The memory of a machine while pages are taken from it: zones with their free pages, and counters.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::{Bytes, Machine, NodeCounters, NodeId, NodeSet};

use crate::ram::{HUGE_ORDER, PAGE, huge_order, page_bytes};
use crate::reclaim::ZoneReclaim;
use crate::release::Release;
use crate::watermark::{DEFAULT_BOOST, DEFAULT_RATIOS, DEFAULT_SCALE, Watermarks, reserves, watermarks};
use crate::watermark::{default_min_free_kib, min_free_kib_with_huge_pages};
use crate::zonelist::{BuiltAt, FallbackOrders};
use crate::zones::{self, Zone, ZoneKind};

/// A zone and how full it is.
///
/// # Units
/// Pages of the memory's size ([`Memory::page_bytes`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneState {
    pub node: NodeId,
    /// Which zone of the node.
    pub kind: ZoneKind,
    /// Pages that the allocator manages.
    pub managed: u64,
    /// Free pages, without those in the lists of the CPUs.
    pub free: u64,
    pub marks: Watermarks,
    /// Pages kept from requests that may use higher zones, by [`ZoneKind::ALL`].
    pub reserves: [u64; 4],
}

impl ZoneState {
    /// Free pages that it keeps at a watermark from requests whose highest zone is this one.
    pub const fn kept(&self, mark: u64, highest: ZoneKind) -> u64 {
        mark.saturating_add(self.reserves[highest as usize])
    }
}

/// Pages of 4 KiB by the zone that they are in: what a program has of one kind of memory.
pub type Placed = BTreeMap<(NodeId, ZoneKind), u64>;

/// How hard the kernel tries to give a huge page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HugeEffort {
    /// On the first node, then on the others: what it does for memory that is advised to be in huge pages.
    Everywhere,
    /// On the first node alone, and without reclaiming: what it does for all other memory. An interleaving policy's
    /// huge pages fall back to other nodes.
    FirstNode,
}

/// The memory of a machine at some time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    pub(crate) zones: Vec<ZoneState>,
    pub(crate) orders: FallbackOrders,
    pub(crate) counters: BTreeMap<NodeId, NodeCounters>,
    pub(crate) release: Release,
    /// Bytes of a page.
    pub(crate) page: u64,
    /// A huge page is two to the power of this many pages.
    pub(crate) huge_order: u32,
    pub(crate) huge_effort: HugeEffort,
    /// Whether nodes are reclaimed before others are tried.
    pub(crate) zone_reclaim: Option<ZoneReclaim>,
    /// Pages that each zone would give up then, by its index; empty where nothing is reclaimed.
    pub(crate) spare: Vec<u64>,
    pub(crate) reclaimed: BTreeMap<NodeId, u64>,
    /// `vm.watermark_boost_factor`.
    pub(crate) boost: u32,
}

impl Memory {
    /// Memory with these zones, in pages of 4 KiB.
    pub fn new(zones: Vec<ZoneState>, orders: FallbackOrders, release: Release) -> Self {
        let counters = zones.iter().map(|zone| (zone.node, NodeCounters::default())).collect_map();
        let (zone_reclaim, spare, reclaimed) = (None, Vec::new(), BTreeMap::new());
        Self {
            zones,
            orders,
            counters,
            release,
            page: PAGE,
            huge_order: HUGE_ORDER,
            huge_effort: HugeEffort::Everywhere,
            zone_reclaim,
            spare,
            reclaimed,
            boost: DEFAULT_BOOST,
        }
    }

    /// The same in pages of this many bytes.
    #[must_use]
    pub fn with_page(self, page: u64) -> Self {
        Self { page, ..self }
    }

    /// The same with huge pages of 2^`order` pages.
    #[must_use]
    pub fn with_huge_order(self, order: u32) -> Self {
        Self { huge_order: order, ..self }
    }

    /// The same with another `vm.watermark_boost_factor`, in ten-thousandths of the high watermark; 0 is none.
    #[must_use]
    pub fn with_boost(self, boost: u32) -> Self {
        Self { boost, ..self }
    }

    /// The same with another effort for huge pages.
    #[must_use]
    pub fn with_huge_effort(self, huge_effort: HugeEffort) -> Self {
        Self { huge_effort, ..self }
    }

    /// The same with as many free pages in these zones.
    #[must_use]
    pub fn with_free(mut self, free: &Placed) -> Self {
        for zone in &mut self.zones {
            zone.free = free.get(&(zone.node, zone.kind)).copied().unwrap_or(zone.free);
        }
        self
    }

    /// A huge page is 2^order pages.
    pub const fn huge_order(&self) -> u32 {
        self.huge_order
    }

    /// Pages in a huge one.
    pub const fn huge_pages(&self) -> u64 {
        1 << self.huge_order
    }

    /// Bytes of a page.
    pub const fn page_bytes(&self) -> u64 {
        self.page
    }

    /// The memory of a machine, as far as it says; where it does not, the zones are those of
    /// [`zones::machine_zones`], the settings are the kernel's own, and all memory is free.
    pub fn from_machine(machine: &Machine, built: BuiltAt, release: Release) -> Self {
        let (zones, page) = (zones::machine_zones(machine), page_bytes(machine));
        let asked = machine.settings.min_free_kib;
        let min_free = asked.unwrap_or_else(|| match machine.settings.transparent_hugepage.as_deref() {
            Some("never") => default_min_free_kib(&zones, page),
            _ => min_free_kib_with_huge_pages(&zones, page),
        });
        let marks = watermarks(&zones, min_free, DEFAULT_SCALE, page);
        let state = |(zone, marks): (&Zone, Watermarks)| ZoneState {
            node: zone.node,
            kind: zone.kind,
            managed: zone.managed,
            free: free_share(machine, zone),
            marks,
            reserves: reserves(zone, &zones, DEFAULT_RATIOS),
        };
        let states = zones.iter().zip(marks).map(state).collect();
        let memory = Self::new(states, FallbackOrders::from_machine(machine, built), release).with_page(page);
        let memory = memory.with_boost(machine.settings.watermark_boost_factor.unwrap_or(DEFAULT_BOOST));
        memory.with_huge_order(huge_order(machine).unwrap_or(HUGE_ORDER))
    }

    /// The zones, by node and then lowest first.
    pub fn zones(&self) -> &[ZoneState] {
        &self.zones
    }

    /// The fallback orders.
    pub const fn orders(&self) -> &FallbackOrders {
        &self.orders
    }

    /// The nodes that have memory.
    pub fn nodes(&self) -> NodeSet {
        self.zones.iter().filter(|zone| zone.managed > 0).map(|zone| zone.node).collect()
    }

    /// Pages that a node has free at its high watermarks, and where these are raised as far as they can be.
    pub(crate) fn high_of(&self, node: NodeId) -> RangeInclusive<u64> {
        let zones = self.zones.iter().filter(|zone| zone.node == node);
        let high = zones.map(|zone| zone.marks.high).fold(0, u64::saturating_add);
        let boost = u128::from(high) * u128::from(self.boost) / 10_000;
        high..=high.saturating_add(u64::try_from(boost).unwrap_or(u64::MAX))
    }

    /// Pages of a node that programs may take before its zones are at their low watermarks.
    pub fn above_low_of(&self, node: NodeId) -> u64 {
        let zones = self.zones.iter().filter(|zone| zone.node == node);
        zones.map(|zone| zone.free.saturating_sub(zone.kept(zone.marks.low, ZoneKind::Movable))).sum()
    }

    /// Free pages of a node.
    pub fn free_of(&self, node: NodeId) -> u64 {
        self.zones.iter().filter(|zone| zone.node == node).map(|zone| zone.free).sum()
    }

    /// Pages that the zones of a node manage: its memory less what was taken while starting.
    pub fn managed_of(&self, node: NodeId) -> u64 {
        self.zones.iter().filter(|zone| zone.node == node).map(|zone| zone.managed).sum()
    }

    /// Gives pages back to a zone, but no more than it manages. A missing zone
    /// takes none.
    pub fn free(&mut self, node: NodeId, kind: ZoneKind, pages: u64) {
        if let Some(zone) = self.zones.iter_mut().find(|zone| (zone.node, zone.kind) == (node, kind)) {
            zone.free = zone.free.saturating_add(pages).min(zone.managed.max(zone.free));
        }
    }

    /// Gives pages of one zone back for those that were taken from others; shows how many.
    pub(crate) fn exchange(
        &mut self,
        pages: &mut Placed,
        from: (NodeId, ZoneKind),
        taken: impl IntoIterator<Item = (NodeId, ZoneKind, u64)>,
    ) -> u64 {
        let mut moved = 0;
        for (node, kind, count) in taken {
            *pages.entry((node, kind)).or_default() += count;
            moved += count;
        }
        if let Some(left) = pages.get_mut(&from) {
            *left -= moved;
        }
        self.free(from.0, from.1, moved);
        moved
    }

    /// The counters since the beginning, by node.
    pub const fn counters(&self) -> &BTreeMap<NodeId, NodeCounters> {
        &self.counters
    }
}

/// A zone's part of what is free on its node.
fn free_share(machine: &Machine, zone: &Zone) -> u64 {
    let sizes = machine.free_of(zone.node).zip(machine.memory_of(zone.node));
    let Some((free, total)) = sizes else { return zone.managed };
    let page = page_bytes(machine);
    let total = total.get() / page;
    let free = u128::from((free.min(Bytes::new(total * page))).get() / page);
    (u128::from(zone.managed) * free).checked_div(u128::from(total)).map_or(0, |share| share as u64)
}
