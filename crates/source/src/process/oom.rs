//! Processes as the kernel's OOM killer sees them.
//!
//! A server has hundreds of processes, and the kernel takes 15 µs to write all that counts of one. It writes a score in a
//! third of that, to a thousandth and a half of the memory, and that decides in most cases: [`glances`] has the scores of
//! all, [`read`] the sizes of some. Several threads read them.

use nodewise_machine::order::Order as _;
use nodewise_machine::{Bytes, MemPolicy, NodeSet, PolicyMode};

use super::{MOST_PROCESSES, Pid, claims, numbers, status};
use crate::file;
use crate::parse::{meminfo, number};
use crate::tree::Tree;
use crate::turns::Turns;

/// How processes are read: to start a thread takes as long as to read about five.
const TURNS: Turns = Turns { size: 16, most_threads: 8 };

/// The kernel's own opinion of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Glance {
    pub pid: Pid,
    /// Its `oom_score`: above 0. `None` where there is none.
    pub score: Option<u32>,
    /// Its `oom_score_adj`; `None` where it was not asked for or is not readable.
    pub adjustment: Option<i32>,
}

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

/// The processes but init, in the order of their numbers, which is that in which they started unless numbers came round;
/// none where the machine names none, as a capture.
pub fn all(tree: &Tree) -> Vec<Pid> {
    let names = tree.list("/proc").ok().flatten().unwrap_or_default();
    let mut pids: Vec<Pid> = numbers(names).filter(|pid| pid.number() != 1).take(MOST_PROCESSES).collect();
    pids.order();
    pids
}

/// The scores of processes, without those that have no memory, as threads of the kernel, and those that are exempt: both have a
/// score of 0.
///
/// # Source
/// `/proc/PID/oom_score` and, where asked for, `/proc/PID/oom_score_adj`, Linux 2.6.36.
pub fn glances(tree: &Tree, pids: &[Pid], with_adjustments: bool) -> Vec<Glance> {
    in_turns(pids, |pid| {
        let score = file::value(tree, &format!("/proc/{pid}/oom_score"), number::number).ok().flatten();
        let adjustment = || with_adjustments.then(|| adjustment(tree, pid)).flatten();
        (score != Some(0)).then(|| Glance { pid, score, adjustment: adjustment() })
    })
}

/// Reads processes: `None` for one whose memory could not be read. Those that have none are left out, as threads of the
/// kernel and processes that have ended.
///
/// # Source
/// `/proc/PID/status` and `/proc/PID/oom_score_adj`, Linux 2.6.36.
pub fn read(tree: &Tree, pids: &[Pid]) -> Vec<(Pid, Option<Killable>)> {
    in_turns(pids, |pid| {
        let own = status(tree, pid).ok()??.value;
        let resident = own.resident?;
        let known = own.swapped.zip(own.page_tables).zip(adjustment(tree, pid));
        let killable = known.map(|((swapped, page_tables), adjustment)| Killable {
            pid,
            name: own.name,
            resident,
            swapped,
            page_tables,
            adjustment,
            allowed: own.mems_allowed,
        });
        Some((pid, killable))
    })
}

/// Reads something of each process, in the order of the processes.
pub fn in_turns<T: Send>(pids: &[Pid], read: impl Fn(Pid) -> Option<T> + Sync) -> Vec<T> {
    TURNS.read(pids, |pid| read(*pid))
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

    fn pids(numbers: impl IntoIterator<Item = u32>) -> Vec<Pid> {
        numbers.into_iter().map(Pid::new).collect()
    }

    #[test]
    fn a_score_of_0_is_a_process_that_is_not_killed() {
        let tree = Tree::memory(
            Memory::new()
                .file("/proc/1/oom_score", "666\n")
                .file("/proc/2/oom_score", "0\n")
                .file("/proc/30/oom_score", "700\n")
                .file("/proc/30/oom_score_adj", "-17\n")
                .file("/proc/4/oom_score", "666\n")
                .file("/proc/5/status", STATUS),
        );
        let glance = |pid, score, adjustment| Glance { pid: Pid::new(pid), score, adjustment };
        assert_eq!(all(&tree), pids([2, 4, 5, 30]));
        assert_eq!(
            glances(&tree, &all(&tree), true),
            [glance(4, Some(666), None), glance(5, None, None), glance(30, Some(700), Some(-17))]
        );
        assert_eq!(glances(&tree, &pids([2, 30]), false), [glance(30, Some(700), None)]);
        let live = glances(&Tree::live(), &pids([std::process::id()]), true);
        assert!(matches!(live[..], [Glance { score: Some(1..), adjustment: Some(_), .. }]), "{live:?}");
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
        let found = read(&tree, &all(&tree));
        let expected = Killable {
            pid: Pid::new(30),
            name: Some("data".to_owned()),
            resident: Bytes::from_kib(800),
            swapped: Bytes::from_kib(40),
            page_tables: Bytes::from_kib(12),
            adjustment: -17,
            allowed: Some([0, 1].into()),
        };
        assert_eq!(found, [(Pid::new(4), None), (Pid::new(30), Some(expected))]);
        let settings = settings(&tree);
        assert_eq!((settings.panics, settings.kills_asking), (Some(2), None));
        assert_eq!(settings.swap, Some(Bytes::from_kib(64)));
        assert_eq!(all(&Tree::memory(Memory::new().file("/proc/meminfo", ""))), []);
        let own = Pid::new(std::process::id());
        assert!(all(&Tree::live()).contains(&own));
        assert!(matches!(&read(&Tree::live(), &[own])[..], [(pid, Some(_))] if *pid == own));
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
