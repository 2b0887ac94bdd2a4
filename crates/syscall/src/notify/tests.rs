//! A program that makes watched calls, which is this test program again, and answers to them.

use std::env;
use std::fs;
use std::io::{Seek as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use nodewise_machine::{MemPolicy, NodeId, NodeSet, PolicyMode};

use super::{Answer, Listener, NotifyError, Request, Watch, WatchedCall};
use crate::call::Task;
use crate::error::Errno;
use crate::{affinity, mempolicy, pages};

/// Set for the program that is supervised.
const MARK: &str = "NODEWISE_TEST_NOTIFY";
/// A node that the real machine hardly has.
const NODE: u32 = 37;
const TEXT: &str = "a file of the supervisor\n";
const FILE: &str = "/proc/self/numa_maps";

fn not_tested<T>(error: &NotifyError) -> Option<T> {
    writeln!(std::io::stderr(), "not tested: {error}").unwrap();
    None
}

fn prepared(command: &mut Command, calls: &[WatchedCall]) -> Option<Watch> {
    match Watch::prepare(command, calls) {
        Err(error @ NotifyError::UnknownAbi) => not_tested(&error),
        watch => Some(watch.unwrap()),
    }
}

/// Starts the calls below under a watch; `None` with a line where the machine does not allow it.
fn start(errors: Stdio) -> Option<(Child, Listener)> {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "notify::tests::calls_of_the_program", "--ignored"]).env(MARK, "1");
    command.stderr(errors);
    let watch = prepared(&mut command, &WatchedCall::ALL)?;
    let child = command.spawn();
    match watch.listener() {
        Ok(listener) => Some((child.unwrap(), listener)),
        Err(error @ (NotifyError::Missing(_) | NotifyError::AlreadyWatched | NotifyError::Refused(_))) => {
            assert!(child.is_err(), "a program without its filter must not start");
            not_tested(&error)
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
#[ignore = "the program that the tests beside it supervise"]
fn calls_of_the_program() {
    if env::var_os(MARK).is_none() {
        return;
    }
    let policy = MemPolicy::new(PolicyMode::Bind, NodeSet::from_iter([NodeId::new(NODE)]));
    assert_eq!(mempolicy::set_thread_policy(&policy), Ok(()));
    assert_eq!(mempolicy::thread_policy(), Ok(policy.clone()));
    let here = policy.nodes;
    assert_eq!(pages::migrate(Task::CURRENT, &here, &here).unwrap_err().errno, Errno::EPERM);
    assert!(!affinity::cpus(Task::CURRENT).unwrap().is_empty());
    assert_eq!(fs::read_to_string(FILE).unwrap(), TEXT);
    // Not the supervisor's: the kernel's file.
    assert!(fs::read_to_string("/proc/self/status").unwrap().contains("NoNewPrivs:\t1"));
    a_second_supervisor_is_refused();
    a_process_does_not_supervise_itself();
}

fn a_process_does_not_supervise_itself() {
    let mut command = Command::new("true");
    let watch = Watch::prepare(&mut command, &[WatchedCall::Getcpu]).unwrap();
    assert_eq!(command.exec().raw_os_error(), Some(libc::EINVAL));
    assert!(matches!(watch.listener(), Err(NotifyError::NoFilter)));
}

/// The kernel allows one listener in a chain of filters.
fn a_second_supervisor_is_refused() {
    let mut command = Command::new("true");
    let watch = Watch::prepare(&mut command, &[WatchedCall::Getcpu]).unwrap();
    assert!(command.spawn().is_err(), "a program without its filter must not start");
    assert!(matches!(watch.listener(), Err(NotifyError::AlreadyWatched)));
}

/// The mask at an argument, its first word.
fn mask(listener: &Listener, request: &Request, argument: usize) -> u64 {
    let mut word = [0; 8];
    listener.read(request, request.arguments[argument], &mut word).unwrap();
    u64::from_ne_bytes(word)
}

fn opens(listener: &Listener, request: &Request, path: &str) -> bool {
    let mut found = vec![0; path.len() + 1];
    // A path that is shorter may end before memory that cannot be read.
    listener.read(request, request.arguments[1], &mut found).is_ok()
        && found.strip_suffix(&[0]) == Some(path.as_bytes())
}

fn supervise(listener: &Listener, request: &Request, file: &fs::File) {
    let answer = match request.call {
        WatchedCall::SetMempolicy => {
            assert_eq!(request.arguments[0], 2, "MPOL_BIND");
            assert_eq!(mask(listener, request, 1), 1 << NODE);
            Answer::Value(0)
        }
        WatchedCall::GetMempolicy => {
            listener.write(request, request.arguments[0], &2_i32.to_ne_bytes()).unwrap();
            listener.write(request, request.arguments[1], &(1_u64 << NODE).to_ne_bytes()).unwrap();
            Answer::Value(0)
        }
        WatchedCall::MigratePages => {
            let unreadable = listener.read(request, 8, &mut [0]).unwrap_err();
            assert!(
                matches!(unreadable, NotifyError::Io(error) if error.raw_os_error() == Some(libc::EFAULT))
            );
            Answer::Error(Errno::EPERM)
        }
        WatchedCall::Openat if opens(listener, request, FILE) => Answer::File(file.as_fd()),
        _ => Answer::Continue,
    };
    listener.answer(request, answer).unwrap();
    assert!(!listener.is_waiting(request));
}

#[test]
fn values_errors_memory_and_files_reach_the_program() {
    let Some((mut child, mut listener)) = start(Stdio::inherit()) else { return };
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(TEXT.as_bytes()).unwrap();
    file.rewind().unwrap();
    let mut seen = Vec::new();
    while let Some(request) = listener.next_request().unwrap() {
        supervise(&listener, &request, &file);
        seen.push(request.call);
    }
    assert!(child.wait().unwrap().success());
    for call in [WatchedCall::SetMempolicy, WatchedCall::MigratePages, WatchedCall::SchedGetaffinity] {
        assert!(seen.contains(&call), "{call:?} did not arrive: {seen:?}");
    }
}

#[test]
fn a_program_that_is_killed_while_it_waits_ends_the_requests() {
    let Some((mut child, mut listener)) = start(Stdio::inherit()) else { return };
    let request = listener.next_request().unwrap().unwrap();
    assert!(listener.is_waiting(&request));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!listener.is_waiting(&request));
    assert!(matches!(listener.answer(&request, Answer::Value(0)), Err(NotifyError::Gone)));
    assert!(matches!(listener.write(&request, request.arguments[0], &[0]), Err(NotifyError::Gone)));
    assert!(listener.next_request().unwrap().is_none());
}

#[test]
fn a_supervisor_that_ends_leaves_its_program_with_errors() {
    let Some((mut child, mut listener)) = start(Stdio::null()) else { return };
    listener.next_request().unwrap().unwrap();
    drop(listener);
    // The first call that needs a supervisor fails with ENOSYS, and the program with it.
    assert!(!child.wait().unwrap().success());
}

#[test]
fn a_command_that_was_not_spawned_has_no_filter() {
    let mut command = Command::new("true");
    let Some(watch) = prepared(&mut command, &[WatchedCall::Getcpu]) else { return };
    assert!(matches!(watch.listener(), Err(NotifyError::NoFilter)));
}

#[test]
fn a_refused_filter_is_explained_by_its_errno() {
    let check = |errno, words: &str| {
        let message = NotifyError::from_installation(errno).to_string();
        assert!(message.contains(words), "{message}");
    };
    check(Errno::EINVAL, "Linux 5.5 or newer");
    check(Errno::ENOSYS, "Linux 5.5 or newer");
    check(Errno::EBUSY, "another supervisor");
    check(Errno::EACCES, "permission denied");
}

/// Set for the program that starts its own supervisor.
const OWN_MARK: &str = "NODEWISE_TEST_OWN_SUPERVISOR";

#[test]
#[ignore = "the program of the next test"]
fn a_program_that_is_its_own_starter() {
    if env::var_os(OWN_MARK).is_none() {
        return;
    }
    // The harness has threads: a copy of them all is a process of one again.
    let mut command = Command::new("sh");
    command.args(["-c", "taskset -p $$; cat; exit 7"]);
    // SAFETY: the test of a child after fork: it calls what the caller of `exec` would.
    unsafe {
        command.pre_exec(|| {
            let supervised =
                super::supervise_this_process(&[WatchedCall::SchedGetaffinity], |mut listener| {
                    while let Ok(Some(request)) = listener.next_request() {
                        let _ = listener.write(&request, request.arguments[2], &0xa5_u64.to_ne_bytes());
                        let _ = listener.answer(&request, Answer::Value(8));
                    }
                });
            supervised.map_err(|error| std::io::Error::other(error.to_string()))
        });
    }
    let status = command.status().unwrap();
    assert_eq!(status.code(), Some(7));
}

#[test]
fn a_program_and_its_supervisor_share_nothing_but_calls() {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "notify::tests::a_program_that_is_its_own_starter", "--ignored", "--nocapture"]);
    let output = command.env(OWN_MARK, "1").stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if text.contains("Linux 5.5 or newer") || Command::new("taskset").arg("--version").output().is_err() {
        return;
    }
    // The output ends although the supervisor may still run: it has no copy of the pipe.
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("mask: a5"), "{text}");
}
