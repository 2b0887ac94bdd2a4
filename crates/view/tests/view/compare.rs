//! Suites and their comparison as text, JSON, lines with commas, and pictures.

use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use nodewise_experiment::compare::{Comparison, Verdict};
use nodewise_experiment::executor::Residency;
use nodewise_experiment::suite::definition::Definition;
use nodewise_experiment::suite::parse::parse;
use nodewise_experiment::suite::session::{ArmRecord, CaseRecord, End, Sample, Session, Skipped};
use nodewise_machine::conditions::Conditions;
use nodewise_machine::{Bytes, NodeId};
use nodewise_stats::Direction;
use nodewise_stats::random::Random;
use nodewise_view::digest::compare::Shown;
use nodewise_view::svg::compare::compare_page;
use nodewise_view::svg::{Theme, compare_svg};
use nodewise_view::{Style, csv, json, text};
use proptest::prelude::{
    Just, ProptestConfig, Strategy, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest,
};

use crate::golden::check as golden;
use crate::picture::tidy;

/// A table of the articles, as it was recorded.
fn recorded(name: &str) -> Session {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../suites/recorded").join(name);
    let text = std::fs::read_to_string(path).expect("the recorded tables are in the repository");
    json::suite::read(&text).expect("they are sessions")
}

fn article(board: &str) -> (Session, Session, Comparison) {
    let (without, with) =
        (recorded(&format!("{board}-without.json")), recorded(&format!("{board}-with.json")));
    let comparison = Comparison::between(&without, &with);
    (without, with, comparison)
}

/// The change of a row in whole percent, as the articles print it; `None` where it is missing.
fn percents(comparison: &Comparison, threads: u32) -> Vec<(&str, Option<i32>)> {
    let rows = comparison.tables[0].rows.iter().filter(|row| row.threads == threads);
    let percent = |ratio: f64| ((ratio - 1.0) * 100.0).round() as i32;
    rows.map(|row| (row.benchmark.as_str(), row.change.map(|change| percent(change.ratio)))).collect()
}

fn means(comparison: &Comparison) -> Vec<(u32, usize, String)> {
    let means = comparison.tables[0].means.iter();
    means.map(|mean| (mean.threads, mean.rows, format!("{:.2}", (mean.ratio - 1.0) * 100.0))).collect()
}

#[test]
fn the_table_of_the_raspberry_pi_4_comes_out_with_its_geometric_means() {
    let (_, _, comparison) = article("pi4");
    let rows = |values: [Option<i32>; 8]| {
        let names = ["Geekbench", "STREAM add", "C compile", "HPL", "bzip3", "pigz", "zstd", "xz"];
        names.into_iter().zip(values).collect::<Vec<_>>()
    };
    assert_eq!(
        percents(&comparison, 1),
        rows([Some(1), Some(-1), None, Some(2), Some(9), Some(0), Some(1), Some(2)])
    );
    assert_eq!(
        percents(&comparison, 4),
        rows([Some(8), Some(7), Some(4), Some(4), Some(12), Some(-6), Some(36), Some(7)])
    );
    assert_eq!(means(&comparison), [(1, 7, "1.96".to_owned()), (4, 8, "8.46".to_owned())]);
}

#[test]
fn the_rows_that_the_table_of_the_raspberry_pi_5_lacks_are_named() {
    let (_, _, comparison) = article("pi5");
    assert_eq!(means(&comparison), [(1, 5, "8.22".to_owned()), (4, 6, "36.45".to_owned())]);
    let missing = comparison.tables[0].rows.iter().filter_map(|row| match &row.verdict {
        Verdict::Missing(why) => Some((row.benchmark.as_str(), row.threads, why.as_str())),
        _ => None,
    });
    assert_eq!(
        missing.collect::<Vec<_>>(),
        [
            ("C compile", 1, "the article's table has no figure here"),
            ("zstd", 1, "the article's table lacks this row"),
            ("zstd", 4, "the article's table lacks this row; its text says +164 %"),
            ("xz", 1, "the article's table lacks this row"),
            ("xz", 4, "the article's table lacks this row"),
        ]
    );
    // Both boards have the same rows: what one lacks is said, not left out.
    let rows = |comparison: &Comparison| {
        comparison.tables[0].rows.iter().map(|row| (row.benchmark.clone(), row.threads)).collect::<Vec<_>>()
    };
    assert_eq!(rows(&comparison), rows(&article("pi4").2));
}

