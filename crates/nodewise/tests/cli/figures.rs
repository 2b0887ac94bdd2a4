//! Figures that other tools printed, in `latency`, `bandwidth` and `report`.

use std::fs;
use std::path::Path;

use crate::nodewise::{run, wrong};

/// A recorded output.
fn sample(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/figures");
    folder.join(name).to_str().unwrap().to_owned()
}

#[test]
fn each_verb_shows_its_part_of_an_output_in_every_form() {
    let mlc = sample("mlc-3.10-two-nodes.txt");
    let folder = tempfile::tempdir().unwrap();
    let picture = folder.path().join("a.svg");
    let latency = run(&["latency", "--from", &mlc, "--svg", picture.to_str().unwrap()]).ok();
    assert!(
        latency.starts_with("Figures of Intel Memory Latency Checker 3.10  29 figures in 5 tables\n"),
        "{latency}"
    );
    assert!(latency.contains("140") && !latency.contains("ALL Reads"), "{latency}");
    assert!(fs::read_to_string(&picture).unwrap().contains("CPUs of row, memory of column"));
    let bandwidth = run(&["bandwidth", "--from", &mlc, "--json"]).ok_json();
    assert_eq!(bandwidth["schema"], "nodewise.figures/1");
    assert_eq!(bandwidth["tables"][0]["figures"][0]["gb_per_s"], 225.6308);
    assert_eq!(bandwidth["tables"].as_array().unwrap().len(), 2);
    let lines = run(&["bandwidth", "--from", &sample("stream-5.10.txt"), "--csv"]).ok();
    assert_eq!(lines.lines().last(), Some("bandwidth,list,,,,,Triad,,,6.1253"), "{lines}");
    // What is written is read back.
    let saved = folder.path().join("saved.json");
    let document = run(&["latency", "--from", &mlc, "--json"]).ok();
    fs::write(&saved, &document).unwrap();
    assert_eq!(run(&["latency", "--from", saved.to_str().unwrap()]).ok(), latency);
    assert_eq!(run(&["latency", "--from", saved.to_str().unwrap(), "--json"]).ok(), document);
}

#[test]
fn an_output_without_what_was_asked_for_is_wrong_usage() {
    let folder = tempfile::tempdir().unwrap();
    let written = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let stream = sample("stream-5.10.txt");
    wrong(
        "latency",
        &["--from", &stream],
        "it is an output of STREAM without latencies: nodewise bandwidth --from",
    );
    let four = written("a", "Measuring idle latencies (in ns)...\nNuma node 0\n0 90\n");
    wrong("bandwidth", &["--from", &four], "without bandwidths: nodewise latency --from shows its latencies");
    let cut = written(
        "b",
        "Intel(R) Memory Latency Checker - v3.9\nMeasuring idle latencies (in ns)...\nNuma node 0\n0 \u{1b}[2J\n",
    );
    wrong("latency", &["--from", &cut], "line 4: expected a node and numbers above 0, found \"0 \\x1b[2J\"");
    wrong("latency", &["--from", &written("c", "hello")], "is not a result of nodewise latency: ");
    wrong(
        "show",
        &["--machine", &stream],
        "is an output of STREAM, which has measured figures and no machine",
    );
    wrong("latency", &["--from", &stream, "--quick"], "cannot be used together");
}

#[test]
fn a_report_has_a_page_of_an_output_and_gives_its_document_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let files = [sample("mlc-3.11a-eight-nodes.txt"), sample("perf-bench-mem.txt")];
    let ran = run(&["report", "--from", &files[0], "--from", &files[1], "-o", &path("a.html")]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let page = fs::read_to_string(path("a.html")).unwrap();
    assert!(
        page.contains("Intel Memory Latency Checker 3.11a") && page.contains("perf bench mem memcpy"),
        "{page}"
    );
    run(&["report", "--extract", &path("a.html"), "--into", &path("out")]).ok();
    let document = path("out/mlc-3-11a-eight-nodes.json");
    let shown = run(&["bandwidth", "--from", &document]).ok();
    assert_eq!(shown, run(&["bandwidth", "--from", &files[0]]).ok());
}
