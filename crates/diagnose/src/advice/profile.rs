//! A program on a machine: everything that the decision table asks.

use std::collections::BTreeMap;
use std::time::Duration;

use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::placement::{Placement, Scope};
use nodewise_machine::{Bytes, CpuSet, MemPolicy, NodeId, NodeSet, PolicyMode};

use super::known::Known;
use crate::situation::Class;
use crate::thresholds::STARTS;

/// The part of a node's room that a program may fill.
pub(super) const FILLS: f64 = 0.8;
/// The change within the horizon, as a part of the size, from which a program grows.
const GROWS: f64 = 0.01;
/// The least change that counts: the kernel's counters of resident memory are not exact.
const LEAST_CHANGE: Bytes = Bytes::from_mib(1);
/// numad's preference for the node that holds the memory already.
const STAYS: f64 = 1.25;
/// Room beyond this multiple of the need makes a node no better.
const ENOUGH: f64 = 2.0;

/// A node as this program may use it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodeRoom {
    pub size: Bytes,
    /// Available memory, and what the program has there already.
    pub room: Bytes,
    /// CPUs that a program may use.
    pub cpus: usize,
    /// CPUs without other work; `None` where their load is not known.
    pub free_cpus: Option<f64>,
}

/// How the threads of a program use its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Each its own part.
    Private,
    /// All of them all of it.
    Shared,
}

/// A program on a machine.
#[derive(Clone, Debug)]
pub struct Profile {
    pub class: Class,
    /// CPUs and nodes that a program can choose from here.
    pub scope: Scope,
    /// Nodes with memory that the program may use.
    pub nodes: BTreeMap<NodeId, NodeRoom>,
    /// The nodes of the fastest tier.
    pub fast: NodeSet,
    /// Whether memory has weights for interleaving.
    pub has_weights: bool,
    /// Its memory by node: its own, and segments that it shares with other processes.
    pub memory: Known<BTreeMap<NodeId, Bytes>>,
    /// The segments alone: pages that other processes map, too.
    pub common: BTreeMap<NodeId, Bytes>,
    /// The part of these segments on nodes where none of the processes that map them runs, where that is worth a finding;
    /// `None` where it is not, or not all of these processes are known.
    pub common_away: Option<Bytes>,
    pub size: Known<Bytes>,
    /// The most that it had resident.
    pub peak: Known<Bytes>,
    /// The size that its settings name.
    pub declared: Known<Bytes>,
    /// The limit of its control group.
    pub limit: Known<Bytes>,
    /// Bytes per second in the window; negative where it shrinks.
    pub growth: Known<f64>,
    /// Growth per second from which on it counts.
    pub growth_edge: f64,
    /// The memory that it will need within the horizon: S of the decision table.
    pub need: Known<Bytes>,
    pub horizon: Duration,
    pub threads: Known<u64>,
    /// CPUs that it kept busy in the window.
    pub parallelism: Known<f64>,
    /// Nodes with a tenth of its CPU time or more.
    pub runs_on: Known<NodeSet>,
    /// The part of accesses that is remote if every thread uses all memory alike.
    pub remote: Known<f64>,
    /// Memory on nodes where it does not run.
    pub stranded: Known<Bytes>,
    pub sharing: Known<Sharing>,
    /// The traffic of its memory, as a part of one node's bandwidth for reading.
    pub bandwidth: Known<f64>,
    /// Whether the program needs low latency.
    pub latency: Known<bool>,
    /// The node of the device that it works for; `None` inside: none.
    pub device: Known<Option<NodeId>>,
    /// Whether the program forks to save its memory.
    pub snapshot: Known<bool>,
    /// Whether the program can run as several instances.
    pub splittable: Known<bool>,
    /// Who places it already, in words; `None` inside: no one.
    pub placed: Known<Option<String>>,
    /// Rules of `doctor` that found something about its placement.
    pub complaints: Known<Vec<&'static str>>,
    /// CPUs that it may use now.
    pub cpus: Known<CpuSet>,
    /// The policy over most of its memory; `None` inside: the default.
    pub policy: Known<Option<MemPolicy>>,
    pub age: Known<Duration>,
}

impl Profile {
    /// The growth per second from which on a program of this size grows: within the horizon by a part of its size,
    /// and in a window of this length by what its counters can show.
    pub fn edge_of_growth(size: Bytes, window: Duration, horizon: Duration) -> f64 {
        let per_second =
            |change: Bytes, time: Duration| change.get() as f64 / time.as_secs_f64().max(f64::MIN_POSITIVE);
        per_second(size.share(GROWS), horizon).max(per_second(LEAST_CHANGE, window))
    }

    /// Memory that no other process maps, by node: pages that move with this one alone.
    pub fn own_memory(&self) -> Option<BTreeMap<NodeId, Bytes>> {
        let own = |(node, size): (&NodeId, &Bytes)| {
            let common = self.common.get(node).copied().unwrap_or_default();
            (*node, Bytes::new(size.get().saturating_sub(common.get())))
        };
        Some(self.memory.value()?.iter().map(own).collect_map())
    }

    /// Whether the process may still be starting; `None` where its age is not known.
    pub fn is_young(&self) -> Option<bool> {
        self.age.value().map(|age| *age < STARTS)
    }

