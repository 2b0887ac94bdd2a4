//! `--journal`: studies that are killed, go on, are longer the second time, or are of something else.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::nodewise::{KNOW_NODEWISE, Ran, run};

/// A folder with a program that counts its runs in a file, prints a score that depends on how many
/// there were, and kills nodewise in the run that the file `kill` names.
struct Lab(tempfile::TempDir);

impl Lab {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("count"), "0\n").unwrap();
        Self(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn journal(&self) -> std::path::PathBuf {
        self.path().join("journal")
    }

    /// The study with these options; what differs between folders is a variable of the environment.
    fn study(&self, options: &[&str]) -> Ran {
        let script = format!(
            "n=$(($(cat count) + 1)); {KNOW_NODEWISE}; \
             if [ -e kill ] && [ $n = $(cat kill) ]; then kill -9 $nodewise; exec sleep 1000; fi; \
             echo $n > count; echo score: $((1000 + n * 7919 % 13))"
        );
        let journal = format!("--journal={}", self.journal().display());
        let words = ["tune", "--placement=huge=never", "--placement=localalloc", "--metric=score: ([0-9]+)"];
        let more = ["--repeats=0", "--no-race", "--json", &journal];
        let mut command =
            crate::nodewise::command([&words, &more[..], options, &["--", "sh", "-c", &script]].concat());
        crate::nodewise::output(command.current_dir(self.path()))
    }

    /// Runs in the journal.
    fn written(&self) -> usize {
        let text = fs::read_to_string(self.journal()).unwrap();
        text.lines().filter(|line| line.contains("\"run\":{")).count()
    }
}

/// The scores of all runs in their order, and what was concluded from them.
fn told(study: &Value) -> (Vec<Value>, Value, Vec<Value>) {
    let of = |list: &str, field: &str| -> Vec<Value> {
        study[list].as_array().unwrap().iter().map(|one| one[field].clone()).collect()
    };
    (of("samples", "printed"), study["advice"].clone(), of("arms", "effect"))
}

#[test]
fn a_study_that_is_killed_in_any_run_goes_on_to_the_same_end() {
    let options = ["--seed=5", "--runs=4"];
    let expected = told(&Lab::new().study(&options).json());
    assert_eq!(expected.0.len(), 5 * 4, "a warm-up and four rounds of four runs");
    for kill in [1, 2, 7, 13, 20] {
        let lab = Lab::new();
        fs::write(lab.path().join("kill"), kill.to_string()).unwrap();
        let killed = lab.study(&options);
        assert_eq!((killed.code, killed.stdout.as_str()), (None, ""), "killed in run {kill}");
        assert_eq!(lab.written(), kill - 1, "every run that ended is there");
        fs::remove_file(lab.path().join("kill")).unwrap();
        assert_eq!(told(&lab.study(&options).json()), expected, "killed in run {kill}");
        assert_eq!(lab.written(), expected.0.len());
    }
}

#[test]
fn a_journal_says_which_version_wrote_it() {
    let lab = Lab::new();
    assert_eq!(lab.study(&["--seed=5", "--runs=1"]).code, Some(0));
    let text = fs::read_to_string(lab.journal()).unwrap();
    let sitting: Vec<Value> = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok()?.get("sitting").cloned())
        .collect();
    assert_eq!(sitting.len(), 1, "{text}");
    assert_eq!(sitting[0]["nodewise"], env!("CARGO_PKG_VERSION"), "{text}");
}

#[test]
fn a_study_that_has_ended_is_told_again_and_a_longer_one_goes_on() {
    let lab = Lab::new();
    let two = lab.study(&["--runs=2"]).json();
    let again = lab.study(&["--runs=2"]);
    assert_eq!(again.stderr, "");
    assert_eq!(told(&again.json()), told(&two));
    assert_eq!(again.json()["seed"], two["seed"], "the seed is that of the journal");
    let three = lab.study(&["--runs=3"]).json();
    assert_eq!((&three["rounds"], lab.written()), (&3.into(), 4 * 4));
    assert_eq!(told(&three).0[..3 * 4], told(&two).0);
    assert_eq!(lab.study(&["--runs=1"]).json()["rounds"], 3, "what was measured is not left out");
}

fn check(ran: &Ran, code: u8, expected: &str) {
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(code.into()), ""), "{}", ran.stderr);
    assert!(ran.stderr.contains(expected), "{}", ran.stderr);
}

#[test]
fn a_journal_of_another_study_is_refused_with_the_difference() {
    let lab = Lab::new();
    lab.study(&["--runs=1", "--seed=5"]).ok();
    let other = |options: &[&str], expected: &str| {
        let expected = format!("the journal is of another study: {expected}");
        check(&lab.study(options), 2, &expected);
    };
    other(&["--seed=6"], "the seed is 5 there and 6 here");
    other(&["--placement=huge=always"], "arm 3 is missing there and \"huge pages on");
    other(&["--run-limit=5s"], "the limit of a run is missing there and \"5s\" here");
    let journal = format!("--journal={}", lab.journal().display());
    let placements = ["--placement=huge=never", "--placement=localalloc"];
    let words =
        [&["tune", "--no-race", "--metric=score: ([0-9]+)", &journal], &placements[..], &["true"]].concat();
    check(&run(&words), 2, "the command is \"sh -c ");
}

#[test]
fn a_file_that_is_no_journal_is_left_as_it_is() {
    let lab = Lab::new();
    for (text, expected) in [
        ("notes of mine", "line 1 of the journal: expected the first line of a journal (nodewise.journal/2)"),
        ("notes\n", "line 1 of the journal: expected {\"check\":\" with a checksum of 16 digits behind it"),
    ] {
        fs::write(lab.journal(), text).unwrap();
        check(&lab.study(&[]), 2, expected);
        assert_eq!(fs::read_to_string(lab.journal()).unwrap(), text);
    }
    fs::remove_file(lab.journal()).unwrap();
    fs::create_dir(lab.journal()).unwrap();
    check(&lab.study(&[]), 3, "cannot open the journal: is a directory");
}
