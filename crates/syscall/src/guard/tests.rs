//! Guards of shell scripts that leave what they can behind.

use super::watch::for_each_number;
use super::*;
use proptest::prelude::{any, prop, prop_assert_eq, proptest};
use std::fs;
use std::path::Path;
use std::process::Stdio;

/// A script that is started in a shell under guard, with a file for the numbers of its processes as `$0`.
fn start(script: &str, pids: &Path) -> Guarded {
    let mut command = Command::new("sh");
    command.args(["-c", script]).arg(pids).stdin(Stdio::null());
    Setup::new().spawn_guarded(command).unwrap()
}

/// Waits until a file holds as many numbers; hangs if they never come.
fn numbers(pids: &Path, count: usize) -> Vec<String> {
    loop {
        let text = fs::read_to_string(pids).unwrap_or_default();
        if text.ends_with('\n') && text.split_whitespace().count() == count {
            return text.split_whitespace().map(str::to_owned).collect();
        }
        std::thread::yield_now();
    }
}

/// Whether a process is there, if only to be waited for.
fn is_there(pid: &str) -> bool {
    fs::exists(format!("/proc/{pid}")).unwrap()
}

/// A child in the same group, one in a session of its own, and a daemon that has forked twice.
const FAMILY: &str = "sleep 1000 & echo $! >> $0; setsid sh -c 'echo $$ >> '$0'; exec sleep 1000' & \
                      setsid sh -c 'setsid sh -c \"echo \\$\\$ >> '$0'; exec sleep 1000\" & exit 0' & ";

#[test]
fn what_a_program_leaves_behind_ends_with_it_wherever_it_hides() {
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let script = format!("{FAMILY} while [ $(wc -l < $0) -lt 3 ]; do :; done; exit 7");
    let guarded = start(&script, &pids);
    assert_eq!(guarded.wait_for_end().code(), Some(7));
    assert_eq!(guarded.ended().and_then(|status| status.code()), Some(7));
    assert_eq!(guarded.finish().unwrap().status.code(), Some(7));
    assert_eq!(numbers(&pids, 3).into_iter().find(|pid| is_there(pid)), None);
}

#[test]
fn a_program_that_is_no_longer_wanted_ends_with_all_that_it_has_started() {
    let folder = tempfile::tempdir().unwrap();
    for (file, finish) in [("dropped", false), ("finished", true)] {
        let pids = folder.path().join(file);
        let guarded = start(&format!("trap '' TERM; {FAMILY} while :; do wait; done"), &pids);
        let mut all = numbers(&pids, 3);
        all.push(guarded.program().to_string());
        guarded.terminate();
        assert!(guarded.ended().is_none() && all.iter().all(|pid| is_there(pid)));
        if finish {
            assert_eq!(guarded.finish().unwrap().status.signal(), Some(libc::SIGKILL));
        } else {
            drop(guarded);
        }
        assert_eq!(all.into_iter().find(|pid| is_there(pid)), None, "{file}");
    }
}

#[test]
fn a_program_under_guard_is_told_to_stop_and_says_how_it_ended() {
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let guarded = start("trap 'exit 3' TERM; echo $$ > $0; while :; do sleep 0.01; done", &pids);
    assert_eq!(numbers(&pids, 1), [guarded.program().to_string()]);
    guarded.terminate();
    assert_eq!(guarded.wait_for_end().code(), Some(3));
    assert_eq!(guarded.finish().unwrap().status.code(), Some(3));
}

#[test]
fn a_program_has_a_session_of_its_own_without_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let fields = "read -r _ _ _ _ group session terminal _ < /proc/$$/stat";
    let guarded = start(&format!("{fields}; echo $$ $group $session $terminal > $0"), &pids);
    let program = guarded.program().to_string();
    assert_eq!(guarded.wait_for_end().code(), Some(0));
    assert_eq!(numbers(&pids, 4), [program.as_str(), program.as_str(), program.as_str(), "0"]);
}

