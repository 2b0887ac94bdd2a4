//! Processes: what they may do, their descendants, and where their memory is.
//!
//! Processes end while they are looked at. That is not an error here: what has gone is counted as gone,
//! and the rest is read.

pub mod claims;
pub mod oom;
pub mod search;

use std::collections::{BTreeMap, BTreeSet};

use nodewise_machine::CpuId;
pub use nodewise_machine::Pid;

use crate::file;
use crate::parse::numa_maps::sums::{Summing, Sums};
use crate::parse::proc_status::{self, ProcessStatus};
use crate::parse::{Parsed, cgroup, pid_stat};
use crate::paths;
use crate::tree::{ReadError, Tree};

/// Most processes of one family; a fork bomb must not cost memory.
const MOST_PROCESSES: usize = 1 << 16;

/// Reads the state and the rights of a process; `None` when there is no such process.
///
/// # Source
/// `/proc/PID/status`.
///
/// # Errors
/// A file that cannot be read.
pub fn status(tree: &Tree, pid: Pid) -> Result<Option<Parsed<ProcessStatus>>, ReadError> {
    file::parsed(tree, &format!("/proc/{pid}/status"), proc_status::parse)
}

/// The CPU that a process's first thread ran on last; `None` where the kernel does not say.
///
/// # Source
/// `/proc/PID/stat`, field `processor`, Linux 2.2.8.
pub fn last_cpu(tree: &Tree, pid: Pid) -> Option<CpuId> {
    let text = tree.read_text(&format!("/proc/{pid}/stat")).ok().flatten()?;
    pid_stat::parse(&text).ok()?.processor
}

/// The control group that bounds the memory of a process, as a path below that hierarchy's root; `None` where that is
/// not known.
///
/// # Source
/// `/proc/PID/cgroup`.
pub fn group(tree: &Tree, pid: Pid) -> Option<String> {
    let groups = file::parsed(tree, &format!("/proc/{pid}/cgroup"), cgroup::parse).ok()??.value;
    cgroup::of_memory(&groups).map(|group| group.path.clone())
}

/// The user in whose name the caller acts.
///
/// # Source
/// `/proc/self/status`.
pub fn own_user(tree: &Tree) -> Option<u32> {
    file::parsed(tree, "/proc/self/status", proc_status::parse).ok().flatten()?.value.user
}

/// A process and its descendants, parents before children. A descendant whose own parent has ended
/// belongs to init and is not found; the process itself always comes first.
///
/// # Source
/// `/proc/PID/task/TID/children`, Linux 3.5, or where the kernel was built without it the `PPid` of
/// every process.
pub fn family(tree: &Tree, pid: Pid) -> Vec<Pid> {
    let mut family = vec![pid];
    let mut seen = BTreeSet::from([pid]);
    let scanned = if has_children_files(tree) { None } else { Some(by_parent(tree)) };
    let mut at = 0;
    while let Some(parent) = family.get(at).copied().filter(|_| family.len() < MOST_PROCESSES) {
        let children = match &scanned {
            Some(by_parent) => by_parent.get(&parent).cloned().unwrap_or_default(),
            None => children(tree, parent),
        };
        family.extend(children.into_iter().filter(|child| seen.insert(*child)));
        at += 1;
    }
    family.truncate(MOST_PROCESSES);
    family
}

/// Whether this kernel has the files: checked on a process that always exists.
fn has_children_files(tree: &Tree) -> bool {
    tree.exists("/proc/thread-self/children") || tree.exists("/proc/1/task/1/children")
}

fn numbers(names: Vec<String>) -> impl Iterator<Item = Pid> {
    names.into_iter().filter_map(|name| name.parse().ok().map(Pid::new))
}

/// Children of all threads of a process.
fn children(tree: &Tree, pid: Pid) -> Vec<Pid> {
    let tasks = tree.list(&format!("/proc/{pid}/task")).ok().flatten().unwrap_or_default();
    let mut children = Vec::new();
    for task in numbers(tasks) {
        let text =
            tree.read_text(&format!("/proc/{pid}/task/{task}/children")).ok().flatten().unwrap_or_default();
        children.extend(text.split_ascii_whitespace().filter_map(|word| word.parse().ok().map(Pid::new)));
    }
    children
}

/// Every process by its parent.
fn by_parent(tree: &Tree) -> BTreeMap<Pid, Vec<Pid>> {
    let mut by_parent: BTreeMap<Pid, Vec<Pid>> = BTreeMap::new();
    for pid in numbers(tree.list("/proc").ok().flatten().unwrap_or_default()).take(MOST_PROCESSES) {
        let parent = status(tree, pid).ok().flatten().and_then(|status| status.value.parent);
        if let Some(parent) = parent {
            by_parent.entry(Pid::new(parent)).or_default().push(pid);
        }
    }
    by_parent
}

