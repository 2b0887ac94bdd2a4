//! Others' claims on a process: who placed its threads, locked its memory, or traces it.

use std::time::Duration;

use nodewise_machine::order::Order as _;
use nodewise_machine::{Bytes, CpuSet};

use super::{Pid, numbers, status};
use crate::mappings::{SMALLEST_PAGE, walk_price};
use crate::parse::{Problems, numa_maps, pid_stat, proc_status};
use crate::paths;
use crate::tree::Tree;

/// Most threads that are looked at.
const MOST_THREADS: usize = 1 << 16;
/// The dearest reading of the policies of all threads: each walks the pages of the first mapping.
const MOST_POLICY_COST: Duration = Duration::from_millis(100);
/// Bytes of `numa_maps` that hold the policy of the first mapping; with so few the kernel walks no more mappings.
const FIRST_MAPPING: usize = 64;
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
    /// The memory policies of its threads that are not the default, in the kernel's words; each once.
    pub policies: Option<Vec<String>>,
}

/// Reads them.
///
/// # Source
/// `/proc/PID/status`; of each thread `/proc/PID/task/TID/stat`, `status` and the first line of `numa_maps`, which
/// shows the policy of that thread. Threads that end meanwhile do not count.
pub fn claims(tree: &Tree, pid: Pid) -> Claims {
    let status = status(tree, pid).ok().flatten().map(|parsed| parsed.value).unwrap_or_default();
    let threads = threads(tree, pid);
    let cpus = |thread: &Thread| cpus(tree, pid, thread.tid);
    Claims {
        realtime: threads.as_deref().and_then(|threads| is_realtime(tree, pid, threads)),
        locked: status.locked,
        pinned: status.pinned,
        traced: status.tracer.map(|tracer| tracer != 0),
        policies: threads.as_ref().and_then(|threads| thread_policies(tree, pid, threads)).map(|all| {
            let set = all.into_iter().filter(|policy| policy != "default");
            set.collect()
        }),
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
    let text = thread_file(tree, pid, tid, "status", None)?;
    Some(text.and_then(|text| proc_status::parse(&text).value.cpus_allowed))
}

/// Whether one of these threads of a process is in a real-time class; `None` where one of them is not readable, or all
/// have ended.
///
/// # Source
/// `/proc/PID/task/TID/stat`.
pub fn is_realtime(tree: &Tree, pid: Pid, threads: &[Thread]) -> Option<bool> {
    let classes =
        threads.iter().filter_map(|thread| class(tree, pid, *thread)).collect::<Option<Vec<u32>>>()?;
    (!classes.is_empty()).then(|| classes.iter().any(|class| REAL_TIME.contains(class)))
}

/// The scheduling policy of a thread; none where it has ended, `Some(None)` where the kernel does not say.
fn class(tree: &Tree, pid: Pid, thread: Thread) -> Option<Option<u32>> {
    let text = thread_file(tree, pid, thread.tid, "stat", None)?;
    Some(text.and_then(|text| pid_stat::parse(&text).ok()?.policy))
}

/// A file of a thread, or its beginning; none where the thread has ended, `Some(None)` where it cannot be read.
fn thread_file(tree: &Tree, pid: Pid, tid: u32, name: &str, most: Option<usize>) -> Option<Option<String>> {
    let folder = format!("{}/task/{tid}", paths::process(pid));
    let path = format!("{folder}/{name}");
    let mut bytes = Vec::new();
    let read = match most {
        Some(most) => tree.read_start(&path, most, &mut bytes),
        None => tree.read_into(&path, &mut bytes),
    };
    match read {
        Ok(true) => Some(Some(String::from_utf8_lossy(&bytes).into_owned())),
        // A kernel without the file is not a thread that has ended.
        Ok(false) => tree.exists(&folder).then_some(None),
        Err(error) if error.is_of_ended() => None,
        Err(_) => Some(None),
    }
}

/// The memory policies of threads, each once; `None` where one is not readable, or all are too dear.
pub(super) fn thread_policies(tree: &Tree, pid: Pid, threads: &[Thread]) -> Option<Vec<String>> {
    let listed = thread_file(tree, pid, threads.first()?.tid, "maps", Some(FIRST_MAPPING))??;
    let (start, rest) = listed.split_once('-')?;
    let (end, _) = rest.split_once(' ')?;
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    let size = number(end)?.checked_sub(number(start)?)?;
    let all = Bytes::new(size.saturating_mul(threads.len() as u64));
    if walk_price(all, SMALLEST_PAGE) > MOST_POLICY_COST {
        return None;
    }
    let mut policies = Vec::new();
    for thread in threads {
        let Some(text) = thread_file(tree, pid, thread.tid, "numa_maps", Some(FIRST_MAPPING)) else {
            continue;
        };
        let text = text?;
        let policy = text.split_ascii_whitespace().nth(1)?;
        if !policies.iter().any(|known| known == policy) {
            policies.push(policy.to_owned());
        }
    }
    Some(policies)
}

/// The policies of the mappings of a process that are not the default, in the kernel's words, each once; those over memory
/// without pages count. `None` where they are not readable.
///
/// # Source
/// `/proc/PID/numa_maps`: the kernel walks the page tables for it, 84 ns for each small page, because no other file has
/// policies.
pub fn mapping_policies(tree: &Tree, pid: Pid) -> Option<Vec<String>> {
    let mut policies = MappingPolicies::default();
    let there = tree.read_lines(&paths::numa_maps(pid), &mut |line| policies.push(line));
    policies.finish().filter(|_| there == Ok(true))
}

/// The policies of mappings, from `numa_maps` line by line.
#[derive(Default)]
pub(crate) struct MappingPolicies {
    policies: Vec<String>,
    lines: u32,
    is_cut: bool,
    problems: Problems,
}

impl MappingPolicies {
    /// Takes the next line.
    pub(crate) fn push(&mut self, line: &str) {
        self.lines = self.lines.saturating_add(1);
        match line.split_ascii_whitespace().nth(1) {
            None => self.is_cut = true,
            Some("default") => {}
            Some(word) => {
                let read = numa_maps::parse_line(line, self.lines, &mut self.problems);
                let policy = read.map_or_else(|| word.to_owned(), |mapping| mapping.policy_text);
                if !self.policies.contains(&policy) {
                    self.policies.push(policy);
                }
            }
        }
    }

    /// Those that are not the default, each once; `None` where a line was cut, and where none came.
    pub(crate) fn finish(self) -> Option<Vec<String>> {
        (!self.is_cut && self.lines > 0).then_some(self.policies)
    }
}

/// Addresses of the program that a process runs: `exec` keeps the process and changes them. `None` where they are not
/// readable.
///
/// # Source
/// `/proc/PID/stat`: `startcode` and `startstack`, which without the right to trace are 0 or 1.
pub fn image(tree: &Tree, pid: Pid) -> Option<String> {
    let text = tree.read_text(&format!("{}/stat", paths::process(pid))).ok().flatten()?;
    let (_, rest) = text.rsplit_once(')')?;
    let number =
        |at: usize| rest.split_ascii_whitespace().nth(at)?.parse::<u64>().ok().filter(|number| *number > 1);
    Some(format!("{:x}-{:x}", number(23)?, number(25)?))
}

/// A thread of a process by its number; `None` where there is none now, or it cannot be read.
///
/// # Source
/// `/proc/PID/task/TID/stat`.
pub fn thread(tree: &Tree, pid: Pid, tid: u32) -> Option<Thread> {
    known(tree, pid, tid)?
}

fn known(tree: &Tree, pid: Pid, tid: u32) -> Option<Option<Thread>> {
    let text = thread_file(tree, pid, tid, "stat", None)?;
    let started = text.and_then(|text| pid_stat::parse(&text).ok().map(|stat| stat.started_ticks));
    Some(started.map(|started_ticks| Thread { tid, started_ticks }))
}

/// The threads of a process by number; `None` where the process has ended, cannot be read, or has too many.
///
/// # Source
/// `/proc/PID/task/TID/stat`.
pub fn threads(tree: &Tree, pid: Pid) -> Option<Vec<Thread>> {
    let names = tree.list(&format!("{}/task", paths::process(pid))).ok().flatten()?;
    let tids: Vec<u32> = numbers(names).map(|tid| tid.number()).take(MOST_THREADS + 1).collect();
    if tids.len() > MOST_THREADS {
        return None;
    }
    let mut threads =
        tids.iter().filter_map(|tid| known(tree, pid, *tid)).collect::<Option<Vec<Thread>>>()?;
    threads.order();
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
                .file("/proc/7/task/9/status", "Cpus_allowed:\t1\n")
                .file("/proc/7/task/7/maps", "5000-9000 r--p 00000000 fe:00 1 /bin/x\n")
                .file("/proc/7/task/7/numa_maps", "5000 default file=/bin/x mapped=1 N0=1\n")
                .file("/proc/7/task/9/numa_maps", "5000 bind:0 file=/bin/x mapped=1 N0=1\n"),
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
            policies: Some(vec!["bind:0".to_owned()]),
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
        let broken = Memory::new().file("/proc/7/task/7/stat", "7 (x");
        assert_eq!(threads(&Tree::memory(broken), Pid::new(7)), None, "it has not ended");
        assert!(own.realtime.is_some() && own.traced.is_some() && own.cpus.is_some(), "{own:?}");
    }

    #[test]
    fn policies_of_mappings_count_with_pages_and_without() {
        let read = |numa_maps: &str| {
            let tree = Tree::memory(Memory::new().file("/proc/7/numa_maps", numa_maps));
            mapping_policies(&tree, Pid::new(7))
        };
        let words = |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        let plain = "5000 default file=/bin/x mapped=1 N0=1 kernelpagesize_kB=4\n7000 default\n";
        assert_eq!(read(plain), words(&[]));
        let more =
            "8000 bind:1\n9000 prefer (many):0-1 anon=4 N0=4 kernelpagesize_kB=4\na000 bind:1\nb000 odd?\n";
        assert_eq!(read(&format!("{plain}{more}")), words(&["bind:1", "prefer (many):0-1", "odd?"]));
        // A process that has ended has no lines, and a line that is cut says nothing.
        assert_eq!((read(""), read("5000 default\n7000"), read("5000")), (None, None, None));
        assert_eq!(mapping_policies(&Tree::memory(Memory::new()), Pid::new(7)), None);
        assert_eq!(mapping_policies(&Tree::live(), Pid::new(std::process::id())), words(&[]));
    }

    /// The kernel shows the policy of each thread, not that of the first one only.
    #[test]
    fn the_policy_of_a_thread_is_its_own() {
        let tree = Tree::live();
        let own = Pid::new(std::process::id());
        let before = claims(&tree, own).policies;
        assert!(before.is_some(), "readable");
        assert!(image(&tree, own).is_some());
        // A first mapping that is large makes it too dear.
        let large = Memory::new()
            .file("/proc/7/status", "")
            .file("/proc/7/task/7/stat", stat(7, 100, 0))
            .file("/proc/7/task/7/maps", "5000-700000000 rw-p 00000000 00:00 0\n")
            .file("/proc/7/task/7/numa_maps", "5000 default anon=9 N0=9\n");
        assert_eq!(claims(&Tree::memory(large), Pid::new(7)).policies, None);
    }
}