#[test]
fn a_guard_that_is_killed_takes_the_program_along() {
    let folder = tempfile::tempdir().unwrap();
    let guarded = start("exec sleep 1000", &folder.path().join("none"));
    let program = guarded.program().to_string();
    let guard = i32::try_from(guarded.guard.id()).unwrap();
    // SAFETY: the guard is a child that was not waited for, so its number is still its own.
    unsafe { libc::kill(guard, libc::SIGKILL) };
    assert_eq!(guarded.wait_for_end().signal(), Some(libc::SIGKILL));
    assert_eq!(guarded.finish().unwrap().status.signal(), Some(libc::SIGKILL));
    // No one waits for it but whoever takes orphans in here.
    let gone = || {
        let stat = fs::read_to_string(format!("/proc/{program}/stat")).unwrap_or_default();
        stat.is_empty() || stat.contains(") Z ") || stat.contains(") X ")
    };
    while !gone() {
        std::thread::yield_now();
    }
}

#[test]
fn what_orphans_used_is_counted_too() {
    // The child is an orphan when it ends, before the program does; tail keeps all that it is to print.
    let child = "head -c 50000000 /dev/zero | tail -c 50000000 > /dev/null; echo > $0";
    let folder = tempfile::tempdir().unwrap();
    let done = folder.path().join("done");
    let guarded = start(&format!("(({child}) &); while [ ! -e $0 ]; do sleep 0.01; done"), &done);
    guarded.wait_for_end();
    let used = guarded.finish().unwrap().usage;
    assert!(used.max_rss > nodewise_machine::Bytes::from_mib(40), "{used:?}");
}

#[test]
fn a_program_that_cannot_be_started_leaves_no_guard() {
    let error = Setup::new().spawn_guarded(Command::new("/nonexistent/program")).unwrap_err();
    let StartError::Start(error) = error else { panic!("{error}") };
    assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
    let cpus = nodewise_machine::CpuSet::from([200_000]);
    let error = Setup::new().with_cpus(cpus).spawn_guarded(Command::new("true")).unwrap_err();
    assert!(matches!(error, StartError::Setup(_)), "{error}");
}

#[test]
fn a_program_under_guard_has_no_more_open_files_than_by_itself() {
    let script = "ls /proc/self/fd | wc -l > $0";
    let folder = tempfile::tempdir().unwrap();
    let (bare, under) = (folder.path().join("bare"), folder.path().join("under"));
    let status = Command::new("sh").args(["-c", script]).arg(&bare).stdin(Stdio::null()).status().unwrap();
    let guarded = start(script, &under);
    assert!(status.success() && guarded.wait_for_end().success());
    assert_eq!(fs::read_to_string(&bare).unwrap(), fs::read_to_string(&under).unwrap());
}

/// An entry of a folder as the kernel writes it.
fn entry(name: &str) -> Vec<u8> {
    let length = u16::try_from((19 + name.len() + 1).next_multiple_of(8)).unwrap();
    let mut bytes = vec![0xff; 16];
    bytes.extend(length.to_ne_bytes());
    bytes.push(4);
    bytes.extend(name.as_bytes());
    bytes.resize(usize::from(length), 0);
    bytes
}

fn numbers_in(bytes: &[u8]) -> Vec<i32> {
    let mut numbers = Vec::new();
    for_each_number(bytes, |number| numbers.push(number));
    numbers
}

#[test]
fn only_names_that_are_numbers_are_asked_for() {
    let names = ["1", ".", "sys", "4194303", "12a", "99999999999", ""];
    let bytes: Vec<u8> = names.into_iter().flat_map(entry).collect();
    assert_eq!(numbers_in(&bytes), [1, 4_194_303, i32::MAX]);
    for cut in 0..bytes.len() {
        assert!(numbers_in(&bytes[..cut]).len() <= 3);
    }
}

proptest! {
    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = numbers_in(&bytes);
    }

    #[test]
    fn every_number_of_a_list_is_found(pids in prop::collection::vec(1..4_194_304i32, 0..40)) {
        let bytes: Vec<u8> = pids.iter().flat_map(|pid| entry(&pid.to_string())).collect();
        prop_assert_eq!(numbers_in(&bytes), pids);
    }
}
