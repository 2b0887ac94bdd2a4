//! Latency under load as text, JSON, lines with commas, and pictures: all say the same.

use std::time::Duration;

use nodewise_machine::conditions::Conditions;
use nodewise_machine::{Bytes, CpuSet, NodeId};
use nodewise_measure::cell::{PageKind, Placed};
use nodewise_measure::kernel::bandwidth::Kernel;
use nodewise_measure::latency::loaded::{Curve, LoadedReport, PAUSES, Path, Point};
use nodewise_measure::survey::figure::rounded;
use nodewise_measure::survey::{Account, CellReport, Figure, Marks};
use nodewise_stats::Interval;
use nodewise_view::svg::loaded::loaded_page;
use nodewise_view::svg::{Theme, loaded_svg};
use nodewise_view::{Style, csv, json, text};
use proptest::prelude::{ProptestConfig, any, prop_assert, prop_assert_eq, proptest};

use crate::golden::check as golden;
use crate::picture::{has_axes, tidy};

const SIZE: Bytes = Bytes::from_mib(128);

fn figure(median: f64) -> Figure {
    let interval = Some(Interval { low: rounded(median * 0.99), high: rounded(median * 1.02) });
    Figure { median: rounded(median), interval, best: rounded(median * 0.97), rounds: 9, samples: 27 }
}

fn cell(memory: u32, ns: Option<f64>, buffers: u64) -> CellReport {
    let placed = Placed {
        on_node: 32_768 * buffers,
        pages: 32_768 * buffers,
        huge: Some(Bytes::new(SIZE.get() * buffers)),
        ..Placed::default()
    };
    CellReport {
        from: NodeId::new(0),
        cpus: CpuSet::from([1]),
        memory: NodeId::new(memory),
        pages: PageKind::TransparentHuge,
        figure: ns.map(figure),
        refused: ns
            .is_none()
            .then(|| "CPU 3 is not online, or not allowed to this process any more".to_owned()),
        before: Some(placed.clone()),
        after: ns.map(|_| placed),
        marks: Marks { switched: 1, disturbed: 1, samples: 27, ..Marks::default() },
        disturbed: false,
        again: false,
    }
}

/// A made-up memory: what is moved grows as pauses shrink, and a load waits in a queue.
fn curve(kernel: Kernel, memory: u32, idle: f64, most: f64) -> Curve {
    let point = |pause_ns: &u32| {
        let gb_per_s = most / (1.0 + f64::from(*pause_ns) / 200.0);
        let ns = idle * (1.0 + 0.02 / (1.02 - gb_per_s / 100.0));
        let lost = kernel == Kernel::Mix1To1 && *pause_ns == 300;
        Point {
            pause_ns: *pause_ns,
            cell: cell(memory, (!lost).then_some(ns), 2),
            p90_ns: (!lost).then_some(ns * 1.1),
            load: (!lost).then(|| figure(gb_per_s)),
        }
    };
    let points = PAUSES.iter().rev().map(point).collect();
    Curve { kernel, variant: Some("AVX-512, 4 streams, prefetch 2 KiB".to_owned()), points }
}

fn path(memory: u32, idle: f64, most: f64, kernels: &[Kernel]) -> Path {
    Path {
        idle: cell(memory, Some(idle), 1),
        idle_p90_ns: Some(idle * 1.05),
        traffic_from: NodeId::new(0),
        traffic_cpus: CpuSet::from([0, 2, 3]),
        traffic_memory: NodeId::new(memory),
        shares_core: false,
        curves: kernels.iter().map(|kernel| curve(*kernel, memory, idle, most)).collect(),
    }
}

fn report(paths: Vec<Path>) -> LoadedReport {
    LoadedReport {
        account: Account {
            conditions: Conditions {
                cpu_model: Some("Example CPU 9000".to_owned()),
                ..Conditions::default()
            },
            seed: 7,
            clock: "CLOCK_MONOTONIC_RAW".to_owned(),
            took: Duration::from_secs(41),
            ..Account::default()
        },
        pages: PageKind::TransparentHuge,
        size: SIZE,
        traffic_size: SIZE,
        paths,
    }
}

fn one_node() -> LoadedReport {
    report(vec![path(0, 90.0, 60.0, &[Kernel::Read, Kernel::Copy])])
}

/// The knee of the far path is reached, and one point has no figure.
pub(crate) fn two_nodes() -> LoadedReport {
    let kernels = [Kernel::Read, Kernel::Mix1To1];
    let mut far = path(1, 150.0, 101.0, &kernels);
    far.shares_core = true;
    report(vec![path(0, 90.0, 60.0, &kernels), far])
}

/// Reads a document back.
fn read(text: &str) -> Result<LoadedReport, String> {
    json::loaded::read(&json::Saved::from_json(text)?)
}

#[test]
fn texts_are_what_a_person_accepted() {
    golden("latency-loaded-1-node", text::loaded(&one_node(), &Style::plain(80)));
    golden("latency-loaded-2-nodes", text::loaded(&two_nodes(), &Style::plain(80)));
}

