//! The placement in force in running processes: the CPUs their threads may use, the policy over
//! their memory, and where that memory is.
//!
//! What was asked for is what a program starts with. It may choose for itself later, and what it
//! starts may be a launcher that undoes everything; this is what became of it.

use std::collections::BTreeMap;

use nodewise_machine::{Bytes, CpuSet, MemPolicy, NodeId};

use crate::parse::Problems;
use crate::parse::numa_maps::{Mapping, parse_line};
use crate::paths;
use crate::process::{self, Pid};
use crate::tree::{MOST_LINE_BYTES, Tree};

/// Most threads that are asked: a machine has fewer CPUs, and each costs a file.
const MOST_THREADS: usize = 4096;

/// The kernel cuts the words of a policy at 63 characters: as long a text may be part of another one.
const CUT_POLICY: usize = 63;

/// The placement that is in force in some processes.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct InForce {
    /// Their own resident memory by node: all but that of files, which can be where others have read them.
    pub by_node: BTreeMap<NodeId, Bytes>,
    /// How many of their threads may use the same CPUs, for each such set.
    pub threads: Vec<(CpuSet, usize)>,
    /// Their own memory, which is that of no file, by the policy over it. Memory under a policy whose
    /// words are cut or not known is left out.
    pub memory: Vec<(MemPolicy, BTreeMap<NodeId, Bytes>)>,
}

/// Returns the placement in force in these processes; what cannot be read of one of them is left out.
///
/// # Source
/// `/proc/PID/task`, and of each thread `Cpus_allowed_list` in `/proc/TID/status`;
/// `/proc/PID/numa_maps`, which needs the right to trace the process. Threads that have ended and are
/// not waited for yet do not count.
pub fn in_force(tree: &Tree, pids: &[Pid]) -> InForce {
    let mut found = InForce::default();
    for pid in pids {
        found.add_memory(tree, *pid);
    }
    let threads = pids.iter().flat_map(|pid| threads(tree, *pid)).take(MOST_THREADS);
    for cpus in threads.filter_map(|thread| cpus(tree, thread)) {
        match found.threads.iter_mut().find(|(known, _)| *known == cpus) {
            Some((_, count)) => *count += 1,
            None => found.threads.push((cpus, 1)),
        }
    }
    found
}

/// The threads of a process.
fn threads(tree: &Tree, pid: Pid) -> Vec<Pid> {
    let names = tree.list(&format!("/proc/{pid}/task")).ok().flatten().unwrap_or_default();
    names.into_iter().filter_map(|name| name.parse().ok().map(Pid::new)).collect()
}

/// The CPUs that a thread may use; `None` of one that has ended.
fn cpus(tree: &Tree, thread: Pid) -> Option<CpuSet> {
    let status = process::status(tree, thread).ok().flatten()?.value;
    status.cpus_allowed.filter(|_| !is_over(status.state))
}

fn has_ended(tree: &Tree, pid: Pid) -> bool {
    process::status(tree, pid).ok().flatten().is_none_or(|status| is_over(status.value.state))
}

const fn is_over(state: Option<char>) -> bool {
    matches!(state, Some('Z' | 'X'))
}

impl InForce {
    fn add_memory(&mut self, tree: &Tree, pid: Pid) {
        let (mut own, mut problems) = (Self::default(), Problems::default());
        let read = tree.read_lines(&paths::numa_maps(pid), &mut |line| own.add_line(line, &mut problems));
        // A process that has ended meanwhile, or is another user's, keeps what was read of it.
        read.ok();
        add(&mut self.by_node, own.by_node);
        // A process that ends gives its policy back before its memory where somebody is reading of it: that
        // looks like memory under no policy.
        if !has_ended(tree, pid) {
            own.memory.into_iter().for_each(|(policy, by_node)| add(self.under(&policy), by_node));
        }
    }

    /// The memory under a policy.
    fn under(&mut self, policy: &MemPolicy) -> &mut BTreeMap<NodeId, Bytes> {
        let at = self.memory.iter().position(|(known, _)| known == policy).unwrap_or_else(|| {
            self.memory.push((policy.clone(), BTreeMap::new()));
            self.memory.len() - 1
        });
        &mut self.memory[at].1
    }

    fn add_line(&mut self, line: &str, problems: &mut Problems) {
        // Most mappings have no pages, and say nothing then. A line that was cut is passed over: the
        // longest of the kernel has a path of 4,096 bytes, escaped, and a count for each of 1,024 nodes.
        if line.len() >= MOST_LINE_BYTES || !line.contains(" N") {
            return;
        }
        let Some(mapping) = parse_line(line, 0, problems) else { return };
        let Some(bytes) = mapping.bytes() else { return };
        let bytes: Vec<(NodeId, Bytes)> = bytes.collect();
        if !is_own(&mapping) {
            return;
        }
        add(&mut self.by_node, bytes.iter().copied());
        let Some(policy) = mapping.policy.as_ref().filter(|_| mapping.policy_text.len() < CUT_POLICY) else {
            return;
        };
        add(self.under(policy), bytes);
    }
}

fn add(by_node: &mut BTreeMap<NodeId, Bytes>, bytes: impl IntoIterator<Item = (NodeId, Bytes)>) {
    for (node, size) in bytes {
        *by_node.entry(node).or_default() += size;
    }
}

