//! `enable` killed at every system call, and every one of its writes failing: a boot file is the old
//! one or the new one, and can be taken back.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{CMDLINE, EMULATED, PATH, emulation, image};
use crate::nodewise::{Ran, missing, output, path, without_variables};

/// Calls that change a file system, and the one that makes a change last.
const CHANGING: [&str; 7] = ["openat", "write", "fchmod", "fsync", "renameat", "renameat2", "unlinkat"];

/// Whether system calls can be stopped here.
fn can_inject() -> bool {
    let works = Command::new("strace").args(["-o", "/dev/null", "true"]).output();
    if works.is_ok_and(|output| output.status.success()) {
        return true;
    }
    missing("strace cannot be run: cargo xtask lab-setup installs it");
    false
}

/// `enable` under strace, with these options.
fn traced(root: &Path, options: &[&str]) -> Ran {
    let mut command = without_variables("strace");
    command.arg("-f").args(options).args([path(), "emulation", "enable", "--nodes=4", "--root"]);
    output(command.arg(root))
}

/// How often each system call is made.
fn calls(root: &Path, log: &Path) -> BTreeMap<String, u32> {
    traced(root, &["-o", log.to_str().unwrap()]).ok();
    let mut calls = BTreeMap::new();
    for line in fs::read_to_string(log).unwrap().lines() {
        let call = line.split_whitespace().nth(1).unwrap_or_default();
        if let Some((name, _)) = call.split_once('(') {
            *calls.entry(name.to_owned()).or_insert(0) += 1;
        }
    }
    assert!(calls["renameat"] >= 1 && calls["fsync"] >= 4, "{calls:?}");
    calls
}

/// A file and what it can be.
struct File {
    path: &'static str,
    old: &'static str,
    new: &'static str,
}

const PI: &[File] = &[File { path: PATH, old: CMDLINE, new: EMULATED }];
const PC: &[File] = &[
    File {
        path: "etc/default/grub",
        old: "A=1\nGRUB_CMDLINE_LINUX='ro'\n",
        new: "A=1\nGRUB_CMDLINE_LINUX='ro numa=fake=4'\n",
    },
    File {
        path: "boot/loader/entries/1.conf",
        old: "linux /v\noptions root=a",
        new: "linux /v\noptions root=a numa=fake=4",
    },
];

fn image_of(files: &[File]) -> tempfile::TempDir {
    image(&files.iter().map(|file| (file.path, file.old)).collect::<Vec<_>>())
}

/// Whether each file is the new one; fails when one is neither.
fn states(root: &Path, files: &[File], what: &str) -> Vec<bool> {
    let state = |file: &File| {
        let text = fs::read_to_string(root.join(file.path)).unwrap();
        assert!(text == file.old || text == file.new, "{what}: {} is {text:?}", file.path);
        text == file.new
    };
    files.iter().map(state).collect()
}

/// Whatever was left, `enable` and `undo` go on from there. A folder with nothing new is where they
/// began.
fn goes_on(root: &Path, files: &[File], what: &str) {
    let before = states(root, files, what);
    if everything(root).len() == files.len() && before.iter().all(|new| !new) {
        return;
    }
    emulation(root, &["enable", "--nodes=4"]).ok();
    assert!(states(root, files, what).iter().all(|new| *new), "{what}");
    emulation(root, &["undo"]).ok();
    assert!(states(root, files, what).iter().all(|new| !new), "{what}, then {before:?}");
}

/// Everything in a folder and below, as paths.
fn everything(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(everything(&path));
        } else {
            found.push(path);
        }
    }
    found.sort_unstable();
    found
}

/// Runs `enable` once for every call that it makes, among those that `wanted` names; says how often that
/// was of consequence.
fn at_each_call(
    files: &[File],
    wanted: impl Fn(&str) -> bool,
    run: impl Fn(&Path, &str, u32) -> bool,
) -> u32 {
    let log = tempfile::NamedTempFile::new().unwrap();
    let calls = calls(image_of(files).path(), log.path());
    let mut runs = 0;
    for (name, count) in calls.iter().filter(|(name, _)| wanted(name)) {
        for number in 1..=*count {
            let image = image_of(files);
            runs += u32::from(run(image.path(), name, number));
        }
    }
    runs
}

