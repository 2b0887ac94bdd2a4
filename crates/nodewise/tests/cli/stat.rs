//! `nodewise stat`: on this system, whatever it is, and on captures.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use serde_json::Value;

use crate::nodewise::{command, corpus, missing, output, run, without_variables};
use crate::sandbox::{Public, is_root};

/// Whether this kernel has nodes at all.
fn has_nodes() -> bool {
    let there = std::path::Path::new("/sys/devices/system/node/node0").exists();
    if !there {
        missing("this kernel describes no NUMA node");
    }
    there
}

fn document(arguments: &[&str]) -> Value {
    serde_json::from_str(&run(arguments).ok()).unwrap()
}

#[test]
fn a_reading_since_boot_and_one_of_an_interval_have_their_windows() {
    if !has_nodes() {
        return;
    }
    let boot = document(&["stat", "--json"]);
    assert_eq!((&boot["schema"], &boot["interval_s"]), (&Value::from("nodewise.stat/1"), &Value::Null));
    let own = std::process::id().to_string();
    let interval =
        document(&["stat", "--json", "--pid", &own, "--every", "200ms", "--count", "1", "--per-thread"]);
    assert!(interval["interval_s"].as_f64().unwrap() >= 0.19, "{interval}");
    let processes = interval["processes"].as_array().unwrap();
    assert_eq!(processes.len(), 1, "{interval}");
    assert_eq!(processes[0]["pid"].as_u64().unwrap().to_string(), own);
    assert!(!processes[0]["tasks"].as_array().unwrap().is_empty(), "{interval}");
}

#[test]
fn several_intervals_are_lines_of_json_and_of_csv() {
    if !has_nodes() {
        return;
    }
    let text = run(&["stat", "--json", "0.1", "2"]).ok();
    assert_eq!(text.lines().count(), 2, "{text}");
    assert!(text.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{text}");
    let text = run(&["stat", "--csv", "0.1", "2"]).ok();
    assert_eq!(text.lines().filter(|line| line.starts_with("time_s,")).count(), 1, "{text}");
}

#[test]
fn ctrl_c_ends_it_with_what_was_collected() {
    if !has_nodes() {
        return;
    }
    let mut child = command(["stat", "--json", "--every", "200ms"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    for line in [Ok(first)].into_iter().chain(lines) {
        let document: Value = serde_json::from_str(&line.unwrap()).unwrap();
        assert_eq!(document["schema"], "nodewise.stat/1");
    }
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn wrong_words_are_refused_with_the_right_ones() {
    let check = |arguments: &[&str], code: i32, words: &str| {
        let done = run(arguments);
        assert_eq!(done.code, Some(code), "{arguments:?}: {}", done.stderr);
        assert!(done.stderr.contains(words), "{arguments:?}: {}", done.stderr);
    };
    check(&["stat", "postgres", "5"], 2, "--every 5s for an interval, or --pid 5");
    check(&["stat", "0"], 2, "an interval of 0 has no rates");
    check(&["stat", "--count", "3"], 2, "--count needs an interval");
    check(&["stat", "4194305"], 3, "process 4194305 does not exist");
    check(&["stat", "no-such-name"], 3, "no process is named \"no-such-name\"");
    check(&["stat", "--unit", "no-such"], 3, "no process belongs to the unit \"no-such\"");
    check(&["stat", "--machine", "(1c 1G)", "1"], 2, "--machine shows one moment");
}

#[test]
fn a_capture_is_shown_since_boot() {
    for capture in corpus("captures").into_iter().take(6) {
        let machine = capture.to_str().unwrap();
        let done = output(command(["stat", "--machine", machine]).env("COLUMNS", "80"));
        if done.code == Some(3) {
            assert!(done.stderr.contains("describes no NUMA node"), "{machine}: {}", done.stderr);
            continue;
        }
        let text = done.ok();
        assert!(text.contains("since boot"), "{machine}: {text}");
        let json = document(&["stat", "--json", "--machine", machine]);
        assert_eq!(json["processes"], Value::Array(Vec::new()), "{machine}");
    }
}

#[test]
fn processes_that_proc_hides_are_named() {
    if !is_root() {
        return;
    }
    let public = Public::new();
    let script = format!(
        "mount -t proc -o hidepid=2 proc /proc || exit 77; exec setpriv --reuid=65534 --regid=65534 --clear-groups {} \
         stat --json",
        public.nodewise().display()
    );
    let mut command = without_variables("unshare");
    command.args(["--mount", "--pid", "--fork", "sh", "-c"]).arg(format!("({script}); exit $?"));
    let output = command.current_dir("/").output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.code() == Some(77) {
        eprintln!("skipped: no /proc can be mounted here: {errors}");
        return;
    }
    let document: Value = serde_json::from_slice(&output.stdout).expect(&errors);
    let reasons: Vec<&str> =
        document["unread"].as_array().unwrap().iter().filter_map(|line| line["reason"].as_str()).collect();
    assert!(reasons.iter().any(|reason| reason.contains("hidepid")), "{document}");
}

#[test]
fn intervals_end_when_their_reader_has_gone() {
    if !has_nodes() {
        return;
    }
    for words in [&["stat", "200ms"][..], &["top", "200ms"], &["stat", "200ms", "--json"], &["stat", "1h"]] {
        let mut child = command(words).stdout(Stdio::piped()).spawn().unwrap();
        let mut reader = BufReader::new(child.stdout.take().unwrap());
        if !words.contains(&"1h") {
            reader.read_line(&mut String::new()).unwrap();
        }
        drop(reader);
        // The end comes without an error, also in the middle of an interval.
        assert!(child.wait().unwrap().success(), "{words:?}");
    }
}
