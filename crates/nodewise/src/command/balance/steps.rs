//! Where processes run within a window: two readings at its ends say nothing of a thread that changed CPUs between them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use nodewise_diagnose::Pid;
use nodewise_diagnose::attribution::{Places, ticks};
use nodewise_machine::order::Order as _;
use nodewise_machine::{Bytes, CpuId, NodeId};
use nodewise_source::parse::pid_stat;
use nodewise_source::paths;
use nodewise_source::process::claims;
use nodewise_source::sample::{Identity, Sample};
use nodewise_source::tree::Tree;

/// Steps of a window.
pub(super) const STEPS: u32 = 8;
/// Processes and threads that are looked at in a step, the largest processes first: 15 us each, 64 ms in a window.
const MOST_PROCESSES: usize = 64;
const MOST_THREADS: usize = 512;

/// CPU time by node of large processes, in steps.
#[derive(Debug, Default)]
pub(super) struct Steps {
    processes: Vec<Identity>,
    /// CPU time of each thread at the last step, and its CPU then.
    last: BTreeMap<(Pid, claims::Thread), (Duration, CpuId)>,
    seen: BTreeMap<Identity, BTreeMap<NodeId, Duration>>,
}

impl Steps {
    /// Begins with a look at the processes of a sample that have this memory.
    pub(super) fn begin(sample: &Sample, least: Bytes, tree: &Tree) -> Self {
        let large = sample.processes.iter().filter(|process| !process.kernel_thread);
        let mut large: Vec<(Bytes, Identity)> = large
            .filter_map(|process| Some((process.resident?, process.identity)))
            .filter(|(size, _)| *size >= least)
            .collect();
        large.order_by_key(|(size, identity)| (std::cmp::Reverse(*size), *identity));
        large.truncate(MOST_PROCESSES);
        let processes = large.into_iter().map(|(_, identity)| identity).collect();
        let mut steps = Self { processes, ..Self::default() };
        steps.look(tree, &Places::new([sample]));
        steps
    }

    /// One step: time since the last one counts for the CPU on which a thread is now.
    pub(super) fn look(&mut self, tree: &Tree, places: &Places) {
        let (mut threads, mut there) = (0, BTreeSet::new());
        for identity in &self.processes {
            let of_process = threads_of(tree, identity.pid, MOST_THREADS - threads.min(MOST_THREADS));
            threads += of_process.len();
            for (thread, used, cpu) in of_process {
                let key = (identity.pid, thread);
                there.insert(key);
                let before = self.last.insert(key, (used, cpu)).map(|(before, _)| before);
                let since = before.and_then(|before| used.checked_sub(before)).filter(|time| !time.is_zero());
                if let Some((since, node)) = since.zip(places.node(cpu)) {
                    *self.seen.entry(*identity).or_default().entry(node).or_default() += since;
                }
            }
        }
        self.last.retain(|key, _| there.contains(key));
    }

    /// The time of a process, by the node on which it was seen.
    pub(super) fn seen(&self, identity: Identity) -> Option<&BTreeMap<NodeId, Duration>> {
        self.seen.get(&identity)
    }

    /// Whether a process was seen at work, and never on these nodes.
    pub(super) fn runs_off(&self, identity: Identity, nodes: &[NodeId]) -> bool {
        let seen = self.seen(identity);
        seen.is_some_and(|seen| !seen.is_empty() && !seen.keys().any(|node| nodes.contains(node)))
    }
}

/// CPU time of threads of a process, and the CPUs on which they ran last.
fn threads_of(tree: &Tree, pid: Pid, most: usize) -> Vec<(claims::Thread, Duration, CpuId)> {
    let folder = format!("{}/task", paths::process(pid));
    let names = tree.list(&folder).ok().flatten().unwrap_or_default();
    let read = |name: String| {
        let text = tree.read_text(&format!("{folder}/{name}/stat")).ok().flatten()?;
        let stat = pid_stat::parse(&text).ok()?;
        let thread = claims::Thread { tid: stat.pid.number(), started_ticks: stat.started_ticks };
        Some((thread, ticks(stat.cpu_ticks()), stat.processor?))
    };
    names.into_iter().take(most).filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_source::sample::{NodeSample, ProcessSample};
    use nodewise_source::tree::Memory;

    fn step(ticks: u64, cpu: u32) -> Tree {
        let zeros = "0 ".repeat(9);
        let stat =
            format!("7 (x) R 1 {zeros}{ticks} 0 0 0 20 0 1 0 5 8192 99 {}{cpu} 0 0\n", "0 ".repeat(14));
        Tree::memory(Memory::new().file("/proc/7/task/7/stat", stat))
    }

    #[test]
    fn time_counts_for_the_node_on_which_a_thread_was_seen() {
        let identity = Identity { pid: Pid::new(7), started_ticks: 5 };
        let node = |id: u32, cpus: &str| NodeSample {
            cpus: cpus.parse().unwrap(),
            ..NodeSample::new(NodeId::new(id))
        };
        let process = ProcessSample { resident: Some(Bytes::MIB), ..ProcessSample::new(identity) };
        let sample = Sample {
            nodes: vec![node(0, "0-1"), node(1, "2-3")],
            processes: vec![process.into()],
            ..Sample::default()
        };
        let places = Places::new([&sample]);
        let mut steps = Steps::begin(&sample, Bytes::MIB, &step(1000, 2));
        for (used, cpu) in [(1040, 3), (1050, 0), (1050, 2), (1090, 2)] {
            steps.look(&step(used, cpu), &places);
        }
        let seen = [(NodeId::new(0), ticks(10)), (NodeId::new(1), ticks(80))];
        assert_eq!(steps.seen(identity), Some(&seen.into()));
        assert!(!steps.runs_off(identity, &[NodeId::new(0)]));
        assert!(steps.runs_off(identity, &[NodeId::new(2)]) && steps.runs_off(identity, &[]));
        let idle = Steps::begin(&sample, Bytes::MIB, &step(1090, 2));
        assert!(!idle.runs_off(identity, &[NodeId::new(2)]), "it was not seen at work");
        // One that is small is not looked at, one that has ended is forgotten.
        assert!(Steps::begin(&sample, Bytes::GIB, &step(1000, 2)).processes.is_empty());
        steps.look(&Tree::memory(Memory::new()), &places);
        assert!(steps.last.is_empty());
    }
}
