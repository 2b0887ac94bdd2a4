//! Calls that a seccomp filter takes away: the filter sits on a thread of its own, and is real.

use std::process::Command;

use nodewise_machine::{Bytes, CpuSet, MemPolicy, NodeId, NodeSet, PolicyMode};
use nodewise_syscall::{
    Availability, BindOptions, CallError, Container, Errno, Limit, NodeBuffer, PageKind, PageScope,
    ReadError, Running, Setup, StartError, Support, Task, affinity, explain, mempolicy, pages,
};

use crate::filter::{NUMA_CALLS, block};
use crate::here::{circumstances, on_own_thread, skip, unless_blocked};

/// Runs a test where the calls are answered with each of the two errors that filters use.
fn where_blocked(calls: &'static [std::ffi::c_long], test: fn(Errno)) {
    for answer in [Errno::EPERM, Errno::ENOSYS] {
        on_own_thread(move || match block(calls, answer) {
            Ok(()) => test(answer),
            // EINVAL: a kernel without seccomp filters. EPERM, EACCES: a filter forbids another.
            Err(error) => skip(&format!("no filter can be installed: {error}")),
        });
    }
}

fn bind_to_node_0() -> MemPolicy {
    MemPolicy::new(PolicyMode::Bind, NodeSet::from([0]))
}

/// Checks that the error is explained as the work of the filter, with docker's line.
fn check(error: &CallError, answer: Errno, line: &str) {
    assert_eq!(error.errno, answer);
    let mut here = circumstances();
    here.container = Some(Container::Docker);
    here.sys_nice = Some(false);
    for support in [here.support.take(), None] {
        here.support = support;
        let explanation = explain(error, &here);
        assert_eq!(explanation.limit, Limit::Seccomp, "{explanation}");
        let mend = explanation.mend.unwrap();
        assert!(mend.contains(line), "{mend}");
    }
}

/// The system call error inside of a policy that could not be read.
fn call_error<T: std::fmt::Debug>(result: Result<T, ReadError>) -> CallError {
    match result {
        Err(ReadError::Call(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_blocked_policy_call_is_explained_with_the_capability_that_opens_it() {
    where_blocked(&NUMA_CALLS, |answer| {
        let policy = bind_to_node_0();
        let options = BindOptions::default();
        for error in [
            mempolicy::set_thread_policy(&policy).unwrap_err(),
            call_error(mempolicy::thread_policy()),
            mempolicy::allowed_nodes().unwrap_err(),
            mempolicy::bind_range(0x1000, 0x1000, &policy, options).unwrap_err(),
            NodeBuffer::new(Bytes::from_kib(64), PageKind::Small, Some(&policy)).unwrap_err(),
        ] {
            check(&error, answer, "docker run --cap-add=SYS_NICE");
        }
    });
}

#[test]
fn a_blocked_page_call_is_explained_with_a_profile() {
    where_blocked(&NUMA_CALLS, |answer| {
        let one = NodeSet::from([0]);
        let here = std::ptr::from_ref(&one).addr();
        check(&pages::count(Task::CURRENT, [here]).unwrap_err(), answer, "seccomp=PROFILE.json");
        // About other processes and shared pages the kernel has rules of its own, so there the
        // probe decides.
        let moves = [(here, NodeId::new(0))];
        let shared = pages::move_each(Task::CURRENT, moves, PageScope::All);
        let migrated = pages::migrate(Task::CURRENT, &one, &one);
        for error in [shared.unwrap_err(), migrated.unwrap_err()] {
            assert_eq!(error.errno, answer);
            assert_eq!(explain(&error, &circumstances()).limit, Limit::Seccomp, "{error}");
        }
    });
}

#[test]
fn a_blocked_affinity_call_is_explained_as_a_filter() {
    where_blocked(&[libc::SYS_sched_setaffinity], |answer| {
        let error = affinity::set_cpus(Task::CURRENT, &CpuSet::from([0])).unwrap_err();
        check(&error, answer, "a copy of the default profile that allows sched_setaffinity");
    });
}

#[test]
fn the_probe_tells_blocked_from_absent_and_leaves_the_rest() {
    where_blocked(&NUMA_CALLS, |answer| {
        let support = Support::probe();
        let expected =
            if answer == Errno::ENOSYS { Availability::Absent } else { Availability::Blocked(answer) };
        for got in [
            support.get_mempolicy,
            support.set_mempolicy,
            support.mbind,
            support.home_node,
            support.migrate_pages,
            support.move_pages,
            support.mode(PolicyMode::Bind),
            support.balancing(PolicyMode::Bind),
        ] {
            assert_eq!(got, expected, "{support:?}");
        }
        assert!(support.transparent_huge.is_present());
    });
}

/// The call inside of a setup that could not be applied.
fn setup_error(error: StartError) -> CallError {
    match error {
        StartError::Setup(error) => error,
        StartError::Start(error) => panic!("{error}"),
    }
}

#[test]
fn a_setup_that_is_blocked_in_the_child_comes_back_as_the_call_that_failed() {
    where_blocked(&NUMA_CALLS, |answer| {
        let setup = Setup::new().with_policy(bind_to_node_0());
        let tried = setup.try_on_scratch_thread().unwrap_err();
        let started = setup.spawn(Command::new("true")).unwrap_err();
        for error in [tried, started] {
            check(&setup_error(error), answer, "docker run --cap-add=SYS_NICE");
        }
    });
}

#[test]
fn binding_to_cpus_needs_none_of_the_blocked_calls() {
    where_blocked(&NUMA_CALLS, |_| {
        let cpus = affinity::cpus(Task::CURRENT).unwrap();
        match Setup::new().with_cpus(cpus).spawn(Command::new("true")) {
            Ok(child) => assert!(Running::from(child).wait().unwrap().status.success()),
            // A filter around the tests that takes this call away too.
            Err(error) => assert!(unless_blocked::<()>(Err(setup_error(error))).is_none()),
        }
    });
}
