//! The processes of one program: its workers, and others that map the same segments.

use std::collections::BTreeSet;

use nodewise_machine::mapping::FileId;
use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::{Bytes, NodeId};
use nodewise_source::sample::ProcessSample;

use super::super::profile::total;
use super::workers;
use crate::situation::{ProcessState, Situation};
use crate::thresholds;

/// Segments that several processes map, from which on the memory of one of them is not that of the program.
const COMMON: Bytes = Bytes::from_mib(64);

/// A process and those that belong to it, as far as they are known.
pub(super) struct Family<'a> {
    members: Vec<&'a ProcessState<'a>>,
    /// Whether the memory of all of them is known, those included that map a segment.
    is_complete: bool,
    has_workers: bool,
    common: Bytes,
}

impl<'a> Family<'a> {
    pub(super) fn new(
        situation: &'a Situation<'_>,
        process: &ProcessSample,
        state: Option<&'a ProcessState<'a>>,
    ) -> Self {
        let own = process.identity;
        let worker: BTreeSet<_> = workers(situation, process).map(|worker| worker.identity).collect_set();
        let common = state.map(|state| total(&state.common_memory())).unwrap_or_default();
        let files: BTreeSet<FileId> = match state {
            Some(state) if common >= COMMON => state.common_mappings().filter_map(|of| of.file).collect(),
            _ => BTreeSet::new(),
        };
        let maps = |other: &ProcessState<'_>| {
            other.common_mappings().any(|mapping| mapping.file.is_some_and(|file| files.contains(&file)))
        };
        let is_member = |other: &&ProcessState<'_>| {
            let identity = other.process.identity;
            identity == own || worker.contains(&identity) || maps(other)
        };
        let members: Vec<&ProcessState<'_>> = situation.processes.iter().filter(is_member).collect();
        let most = state.into_iter().flat_map(ProcessState::common_mappings).filter_map(|of| of.most_mapped);
        let has_mappers = files.is_empty() || most.max().is_none_or(|most| most <= members.len() as u64);
        let known = members.iter().filter(|member| worker.contains(&member.process.identity)).count();
        Self {
            is_complete: state.is_some() && has_mappers && known == worker.len(),
            members,
            has_workers: !worker.is_empty(),
            common,
        }
    }

    /// Whether the memory of the process is a part of its program's only.
    pub(super) fn shares_memory(&self) -> bool {
        self.has_workers || self.common >= COMMON
    }

    /// The memory of all of them, each segment once; `None` where one is not known.
    pub(super) fn size(&self) -> Option<Bytes> {
        let own: Bytes = self.members.iter().map(|member| member.size()).sum();
        self.is_complete.then(|| own + self.common)
    }

    /// The CPUs of a node that they certainly kept busy.
    pub(super) fn busy_on(&self, node: NodeId) -> f64 {
        let busy = |member: &&ProcessState<'_>| {
            let change = member.change.as_ref()?;
            change.window.share(Some(change.cpu.as_ref()?.bounds(node).0))
        };
        self.members.iter().filter_map(busy).sum()
    }

    /// The part of the segments on nodes where none of them runs, by the marks of the rule `memory-stranded`; `None`
    /// below them, or where one that maps a segment is not known.
    pub(super) fn common_away(&self, situation: &Situation<'_>, state: &ProcessState<'_>) -> Option<Bytes> {
        if !self.is_complete || !state.is_at_work() {
            return None;
        }
        let with_cpus = situation.places.with_cpus();
        let runs = |node: &NodeId| {
            let limit = situation.limit(&thresholds::RUNS);
            let at_work = self.members.iter().filter(|member| member.is_at_work());
            at_work.map(|member| member.most_on(*node)).any(|most| most.is_none_or(|most| most >= limit))
        };
        let common = state.common_memory();
        let away = common.iter().filter(|(node, _)| with_cpus.contains(**node) && !runs(node));
        let size: Bytes = away.map(|(_, size)| *size).sum();
        let all = (state.size() + self.common).get().max(1) as f64;
        let is_much = size.get() as f64 / all >= situation.limit(&thresholds::MEMORY_STRANDED);
        (is_much && size >= situation.floor()).then_some(size)
    }
}
