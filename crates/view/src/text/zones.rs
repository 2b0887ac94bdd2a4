//! Zones and their watermarks, and fallback orders: the texts of `nodewise zones` and `zonelist`.

use nodewise_machine::{Bytes, NodeSet};
use nodewise_model::{BuiltAt, ZoneKind};

use crate::digest::walk::Basis;
use crate::digest::zones::{LoggedOrders, Orders, Row, Words, Zones, in_words, is_rotation};
use crate::style::{Ink, Style};
use crate::text::line::{Line, Page};
use crate::text::table::{Align, Column, Keep, Table};

/// Up to this many nodes each has a row that names every zone in its order.
const FEW: usize = 8;
/// Ranges of nodes in a row at most.
const MOST_RANGES: usize = 16;

const fn column(head: &'static str, align: Align) -> Column {
    Column { head, align, keep: Keep::Always }
}

const fn figure(head: &'static str, order: u8) -> Column {
    Column { head, align: Align::Right, keep: Keep::Unless(order) }
}

/// Writes zones, and where they are the kernel's what the model says of their watermarks.
pub fn zones(zones: &Zones<'_>, style: &Style) -> String {
    let mut page = Page::new(*style);
    let remark = match zones.basis {
        Basis::Kernel => "as this machine's kernel says",
        Basis::Firmware => "in the firmware's ranges of memory",
        Basis::Assumed => "with nodes assumed one after the other from address 0",
        Basis::AssumedX86 => {
            "assumed: x86-64 (--architecture names another), nodes one after the other from address 0"
        }
    };
    page.heading("Zones", &format!("pages of {}, {remark}", Bytes::new(zones.page)));
    table(zones.rows).write(&mut page);
    for (zone, pages) in zones.boosted() {
        let text = format!(
            "  {}:{}: a boost of {pages} pages is in force on top of every watermark, as for a while after memory was \
             found fragmented",
            zone.node, zone.kind
        );
        page.line(2, &Line::new().with(Ink::Faint, text));
    }
    if zones.basis != Basis::Kernel {
        return page.finish();
    }
    let differing = zones.differing();
    let beside = if zones.boosted().next().is_some() { ", without the boost" } else { "" };
    if differing.is_empty() {
        let same = format!("the same watermarks and reserves follow from the managed pages{beside}");
        page.heading("Model", &same);
        return page.finish();
    }
    let rules = format!(
        "what would follow from the managed pages now by the rules of Linux {}{beside}",
        zones.release
    );
    page.heading("Model", &rules);
    table(&differing).write(&mut page);
    let why = "  The kernel worked these out at boot, before it managed all its pages; writing \
               vm.min_free_kbytes renews watermarks, writing vm.lowmem_reserve_ratio reserves.";
    page.line(2, &Line::new().with(Ink::Faint, why));
    page.finish()
}

/// A row per zone; boosts have a column where one is in force.
fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(vec![
        column("node", Align::Right),
        column("zone", Align::Left),
        figure("first page", 1),
        figure("spanned", 2),
        figure("present", 3),
        figure("managed", 6),
        figure("free", 7),
        figure("boost", 8),
        column("min", Align::Right),
        column("low", Align::Right),
        figure("high", 5),
        figure("promo", 4),
        column("reserve", Align::Left),
    ]);
    let is_any_boosted = rows.iter().any(|row| row.boost.is_some_and(|pages| pages > 0));
    for Row { zone, state, boost } in rows {
        let boost = boost.filter(|_| is_any_boosted);
        let number = |figure: u64| Line::from(figure.to_string());
        table.row(vec![
            zone.node.to_string().into(),
            zone.kind.name().into(),
            number(zone.start_page),
            number(zone.spanned),
            number(zone.present),
            number(zone.managed),
            number(state.free),
            boost.map(number).unwrap_or_default(),
            number(state.marks.min),
            number(state.marks.low),
            number(state.marks.high),
            number(state.marks.promo),
            number(state.reserves[ZoneKind::Movable as usize]),
        ]);
    }
    table
}

/// Writes the fallback order of every node, the zones of each, and what the kernel says otherwise.
pub fn zonelist(orders: &Orders<'_>, style: &Style) -> String {
    let mut page = Page::new(*style);
    let moment = match orders.built {
        BuiltAt::Boot => "as built at boot",
        BuiltAt::RunTime => "as rebuilt at run time, when a node has gained or lost memory",
    };
    page.heading("Fallback orders", &format!("{moment}, Linux {}", orders.release));
    if orders.orders.iter().next().is_none() {
        page.line(2, &Line::from("  none: the kernel does not describe any node"));
        return page.finish();
    }
    if orders.orders.iter().count() <= FEW {
        with_zones(orders).write(&mut page);
    } else {
        folded(orders, &mut page);
    }
    if orders.basis.assumed_architecture().is_some() {
        let assumed = "the zones are those of x86-64, which is assumed (--architecture names another)";
        page.line(2, &Line::from("  ").with(Ink::Notable, assumed));
    }
    if let Some(remark) = orders.remark() {
        page.line(2, &Line::from("  ").with(Ink::Notable, remark));
    }
    page.heading("Zones of each node", "tried alone where a page must come from it (__GFP_THISNODE)");
    own_zones(orders).write(&mut page);
    logged_orders(orders, &mut page);
    page.finish()
}

