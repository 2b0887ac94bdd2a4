//! nodewise by other names: through a link, and as a verb.

use std::os::unix::fs::symlink;
use std::process::{Command, Output};

const NODEWISE: &str = env!("CARGO_BIN_EXE_nodewise");

fn text(output: &[u8]) -> String {
    String::from_utf8(output.to_vec()).expect("the tools write text")
}

fn check(output: &Output, status: i32, stdout: &str) {
    assert_eq!(text(&output.stdout), stdout, "{}", text(&output.stderr));
    assert_eq!(output.status.code(), Some(status));
}

#[test]
fn a_link_by_a_tools_name_is_the_tool() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let link = folder.path().join("numactl");
    symlink(NODEWISE, &link).expect("links can be made");
    let run = |words: &[&str]| Command::new(&link).args(words).output().expect("it can be started");
    check(&run(&["--version"]), 0, "2.0.19\n");
    // Options of nodewise are none of numactl's.
    let wrong = run(&["--machine", "live", "--hardware"]);
    assert_eq!(wrong.status.code(), Some(1));
    let first = text(&wrong.stderr).lines().next().map(str::to_owned);
    assert_eq!(first, Some(format!("{}: unrecognized option '--machine'", link.display())));
}

#[test]
fn a_verb_shows_a_machine_that_is_not_there() {
    let run = |words: &[&str]| Command::new(NODEWISE).args(words).output().expect("it can be started");
    let expected = "available: 2 nodes (0-1)\nnode 0 cpus: 0 1\nnode 0 size: 1024 MB\n\
                    node 0 free: <not available>\nnode 1 cpus: 2 3\nnode 1 size: 1024 MB\n\
                    node 1 free: <not available>\nnode distances:\nnode     0    1 \n   0:   10   21 \n   1:   21   10 \n";
    check(&run(&["--machine", "2x(2c 1G); dist=21", "numactl", "--hardware"]), 0, expected);
}

#[test]
fn a_verb_hands_its_options_on() {
    let output = Command::new(NODEWISE).args(["numactl", "-V"]).output().expect("it can be started");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).starts_with("numactl: --verify must be after shared memory specification"));
}

#[test]
fn a_policy_is_kept_by_the_command() {
    let output = Command::new(NODEWISE)
        .args(["numactl", "-C", "+0", NODEWISE, "numactl", "--json", "--show"])
        .output()
        .expect("it can be started");
    let shown: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(shown["schema"], "nodewise.numactl-show/1");
    assert_eq!(shown["cpus"].as_array().map(Vec::len), Some(1), "{shown}");
}
