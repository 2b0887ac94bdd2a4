//! `--prepare`: a command before every run, one that fails, hangs or is interrupted.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use super::tune;
use crate::nodewise::{KNOW_NODEWISE, Ran, run};

/// A folder with a file in which preparations and runs leave a line each.
struct Lab(tempfile::TempDir);

impl Lab {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("log"), "").unwrap();
        Self(folder)
    }

    fn log(&self) -> PathBuf {
        self.0.path().join("log")
    }

    /// A study whose preparation is this script, with `{log}` for the name of the file.
    fn study(&self, options: &[&str], prepare: &str) -> Ran {
        let (log, node) = (self.log(), "grep -q ' bind' /proc/self/numa_maps");
        let log = log.display();
        let prepare = format!("--prepare=sh -c \"{}\"", prepare.replace("{log}", &log.to_string()));
        let script = format!("if {node}; then echo bound >> {log}; else echo free >> {log}; fi");
        tune(&[&[&*prepare], options].concat(), &script)
    }

    /// The lines, without line ends, and the file empty again.
    fn lines(&self) -> Vec<String> {
        let text = fs::read_to_string(self.log()).unwrap();
        fs::write(self.log(), "").unwrap();
        text.lines().map(str::to_owned).collect()
    }
}

/// Says in the file whether this is placed.
const PLACED: &str = "if grep -q ' bind' /proc/self/numa_maps; then echo prepared bound; else echo prepared; \
                      fi >> {log}";

#[test]
fn a_preparation_runs_before_every_run_and_under_no_placement() {
    let lab = Lab::new();
    let study = lab.study(&["--runs=2", "--json"], PLACED).ok_json();
    let lines = lab.lines();
    let (before, runs): (Vec<_>, Vec<_>) = lines.chunks(2).map(|pair| (&pair[0], &pair[1])).unzip();
    assert_eq!(before, ["prepared"; 9], "{lines:?}");
    assert_eq!(runs.iter().filter(|run| **run == "bound").count(), 3, "{lines:?}");
    assert_eq!((&study["end"], study["samples"].as_array().unwrap().len()), (&"completed".into(), 9));
    assert_eq!(study["prepare"]["command"][1], "-c");
    assert_eq!(study["prepare"]["failed"], Value::Null);
    let text = lab.study(&["--runs=1"], "exit 0").ok();
    assert!(text.contains("  before every run: sh -c \"exit 0\"\n"), "{text}");
}

/// Words with single blanks between them.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_preparation_that_fails_later_leaves_the_results_until_then() {
    let lab = Lab::new();
    // A warm-up round and two others are whole when nine runs have left their lines.
    let failing = "if [ $(wc -l < {log}) -ge 9 ]; then echo no disk >&2; exit 3; fi";
    let ran = lab.study(&["--runs=5"], failing);
    assert_eq!((ran.code, lab.lines().len()), (Some(3), 9), "{}", ran.stdout);
    let text = flat(&ran.stdout);
    assert!(text.contains("the preparation failed, and these are the results until then: sh -c"), "{text}");
    assert!(text.contains("fi\" ended with exit code 3: no disk"), "{text}");
    assert!(text.contains("too few rounds: 2/7"), "{text}");
    let ran = lab.study(&["--runs=5", "--json"], failing);
    let study = ran.json();
    assert_eq!((ran.code, &study["end"]), (Some(3), &"preparation_failed".into()));
    assert_eq!(study["prepare"]["failed"], "ended with exit code 3: no disk");
    assert_eq!(study["samples"].as_array().unwrap().len(), 9);
}

#[test]
fn a_preparation_that_never_works_is_said_to() {
    let check = |options: &[&str], why: &str| {
        let ran = tune(options, "true");
        assert_eq!(ran.code, Some(3), "{}", ran.stdout);
        let text = flat(&ran.stdout);
        assert!(text.starts_with(&format!("the preparation failed: {why} 2 placements, ")), "{text}");
    };
    check(
        &["--prepare=no-such-program x"],
        "no-such-program x could not be started: no-such-program: no such file or directory",
    );
    check(&["--prepare=sleep 1000", "--run-limit=100ms"], "sleep 1000 did not end within 100ms");
    check(&["--prepare=sh -c 'kill -15 $$'"], "sh -c \"kill -15 $$\" ended by signal 15 (SIGTERM)");
}

#[test]
fn an_interrupt_in_a_preparation_ends_the_study_and_the_preparation() {
    for signal in ["INT", "TERM"] {
        let lab = Lab::new();
        let pid = lab.0.path().join("pid");
        let script = format!(
            "echo $$ > {}; {KNOW_NODEWISE}; trap '' TERM; kill -{signal} $nodewise; sleep 1000",
            pid.display()
        );
        let ran = lab.study(&["--runs=5"], &script);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(flat(&ran.stdout).contains("ended before its time"), "{}", ran.stdout);
        assert_eq!(lab.lines(), [""; 0], "no run has begun");
        super::serve::gone(&pid, 1);
    }
}

#[test]
fn runs_of_a_journal_are_not_prepared_again() {
    let lab = Lab::new();
    let journal = format!("--journal={}", lab.0.path().join("journal").display());
    let options = ["--runs=2", "--no-race", &journal];
    lab.study(&options, "echo prepared >> {log}").ok();
    assert_eq!(lab.lines().len(), 18);
    lab.study(&options, "echo prepared >> {log}").ok();
    assert_eq!(lab.lines(), [""; 0]);
    let other = lab.study(&options, "exit 0");
    let expected = "the journal is of another study: the preparation is \"sh -c ";
    assert_eq!(other.code, Some(2));
    assert!(other.stderr.contains(expected), "{}", other.stderr);
}

#[test]
fn a_server_is_started_behind_the_preparation() {
    let lab = Lab::new();
    let note = |what: &str| format!("echo {what} >> {}", lab.log().display());
    let prepare = format!("--prepare=sh -c '{}'", note("prepared"));
    let server = format!(
        "sh -c 'trap \"exit 0\" TERM; {}; echo ready; while :; do sleep 1000 & wait; done'",
        note("server")
    );
    let client = format!("sh -c '{}'", note("client"));
    let words = ["tune", "--placement=localalloc", "--repeats=0", "--runs=1", &prepare, "--ready=ready"];
    run(&[&words[..], &["--serve", &server, "--drive", &client]].concat()).ok();
    let lines = lab.lines();
    let runs: Vec<&[String]> = lines.chunks(3).collect();
    assert_eq!(runs, vec![["prepared", "server", "client"]; runs.len()]);
    assert!(runs.len() >= 4, "{lines:?}");
}

#[test]
fn a_preparation_is_split_as_other_commands_are() {
    let wrong = |prepare: &str, expected: &str| {
        let ran = run(&["tune", "--prepare", prepare, "true"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
        assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    };
    wrong("", "--prepare: there is not a program: expected one with its arguments");
    wrong("sync; true", "--prepare: \"sync; true\" needs a shell, for ';': expected a program");
    wrong("a 'b", "--prepare: a quote is not closed in \"a 'b\"");
}