/// Where both tables of the article have a row they should agree; what they say is reported in
/// `suites/recorded/README.md`.
#[test]
fn the_second_table_comes_out_with_its_percentages_and_against_the_first() {
    let second = |board: &str| article(&format!("{board}-second")).2;
    let all = |comparison: &Comparison, threads: u32| {
        percents(comparison, threads)
            .into_iter()
            .map(|(name, gain)| (name.to_owned(), gain))
            .collect::<Vec<_>>()
    };
    let rows = |gains: &[(&str, Option<i32>)]| {
        gains.iter().map(|(name, gain)| ((*name).to_owned(), *gain)).collect::<Vec<_>>()
    };
    let (pi4, pi5) = (second("pi4"), second("pi5"));
    assert_eq!(all(&pi4, 4), rows(&[("Geekbench 6", Some(38)), ("sysbench cpu", Some(25))]));
    assert_eq!(all(&pi4, 1), rows(&[("Geekbench 6", None)]));
    assert_eq!(all(&pi5, 4), rows(&[("Geekbench 6", Some(46)), ("sysbench cpu", Some(31))]));
    assert_eq!(all(&pi5, 1), rows(&[("Geekbench 6", Some(6))]));
    let missing = pi4.tables[0].rows.iter().find_map(|row| match &row.verdict {
        Verdict::Missing(why) => Some(why.as_str()),
        _ => None,
    });
    assert_eq!(missing, Some("the article has no figure here but a range: 0 to 4 %"));
    // No memory moves in it, and a single figure is not evidence: nothing of this is called a gain.
    for row in pi4.tables[0].rows.iter().chain(&pi5.tables[0].rows) {
        assert_eq!(row.memory_traffic, row.benchmark != "sysbench cpu");
        assert!(!matches!(row.verdict, Verdict::Better), "{row:?}");
    }
    let first = |board: &str| all(&article(board).2, 4)[0].1;
    assert_eq!((first("pi4"), first("pi5")), (Some(8), Some(46)), "38 % and 46 % in the second");
    let nodes = |name: &str| recorded(name).settings["nodes"].clone();
    assert_eq!(["pi5-with.json", "pi5-second-with.json"].map(nodes), ["8", "2"], "for the same 46 %");
}

#[test]
fn the_tables_of_the_articles_are_printed() {
    for board in ["pi4", "pi5", "pi4-second", "pi5-second"] {
        let (without, with, comparison) = article(board);
        let shown = Shown { before: &without, after: Some(&with), comparison: &comparison };
        for columns in [60, 80] {
            let text = text::compare::compare(&shown, &Style::plain(columns));
            assert!(text.lines().all(|line| line.chars().count() <= columns), "{text}");
            golden(&format!("compare-{board}-{columns}"), text);
        }
    }
}

