//! Reports of bandwidths and of core-to-core latencies as text, JSON, lines with commas, and pictures:
//! all say the same.

use std::time::Duration;

use nodewise_machine::conditions::Conditions;
use nodewise_machine::memory_slot::peak::{PeakBandwidth, PeakTerm};
use nodewise_machine::{Bytes, CpuId, CpuSet, NodeId};
use nodewise_measure::bandwidth::{BandwidthReport, BandwidthYardstick, TransferReport};
use nodewise_measure::c2c::report::Home;
use nodewise_measure::c2c::{self, Pair, PairReport, Relation, Transfer};
use nodewise_measure::cell::{Glance, PageKind, Placed};
use nodewise_measure::kernel::bandwidth::Kernel;
use nodewise_measure::survey::figure::rounded;
use nodewise_measure::survey::{Account, CellReport, Declared, Figure, LeftOut, Marks};
use nodewise_stats::Interval;
use nodewise_view::svg::bandwidth::bandwidth_page;
use nodewise_view::svg::c2c::c2c_page;
use nodewise_view::svg::{Theme, bandwidth_svg, c2c_svg};
use nodewise_view::{Style, csv, json, text};

use crate::golden::check as golden;
use crate::picture::{has_axes, tidy};

fn figure(median: f64) -> Figure {
    let interval = Some(Interval { low: rounded(median * 0.99), high: rounded(median * 1.005) });
    Figure { median: rounded(median), interval, best: rounded(median * 1.02), rounds: 9, samples: 45 }
}

/// A way whose figure follows from what it is.
fn way(from: u32, memory: u32, threads: u32, kernel: Kernel) -> TransferReport {
    let remote = if from == memory { 1.0 } else { 0.45 };
    let kernel_factor = 1.0 + Kernel::ALL.iter().position(|of| *of == kernel).unwrap_or(0) as f64 / 16.0;
    let median = 18.25 * f64::from(threads.min(4)) * remote * kernel_factor;
    let placed =
        Placed { on_node: 65_536, pages: 65_536, huge: Some(Bytes::from_mib(256)), ..Placed::default() };
    let cell = CellReport {
        from: NodeId::new(from),
        cpus: (from * 8..from * 8 + threads).map(CpuId::new).collect(),
        memory: NodeId::new(memory),
        pages: PageKind::TransparentHuge,
        figure: Some(figure(median)),
        refused: None,
        before: Some(placed.clone()),
        after: Some(placed),
        marks: Marks { samples: 45, ..Marks::default() },
        disturbed: false,
        again: false,
    };
    let variant = Some("AVX2, 2 streams, prefetch 1 KiB".to_owned());
    TransferReport { kernel, variant, threads: threads as usize, everywhere: false, cell }
}

/// This many nodes, each with eight CPUs.
pub(crate) fn report(nodes: u32) -> BandwidthReport {
    let pairs = || (0..nodes).flat_map(move |from| (0..nodes).map(move |memory| (from, memory)));
    let of_kernel = |kernel| [way(0, 0, 1, kernel), way(0, 0, 8, kernel)];
    BandwidthReport {
        account: Account {
            conditions: Conditions {
                cpu_model: Some("Example CPU 9000".to_owned()),
                ..Conditions::default()
            },
            seed: 7,
            clock: "CLOCK_MONOTONIC_RAW".to_owned(),
            took: Duration::from_millis(41_500),
            interrupted: false,
            left_out: None,
            meanwhile: Glance::default(),
            last_level: None,
        },
        size: Bytes::from_mib(256),
        kernel: Kernel::Read,
        matrix: pairs().map(|(from, memory)| way(from, memory, 8, Kernel::Read)).collect(),
        kernels: Kernel::ALL.into_iter().flat_map(of_kernel).collect(),
        scaling: [1, 2, 4, 8].map(|threads| way(0, 0, threads, Kernel::Read)).to_vec(),
        everywhere: (nodes > 1).then(|| TransferReport {
            everywhere: true,
            threads: 8 * nodes as usize,
            ..way(0, 0, 8, Kernel::Read)
        }),
        declared: pairs()
            .map(|(from, memory)| Declared {
                from: NodeId::new(from),
                memory: NodeId::new(memory),
                distance: Some(if from == memory { 10 } else { 21 }),
                read_latency_ns: None,
                read_gb_per_s: None,
            })
            .collect(),
        yardstick: None,
    }
}

