//! Control groups: the ones that hold a process of the sample, and their parents.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use nodewise_machine::fnv::fnv_1a;
use nodewise_machine::{Bytes, CpuId, NodeId};

use super::due::Pace;
use super::reading::Reading;
use super::{Allowed, GroupSample, Moment, ProcessSample};
use crate::parse::mounts::Mount;
use crate::parse::{ParseError, memory_numa_stat, mounts, number, pressure, set};
use crate::tree::{Kept, Tree};

/// How often the CPUs and nodes of a group are read again.
const ALLOWED_EVERY: Duration = Duration::from_secs(10);
/// The fact, in a missing one's line.
const FACT: &str = "control groups";

/// The groups that are known.
#[derive(Debug, Default)]
pub(super) struct GroupTable {
    mounts: Option<GroupMounts>,
    known: BTreeMap<Arc<str>, TrackedGroup>,
    /// Processes whose group is outside of what this process sees.
    outside: usize,
}

/// Where the hierarchies are.
#[derive(Clone, Debug, Default)]
struct GroupMounts {
    unified: Option<String>,
    memory: Option<String>,
    cpu: Option<String>,
    cpuset: Option<String>,
}

#[derive(Debug)]
struct TrackedGroup {
    memory: Kept,
    cpu: Kept,
    pressure: Kept,
    /// The files of CPUs and of nodes.
    allowed: [String; 2],
    unified: bool,
    last: GroupSample,
    pace: Pace,
    allowed_read: Option<Moment>,
}

impl GroupTable {
    /// Reads the groups that are due; `changed` says that processes are in other groups than before.
    pub(super) fn read(
        &mut self,
        reading: &mut Reading<'_>,
        processes: &[Arc<ProcessSample>],
        changed: bool,
        page: Bytes,
        room: usize,
    ) -> Vec<GroupSample> {
        let mounts = self.mounts.get_or_insert_with(|| GroupMounts::find(reading.tree)).clone();
        if mounts.unified.is_none() && mounts.memory.is_none() {
            reading.missing.add(FACT, "no hierarchy is mounted", None);
            return Vec::new();
        }
        if changed || self.known.is_empty() {
            self.follow(reading.tree, &mounts, processes);
        }
        reading.missing.add_all(FACT, "outside of this control group namespace", None, self.outside);
        let mut kept = 0;
        self.known.retain(|path, group| {
            let stays = !group.pace.is_due(reading) || group.update(reading, path, page);
            kept += 3;
            if kept > room {
                group.close(reading.tree);
            }
            stays
        });
        self.known.values().map(|group| group.last.clone()).collect()
    }

    /// Makes the table that of these processes' groups.
    fn follow(&mut self, tree: &Tree, mounts: &GroupMounts, processes: &[Arc<ProcessSample>]) {
        let is_outside = |process: &&Arc<ProcessSample>| process.group.as_deref().is_some_and(leads_outside);
        self.outside = processes.iter().filter(is_outside).count();
        let mut before = std::mem::take(&mut self.known);
        for path in processes.iter().filter_map(|process| process.group.as_ref()) {
            let mut path = Arc::clone(path);
            while !leads_outside(&path) && !self.known.contains_key(&path) {
                let parent = parent(&path);
                let group = before.remove(&path).unwrap_or_else(|| TrackedGroup::new(tree, mounts, &path));
                self.known.insert(path, group);
                let Some(parent) = parent else { break };
                path = parent;
            }
        }
    }
}

/// Whether a path leads out of what this process sees.
fn leads_outside(path: &str) -> bool {
    path.split('/').any(|part| part == "..")
}

fn parent(path: &str) -> Option<Arc<str>> {
    let (parent, last) = path.rsplit_once('/')?;
    if last.is_empty() { None } else { Some(if parent.is_empty() { "/".into() } else { parent.into() }) }
}