/// A session with drawn values: what a machine could have left.
fn drawn(gain: f64, noise: f64, placements: usize, seed: u64) -> Session {
    let mut random = Random::new(seed);
    let mut arm = |mean: f64, replicates: u8| {
        let mut samples = Vec::new();
        for round in 1..=8 {
            for replicate in 0..replicates {
                let value = mean * (noise * random.normal()).exp();
                samples.push(Sample { round, replicate, value, steal_share: Some(0.02) });
            }
        }
        let by_node = [(NodeId::new(0), Bytes::from_mib(30)), (NodeId::new(1), Bytes::from_mib(10))].into();
        ArmRecord { samples, failed: None, residency: Some(Residency { by_node }) }
    };
    let mut cases = Vec::new();
    for (name, unit, direction, memory_traffic) in [
        ("STREAM add", "GB/s", Direction::HigherIsBetter, true),
        ("zstd", "s", Direction::LowerIsBetter, true),
        ("sysbench cpu", "1/s", Direction::HigherIsBetter, false),
    ] {
        for threads in [1, 4] {
            let change = if threads == 1 || !memory_traffic { 1.0 } else { gain };
            let change = if direction == Direction::LowerIsBetter { 1.0 / change } else { change };
            let mut arms = vec![arm(10.0 * if placements == 1 { change } else { 1.0 }, 2)];
            arms.extend((1..placements).map(|_| arm(10.0 * change, 1)));
            cases.push(CaseRecord {
                benchmark: name.to_owned(),
                threads,
                unit: unit.to_owned(),
                direction,
                memory_traffic,
                definition: Some(Definition {
                    command: name.to_owned(),
                    prepare: None,
                    prepare_each: None,
                    metric: "wall".to_owned(),
                    inputs: Default::default(),
                }),
                arms,
            });
        }
    }
    Session {
        suite: "drawn".to_owned(),
        origin: None,
        conditions: Conditions {
            cpu_model: Some("Example CPU 9000".to_owned()),
            governors: vec!["performance".to_owned()],
            ..Conditions::default()
        },
        tools: Default::default(),
        settings: [("nodes".to_owned(), if gain == 1.0 { "1" } else { "8" }.to_owned())].into(),
        seed,
        rounds: 8,
        end: End::Interrupted,
        took: Duration::from_millis(1234),
        placements: ["default", "interleave all"][..placements]
            .iter()
            .map(|name| (*name).to_owned())
            .collect(),
        cases,
        skipped: vec![Skipped {
            benchmark: "bzip3".to_owned(),
            threads: None,
            why: "bzip3 is not installed: apt-get install bzip3".to_owned(),
        }],
    }
}

#[test]
fn a_comparison_says_what_differs_what_changed_and_what_did_not() {
    let (before, after) = (drawn(1.0, 0.004, 1, 1), drawn(1.2, 0.004, 1, 2));
    let comparison = Comparison::between(&before, &after);
    let shown = Shown { before: &before, after: Some(&after), comparison: &comparison };
    for columns in [60, 100] {
        golden(
            &format!("compare-sessions-{columns}"),
            text::compare::compare(&shown, &Style::plain(columns)),
        );
    }
}

#[test]
fn placements_are_shown_with_where_their_pages_were() {
    let session = drawn(0.9, 0.004, 2, 3);
    let comparison = Comparison::from_placements(&session);
    let shown = Shown { before: &session, after: None, comparison: &comparison };
    golden("compare-placements-80", text::compare::compare(&shown, &Style::plain(80)));
}

#[test]
fn a_session_is_shown_with_its_medians_and_what_was_not_run() {
    golden("compare-session-80", text::compare::session(&drawn(1.0, 0.004, 1, 1), &Style::plain(80)));
}

