//! Threads of the processes that are looked at closely.

use std::collections::BTreeMap;
use std::time::Duration;

use nodewise_machine::CpuSet;
use nodewise_machine::order::CollectOrdered as _;

use super::reading::Reading;
use super::{Allowed, BalancingFaults, BalancingSample, Identity, Moment, TaskSample};
use crate::parse::sched::Sched;
use crate::parse::{Parsed, pid_stat, proc_status, sched, schedstat, text_of};
use crate::paths::PROCESSES;
use crate::process::Pid;
use crate::tree::Kept;

/// How often the CPUs and nodes that a thread may use are read again; and whenever one that may not use every CPU has
/// changed CPUs, which it does when it is bound to others. One that may use all of them changes often, and until it is
/// read again its time is at worst unsure.
const STATUS_EVERY: Duration = Duration::from_secs(10);

/// The threads of a process that are known.
#[derive(Debug, Default)]
pub(super) struct TaskTable {
    known: BTreeMap<Pid, TrackedTask>,
}

#[derive(Debug)]
struct TrackedTask {
    schedstat: Kept,
    last: Option<TaskSample>,
    status: Option<Moment>,
}

impl TaskTable {
    /// Descriptors that it holds open.
    pub(super) fn open(&self) -> usize {
        self.known.values().filter(|task| task.schedstat.is_open()).count()
    }

    /// Reads the threads of a process. One that has not run since it was read last is not read again.
    pub(super) fn read(&mut self, reading: &mut Reading<'_>, pid: Pid, room: usize) -> Vec<TaskSample> {
        let folder = format!("{PROCESSES}/{pid}/task");
        let names = match reading.tree.list(&folder) {
            Ok(names) => names.unwrap_or_default(),
            Err(error) => {
                reading.missing.unreadable("threads", error.cause);
                return Vec::new();
            }
        };
        let mut left = std::mem::take(&mut self.known);
        for tid in names.iter().filter_map(|name| name.parse().ok().map(Pid::new)) {
            let folder = format!("{folder}/{tid}");
            let mut task = left.remove(&tid).unwrap_or_else(|| TrackedTask::new(reading, &folder));
            if task.update(reading, &folder, tid) {
                if self.known.len() >= room {
                    task.schedstat = reading.tree.keep(task.schedstat.path());
                }
                self.known.insert(tid, task);
            }
        }
        self.known.values().filter_map(|task| task.last.clone()).collect()
    }
}

impl TrackedTask {
    fn new(reading: &Reading<'_>, folder: &str) -> Self {
        Self { schedstat: reading.tree.keep(&format!("{folder}/schedstat")), last: None, status: None }
    }

    /// Reads the thread; says whether it is there.
    fn update(&mut self, reading: &mut Reading<'_>, folder: &str, tid: Pid) -> bool {
        let run = reading.value(&mut self.schedstat, "threads", schedstat::parse).map(|times| times.run);
        // All times are 0 where the kernel does not count them.
        let run = run.filter(|run| !run.is_zero());
        let stands_still = run.is_some() && self.last.as_ref().is_some_and(|last| last.run == run);
        if !stands_still && !self.read_stat(reading, folder, tid, run) {
            return false;
        }
        let age = self.status.map(|read| reading.now.since(read));
        if age.is_none_or(|age| age.is_none_or(|age| age >= STATUS_EVERY)) {
            self.status = Some(reading.now);
            if let (Some(last), Ok(true)) =
                (&mut self.last, reading.tree.read_into(&format!("{folder}/status"), reading.buffer))
            {
                let status = proc_status::parse(&text_of(reading.buffer).0).value;
                last.allowed = Some(Allowed { cpus: status.cpus_allowed, nodes: status.mems_allowed });
            }
        }
        true
    }

    fn read_stat(
        &mut self,
        reading: &mut Reading<'_>,
        folder: &str,
        tid: Pid,
        run: Option<Duration>,
    ) -> bool {
        match reading.tree.read_into(&format!("{folder}/stat"), reading.buffer) {
            Ok(true) => (),
            Ok(false) => return false,
            Err(error) => {
                reading.missing.unreadable("threads", error.cause);
                return false;
            }
        }
        let (text, _) = text_of(reading.buffer);
        let Ok(stat) = pid_stat::parse(&text) else { return false };
        let identity = Identity { pid: tid, started_ticks: stat.started_ticks };
        let known = self.last.take().filter(|last| last.identity == identity);
        let known_at = known.as_ref().map(|last| (last.processor, last.cpu_changes));
        let name = known.as_ref().map(|last| last.name.clone()).filter(|name| **name == *stat.name);
        let mut task = TaskSample {
            identity,
            name: name.unwrap_or_else(|| stat.name.into()),
            cpu_ticks: stat.cpu_ticks(),
            run,
            processor: stat.processor,
            allowed: known.and_then(|last| last.allowed),
            cpu_changes: None,
            balancing: None,
        };
        if let Ok(true) = reading.tree.read_into(&format!("{folder}/sched"), reading.buffer) {
            let Parsed { value, .. } = sched::parse(&text_of(reading.buffer).0);
            task.cpu_changes = value.cpu_changes;
            task.balancing = value.has_balancing().then(|| balancing(&value));
        }
        let has_moved = known_at != Some((task.processor, task.cpu_changes));
        if has_moved && !may_use_all(task.allowed.as_ref(), &reading.online) {
            self.status = None;
        }
        self.last = Some(task);
        true
    }
}

/// Whether a thread is known to be free to use every online CPU.
fn may_use_all(allowed: Option<&Allowed>, online: &CpuSet) -> bool {
    let cpus = allowed.and_then(|allowed| allowed.cpus.as_ref());
    !online.is_empty() && cpus.is_some_and(|cpus| online.is_subset(cpus))
}

fn balancing(sched: &Sched) -> BalancingSample {
    let of = |on: &sched::NodeFaults| (on.node, BalancingFaults { private: on.private, shared: on.shared });
    BalancingSample {
        scans: sched.scans,
        migrated_pages: sched.migrated_pages,
        preferred: sched.preferred,
        faults: sched.faults.iter().map(of).collect_map(),
    }
}
