//! The zones of a machine: its kernel's own where it has been asked, else as the model assumes them.

use nodewise_machine::check::node_names;
use nodewise_machine::printable::quote;
use nodewise_machine::{Machine, NodeSet};
use nodewise_model::ram::{self, Unknown};
use nodewise_model::reclaim::ZoneReclaim;
use nodewise_model::walk::HUGE_ORDER;
use nodewise_model::watermark::{DEFAULT_RATIOS, DEFAULT_SCALE, reserves, watermarks};
use nodewise_model::{
    BuiltAt, FallbackOrders, Memory, Release, Watermarks, Zone, ZoneKind, ZoneState, zones as model,
};
use nodewise_source::parse::zoneinfo;
use nodewise_source::system;
use nodewise_source::tree::Tree;
use nodewise_view::digest::walk::Basis;
use nodewise_view::digest::zones::Row;

use crate::failure::Failure;
use crate::input::Input;

/// Zones, and where they come from.
pub struct Zones {
    /// By node and then lowest first.
    pub rows: Vec<Row>,
    pub basis: Basis,
    /// Bytes of a page.
    pub page: u64,
}

impl Zones {
    /// The zones of a machine.
    ///
    /// # Errors
    /// What the machine does not give and the model cannot do without.
    pub fn from_input(input: &Input, release: Release) -> Result<Self, Failure> {
        let machine = &input.machine;
        if let Some(mut rows) = input.tree().and_then(of_kernel).filter(|found| !found.is_empty()) {
            initialise(&mut rows, machine);
            return Ok(Self { rows, basis: Basis::Kernel, page: ram::page_bytes(machine) });
        }
        ram::check(machine).map_err(|unknown| Failure::cannot(missing(&unknown)))?;
        let memory = Memory::from_machine(machine, BuiltAt::Boot, release);
        let zones = model::machine_zones(machine).into_iter().zip(memory.zones());
        let row = |(zone, state): (Zone, &ZoneState)| Row { zone, state: state.clone(), boost: None };
        let basis =
            if machine.memory_map.ram.is_empty() { Basis::assumed_of(machine) } else { Basis::Firmware };
        Ok(Self { rows: zones.map(row).collect(), basis, page: memory.page_bytes() })
    }

    /// The same zones with the watermarks and reserves that follow from their managed pages.
    pub fn modelled(&self, input: &Input) -> Vec<Row> {
        let zones: Vec<Zone> = self.rows.iter().map(|row| row.zone).collect();
        let Some(min_free) = input.machine.settings.min_free_kib else {
            return self.rows.iter().map(|row| Row { boost: None, ..row.clone() }).collect();
        };
        let scale = input.tree().and_then(|tree| system::watermark_scale(tree).ok().flatten());
        let marks = watermarks(&zones, min_free, scale.unwrap_or(DEFAULT_SCALE), self.page);
        let row = |(Row { zone, state, .. }, marks): (&Row, Watermarks)| {
            let reserves = reserves(zone, &zones, DEFAULT_RATIOS);
            Row { zone: *zone, state: ZoneState { marks, reserves, ..state.clone() }, boost: None }
        };
        self.rows.iter().zip(marks).map(row).collect()
    }

    /// The same with other free memory of some nodes, as the machine has it now: each zone has its part by what it manages.
    #[must_use]
    pub fn with_free(mut self, machine: &Machine, nodes: &NodeSet) -> Self {
        for node in nodes {
            let Some(free) = machine.free_of(node) else { continue };
            let free = u128::from(free.get() / self.page);
            let own = || self.rows.iter().filter(|row| row.zone.node == node);
            let all: u128 = own().map(|row| u128::from(row.state.managed)).sum();
            for row in self.rows.iter_mut().filter(|row| row.zone.node == node) {
                let share = (u128::from(row.state.managed) * free).checked_div(all).unwrap_or(0);
                row.state.free = u64::try_from(share).unwrap_or(u64::MAX).min(row.state.managed);
            }
        }
        self
    }

    /// The memory that these zones are.
    pub fn memory(&self, machine: &Machine, built: BuiltAt, release: Release) -> Memory {
        let states = self.rows.iter().map(|row| row.state.clone()).collect();
        let memory = Memory::new(states, FallbackOrders::from_machine(machine, built), release);
        let memory =
            memory.with_page(self.page).with_huge_order(ram::huge_order(machine).unwrap_or(HUGE_ORDER));
        memory.with_zone_reclaim(ZoneReclaim::from_machine(machine, release))
    }
}

/// The missing parts, and what supplies it.
pub fn missing(unknown: &Unknown) -> String {
    match unknown {
        Unknown::Sizes(nodes) => format!(
            "the memory size of {} is not known: --node-memory=SIZE supplies it (64G for each of them, 0-1=64G for some)",
            node_names(nodes)
        ),
        Unknown::Nodes => {
            "this machine describes no nodes: --machine takes a spec with some, such as \"2x(8c 64G)\""
                .to_owned()
        }
        Unknown::Zones(architecture) => format!(
            "the zones of {} are not modelled: only a machine with /proc/zoneinfo has them (live, or a capture)",
            quote(architecture)
        ),
    }
}

/// Adds to the zones what is not initialised yet: the kernel does that before it goes to another zone.
fn initialise(rows: &mut [Row], machine: &Machine) {
    let page = ram::page_bytes(machine);
    for node in machine.nodes.keys() {
        let mut left = machine.uninitialised_of(*node).get() / page;
        for row in rows.iter_mut().rev().filter(|row| row.zone.node == *node) {
            let part = left.min(row.zone.present.saturating_sub(row.zone.managed));
            row.zone.managed += part;
            row.state.managed += part;
            row.state.free = row.state.free.saturating_add(part);
            left -= part;
        }
    }
}