#[test]
fn a_benchmark_that_has_changed_itself_is_named_with_how_and_gets_no_verdict() {
    let (mut before, mut after) = (drawn(1.0, 0.004, 1, 1), drawn(1.2, 0.004, 1, 2));
    for case in after.cases.iter_mut().filter(|case| case.benchmark == "zstd") {
        case.definition.as_mut().unwrap().command = "zstd -9".to_owned();
    }
    let comparison = Comparison::between(&before, &after);
    let shown = Shown { before: &before, after: Some(&after), comparison: &comparison };
    let text = text::compare::compare(&shown, &Style::plain(100));
    for expected in [
        "not compared\n",
        "Changed  not compared: not the machine alone has changed, but what it ran\n",
        "  zstd, 4 threads: its command was \"zstd\" and is \"zstd -9\"\n",
    ] {
        assert!(text.contains(expected), "{expected} is not in\n{text}");
    }
    let is_row = |line: &&str| line.starts_with("  zstd ") && line.matches("changed").count() == 2;
    assert!(text.lines().find(is_row).is_some(), "{text}");
    assert!(!text.contains("saved without"), "{text}");
    let document: serde_json::Value = serde_json::from_str(&json::compare(&shown)).unwrap();
    let rows = document["tables"][0]["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["name"] == "zstd").unwrap();
    assert_eq!((&row["verdict"], row["change"].is_null()), (&"changed".into(), true));
    assert_eq!(row["why"], "its command was \"zstd\" and is \"zstd -9\"");
    assert!(csv::compare(&comparison).contains(",changed\n"));
    // What was saved without definitions is compared, with a note.
    before.cases.iter_mut().for_each(|case| case.definition = None);
    let comparison = Comparison::between(&before, &after);
    let shown = Shown { before: &before, after: Some(&after), comparison: &comparison };
    let text = text::compare::compare(&shown, &Style::plain(200));
    assert!(text.contains("before: saved without its commands: whether the benchmarks"), "{text}");
    assert!(!text.contains("changed  "), "{text}");
}

#[test]
fn what_was_saved_before_definitions_were_noted_is_still_read() {
    let mut session = drawn(1.0, 0.004, 1, 1);
    let mut old: serde_json::Value = serde_json::from_str(&json::suite::suite(&session)).unwrap();
    assert_eq!(old["benchmarks"][0]["definition"]["command"], "STREAM add");
    for case in old["benchmarks"].as_array_mut().unwrap() {
        case.as_object_mut().unwrap().remove("definition").unwrap();
    }
    session.cases.iter_mut().for_each(|case| case.definition = None);
    assert_eq!(json::suite::read(&old.to_string()).unwrap(), session);
}

#[test]
fn a_suite_is_listed_with_what_is_missing() {
    let suite = parse(
        "title = \"two\"\nabout = \"for a test\"\n[[benchmark]]\nname = \"a\"\nabout = \"does a\"\ncommand = \"a {threads}\"\n\
         threads = [1, \"all\"]\n[[benchmark]]\nname = \"b\"\ncommand = \"b\"\nmetric = \"([0-9]+)\"\nunit = \"MB/s\"\nbetter = \"higher\"\n",
    )
    .unwrap();
    let missing = [None, Some("needs b: apt-get install b".to_owned())];
    let text = text::compare::list(&suite, &missing, &[None, None], &Style::plain(60));
    assert_eq!(
        text,
        "two: for a test\n\n  benchmark  threads  compares  what it does\n  a          1, all   time      does a\n  \
         b          all      MB/s      needs b: apt-get install b\n"
    );
    let installed = [Some("a2 1.0-1".to_owned()), None];
    let text = text::compare::list(&suite, &missing, &installed, &Style::plain(90));
    assert!(text.contains("what it does                installed\n"), "{text}");
    assert!(text.contains("does a                      a2 1.0-1\n"), "{text}");
}

#[test]
fn text_json_and_commas_say_the_same() {
    let (before, after) = (drawn(1.0, 0.004, 1, 1), drawn(1.2, 0.004, 1, 2));
    let comparison = Comparison::between(&before, &after);
    let shown = Shown { before: &before, after: Some(&after), comparison: &comparison };
    let document: serde_json::Value = serde_json::from_str(&json::compare(&shown)).unwrap();
    assert_eq!(document["schema"], "nodewise.compare/1");
    assert_eq!(document["lost"], false);
    assert_eq!(document["differences"][0]["what"], "nodes");
    let lines = csv::compare(&comparison);
    let text = text::compare::compare(&shown, &Style::plain(120));
    let table = &comparison.tables[0];
    for (at, row) in table.rows.iter().enumerate() {
        let shown = &document["tables"][0]["rows"][at];
        assert_eq!(shown["name"], row.benchmark.as_str());
        assert_eq!(shown["threads"], row.threads);
        let change = row.change.unwrap();
        assert_eq!(shown["change"]["speed_ratio"].as_f64(), Some(change.ratio));
        assert_eq!(shown["change"]["speed_ratio_interval_95"][0].as_f64(), change.interval.map(|i| i.low));
        let fields: Vec<&str> = lines.lines().nth(at + 1).unwrap().split(',').collect();
        assert_eq!((fields[2], fields[7]), (row.benchmark.as_str(), change.ratio.to_string().as_str()));
        assert_eq!(shown["verdict"].as_str(), Some(*fields.last().unwrap()));
        let words = nodewise_view::digest::compare::verdict_words(row);
        assert!(text.contains(words.split_once(' ').map_or(words.as_str(), |(first, _)| first)), "{words}");
    }
    let mean = &document["tables"][0]["geometric_means"][1];
    assert_eq!(mean["speed_ratio"].as_f64(), Some(table.means[1].ratio));
    assert_eq!(csv::suite(&before).lines().count(), 1 + 6 * 16);
}

#[test]
fn a_picture_keeps_the_rules_of_pictures() {
    for (name, (before, after)) in [
        ("articles", (recorded("pi5-without.json"), recorded("pi5-with.json"))),
        ("drawn", (drawn(1.0, 0.004, 1, 1), drawn(1.2, 0.2, 1, 2))),
    ] {
        let comparison = Comparison::between(&before, &after);
        let shown = Shown { before: &before, after: Some(&after), comparison: &comparison };
        tidy(&compare_page(&shown)).unwrap_or_else(|error| panic!("{name}: {error}"));
        for theme in [Theme::Light, Theme::Dark, Theme::Auto] {
            let svg = compare_svg(&shown, theme);
            roxmltree::Document::parse(&svg).expect("the picture is well-formed");
            assert!(svg.contains("geometric mean"), "{name}");
        }
    }
}

fn refused(part: &str, replacement: &str, expected: &str) {
    let written = json::suite::suite(&drawn(1.0, 0.004, 1, 1));
    assert!(written.contains(part), "{part}");
    let error = json::suite::read(&written.replacen(part, replacement, 1)).expect_err(replacement);
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn files_that_are_no_session_are_refused_with_a_reason() {
    refused(
        "nodewise.suite/1",
        "nodewise.tune/1",
        "its schema is \"nodewise.tune/1\": expected nodewise.suite/1",
    );
    refused("\"better\": \"higher\"", "\"better\": \"more\"", "\"STREAM add\": better is \"more\"");
    refused("\"round\": 1,", "\"round\": 0,", "\"STREAM add\": run 0 of round 0: expected run 0 or 1");
    refused("\"round\": 2,", "\"round\": 1,", "\"STREAM add\": run 0 of round 1 is listed twice");
    refused("\"threads\": 4", "\"threads\": 1", "\"STREAM add\" with 1 threads is listed twice");
    refused("\"threads\": 1,", "\"threads\": 0,", "threads is 0: expected 1 to 8192");
    refused("\"seed\"", "\"sead\"", "unknown field `sead`");
    refused("\"default\"", "\"a\", \"b\"", "\"STREAM add\" has 1 arms: expected 2, one per placement");
    refused(
        "\"interrupted\"",
        "\"soon\"",
        "end is \"soon\": expected completed, interrupted or budget_spent",
    );
    refused("\"took_s\": 1.234", "\"took_s\": -1", "took_s is -1: expected a time");
    assert!(json::suite::read("[").unwrap_err().starts_with("EOF while parsing"));
}

fn any_session() -> impl Strategy<Value = Session> {
    let sample = (1e-9..1e9f64, prop::option::of(0.0..1.0f64));
    let samples = prop::collection::vec(sample, 0..6).prop_map(|values| {
        let one = |(at, (value, steal_share))| Sample {
            round: at as u32 / 2 + 1,
            replicate: at as u8 % 2,
            value,
            steal_share,
        };
        values.into_iter().enumerate().map(one).collect::<Vec<_>>()
    });
    let pages =
        prop::option::of(prop::collection::btree_map(0u32..64, 0u64..1 << 40, 0..3)).prop_map(|pages| {
            let node = |(node, size)| (NodeId::new(node), Bytes::new(size));
            pages.map(|pages| Residency { by_node: pages.into_iter().map(node).collect() })
        });
    let arm = (samples, prop::option::of(any::<String>()), pages)
        .prop_map(|(samples, failed, residency)| ArmRecord { samples, failed, residency });
    let texts = (any::<String>(), prop::option::of(any::<String>()), any::<String>());
    let inputs = prop::collection::btree_map(any::<String>(), any::<String>(), 0..3);
    let definition = (texts, inputs).prop_map(|((command, prepare, metric), inputs)| {
        let prepare_each = prepare.clone().filter(|text| text.len() > 9);
        Definition { command, prepare, prepare_each, metric, inputs }
    });
    let named = (any::<String>(), prop::option::of(definition));
    let case = (named, 1u32..99, any::<bool>(), any::<bool>(), arm.clone(), arm);
    let cases = prop::collection::vec(case, 0..5).prop_map(|cases| {
        let mut records: Vec<CaseRecord> = Vec::new();
        for ((benchmark, definition), threads, up, memory_traffic, first, second) in cases {
            let direction = if up { Direction::HigherIsBetter } else { Direction::LowerIsBetter };
            if !records.iter().any(|record| record.benchmark == benchmark) {
                let arms = vec![first, second];
                records.push(CaseRecord {
                    benchmark,
                    threads,
                    unit: "x".to_owned(),
                    direction,
                    memory_traffic,
                    definition: definition.clone(),
                    arms,
                });
            }
        }
        records
    });
    let end = prop_oneof![Just(End::Completed), Just(End::Interrupted), Just(End::BudgetSpent)];
    let settings = prop::collection::btree_map(any::<String>(), any::<String>(), 0..4);
    let times = (any::<u32>(), any::<u32>());
    let tools = prop::collection::btree_map(any::<String>(), prop::option::of(any::<String>()), 0..4);
    (cases, (settings, tools), end, any::<u64>(), times, prop::option::of(any::<String>())).prop_map(
        |(cases, (settings, tools), end, seed, (began, took), origin)| Session {
            suite: "drawn".to_owned(),
            origin,
            conditions: Conditions {
                began: Some(UNIX_EPOCH + Duration::from_secs(began.into())),
                load: Some(f64::from(took) / 7.0),
                ..Conditions::default()
            },
            settings,
            tools,
            seed,
            rounds: 3,
            end,
            took: Duration::from_micros(took.into()),
            placements: vec!["default".to_owned(), "b".to_owned()],
            cases,
            skipped: vec![Skipped {
                benchmark: "z".to_owned(),
                threads: Some(2),
                why: "not there".to_owned(),
            }],
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_session_is_read_back_as_it_was_written(session in any_session()) {
        let written = json::suite::suite(&session);
        let read = json::suite::read(&written).unwrap();
        prop_assert_eq!(&read, &session);
        prop_assert_eq!(json::suite::suite(&read), written);
    }

    #[test]
    fn any_two_sessions_are_shown_in_any_width(
        before in any_session(), after in any_session(), columns in 40usize..160,
    ) {
        let comparison = Comparison::between(&before, &after);
        let shown = Shown { before: &before, after: Some(&after), comparison: &comparison };
        let text = text::compare::compare(&shown, &Style::plain(columns));
        prop_assert!(text.chars().all(|c| c == '\n' || !c.is_control()));
        prop_assert!(roxmltree::Document::parse(&compare_svg(&shown, Theme::Auto)).is_ok());
        tidy(&compare_page(&shown))?;
        let of_placements = Comparison::from_placements(&before);
        let shown = Shown { before: &before, after: None, comparison: &of_placements };
        prop_assert!(serde_json::from_str::<serde_json::Value>(&json::compare(&shown)).is_ok());
        prop_assert!(!text::compare::session(&before, &Style::plain(columns)).is_empty());
    }

    #[test]
    fn any_text_is_survived(text in any::<String>(), cut in 0usize..2000) {
        prop_assert!(json::suite::read(&text).is_err());
        let written = json::suite::suite(&drawn(1.0, 0.1, 1, 1));
        prop_assert!(json::suite::read(&written[..cut.min(written.len() - 3)]).is_err());
    }
}
