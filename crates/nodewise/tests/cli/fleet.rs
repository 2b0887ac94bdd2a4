//! `nodewise survey` and `nodewise fleet`: surveys made, collected, compared, and checked; plans played with substitutes for
//! their engines.

mod plan;
mod recorded;

use std::fs::{self, File};
use std::path::Path;

use serde_json::{Value, json};

use crate::nodewise::{output, path, run, without_variables, wrong};
use crate::sandbox::has;
use recorded::{Recorded, TWO_NODES, difference, like};

const HEALTHY: Recorded<'static> =
    Recorded { machine: TWO_NODES, host: "n00", attempt: 0, slowness: &[1.0, 1.0] };

/// Surveys of 24 hosts in a folder: n07 is 1.3 times slower, n05 has a setting of its own.
struct Site {
    folder: tempfile::TempDir,
}

impl Site {
    fn new() -> Self {
        let site = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir(site.path("results")).unwrap();
        for (host, survey) in surveys() {
            fs::write(site.path(&format!("results/{host}.0.json")), survey.to_string()).unwrap();
        }
        site
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// The document of the report: `code` is the exit code that is expected.
    #[track_caller]
    fn report(&self, code: i32, words: &[&str]) -> Value {
        let ran = run(&[&["fleet", "report", &self.path(""), "--json"], words].concat());
        assert_eq!(ran.code, Some(code), "{}", ran.stderr);
        ran.json()
    }
}

fn surveys() -> Vec<(String, Value)> {
    let template: Value = serde_json::from_str(&HEALTHY.survey()).unwrap();
    let host = |at: usize| {
        let host = format!("n{at:02}");
        let mut survey = like(&template, &host, difference(at) * if at == 7 { 1.3 } else { 1.0 });
        survey["machine"]["settings"]["numa_balancing"] = u32::from(at != 5).into();
        (host, survey)
    };
    (0..24).map(host).collect()
}

fn hosts(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|one| one["host"].as_str().unwrap()).collect()
}