/// The same with a yardstick: peaks of all nodes but the last, which no slot names.
pub(crate) fn with_peaks(nodes: u32) -> BandwidthReport {
    let peak = |channels| {
        PeakBandwidth::new([PeakTerm { channels, mt_per_s: 3200, bytes: 8 }]).ok_or_else(|| "none".to_owned())
    };
    let of_node = |node| {
        let is_last = node + 1 == nodes;
        (NodeId::new(node), if is_last { Err("no memory slot names this node".to_owned()) } else { peak(4) })
    };
    let mut report = report(nodes);
    report.account.conditions.cpu_model = Some("Intel(R) Xeon(R) Gold 6240 CPU @ 2.60GHz".to_owned());
    report.yardstick = Some(BandwidthYardstick {
        nodes: (0..nodes).map(of_node).collect(),
        machine: peak(4 * nodes),
        sockets: Some(nodes),
    });
    report
}

/// A report in which something went wrong with everything that can.
pub(crate) fn troubled() -> BandwidthReport {
    let mut report = report(2);
    for at in [1, 3] {
        let cell = &mut report.matrix[at].cell;
        cell.figure = None;
        cell.refused =
            Some("node 1 has 96 MiB to spare, 288 MiB are needed: try a smaller --size".to_owned());
    }
    report.matrix[0].cell.disturbed = true;
    report.kernels[2].cell.disturbed = true;
    report.kernels.remove(5);
    report.account.interrupted = true;
    report
}

/// This many CPUs on two nodes, each with every other one.
pub(crate) fn cores(cpus: u32) -> c2c::C2cReport {
    let pairs =
        (0..cpus).flat_map(|to| (0..cpus).filter(move |from| *from != to).map(move |from| (to, from)));
    let of = |(to, from): (u32, u32)| {
        let near = to / 4 == from / 4;
        let homes: &[(Home, u32)] =
            if near { &[(Home::Near, 0)] } else { &[(Home::Near, 0), (Home::Far, 1)] };
        let pair = move |transfer, home: Home, node| {
            let far = if near { 0.0 } else { 90.0 };
            let median = 40.0 + far + f64::from(to + from) / 4.0 + f64::from(home as u8) * 12.0;
            PairReport {
                pair: Pair { to: CpuId::new(to), from: CpuId::new(from), home: NodeId::new(node), transfer },
                relation: if near { Relation::Cache } else { Relation::Machine },
                home,
                figure: Some(figure(median + f64::from(transfer as u8) * 20.0)),
                refused: None,
                before: Some(Placed { on_node: 256, pages: 256, ..Placed::default() }),
                after: Some(Placed { on_node: 256, pages: 256, ..Placed::default() }),
                disturbed: false,
            }
        };
        let all =
            homes.iter().flat_map(|(home, node)| Transfer::ALL.map(|transfer| (transfer, *home, *node)));
        all.map(|(transfer, home, node)| pair(transfer, home, node)).collect::<Vec<_>>()
    };
    c2c::C2cReport {
        account: Account {
            conditions: Conditions::default(),
            seed: 7,
            clock: "CLOCK_MONOTONIC_RAW".to_owned(),
            took: Duration::from_millis(12_500),
            interrupted: false,
            left_out: None,
            meanwhile: Glance::default(),
            last_level: None,
        },
        candidates: 64,
        pairs: pairs.flat_map(of).collect(),
    }
}

fn bandwidths(report: &BandwidthReport, width: usize) -> String {
    text::bandwidth(report, &Style::plain(width))
}

#[test]
fn texts_are_what_a_person_accepted() {
    golden("bandwidth-1-node", bandwidths(&report(1), 60));
    golden("bandwidth-2-nodes-troubled", bandwidths(&troubled(), 80));
    golden("c2c-8-cpus", text::c2c(&cores(8), &Style::plain(80)));
}

/// Takes away everything that a survey brings to a way, as where it ended before.
fn unreach(way: &mut TransferReport) {
    way.cell.figure = None;
    (way.cell.before, way.cell.after, way.cell.marks) = (None, None, Marks::default());
}

#[test]
fn what_was_not_reached_has_one_line_and_no_table() {
    let mut report = report(2);
    report.account.interrupted = true;
    report.kernels.iter_mut().skip(4).for_each(unreach);
    report.scaling.iter_mut().chain(&mut report.everywhere).for_each(unreach);
    report.matrix.iter_mut().skip(3).for_each(unreach);
    let text = bandwidths(&report, 80);
    let kernels = Kernel::ALL.len();
    let line = format!(
        "Not measured\n  1 of 4 matrix cells, {} of {kernels} kernels, threads, all nodes at once: not reached\n    before the end\n",
        kernels - 2
    );
    assert!(text.contains(&line), "{text}");
    assert!(!text.contains("Threads") && !text.contains("all nodes at once,"), "{text}");
    let rows = text.split_once("Kernels").unwrap().1.split_once("\n\n").unwrap().0.lines().count();
    assert_eq!(rows, 6, "a heading, heads and two kernels in two lines each: {text}");
    report.matrix.iter_mut().chain(&mut report.kernels).for_each(unreach);
    let text = bandwidths(&report, 80);
    assert_eq!(
        text,
        "Bandwidth  all threads of a node at once, a thread per CPU\n\nNot measured\n  matrix, kernels, threads, all \
         nodes at once: not reached before the end\n\nFindings\n  ended early: figures are those of the samples \
         taken so far\n"
    );
    // What is written and read back says the same.
    let document = json::bandwidth(&report);
    let read = json::bandwidth::read(&json::Saved::from_json(&document).unwrap()).unwrap();
    assert_eq!(bandwidths(&read, 80), text);
}

