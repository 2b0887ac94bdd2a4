//! The effect when nodes are full, and at which mark.

use nodewise_machine::{NodeId, NodeSet};
use nodewise_model::pcp::largest_refill;
use nodewise_model::walk::{Constraint, Mark, Outcome};
use nodewise_model::watermark::{DEFAULT_RATIOS, reserves, watermarks};
use nodewise_model::{
    BuiltAt, FallbackOrders, Memory, Policy, Release, Watermarks, Weights, Zone, ZoneKind, ZoneState,
};

use crate::server::{all, machine, n, policy, request};

fn zone(node: u32, kind: ZoneKind, managed: u64) -> Zone {
    Zone { node: n(node), kind, start_page: 0, spanned: managed, present: managed, managed }
}

/// The zones of the server with the pages that its kernel managed.
fn server_zones() -> Vec<Zone> {
    vec![
        zone(0, ZoneKind::Dma, 3840),
        zone(0, ZoneKind::Dma32, 115_209),
        zone(1, ZoneKind::Dma32, 128_915),
        zone(2, ZoneKind::Dma32, 128_915),
        zone(3, ZoneKind::Dma32, 128_360),
    ]
}

/// The server with `min_free_kbytes` as its kernel had it, nothing in use but `used` on every node.
fn memory(zones: &[Zone], min_free_kib: u64, used: u64) -> Memory {
    let marks = watermarks(zones, min_free_kib, 10, 4096);
    let state = |(zone, marks): (&Zone, Watermarks)| ZoneState {
        node: zone.node,
        kind: zone.kind,
        managed: zone.managed,
        free: zone.managed.saturating_sub(used),
        marks,
        reserves: reserves(zone, zones, DEFAULT_RATIOS),
    };
    let states = zones.iter().zip(marks).map(state).collect();
    Memory::new(states, FallbackOrders::from_machine(&machine(), BuiltAt::Boot), Release::REFERENCE)
}

fn fill(memory: &mut Memory, policy: &Policy, cpu_node: u32, pages: u64) -> Outcome {
    memory.allocate(&request(policy, &Weights::new(), cpu_node, &all(), pages))
}

/// Nodes in the recorded order; pages as recorded, but for what the lists of the CPU held back, what
/// the kernel had in use, and so how far the last node was filled.
fn check(outcome: &Outcome, recorded: &[(u32, u64)]) {
    let ours = outcome.nodes();
    assert_eq!(
        ours.iter().map(|(node, _)| node.number()).collect::<Vec<_>>(),
        recorded.iter().map(|(node, _)| *node).collect::<Vec<_>>()
    );
    for ((node, pages), (_, recorded)) in ours.iter().zip(&recorded[..recorded.len() - 1]) {
        let bound = 2 * largest_refill(128_915, 4096) + 4000;
        assert!(pages.abs_diff(*recorded) < bound, "node {node}: {pages}, recorded {recorded}");
    }
}

#[test]
fn case_28_exhaust_preferred() {
    let mut memory = memory(&server_zones(), 100_112, 0);
    let low = memory.zones()[3].marks.low;
    // The kernel had worked its marks out before it managed all its pages.
    assert!(low.abs_diff(8017) < 40, "{low}");
    let outcome = fill(&mut memory, &policy("prefer:2"), 0, 430_000);
    check(&outcome, &[(2, 116_029), (3, 117_026), (0, 113_684), (1, 83_261)]);
    assert!(
        outcome.stretches.iter().all(|stretch| stretch.shares.iter().all(|share| share.mark == Mark::Low))
    );
    let counters = |node: u32| memory.counters()[&n(node)];
    let pages = |node: u32| outcome.nodes().iter().find(|(n, _)| n.number() == node).unwrap().1;
    assert_eq!((counters(2).hit, counters(2).miss, counters(2).other), (pages(2), 0, pages(2)));
    assert_eq!(counters(2).foreign, 430_000 - pages(2));
    assert_eq!((counters(0).miss, counters(0).local, counters(0).other), (pages(0), pages(0), 0));
    assert_eq!((counters(1).miss, counters(1).local, counters(1).other), (pages(1), 0, pages(1)));
}

