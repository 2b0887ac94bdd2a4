//! `nodewise.zones/1` and `nodewise.zonelist/1`.

use nodewise_machine::NodeId;
use nodewise_model::{BuiltAt, ZoneKind};
use serde::Serialize;

use super::pretty;
use crate::digest::zones::{LoggedOrders, Orders, Row, Zones as Shown};

/// The schema of the zones.
pub const ZONES_SCHEMA: &str = "nodewise.zones/1";
/// The schema of the fallback orders.
pub const ZONELIST_SCHEMA: &str = "nodewise.zonelist/1";

#[derive(Serialize)]
struct Zones {
    schema: &'static str,
    page_bytes: u64,
    kernel: String,
    zones_from: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    assumed_architecture: Option<&'static str>,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    boost_pages: Option<u64>,
    min_pages: u64,
    low_pages: u64,
    high_pages: u64,
    promo_pages: u64,
    reserve_from_programs_pages: u64,
}

fn zone(Row { zone, state, boost }: &Row) -> ZoneJson {
    ZoneJson {
        node: zone.node.number(),
        zone: zone.kind.name(),
        first_page: zone.start_page,
        spanned_pages: zone.spanned,
        present_pages: zone.present,
        managed_pages: zone.managed,
        free_pages: state.free,
        boost_pages: *boost,
        min_pages: state.marks.min,
        low_pages: state.marks.low,
        high_pages: state.marks.high,
        promo_pages: state.marks.promo,
        reserve_from_programs_pages: state.reserves[ZoneKind::Movable as usize],
    }
}

/// Writes zones as JSON. Watermarks are those in force, a boost included; those of the model have none.
pub fn zones(zones: &Shown<'_>) -> String {
    pretty(&Zones {
        schema: ZONES_SCHEMA,
        page_bytes: zones.page,
        kernel: zones.release.to_string(),
        zones_from: zones.basis.word(),
        assumed_architecture: zones.basis.assumed_architecture(),
        zones: zones.rows.iter().map(zone).collect(),
        model: zones.model.iter().map(zone).collect(),
    })
}

#[derive(Serialize)]
struct Lists {
    schema: &'static str,
    built_at: &'static str,
    kernel: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    assumed_architecture: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remark: Option<&'static str>,
    nodes: Vec<List>,
}

#[derive(Serialize)]
struct List {
    node: u32,
    fallback_nodes: Vec<u32>,
    fallback_zones: Vec<Entry>,
    no_fallback_zones: Vec<Entry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel_fallback_nodes: Option<Vec<u32>>,
}

#[derive(Serialize)]
struct Entry {
    node: u32,
    zone: &'static str,
}

/// Writes the lists of every node as JSON, beside the orders in the kernel's own log.
pub fn zonelist(orders: &Orders<'_>) -> String {
    let lists = orders.lists();
    let entry = |(node, kind): (NodeId, ZoneKind)| Entry { node: node.number(), zone: kind.name() };
    let numbers = |order: &[NodeId]| order.iter().map(|node| node.number()).collect();
    let told = |node: NodeId| match orders.logged {
        LoggedOrders::Orders(told) => told.get(&node).map(|order| numbers(order)),
        LoggedOrders::NotAsked | LoggedOrders::Unknown(_) => None,
    };
    let list = |(node, order): (NodeId, &[NodeId])| List {
        node: node.number(),
        fallback_nodes: numbers(order),
        fallback_zones: lists.fallback(node).map(entry).collect(),
        no_fallback_zones: lists.no_fallback(node).map(entry).collect(),
        kernel_fallback_nodes: told(node),
    };
    let built_at = match orders.built {
        BuiltAt::Boot => "boot",
        BuiltAt::RunTime => "run_time",
    };
    pretty(&Lists {
        schema: ZONELIST_SCHEMA,
        built_at,
        kernel: orders.release.to_string(),
        assumed_architecture: orders.basis.assumed_architecture(),
        remark: orders.remark(),
        nodes: orders.orders.iter().map(list).collect(),
    })
}
