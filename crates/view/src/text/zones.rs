//! Zones and their watermarks, and fallback orders: the texts of `nodewise zones` and `zonelist`.

use nodewise_machine::NodeId;
use nodewise_model::zonelist::Zonelist;
use nodewise_model::{BuiltAt, FallbackOrders, Zone, ZoneKind, ZoneState};

use crate::digest::walk::Basis;
use crate::style::{Ink, Style};
use crate::text::line::{Line, Page};
use crate::text::table::{Align, Column, Keep, Table};

/// A zone: where it is, and how full.
pub type Row = (Zone, ZoneState);

const fn column(head: &'static str, align: Align) -> Column {
    Column { head, align, keep: Keep::Always }
}

const fn figure(head: &'static str, order: u8) -> Column {
    Column { head, align: Align::Right, keep: Keep::Unless(order) }
}

/// Writes zones, and where they are the kernel's what the model says of their watermarks.
///
/// `model` are the same zones with the watermarks that follow from their managed pages.
pub fn zones(rows: &[Row], basis: Basis, model: &[Row], style: &Style) -> String {
    let mut page = Page::new(*style);
    let remark = match basis {
        Basis::Kernel => "pages of 4 KiB, as this machine's kernel says",
        Basis::Assumed => "pages of 4 KiB, with nodes assumed one after the other from address 0",
    };
    page.heading("Zones", remark);
    table(rows).write(&mut page);
    if basis == Basis::Assumed {
        return page.finish();
    }
    let differing: Vec<Row> = rows
        .iter()
        .zip(model)
        .filter(|((_, kernel), (_, ours))| kernel.marks != ours.marks || kernel.reserves != ours.reserves)
        .map(|(_, ours)| ours.clone())
        .collect();
    if differing.is_empty() {
        page.heading("Model", "the same watermarks and reserves follow from the managed pages");
        return page.finish();
    }
    page.heading("Model", "what would follow from the managed pages now");
    table(&differing).write(&mut page);
    let why = "  The kernel worked these out at boot, before it managed all its pages; writing \
               vm.min_free_kbytes renews watermarks, writing vm.lowmem_reserve_ratio reserves.";
    page.line(2, &Line::new().with(Ink::Faint, why));
    page.finish()
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(vec![
        column("node", Align::Right),
        column("zone", Align::Left),
        figure("first page", 1),
        figure("spanned", 2),
        figure("present", 3),
        figure("managed", 6),
        figure("free", 7),
        column("min", Align::Right),
        column("low", Align::Right),
        figure("high", 5),
        figure("promo", 4),
        column("reserve", Align::Left),
    ]);
    for (zone, state) in rows {
        let figures = [
            zone.start_page,
            zone.spanned,
            zone.present,
            zone.managed,
            state.free,
            state.marks.min,
            state.marks.low,
            state.marks.high,
            state.marks.promo,
            state.reserves[ZoneKind::Movable as usize],
        ];
        let names = [zone.node.to_string().into(), Line::from(zone.kind.name())];
        table.row(names.into_iter().chain(figures.map(|figure| figure.to_string().into())).collect());
    }
    table
}

/// Writes the fallback order of every node, and with `zones` the zones in that order.
pub fn zonelist(orders: &FallbackOrders, zones: &[Zone], built: BuiltAt, style: &Style) -> String {
    let mut page = Page::new(*style);
    let remark = match built {
        BuiltAt::Boot => "as built at boot",
        BuiltAt::RunTime => "as built anew at run time, when a node has gained or lost memory",
    };
    page.heading("Fallback orders", remark);
    let mut table = Table::new(vec![
        column("node", Align::Right),
        column("nodes tried", Align::Left),
        column("zones tried", Align::Left),
    ]);
    for (node, order) in orders.iter() {
        let nodes: Vec<String> = order.iter().map(ToString::to_string).collect();
        table.row(vec![
            node.to_string().into(),
            nodes.join(" ").into(),
            in_order(node, orders, zones).into(),
        ]);
    }
    table.write(&mut page);
    page.finish()
}