/// Whether a mapping's pages came to be when the process touched them: those of a file may be where
/// another process has read them. Shared memory without a name, segments of System V, and memory of huge page
/// pools are shown as files that are deleted.
fn is_own(mapping: &Mapping) -> bool {
    const NAMELESS: [&str; 4] = ["/dev/zero (deleted)", "/anon_hugepage (deleted)", "/memfd:", "/SYSV"];
    mapping.file.as_ref().is_none_or(|file| NAMELESS.iter().any(|name| file.starts_with(name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Memory;
    use proptest::prelude::{any, prop, proptest};

    fn status(state: char, cpus: &str) -> String {
        format!("Name:\tx\nState:\t{state} (it)\nCpus_allowed_list:\t{cpus}\n")
    }

    fn found(numa_maps: &str) -> InForce {
        let tree = Tree::memory(
            Memory::new()
                .file("/proc/7/numa_maps", numa_maps)
                .file("/proc/7/task/7/children", "")
                .file("/proc/7/task/9/children", "")
                .file("/proc/7/status", status('S', "0-1"))
                .file("/proc/9/status", status('R', "1"))
                .file("/proc/8/task/8/children", "")
                .file("/proc/8/status", status('Z', "5")),
        );
        in_force(&tree, &[Pid::new(7), Pid::new(8), Pid::new(99)])
    }

    fn node(number: u32, kib: u64) -> (NodeId, Bytes) {
        (NodeId::new(number), Bytes::from_kib(kib))
    }

    #[test]
    fn threads_are_counted_by_their_cpus_without_those_that_have_ended() {
        assert_eq!(found("").threads, [(CpuSet::from([0, 1]), 1), (CpuSet::from([1]), 1)]);
        assert_eq!(found("").memory, []);
    }

    #[test]
    fn memory_is_told_by_policy_and_that_of_files_does_not_count() {
        let found = found(
            "1000 bind:1 file=/usr/bin/x mapped=4 N0=4 kernelpagesize_kB=4\n\
             2000 bind:1 heap anon=2 dirty=2 N1=2 kernelpagesize_kB=4\n\
             3000 default anon=1 dirty=1 N0=1 kernelpagesize_kB=2048\n\
             4000 bind:1 file=/dev/zero\\040(deleted) dirty=3 N1=2 N0=1 kernelpagesize_kB=4\n\
             5000 bind:1\n\
             6000 default file=/lib/N0 mapped=1 N1=1 kernelpagesize_kB=4\n\
             7000 magic anon=1 N3=1 kernelpagesize_kB=4\n\
             7800 bind:1 file=/SYSV00000001\\040(deleted) dirty=2 N1=2 kernelpagesize_kB=4\n\
             8000 bind:1 heap anon=2 N1=2",
        );
        assert_eq!(found.by_node, BTreeMap::from([node(0, 2048 + 4), node(1, 8 + 8 + 8), node(3, 4)]));
        let policies: Vec<(String, _)> =
            found.memory.iter().map(|(policy, nodes)| (policy.to_string(), nodes.clone())).collect();
        assert_eq!(
            policies,
            [
                ("bind:1".to_owned(), BTreeMap::from([node(0, 4), node(1, 24)])),
                ("default".to_owned(), BTreeMap::from([node(0, 2048)])),
            ]
        );
    }

    #[test]
    fn a_policy_that_may_have_been_cut_is_not_believed() {
        let long = format!("bind:{}", (100..140).map(|n| (n * 2).to_string()).collect::<Vec<_>>().join(","));
        let cut = &long[..63];
        assert!(cut.parse::<MemPolicy>().is_ok(), "what is left of it reads like another policy");
        let found = found(&format!("1000 {cut} anon=1 N0=1 kernelpagesize_kB=4\n"));
        assert_eq!((found.memory, found.by_node), (Vec::new(), BTreeMap::from([node(0, 4)])));
    }

    #[test]
    fn a_line_that_is_too_long_is_passed_over_and_the_next_is_read() {
        let long = format!("1000 bind:1 N0=1 kernelpagesize_kB=4 file=/{}", "x".repeat(MOST_LINE_BYTES));
        let found = found(&format!("{long}\n2000 default anon=1 N1=1 kernelpagesize_kB=4\n"));
        assert_eq!(found.by_node, BTreeMap::from([node(1, 4)]));
    }

    #[test]
    fn what_ended_while_it_was_looked_at_has_no_policy_any_more() {
        let maps = "1000 default anon=1 N1=1 kernelpagesize_kB=4\n";
        let check = |status: Option<String>, policies: usize| {
            let files = Memory::new().file("/proc/7/numa_maps", maps);
            let files = match status {
                Some(status) => files.file("/proc/7/status", status),
                None => files,
            };
            let found = in_force(&Tree::memory(files), &[Pid::new(7)]);
            assert_eq!((found.memory.len(), found.by_node), (policies, BTreeMap::from([node(1, 4)])));
        };
        check(Some(status('R', "0")), 1);
        check(Some(status('Z', "0")), 0);
        check(None, 0);
    }

    proptest! {
        #[test]
        fn any_files_are_read(
            maps in any::<String>(),
            lines in prop::collection::vec("[0-9a-f]{1,4} (bind:[0-9,-]{0,6}|default)( N[0-9]{1,6}=[0-9]{1,20}| anon=[0-9x]| kernelpagesize_kB=[0-9]{1,3}){0,4}", 0..6),
        ) {
            found(&maps);
            found(&(lines.join("\n") + "\n"));
        }
    }
}
