//! Zones and fallback orders, a line per zone and per place in an order.

use nodewise_machine::NodeId;
use nodewise_model::ZoneKind;

use super::known;
use crate::digest::zones::{LoggedOrders, Orders, Row, Zones};

/// Writes zones: those of the machine, then the same ones as the model has them. Numbers are of pages; what no
/// kernel says is empty.
pub fn zones(zones: &Zones<'_>) -> String {
    let mut text = String::from(
        "table,node,zone,first_page,spanned_pages,present_pages,managed_pages,free_pages,boost_pages,min_pages,\
         low_pages,high_pages,promo_pages,reserve_from_programs_pages,page_bytes\n",
    );
    for (table, rows) in [("zones", zones.rows), ("model", zones.model)] {
        rows.iter().for_each(|row| text.push_str(&zone_line(table, row, zones.page)));
    }
    text
}

fn zone_line(table: &str, Row { zone, state, boost }: &Row, page: u64) -> String {
    let fields = [
        table.to_owned(),
        zone.node.to_string(),
        zone.kind.name().to_owned(),
        zone.start_page.to_string(),
        zone.spanned.to_string(),
        zone.present.to_string(),
        zone.managed.to_string(),
        state.free.to_string(),
        known(*boost),
        state.marks.min.to_string(),
        state.marks.low.to_string(),
        state.marks.high.to_string(),
        state.marks.promo.to_string(),
        state.reserves[ZoneKind::Movable as usize].to_string(),
        page.to_string(),
    ];
    fields.join(",") + "\n"
}

/// Writes the lists of every node: `fallback` for most requests, `no_fallback` for those that must have their
/// node, and `kernel` for the order of nodes in the kernel's own log, which names no zones.
pub fn zonelist(orders: &Orders<'_>) -> String {
    let mut text = String::from("node,list,position,fallback_node,zone\n");
    let mut line = |node: NodeId, list: &str, at: usize, to: NodeId, zone: &str| {
        text.push_str(&format!("{node},{list},{at},{to},{zone}\n"));
    };
    let lists = orders.lists();
    for (node, _) in orders.orders.iter() {
        for (at, (to, kind)) in lists.fallback(node).enumerate() {
            line(node, "fallback", at, to, kind.name());
        }
        for (at, (to, kind)) in lists.no_fallback(node).enumerate() {
            line(node, "no_fallback", at, to, kind.name());
        }
        if let LoggedOrders::Orders(logged) = orders.logged {
            for (at, to) in logged.get(&node).into_iter().flatten().enumerate() {
                line(node, "kernel", at, *to, "");
            }
        }
    }
    text
}
