//! Sweeps and tables as text, JSON, lines with commas, and pictures.

use std::time::Duration;

use nodewise_machine::conditions::Conditions;
use nodewise_machine::{Bytes, CpuSet, NodeId};
use nodewise_measure::cell::PageKind;
use nodewise_measure::latency::Pattern;
use nodewise_measure::latency::sweep::{ChaseReport, Claimed, SweepReport, sizes};
use nodewise_measure::survey::figure::rounded;
use nodewise_measure::survey::{Account, CellReport, Figure, Marks};
use nodewise_stats::Interval;
use nodewise_view::svg::sweep::sweep_page;
use nodewise_view::svg::{Theme, sweep_svg};
use nodewise_view::{Style, csv, json, text};
use proptest::prelude::{ProptestConfig, prop_assert, proptest};

use crate::golden::check as golden;
use crate::picture::{has_axes, tidy};

fn chase(size: Bytes, pattern: Pattern, memory: u32, pages: PageKind, ns: Option<f64>) -> ChaseReport {
    let figure = ns.map(|ns| Figure {
        median: rounded(ns),
        interval: Some(Interval { low: rounded(ns * 0.99), high: rounded(ns * 1.01) }),
        best: rounded(ns),
        rounds: 6,
        samples: 54,
    });
    let cell = CellReport {
        from: NodeId::new(0),
        cpus: CpuSet::from([1]),
        memory: NodeId::new(memory),
        pages,
        figure,
        refused: ns
            .is_none()
            .then(|| "node 0 has 64 MiB to spare, 320 MiB are needed: try a smaller --size".to_owned()),
        before: None,
        after: None,
        marks: Marks::default(),
        disturbed: false,
        again: false,
    };
    ChaseReport { size, pattern, cell }
}

fn report(chases: Vec<ChaseReport>) -> SweepReport {
    let claimed = |name: &str, size| Claimed { name: name.to_owned(), size };
    SweepReport {
        account: Account {
            conditions: Conditions {
                cpu_model: Some("Example CPU 9000".to_owned()),
                ..Conditions::default()
            },
            seed: 7,
            took: Duration::from_secs(9),
            ..Account::default()
        },
        chases,
        claimed: vec![
            claimed("L1d", Bytes::from_kib(48)),
            claimed("L2", Bytes::from_mib(2)),
            claimed("L3", Bytes::from_mib(480)),
        ],
    }
}

/// The cost of a load in made-up caches of 48 KiB, 2 MiB and 16 MiB.
fn cost(size: Bytes) -> f64 {
    match size.get() >> 10 {
        0..=48 => 1.25,
        49..=2048 => 4.5,
        2049..=16384 => 24.0,
        _ => 130.0,
    }
}

pub(crate) fn sweep() -> SweepReport {
    let all = || sizes(Bytes::from_kib(4), Bytes::from_mib(256));
    let huge = all().into_iter().map(|size| {
        let ns = (size < Bytes::from_mib(256)).then(|| cost(size));
        chase(size, Pattern::Random, 0, PageKind::TransparentHuge, ns)
    });
    let small = all().into_iter().map(|size| {
        let walk = if size > Bytes::from_mib(1) { 1.4 } else { 1.0 };
        chase(size, Pattern::Random, 0, PageKind::Small, Some(cost(size) * walk))
    });
    report(huge.chain(small).collect())
}

fn table() -> SweepReport {
    let sizes = [2, 8, 32, 128, 512, 2048, 8192, 32768, 131_072].map(Bytes::from_kib);
    let mut chases = Vec::new();
    for memory in [0, 1] {
        for pattern in [Pattern::Stride(1), Pattern::Stride(32), Pattern::Stride(64), Pattern::Random] {
            let share = if pattern == Pattern::Random { 1.0 } else { 0.2 };
            for size in sizes {
                let ns = cost(size) * share * f64::from(1 + memory);
                chases.push(chase(size, pattern, memory, PageKind::TransparentHuge, Some(ns)));
            }
        }
    }
    report(chases)
}

#[test]
fn texts_are_what_a_person_accepted() {
    golden("latency-sweep", text::sweep::sweep(&sweep(), &Style::plain(80)));
    golden("latency-table", text::sweep::table(&table(), &Style::plain(100)));
}

