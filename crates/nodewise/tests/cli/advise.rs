//! `nodewise advise`: on this system, whatever it is.

use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::nodewise::{command, output, run};

/// A program that ends when dropped.
struct Running(Child);

impl Running {
    fn start(program: &str, arguments: &[&str]) -> Self {
        let mut command = Command::new(program);
        let child = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
        Self(child.expect("the program starts"))
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn evidence<'a>(document: &'a Value, name: &str) -> &'a Value {
    let evidence = document["evidence"].as_array().unwrap();
    evidence.iter().find(|fact| fact["name"] == name).unwrap_or_else(|| panic!("{name}: {document}"))
}

#[test]
fn every_fact_about_a_process_has_a_value_or_a_reason() {
    let program = Running::start("cat", &[]);
    let done = run(&["advise", &program.pid(), "--window", "300ms", "--json"]);
    let document = done.ok_json();
    assert_eq!(document["schema"], "nodewise.advice/1");
    assert_eq!(document["subject"]["pid"].to_string(), program.pid());
    for fact in document["evidence"].as_array().unwrap() {
        let has_value = fact["value"].is_object() && fact["quality"].is_string();
        assert_ne!(has_value, fact["not_known"].is_string(), "{fact}");
    }
    assert!(evidence(&document, "size")["value"]["size_bytes"].as_u64().unwrap() > 0);
    let nodes = document["placements"].as_array().unwrap();
    let recipes = document["recipes"].as_array().unwrap();
    assert_eq!(nodes.is_empty(), recipes.is_empty(), "{document}");
    let text = output(command(["advise", &program.pid(), "--window", "300ms"]).env("COLUMNS", "60")).ok();
    assert!(
        text.contains("\nKind  ") && text.contains("\nEvidence  ") && text.contains("\nWhy  row "),
        "{text}"
    );
    let check = run(&["advise", &program.pid(), "--window", "300ms", "--json", "--check"]);
    let expected = match check.json()["in_force"]["state"].as_str() {
        Some("yes") => 0,
        Some("no") => 1,
        _ => 3,
    };
    assert_eq!(check.code, Some(expected), "{}", check.stdout);
}

#[test]
fn on_one_node_nothing_is_watched_unless_it_is_asked_for() {
    let nodes = run(&["show", "--json"]).ok_json()["nodes"].as_array().unwrap().len();
    if nodes != 1 {
        eprintln!("not tried: this machine has {nodes} nodes");
        return;
    }
    let program = Running::start("cat", &[]);
    let advised = |words: &[&str]| run(&[&["advise", &program.pid(), "--json"], words].concat()).ok_json();
    let at_once = advised(&[]);
    assert_eq!((&at_once["window_s"], &at_once["placements"]), (&Value::Null, &Value::Array(Vec::new())));
    assert_eq!(at_once["row"]["row"], "1", "{at_once}");
    assert!(advised(&["--window", "300ms"])["window_s"].as_f64() > Some(0.2));
    assert_eq!(run(&["advise", &program.pid(), "--check"]).code, Some(0));
}

#[test]
fn a_known_program_is_recognised_before_it_is_started() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("redis-server");
    std::fs::copy("/bin/true", &path).unwrap();
    let document = run(&["advise", "--json", "--", path.to_str().unwrap(), "--maxmemory", "4gb"]).ok_json();
    assert_eq!(document["program"]["id"], "redis");
    assert_eq!(evidence(&document, "declared size")["value"]["size_bytes"], 4_u64 << 30);
    assert_eq!(evidence(&document, "memory needed")["value"]["size_bytes"], 8_u64 << 30, "and a snapshot");
    assert_eq!(document["in_force"], Value::Null);
    assert!(document["trial"].as_str().unwrap().starts_with("nodewise advise --trial 30s -- "));
    // A script of this name is not the program.
    let script = folder.path().join("mongod");
    std::fs::write(&script, "#!/bin/sh\n").unwrap();
    let document = run(&["advise", "--json", "--", "sh", script.to_str().unwrap()]).ok_json();
    assert_eq!(document["program"], Value::Null);
}

#[test]
fn a_trial_ends_the_program_that_it_started() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let script = format!("echo $$ > {}; while :; do :; done", file.display());
    let document = run(&["advise", "--json", "--trial", "900ms", "--", "sh", "-c", &script]).ok_json();
    let pid = std::fs::read_to_string(&file).unwrap().trim().to_owned();
    assert_eq!(document["subject"]["pid"].to_string(), pid);
    assert!(!std::path::Path::new("/proc").join(&pid).exists(), "it runs on");
    let short = run(&["advise", "--trial", "900ms", "--", "true"]);
    assert_eq!(short.code, Some(3));
    assert!(short.stderr.contains("too early to be watched"), "{}", short.stderr);
}

