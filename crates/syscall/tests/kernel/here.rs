//! Where the tests run: what this process may do, and what to do where it may not.

use std::fs;
use std::thread;

use nodewise_machine::{CpuSet, KernelRelease, NodeId, NodeSet};
use nodewise_syscall::{CallError, Circumstances, Limit, SeccompMode, Support, explain, mempolicy};

/// Runs a test on a thread of its own, so that policy and CPUs of no other test are touched.
pub fn on_own_thread<T: Send + 'static>(test: impl FnOnce() -> T + Send + 'static) -> T {
    thread::spawn(test).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The value of a call; `None`, with a line that says why, where a sandbox takes the call away.
///
/// The errors that are let pass are those which the circumstances show to be none of the call's own:
/// a seccomp filter (docker's answers EPERM, podman's ENOSYS), a sandbox outside of the kernel, a
/// kernel without NUMA or without transparent huge pages, a kernel that is too old for the call.
pub fn unless_blocked<T>(result: Result<T, CallError>) -> Option<T> {
    let error = match result {
        Ok(value) => return Some(value),
        Err(error) => error,
    };
    let explanation = explain(&error, &circumstances());
    let foreign = [Limit::Seccomp, Limit::Sandbox, Limit::KernelBuild, Limit::KernelRelease];
    assert!(foreign.contains(&explanation.limit), "{explanation}");
    skip(&explanation.to_string());
    None
}

/// Says in one line what could not be tested.
#[expect(clippy::print_stderr, reason = "a test that cannot run says why")]
pub fn skip(why: &str) {
    eprintln!("skipped: {why}");
}

/// Gathers the known facts here, as `nodewise` does.
pub fn circumstances() -> Circumstances {
    let seccomp = status("Seccomp").and_then(|mode| SeccompMode::from_number(mode.parse().ok()?));
    let capabilities = status("CapEff").and_then(|mask| u64::from_str_radix(&mask, 16).ok());
    Circumstances {
        release: read("/proc/sys/kernel/osrelease").and_then(|text| KernelRelease::new(&text)),
        online_nodes: online_nodes(),
        memory_nodes: read("/sys/devices/system/node/has_memory").and_then(|list| list.parse().ok()),
        allowed_nodes: status("Mems_allowed_list").and_then(|list| list.parse().ok()),
        online_cpus: read("/sys/devices/system/cpu/online").and_then(|list| list.parse().ok()),
        allowed_cpus: None,
        seccomp,
        sys_nice: capabilities.map(|mask| mask >> 23 & 1 == 1),
        no_new_privileges: status("NoNewPrivs").map(|flag| flag == "1"),
        user_namespace: None,
        container: None,
        support: Some(Support::probe()),
    }
}

/// A line of this thread's status.
pub fn status(field: &str) -> Option<String> {
    field_of(&read("/proc/thread-self/status")?, field)
}

/// A line of a status file.
pub fn field_of(status: &str, field: &str) -> Option<String> {
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    Some(line.trim().to_owned())
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok()
}

fn online_nodes() -> Option<NodeSet> {
    read("/sys/devices/system/node/online").and_then(|list| list.parse().ok())
}

/// Nodes that this process can have memory on; `None`, with a line, where nothing shows them.
pub fn usable_nodes() -> Option<NodeSet> {
    let allowed = unless_blocked(mempolicy::allowed_nodes())?;
    let memory = circumstances().memory_nodes.unwrap_or_else(|| allowed.clone());
    let usable = allowed.intersection(&memory);
    assert!(!usable.is_empty(), "a running process has memory");
    Some(usable)
}

/// The first of the usable nodes.
pub fn usable_node() -> Option<NodeId> {
    usable_nodes()?.first()
}

/// A node that does not exist.
pub fn absent_node() -> NodeId {
    let last = online_nodes().and_then(|nodes| nodes.last()).map_or(0, NodeId::number);
    NodeId::new(last + 1)
}

/// The CPUs that this thread may run on.
pub fn allowed_cpus() -> CpuSet {
    status("Cpus_allowed_list")
        .and_then(|list| list.parse().ok())
        .expect("every Linux since 2.6.26 lists them")
}
