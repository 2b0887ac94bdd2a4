//! Predictions beside published measurements of real machines, with the lines that follow from arithmetic.
//!
//! # Source
//! - G. Price, H. Ji and others, "mm/mempolicy: weighted interleave mempolicy and sysfs extension", linux-mm, cover letter of
//!   version 4 of the extended interface (December 2023): STREAM and XSBench on one socket with a CXL expander.
//! - A. Morita, STREAM on a Xeon Phi 7210 (snippet n4qG5 of bitbucket.org/aokomoriuta), with memory of the package as node 1.
//! - G. J. Bex, outputs of Intel MLC 3.10 on Ice Lake and Cascade Lake (github.com/gjbex/Code-optimization, info/).
//! - A course report on a node of two Xeons (Ulysses, SISSA): STREAM of one CPU, 3.3 GB/s near and 2.1 GB/s far.
//! - H. Kim, H. Ji and others, "DAMON based tiered memory management for CXL memory", linux-mm, version 6 (June 2024): Redis
//!   with YCSB, all memory in DRAM, all in CXL memory, and parts of it.

use std::collections::BTreeMap;

use nodewise_machine::{NodeId, spec};
use nodewise_model::cost::{Costs, PathCost};

use super::tests::counted;
use super::*;

/// Lines of a thread.
const LINES: u64 = 1_000_000;

/// How the threads read.
#[derive(Clone, Copy)]
enum Pattern {
    InOrder,
    Scattered,
}

