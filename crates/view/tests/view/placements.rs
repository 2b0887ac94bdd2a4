//! The placements of a study as CSV, as a picture, and read back from JSON.

use std::time::Duration;

use nodewise_experiment::verdict::Analysis;
use nodewise_view::digest::change::change_words;
use nodewise_view::digest::placements::{PlacementChange, PlacementRow, Placements, VerdictKind};
use nodewise_view::json::Saved;
use nodewise_view::svg::tune::tune_page;
use nodewise_view::svg::{Theme, tune_svg};
use nodewise_view::text::Extent;
use nodewise_view::{Style, csv, json, text};

use crate::picture::tidy;
use crate::study::play;

/// The fields of a line of CSV without the quotes around those that hold commas.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut is_quoted = false;
    for one in line.chars() {
        match one {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => fields.push(String::new()),
            one => fields.last_mut().expect("there is a first one").push(one),
        }
    }
    fields
}

#[test]
fn the_csv_has_a_line_for_each_placement_with_what_json_says() {
    let (study, scope, candidates) = play();
    let analysis = Analysis::from_study(&study);
    let json = json::tune(&study, &analysis, &scope, &candidates.left_out, None, &[]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let csv = csv::tune(&Placements::from_study(&study, &analysis, &scope));
    let mut lines = csv.lines();
    let head: Vec<&str> = lines.next().unwrap().split(',').collect();
    let arms = json["arms"].as_array().unwrap();
    assert_eq!(lines.clone().count(), arms.len());
    for (line, arm) in lines.zip(arms) {
        let fields = fields(line);
        assert_eq!(fields.len(), head.len(), "{line}");
        let field = |name: &str| fields[head.iter().position(|head| *head == name).expect(name)].as_str();
        assert_eq!(field("placement"), arm["name"]);
        assert_eq!(field("verdict"), arm["verdict"]);
        assert_eq!((field("metric"), field("unit")), ("wall time", "s"));
        let options: Vec<&str> =
            arm["run_options"].as_array().unwrap().iter().flat_map(|o| o.as_str()).collect();
        assert_eq!(field("run_options"), options.join(" "));
        assert_eq!(field("runs"), arm["summary"]["runs"].as_u64().unwrap_or(0).to_string());
        assert_eq!(field("failures"), arm["failures"].to_string());
        assert_eq!(field("median").parse().ok(), arm["summary"]["median"].as_f64());
        let effect = &arm["effect"];
        for (name, ratio) in [
            ("change_percent", &effect["ratio"]),
            ("interval_low_percent", &effect["ratio_interval_95"][0]),
            ("interval_high_percent", &effect["ratio_interval_95"][1]),
        ] {
            let expected =
                ratio.as_f64().map_or(String::new(), |ratio| format!("{:.3}", (ratio - 1.0) * 100.0));
            let shown = field(name).parse::<f64>().map_or(String::new(), |shown| format!("{shown:.3}"));
            assert_eq!(shown, expected, "{name} of {line}");
        }
    }
    let best = csv.lines().find(|line| line.starts_with("local to node 0,")).unwrap();
    assert!(best.starts_with("local to node 0,--cpunodebind=0 --membind=0,,wall time,s,"), "{best}");
    assert!(best.ends_with(",better"), "{best}");
}

#[test]
fn the_picture_keeps_the_rules_of_pictures_and_says_what_the_table_says() {
    let (mut study, scope, candidates) = play();
    study.conditions.cpu_model = Some("A CPU".to_owned());
    study.conditions.began = Some(std::time::UNIX_EPOCH + Duration::from_secs(1_700_000_000));
    let analysis = Analysis::from_study(&study);
    let placements = Placements::from_study(&study, &analysis, &scope);
    tidy(&tune_page(&placements)).unwrap();
    let text = text::tune(&study, &analysis, &scope, &candidates.left_out, Extent::All, &Style::plain(160));
    for theme in [Theme::Light, Theme::Dark, Theme::Auto] {
        let svg = tune_svg(&placements, theme);
        let document = roxmltree::Document::parse(&svg).expect("the picture is well-formed");
        let texts: Vec<&str> = document.descendants().filter_map(|node| node.text()).collect();
        let all = texts.join("\n");
        assert!(text.contains(&placements.words()), "{text}");
        for words in ["A CPU", "2023-11-14", "6.12", "./solver 'input one.dat'", &placements.words()] {
            assert!(all.contains(words), "{words} is not in {all}");
        }
        assert!(all.contains("use: nodewise run --cpunodebind=0 --membind=0"), "{all}");
        for row in &placements.rows {
            assert!(texts.contains(&row.name.as_str()), "{} is not in {all}", row.name);
            assert!(
                texts.iter().any(|text| row
                    .verdict_words(&placements.metric)
                    .starts_with(text.trim_end_matches("...")))
            );
            let change = row.change.map(|change| change_words(change.ratio, 1));
            assert!(change.is_none_or(|change| all.contains(&change) && text.contains(&change)), "{all}");
        }
    }
}

#[test]
fn a_picture_of_many_placements_is_cut_and_one_of_none_has_no_bars() {
    let (study, scope, _) = play();
    let mut placements = Placements::from_study(&study, &Analysis::from_study(&study), &scope);
    let best = placements.rows[1].clone();
    placements
        .rows
        .extend((0..100).map(|at| PlacementRow { name: format!("{at} {}", "x".repeat(90)), ..best.clone() }));
    tidy(&tune_page(&placements)).unwrap();
    assert!(
        tune_svg(&placements, Theme::Auto)
            .contains(&format!("and {} placements more", placements.rows.len() - 60))
    );
    // A ratio that no scale holds, and a reason longer than its column.
    placements.rows.truncate(2);
    placements.rows[1].change = Some(PlacementChange { ratio: 1e12, ..best.change.unwrap() });
    placements.rows[1].verdict = VerdictKind::Failed;
    placements.rows[1].reason = Some("could not be started: ".repeat(9));
    tidy(&tune_page(&placements)).unwrap();
    // The longest verdict of an ordinary study is whole.
    placements.rows[1].verdict = VerdictKind::TooFewRounds;
    placements.rows[1].reason = Some("10 rounds of the 12 it takes".to_owned());
    assert!(tune_svg(&placements, Theme::Auto).contains("too few rounds: 10 rounds of the 12 it takes<"));
    placements.rows.truncate(1);
    placements.noise = None;
    tidy(&tune_page(&placements)).unwrap();
}

/// Returns why a document is refused after a change to it.
fn wrong(json: &str, change: impl Fn(&mut serde_json::Value)) -> String {
    let mut document: serde_json::Value = serde_json::from_str(json).expect("it is JSON");
    change(&mut document);
    let text = document.to_string();
    Saved::from_json(&text).and_then(|saved| json::tune::read(&saved)).expect_err("it is refused")
}

#[test]
fn the_placements_are_read_back_from_the_json_and_shown_the_same() {
    let (study, scope, candidates) = play();
    let analysis = Analysis::from_study(&study);
    let written = Placements::from_study(&study, &analysis, &scope);
    let json = json::tune(&study, &analysis, &scope, &candidates.left_out, None, &[]);
    let read = json::tune::read(&Saved::from_json(&json).unwrap()).unwrap();
    assert_eq!(read.words(), written.words());
    assert_eq!(tune_svg(&read, Theme::Auto), tune_svg(&written, Theme::Auto));
    // Medians are read to within their last digit.
    for (line, expected) in csv::tune(&read).lines().zip(csv::tune(&written).lines()) {
        for (field, expected) in fields(line).iter().zip(fields(expected)) {
            match (field.parse::<f64>(), expected.parse::<f64>()) {
                (Ok(value), Ok(expected)) => {
                    assert!((value - expected).abs() <= 1e-12 * expected.abs(), "{line}")
                }
                _ => assert_eq!(*field, expected, "{line}"),
            }
        }
    }
    let shown = text::tune::saved(&read, &Style::plain(80));
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    let text = text::tune(&study, &analysis, &scope, &candidates.left_out, Extent::All, &Style::plain(80));
    let rows = |text: &str| -> Vec<String> {
        let is_row = |line: &&str| line.trim_start().starts_with("local to node 0 ");
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        text.lines().filter(is_row).map(words).take(1).collect()
    };
    assert_eq!(rows(&shown), rows(&text), "{shown}");
    assert!(
        shown.starts_with("use: nodewise run --cpunodebind=0 --membind=0 -- ./solver 'input one.dat'"),
        "{shown}"
    );
    assert!(shown.contains("noise: default against itself "), "{shown}");
}

#[test]
fn a_document_that_no_study_leaves_is_refused_with_the_name_of_the_field() {
    let (study, scope, candidates) = play();
    let json = json::tune(&study, &Analysis::from_study(&study), &scope, &candidates.left_out, None, &[]);
    let check = |change: fn(&mut serde_json::Value), expected: &str| {
        let error = wrong(&json, change);
        assert!(error.starts_with(expected), "{error}");
    };
    check(
        |it| it["schema"] = "nodewise.tune/1".into(),
        "its schema is \"nodewise.tune/1\": expected nodewise.tune/2",
    );
    check(|it| it["arms"] = serde_json::json!([]), "arms has no items");
    check(
        |it| it["arms"][1]["verdict"] = "great".into(),
        "arms[1]: verdict is \"great\": expected baseline, ",
    );
    check(|it| it["arms"][1]["effect"]["ratio"] = (-1.0).into(), "arms[1]: ratio is -1");
    check(|it| it["arms"][0]["summary"]["median"] = 0.into(), "arms[0]: median is 0");
    check(
        |it| it["noise"]["ratio_interval_95"] = serde_json::json!([2.0, 1.0]),
        "noise: an interval from 2 to 1",
    );
    check(|it| it["metric"]["kind"] = "luck".into(), "metric: kind is \"luck\"");
    check(|it| it["took_s"] = (-2.0).into(), "took_s is -2");
    check(|it| it["advice"]["arm"] = 99.into(), "advice: arm is missing or beyond ");
    check(|it| it["advice"]["kind"] = "pray".into(), "advice: kind is \"pray\"");
}
