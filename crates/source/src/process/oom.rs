//! Processes as the kernel's OOM killer sees them.

use nodewise_machine::order::Order as _;
use nodewise_machine::{Bytes, MemPolicy, NodeSet, PolicyMode};

use super::{MOST_PROCESSES, Pid, claims, numbers, status};
use crate::file;
use crate::parse::{meminfo, number};
use crate::tree::Tree;

/// A process that may be killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Killable {
    pub pid: Pid,
    /// Its command name as it was read, not fit for a terminal.
    pub name: Option<String>,
    /// Its memory in RAM, without pages of huge page pools.
    pub resident: Bytes,
    /// Its memory that is swapped out, without that of shared memory.
    pub swapped: Bytes,
    pub page_tables: Bytes,
    /// Its `oom_score_adj`.
    pub adjustment: i32,
    /// The nodes that its cpuset allows; `None` where the kernel does not say.
    pub allowed: Option<NodeSet>,
}

/// The processes that may be killed: not init, and no thread of the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Killables {
    /// In the order of their numbers, which is that in which they started unless numbers came round.
    pub processes: Vec<Killable>,
    /// How many have memory that could not be read.
    pub unread: usize,
}

/// The settings of the OOM killer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct OomSettings {
    /// `vm.panic_on_oom`.
    pub panics: Option<u32>,
    /// `vm.oom_kill_allocating_task`.
    pub kills_asking: Option<u32>,
    /// All space for swapping.
    pub swap: Option<Bytes>,
}

/// Reads the processes; `None` where there are none, as in a capture.
///
/// # Source
/// `/proc/PID/status` and `/proc/PID/oom_score_adj`, Linux 2.6.36.
pub fn killables(tree: &Tree) -> Option<Killables> {
    let mut pids: Vec<Pid> = numbers(tree.list("/proc").ok()??).take(MOST_PROCESSES).collect();
    pids.order();
    let mut found = Killables::default();
    for pid in pids.iter().filter(|pid| pid.number() != 1) {
        let Ok(Some(parsed)) = status(tree, *pid) else { continue };
        let own = parsed.value;
        // Threads of the kernel and processes that have ended have no memory.
        let Some(resident) = own.resident else { continue };
        match (own.swapped, own.page_tables, adjustment(tree, *pid)) {
            (Some(swapped), Some(page_tables), Some(adjustment)) => found.processes.push(Killable {
                pid: *pid,
                name: own.name,
                resident,
                swapped,
                page_tables,
                adjustment,
                allowed: own.mems_allowed,
            }),
            _ => found.unread += 1,
        }
    }
    (!found.processes.is_empty()).then_some(found)
}

/// How much worse or better a process is than its size, in thousandths of the memory; `None` where it is not readable.
///
/// # Source
/// `/proc/PID/oom_score_adj`, Linux 2.6.36.
pub fn adjustment(tree: &Tree, pid: Pid) -> Option<i32> {
    let text = tree.read_text(&format!("/proc/{pid}/oom_score_adj")).ok().flatten()?;
    text.trim().parse().ok().filter(|value| (-1000..=1000).contains(value))
}

/// The nodes that the threads of a process are bound to by their own policies, all together: `Some(None)` where a thread may
/// use every node, `None` where that is not readable.
///
/// # Source
/// The first line of `/proc/PID/task/TID/numa_maps`.
pub fn bound(tree: &Tree, pid: Pid) -> Option<Option<NodeSet>> {
    let threads = claims::threads(tree, pid)?;
    let mut nodes = NodeSet::new();
    for text in claims::thread_policies(tree, pid, &threads)? {
        let policy: MemPolicy = text.parse().ok()?;
        match policy.mode {
            PolicyMode::Bind => nodes = nodes.union(&policy.nodes),
            _ => return Some(None),
        }
    }
    Some(Some(nodes).filter(|nodes| !nodes.is_empty()))
}

