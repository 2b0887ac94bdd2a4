//! Setups, and the programs that are started under them.

use std::env;
use std::io::ErrorKind;
use std::process::{Command, Stdio};

use nodewise_machine::{CpuSet, MemPolicy, NodeSet, PolicyMode};
use nodewise_syscall::{Errno, Setup, StartError, Task, TransparentHuge, affinity, huge, mempolicy};

use crate::here::{absent_node, allowed_cpus, field_of, on_own_thread, skip, unless_blocked, usable_nodes};

/// A setup with every part, that works here; `None`, with a line, where calls are blocked.
fn whole_setup() -> Option<Setup> {
    let policy = MemPolicy::new(PolicyMode::Bind, usable_nodes()?);
    let cpus: CpuSet = allowed_cpus().last().into_iter().collect();
    let setup =
        Setup::new().with_policy(policy).with_cpus(cpus).with_transparent_huge(TransparentHuge::Never);
    match setup.try_on_scratch_thread() {
        Ok(()) => Some(setup),
        Err(StartError::Setup(error)) => unless_blocked(Err(error)),
        Err(StartError::Start(error)) => panic!("{error}"),
    }
}

/// Returns what a program writes to its standard output under a setup.
fn output_of(setup: &Setup, program: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(program);
    command.args(arguments).stdout(Stdio::piped());
    let output = setup.spawn(command).unwrap().wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

/// Checks what a program under the setup sees of itself, from its status and its numa_maps.
fn check_applied(setup: &Setup, status: &str, maps: &str) {
    assert_eq!(field_of(status, "Cpus_allowed_list"), setup.cpus().map(ToString::to_string));
    // The field came with Linux 5.0.
    if let Some(enabled) = field_of(status, "THP_enabled") {
        assert_eq!(enabled, "0");
    }
    let policy = setup.policy().unwrap().to_string();
    let stack = maps.lines().find(|line| line.contains(" stack")).expect("every process has a stack");
    assert_eq!(stack.split(' ').nth(1), Some(policy.as_str()), "{stack}");
}

#[test]
fn a_program_is_started_with_cpus_huge_pages_and_policy() {
    let Some(setup) = whole_setup() else { return };
    let status = output_of(&setup, "cat", &["/proc/self/status"]);
    let maps = output_of(&setup, "cat", &["/proc/self/numa_maps"]);
    check_applied(&setup, &status, &maps);
}

#[test]
fn the_caller_of_a_started_program_stays_as_it_was() {
    on_own_thread(|| {
        let Some(setup) = whole_setup() else { return };
        let before = (affinity::cpus(Task::CURRENT), mempolicy::thread_policy(), huge::transparent_huge());
        output_of(&setup, "true", &[]);
        setup.try_on_scratch_thread().unwrap();
        let after = (affinity::cpus(Task::CURRENT), mempolicy::thread_policy(), huge::transparent_huge());
        assert_eq!(after, before);
    });
}

/// Signals that a program was started with, in one of the lines of its status file. Signals 32 and
/// 33 belong to the C library, which leaves them differently after `fork` and after `posix_spawn`.
fn signals(status: &str, field: &str) -> u64 {
    let mask = field_of(status, field).expect("every Linux shows the signals of a process");
    u64::from_str_radix(&mask, 16).unwrap() & !(0b11 << 31)
}

#[test]
fn a_program_inherits_nothing_else_than_from_the_standard_library() {
    let Some(setup) = whole_setup() else { return };
    let plain = Setup::new();
    let left = |setup: &Setup| {
        let status = output_of(setup, "cat", &["/proc/self/status"]);
        ["SigBlk", "SigIgn", "SigCgt"].map(|field| signals(&status, field))
    };
    assert_eq!(left(&setup), left(&plain));
    let files = |setup: &Setup| output_of(setup, "ls", &["/proc/self/fd"]).lines().count();
    assert_eq!(files(&setup), files(&plain));
}

#[test]
fn a_step_that_fails_in_the_child_comes_back_with_its_arguments() {
    let nowhere: NodeSet = [absent_node()].into_iter().collect();
    let policy = MemPolicy::new(PolicyMode::Bind, nowhere);
    let setup = Setup::new().with_policy(policy.clone());
    let Err(StartError::Setup(error)) = setup.spawn(Command::new("true")) else { panic!("it started") };
    if error.errno == Errno::EINVAL {
        assert_eq!(error, mempolicy::set_thread_policy(&policy).unwrap_err());
    } else {
        unless_blocked::<()>(Err(error));
    }
    let setup = Setup::new().with_cpus(CpuSet::new());
    let Err(StartError::Setup(error)) = setup.spawn(Command::new("true")) else { panic!("it started") };
    if error.errno != Errno::EINVAL {
        unless_blocked::<()>(Err(error));
        return;
    }
    assert_eq!(error.to_string(), "sched_setaffinity(self, no CPUs): invalid argument");
    let Err(StartError::Setup(tried)) = setup.try_on_scratch_thread() else { panic!("it would work") };
    assert_eq!(tried, error);
}

#[test]
fn a_program_that_does_not_exist_is_no_fault_of_the_setup() {
    let setup = Setup::new().with_transparent_huge(TransparentHuge::Allowed);
    match setup.spawn(Command::new("/nonexistent/program")) {
        Err(StartError::Start(error)) => assert_eq!(error.kind(), ErrorKind::NotFound),
        other => panic!("{other:?}"),
    }
    match setup.spawn(Command::new("/")) {
        Err(StartError::Start(error)) => assert_eq!(error.kind(), ErrorKind::PermissionDenied),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_applied_setup_holds_on_the_thread_that_applied_it() {
    on_own_thread(|| {
        let Some(nodes) = usable_nodes() else { return };
        let policy = MemPolicy::new(PolicyMode::Interleave, nodes);
        let cpus: CpuSet = allowed_cpus().first().into_iter().collect();
        let setup = Setup::new().with_policy(policy.clone()).with_cpus(cpus.clone());
        if unless_blocked(setup.apply()).is_some() {
            assert_eq!(mempolicy::thread_policy(), Ok(policy));
            assert_eq!(affinity::cpus(Task::CURRENT), Ok(cpus));
        }
    });
}

/// Set for the copy of this test program that becomes another.
const BECOME: &str = "NODEWISE_TEST_BECOMES";

#[test]
fn a_process_that_becomes_a_program_takes_its_setup_along() {
    if let Ok(file) = env::var(BECOME) {
        let mut command = Command::new("cat");
        command.arg(file);
        panic!("{}", whole_setup().expect("it worked in the parent").exec(command));
    }
    let Some(setup) = whole_setup() else { return };
    let read = |file: &str| {
        let this_test = "setup::a_process_that_becomes_a_program_takes_its_setup_along";
        let output = Command::new(env::current_exe().unwrap())
            .args([this_test, "--exact", "--nocapture"])
            .env(BECOME, file)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    check_applied(&setup, &read("/proc/self/status"), &read("/proc/self/numa_maps"));
}

#[test]
fn a_program_that_cannot_be_become_is_no_fault_of_the_setup() {
    match Setup::new().exec(Command::new("/nonexistent/program")) {
        StartError::Start(error) => assert_eq!(error.kind(), ErrorKind::NotFound),
        StartError::Setup(error) => panic!("{error}"),
    }
}

#[test]
fn huge_pages_only_where_advised_work_or_need_a_newer_kernel() {
    let setup = Setup::new().with_transparent_huge(TransparentHuge::OnlyAdvised);
    match setup.spawn(Command::new("true")) {
        Ok(child) => assert!(nodewise_syscall::Running::from(child).wait().unwrap().status.success()),
        Err(StartError::Setup(error)) => {
            unless_blocked::<()>(Err(error));
        }
        Err(StartError::Start(error)) => skip(&error.to_string()),
    }
}
