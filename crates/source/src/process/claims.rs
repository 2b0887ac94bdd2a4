//! Others' claims on a process: who placed its threads, locked its memory, or traces it.

use nodewise_machine::{Bytes, CpuSet};

use super::{Pid, numbers, status};
use crate::parse::{pid_stat, proc_status};
use crate::paths;
use crate::tree::Tree;

/// Most threads that are looked at.
const MOST_THREADS: usize = 1 << 16;
/// Scheduling policies of real time: `SCHED_FIFO`, `SCHED_RR` and `SCHED_DEADLINE` of `include/uapi/linux/sched.h`.
const REAL_TIME: [u32; 3] = [1, 2, 6];

/// A thread, and not another one that has its number later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Thread {
    pub tid: u32,
    pub started_ticks: u64,
}

/// Others' claims on a process. `None`: not readable.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Claims {
    /// Whether a thread is in a real-time class.
    pub realtime: Option<bool>,
    pub locked: Option<Bytes>,
    pub pinned: Option<Bytes>,
    pub traced: Option<bool>,
    /// The CPUs of each of its threads.
    pub cpus: Option<Vec<CpuSet>>,
}

/// Reads them.
///
/// # Source
/// `/proc/PID/status`; of each thread `/proc/PID/task/TID/stat` and `status`. Threads that end meanwhile do not count.
pub fn claims(tree: &Tree, pid: Pid) -> Claims {
    let status = status(tree, pid).ok().flatten().map(|parsed| parsed.value).unwrap_or_default();
    let threads = threads(tree, pid);
    let policies = threads.as_ref().map(|threads| {
        threads.iter().filter_map(|thread| policy(tree, pid, *thread)).collect::<Option<Vec<u32>>>()
    });
    let cpus = |thread: &Thread| cpus(tree, pid, thread.tid);
    Claims {
        realtime: policies
            .flatten()
            .filter(|all| !all.is_empty())
            .map(|all| all.iter().any(|policy| REAL_TIME.contains(policy))),
        locked: status.locked,
        pinned: status.pinned,
        traced: status.tracer.map(|tracer| tracer != 0),
        cpus: threads
            .and_then(|threads| threads.iter().filter_map(cpus).collect::<Option<Vec<CpuSet>>>())
            .filter(|cpus| !cpus.is_empty()),
    }
}

/// The CPUs that a thread may use, those that are offline included; `None` where it has ended, `Some(None)` where the
/// kernel does not say.
///
/// # Source
/// `/proc/PID/task/TID/status`.
pub fn cpus(tree: &Tree, pid: Pid, tid: u32) -> Option<Option<CpuSet>> {
    let text = tree.read_text(&format!("{}/task/{tid}/status", paths::process(pid))).ok().flatten()?;
    Some(proc_status::parse(&text).value.cpus_allowed)
}

/// The scheduling policy of a thread; none where it has ended, `Some(None)` where the kernel does not say.
fn policy(tree: &Tree, pid: Pid, thread: Thread) -> Option<Option<u32>> {
    let text = tree.read_text(&format!("{}/task/{}/stat", paths::process(pid), thread.tid)).ok().flatten()?;
    pid_stat::parse(&text).ok().map(|stat| stat.policy)
}

/// The threads of a process by number; `None` where there is no such process, or it cannot be read.
///
/// # Source
/// `/proc/PID/task/TID/stat`.
pub fn threads(tree: &Tree, pid: Pid) -> Option<Vec<Thread>> {
    let folder = format!("{}/task", paths::process(pid));
    let names = tree.list(&folder).ok().flatten()?;
    let thread = |tid: Pid| {
        let text = tree.read_text(&format!("{folder}/{tid}/stat")).ok().flatten()?;
        let stat = pid_stat::parse(&text).ok()?;
        Some(Thread { tid: tid.number(), started_ticks: stat.started_ticks })
    };
    let mut threads: Vec<Thread> = numbers(names).take(MOST_THREADS).filter_map(thread).collect();
    threads.sort_unstable();
    Some(threads)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Memory;

    fn stat(tid: u32, started: u64, policy: u32) -> String {
        format!("{tid} (x) S {}{started} 0 0 {}3 0 {policy} 0\n", "1 ".repeat(18), "0 ".repeat(14))
    }

    fn tree(second_policy: u32, status: &str) -> Tree {
        Tree::memory(
            Memory::new()
                .file("/proc/7/status", status)
                .file("/proc/7/task/7/stat", stat(7, 100, 0))
                .file("/proc/7/task/7/status", "Cpus_allowed:\t3\n")
                .file("/proc/7/task/9/stat", stat(9, 120, second_policy))
                .file("/proc/7/task/9/status", "Cpus_allowed:\t1\n"),
        )
    }

    #[test]
    fn claims_of_every_thread_count() {
        let status = "TracerPid:\t0\nVmLck:\t8 kB\nVmPin:\t0 kB\n";
        let found = claims(&tree(1, status), Pid::new(7));
        let cpus = vec![CpuSet::from([0, 1]), CpuSet::from([0])];
        let expected = Claims {
            realtime: Some(true),
            locked: Some(Bytes::from_kib(8)),
            pinned: Some(Bytes::new(0)),
            traced: Some(false),
            cpus: Some(cpus),
        };
        assert_eq!(found, expected);
        assert_eq!(claims(&tree(3, "TracerPid:\t12\n"), Pid::new(7)).realtime, Some(false));
        assert_eq!(claims(&tree(3, "TracerPid:\t12\n"), Pid::new(7)).traced, Some(true));
    }

    #[test]
    fn unknown_is_not_harmless() {
        assert_eq!(claims(&tree(0, ""), Pid::new(8)), Claims::default());
        assert_eq!(threads(&tree(0, ""), Pid::new(8)), None);
        let own = claims(&Tree::live(), Pid::new(std::process::id()));
        assert!(own.realtime.is_some() && own.traced.is_some() && own.cpus.is_some(), "{own:?}");
    }
}