/// The zones of a node's list: `0:Normal 0:DMA32 1:Normal`.
fn in_order(node: NodeId, orders: &FallbackOrders, zones: &[Zone]) -> String {
    let list = Zonelist::of(node, orders, zones).fallback;
    list.iter().map(|(node, kind)| format!("{node}:{kind}")).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;
    use nodewise_machine::spec;
    use nodewise_model::{Memory, Release, zones as model_zones};

    fn rows(spec: &str) -> (Vec<Row>, FallbackOrders) {
        let machine = spec::machine(spec).unwrap();
        let memory = Memory::of(&machine, BuiltAt::Boot, Release::REFERENCE);
        let zones = model_zones::of(&machine);
        (zones.into_iter().zip(memory.zones().iter().cloned()).collect(), memory.orders().clone())
    }

    const TWO: &str = "(4c 5G) (4c 1G)";

    #[test]
    fn zones_stand_by_node_and_lowest_first() {
        let (rows, _) = rows(TWO);
        assert_eq!(
            zones(&rows, Basis::Assumed, &rows, &Style::plain(120)),
            "\
Zones  pages of 4 KiB, with nodes assumed one after the other from address 0
  node  zone    first page  spanned  present  managed    free    min    low   high  promo  reserve
     0  DMA            256     3840     3840     3840    3840     55     68     81     94  5105
     0  DMA32         4096  1044480   782336   782336  782336  11205  14006  16807  19608  2049
     0  Normal     1048576   524544   524544   524544  524544   7513   9391  11269  13147  0
     1  Normal     1573120   262144   262144   262144  262144   3754   4692   5630   6568  0
"
        );
    }

    #[test]
    fn what_the_kernel_has_otherwise_stands_below() {
        let (ours, _) = rows(TWO);
        let mut kernel = ours.clone();
        let same = zones(&kernel, Basis::Kernel, &ours, &Style::plain(120));
        assert!(same.contains("Model  the same watermarks and reserves follow"), "{same}");
        kernel[1].1.marks.min -= 100;
        let text = zones(&kernel, Basis::Kernel, &ours, &Style::plain(120));
        let below = text.split("Model  ").nth(1).unwrap();
        assert!(below.contains("0  DMA32") && !below.contains("1  Normal"), "{text}");
        assert!(text.contains("worked these out at boot"), "{text}");
    }

    #[test]
    fn orders_name_nodes_and_zones() {
        let (rows, orders) = rows(TWO);
        let plain: Vec<Zone> = rows.iter().map(|(zone, _)| *zone).collect();
        assert_eq!(
            zonelist(&orders, &plain, BuiltAt::Boot, &Style::plain(80)),
            "\
Fallback orders  as built at boot
  node  nodes tried  zones tried
     0  0 1          0:Normal 0:DMA32 0:DMA 1:Normal
     1  1 0          1:Normal 0:Normal 0:DMA32 0:DMA
"
        );
    }

    #[test]
    fn json_has_the_same_zones_and_orders() {
        let (rows, orders) = rows(TWO);
        let json: serde_json::Value =
            serde_json::from_str(&json::zones::zones(&rows, Basis::Assumed, &rows)).unwrap();
        let text = zones(&rows, Basis::Assumed, &rows, &Style::plain(120));
        for (zone, line) in json["zones"].as_array().unwrap().iter().zip(text.lines().skip(2)) {
            let words: Vec<&str> = line.split_whitespace().collect();
            assert_eq!(zone["node"].to_string(), words[0]);
            assert_eq!(zone["zone"], words[1]);
            for (name, word) in [
                "first_page",
                "spanned_pages",
                "present_pages",
                "managed_pages",
                "free_pages",
                "min_pages",
                "low_pages",
                "high_pages",
                "promo_pages",
                "reserve_from_programs_pages",
            ]
            .iter()
            .zip(&words[2..])
            {
                assert_eq!(zone[name].to_string(), *word, "{name}");
            }
        }
        let plain: Vec<Zone> = rows.iter().map(|(zone, _)| *zone).collect();
        let lists: serde_json::Value =
            serde_json::from_str(&json::zones::zonelist(&orders, &plain, BuiltAt::Boot)).unwrap();
        assert_eq!(lists["nodes"][1]["fallback_nodes"], serde_json::json!([1, 0]));
        assert_eq!(
            lists["nodes"][1]["no_fallback_zones"],
            serde_json::json!([{"node": 1, "zone": "Normal"}])
        );
    }
}