/// Reads the settings.
///
/// # Source
/// `/proc/sys/vm/panic_on_oom`, `/proc/sys/vm/oom_kill_allocating_task`, `/proc/meminfo`.
pub fn settings(tree: &Tree) -> OomSettings {
    let of = |name: &str| file::value(tree, &format!("/proc/sys/vm/{name}"), number::number).ok().flatten();
    OomSettings {
        panics: of("panic_on_oom"),
        kills_asking: of("oom_kill_allocating_task"),
        swap: file::value(tree, "/proc/meminfo", meminfo::system_swap).ok().flatten().flatten(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Memory;

    const STATUS: &str = "Name:\tdata\nVmRSS:\t800 kB\nVmSwap:\t40 kB\nVmPTE:\t12 kB\nMems_allowed:\t3\n";

    fn stat(tid: u32) -> String {
        format!("{tid} (x) S {}100 0 0 {}3 0 0 0\n", "1 ".repeat(18), "0 ".repeat(14))
    }

    #[test]
    fn processes_with_memory_are_read_but_init() {
        let tree = Tree::memory(
            Memory::new()
                .file("/proc/1/status", STATUS)
                .file("/proc/1/oom_score_adj", "0\n")
                .file("/proc/2/status", "Name:\tkthreadd\nMems_allowed:\t3\n")
                .file("/proc/2/oom_score_adj", "0\n")
                .file("/proc/30/status", STATUS)
                .file("/proc/30/oom_score_adj", "-17\n")
                .file("/proc/4/status", STATUS)
                .file("/proc/4/oom_score_adj", "2000\n")
                .file("/proc/sys/vm/panic_on_oom", "2\n")
                .file("/proc/meminfo", "MemTotal: 9 kB\nSwapTotal: 64 kB\nSwapFree: 60 kB\n"),
        );
        let found = killables(&tree).unwrap();
        let expected = Killable {
            pid: Pid::new(30),
            name: Some("data".to_owned()),
            resident: Bytes::from_kib(800),
            swapped: Bytes::from_kib(40),
            page_tables: Bytes::from_kib(12),
            adjustment: -17,
            allowed: Some([0, 1].into()),
        };
        assert_eq!(found, Killables { processes: vec![expected], unread: 1 });
        let settings = settings(&tree);
        assert_eq!((settings.panics, settings.kills_asking), (Some(2), None));
        assert_eq!(settings.swap, Some(Bytes::from_kib(64)));
        assert_eq!(killables(&Tree::memory(Memory::new().file("/proc/meminfo", ""))), None);
        let live = killables(&Tree::live()).unwrap();
        assert!(live.processes.iter().any(|own| own.pid.number() == std::process::id()), "{live:?}");
    }

    #[test]
    fn a_process_is_bound_where_all_its_threads_are() {
        let bound_by = |first: &str, second: &str| {
            let folder = Memory::new()
                .file("/proc/7/task/7/stat", stat(7))
                .file("/proc/7/task/9/stat", stat(9))
                .file("/proc/7/task/7/maps", "5000-9000 r--p 00000000 fe:00 1 /bin/x\n")
                .file("/proc/7/task/7/numa_maps", format!("5000 {first} file=/bin/x mapped=1 N0=1\n"))
                .file("/proc/7/task/9/numa_maps", format!("5000 {second} file=/bin/x mapped=1 N0=1\n"));
            bound(&Tree::memory(folder), Pid::new(7))
        };
        assert_eq!(bound_by("bind:0", "bind=static:2"), Some(Some([0, 2].into())));
        assert_eq!(bound_by("bind:0", "default"), Some(None));
        assert_eq!(bound_by("bind:0", "interleave:0"), Some(None));
        assert_eq!(bound_by("bind:0", "odd"), None);
        assert_eq!(bound(&Tree::live(), Pid::new(std::process::id())), Some(None));
    }
}