#[test]
fn what_a_limit_of_time_left_out_is_said_in_text_and_json() {
    let mut report = report(2);
    let left_out = LeftOut { rounds: 2, of_rounds: 6, cells: 3, of_cells: 31, disturbed: 1 };
    report.account.left_out = Some(left_out);
    let text = bandwidths(&report, 100);
    let sentence = "left out to end in time: 4 of 6 rounds, 3 of 31 cells, repeating 1 disturbed cell";
    assert!(text.contains(sentence), "{text}");
    let document = json::bandwidth(&report);
    let value: serde_json::Value = serde_json::from_str(&document).unwrap();
    let expected = serde_json::json!({
        "rounds": 4, "of_rounds": 6, "cells": 3, "of_cells": 31, "repetitions": 1
    });
    assert_eq!(value["left_out"], expected);
    assert_eq!(value["findings"].as_array().unwrap().last().unwrap(), sentence);
    let read = json::bandwidth::read(&json::Saved::from_json(&document).unwrap()).unwrap();
    assert_eq!(read.account.left_out, Some(left_out));
    let wrong = document.replace("\"of_rounds\": 6", "\"of_rounds\": 3");
    let refused = json::bandwidth::read(&json::Saved::from_json(&wrong).unwrap()).unwrap_err();
    assert_eq!(refused, "left_out: more is left out than there is");
}

#[test]
fn shares_of_the_peak_are_in_text_picture_and_json() {
    let report = with_peaks(2);
    let text = bandwidths(&report, 100);
    let table = "Peak  theoretical, by the memory slots: channels x speed x width
  memory     peak GB/s  reached  share  with  computed from
  node 0           102      123  120 %  1:1   4 channels x 3200 MT/s x 8 bytes
  all nodes        205     73.0   36 %  read  8 channels x 3200 MT/s x 8 bytes
";
    assert!(text.contains(table), "{text}");
    for sentence in [
        "theoretical peak of node 1 unknown: no memory slot names this node",
        "published bandwidth of reads per socket: 113 to 122 GB/s (3 machines of this family); here 36.5 GB/s",
        "node 0 reached 120 % of its theoretical peak",
    ] {
        assert!(text.replace("\n    ", " ").contains(sentence), "{sentence}: {text}");
    }
    let svg = bandwidth_svg(&report, Theme::Auto);
    assert!(svg.contains("share of the theoretical peak: node 0 120 %, all nodes 36 %"), "{svg}");
    tidy(&bandwidth_page(&report).1).unwrap();
    let value: serde_json::Value = serde_json::from_str(&json::bandwidth(&report)).unwrap();
    let expected = serde_json::json!({
        "sockets": 2,
        "nodes": [
            {
                "memory_node": 0, "peak_gb_per_s": 102.4, "reached_gb_per_s": 123.1875, "reached_with": "1:1",
                "channels": [{ "count": 4, "mt_per_s": 3200, "bytes_per_transfer": 8 }], "share": 1.20300293
            },
            { "memory_node": 1, "unknown": "no memory slot names this node", "reached_gb_per_s": 73.0,
              "reached_with": "read" },
        ],
        "machine": {
            "peak_gb_per_s": 204.8, "reached_gb_per_s": 73.0, "reached_with": "read",
            "channels": [{ "count": 8, "mt_per_s": 3200, "bytes_per_transfer": 8 }], "share": 0.356445312
        },
    });
    assert_eq!(value["peak"], expected);
    assert_eq!(value["published"][0]["quantity"], "read_bandwidth_per_socket");
    assert_eq!(value["published"][0]["measured_gb_per_s"], 36.5);
    assert_eq!(value["published"][0]["platforms"].as_array().unwrap().len(), 3);
}

