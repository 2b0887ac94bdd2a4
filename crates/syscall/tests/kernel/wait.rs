//! Waiting for programs.

use std::process::{Command, Stdio};
use std::time::Duration;

use nodewise_machine::Bytes;
use nodewise_syscall::{Finished, Running};
use std::os::unix::process::ExitStatusExt;

/// Runs a line of shell to its end.
fn run(script: &str) -> Finished {
    let child = Command::new("sh").args(["-c", script]).spawn().unwrap();
    Running::from(child).wait().unwrap().clone()
}

#[test]
fn a_program_ends_with_its_code_or_its_signal() {
    assert!(run("exit 0").status.success());
    assert_eq!(run("exit 7").status.code(), Some(7));
    let killed = run("kill -9 $$").status;
    assert_eq!((killed.code(), killed.signal()), (None, Some(9)));
}

#[test]
fn what_a_program_and_its_children_used_is_counted() {
    let script = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
    let (alone, parent) = (run(script).usage, run(&format!("sh -c '{script}'; true")).usage);
    for used in [&alone, &parent] {
        assert!(used.user + used.system > Duration::ZERO, "{used:?}");
        assert!(used.max_rss >= Bytes::from_kib(64), "{used:?}");
        assert!(used.minor_faults > 0, "{used:?}");
    }
    assert!(parent.voluntary_switches > 0, "it waited for its child: {parent:?}");
}

#[test]
fn what_has_ended_is_waited_for_once() {
    let mut running = Running::from(Command::new("true").spawn().unwrap());
    let finished = running.wait().unwrap().clone();
    assert_eq!(running.wait().unwrap(), &finished);
}

#[test]
fn waiting_closes_the_input_that_nobody_took() {
    let child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    assert!(Running::from(child).wait().unwrap().status.success());
}