/// A row per node, with all its zones.
fn with_zones(orders: &Orders<'_>) -> Table {
    let mut table = Table::new(vec![
        column("node", Align::Right),
        column("nodes tried", Align::Left),
        column("zones tried", Align::Left),
    ]);
    let lists = orders.lists();
    for (node, order) in orders.orders.iter() {
        let nodes: Vec<String> = order.iter().map(ToString::to_string).collect();
        let zones: Vec<String> = lists.fallback(node).map(|(node, kind)| format!("{node}:{kind}")).collect();
        table.row(vec![node.to_string().into(), nodes.join(" ").into(), zones.join(" ").into()]);
    }
    table
}

/// A row for nodes that follow one another and whose order has the same words.
fn folded(orders: &Orders<'_>, page: &mut Page) {
    let mut rows: Vec<(NodeSet, Words, bool)> = Vec::new();
    for (node, order) in orders.orders.iter() {
        let (words, rotates) = (in_words(order, MOST_RANGES), is_rotation(node, order));
        // The words of a rotation are of its own node; a node without memory may be in the same.
        let is_alike = |last: &Words, last_rotates: bool| match last_rotates {
            true => rotates,
            false => !rotates && *last == words && !words.is_cut,
        };
        match rows.last_mut() {
            Some((nodes, last, last_rotates)) if is_alike(last, *last_rotates) => {
                nodes.insert(node);
            }
            _ => rows.push((NodeSet::from_iter([node]), words, rotates)),
        }
    }
    let is_any_cut = rows.iter().any(|(_, words, _)| words.is_cut);
    let mut table = Table::new(vec![column("nodes", Align::Left), column("nodes tried", Align::Left)]);
    for (nodes, words, rotates) in rows {
        let text = if rotates && nodes.len() > 1 { ROTATION.to_owned() } else { words.text };
        table.row(vec![nodes.to_string().into(), text.into()]);
    }
    table.write(page);
    page.line(2, &Line::new().with(Ink::Faint, "  of each node tried all its zones, the highest first"));
    if is_any_cut {
        page.line(2, &Line::new().with(Ink::Faint, "  --json has every order to its end"));
    }
}

/// The orders of nodes that each begin with themselves and go on by the numbers.
const ROTATION: &str = "itself, the nodes above it, then those below it, in the order of their numbers";

/// Nodes with the same zones in a row.
fn own_zones(orders: &Orders<'_>) -> Table {
    let mut alike: Vec<(NodeSet, Vec<ZoneKind>)> = Vec::new();
    let lists = orders.lists();
    for (node, _) in orders.orders.iter() {
        let kinds: Vec<ZoneKind> = lists.no_fallback(node).map(|(_, kind)| kind).collect();
        match alike.iter_mut().find(|(_, other)| *other == kinds) {
            Some((nodes, _)) => {
                nodes.insert(node);
            }
            None => alike.push((NodeSet::from_iter([node]), kinds)),
        }
    }
    let mut table = Table::new(vec![column("zones tried", Align::Left), column("of nodes", Align::Left)]);
    for (nodes, kinds) in alike {
        let words: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
        let words = if words.is_empty() { "none".to_owned() } else { words.join(" ") };
        table.row(vec![words.into(), nodes.to_string().into()]);
    }
    table
}

/// Writes how the orders in the kernel's own log differ from these.
fn logged_orders(orders: &Orders<'_>, page: &mut Page) {
    const HEADING: &str = "The kernel's own orders";
    match orders.logged {
        LoggedOrders::NotAsked => return,
        LoggedOrders::Unknown(why) => return page.heading(HEADING, &format!("not known: {why}")),
        LoggedOrders::Orders(_) => {}
    }
    let differing = orders.differing();
    if differing.is_empty() {
        return page.heading(HEADING, "the same, by its log");
    }
    page.heading(HEADING, "where its log says otherwise");
    let mut table = Table::new(vec![column("node", Align::Right), column("nodes tried", Align::Left)]);
    for (node, order) in &differing {
        table.row(vec![node.to_string().into(), in_words(order, MOST_RANGES).text.into()]);
    }
    table.write(page);
    if orders.is_other_moment() {
        let text = match orders.built {
            BuiltAt::Boot => "  These are the orders that --rebuilt shows: a node has gained or lost memory.",
            BuiltAt::RunTime => "  These are the orders as built at boot: none were built since.",
        };
        page.line(2, &Line::from(text));
    }
}

#[cfg(test)]
mod tests;