#[test]
fn an_unknown_peak_is_a_line_and_an_older_document_has_none() {
    let mut report = with_peaks(2);
    let why = || Err("the memory slots of a virtual machine are not those of its host".to_owned());
    if let Some(yardstick) = &mut report.yardstick {
        yardstick.nodes.iter_mut().for_each(|(_, peak)| *peak = why());
        (yardstick.machine, yardstick.sockets) = (why(), None);
    }
    let text = bandwidths(&report, 120);
    let line =
        "  theoretical peak unknown: the memory slots of a virtual machine are not those of its host\n";
    assert!(text.contains(line) && !text.contains("Peak  ") && !text.contains("published"), "{text}");
    report.yardstick = None;
    assert!(!bandwidths(&report, 120).contains("peak"));
    let document = json::bandwidth(&report);
    assert!(!document.contains("\"peak\""), "{document}");
    assert_eq!(json::bandwidth::read(&json::Saved::from_json(&document).unwrap()).unwrap().yardstick, None);
}

#[test]
fn texts_fit_their_width() {
    for width in [60, 80, 120] {
        let mut texts: Vec<String> = [1, 2, 8, 24].map(|nodes| bandwidths(&report(nodes), width)).to_vec();
        texts.extend([2, 8].map(|nodes| bandwidths(&with_peaks(nodes), width)));
        texts.push(bandwidths(&troubled(), width));
        texts.extend([2, 8, 32].map(|cpus| text::c2c(&cores(cpus), &Style::plain(width))));
        for line in texts.iter().flat_map(|text| text.lines()) {
            assert!(line.chars().count() <= width, "in {width} columns: {line}");
        }
    }
}

#[test]
fn text_csv_and_json_have_the_same_bandwidths() {
    let report = troubled();
    let document: serde_json::Value = serde_json::from_str(&json::bandwidth(&report)).unwrap();
    let lines = csv::bandwidth(&report);
    let wide = bandwidths(&report, 200);
    let ways = ["matrix", "kernels", "threads"].iter().flat_map(|table| document[table].as_array().unwrap());
    let ways: Vec<&serde_json::Value> = ways.chain([&document["all_nodes"]]).collect();
    assert_eq!(ways.len() + 1, lines.lines().count());
    for (way, line) in ways.iter().zip(lines.lines().skip(1)) {
        assert!(
            line.contains(&format!(",{},{},", way["kernel"].as_str().unwrap(), way["threads"])),
            "{line}"
        );
        match way["median_gb_per_s"].as_f64() {
            Some(median) => {
                assert!(line.contains(&format!(",{median},")), "{line}");
                let shown = if median >= 100.0 { format!("{median:.0}") } else { format!("{median:.1}") };
                assert!(wide.contains(&shown), "{shown}: {wide}");
            }
            None => assert!(wide.contains(way["refused"].as_str().unwrap()), "{wide}"),
        }
    }
    assert_eq!(document["knee_threads"], 4);
    for finding in document["findings"].as_array().unwrap() {
        let words = finding.as_str().unwrap().split_whitespace().next().unwrap();
        assert!(wide.contains(words), "{finding}");
    }
}

#[test]
fn text_csv_and_json_have_the_same_core_to_core_latencies() {
    let report = cores(8);
    let document: serde_json::Value = serde_json::from_str(&json::c2c(&report)).unwrap();
    let lines = csv::c2c(&report);
    let pairs = document["pairs"].as_array().unwrap();
    assert_eq!(pairs.len() + 1, lines.lines().count());
    for (pair, line) in pairs.iter().zip(lines.lines().skip(1)) {
        assert!(line.starts_with(&format!("{},{},", pair["to_cpu"], pair["from_cpu"])), "{line}");
        assert!(line.contains(&format!(",{},", pair["median_ns"].as_f64().unwrap())), "{line}");
    }
    let wide = text::c2c(&report, &Style::plain(160));
    for group in document["groups"].as_array().unwrap() {
        let median = group["median_ns"].as_f64().unwrap();
        assert!(wide.contains(&format!("{median:.1}")), "{median}: {wide}");
    }
}

#[test]
fn heat_maps_are_tidy_and_well_formed() {
    for nodes in [1, 2, 4, 8, 16, 40] {
        tidy(&bandwidth_page(&report(nodes)).1).unwrap_or_else(|error| panic!("{nodes} nodes: {error}"));
    }
    tidy(&bandwidth_page(&troubled()).1).unwrap();
    for cpus in [2, 8, 32] {
        tidy(&c2c_page(&cores(cpus)).1).unwrap_or_else(|error| panic!("{cpus} CPUs: {error}"));
    }
    for svg in [bandwidth_svg(&report(8), Theme::Auto), c2c_svg(&cores(8), Theme::Dark)] {
        roxmltree::Document::parse(&svg).unwrap();
    }
    has_axes(&bandwidth_svg(&report(8), Theme::Auto), &["bandwidth, GB/s", "threads, logarithmic", "GB/s"]);
    let all: CpuSet = cores(8).cpus().into_iter().collect();
    assert_eq!(all.len(), 8);
}