impl GroupMounts {
    fn find(tree: &Tree) -> Self {
        let text = tree.read_text("/proc/mounts").ok().flatten().unwrap_or_default();
        let mounts = mounts::parse(&text).value;
        let old = |controller: &str| {
            let has = |mount: &&Mount| mount.kind == "cgroup" && mount.has(controller);
            mounts.iter().find(has).map(|mount| mount.folder.clone())
        };
        let unified = mounts.iter().find(|mount| mount.kind == "cgroup2");
        Self {
            unified: unified.map(|mount| mount.folder.clone()),
            memory: old("memory"),
            cpu: old("cpuacct"),
            cpuset: old("cpuset"),
        }
    }
}

impl TrackedGroup {
    fn new(tree: &Tree, mounts: &GroupMounts, path: &str) -> Self {
        let below = path.trim_end_matches('/');
        // A controller is in one hierarchy only. Where the old one is not mounted, it is in the unified one.
        let file = |old: &Option<String>, old_name: &str, name: &str| match (old, &mounts.unified) {
            (Some(mount), _) => format!("{mount}{below}/{old_name}"),
            (None, Some(mount)) => format!("{mount}{below}/{name}"),
            (None, None) => String::new(),
        };
        let cpus = file(&mounts.cpuset, "cpuset.effective_cpus", "cpuset.cpus.effective");
        let nodes = file(&mounts.cpuset, "cpuset.effective_mems", "cpuset.mems.effective");
        Self {
            memory: tree.keep(&file(&mounts.memory, "memory.numa_stat", "memory.numa_stat")),
            cpu: tree.keep(&file(&mounts.cpu, "cpuacct.usage", "cpu.stat")),
            pressure: tree.keep(&file(&None, "", "memory.pressure")),
            allowed: [cpus, nodes],
            unified: mounts.cpu.is_none(),
            last: GroupSample { path: path.into(), ..GroupSample::default() },
            pace: Pace::default(),
            allowed_read: None,
        }
    }

    /// Gives the descriptors back.
    fn close(&mut self, tree: &Tree) {
        for kept in [&mut self.memory, &mut self.cpu, &mut self.pressure] {
            *kept = tree.keep(kept.path());
        }
    }

    /// Reads the group; says whether any file of it is there.
    fn update(&mut self, reading: &mut Reading<'_>, path: &str, page: Bytes) -> bool {
        let usage = if self.unified { usage_usec } else { usage_nanos };
        let cpu = reading.value(&mut self.cpu, FACT, usage).flatten();
        let memory = reading.parsed(&mut self.memory, FACT, |text| memory_numa_stat::parse(text, page));
        let pressure = reading.parsed(&mut self.pressure, FACT, pressure::parse);
        let gone = cpu.is_none() && memory.is_none() && pressure.is_none();
        let memory = memory.unwrap_or_default();
        let changed = self.last.cpu != cpu || self.last.memory != memory;
        self.last.polled = reading.now;
        (self.last.cpu, self.last.memory, self.last.memory_pressure) = (cpu, memory, pressure);
        let age = self.allowed_read.map(|read| reading.now.since(read));
        if age.is_none_or(|age| age.is_none_or(|age| age >= ALLOWED_EVERY)) {
            self.allowed_read = Some(reading.now);
            let [cpus, nodes] = &self.allowed;
            self.last.allowed = Allowed {
                cpus: crate::file::value(reading.tree, cpus, set::list::<CpuId>).ok().flatten(),
                nodes: crate::file::value(reading.tree, nodes, set::list::<NodeId>).ok().flatten(),
            };
        }
        self.pace.next(reading, changed, fnv_1a(path.as_bytes()));
        !gone || self.last.allowed != Allowed::default()
    }
}

/// `usage_usec` of `cpu.stat`, Linux 4.15; `None` where the line is missing.
fn usage_usec(text: &str) -> Result<Option<Duration>, ParseError> {
    let line = text.lines().find_map(|line| line.strip_prefix("usage_usec "));
    line.map(|usage| number::number::<u64>(usage).map(Duration::from_micros)).transpose()
}

/// `cpuacct.usage`.
fn usage_nanos(text: &str) -> Result<Option<Duration>, ParseError> {
    number::number::<u64>(text).map(|nanos| Some(Duration::from_nanos(nanos)))
}
