//! A situation, which rules judge: a machine, and its change in a window.

pub mod pages;
pub mod process;

use std::collections::BTreeMap;
use std::time::Duration;

use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::{Bytes, Machine, NodeId, NodeSet, OddityKind};
use nodewise_source::program::running::RunningProgram;
use nodewise_source::sample::{Identity, NodeSample, ProcessSample, Sample};
use nodewise_source::site::Site;

use crate::attribution::{Places, ticks};
use crate::change::{Counts, Delta, DeltaError};
use crate::finding::Mend;
use crate::locality::{NodeSize, sizes};
use crate::owner::Gathering;
use crate::thresholds::{self, RuleThreshold, Thresholds};
use process::WorkMarks;

pub use process::ProcessState;

/// The class of a machine, which decides what can be wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// No node is described.
    NoNodes,
    /// One node: nothing to choose.
    One,
    /// Nodes of one memory controller: interleaving is right there, and nothing is remote.
    Emulated,
    Real,
    /// Memory of several speeds.
    Tiered,
}

impl Class {
    /// The class of a machine.
    pub fn from_machine(machine: &Machine) -> Self {
        match machine.nodes.len() {
            0 => Self::NoNodes,
            1 => Self::One,
            _ if machine.oddities.iter().any(|oddity| oddity.kind == OddityKind::Nominal) => Self::Emulated,
            _ if machine.tiers.len() > 1 => Self::Tiered,
            _ => Self::Real,
        }
    }

    /// Its word, in text and JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::NoNodes => "no nodes",
            Self::One => "one node",
            Self::Emulated => "emulated",
            Self::Real => "real",
            Self::Tiered => "tiered",
        }
    }

    /// Whether memory can be far away.
    pub const fn has_distance(self) -> bool {
        matches!(self, Self::Real | Self::Tiered)
    }
}

/// A node's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeState {
    /// `MemTotal`, and what is not initialised yet.
    pub size: Bytes,
    /// `MemFree`, and what is not initialised yet.
    pub free: Bytes,
    /// Free memory, and what the kernel can free without swapping: page cache and slab, less the high watermark.
    /// Shared memory is on the lists of anonymous pages, so it does not count.
    pub available: Option<Bytes>,
    /// The sum of the zones' high watermarks, up to which the kernel reclaims.
    pub high: Option<Bytes>,
    pub has_cpus: bool,
}

impl NodeState {
    fn new(node: &NodeSample, size: &NodeSize) -> Option<Self> {
        let of = |name: &str| node.size(name);
        let NodeSize { size, free: Some(free), .. } = *size else { return None };
        let high = node.high_watermark;
        let available = || {
            let can = free + of("Active(file)")? + of("Inactive(file)")? + of("SReclaimable")?;
            Some(Bytes::new(can.get().saturating_sub(high?.get())))
        };
        Some(Self { size, free, available: available(), high, has_cpus: !node.cpus.is_empty() })
    }

    /// A part of the node, from 0 to 1.
    pub fn share(&self, part: Bytes) -> f64 {
        if self.size.get() == 0 { 0.0 } else { part.get() as f64 / self.size.get() as f64 }
    }

    /// Available memory; where that is not known, free memory.
    pub fn room(&self) -> Bytes {
        self.available.unwrap_or(self.free)
    }
}

/// A machine, and its change in a window.
pub struct Situation<'a> {
    pub machine: &'a Machine,
    pub class: Class,
    /// The sample at the window's beginning; `None` where there is one moment only.
    pub before: Option<&'a Sample>,
    /// The sample at its end.
    pub now: &'a Sample,
    /// The change between them.
    pub delta: Option<Delta>,
    pub places: Places,
    /// Nodes whose memory is known.
    pub nodes: BTreeMap<NodeId, NodeState>,
    /// Processes with memory of their own, the largest first.
    pub processes: Vec<ProcessState<'a>>,
    /// Whether the machine is a virtual one; `None` where that is not known.
    pub virtual_machine: Option<bool>,
    /// Programs of processes that matter; `None` where they were not read.
    pub programs: Option<&'a BTreeMap<Identity, RunningProgram>>,
    /// The site of the machine; `None` where they were not read.
    pub site: Option<&'a Site>,
    thresholds: Thresholds,
}

impl<'a> Situation<'a> {
    /// Puts it together.
    ///
    /// # Errors
    /// Samples of the same moment, or in the wrong order.
    pub fn new(
        machine: &'a Machine,
        before: Option<&'a Sample>,
        now: &'a Sample,
    ) -> Result<Self, DeltaError> {
        let delta = before.map(|before| Delta::between(before, now)).transpose()?;
        let places = Places::new(before.into_iter().chain([now]));
        let sizes = sizes(now);
        let state = |node: &NodeSample| Some((node.node, NodeState::new(node, sizes.get(&node.node)?)?));
        let nodes: BTreeMap<NodeId, NodeState> = now.nodes.iter().filter_map(state).collect_map();
        let processes = process::states(before, now, delta.as_ref(), &places);
        Ok(Self {
            machine,
            class: Class::from_machine(machine),
            before,
            now,
            delta,
            places,
            nodes,
            processes,
            virtual_machine: None,
            programs: None,
            site: None,
            thresholds: Thresholds::default(),
        })
    }

