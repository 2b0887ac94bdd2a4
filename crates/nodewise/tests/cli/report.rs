//! `nodewise report`: a file of this machine, of another, of results from elsewhere, and its documents again.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::nodewise::{folder_of, run};

/// The page in a file, after a look at what every report has.
fn page(path: &Path) -> String {
    let page = fs::read_to_string(path).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("Content-Security-Policy"), "{page}");
    page
}

#[test]
fn a_report_of_another_machine_shows_it_and_gives_its_document_back() {
    let folder = tempfile::tempdir().unwrap();
    let (file, into) = (folder.path().join("a.html"), folder.path().join("documents"));
    let shown = (file.to_str().unwrap(), into.to_str().unwrap());
    let spec = "2x(2x(4c 64G)); dist=11,21";
    let ran = run(&["report", "--machine", spec, "-o", shown.0]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{}", ran.stderr);
    assert!(ran.stderr.contains("a.html") && ran.stderr.contains("findings, machine"), "{}", ran.stderr);
    let page = page(&file);
    assert!(page.contains("256 GiB in 4 nodes") && page.contains("<svg id=\"p1-0\""), "{page}");
    run(&["report", "--extract", shown.0, "--into", shown.1]).ok();
    let document = fs::read_to_string(into.join("machine.json")).unwrap();
    let machine: Value = serde_json::from_str(&document).unwrap();
    let expected = run(&["show", "--machine", spec, "--json"]).ok_json();
    assert_eq!(machine["nodes"], expected["nodes"]);
    let again = run(&["show", "--machine", into.join("machine.json").to_str().unwrap(), "--json"]).ok_json();
    assert_eq!(again["nodes"], expected["nodes"]);
    let refused = run(&["report", "--extract", shown.0, "--into", shown.1]);
    assert_eq!(refused.code, Some(3), "{}", refused.stderr);
}

#[test]
fn results_from_elsewhere_become_pages_with_pictures_and_tables() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let latency = run(&["latency", "--quick", "--size=1M", "--rounds=1", "--json"]);
    fs::write(path("Web 7 latency.json"), &latency.stdout).unwrap();
    fs::write(path("doctor.json"), run(&["doctor", "--once", "--json"]).stdout).unwrap();
    let words =
        ["--from", &path("Web 7 latency.json"), "--from", &path("doctor.json"), "-o", &path("a.html")];
    let ran = run(&[&["report"], &words[..]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let page = page(&folder.path().join("a.html"));
    for part in ["<section id=\"web-7-latency\"", "<svg id=", "class=\"data\"", "<section id=\"doctor\""] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(page.find("<section id=\"doctor\"") < page.find("<section id=\"web-7-latency\""));
    run(&["report", "--extract", &path("a.html"), "--into", &path("out")]).ok();
    let document: Value =
        serde_json::from_str(&fs::read_to_string(path("out/web-7-latency.json")).unwrap()).unwrap();
    assert_eq!(document, serde_json::from_str::<Value>(&latency.stdout).unwrap());
}

#[test]
fn this_machine_is_measured_page_by_page() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.html");
    let ran = run(&["report", "--quick", "--with=doctor,latency", "-o", file.to_str().unwrap()]);
    assert!([Some(0), Some(1)].contains(&ran.code), "{}", ran.stderr);
    let page = page(&file);
    assert!(page.contains("<section id=\"latency\"") && page.contains("<section id=\"machine\""), "{page}");
}

#[test]
fn two_reports_are_compared_figure_by_figure() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for name in ["old", "new"] {
        let latency = run(&["latency", "--quick", "--size=1M", "--rounds=6", "--json"]);
        fs::write(path(&format!("{name}.json")), &latency.stdout).unwrap();
    }
    run(&["report", "--from", &path("old.json"), "-o", &path("old.html")]).ok();
    let words =
        ["report", "--from", &path("new.json"), "--against", &path("old.html"), "-o", &path("new.html")];
    run(&words).ok();
    let page = page(&folder.path().join("new.html"));
    assert!(page.contains("<section id=\"changes\"") && page.contains("before and now"), "{page}");
}

#[test]
fn facts_of_the_machine_that_changed_are_in_a_comparison() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    run(&["report", "--machine", "2x(2c 4G)", "-o", &path("old.html")]).ok();
    let words = ["report", "--machine", "2x(2c 8G)", "--against", &path("old.html"), "-o", &path("new.html")];
    run(&words).ok();
    let page = page(&folder.path().join("new.html"));
    let changes = page.split("<section id=\"changes\"").nth(1).unwrap();
    assert!(changes.contains("4 GiB") && changes.contains("8 GiB"), "{changes}");
}

#[test]
fn names_of_a_hostile_machine_are_texts() {
    let evil = "<script>alert(1)</script>";
    let folder = folder_of(&[
        ("sys/devices/system/node/online", "0\n"),
        ("proc/cpuinfo", &format!("processor\t: 0\nmodel name\t: {evil}\u{1b}[2J\n")),
        ("proc/sys/kernel/osrelease", &format!("6.12-{evil}\n")),
    ]);
    let file = folder.path().join("a.html");
    let machine = folder.path().to_str().unwrap();
    run(&["report", "--machine", machine, "-o", file.to_str().unwrap()]).ok();
    let page = page(&file);
    assert!(!page.contains(evil) && !page.contains('\u{1b}'), "{page}");
}

#[test]
fn wrong_words_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("a.json"), "{\"schema\":\"nodewise.zones/1\"}").unwrap();
    fs::write(path("a.html"), "<html></html>").unwrap();
    let check = |words: &[&str], code: i32, part: &str| {
        let ran = run(&[&["report"], words].concat());
        assert_eq!(ran.code, Some(code), "{words:?}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains(part), "{words:?}: {}", ran.stderr);
    };
    check(&["--from", &path("a.json"), "-o", &path("b.html")], 2, "nodewise.zones/1");
    check(&["--from", &path("missing.json"), "-o", &path("b.html")], 2, "missing.json");
    check(&["--extract", &path("a.html")], 2, "no document");
    check(&["--machine", "2x(1c 1G)", "--with=latency", "-o", &path("b.html")], 2, "another machine");
    check(&["--with=weather"], 2, "weather");
    check(&["--machine", "1x(1c 1G)", "-o", "/no/such/folder/a.html"], 3, "/no/such/folder");
}
