//! Reports of latencies as text, JSON, lines with commas, and pictures: all say the same.

use std::time::{Duration, UNIX_EPOCH};

use nodewise_machine::conditions::Conditions;
use nodewise_machine::{Bytes, CpuSet, NodeId};
use nodewise_measure::cell::{Glance, HugePageSize, PageKind, Placed};
use nodewise_measure::latency::LatencyReport;
use nodewise_measure::survey::{Account, CellReport, Declared, Figure, Marks};
use nodewise_stats::Interval;
use nodewise_view::svg::latency::latency_page;
use nodewise_view::svg::{Theme, latency_svg};
use nodewise_view::{Style, csv, json, text};
use proptest::prelude::{ProptestConfig, any, prop_assert, prop_assert_eq, proptest};

use crate::golden::check as golden;
use crate::picture::tidy;

/// Returns a made-up cell: 80 ns on the own node, 60 ns more for the other half of the machine, and 45 ns
/// more in small pages.
fn cell(from: u32, memory: u32, nodes: u32, pages: PageKind) -> CellReport {
    let far = from / nodes.div_ceil(2) != memory / nodes.div_ceil(2);
    let remote = if from == memory { 0.0 } else { 20.0 };
    let walk = if pages == PageKind::Small { 45.0 } else { 0.0 };
    let median = 80.0 + remote + if far { 60.0 } else { 0.0 } + walk + f64::from(from) / 8.0;
    let all = 32_768;
    let placed = Placed {
        on_node: all,
        pages: all,
        huge: Some(if pages == PageKind::Small { Bytes::new(0) } else { Bytes::from_mib(128) }),
        ..Placed::default()
    };
    CellReport {
        from: NodeId::new(from),
        cpus: CpuSet::from([from * 4 + 1]),
        memory: NodeId::new(memory),
        pages,
        figure: Some(Figure {
            median,
            interval: Some(Interval { low: median - 1.0, high: median + 1.25 }),
            best: median - 2.5,
            rounds: 9,
            samples: 63,
        }),
        refused: None,
        before: Some(placed.clone()),
        after: Some(placed),
        marks: Marks { stolen: 1, disturbed: 2, switched: 1, samples: 63, ..Marks::default() },
        disturbed: false,
        again: false,
    }
}

fn report(nodes: u32) -> LatencyReport {
    let pairs = || (0..nodes).flat_map(move |from| (0..nodes).map(move |memory| (from, memory)));
    let of = |pages| pairs().map(move |(from, memory)| cell(from, memory, nodes, pages));
    let distance = |from, memory| if from == memory { 10 } else { 21 };
    LatencyReport {
        account: Account {
            conditions: Conditions {
                cpu_model: Some("Example CPU 9000".to_owned()),
                kernel: nodewise_machine::KernelRelease::new("6.12.0"),
                ..Conditions::default()
            },
            seed: 7,
            clock: "CLOCK_MONOTONIC_RAW".to_owned(),
            took: Duration::from_millis(41_500),
            interrupted: false,
            left_out: None,
            meanwhile: Glance { stolen: Some(Duration::from_millis(100)), ..Glance::default() },
            last_level: None,
        },
        size: Bytes::from_mib(128),
        cells: of(PageKind::TransparentHuge).chain(of(PageKind::Small)).collect(),
        declared: pairs()
            .map(|(from, memory)| Declared {
                from: NodeId::new(from),
                memory: NodeId::new(memory),
                distance: Some(distance(from, memory)),
                read_latency_ns: None,
                read_gb_per_s: None,
            })
            .collect(),
    }
}

/// A report in which something went wrong with everything that can.
fn troubled() -> LatencyReport {
    let mut report = report(2);
    let refuse = |cell: &mut CellReport, why: &str| {
        cell.figure = None;
        cell.refused = Some(why.to_owned());
    };
    refuse(&mut report.cells[1], "node 1 has 96 MiB to spare, 160 MiB are needed: try a smaller --size");
    refuse(&mut report.cells[3], "node 1 has 96 MiB to spare, 160 MiB are needed: try a smaller --size");
    refuse(&mut report.cells[6], "its pages did not stay: 5 of 8 were left on node 0");
    report.cells[6].after = Some(Placed { on_node: 5, pages: 8, ..Placed::default() });
    report.cells[0].disturbed = true;
    report.cells[0].again = true;
    report.account.interrupted = true;
    report
}

fn everything(report: &LatencyReport, width: usize) -> String {
    text::latency(report, &Style::plain(width))
}

/// Reads a document back.
fn read(text: &str) -> Result<LatencyReport, String> {
    json::latency::read(&json::Saved::from_json(text)?)
}

#[test]
fn texts_are_what_a_person_accepted() {
    golden("latency-1-node", everything(&report(1), 80));
    golden("latency-2-nodes-troubled", everything(&troubled(), 80));
    golden("latency-8-nodes", everything(&report(8), 60));
}

#[test]
fn texts_fit_their_width() {
    for nodes in [1, 2, 4, 8, 24] {
        for width in [60, 80, 120] {
            for line in everything(&report(nodes), width).lines() {
                assert!(line.chars().count() <= width, "{nodes} nodes in {width} columns: {line}");
            }
        }
    }
}

#[test]
fn json_is_read_back_the_same() {
    for report in [report(1), report(8), troubled()] {
        let written = json::latency(&report);
        let read = read(&written).unwrap();
        assert!(read == report, "{written}");
        assert!(json::latency(&read) == written, "{written}");
    }
    let mut pool = report(1);
    pool.cells[0].pages = PageKind::Hugetlb(HugePageSize::GIB_1);
    assert_eq!(read(&json::latency(&pool)).unwrap(), pool);
}

