//! `nodewise.zones/1` and `nodewise.zonelist/1`.

use nodewise_machine::NodeId;
use nodewise_model::ram::PAGE;
use nodewise_model::zonelist::Zonelist;
use nodewise_model::{BuiltAt, FallbackOrders, Zone, ZoneKind, ZoneState};
use serde::Serialize;

use super::pretty;
use crate::digest::walk::Basis;

/// The schema of the zones.
pub const ZONES_SCHEMA: &str = "nodewise.zones/1";
/// The schema of the fallback orders.
pub const ZONELIST_SCHEMA: &str = "nodewise.zonelist/1";

#[derive(Serialize)]
struct Zones {
    schema: &'static str,
    page_bytes: u64,
    zones_from: &'static str,
    zones: Vec<ZoneJson>,
    model: Vec<ZoneJson>,
}

#[derive(Serialize)]
struct ZoneJson {
    node: u32,
    zone: &'static str,
    first_page: u64,
    spanned_pages: u64,
    present_pages: u64,
    managed_pages: u64,
    free_pages: u64,
    min_pages: u64,
    low_pages: u64,
    high_pages: u64,
    promo_pages: u64,
    reserve_from_programs_pages: u64,
}

fn zone((zone, state): &(Zone, ZoneState)) -> ZoneJson {
    ZoneJson {
        node: zone.node.number(),
        zone: zone.kind.name(),
        first_page: zone.start_page,
        spanned_pages: zone.spanned,
        present_pages: zone.present,
        managed_pages: zone.managed,
        free_pages: state.free,
        min_pages: state.marks.min,
        low_pages: state.marks.low,
        high_pages: state.marks.high,
        promo_pages: state.marks.promo,
        reserve_from_programs_pages: state.reserves[ZoneKind::Movable as usize],
    }
}

/// Writes zones as JSON; `model` as for the text.
pub fn zones(rows: &[(Zone, ZoneState)], basis: Basis, model: &[(Zone, ZoneState)]) -> String {
    pretty(&Zones {
        schema: ZONES_SCHEMA,
        page_bytes: PAGE,
        zones_from: basis.word(),
        zones: rows.iter().map(zone).collect(),
        model: model.iter().map(zone).collect(),
    })
}

#[derive(Serialize)]
struct Lists {
    schema: &'static str,
    built_at: &'static str,
    nodes: Vec<List>,
}

#[derive(Serialize)]
struct List {
    node: u32,
    fallback_nodes: Vec<u32>,
    fallback_zones: Vec<Entry>,
    no_fallback_zones: Vec<Entry>,
}

#[derive(Serialize)]
struct Entry {
    node: u32,
    zone: &'static str,
}

/// Writes the lists of every node as JSON.
pub fn zonelist(orders: &FallbackOrders, zones: &[Zone], built: BuiltAt) -> String {
    let entries = |list: &[(NodeId, ZoneKind)]| {
        list.iter().map(|(node, kind)| Entry { node: node.number(), zone: kind.name() }).collect()
    };
    let list = |(node, order): (NodeId, &[NodeId])| {
        let lists = Zonelist::of(node, orders, zones);
        List {
            node: node.number(),
            fallback_nodes: order.iter().map(|node| node.number()).collect(),
            fallback_zones: entries(&lists.fallback),
            no_fallback_zones: entries(&lists.no_fallback),
        }
    };
    let built_at = match built {
        BuiltAt::Boot => "boot",
        BuiltAt::RunTime => "run_time",
    };
    pretty(&Lists { schema: ZONELIST_SCHEMA, built_at, nodes: orders.iter().map(list).collect() })
}