    /// With programs of processes.
    #[must_use]
    pub fn with_programs(mut self, programs: &'a BTreeMap<Identity, RunningProgram>) -> Self {
        for process in &mut self.processes {
            process.program = programs.get(&process.process.identity);
        }
        self.programs = Some(programs);
        self
    }

    /// With other thresholds.
    #[must_use]
    pub fn with_thresholds(mut self, thresholds: Thresholds) -> Self {
        let marks = WorkMarks::from_thresholds(&thresholds);
        self.processes.iter_mut().for_each(|process| process.marks = marks);
        self.thresholds = thresholds;
        self
    }

    /// The numbers that rules compare with.
    pub fn thresholds(&self) -> &Thresholds {
        &self.thresholds
    }

    /// The value of a threshold.
    pub fn limit(&self, of: &RuleThreshold) -> f64 {
        self.thresholds.get(of)
    }

    /// The time since a process began; `None` where the clock went back.
    pub fn age(&self, process: &ProcessSample) -> Option<Duration> {
        self.now.moment.since_boot.checked_sub(ticks(process.identity.started_ticks))
    }

    /// A node's memory in another sample.
    pub fn state_in(&self, sample: &Sample, node: NodeId) -> Option<NodeState> {
        NodeState::new(sample.node(node)?, sizes(sample).get(&node)?)
    }

    /// The length of the window.
    pub fn window(&self) -> Option<Duration> {
        self.delta.as_ref()?.window.length()
    }

    /// Events of the whole system in the window.
    pub fn events(&self) -> Option<&Counts> {
        self.delta.as_ref().map(|delta| &delta.events)
    }

    /// Events of the whole system in the window, by name; `None` where they are not known.
    pub fn event(&self, name: &str) -> Option<u64> {
        self.events()?.get(name)
    }

    /// A count as a rate.
    pub fn rate(&self, count: u64) -> Option<f64> {
        self.delta.as_ref()?.window.rate(Some(count))
    }

    /// Processes whose own memory matters here.
    pub fn significant(&self) -> impl Iterator<Item = &ProcessState<'a>> {
        let floor = self.floor();
        self.processes.iter().filter(move |process| process.size() >= floor)
    }

    /// Nodes with memory.
    pub fn memory_nodes(&self) -> NodeSet {
        self.nodes.iter().filter(|(_, node)| node.size.get() > 0).map(|(id, _)| *id).collect()
    }

    /// The memory of all nodes.
    pub fn total(&self) -> Bytes {
        self.nodes.values().map(|node| node.size).sum()
    }

    /// The size from which a segment or a file matters: 1 GiB, or 5 % of the smallest node where that is less.
    pub fn large(&self) -> Bytes {
        self.at_most(&thresholds::SEGMENT)
    }

    /// The size from which memory of a process matters: 300 MiB, or 5 % of the smallest node where that is less.
    pub fn floor(&self) -> Bytes {
        self.at_most(&thresholds::SIGNIFICANT)
    }

    /// Who says from which size on memory matters: a threshold, or that of the smallest node's part where that is less.
    pub fn size_origin(&self, of: &RuleThreshold) -> &'static str {
        let is_part = self.at_most(of) < self.thresholds.size(of);
        self.thresholds.origin(if is_part { &thresholds::SIGNIFICANT_SHARE } else { of })
    }

    fn at_most(&self, size: &RuleThreshold) -> Bytes {
        let (size, part) = (self.thresholds.size(size), self.limit(&thresholds::SIGNIFICANT_SHARE));
        self.smallest().map_or(size, |smallest| smallest.share(part).min(size))
    }

    /// The size of the smallest node with memory.
    pub fn smallest(&self) -> Option<Bytes> {
        self.nodes.values().map(|node| node.size).filter(|size| size.get() > 0).min()
    }

    /// Memory on the other nodes that could be had.
    pub fn room_elsewhere(&self, node: NodeId) -> Bytes {
        self.nodes.iter().filter(|(other, _)| **other != node).map(|(_, state)| state.room()).sum()
    }

    /// Mends that bring pages of a process home: at once where its cpuset allows that.
    pub fn gather(&self, process: &ProcessState<'_>, from: &NodeSet, to: &NodeSet, size: Bytes) -> Vec<Mend> {
        let all = self.machine.cpus_of_nodes(to);
        let allowed = process.allowed_cpus().map(|allowed| allowed.intersection(&all));
        let cpus = allowed.filter(|cpus| !cpus.is_empty()).unwrap_or(all);
        let may_move = process.allowed_nodes().is_none_or(|allowed| to.is_subset(allowed));
        let pages = Gathering { pid: process.pid(), from, to, cpus: &cpus, size, may_move };
        process.owner().gather(&pages)
    }

    /// The kernel's thread that reclaims memory of a node, and its share of a CPU in the window.
    pub fn reclaimer(&self, node: NodeId) -> Option<f64> {
        let name = format!("kswapd{node}");
        let found =
            self.now.processes.iter().find(|process| process.kernel_thread && *process.name == *name)?;
        let change = self.delta.as_ref()?.process(found.identity)?;
        change.window.share(Some(change.cpu.as_ref()?.used))
    }
}

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;
