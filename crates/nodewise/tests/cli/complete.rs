//! Completion as shells do it: bash runs the file that packages install, with the built command.

use std::path::Path;
use std::process::Command;

/// The words that bash offers for a line with the cursor at its end, in the crate's folder.
fn offered(line: &str) -> Vec<String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/completions/nodewise.bash");
    // The program that is asked is the one that was typed: the built one.
    let script = "source \"$1\"; COMP_LINE=$3 COMP_POINT=${#3}; _nodewise \"$2\" 2>&1; printf '%s\\n' \"${COMPREPLY[@]}\"";
    let output = Command::new("bash")
        .args(["--norc", "-c", script, "bash"])
        .arg(file)
        .args([env!("CARGO_BIN_EXE_nodewise"), line])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.stderr.is_empty(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .filter(|word| !word.is_empty())
        .collect()
}

#[test]
fn bash_offers_verbs_options_and_values() {
    assert_eq!(offered("nodewise zonel"), ["zonelist"]);
    assert_eq!(offered("nodewise run --weigh"), ["--weighted-interleave"]);
    assert_eq!(offered("nodewise run --machine '3x(1c 1G); dist=20' --membind 0,"), ["0,1", "0,2"]);
    assert_eq!(offered("nodewise emulation "), ["disable", "enable", "plan", "status", "undo", "verify"]);
}

#[test]
fn bash_replaces_only_what_is_behind_an_equals_sign_or_a_colon() {
    assert_eq!(offered("nodewise run --huge=a"), ["always"]);
    assert_eq!(offered("nodewise show --svg=Cargo.to"), ["Cargo.toml"]);
    let capture = "../../data/captures/32em64t-2n8c+dax+nvme+mic+dimms.tar.bz2";
    assert_eq!(offered(&format!("nodewise run --machine {capture} --near net:e")), ["eth0", "eth1"]);
}

#[test]
fn bash_completes_files_folders_and_programs_itself() {
    assert_eq!(offered("nodewise show --machine Cargo"), ["Cargo.toml"]);
    assert_eq!(offered("nodewise links te"), ["tests"]);
    assert!(offered("nodewise run -- tru").contains(&"true".to_owned()));
    assert_eq!(offered("nodewise run -- cat Cargo.t"), ["Cargo.toml"]);
}