/// A published placement: its name, the share of its memory on node 0, and the published figure, better where it is larger.
type Published = (&'static str, f64, f64);

/// Threads of node 0 with memory of both nodes.
fn placements(threads: usize, pattern: Pattern, published: &[Published]) -> Vec<CountedPlacement> {
    let placement = |(name, near, _): &Published| {
        let cells = (0..threads).flat_map(|thread| {
            [(0, *near), (1, 1.0 - near)].map(|(to, share)| {
                let lines = (LINES as f64 * share) as u64;
                let (in_order, scattered) = match pattern {
                    Pattern::InOrder => (lines, 0),
                    Pattern::Scattered => (0, lines),
                };
                (thread, 0, to, in_order, scattered)
            })
        });
        counted(name, &cells.collect::<Vec<_>>())
    };
    published.iter().map(placement).collect()
}

/// The costs of a machine: those that are given, in ns and GB/s for both nodes, and rules of thumb.
fn costs(text: &str, latencies: Option<[f64; 2]>, memory: Option<[f64; 2]>, growth: f64) -> KnownCosts {
    let machine = spec::machine(text).unwrap();
    let mut costs = Costs::from_firmware(&machine);
    let nodes = [0, 1].map(NodeId::new);
    if let Some(latencies) = latencies {
        for (to, latency_ns) in nodes.into_iter().zip(latencies) {
            costs.paths.set(nodes[0], to, PathCost { latency_ns, bandwidth: None });
        }
    }
    if let Some(memory) = memory {
        costs.controllers = nodes.into_iter().zip(memory.map(|rate| rate * 1e9)).collect();
    }
    let assumed = costs.assume_the_rest(&machine);
    KnownCosts { costs, assumed, growth: BTreeMap::from([(nodes[0], growth)]) }
}

/// The places of the published placements, in their order.
fn predicted(ranking: &Ranking, published: &[Published]) -> Vec<RangeInclusive<usize>> {
    let of = |(name, ..): &Published| {
        let found = ranking.placements.iter().find(|ranked| ranked.counted.name == *name);
        found.map(|ranked| ranked.places.clone()).unwrap()
    };
    published.iter().map(of).collect()
}

/// The places that the published figures give.
fn measured(published: &[Published]) -> Vec<usize> {
    let place = |own: &Published| 1 + published.iter().filter(|other| other.2 > own.2).count();
    published.iter().map(place).collect()
}

fn holds(places: &[RangeInclusive<usize>], published: &[Published]) -> bool {
    places.iter().zip(measured(published)).all(|(places, place)| places.contains(&place))
}

/// The names that may be first at each end of an assumption.
fn firsts(ranking: &Ranking, assumption: Assumption) -> Vec<(&'static str, Vec<String>)> {
    let found = ranking.decisive.iter().filter(|found| found.assumption == assumption);
    let ends = found.flat_map(|found| &found.ends);
    ends.map(|(end, places)| {
        let first = ranking.placements.iter().zip(places).filter(|(_, places)| may_be_first(places));
        (*end, first.map(|(ranked, _)| ranked.counted.name.clone()).collect())
    })
    .collect()
}

/// 64 threads on a socket with memory of 208.5 GB/s and an expander of 24.5 GB/s.
#[test]
fn stream_with_an_expander_is_ranked_as_measured() {
    let published = [
        ("membind", 1.0, 208.5),
        ("CXL", 0.0, 24.5),
        ("interleave", 0.5, 48.7),
        ("weighted 9:1", 0.9, 217.7),
    ];
    let known = costs("(64c 256G) (128G); dist=10,20/20,10", None, Some([208.5, 24.5]), 16.0);
    let ranking = Ranking::new(placements(4, Pattern::InOrder, &published), Vec::new(), known).unwrap();
    let places = predicted(&ranking, &published);
    assert!(holds(&places, &published), "{places:?}");
    assert_eq!(places, [1..=3, 2..=4, 1..=4, 1..=4]);
    // As many threads as in the guest would wait for latency, not for bandwidth.
    let firsts = firsts(&ranking, Assumption::Threads);
    assert_eq!(
        firsts[1],
        ("more, as CPUs", vec!["membind".to_owned(), "weighted 9:1".to_owned()]),
        "{firsts:?}"
    );
}

/// 56 threads look up random lines; bandwidths of that machine are not published, and neither are its weights: 3 to 1 here.
#[test]
fn lookups_with_an_expander_are_not_ranked_wrongly() {
    let published = [("membind", 1.0, 4.69), ("interleave", 0.5, 3.08), ("weighted 3:1", 0.75, 5.81)];
    let known = costs("(56c 128G) (96G); dist=10,20/20,10", None, None, 14.0);
    let ranking = Ranking::new(placements(4, Pattern::Scattered, &published), Vec::new(), known).unwrap();
    let places = predicted(&ranking, &published);
    assert!(holds(&places, &published), "{places:?}");
    assert_eq!(places, [1..=3, 1..=3, 1..=3]);
}

/// Memory of the package (node 1) gives 298 GB/s, the other 54; its distance is 31. By the distance alone the prediction is
/// wrong; with the bandwidths of both the number of threads decides, and it is right for as many as the machine has CPUs.
#[test]
fn memory_of_the_package_needs_its_bandwidth() {
    let published = [("membind=0", 1.0, 54.3), ("membind=1", 0.0, 298.0)];
    let text = "(64c 96G) (16G); dist=10,31/31,10";
    let judge = |memory| {
        let known = costs(text, None, memory, 16.0);
        Ranking::new(placements(4, Pattern::InOrder, &published), Vec::new(), known).unwrap()
    };
    assert!(!holds(&predicted(&judge(None), &published), &published));
    let ranking = judge(Some([54.3, 298.0]));
    assert!(holds(&predicted(&ranking, &published), &published));
    let first = |name: &str| vec![name.to_owned()];
    assert_eq!(
        firsts(&ranking, Assumption::Threads),
        [
            ("as many", [first("membind=0"), first("membind=1")].concat()),
            ("more, as CPUs", first("membind=1"))
        ]
    );
}

/// One thread that reads in order, and one whose lines wait for each other, on machines with two sockets: the rules of thumb
/// give 90 and 145 ns.
#[test]
fn one_thread_near_is_ahead_of_one_that_is_far() {
    let text = "2x(12c 32G); dist=21";
    for (published, pattern, latencies) in [
        ([("near", 1.0, 3.3), ("far", 0.0, 2.1)], Pattern::InOrder, None),
        ([("near", 1.0, 1.0 / 89.2), ("far", 0.0, 1.0 / 142.7)], Pattern::Scattered, None),
        ([("near", 1.0, 1.0 / 80.8), ("far", 0.0, 1.0 / 140.4)], Pattern::Scattered, None),
        ([("near", 1.0, 1.0 / 89.2), ("far", 0.0, 1.0 / 142.7)], Pattern::Scattered, Some([89.2, 142.7])),
    ] {
        let known = costs(text, latencies, None, 12.0);
        let ranking = Ranking::new(placements(1, pattern, &published), Vec::new(), known).unwrap();
        assert_eq!(predicted(&ranking, &published), [1..=1, 2..=2]);
        assert!(holds(&[1..=1, 2..=2], &published));
    }
}

/// Redis as one thread of scattered lines, with 0, 20.5 and 40.5 of 52 GB, and all of its memory in CXL memory: the time is
/// 1.00, 1.08, 1.14 and 1.19 times that of DRAM alone. Only the ends are ranked: the steps between are too small for
/// counts, and how much of the time waits for memory is not known.
#[test]
fn a_database_is_ranked_where_all_of_its_memory_moves() {
    let part = |gigabytes: f64| 1.0 - gigabytes / 52.0;
    let published = [
        ("DRAM", 1.0, 1.0),
        ("20.5 GB in CXL", part(20.5), 1.0 / 1.08),
        ("40.5 GB in CXL", part(40.5), 1.0 / 1.14),
        ("CXL", 0.0, 1.0 / 1.19),
    ];
    let known = costs("(64c 512G) (96G); dist=10,20/20,10", None, None, 16.0);
    let ranking = Ranking::new(placements(1, Pattern::Scattered, &published), Vec::new(), known).unwrap();
    let places = predicted(&ranking, &published);
    assert!(holds(&places, &published), "{places:?}");
    assert_eq!(places, [1..=3, 1..=4, 1..=4, 2..=4]);
}