    /// Whether its memory grows.
    pub fn is_growing(&self) -> Option<bool> {
        self.growth.value().map(|growth| *growth >= self.growth_edge)
    }

    /// The best node for it: that of its device, else the one with the most room for its memory and its threads.
    ///
    /// # Source
    /// numad ranks nodes by free CPUs times free memory, with 5:4 for the node where the memory is.
    pub fn home(&self) -> Option<NodeId> {
        if let Some(device) = self.usable_device() {
            return Some(device);
        }
        let need = self.need.value()?;
        let busy = self.parallelism.value().copied();
        let with_cpus = self.nodes.iter().filter(|(_, node)| node.cpus > 0);
        let scored = with_cpus.map(|(id, node)| (*id, self.score(*id, node, *need, busy)));
        let fits = |id: &NodeId| self.nodes[id].room.share(FILLS) >= *need;
        let own =
            |id: &NodeId| self.memory.value().and_then(|memory| memory.get(id)).copied().unwrap_or_default();
        // The first of equal ones: the last of the reversed.
        let best = scored.rev().max_by(|(one, score), (other, than)| {
            let by_score = || score.total_cmp(than);
            fits(one).cmp(&fits(other)).then_with(by_score).then_with(|| own(one).cmp(&own(other)))
        });
        best.map(|(id, _)| id)
    }

    /// The node of its device, where the program may use memory and CPUs of it.
    pub fn usable_device(&self) -> Option<NodeId> {
        let device = (*self.device.value()?)?;
        self.nodes.get(&device).is_some_and(|node| node.cpus > 0).then_some(device)
    }

    fn score(&self, id: NodeId, node: &NodeRoom, need: Bytes, busy: Option<f64>) -> f64 {
        let memory = node.room.get() as f64 / need.get().max(1) as f64;
        let free = node.free_cpus.unwrap_or(node.cpus as f64);
        let cpus = busy.map_or(ENOUGH, |busy| free / busy.max(0.01));
        let score = memory.min(cpus).min(ENOUGH);
        let holds_most = self.memory.value().is_some_and(|memory| {
            let here = memory.get(&id).map_or(0, |size| size.get());
            u128::from(here) * 2 > u128::from(total(memory).get())
        });
        if holds_most { score * STAYS } else { score }
    }

    /// The memory that it may fill of the best node.
    pub fn room_at_home(&self) -> Option<Bytes> {
        Some(self.nodes.get(&self.home()?)?.room.share(FILLS))
    }

    /// The memory that it may fill of the node with the most room, among nodes with CPUs.
    pub fn largest_room(&self) -> Option<Bytes> {
        let with_cpus = self.nodes.values().filter(|node| node.cpus > 0);
        with_cpus.map(|node| node.room.share(FILLS)).max()
    }

    /// The memory that it may fill of the fastest tier.
    pub fn fast_room(&self) -> Option<Bytes> {
        let rooms = self.nodes.iter().filter(|(id, _)| self.fast.contains(**id));
        let rooms: Vec<Bytes> = rooms.map(|(_, node)| node.room.share(FILLS)).collect();
        (!rooms.is_empty()).then(|| rooms.into_iter().sum())
    }

    /// CPUs of a node, and memory from it.
    pub fn on_node(&self, node: NodeId, mode: PolicyMode) -> Placement {
        Placement::memory(mode, NodeSet::from_iter([node])).with_cpus(self.scope.cpus_of(node))
    }

    /// Interleaving over the nodes that have room for their part.
    pub fn interleaved(&self) -> Placement {
        let mode = if self.has_weights { PolicyMode::WeightedInterleave } else { PolicyMode::Interleave };
        Placement::memory(mode, self.nodes_with_room())
    }

    /// Nodes that have room for an equal part of the need: those that have not are taken out, which makes the parts
    /// larger. All nodes where none would be left, or the need is not known.
    ///
    /// Without weights, equal parts on slow memory make all of it slow: there only nodes of the fastest tier, where
    /// the need fits them.
    fn nodes_with_room(&self) -> NodeSet {
        let all: NodeSet = self.nodes.keys().copied().collect();
        let fast = all.intersection(&self.fast);
        if self.class == Class::Tiered && !self.has_weights && !fast.is_empty() {
            let parts = self.in_equal_parts(&fast);
            let room: Bytes = parts.iter().filter_map(|node| Some(self.nodes.get(&node)?.room)).sum();
            if self.need.value().is_none_or(|need| *need <= room) {
                return parts;
            }
        }
        self.in_equal_parts(&all)
    }

    fn in_equal_parts(&self, all: &NodeSet) -> NodeSet {
        let Some(need) = self.need.value() else { return all.clone() };
        let mut left = all.clone();
        while !left.is_empty() {
            let part = need.get() / left.len() as u64;
            let small = |node: &NodeId| self.nodes.get(node).is_some_and(|node| node.room.get() < part);
            let small: NodeSet = left.iter().filter(small).collect();
            if small.is_empty() {
                return left;
            }
            left = left.difference(&small);
        }
        all.clone()
    }
}

/// The sum of sizes by node.
pub(super) fn total(memory: &BTreeMap<NodeId, Bytes>) -> Bytes {
    memory.values().copied().sum()
}