/// Whether a program of these processes is still because a signal stopped it: some process is stopped, and
/// every other one has ended or is a single thread that sleeps, as a shell that waits for it does. Under a
/// debugger it does not count as stopped.
///
/// # Source
/// `/proc/PID/status`: `State` and `Threads`.
pub fn is_stopped(tree: &Tree, pids: &[Pid]) -> bool {
    let mut stopped = 0;
    for pid in pids {
        let Some(Parsed { value, .. }) = status(tree, *pid).ok().flatten() else { continue };
        match value.state {
            Some('T') => stopped += 1,
            Some('Z' | 'X') => {}
            Some('S') if value.threads == Some(1) => {}
            _ => return false,
        }
    }
    stopped > 0
}

/// Sums where the pages of one process are, and what they are to it; `None` when there is no such
/// process.
///
/// # Source
/// `/proc/PID/numa_maps`. Reading it walks the page tables, which takes about a millisecond per
/// GiB, and needs the right to trace the process. A thread of the kernel has no pages.
///
/// # Errors
/// A file that cannot be read.
pub fn sums(tree: &Tree, pid: Pid) -> Result<Option<Parsed<Sums>>, ReadError> {
    let mut summing = Summing::default();
    let there = tree.read_chunks(&paths::numa_maps(pid), &mut |chunk| summing.push(chunk))?;
    Ok(there.then(|| summing.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Memory;
    use nodewise_machine::Bytes;

    fn pids<const N: usize>(numbers: [u32; N]) -> Vec<Pid> {
        numbers.into_iter().map(Pid::new).collect()
    }

    #[test]
    fn a_family_is_found_through_the_children_of_every_thread() {
        let tree = Tree::memory(
            Memory::new()
                .file("/proc/1/task/1/children", "10 ")
                .file("/proc/10/task/10/children", "11 12 ")
                .file("/proc/10/task/15/children", "13 ")
                .file("/proc/12/task/12/children", "14 10 ")
                .file("/proc/13/task/13/children", ""),
        );
        assert_eq!(
            family(&tree, Pid::new(10)),
            pids([10, 11, 12, 13, 14]),
            "a loop ends, who has gone stays"
        );
    }

    #[test]
    fn a_family_is_found_through_parents_where_the_kernel_has_no_children() {
        let status = |parent: u32| format!("Name:\tx\nPPid:\t{parent}\n");
        let tree = Tree::memory(
            Memory::new()
                .file("/proc/1/status", status(0))
                .file("/proc/10/status", status(1))
                .file("/proc/11/status", status(10))
                .file("/proc/12/status", status(11))
                .file("/proc/13/status", status(1))
                .file("/proc/sys/kernel/x", ""),
        );
        assert_eq!(family(&tree, Pid::new(10)), pids([10, 11, 12]));
        assert_eq!(family(&tree, Pid::new(99)), pids([99]));
    }

    #[test]
    fn a_program_is_stopped_when_nothing_of_it_can_run() {
        let check = |states: &[(&str, u32)], expected: bool| {
            let files = (1..).zip(states).fold(Memory::new(), |files, (pid, (state, threads))| {
                files.file(&format!("/proc/{pid}/status"), format!("State:\t{state}\nThreads:\t{threads}\n"))
            });
            let family: Vec<Pid> = (1..=states.len() as u32 + 1).map(Pid::new).collect();
            assert_eq!(is_stopped(&Tree::memory(files), &family), expected, "{states:?}");
        };
        check(&[("T (stopped)", 1)], true);
        check(&[("T (stopped)", 8), ("Z (zombie)", 1)], true);
        // A shell that waits for a stopped program.
        check(&[("S (sleeping)", 1), ("T (stopped)", 1)], true);
        // Threads beside the first may run, and a helper may be stopped on purpose.
        check(&[("S (sleeping)", 4), ("T (stopped)", 1)], false);
        check(&[("R (running)", 1), ("T (stopped)", 1)], false);
        check(&[("D (disk sleep)", 1), ("T (stopped)", 1)], false);
        check(&[("S (sleeping)", 1)], false);
        check(&[("t (tracing stop)", 1)], false);
        check(&[], false);
    }

    #[test]
    fn this_process_has_memory_and_a_status() {
        let tree = Tree::live();
        let me = Pid::new(std::process::id());
        let status = status(&tree, me).unwrap().unwrap();
        assert!(status.problems.is_empty());
        assert!(status.value.resident.unwrap() > Bytes::new(0));
        assert!(family(&tree, me).contains(&me));
        assert!(super::status(&tree, Pid::new(u32::MAX)).unwrap().is_none());
        // A kernel without NUMA has no numa_maps.
        let sums = sums(&tree, me).unwrap();
        assert!(sums.is_none_or(|sums| sums.problems.is_empty() && !sums.value.nodes.is_empty()));
    }

    #[test]
    fn a_child_is_found() {
        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let family = family(&Tree::live(), Pid::new(std::process::id()));
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(family.contains(&Pid::new(child.id())));
    }
}
