//! `nodewise balance`: on this system, whatever it is, and its unit.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Output;

use nodewise_source::balance_journal::{self, ActionEntry, Began, Entry, Line, ProcessEntry, SCHEMA};

use crate::nodewise::{command, run};
use crate::sandbox::{Public, is_root};

#[test]
fn a_dry_run_prints_a_plan_or_says_that_there_is_one_node() {
    let done = run(&["balance", "--json", "--window", "300ms", "--windows", "1"]);
    if done.code == Some(3) {
        let has_reason = done.stderr.contains("one node") || done.stderr.contains("process 1");
        assert!(has_reason, "{}", done.stderr);
        return;
    }
    let lines = balance_journal::parse(&done.ok()).unwrap();
    let [Entry::Plan(plan)] = [&lines[0].entry] else { panic!("{lines:?}") };
    assert_eq!((lines.len(), plan.windows, lines[0].id), (1, 1, None));
}

/// The command as a user without rights; `None` where this machine cannot.
fn without_rights(verb: &[&str]) -> Option<Output> {
    if !rustix::process::geteuid().is_root() {
        return Some(command(verb).output().unwrap());
    }
    is_root().then(|| Public::new().as_nobody(verb).output().unwrap())
}

#[test]
fn acting_needs_two_rights_by_name() {
    for verb in ["--apply", "--evaluate"] {
        let Some(done) = without_rights(&["balance", verb]) else { return };
        needs_two_rights(&done);
    }
}

fn needs_two_rights(done: &Output) {
    let why = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(3), "{why}");
    assert!(why.contains("needs CAP_SYS_NICE") && why.contains("CAP_SYS_PTRACE"), "{why}");
    assert!(why.contains("missing here: CAP_SYS_PTRACE and CAP_SYS_NICE"), "{why}");
}

/// A journal in which an action on a process is open.
fn journal(folder: &Path, pid: u32) -> String {
    let action = ActionEntry {
        need: "stranded".to_owned(),
        need_share: 1.0,
        remote_share: None,
        pages: Vec::new(),
        most_bytes: 0,
        spread: Vec::new(),
        cpus: None,
    };
    let process = ProcessEntry { pid, started_ticks: 1, name: "solver".to_owned() };
    let entry = Entry::Began(Began { process, at_ticks: 2, image: None, action });
    let line = Line { schema: SCHEMA.to_owned(), at_unix_s: 1, boot: "b".to_owned(), id: Some(1), entry };
    let path = folder.join(format!("{pid}.journal"));
    fs::write(&path, line.to_text()).unwrap();
    fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    format!("--journal={}", path.display())
}

#[test]
fn undo_needs_rights_only_where_a_process_is_another_users() {
    let folder = tempfile::tempdir().unwrap();
    let of_root = journal(folder.path(), 1);
    for words in [&["balance", "undo", "--all", &of_root][..], &["balance", "undo", &of_root]] {
        let Some(done) = without_rights(words) else { return };
        needs_two_rights(&done);
    }
    // A process that has ended needs no right.
    let of_none = journal(folder.path(), u32::MAX >> 2);
    let Some(done) = without_rights(&["balance", "undo", "--all", &of_none]) else { return };
    let why = String::from_utf8_lossy(&done.stderr);
    assert!(!why.contains("CAP_SYS_NICE"), "{why}");
}

#[test]
fn the_folder_of_a_mistyped_journal_is_not_created() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mistyped/journal");
    let named = format!("--journal={}", path.display());
    for words in [&["balance", "undo", &named][..], &["balance", "--apply", "--for", "1s", &named]] {
        let done = run(words);
        assert_eq!(done.code, Some(3), "{words:?}: {}", done.stderr);
        let is_named = done.stderr.contains("mistyped\" does not exist");
        assert!(is_named || done.stderr.contains("CAP_SYS_NICE"), "{words:?}: {}", done.stderr);
        assert!(!folder.path().join("mistyped").exists());
    }
}

#[test]
fn wrong_usage_is_named() {
    let check = |words: &[&str], expected: &str| {
        let done = run(&[&["balance"], words].concat());
        assert_eq!(done.code, Some(2), "{words:?}: {}", done.stderr);
        assert!(done.stderr.contains(expected), "{words:?}: {}", done.stderr);
    };
    check(&["--dry-run", "--apply"], "cannot be used together");
    check(&["--for", "1h"], "--apply");
    check(&["--keep"], "--apply");
    check(&["--windows", "0"], "--windows");
    check(&["--evaluate", "--apply"], "cannot be used together");
    check(&["--metric-command", "true"], "--evaluate");
    check(&["--evaluate", "--metric-regex", "([0-9])"], "--metric-command");
    check(&["--evaluate", "--metric-command", "true", "--metric-regex", "[0-9]"], "0 groups: expected one");
    // What a time cannot show is known before anything is asked for.
    check(
        &["--evaluate", "--time", "2h"],
        "6 pairs of blocks: 7 are needed to find anything (--time 8400s or more",
    );
    check(&["--evaluate", "--block", "30s"], "expected 2 windows of 15s at least");
    check(&["--rate", "1K/s"], "1M/s or more");
    check(&["--act-at", "0"], "percentage");
    check(&["undo", "7", "--all"], "cannot be used together");
    check(&["--machine", "2x(1c 1G)"], "--machine has no meaning with nodewise balance");
}
