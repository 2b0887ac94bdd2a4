//! Ctrl-C in each phase of a measurement: it ends by itself, in that phase, with what it has.
//!
//! The phase is read from the line of progress, for which `script` of util-linux gives the command a terminal;
//! Ctrl-C is typed there.

use std::fs;
use std::io::{Read as _, Write as _};
use std::process::Stdio;

use crate::nodewise::{live, missing, path, without_variables};

/// Runs words on a terminal and types Ctrl-C when the line of progress shows this. What was printed, with
/// everything that the line showed, and whether it came to be shown.
fn interrupted(words: &str, phase: &str) -> (String, String, bool) {
    let folder = tempfile::tempdir().unwrap();
    let result = folder.path().join("result");
    let line = format!(
        "stty cols 100 rows 24; trap : INT; {} {words} > {}; echo ended with $?",
        path(),
        result.display()
    );
    let mut command = without_variables("script");
    command.args(["-q", "-c", &line, "/dev/null"]).env("SHELL", "/bin/sh").env("TERM", "xterm");
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("util-linux has script");
    let (mut keys, mut screen) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let (mut shown, mut typed) = (Vec::new(), None);
    let mut buffer = [0; 4096];
    loop {
        let length = screen.read(&mut buffer).unwrap_or(0);
        if length == 0 {
            break;
        }
        shown.extend_from_slice(&buffer[..length]);
        if typed.is_none() && String::from_utf8_lossy(&shown).contains(phase) {
            keys.write_all(b"\x03").unwrap();
            keys.flush().unwrap();
            typed = Some(shown.len());
        }
    }
    drop(keys);
    child.wait().unwrap();
    let later = String::from_utf8_lossy(&shown[typed.unwrap_or(shown.len())..]).into_owned();
    (fs::read_to_string(result).unwrap_or_default(), later, typed.is_some())
}

/// Words of a measurement, a phase of it, and phases that come later in it.
fn check(words: &str, phase: &str, later: &[&str]) {
    let (printed, shown, was_there) = interrupted(words, phase);
    assert!(was_there, "{words}: no phase {phase} was shown: {shown}");
    assert!(shown.contains("ended with 0"), "{words} in {phase}: {shown}");
    for other in later {
        assert!(!shown.contains(other), "{words} in {phase}: it went on to {other}: {shown}");
    }
    let document: serde_json::Value = serde_json::from_str(&printed).expect("a document is printed");
    assert_eq!(document["interrupted"], true, "{words} in {phase}");
}

#[test]
fn ctrl_c_ends_a_measurement_in_the_phase_it_is_in() {
    if !fs::exists("/proc/self/numa_maps").unwrap() {
        return missing("a kernel with NUMA");
    }
    let latency = "latency --json --huge=never --size=512M --seed=1";
    check("latency --json --thorough --huge=never --seed=1", "finding the last-level cache", &["drawing"]);
    check(latency, "drawing a chase", &["filling", " left"]);
    check(latency, "filling 512 MiB", &["laying", " left"]);
    check(latency, "laying a chase", &[" left"]);
    check("bandwidth --json --thorough --huge=never --size=512M", "filling 512 MiB", &["choosing"]);
    check(
        "bandwidth --json --thorough --huge=never --size=512M",
        "choosing the loop for read",
        &["kernel copy"],
    );
    check("bandwidth --file --json --thorough --size=512M", "filling 512 MiB", &[" left"]);
    if live().online_cpus().len() > 1 {
        check(
            "latency --loaded --json --thorough --huge=never --size=512M",
            "drawing a chase",
            &["choosing"],
        );
        check("c2c --json --thorough", " left", &["nothing comes later than samples"]);
    }
}