/// The populated zones in `/proc/zoneinfo`; `None` without that file, or where it lacks what a walk
/// has to know.
fn of_kernel(tree: &Tree) -> Option<Vec<Row>> {
    let info = system::zones(tree).ok()??.value;
    let populated = info.zones.iter().filter(|zone| zone.present.is_some_and(|pages| pages > 0));
    let known = populated.filter(|zone| ZoneKind::from_name(&zone.name).is_some());
    known.map(|zone| row(zone, &info.zones)).collect()
}

fn row(zone: &zoneinfo::Zone, all: &[zoneinfo::Zone]) -> Option<Row> {
    let kind = ZoneKind::from_name(&zone.name)?;
    let placed = Zone {
        node: zone.node,
        kind,
        start_page: zone.start_pfn?,
        spanned: zone.spanned?,
        present: zone.present?,
        managed: zone.managed?,
    };
    // What is printed is in force: a boost is in it already.
    let (min, low, high) = (zone.min?, zone.low?, zone.high?);
    let promo = zone.promo.unwrap_or_else(|| high.saturating_add(high.saturating_sub(low)));
    // The columns of `protection` are the zones of the node, in the order of their blocks.
    let names: Vec<&str> =
        all.iter().filter(|other| other.node == zone.node).map(|other| other.name.as_str()).collect();
    let reserve = |kind: ZoneKind| {
        let column = names.iter().position(|name| *name == kind.name());
        column.and_then(|column| zone.protection.get(column)).copied().unwrap_or(0)
    };
    let state = ZoneState {
        node: zone.node,
        kind,
        managed: placed.managed,
        free: zone.free?,
        marks: Watermarks { min, low, high, promo },
        reserves: ZoneKind::ALL.map(reserve),
    };
    Some(Row { zone: placed, state, boost: zone.boost })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::NodeId;
    use nodewise_source::tree::{Memory as Files, Tree};

    const INFO: &str = "\
Node 0, zone      DMA
  pages free     3840
        boost    10
        min      56
        low      67
        high     78
        promo    89
        spanned  4095
        present  3998
        managed  3840
        protection: (0, 3019, 5451, 5452, 5453)
  start_pfn:           1
Node 0, zone    DMA32
  pages free     0
        min      0
        low      0
        high     0
        spanned  0
        present  0
        managed  0
        protection: (0, 0, 0, 0, 0)
Node 0, zone   Normal
  pages free     100
        min      10
        low      12
        high     14
        spanned  4000
        present  4000
        managed  3900
        protection: (0, 0, 0, 0, 0)
  start_pfn:           1048576
Node 0, zone  Movable
  pages free     0
        present  0
Node 0, zone   Device
  pages free     0
        present  0
";

    #[test]
    fn the_kernels_watermarks_have_their_boost_in_them() {
        let tree = Tree::memory(Files::new().file("/proc/zoneinfo", INFO));
        let rows = of_kernel(&tree).unwrap();
        assert_eq!(rows.len(), 2);
        let Row { zone, state, boost } = &rows[0];
        assert_eq!(*boost, Some(10));
        assert_eq!((zone.node, zone.kind, zone.start_page), (NodeId::new(0), ZoneKind::Dma, 1));
        assert_eq!(state.marks, Watermarks { min: 56, low: 67, high: 78, promo: 89 });
        assert_eq!(state.reserves, [0, 3019, 5451, 5452]);
        // Kernels before 6.13 do not report the promotion mark, those before 5.19 no boost.
        assert_eq!((rows[1].state.marks.promo, rows[1].boost), (16, None));
    }

    #[test]
    fn what_is_not_initialised_yet_is_free() {
        let tree = Tree::memory(Files::new().file("/proc/zoneinfo", INFO));
        let mut rows = of_kernel(&tree).unwrap();
        let mut machine = nodewise_machine::spec::machine("(1c 30960K)").unwrap();
        rows[1].zone.managed -= 3000;
        rows[1].state.managed -= 3000;
        machine.system_memory = Some(nodewise_machine::Bytes::from_kib(30960 + 12000));
        initialise(&mut rows, &machine);
        assert_eq!((rows[1].zone.managed, rows[1].state.managed, rows[1].state.free), (3900, 3900, 3100));
        assert_eq!(rows[0].zone.managed, 3840);
    }

    #[test]
    fn free_memory_that_was_typed_is_in_all_zones_of_the_node() {
        let tree = Tree::memory(Files::new().file("/proc/zoneinfo", INFO));
        let zones = Zones { rows: of_kernel(&tree).unwrap(), basis: Basis::Kernel, page: ram::PAGE };
        // 3,840 and 3,900 pages, half of which are to be free.
        let machine = nodewise_machine::spec::machine("(1c 30960K free=15480K)").unwrap();
        let zones = zones.with_free(&machine, &NodeSet::from([0]));
        assert_eq!(zones.rows.iter().map(|row| row.state.free).collect::<Vec<_>>(), [1920, 1950]);
    }

    #[test]
    fn a_zoneinfo_without_sizes_is_not_believed() {
        let text = INFO.replace("        managed  3840\n", "");
        let tree = Tree::memory(Files::new().file("/proc/zoneinfo", &text));
        assert_eq!(of_kernel(&tree), None);
        assert_eq!(of_kernel(&Tree::memory(Files::new())), None);
    }
}