#[test]
fn case_30_exhaust_local() {
    // Node 1 had 14,000 pages in use when that run began.
    let mut memory = memory(&server_zones(), 100_112, 0);
    let outcome = fill(&mut memory, &Policy::DEFAULT, 1, 400_000);
    let order: Vec<u32> = outcome.nodes().iter().map(|(node, _)| node.number()).collect();
    assert_eq!(order, [1, 0, 3, 2]);
    check(&outcome, &[(1, outcome.nodes()[0].1), (0, 116_066), (3, 115_042), (2, 67_030)]);
}

#[test]
fn case_31_bind_oom() {
    for (text, pages, inside) in [("bind:2", 140_000, [2].as_slice()), ("bind:1,3", 260_000, &[1, 3])] {
        let mut memory = memory(&server_zones(), 100_112, 0);
        let outcome = fill(&mut memory, &policy(text), 0, pages);
        let end = outcome.out_of_memory.expect("the nodes are too small");
        assert_eq!(end.constraint, Constraint::MemoryPolicy);
        assert_eq!(end.inside, inside.iter().copied().map(NodeId::new).collect::<NodeSet>());
        for zone in memory.zones() {
            let bound = inside.contains(&zone.node.number());
            assert_eq!(zone.free, if bound { zone.marks.min } else { zone.managed }, "{text}");
        }
    }
}

/// A node of 4.5 GiB: its lowest zone keeps more from programs than it has.
#[test]
fn case_32_zones_in_node() {
    let zones = [
        zone(0, ZoneKind::Dma, 3840),
        zone(0, ZoneKind::Dma32, 765_951),
        zone(0, ZoneKind::Normal, 374_082),
        zone(1, ZoneKind::Normal, 257_000),
    ];
    let mut memory = memory(&zones, 90_112, 256);
    assert_eq!(memory.zones()[0].reserves[ZoneKind::Movable as usize], 4453);
    let outcome = fill(&mut memory, &Policy::DEFAULT, 0, 1_330_000);
    let order: Vec<String> = outcome.zones().iter().map(|(node, kind, _)| format!("{node}:{kind}")).collect();
    assert_eq!(order, ["0:Normal", "0:DMA32", "1:Normal"]);
    assert_eq!(memory.zones()[0].free, 3584, "zone DMA is never touched");
    for ((.., pages), recorded) in outcome.zones().iter().zip([362_841u64, 757_702]) {
        assert!(pages.abs_diff(recorded) < 16_000, "{pages}, recorded {recorded}");
    }
}

#[test]
fn case_33_watermarks() {
    let zones = server_zones();
    let check = |scale: u64, expected: &[(usize, [u64; 4])]| {
        let marks = watermarks(&zones, 20_000, scale, 4096);
        for (at, [min, low, high, promo]) in expected {
            assert_eq!(
                marks[*at],
                Watermarks { min: *min, low: *low, high: *high, promo: *promo },
                "{scale}"
            );
        }
    };
    check(
        10,
        &[
            (0, [38, 47, 56, 65]),
            (1, [1140, 1425, 1710, 1995]),
            (2, [1275, 1593, 1911, 2229]),
            (4, [1270, 1587, 1904, 2221]),
        ],
    );
    check(
        200,
        &[
            (0, [38, 114, 190, 266]),
            (1, [1140, 3444, 5748, 8052]),
            (2, [1275, 3853, 6431, 9009]),
            (4, [1270, 3837, 6404, 8971]),
        ],
    );
    assert_eq!(reserves(&zones[0], &zones, [64, 64, 32, 0]), [0, 1800, 1800, 1800]);
}