/// Whether the command was killed: a call that is not made again in another run kills nothing.
fn killed_at(root: &Path, files: &[File], name: &str, number: u32) -> bool {
    let inject = format!("inject={name}:signal=KILL:when={number}");
    let ran = traced(root, &["-o", "/dev/null", "-e", &inject]);
    let what = format!("killed at {name} {number}");
    if ran.code == Some(0) {
        assert!(states(root, files, &what).iter().all(|new| *new), "{what}");
        return false;
    }
    goes_on(root, files, &what);
    true
}

#[test]
fn killed_at_any_system_call_the_file_is_the_old_or_the_new() {
    if can_inject() {
        // A call that starts or ends the process cannot be its last.
        let runs = at_each_call(
            PI,
            |name| !matches!(name, "exit_group" | "execve"),
            |root, name, number| killed_at(root, PI, name, number),
        );
        assert!(runs > 100, "{runs}");
    }
}

#[test]
fn killed_between_two_files_each_is_the_old_or_the_new() {
    if can_inject() {
        let wanted = |name: &str| CHANGING.contains(&name) && name != "openat";
        let runs = at_each_call(PC, wanted, |root, name, number| killed_at(root, PC, name, number));
        assert!(runs > 20, "{runs}");
    }
}

#[test]
fn on_a_full_broken_or_read_only_disk_nothing_has_changed() {
    if !can_inject() {
        return;
    }
    let fail = |error: &'static str| {
        move |root: &Path, name: &str, number: u32| {
            let before = everything(root);
            let inject = format!("inject={name}:error={error}:when={number}");
            let ran = traced(root, &["-o", "/dev/null", "-e", &inject]);
            let what = format!("{error} at {name} {number}: {}", ran.stderr);
            let states = states(root, PC, &what);
            if ran.code == Some(0) {
                assert!(states.iter().all(|new| *new), "{what}");
            } else if states.iter().any(|new| *new) {
                // Done except for the report: the output could not be written.
                assert!(
                    states.iter().all(|new| *new) && ran.stderr.contains("cannot write the output"),
                    "{what}"
                );
            } else if name != "unlinkat" {
                assert_eq!(everything(root), before, "{what}");
            }
            goes_on(root, PC, &what);
            ran.code != Some(0)
        }
    };
    let wanted = |name: &str| CHANGING.contains(&name) && name != "openat";
    for error in ["ENOSPC", "EIO", "EROFS"] {
        assert!(at_each_call(PC, wanted, fail(error)) > 20);
    }
}

#[test]
fn a_disk_that_stays_full_says_so() {
    if !can_inject() {
        return;
    }
    let image = image_of(PI);
    for (name, error, message) in [
        ("fsync", "EIO", "input/output error"),
        ("fchmod", "EROFS", "read-only file system"),
        ("renameat2", "ENOSPC", "no space left on device"),
        ("renameat", "ENOSPC", "no space left on device"),
    ] {
        let inject = format!("inject={name}:error={error}:when=1+");
        let ran = traced(image.path(), &["-o", "/dev/null", "-e", &inject]);
        let expected = format!("nodewise: cannot write /{PATH}: {message}; all files are as they were\n");
        assert_eq!((ran.code, ran.stderr), (Some(3), expected), "{name}");
        assert_eq!(states(image.path(), PI, name), [false]);
    }
}

#[test]
fn files_that_cannot_be_restored_either_are_named() {
    if !can_inject() {
        return;
    }
    let image = image_of(PC);
    let inject = ["-o", "/dev/null", "-e", "inject=renameat:error=EIO:when=2+"];
    let ran = traced(image.path(), &inject);
    let expected = "nodewise: cannot write /boot/loader/entries/1.conf: input/output error; \
                    /etc/default/grub could not be restored (input/output error) and is the new one\n";
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(3), expected));
    assert_eq!(states(image.path(), PC, "half done"), [true, false]);
    goes_on(image.path(), PC, "half done");
}
