//! Figures that other tools printed, as text, JSON, lines with commas, pictures and pages: all say the same.

use std::path::Path;

use nodewise_measure::figures::{FigureTable, ToolFigures};
use nodewise_view::json::Saved;
use nodewise_view::svg::figures::figures_page;
use nodewise_view::svg::{Theme, figures_svg};
use nodewise_view::{Style, csv, json, report, text};

use crate::golden::check as golden;
use crate::picture::tidy;

const SAMPLES: [&str; 7] = [
    "mlc-3.10-two-nodes.txt",
    "mlc-3.11a-eight-nodes.txt",
    "mlc-3.11b-four-nodes.txt",
    "mlc-3.5-one-node.txt",
    "perf-bench-mem.txt",
    "perf-stat.txt",
    "stream-5.10.txt",
];

fn read(name: &str) -> ToolFigures {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/figures").join(name);
    let text = std::fs::read_to_string(path).expect("the sample is there");
    ToolFigures::parse(&text).expect("it is known").expect("it has figures")
}

fn shown(figures: &ToolFigures, width: usize) -> String {
    text::tool_figures(figures, &Style::plain(width))
}

#[test]
fn texts_are_what_a_person_accepted() {
    golden("figures-mlc", shown(&read("mlc-3.10-two-nodes.txt"), 80));
    golden("figures-stream", shown(&read("stream-5.10.txt"), 80));
}

#[test]
fn a_document_is_read_back_and_written_again_to_the_letter() {
    for name in SAMPLES {
        let figures = read(name);
        let document = json::tool_figures(&figures);
        let again = json::figures::read(&Saved::from_json(&document).unwrap()).unwrap();
        assert_eq!(again, figures, "{name}");
        assert_eq!(json::tool_figures(&again), document, "{name}");
    }
}

#[test]
fn every_form_has_every_figure() {
    for name in SAMPLES {
        let figures = read(name);
        let lines = csv::tool_figures(&figures);
        let all: usize = figures.groups.iter().map(|group| group.table.len()).sum();
        assert_eq!(lines.lines().count(), all + 1, "{name}");
        let wide = shown(&figures, 200);
        for group in &figures.groups {
            assert!(wide.contains(&group.title), "{name}: {}: {wide}", group.title);
            if let FigureTable::List { figures, .. } = &group.table {
                assert!(
                    figures
                        .iter()
                        .all(|(name, value)| wide.contains(name) && lines.contains(&value.to_string()))
                );
            }
        }
        for problem in &figures.problems {
            assert!(wide.contains(&format!("not read: line {}", problem.line)), "{wide}");
        }
        for width in [60, 80, 120] {
            let text = shown(&figures, width);
            assert!(
                text.lines().all(|line| line.chars().count() <= width),
                "{name} in {width} columns: {text}"
            );
        }
    }
}

#[test]
fn pictures_are_tidy_and_well_formed() {
    for name in SAMPLES {
        tidy(&figures_page(&read(name)).1).unwrap_or_else(|error| panic!("{name}: {error}"));
        roxmltree::Document::parse(&figures_svg(&read(name), Theme::Auto)).unwrap();
    }
}

#[test]
fn a_report_has_a_page_of_them() {
    let page = report::page("mlc", &json::tool_figures(&read("mlc-3.10-two-nodes.txt"))).unwrap();
    assert_eq!(page.heading, "Figures of another tool");
    assert_eq!(page.parts.len(), 3);
}

#[test]
fn words_from_an_output_cannot_drive_a_terminal() {
    let mut figures = read("stream-5.10.txt");
    figures.version = Some("\u{1b}[2J".to_owned());
    figures.groups[0].title = "\u{1b}]0;x\u{7}".to_owned();
    figures.groups[0].notes.push("\u{1b}[2J".to_owned());
    if let FigureTable::List { figures, .. } = &mut figures.groups[0].table {
        figures[0].0 = "\u{1b}[31m,\"<b>".to_owned();
    }
    for form in [shown(&figures, 80), csv::tool_figures(&figures), figures_svg(&figures, Theme::Auto)] {
        assert!(!form.contains('\u{1b}'), "{form}");
    }
    roxmltree::Document::parse(&figures_svg(&figures, Theme::Auto)).unwrap();
}

#[test]
fn what_is_no_document_is_refused_with_the_field_and_what_would_be_right() {
    let document = json::tool_figures(&read("mlc-3.10-two-nodes.txt"));
    let check = |from: &str, to: &str, expected: &str| {
        assert!(document.contains(from), "{from}");
        let changed = document.replacen(from, to, 1);
        let refused = json::figures::read(&Saved::from_json(&changed).unwrap()).unwrap_err();
        assert!(refused.contains(expected), "{refused}");
    };
    check("\"mlc\"", "\"abacus\"", "tool is \"abacus\": expected mlc, stream, perf");
    check(
        "\"latency_ns\": 80.8",
        "\"latency_ns\": -1",
        "tables[0]: cells[0]: latency_ns is -1: expected a number above 0",
    );
    check("\"latency_ns\": 80.8", "\"gb_per_s\": 80.8", "tables[0]: cells[0]: latency_ns is missing");
    check("\"memory_node\": 1", "\"memory_node\": 0", "tables[0]: cells has a pair of nodes twice");
    check("\"memory_node\": 1", "\"memory_node\": 4000000000", "node 4000000000 is beyond");
    check("\"memory_latency\"", "\"weather\"", "unknown variant `weather`");
}
