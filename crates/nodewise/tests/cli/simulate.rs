//! `nodewise simulate`: scenarios that come with it, and scenarios of one's own.

use std::fs;

use serde_json::Value;

use crate::nodewise::{command, golden, output, run, wider};

const SHIPPED: [&str; 6] = ["database", "database-interleaved", "jvm", "hpc", "pi5", "cxl"];

fn json(arguments: &[&str]) -> Value {
    run(&[&["simulate", "--json"], arguments].concat()).ok_json()
}

/// Pages that found no room, by program.
fn missing(document: &Value) -> Vec<(String, u64)> {
    let steps = document["steps"].as_array().unwrap().iter();
    steps
        .filter_map(|step| Some((step["program"].as_str()?.to_owned(), step["missing_pages"].as_u64()?)))
        .collect()
}

#[test]
fn text_is_what_a_person_accepted() {
    for columns in ["60", "120"] {
        let of = |name: &&str| output(command(["simulate", name]).env("COLUMNS", columns)).ok();
        golden(&format!("simulate-{columns}"), SHIPPED.iter().map(of).collect::<Vec<_>>().join("\n"));
    }
}

#[test]
fn every_scenario_fits_any_width_and_can_be_written_out_and_played_again() {
    let folder = tempfile::tempdir().unwrap();
    for name in SHIPPED {
        for columns in [60, 80, 120] {
            let text = output(command(["simulate", name]).env("COLUMNS", columns.to_string())).ok();
            assert_eq!(wider(&text, columns), [""; 0], "{name} at {columns} columns");
        }
        let file = folder.path().join("scenario.toml");
        fs::write(&file, run(&["simulate", name, "--source"]).ok()).unwrap();
        let again = run(&["simulate", file.to_str().unwrap()]).ok();
        assert_eq!(again, run(&["simulate", name]).ok(), "{name}");
    }
}

#[test]
fn interleaving_leaves_room_where_the_default_does_not() {
    let of = |name: &str| missing(&json(&[name]));
    let trapped = of("database");
    assert_eq!(trapped.len(), 1);
    // 4 GiB were asked for, and node 0 was full.
    assert!(trapped[0].0 == "backup" && trapped[0].1 > 3 << 18, "{trapped:?}");
    assert_eq!(of("database-interleaved"), []);
    assert_eq!(of("hpc").iter().map(|(program, _)| program.as_str()).collect::<Vec<_>>(), ["rank 3"]);
}

#[test]
fn another_machine_and_another_kernel_can_be_named() {
    let large = "2x(16c 128G); dist=21";
    assert_eq!(missing(&json(&["database", "--machine", large])), []);
    let hits = |kernel: &str| {
        let document = json(&["cxl", "--kernel", kernel]);
        let nodes = document["nodes"].as_array().unwrap().iter();
        nodes.map(|node| node["interleave_hit"].as_u64().unwrap()).sum::<u64>()
    };
    assert!(hits("6.12") == 0 && hits("6.16") > 0);
}

#[test]
fn every_page_is_with_a_program_or_free() {
    for name in SHIPPED {
        let document = json(&[name]);
        let sum = |pages: &Value| -> u64 {
            pages.as_array().unwrap().iter().map(|one| one["pages"].as_u64().unwrap()).sum()
        };
        let all = document["steps"].as_array().unwrap().iter().map(|step| {
            let programs = step["programs"].as_array().unwrap().iter();
            sum(&step["free"]) + programs.map(|program| sum(&program["memory"])).sum::<u64>()
        });
        let all: Vec<u64> = all.collect();
        assert!(all.windows(2).all(|pair| pair[0] == pair[1]), "{name}: {all:?}");
    }
}

#[test]
fn the_picture_goes_to_the_file_that_was_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("timeline.svg");
    let ran = run(&["simulate", "cxl", "--svg", file.to_str().unwrap()]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{}", ran.stderr);
    let svg = fs::read_to_string(&file).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("analytics"), "{svg}");
}
