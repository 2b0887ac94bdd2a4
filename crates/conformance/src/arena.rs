//! A guest in which scripts are played: what is set while they are, and what they share.

use std::sync::OnceLock;

use nodewise_machine::{Machine, NodeId, NodeSet};
use nodewise_model::oracle::Task as Modelled;
use nodewise_model::oracle::task::Surroundings;
use nodewise_model::simulate::Act;
use nodewise_model::{Memory, Release, Weights};

use crate::cpuset::Cpuset;
use crate::difference::Trouble;
use crate::disk::Disk;
use crate::script::{Call, Script};
use crate::setting::{self, Setting};
use crate::stage::Stage;
use crate::swap::Swap;
use crate::threads;
use crate::trace::Trace;

/// A page that follows its CPU would move while it is looked at; and a huge page is not to be made of small ones behind
/// our back: the kernel waits before it looks for such, and here as long as it can. Programs in C that repeat a script write the same.
pub const SETTINGS: [(&str, &str); 6] = [
    ("/proc/sys/kernel/numa_balancing", "0"),
    ("/sys/kernel/mm/transparent_hugepage/khugepaged/scan_sleep_millisecs", "4294967295"),
    // It still looks once when huge pages are switched on: then it takes no place that is not full. A script in which it takes one
    // ends there.
    ("/sys/kernel/mm/transparent_hugepage/khugepaged/max_ptes_none", "0"),
    // Since 6.12 the kernel splits huge pages with more parts of zeros than `max_ptes_none` when it looks for memory.
    ("/sys/kernel/mm/transparent_hugepage/shrink_underused", "0"),
    (ENABLED, "madvise"),
    (DEFRAG, "madvise"),
];
/// Settings of transparent huge pages; scripts that change them find them as they are here.
const ENABLED: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const DEFRAG: &str = "/sys/kernel/mm/transparent_hugepage/defrag";
/// The folder of the weights of weighted interleave.
const WEIGHTS: &str = "/sys/kernel/mm/mempolicy/weighted_interleave";

/// The prediction: the release whose rules the model follows.
#[derive(Clone, Copy, Debug)]
pub struct Prediction {
    pub release: Release,
    /// Changes the facts that the model starts from; tests make a rule wrong with it.
    pub adjusted: fn(Surroundings) -> Surroundings,
    /// Changes the model after a call, for the same purpose.
    pub spoiled: fn(&Call, &mut Modelled),
    /// Changes what the model of a control group is asked to do, for the same purpose.
    pub altered: fn(Act) -> Act,
}

impl Prediction {
    /// The rules of a release as they are.
    pub fn new(release: Release) -> Self {
        Self { release, adjusted: |around| around, spoiled: |_, _| {}, altered: |act| act }
    }
}

/// The machine and its settings while scripts are played; these are put back when dropped.
pub struct Arena {
    pub machine: Machine,
    /// The memory before any script.
    pub memory: Memory,
    pub prediction: Prediction,
    /// The words that start a program; the number of its pages is added ([`crate::program::run`]).
    pub program: Vec<String>,
    /// A folder of tmpfs, for files that scripts map.
    pub files: &'static str,
    /// None where only answers and pages of one process are compared ([`Arena::without_system`]).
    pub group: Option<Cpuset>,
    /// Switched on by the first script that needs it.
    swap: OnceLock<Result<Swap, String>>,
    disk: OnceLock<Result<Disk, String>>,
    _kept: Vec<Setting>,
}

impl Arena {
    /// Prepares a guest, which this process is alone in.
    ///
    /// # Errors
    /// A setting is refused, or there are no cpusets.
    pub fn new(
        machine: Machine,
        memory: Memory,
        prediction: Prediction,
        program: Vec<String>,
    ) -> Result<Self, String> {
        let mut kept = Vec::new();
        // A kernel that is built without one of them does nothing of the kind.
        for (path, value) in SETTINGS.into_iter().filter(|(path, _)| exists(path)) {
            kept.push(Setting::with(path, value)?);
        }
        let nodes = machine.nodes_with_memory();
        for path in nodes.iter().map(weight_path).filter(|path| exists(path)) {
            kept.push(Setting::keep(path)?);
        }
        let group = Cpuset::new(&machine.online_cpus().to_string(), &nodes.to_string())?;
        group.enter()?;
        let (files, group, swap) = ("/run", Some(group), OnceLock::new());
        let disk = OnceLock::new();
        Ok(Self { machine, memory, prediction, program, files, group, swap, disk, _kept: kept })
    }

