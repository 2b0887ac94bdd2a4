//! `nodewise doctor`: on this system, whatever it is, on captures and on recordings.

use std::process::Stdio;
use std::time::{Duration, Instant};

use nodewise_diagnose::rules::ALL;
use serde_json::Value;

use crate::nodewise::{command, corpus, folder_of, missing, output, run};

/// The exit code that a document of a diagnosis asks for: findings from a warning on, or nothing examined.
fn code_of(document: &Value) -> i32 {
    let is_bad = |finding: &Value| ["warning", "critical"].contains(&finding["severity"].as_str().unwrap());
    if document["conclusion"] == "nothing could be examined" {
        return 3;
    }
    i32::from(document["findings"].as_array().unwrap().iter().any(is_bad))
}

/// How many rules a document accounts for.
fn rules_of(document: &Value) -> usize {
    let mut lacking: Vec<&str> = Vec::new();
    for group in document["not_examined"].as_array().unwrap() {
        lacking.extend(group["rules"].as_array().unwrap().iter().filter_map(Value::as_str));
    }
    lacking.sort_unstable();
    lacking.dedup();
    let elsewhere = usize::try_from(document["rules_elsewhere"].as_u64().unwrap()).unwrap();
    document["examined"]["rules"].as_array().unwrap().len() + lacking.len() + elsewhere
}

#[test]
fn every_rule_is_accounted_for_with_a_window_and_without() {
    for (arguments, has_window) in
        [(&["doctor", "--json", "--once"][..], false), (&["doctor", "--json", "--window", "300ms"], true)]
    {
        let done = run(arguments);
        let document = done.json();
        assert_eq!(document["schema"], "nodewise.doctor/1");
        assert_eq!(done.code, Some(code_of(&document)), "{document}");
        assert_eq!(rules_of(&document), ALL.len(), "{document}");
        assert!(document["examined"]["processes"].as_u64().unwrap() > 0, "{document}");
        match has_window {
            true => assert!(document["window_s"].as_f64().unwrap() >= 0.29, "{document}"),
            false => assert_eq!(document["window_s"], Value::Null),
        }
    }
}

#[test]
fn captures_are_examined_at_one_moment_and_healthy_ones_have_no_warning() {
    let captures = corpus("captures");
    for capture in &captures {
        let machine = capture.to_str().unwrap();
        let done = run(&["doctor", "--json", "--machine", machine]);
        let document = done.json();
        assert_eq!(done.code, Some(code_of(&document)), "{machine}: {document}");
        assert_eq!(rules_of(&document), ALL.len(), "{machine}: {document}");
        assert_eq!((&document["window_s"], &document["taken_at_s"]), (&Value::Null, &Value::Null));
        let text = output(command(["doctor", "--machine", machine]).env("COLUMNS", "60"));
        assert_eq!(text.code, done.code, "{machine}: {}", text.stdout);
        let conclusion = document["conclusion"].as_str().unwrap();
        let flat: Vec<&str> = text.stdout.split_whitespace().collect();
        assert!(flat.join(" ").contains(conclusion), "{machine}: {}", text.stdout);
    }
}

/// A machine of two nodes of 16 GiB, of which node 1 has next to no free memory.
fn full_node() -> tempfile::TempDir {
    let system = |path: &str| format!("sys/devices/system/{path}");
    let mut files = vec![
        (system("node/online"), "0-1\n".to_owned()),
        (system("node/has_cpu"), "0-1\n".to_owned()),
        (system("cpu/online"), "0-1\n".to_owned()),
        (system("cpu/present"), "0-1\n".to_owned()),
    ];
    for (node, free, distance) in [(0, 12_000_000, "10 21\n"), (1, 61_440, "21 10\n")] {
        let meminfo = format!("Node {node} MemTotal: 16777216 kB\nNode {node} MemFree: {free} kB\n");
        files.push((system(&format!("node/node{node}/meminfo")), meminfo));
        files.push((system(&format!("node/node{node}/cpulist")), format!("{node}\n")));
        files.push((system(&format!("node/node{node}/distance")), distance.to_owned()));
    }
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    folder_of(&files)
}