#[test]
fn texts_fit_their_width() {
    for width in [60, 80, 120] {
        for text in [
            text::sweep::sweep(&sweep(), &Style::plain(width)),
            text::sweep::table(&table(), &Style::plain(width)),
        ] {
            for line in text.lines() {
                assert!(line.chars().count() <= width, "{width} columns: {line}");
            }
        }
    }
}

#[test]
fn json_and_csv_have_every_chase_and_the_levels() {
    let document: serde_json::Value = serde_json::from_str(&json::sweep::sweep(&sweep())).unwrap();
    assert_eq!(document["schema"], "nodewise.latency_sweep/1");
    assert_eq!(document["chases"].as_array().unwrap().len(), sweep().chases.len());
    let holds: Vec<u64> = document["levels"]
        .as_array()
        .unwrap()
        .iter()
        .map(|level| level["holds_bytes"].as_u64().unwrap() >> 10)
        .collect();
    assert_eq!(holds, [48, 2048, 16384, 192 << 10]);
    assert_eq!(document["levels"][1]["claimed_as"], "L2");
    assert!(document["levels"][2]["claimed_as"].is_null(), "480 MiB are claimed, 16 found");
    assert_eq!(csv::sweep(&sweep()).lines().count(), 1 + sweep().chases.len());
    let document: serde_json::Value = serde_json::from_str(&json::sweep::table(&table())).unwrap();
    assert_eq!(document["schema"], "nodewise.latency_table/1");
    assert_eq!(document["chases"][9]["stride_elements"], 32);
}

#[test]
fn a_document_is_read_back_as_it_was() {
    let read = |text: &str| json::sweep::read(&json::Saved::from_json(text)?);
    for report in [sweep(), table(), report(Vec::new())] {
        let of_sweep = json::sweep::sweep(&report);
        assert_eq!(read(&of_sweep).as_ref(), Ok(&report));
        assert_eq!(json::sweep::sweep(&read(&of_sweep).unwrap()), of_sweep);
        let of_table = json::sweep::table(&report);
        assert_eq!(json::sweep::table(&read(&of_table).unwrap()), of_table);
    }
    let check = |from: &str, to: &str, expected: &str| {
        let text = json::sweep::table(&table());
        assert!(text.contains(from), "{from}");
        let refused = read(&text.replacen(from, to, 1)).unwrap_err();
        assert!(refused.contains(expected), "{refused}");
    };
    check("\"random\"", "\"walk\"", "pattern is \"walk\": expected random, stride with stride_elements");
    check("\"stride_elements\": 1,", "\"stride_elements\": 0,", "chases[0]: pattern is \"stride\"");
    check("\"size_bytes\": 2048", "\"size_bytes\": 0", "size_bytes is 0: expected 8 to ");
    check(
        "latency_table/1",
        "tune/1",
        "its schema is \"nodewise.tune/1\": expected nodewise.latency_sweep/1",
    );
}

#[test]
fn pictures_are_tidy_and_well_formed() {
    for report in [sweep(), table(), report(Vec::new())] {
        tidy(&sweep_page(&report)).unwrap();
        for theme in [Theme::Auto, Theme::Dark] {
            roxmltree::Document::parse(&sweep_svg(&report, theme)).unwrap();
        }
    }
    has_axes(
        &sweep_svg(&table(), Theme::Auto),
        &["latency, ns per load", "size of what is read", "0.2", "500"],
    );
    assert!(sweep_svg(&sweep(), Theme::Auto).contains("up to 2 MiB: 4.5 ns (the system claims L2 of 2 MiB)"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn any_costs_are_drawn(costs in proptest::collection::vec(proptest::option::of(1e-3..1e7_f64), 0..60)) {
        let all = sizes(Bytes::new(64), Bytes::from_gib(64));
        let chases: Vec<ChaseReport> = all
            .into_iter()
            .zip(costs)
            .map(|(size, ns)| chase(size, Pattern::Random, 0, PageKind::Small, ns))
            .collect();
        let report = report(chases);
        tidy(&sweep_page(&report))?;
        prop_assert!(roxmltree::Document::parse(&sweep_svg(&report, Theme::Light)).is_ok());
        prop_assert!(!text::sweep::sweep(&report, &Style::plain(60)).is_empty());
    }
}