#[test]
fn a_survey_of_recorded_measurements_says_so() {
    let survey: Value = serde_json::from_str(&HEALTHY.survey()).unwrap();
    assert_eq!(survey["schema"], "nodewise.survey/1");
    assert_eq!((&survey["host"], &survey["attempt"], &survey["run"]), (&json!("n00"), &json!(0), &json!("")));
    assert_eq!(survey["recorded"], json!(["machine", "latency", "bandwidth"]));
    assert_eq!(survey["lacking"], json!([]));
    for part in ["machine", "doctor", "latency", "bandwidth"] {
        let schema = survey[part]["schema"].as_str().unwrap();
        assert!(schema.starts_with(&format!("nodewise.{part}/")), "{part}: {schema}");
    }
    let ran = run(&["survey", "--machine", TWO_NODES, "--host", "n00"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let lacking: Vec<Value> =
        ran.json()["lacking"].as_array().unwrap().iter().map(|lack| lack["part"].clone()).collect();
    assert_eq!(lacking, ["latency", "bandwidth"]);
    wrong("survey", &["--machine", TWO_NODES], "--host NAME");
    wrong("survey", &["--host", "../x"], "is not a host name");
    wrong("survey", &["--run", "a b"], "is not the name of a run");
}

#[test]
fn this_machine_is_surveyed_into_a_file_that_replaces_an_older_one() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.json");
    fs::write(&file, "old").unwrap();
    let words =
        ["survey", "--verbs", "show,doctor", "--run", "r-1", "--attempt", "2", "-o", file.to_str().unwrap()];
    let ran = run(&words);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{}", ran.stderr);
    let survey: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(
        (&survey["recorded"], &survey["run"], &survey["attempt"]),
        (&json!([]), &json!("r-1"), &json!(2))
    );
    assert!(survey["conditions"]["nodewise_version"].is_string() && survey.get("latency").is_none());
    let ran = run(&["fleet", "report", folder.path().to_str().unwrap(), "--json"]);
    assert_eq!(ran.json()["hosts_surveyed"], 1, "{}", ran.stderr);
}

#[test]
fn the_outlier_and_the_odd_one_are_named_and_no_other() {
    let site = Site::new();
    fs::write(site.path("hosts"), (0..25).map(|at| format!("n{at:02}\n")).collect::<String>()).unwrap();
    fs::write(site.path("results/n03.1.failed"), "ignored: n03 has a survey\n").unwrap();
    let report = site.report(1, &[]);
    assert_eq!(report["groups"].as_array().unwrap().len(), 1);
    let mut outliers = hosts(&report["outliers"]);
    outliers.dedup();
    assert_eq!(outliers, ["n07"]);
    assert_eq!(hosts(&report["deviations"]), ["n05"]);
    assert_eq!(report["missing"], json!(["n24"]));
    assert_eq!(hosts(&report["suspects"]), ["n07", "n05", "n24"]);
    let ran = run(&["fleet", "report", &site.path("")]);
    for words in [
        "1 host slower than its group",
        "24 of 25 hosts in 1 group, from recorded measurements",
        "numa_balancing",
        "n24",
    ] {
        assert!(ran.stdout.contains(words), "{words}: {}", ran.stdout);
    }
}

#[test]
fn neither_names_nor_order_nor_copies_change_the_report() {
    let expected = {
        let site = Site::new();
        run(&["fleet", "report", &site.path("")]).stdout
    };
    for round in 0..10_usize {
        let folder = tempfile::tempdir().unwrap();
        let surveys = surveys();
        for at in 0..surveys.len() + round {
            let (_, survey) = &surveys[(at * 7 + round) % surveys.len()];
            fs::write(folder.path().join(format!("x{}.json", (at * 31 + round) % 97)), survey.to_string())
                .unwrap();
        }
        let ran = run(&["fleet", "report", folder.path().to_str().unwrap()]);
        assert_eq!(ran.stdout, expected, "{round}");
    }
}

#[test]
fn what_is_torn_huge_or_hostile_is_refused_by_name() {
    let site = Site::new();
    let survey = HEALTHY.survey();
    let file = |name: &str, text: &str| fs::write(site.path(&format!("results/{name}")), text).unwrap();
    file("torn.json", &survey[..survey.len() / 2]);
    file(".n90.json.77.tmp", &survey[..100]);
    file("other.json", "{\"schema\":\"nodewise.latency/1\"}");
    file("control.json", &survey.replace("\"n00\"", "\"n\\u001b[2J\""));
    file("deep.json", &"[".repeat(100_000));
    file("n\u{1b}[2Jx.json", "{}");
    file("notes.txt", "not looked at");
    File::create(site.path("results/huge.json")).unwrap().set_len(1 << 40).unwrap();
    fs::create_dir(site.path("results/folder.json")).unwrap();
    let pipe = std::process::Command::new("mkfifo").arg(site.path("results/pipe.json")).status().unwrap();
    assert!(pipe.success());
    let report = site.report(1, &[]);
    assert_eq!(report["hosts_surveyed"], 24);
    let refused: Vec<(&str, &str)> = report["refused"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["file"].as_str().unwrap(), one["reason"].as_str().unwrap()))
        .collect();
    for (name, reason) in [
        ("torn.json", "torn"),
        (".n90.json.77.tmp", "not complete"),
        ("other.json", "nodewise.latency/1"),
        ("control.json", "is not a host name"),
        ("deep.json", ""),
        ("n\\x1b[2Jx.json", "no schema"),
        ("huge.json", "1 TiB"),
        ("folder.json", "not a file"),
        ("pipe.json", "not a file"),
    ] {
        assert!(
            refused.iter().any(|(file, why)| *file == name && why.contains(reason)),
            "{name}: {refused:?}"
        );
    }
    assert_eq!(refused.len(), 9, "{refused:?}");
    let shown = run(&["fleet", "report", &site.path("")]).stdout;
    assert!(!shown.contains('\u{1b}'), "{shown}");
}

#[test]
fn a_survey_that_is_killed_while_it_writes_leaves_no_survey() {
    if !has("strace", "strace") {
        return;
    }
    let site = Site::new();
    let file = site.path("results/n90.0.json");
    let mut strace = without_variables("strace");
    strace.args([
        "-f",
        "-qq",
        "-o",
        "/dev/null",
        "-e",
        "trace=fsync",
        "-e",
        "inject=fsync:signal=KILL",
        path(),
    ]);
    let ran = output(strace.args(["survey", "--verbs", "show", "--host", "n90", "-o", &file]));
    assert!(ran.code != Some(0) && !Path::new(&file).exists(), "{}", ran.stderr);
    let report = site.report(1, &[]);
    assert_eq!(report["hosts_surveyed"], 24);
    let refused = &report["refused"][0];
    assert!(refused["file"].as_str().unwrap().starts_with(".n90.0.json."), "{refused}");
    assert!(refused["reason"].as_str().unwrap().contains("not complete"), "{refused}");
}

#[test]
fn a_host_that_ran_twice_counts_once() {
    let site = Site::new();
    let mut again = surveys().swap_remove(3).1;
    again["attempt"] = 1.into();
    fs::write(site.path("results/n03.1.json"), again.to_string()).unwrap();
    let report = site.report(1, &[]);
    assert_eq!(report["hosts_surveyed"], 24);
    assert_eq!(report["repeated"], json!([{ "host": "n03", "results": 2, "attempt": 1 }]));
}