#[test]
fn a_finding_decides_the_exit_code_unless_it_is_mild_or_ignored() {
    let folder = full_node();
    let machine = folder.path().to_str().unwrap();
    let doctor = |more: &[&str]| {
        run(&[&["doctor", "--machine", machine, "--rule", "node-at-watermark"], more].concat())
    };
    let found = doctor(&["--json"]).ok_json();
    assert_eq!(found["findings"][0]["id"], "node-at-watermark", "{found}");
    assert_eq!(found["findings"][0]["severity"], "note");
    assert_eq!(found["findings"][0]["subject"]["nodes"], "1");
    let noted = doctor(&["--fail-on", "note", "--brief"]);
    assert_eq!(
        (noted.code, noted.stdout.as_str()),
        (Some(1), "nodewise: 1 note: node-at-watermark node 1\n")
    );
    let ignored = doctor(&["--fail-on", "note", "--ignore", "node-at-watermark:1"]);
    assert_eq!(ignored.code, Some(0), "{}", ignored.stdout);
    assert!(ignored.stdout.ends_with("\nLeft out: 1 finding ignored\n"), "{}", ignored.stdout);
    let other = doctor(&["--fail-on", "note", "--ignore", "node-at-watermark:0"]);
    assert_eq!(other.code, Some(1), "{}", other.stdout);
}

#[test]
fn thresholds_of_a_file_decide_and_a_fault_in_it_is_named() {
    let folder = full_node();
    let machine = folder.path().to_str().unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    let doctor = |text: &str| {
        std::fs::write(path, text).unwrap();
        run(&["doctor", "--machine", machine, "--rule", "node-at-watermark", "--thresholds", path, "--json"])
    };
    let found = doctor("[node-at-watermark]\nfree_share = 0.005\n").ok_json();
    let replaced = &found["findings"][0]["replaced_thresholds"];
    assert_eq!(
        (&replaced[0]["key"], &replaced[0]["value"]),
        (&Value::from("free_share"), &Value::from(0.005))
    );
    assert_eq!(found["findings"][0]["evidence"][0]["threshold"]["share"], 0.005);
    let silent = doctor("[node-at-watermark]\nfree_share = 0.001\n").ok_json();
    assert_eq!(silent["findings"].as_array().unwrap().len(), 0, "{silent}");
    assert_eq!(silent["replaced_thresholds"][0]["key"], "free_share");
    let refused = |text: &str, expected: &str| {
        let done = doctor(text);
        assert_eq!(done.code, Some(2), "{}", done.stdout);
        assert!(done.stderr.contains(&format!("{path}{expected}")), "{}", done.stderr);
    };
    refused(
        "[node-at-watermarks]",
        ": line 1: \"node-at-watermarks\" is not a rule: did you mean node-at-watermark?",
    );
    refused(
        "\n[node-at-watermark]\nfree_share = nan",
        ": line 3: node-at-watermark.free_share: expected a number from 0 to 1 (share); found nan",
    );
    refused(&"#".repeat(300_000), ": it is larger than 256 KiB");
    let missing = run(&["doctor", "--machine", machine, "--thresholds", "/none/t.toml"]);
    assert_eq!(missing.code, Some(2));
    assert!(missing.stderr.contains("cannot read /none/t.toml: "), "{}", missing.stderr);
}

#[test]
fn a_recording_is_examined_from_its_first_sample_to_its_last() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.nwr");
    let file = file.to_str().unwrap();
    let recorded = run(&["record", "-o", file, "--every", "200ms", "--for", "700ms"]);
    if recorded.code != Some(0) {
        missing(&recorded.stderr);
        return;
    }
    let done = run(&["doctor", "--json", "--from", file]);
    let document = done.json();
    assert_eq!(done.code, Some(code_of(&document)), "{document}");
    assert_eq!(document["source"], file);
    assert!(document["window_s"].as_f64().unwrap() >= 0.5, "{document}");
    let moment = run(&["doctor", "--json", "--from", file, "--at", "200ms"]).json();
    assert!(moment["window_s"].as_f64().unwrap() < document["window_s"].as_f64().unwrap(), "{moment}");
}

#[test]
fn ctrl_c_ends_the_window_with_what_is_known() {
    let mut child = command(["doctor", "--json", "--window", "10m"]).stdout(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(2));
    let began = Instant::now();
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let document: Value = serde_json::from_reader(child.stdout.take().unwrap()).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(code_of(&document)));
    assert!(began.elapsed() < Duration::from_secs(600), "the window went on");
    assert!(document["window_s"].as_f64().is_none_or(|window| window < 600.0), "{document}");
}

#[test]
fn the_brief_form_is_a_line_and_the_catalogue_is_complete() {
    let brief = run(&["doctor", "--once", "--brief"]);
    assert!(brief.stdout.starts_with("nodewise: ") && brief.stdout.lines().count() == 1, "{}", brief.stdout);
    let catalogue = run(&["doctor", "rules", "--json"]).ok_json();
    assert_eq!(catalogue["rules"].as_array().unwrap().len(), ALL.len());
    let text = run(&["doctor", "rules"]).ok();
    for rule in ALL {
        assert!(text.contains(rule.id), "{}", rule.id);
        let whole = run(&["doctor", "rules", rule.id]).ok();
        assert!(whole.starts_with(rule.id) && whole.contains("sign: "), "{whole}");
    }
}