#[test]
fn texts_fit_their_width() {
    for width in [60, 80, 120] {
        for report in [one_node(), two_nodes()] {
            for line in text::loaded(&report, &Style::plain(width)).lines() {
                assert!(line.chars().count() <= width, "{width} columns: {line}");
            }
        }
    }
}

#[test]
fn every_form_has_every_point_and_the_knees() {
    let report = two_nodes();
    let document: serde_json::Value = serde_json::from_str(&json::loaded(&report)).unwrap();
    assert_eq!(document["schema"], "nodewise.latency_loaded/1");
    assert_eq!(document["pages"], "transparent_huge");
    let far = &document["paths"][1];
    assert_eq!((&far["traffic_cpus"], &far["traffic_memory_node"]), (&"0,2-3".into(), &1.into()));
    assert_eq!(far["curves"][0]["knee"]["reached"], true);
    let knee = &document["paths"][0]["curves"][0]["knee"];
    assert_eq!(
        (&knee["reached"], knee["times_idle_at_most"].as_f64().map(|most| most < 2.0)),
        (&false.into(), Some(true))
    );
    let points = far["curves"][1]["points"].as_array().unwrap();
    assert_eq!(points.len(), 19);
    assert_eq!(points.iter().filter(|point| point["median_ns"].is_null()).count(), 1);
    assert_eq!(csv::loaded(&report).lines().count(), 1 + 2 * (1 + 2 * 19));
    let text = text::loaded(&report, &Style::plain(120));
    assert!(text.contains("not reached: 1.05x"), "{text}");
    assert!(text.contains("CPU 1, which chases, shares its core"), "{text}");
    assert!(loaded_svg(&report, Theme::Auto).contains("knee: not reached: 1.05x"));
}

#[test]
fn a_document_is_read_back_as_it_was() {
    for report in [one_node(), two_nodes(), report(Vec::new())] {
        let text = json::loaded(&report);
        let read = read(&text).unwrap();
        assert_eq!(json::loaded(&read), text);
        assert_eq!(read.cells().count(), report.cells().count());
    }
}

#[test]
fn what_is_wrong_in_a_document_is_said() {
    let check = |from: &str, to: &str, expected: &str| {
        let text = json::loaded(&one_node());
        assert!(text.contains(from), "{from}");
        let refused = read(&text.replacen(from, to, 1)).unwrap_err();
        assert!(refused.contains(expected), "{refused}");
    };
    check(
        "latency_loaded/1",
        "latency/1",
        "its schema is \"nodewise.latency/1\": expected nodewise.latency_loaded/1",
    );
    check("\"kernel\": \"copy\"", "\"kernel\": \"cpy\"", "\"cpy\" is not a kernel");
    check("\"median_ns\": 90.0", "\"median_ns\": -1", "median_ns is -1: expected a number above 0");
    check("\"traffic_memory_node\": 0", "\"traffic_memory_node\": 4000000000", "is beyond");
    check("\"pause_ns\": 20000", "\"pause_ns\": -4", "invalid value");
}

#[test]
fn pictures_are_tidy_and_well_formed() {
    for report in [one_node(), two_nodes(), report(Vec::new())] {
        tidy(&loaded_page(&report)).unwrap();
        for theme in [Theme::Auto, Theme::Light, Theme::Dark] {
            roxmltree::Document::parse(&loaded_svg(&report, theme)).unwrap();
        }
    }
    let svg = loaded_svg(&two_nodes(), Theme::Auto);
    has_axes(&svg, &["latency, ns per load", "traffic of the other CPUs, GB/s"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn any_figures_are_drawn_inside_the_plot(
        idle in 1e-2..1e6_f64, points in proptest::collection::vec((1e-3..1e4_f64, 1e-2..1e7_f64), 0..40),
    ) {
        let mut path = path(0, idle, 60.0, &[]);
        let point = |(gb_per_s, ns): &(f64, f64)| Point {
            pause_ns: 5,
            cell: cell(0, Some(*ns), 2),
            p90_ns: None,
            load: Some(figure(*gb_per_s)),
        };
        path.curves = vec![Curve { kernel: Kernel::Read, variant: None, points: points.iter().map(point).collect() }];
        let report = report(vec![path]);
        let page = loaded_page(&report);
        tidy(&page)?;
        let strokes = page.children.iter().flat_map(|child| child.strokes.iter().map(move |stroke| (child, stroke)));
        for (frame, stroke) in strokes {
            for (x, y) in &stroke.points {
                prop_assert!(*x >= frame.area.x && *x <= frame.area.right(), "{x}");
                prop_assert!(*y >= frame.area.y && *y <= frame.area.bottom(), "{y}");
            }
        }
        prop_assert!(roxmltree::Document::parse(&loaded_svg(&report, Theme::Light)).is_ok());
        for line in text::loaded(&report, &Style::plain(60)).lines() {
            prop_assert!(line.chars().count() <= 60, "{line}");
        }
    }

    #[test]
    fn any_text_is_no_document_or_a_whole_one(text in any::<String>(), cut in 0..4000_usize) {
        prop_assert!(read(&text).is_err());
        let whole = json::loaded(&one_node());
        let cut = cut.min(whole.len() - 2);
        prop_assert_eq!(read(&whole[..cut]).is_err(), true);
    }
}