#[test]
fn wrong_usage_is_named() {
    for (arguments, code, words) in [
        (&["advise"][..], 2, "expected a process"),
        (&["advise", "4294967295"], 3, "does not exist"),
        (&["advise", "no-such-program-here"], 3, "no process is named"),
        (&["advise", "--", "no-such-program-here"], 3, "is not found"),
        (&["advise", "--check", "--", "true"], 2, "--check"),
        (&["advise", "1", "--trial", "1s"], 2, "PROGRAM"),
        (&["advise", "1", "--machine", "2x(1c 1G)"], 2, "--machine"),
    ] {
        let done = run(arguments);
        assert_eq!(done.code, Some(code), "{arguments:?}: {}", done.stderr);
        assert!(done.stderr.contains(words), "{arguments:?}: {}", done.stderr);
    }
}

#[test]
fn what_is_applied_to_a_process_of_ones_own_needs_no_right_and_nothing_is_changed_where_nothing_has_to_be() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let program = Running::start("cat", &[]);
    let pid = program.pid();
    let words =
        ["advise", "--apply", "--json", "--window=300ms", "--journal", journal.to_str().unwrap(), &pid];
    let document = run(&[&words[..], &["--dry-run"]].concat()).ok_json();
    let apply = &document["apply"];
    assert_eq!((&apply["dry_run"], &apply["end"]), (&Value::Bool(true), &Value::Null), "{document}");
    assert!(!journal.exists(), "a dry run keeps no journal");
    let done = run(&words);
    let apply = &done.json()["apply"];
    let nothing = apply["steps"].as_array().unwrap().is_empty();
    assert_eq!(apply["end"].is_null(), nothing, "{apply}");
    if nothing {
        // One node, or the program is where it should be.
        assert_eq!(apply["undo"].as_array().unwrap().len(), 0, "{apply}");
        assert!(!journal.exists(), "{apply}");
    }
}

#[test]
fn wrong_usage_of_apply_is_named() {
    for (arguments, code, words) in [
        (&["advise", "1", "--dry-run"][..], 2, "--apply"),
        (&["advise", "--apply", "--", "true"], 2, "--apply"),
        (&["advise", "1", "--apply", "--check"], 2, "--check"),
        (&["advise", "1", "--revert"], 2, "--revert"),
        (&["advise", "--revert"], 2, "--unit"),
        (&["advise", "--unit", "../x", "--revert"], 3, "is not the name of a service"),
        (&["advise", "--unit", "no-such-unit-here", "--revert"], 3, "nothing to take back"),
        (&["advise", "1", "--apply", "--rate", "fast"], 2, "--rate"),
    ] {
        let done = run(arguments);
        assert_eq!(done.code, Some(code), "{arguments:?}: {}", done.stderr);
        assert!(done.stderr.contains(words), "{arguments:?}: {}", done.stderr);
    }
}

#[test]
fn a_study_of_the_program_overrides_the_table() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("study.json");
    let saved = |text: &str| std::fs::write(&file, text).unwrap();
    let study = run(&[
        "tune",
        "--json",
        "--runs",
        "1",
        "--no-race",
        "--placement",
        "physcpubind=all",
        "--",
        "sleep",
        "0",
    ]);
    let mut study = study.json();
    // One round decides nothing: what it would have said is written here.
    study["advice"] = serde_json::json!({"kind": "keep"});
    saved(&study.to_string());
    let program = Running::start("sleep", &["60"]);
    let advise = |options: &[&str]| {
        let file = file.to_str().unwrap();
        run(&[&["advise", "--tune", file, "--window", "200ms"], options].concat())
    };
    let document = advise(&[&program.pid(), "--json"]).ok_json();
    assert_eq!(document["row"]["row"], "0", "{document}");
    let condition = document["row"]["conditions"][0].as_str().unwrap();
    assert!(condition.contains("in 1 round: no placement helps"), "{condition}");
    let nothing = |name: &str| document[name].as_array().unwrap().is_empty();
    assert!(nothing("placements") && nothing("next_rows") && nothing("undecided"), "{document}");
    let text = advise(&[&program.pid()]).ok();
    assert!(text.contains("Why  row 0: the best placement that tune measured"), "{text}");

    let refused = |pid: &str, code: i32, words: &str| {
        let done = advise(&[pid]);
        assert!(done.code == Some(code) && done.stderr.contains(words), "{:?}: {}", done.code, done.stderr);
    };
    let other = Running::start("cat", &[]);
    refused(&other.pid(), 3, "it is about \"sleep\", not about \"cat\"");
    study["advice"] = serde_json::json!({"kind": "too_few_rounds", "rounds_needed": 6});
    saved(&study.to_string());
    refused(&program.pid(), 3, "it names no placement: too few rounds");
    saved("{}");
    refused(&program.pid(), 2, "is not a result of nodewise tune --json");
}