#[test]
fn one_rule_and_one_process_are_all_that_is_looked_at() {
    let own = std::process::id().to_string();
    let done = run(&["doctor", "--json", "--once", "--rule", "swap-while-free", "--pid", &own]);
    let document = done.json();
    assert_eq!(rules_of(&document), 1, "{document}");
    for finding in document["findings"].as_array().unwrap() {
        assert!(finding["subject"]["pid"].as_u64().is_none_or(|pid| pid.to_string() == own), "{finding}");
    }
}

#[test]
fn wrong_words_are_refused_with_the_right_ones() {
    let check = |arguments: &[&str], code: i32, words: &str| {
        let done = run(arguments);
        assert_eq!(done.code, Some(code), "{arguments:?}: {}", done.stderr);
        assert!(done.stderr.contains(words), "{arguments:?}: {}", done.stderr);
        assert_eq!(done.stdout, "", "{arguments:?}");
    };
    check(&["doctor", "--rule", "swap-while-fre"], 2, "did you mean swap-while-free?");
    check(
        &["doctor", "--rule", "\u{1b}[2J"],
        2,
        "\"\\x1b[2J\" is not a rule: nodewise doctor rules lists them",
    );
    check(&["doctor", "rules", "kswapd"], 2, "\"kswapd\" is not a rule");
    check(&["doctor", "--ignore", "bound-away:"], 2, "expected a subject after the colon");
    check(&["doctor", "--window", "0"], 2, "--window");
    check(&["doctor", "--once", "--window", "1s"], 2, "cannot be used together");
    check(&["doctor", "--at", "1s"], 2, "--from");
    check(&["doctor", "--fail-on", "bad"], 2, "info, note, warning, critical");
    check(&["doctor", "--pid", "4194305"], 3, "process 4194305 does not exist");
    check(&["doctor", "--unit", "no-such"], 3, "no process belongs to the unit \"no-such\"");
    check(&["doctor", "--from", "/dev/null"], 3, "it is empty");
    check(&["doctor", "--machine", "(1c 1G)", "--window", "1s"], 2, "--machine shows one moment");
    check(&["doctor", "--machine", "(1c 1G)", "--from", "x"], 2, "--machine does not go with it");
}

#[test]
fn an_output_of_numactl_is_a_moment_without_counters() {
    let report = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/reports/numactl-H.txt");
    let found = run(&["doctor", "--machine", report, "--json"]).ok_json();
    let first = &found["findings"][0];
    assert_eq!(
        (&first["id"], &first["severity"], &first["confidence"], &first["subject"]["nodes"]),
        (&"node-at-watermark".into(), &"note".into(), &"possible".into(), &"1".into()),
        "{found}"
    );
    assert_eq!(found["findings"].as_array().unwrap().len(), 1, "{found}");
    assert_eq!(rules_of(&found), ALL.len(), "{found}");
    let shown = run(&["show", "--machine", report, "--json"]).ok_json();
    assert_eq!(shown["nodes"].as_array().unwrap().len(), 4, "{shown}");
}

#[test]
fn an_output_of_numactl_is_read_as_numactl_would_print_it() {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    for file in corpus("numactl-H") {
        let path = file.to_str().unwrap();
        let printed = run(&["numactl", "--machine", path, "--hardware"]).ok();
        assert_eq!(words(&printed), words(&std::fs::read_to_string(path).unwrap()), "{path}");
    }
}

#[test]
fn csv_has_a_line_for_each_finding_and_those_that_it_explains() {
    fn rules(findings: &Value, found: &mut Vec<String>) {
        for finding in findings.as_array().unwrap() {
            found.push(finding["id"].as_str().unwrap().to_owned());
            rules(&finding["explains"], found);
        }
    }
    let mut seen = 0;
    for recording in corpus("recordings") {
        let words = ["doctor", "--from", recording.to_str().unwrap()];
        let json = run(&[&words, &["--json"][..]].concat());
        let csv = run(&[&words, &["--csv"][..]].concat());
        assert_eq!(csv.code, json.code, "{}", csv.stderr);
        let mut expected = Vec::new();
        rules(&json.json()["findings"], &mut expected);
        let found: Vec<&str> = csv.stdout.lines().skip(1).filter_map(|line| line.split(',').nth(1)).collect();
        assert_eq!(found, expected, "{}", recording.display());
        seen += found.len();
    }
    assert!(seen > 3, "{seen}");
}
