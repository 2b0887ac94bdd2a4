use std::collections::BTreeMap;

use super::*;
use crate::json;
use nodewise_machine::{Machine, NodeId, Origin, spec};
use nodewise_model::{FallbackOrders, Memory, Release, Zone, ZoneState, zones as model_zones};

fn rows(spec: &str) -> Vec<Row> {
    let machine = spec::machine(spec).unwrap();
    let memory = Memory::from_machine(&machine, BuiltAt::Boot, Release::REFERENCE);
    let row = |(zone, state): (Zone, &ZoneState)| Row { zone, state: state.clone(), boost: None };
    model_zones::machine_zones(&machine).into_iter().zip(memory.zones()).map(row).collect()
}

const TWO: &str = "(4c 5G) (4c 1G)";

fn shown<'a>(rows: &'a [Row], basis: Basis, model: &'a [Row]) -> Zones<'a> {
    Zones { rows, basis, page: 4096, model, release: Release::REFERENCE }
}

#[test]
fn zones_stand_by_node_and_lowest_first() {
    let rows = rows(TWO);
    assert_eq!(
        zones(&shown(&rows, Basis::Assumed, &rows), &Style::plain(120)),
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
    let ours = rows(TWO);
    let mut kernel = ours.clone();
    kernel.iter_mut().for_each(|row| row.boost = Some(0));
    let text = |kernel: &[Row]| zones(&shown(kernel, Basis::Kernel, &ours), &Style::plain(120));
    let same = text(&kernel);
    assert!(same.contains("Model  the same watermarks and reserves follow"), "{same}");
    assert!(!same.contains("boost"), "{same}");
    kernel[1].state.marks.min -= 100;
    let text = text(&kernel);
    let below = text.split("Model  ").nth(1).unwrap();
    assert!(below.contains("0  DMA32") && !below.contains("1  Normal"), "{text}");
    assert!(text.contains("worked these out at boot"), "{text}");
}

#[test]
fn a_boost_that_explains_the_difference_is_named() {
    let ours = rows(TWO);
    let mut kernel = ours.clone();
    let marks = &mut kernel[2].state.marks;
    for mark in [&mut marks.min, &mut marks.low, &mut marks.high, &mut marks.promo] {
        *mark += 11776;
    }
    for (row, boost) in kernel.iter_mut().zip([0, 0, 11776, 0]) {
        row.boost = Some(boost);
    }
    let shown = shown(&kernel, Basis::Kernel, &ours);
    let text = zones(&shown, &Style::plain(120));
    assert!(text.contains("  0:Normal: a boost of 11776 pages is in force"), "{text}");
    let same = "Model  the same watermarks and reserves follow from the managed pages, without the boost";
    assert!(text.contains(same), "{text}");
    let json: serde_json::Value = serde_json::from_str(&json::zones::zones(&shown)).unwrap();
    assert_eq!(
        (&json["zones"][2]["boost_pages"], &json["zones"][2]["min_pages"]),
        (&11776.into(), &19289.into())
    );
    assert_eq!(json["model"][2]["min_pages"], 7513);
}

/// The orders of a machine at both moments, and its zones.
struct Listed {
    built: BuiltAt,
    orders: FallbackOrders,
    others: FallbackOrders,
    zones: Vec<Zone>,
}

impl Listed {
    fn from_spec(spec: &str) -> Self {
        let machine = spec::machine(spec).unwrap();
        let of = |built| FallbackOrders::from_machine(&machine, built);
        let (orders, others) = (of(BuiltAt::Boot), of(BuiltAt::RunTime));
        Self { built: BuiltAt::Boot, orders, others, zones: model_zones::machine_zones(&machine) }
    }

    fn shown<'a>(&'a self, told: &'a LoggedOrders) -> Orders<'a> {
        let Self { built, orders, others, zones } = self;
        let (basis, release) = (Basis::Assumed, Release::REFERENCE);
        Orders { orders, others, built: *built, zones, basis, release, logged: told }
    }

    fn text(&self, told: &LoggedOrders, width: usize) -> String {
        zonelist(&self.shown(told), &Style::plain(width))
    }

    fn json(&self, told: &LoggedOrders) -> serde_json::Value {
        serde_json::from_str(&json::zones::zonelist(&self.shown(told))).unwrap()
    }
}

#[test]
fn orders_name_nodes_and_zones() {
    assert_eq!(
        Listed::from_spec(TWO).text(&LoggedOrders::NotAsked, 80),
        "\
Fallback orders  as built at boot, Linux 6.12
  node  nodes tried  zones tried
     0  0 1          0:Normal 0:DMA32 0:DMA 1:Normal
     1  1 0          1:Normal 0:Normal 0:DMA32 0:DMA

Zones of each node  tried alone where a page must come from it (__GFP_THISNODE)
  zones tried       of nodes
  Normal DMA32 DMA  0
  Normal            1
"
    );
}

/// As in a container without `/sys`.
#[test]
fn without_a_node_there_is_no_empty_table() {
    let none = Machine::new(Origin::Live);
    let of = |built| FallbackOrders::from_machine(&none, built);
    let (orders, others) = (of(BuiltAt::Boot), of(BuiltAt::RunTime));
    let listed = Listed { built: BuiltAt::Boot, orders, others, zones: Vec::new() };
    assert_eq!(
        listed.text(&LoggedOrders::NotAsked, 80),
        "Fallback orders  as built at boot, Linux 6.12\n  none: the kernel does not describe any node\n"
    );
}

#[test]
fn many_nodes_in_a_rotation_are_one_row() {
    for nodes in [64, 1024] {
        let listed = Listed::from_spec(&format!("{nodes}x(1c 1G)"));
        for width in [40, 60, 80, 120] {
            let text = listed.text(&LoggedOrders::NotAsked, width);
            assert!(text.lines().count() <= 20, "{text}");
            assert!(text.lines().all(|line| line.len() <= width), "{text}");
            assert!(text.contains(&format!("0-{}", nodes - 1)), "{text}");
        }
    }
}

#[test]
fn nodes_without_memory_are_no_part_of_a_rotation() {
    let text = Listed::from_spec("2x(1c 1G) 8x(1c)").text(&LoggedOrders::NotAsked, 100);
    let rows: Vec<&str> = text.lines().skip(1).take(4).collect();
    // Node 2 tries the nodes that node 0 tries, and is not the first of them.
    let expected = [
        "  nodes  nodes tried",
        "  0-1    itself, the nodes above it, then those below it, in the order of their numbers",
        "  2      0 1",
        "  3      1 0",
    ];
    assert_eq!(rows, expected, "{text}");
}

#[test]
fn many_nodes_at_many_distances_have_a_few_lines_each() {
    for (spec, nodes) in [("8x(8x(1c 1G)); dist=11,20", 64), ("32x(32x(1c 1G)); dist=11,20", 1024)] {
        let listed = Listed::from_spec(spec);
        let order = listed.orders.from(NodeId::new(1));
        assert_eq!(order.len(), nodes);
        for width in [60, 80, 120] {
            let text = listed.text(&LoggedOrders::NotAsked, width);
            assert!(text.lines().all(|line| line.len() <= width), "{text}");
            assert!(text.lines().count() <= 4 * nodes + 12, "{} lines", text.lines().count());
            // The row begins as the whole order does.
            let row = text.lines().find(|line| line.trim_start().starts_with("1 ")).unwrap();
            let second = row.split_whitespace().nth(1).unwrap();
            assert!(second.starts_with(&order[0].to_string()), "{row}");
        }
    }
}

#[test]
fn the_kernels_own_orders_stand_beside_the_models() {
    const HEADLESS: &str = "2x(1c 512M) 2x(512M)";
    let machine = spec::machine(HEADLESS).unwrap();
    let of = |built| -> BTreeMap<NodeId, Vec<NodeId>> {
        let orders = FallbackOrders::from_machine(&machine, built);
        orders.iter().map(|(node, order)| (node, order.to_vec())).collect()
    };
    let listed = Listed::from_spec(HEADLESS);
    let text = |told| listed.text(&told, 80);
    let same = text(LoggedOrders::Orders(of(BuiltAt::Boot)));
    assert!(same.ends_with("\nThe kernel's own orders  the same, by its log\n"), "{same}");
    let rebuilt = text(LoggedOrders::Orders(of(BuiltAt::RunTime)));
    let expected = "\
The kernel's own orders  where its log says otherwise
  node  nodes tried
     0  0 2 3 1
     1  1 3 2 0
     3  3 2 0 1
  These are the orders that --rebuilt shows: a node has gained or lost memory.
";
    assert!(rebuilt.ends_with(expected), "{rebuilt}");
    let why = "its log may be read by root only".to_owned();
    let unknown = text(LoggedOrders::Unknown(why));
    assert!(unknown.ends_with("orders  not known: its log may be read by root only\n"), "{unknown}");
    let json = listed.json(&LoggedOrders::Orders(of(BuiltAt::RunTime)));
    assert_eq!(json["nodes"][0]["kernel_fallback_nodes"], serde_json::json!([0, 2, 3, 1]));
}

#[test]
fn json_has_the_same_zones_and_orders() {
    let rows = rows(TWO);
    let shown = shown(&rows, Basis::Assumed, &rows);
    let json: serde_json::Value = serde_json::from_str(&json::zones::zones(&shown)).unwrap();
    let text = zones(&shown, &Style::plain(120));
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
    let lists = Listed::from_spec(TWO).json(&LoggedOrders::NotAsked);
    assert_eq!(lists["nodes"][1]["fallback_nodes"], serde_json::json!([1, 0]));
    assert_eq!(lists["nodes"][1]["no_fallback_zones"], serde_json::json!([{"node": 1, "zone": "Normal"}]));
}