    /// An arena in which nothing of the system is changed or counted: scripts have no cpusets, settings, weights
    /// or pools, and files in a folder of tmpfs.
    pub fn without_system(
        machine: Machine,
        memory: Memory,
        prediction: Prediction,
        program: Vec<String>,
        files: &'static str,
    ) -> Self {
        let (swap, disk) = (OnceLock::new(), OnceLock::new());
        Self { machine, memory, prediction, program, files, group: None, swap, disk, _kept: Vec::new() }
    }

    /// Changes the memory nodes of the scripts' cpuset.
    ///
    /// # Errors
    /// The kernel refuses it, or there is no cpuset.
    pub(crate) fn allow(&self, nodes: &NodeSet) -> Result<(), String> {
        self.group.as_ref().ok_or("no cpuset here")?.allow(&nodes.to_string())
    }

    /// Plays a script up to the first difference.
    pub fn play(&self, script: &Script) -> (Result<(), Trouble>, Trace) {
        let set = || match self.group {
            Some(_) => self.plain_huge_pages().and_then(|()| self.weights(script)),
            None => Ok(Weights::new()),
        };
        let weights = match set() {
            Ok(weights) => weights,
            Err(why) => return (Err(why.into()), Trace::default()),
        };
        let around = Surroundings { weights, ..Surroundings::new(&self.machine, self.prediction.release) };
        let around = (self.prediction.adjusted)(around);
        let mut stage = Stage::new(self, around);
        let done = threads::play(script, |calls| stage.steps(calls));
        let trace = stage.into_trace();
        let allowed = match self.group {
            Some(_) => self.allow(&self.machine.nodes_with_memory()),
            None => Ok(()),
        };
        (done.and(allowed.map_err(Trouble::from)), trace)
    }

    /// Pages of the swap, which is there from now on.
    pub(crate) fn swap(&self) -> Result<u64, String> {
        self.swap.get_or_init(Swap::on).as_ref().map(|swap| swap.pages).map_err(Clone::clone)
    }

    /// Makes the disk for files, which is there from now on.
    pub(crate) fn disk(&self) -> Result<(), String> {
        self.disk.get_or_init(Disk::new).as_ref().map(|_| ()).map_err(Clone::clone)
    }

    /// The kernel's `nr_node_ids`: one more than the highest node that can be.
    pub fn nr_node_ids(&self) -> u32 {
        self.machine.possible_nodes.last().map_or(1, |node| node.number() + 1)
    }

    /// Writes the settings of transparent huge pages.
    pub(crate) fn set_huge_pages(&self, enabled: &str, defrag: &str) -> Result<(), String> {
        setting::write(ENABLED, enabled)?;
        setting::write(DEFRAG, defrag)
    }

    /// Settings as every script finds them, in a kernel that has them.
    fn plain_huge_pages(&self) -> Result<(), String> {
        if exists(ENABLED) { self.set_huge_pages("madvise", "madvise") } else { Ok(()) }
    }

    /// Gives the nodes the weights of a script, where this kernel has weights.
    fn weights(&self, script: &Script) -> Result<Weights, String> {
        if !exists(WEIGHTS) {
            return Ok(Weights::new());
        }
        for (node, weight) in &script.weights {
            setting::write(&weight_path(*node), &weight.to_string())?;
        }
        Ok(script.weights.iter().copied().collect())
    }
}

fn weight_path(node: NodeId) -> String {
    format!("{WEIGHTS}/node{node}")
}

fn exists(path: &str) -> bool {
    std::path::Path::new(path).exists()
}