#[test]
fn changes_since_an_earlier_survey_are_listed() {
    let (before, now) = (Site::new(), Site::new());
    let (host, mut survey) = surveys().swap_remove(9);
    survey["machine"]["settings"]["transparent_hugepage"] = "never".into();
    let mut old = survey.clone();
    old["machine"]["settings"]["transparent_hugepage"] = "always".into();
    fs::write(now.path(&format!("results/{host}.0.json")), like(&survey, &host, 1.2).to_string()).unwrap();
    fs::write(before.path(&format!("results/{host}.0.json")), old.to_string()).unwrap();
    fs::remove_file(before.path("results/n01.0.json")).unwrap();
    let report = now.report(1, &["--against", &before.path("")]);
    let changes = report["changes"]["changes"].as_array().unwrap();
    assert!(changes.iter().all(|change| change["host"] == "n09"), "{changes:?}");
    assert!(changes.iter().any(|change| change["now"] == "never"), "{changes:?}");
    assert!(changes.iter().any(|change| change["figure"] == "latency"), "{changes:?}");
    assert_eq!(report["changes"]["appeared"], json!(["n01"]));
    let confirmed: Vec<&Value> =
        report["outliers"].as_array().unwrap().iter().filter(|one| one["confirmed"] == true).collect();
    assert!(!confirmed.is_empty() && confirmed.iter().all(|one| one["host"] == "n07"), "{confirmed:?}");
}

#[test]
fn the_html_report_has_a_picture_for_the_group_and_tables() {
    let site = Site::new();
    let html = site.path("fleet.html");
    let ran = run(&["fleet", "report", &site.path(""), "--html", &html]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let page = fs::read_to_string(&html).unwrap();
    for part in
        ["default-src 'none'", "<svg id=", "Group A", "1.30 times slower than usual", "<table class=\"data\""]
    {
        assert!(page.contains(part), "{part}");
    }
    let into = site.path("documents");
    run(&["report", "--extract", &html, "--into", &into]).ok();
    let document: Value =
        serde_json::from_str(&fs::read_to_string(Path::new(&into).join("fleet.json")).unwrap()).unwrap();
    assert_eq!(document, site.report(1, &[]));
}

#[test]
fn a_machine_is_checked_against_its_group_in_the_words_of_its_caller() {
    let site = Site::new();
    let reference = site.path("reference.json");
    fs::write(&reference, run(&["fleet", "report", &site.path(""), "--json"]).stdout).unwrap();
    let check = |host: &str, words: &[&str]| {
        let survey = site.path(&format!("results/{host}.0.json"));
        run(&[&["fleet", "check", "--reference", &reference, "--survey", &survey], words].concat())
    };
    for (host, style, code, words) in [
        ("n01", "plain", 0, "nodewise: healthy: n01 as group A (24 hosts)"),
        ("n07", "plain", 1, "latency 1.30 times that of its group"),
        ("n05", "plain", 1, "numa_balancing: 0, usually 1"),
        ("n07", "slurm", 0, "nodewise: "),
        ("n07", "npd", 1, "..."),
        ("n01", "nagios", 0, "NODEWISE OK - healthy"),
        ("n05", "nagios", 1, "NODEWISE WARNING - 1 finding"),
        ("n07", "nagios", 2, "| bandwidth"),
    ] {
        let ran = check(host, &["--style", style]);
        assert_eq!(ran.code, Some(code), "{host} {style}: {}{}", ran.stdout, ran.stderr);
        let line =
            if style == "nagios" { ran.stdout.replace("latency=", "bandwidth") } else { ran.stdout.clone() };
        assert!(line.contains(words) && ran.stdout.lines().count() == 1, "{host} {style}: {}", ran.stdout);
        assert!(style != "npd" || ran.stdout.trim_end().chars().count() <= 80, "{}", ran.stdout);
    }
    assert_eq!(check("n07", &["--style", "slurm", "--fail"]).code, Some(1));
    let other =
        run(&["fleet", "check", "--reference", &reference, "--machine", "1x(2c 1G)", "--style", "nagios"]);
    assert!(other.stdout.starts_with("NODEWISE UNKNOWN") && other.code == Some(3), "{}", other.stdout);
    let none = run(&["fleet", "check", "--reference", "/nonexistent", "--style", "nagios"]);
    assert!(none.stdout.starts_with("NODEWISE UNKNOWN") && none.code == Some(3), "{}", none.stdout);
    assert_eq!(run(&["fleet", "check", "--reference", "/nonexistent"]).code, Some(2));
}