#[test]
fn what_is_no_result_is_refused_with_the_reason() {
    let good = json::latency(&report(1));
    let check = |text: &str, expected: &str| {
        let error = read(text).unwrap_err();
        assert!(error.contains(expected), "{error}");
    };
    check("", "EOF");
    check("{}", "missing field `schema`");
    check(
        "{\"schema\": \"nodewise.tune/1\"}",
        "its schema is \"nodewise.tune/1\": expected nodewise.latency/1",
    );
    check(
        &good.replace("\"median_ns\": 80.0", "\"median_ns\": -80.0"),
        "median_ns is -80: expected a number above 0",
    );
    check(&good.replace("\"took_s\": 41.5", "\"took_s\": -1"), "took_s is -1: expected a time");
    check(&good.replace("\"transparent_huge\"", "\"giant\""), "pages are \"giant\": expected small");
    check(
        &good.replacen("\"memory_node\": 0", "\"memory_node\": 4000000000", 1),
        "node 4000000000 is beyond",
    );
    check(&good.replace("\"cpus\": \"1\"", "\"cpus\": \"1-\""), "cpus: ");
}

#[test]
fn text_csv_and_json_have_the_same_figures() {
    let report = troubled();
    let document: serde_json::Value = serde_json::from_str(&json::latency(&report)).unwrap();
    let lines = csv::latency(&report);
    let wide = everything(&report, 160);
    let rows = lines.lines().skip(1);
    for (cell, line) in document["cells"].as_array().unwrap().iter().zip(rows) {
        let fields: Vec<&str> = line.splitn(16, ',').collect();
        assert_eq!(cell["from_node"].to_string(), fields[0]);
        assert_eq!(cell["pages"], fields[3]);
        match cell["median_ns"].as_f64() {
            Some(median) => {
                assert_eq!(fields[4].parse::<f64>().unwrap(), median);
                assert!(wide.contains(&format!("{median:.1}")), "{median}: {wide}");
            }
            None => assert!(fields[4].is_empty() && !fields[15].is_empty(), "{line}"),
        }
        if let Some(why) = cell["refused"].as_str() {
            assert!(wide.contains(why), "{why}: {wide}");
        }
    }
    assert_eq!(lines.lines().count(), 9);
    for finding in document["findings"].as_array().unwrap() {
        let words = finding.as_str().unwrap().split_whitespace().next().unwrap();
        assert!(wide.contains(words), "{finding}");
    }
}

#[test]
fn a_heat_map_is_tidy_well_formed_and_has_every_number() {
    for nodes in [1, 2, 4, 8, 16, 40] {
        let (_, page) = latency_page(&report(nodes));
        tidy(&page).unwrap_or_else(|error| panic!("{nodes} nodes: {error}"));
    }
    tidy(&latency_page(&troubled()).1).unwrap();
    let mut report = report(8);
    report.account.conditions.began = Some(UNIX_EPOCH + Duration::from_secs(1_795_359_600));
    for theme in [Theme::Auto, Theme::Light, Theme::Dark] {
        let svg = latency_svg(&report, theme);
        let document = roxmltree::Document::parse(&svg).unwrap();
        let texts: Vec<&str> = document.descendants().filter_map(|node| node.text()).collect();
        for cell in &report.cells {
            let median = format!("{:.0}", cell.figure.unwrap().median);
            assert!(texts.contains(&median.as_str()), "{median}");
        }
        assert!(texts.iter().any(|text| text.starts_with("page walks")));
        // The colour bar, from the best cell to the worst, and what the result says of its origin.
        for text in ["80.0", "88.0", "112", "144", "161", "ns"] {
            assert!(texts.contains(&text), "{text}");
        }
        assert!(
            texts.contains(&"Example CPU 9000, Linux 6.12.0; measured 2026-11-22 15:00 UTC"),
            "{texts:?}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_figures_are_drawn_and_read_back(
        nodes in 1_u32..6,
        medians in proptest::collection::vec(1_u32..8_000_000, 72),
        refused in proptest::collection::vec(any::<bool>(), 72),
        words in ".{0,40}",
    ) {
        let mut report = report(nodes);
        for ((cell, median), refused) in report.cells.iter_mut().zip(medians).zip(refused) {
            let median = f64::from(median) / 8.0;
            match &mut cell.figure {
                Some(figure) if !refused => {
                    (figure.median, figure.best, figure.interval) = (median, median, None);
                }
                figure => {
                    *figure = None;
                    cell.refused = Some(words.clone());
                }
            }
        }
        report.account.conditions.cpu_model = Some(words);
        tidy(&latency_page(&report).1)?;
        prop_assert!(roxmltree::Document::parse(&latency_svg(&report, Theme::Auto)).is_ok());
        prop_assert!(!everything(&report, 60).chars().any(|c| c.is_control() && c != '\n'));
        prop_assert_eq!(csv::latency(&report).lines().count(), 1 + report.cells.len());
        let mut read = read(&json::latency(&report)).unwrap();
        for cell in read.cells.iter_mut().chain(&mut report.cells) {
            if cell.figure.is_none() {
                cell.marks = Marks::default();
            }
        }
        prop_assert!(read.cells == report.cells, "{:?}", read.cells.first());
    }

    #[test]
    fn any_text_is_read_or_refused(text in ".{0,200}") {
        prop_assert!(read(&text).is_err());
    }

    #[test]
    fn a_cut_document_is_refused(share in 0.0..0.999_f64) {
        let whole = json::latency(&report(1));
        let at = (whole.trim_end().len() as f64 * share) as usize;
        prop_assert!(read(&whole[..at]).is_err());
    }
}
