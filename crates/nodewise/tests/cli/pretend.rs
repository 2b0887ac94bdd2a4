//! Programs that see another machine: nodewise itself, and those of the system.

mod calls;
mod recorded;
mod scripts;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::nodewise::{Ran, missing, path, run, without_variables};
use crate::sandbox::{Public, can_contain, has, is_root};

const SPEC: &str = "2x(2c2t 8G) (4G); dist=10,21,17/21,10,28/17,28,10";

/// Whether this user may have namespaces, in the words of another program.
fn can_separate() -> bool {
    let tried = Command::new("unshare").args(["--user", "--map-root-user", "--mount", "true"]).status();
    let can = tried.is_ok_and(|status| status.success());
    if !can {
        missing("no user namespaces here: unshare --user --mount fails");
    }
    can
}

/// Runs a program of the system on a machine.
fn on(machine: &str, program: &[&str]) -> Ran {
    run(&[&["pretend", "--machine", machine, "--"], program].concat())
}

/// The machine, for a test of this program that runs on it.
const INSIDE: &str = "NODEWISE_TEST_PRETENDED";

/// Runs a test of this program on a machine; it is ignored elsewhere.
fn inside(machine: &str, test: &str) {
    let own = std::env::current_exe().unwrap();
    let mut command = without_variables(path());
    command.args(["pretend", "--machine", machine, "--"]).arg(own);
    command.args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"]).env(INSIDE, machine);
    let ran = Ran::from(command.output().unwrap());
    assert!(
        ran.code == Some(0) && ran.stdout.contains("1 passed"),
        "{machine}:\n{}{}",
        ran.stdout,
        ran.stderr
    );
}

/// The machine that a test runs on; `None` outside of [`inside`].
fn is_inside() -> Option<String> {
    std::env::var(INSIDE).ok()
}

fn captures() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/captures");
    let mut all: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    all.retain(|path| path.extension().is_some_and(|end| end == "bz2"));
    all.sort();
    assert!(all.len() >= 10);
    all
}

/// The CPUs of a machine that are online. Facts of others come from elsewhere, too.
fn online(machine: &Value) -> Vec<&Value> {
    machine["cpus"].as_array().unwrap().iter().filter(|cpu| cpu["online"] == true).collect()
}

#[test]
fn nodewise_sees_the_machine_of_every_capture() {
    if !can_separate() {
        return;
    }
    for capture in captures() {
        let name = capture.to_str().unwrap();
        let expected = run(&["show", "--json", "--machine", name]).ok_json();
        let seen = on(name, &[path(), "show", "--json"]).ok_json();
        for key in ["nodes", "caches", "distances"] {
            assert!(seen[key] == expected[key], "{key} of {name}");
        }
        assert!(!online(&expected).is_empty(), "{name}");
        assert!(online(&seen) == online(&expected), "CPUs of {name}");
    }
}

#[test]
fn nodewise_sees_the_structure_of_a_spec() {
    if !can_separate() {
        return;
    }
    for spec in [SPEC, "(1c 1G)", "4x(3c 2G)", "2x(2x(4c2t 16G)); dist=11,20", "(2c 1G) (512M) (2c 1G)"] {
        let expected = run(&["show", "--json", "--machine", spec]).ok_json();
        let seen = on(spec, &[path(), "show", "--json"]).ok_json();
        for key in ["cpus", "caches", "distances"] {
            assert_eq!(seen[key], expected[key], "{key} of {spec}");
        }
        assert_eq!(
            seen["nodes"].as_array().map(Vec::len),
            expected["nodes"].as_array().map(Vec::len),
            "{spec}"
        );
    }
}

#[test]
fn lscpu_and_numactl_see_the_machine() {
    if !can_separate() || !has("lscpu", "util-linux") || !has("numactl", "numactl") {
        return;
    }
    let listed = on(SPEC, &["lscpu", "-p=CPU,CORE,SOCKET,NODE"]).ok();
    let rows: Vec<&str> = listed.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(
        rows,
        ["0,0,0,0", "1,1,0,0", "2,2,1,1", "3,3,1,1", "4,0,0,0", "5,1,0,0", "6,2,1,1", "7,3,1,1"]
    );
    let hardware = on(SPEC, &["numactl", "-H"]).ok();
    for line in
        ["available: 3 nodes (0-2)", "node 1 cpus: 2 3 6 7", "node 2 size: 4096 MB", "  1:  21  10  28 "]
    {
        assert!(hardware.lines().any(|found| found == line), "{line}: {hardware}");
    }
}

#[test]
fn the_program_ends_as_it_would_without_nodewise() {
    if !can_separate() {
        return;
    }
    assert_eq!(on(SPEC, &["sh", "-c", "exit 7"]).code, Some(7));
    assert_eq!(on(SPEC, &["sh", "-c", "kill -TERM $$"]).code, None);
    assert_eq!(on(SPEC, &["/nowhere/program"]).code, Some(127));
    assert_eq!(on(SPEC, &["/"]).code, Some(126));
}

#[test]
fn no_mount_remains_and_none_can_be_written_to() {
    if !can_separate() {
        return;
    }
    let before = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let script =
        "grep -c ' - tmpfs nodewise ' /proc/self/mountinfo; echo 1 > /sys/devices/system/node/online";
    let tried = on(SPEC, &["sh", "-c", script]);
    assert!(tried.stdout.trim().parse::<u32>().unwrap() >= 3, "{}", tried.stdout);
    assert_ne!(tried.code, Some(0), "the picture was written to");
    assert_eq!(std::fs::read_to_string("/proc/self/mountinfo").unwrap(), before);
}

#[test]
fn an_ordinary_user_stays_the_same_user() {
    if !can_separate() || !is_root() {
        return;
    }
    let public = Public::new();
    let script = "id -u; id -g; cat /sys/devices/system/node/online";
    let words = ["pretend", "--machine", SPEC, "--", "sh", "-c", script];
    let ran = Ran::from(public.as_nobody(&words).output().unwrap());
    assert_eq!(ran.ok(), "65534\n65534\n0-2\n");
}

#[test]
fn a_system_without_user_namespaces_is_named_as_the_cause() {
    if !can_contain() {
        return;
    }
    let mut command = without_variables("bwrap");
    command.args([
        "--unshare-user",
        "--disable-userns",
        "--cap-drop",
        "ALL",
        "--ro-bind",
        "/",
        "/",
        "--proc",
        "/proc",
        "--dev",
        "/dev",
    ]);
    command.args([path(), "pretend", "--machine", SPEC, "--", "true"]);
    let refused = Ran::from(command.output().unwrap());
    assert_eq!(refused.code, Some(3), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("the limit of user.max_user_namespaces is reached"),
        "{}",
        refused.stderr
    );
    assert!(refused.stderr.contains("nodewise lab needs no namespace"), "{}", refused.stderr);
}

#[test]
fn a_machine_and_a_program_are_required() {
    for (words, expected) in [
        (&["pretend", "--", "true"][..], "no machine to pretend"),
        (&["pretend", "--machine", SPEC][..], "no program to run"),
    ] {
        let refused = run(words);
        assert_eq!(refused.code, Some(2), "{}", refused.stderr);
        assert!(refused.stderr.contains(expected), "{}", refused.stderr);
    }
    let explained = run(&["pretend", "--explain"]).ok();
    assert!(explained.contains("\nReal\n") && explained.contains("sched_getaffinity"), "{explained}");
}
