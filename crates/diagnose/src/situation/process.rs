//! A process: the memory that is its own, by node, and where it runs.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use nodewise_machine::mapping::{FileId, MappedPages, Mapping, MappingKind, ProcessMappings};
use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::order::Order as _;
use nodewise_machine::{Bytes, CpuSet, MemPolicy, NodeId, NodeSet, PolicyMode};
use nodewise_source::paths::shown;
use nodewise_source::program::running::RunningProgram;
use nodewise_source::sample::{Identity, PageMethod, PageSample, ProcessSample, Sample};

use crate::attribution::{CpuTime, Places, reach};
use crate::change::{Delta, ProcessChange};
use crate::finding::{Confidence, Owner, Subject};
use crate::thresholds::{self, Thresholds};

/// A node with this part of the stranded memory is named.
const NAMED: f64 = 0.01;
/// Programs that run virtual machines, as the kernel cuts their names.
const VIRTUAL_MACHINES: [&str; 5] = ["qemu-system-", "qemu-kvm", "kvm", "cloud-hyperviso", "firecracker"];
/// The part of a machine's memory that a cell has at least: eight cells, and firmware beside them.
const CELL: f64 = 0.05;
/// A policy over this part of the memory is that of the process.
const MOST: f64 = 0.5;

/// The CPU time from which a process is at work, and runs on a node.
#[derive(Clone, Copy)]
pub(super) struct WorkMarks {
    at_work: f64,
    runs: f64,
}

impl WorkMarks {
    pub(super) fn from_thresholds(thresholds: &Thresholds) -> Self {
        Self { at_work: thresholds.get(&thresholds::AT_WORK), runs: thresholds.get(&thresholds::RUNS) }
    }
}

/// A process in the window.
pub struct ProcessState<'a> {
    pub process: &'a ProcessSample,
    /// The same process at the beginning of the window.
    before: Option<&'a ProcessSample>,
    /// Its change in the window.
    pub change: Option<ProcessChange>,
    /// Its own memory by node.
    pub memory: BTreeMap<NodeId, Bytes>,
    /// The same at the beginning of the window, where it was looked at then.
    pub earlier: Option<BTreeMap<NodeId, Bytes>>,
    /// How sure it is where its pages are, and where it runs.
    pub confidence: Confidence,
    /// Nodes that it may run on.
    pub reach: Option<NodeSet>,
    /// How sure that is: threads that were not read count as those of the first one, and may have other CPUs.
    pub reach_confidence: Confidence,
    pub mappings: Option<&'a ProcessMappings>,
    /// Its program; `None` where it was not read.
    pub program: Option<&'a RunningProgram>,
    pub(super) marks: WorkMarks,
}

/// Growth of a process in the window, and where it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Growth {
    pub size: Bytes,
    pub read_from: &'static str,
}

/// The states of all processes whose pages are known, the largest first.
pub(super) fn states<'a>(
    before: Option<&'a Sample>,
    now: &'a Sample,
    delta: Option<&Delta>,
    places: &Places,
) -> Vec<ProcessState<'a>> {
    let mappings: BTreeMap<Identity, &ProcessMappings> =
        now.mappings.iter().map(|of| (of.identity, of.mappings.as_ref())).collect_map();
    let marks = WorkMarks::from_thresholds(&Thresholds::default());
    let state = |process: &'a ProcessSample| {
        let mappings = mappings.get(&process.identity).copied();
        let earlier = before.and_then(|before| before.process(process.identity));
        let (memory, confidence) = own_memory(process.pages.as_ref(), mappings)?;
        let threads = process.tasks.as_ref().map_or(0, Vec::len).max(1);
        let reach_confidence = match usize::try_from(process.threads) {
            Ok(all) if all <= threads => Confidence::Certain,
            _ => Confidence::Likely,
        };
        Some(ProcessState {
            process,
            before: earlier,
            change: delta.and_then(|delta| delta.process(process.identity)).cloned(),
            memory,
            earlier: earlier.and_then(|earlier| own_memory(earlier.pages.as_ref(), None)).map(|(own, _)| own),
            confidence: confidence.min(reach_confidence),
            reach: reach(process, places),
            reach_confidence,
            mappings,
            program: None,
            marks,
        })
    };
    let mut states: Vec<ProcessState<'a>> =
        now.processes.iter().filter(|process| !process.kernel_thread).filter_map(|p| state(p)).collect();
    states.order_by_key(|state| Reverse(state.size()));
    states
}

/// Memory of a process by node, and how sure it is; `None` where nothing says which pages are its own.
///
/// Pages of files are where whoever read them first put them: they say nothing about this process.
fn own_memory(
    pages: Option<&PageSample>,
    mappings: Option<&ProcessMappings>,
) -> Option<(BTreeMap<NodeId, Bytes>, Confidence)> {
    if let Some(memory) = mappings.and_then(by_mappings) {
        return Some((memory, Confidence::Certain));
    }
    let pages = pages?;
    let own: Option<BTreeMap<NodeId, Bytes>> =
        pages.nodes.iter().map(|(node, share)| Some((*node, share.own?))).collect();
    let is_drawn = matches!(pages.method, PageMethod::Drawn(_));
    Some((own?, if is_drawn { Confidence::Likely } else { Confidence::Certain }))
}

/// Adds the counted pages of a mapping to those of others.
pub(crate) fn add_pages(sums: &mut BTreeMap<NodeId, Bytes>, pages: &BTreeMap<NodeId, Bytes>) {
    for (node, size) in pages {
        *sums.entry(*node).or_default() += *size;
    }
}

/// Memory of mappings that are placed by a policy; `None` where the pages of one were not counted.
fn by_mappings(process: &ProcessMappings) -> Option<BTreeMap<NodeId, Bytes>> {
    let mut memory: BTreeMap<NodeId, Bytes> = BTreeMap::new();
    // A segment of several processes is not the own memory of each.
    let is_own = |mapping: &&Mapping| mapping.kind.follows_policy() && !mapping.is_in_several_processes();
    let own = process.mappings.iter().filter(is_own);
    for mapping in own {
        match &mapping.pages {
            MappedPages::Counted(nodes) => {
                add_pages(&mut memory, nodes);
            }
            MappedPages::Unknown { resident: Some(resident) } if resident.get() == 0 => {}
            MappedPages::Unknown { .. } | MappedPages::Drawn(_) => return None,
        }
    }
    Some(memory)
}

impl ProcessState<'_> {
    /// Its own memory.
    pub fn size(&self) -> Bytes {
        self.memory.values().copied().sum()
    }

    /// Mappings of segments that several processes map.
    pub fn common_mappings(&self) -> impl Iterator<Item = &Mapping> {
        let mappings = self.mappings.into_iter().flat_map(|read| &read.mappings);
        mappings.filter(|mapping| mapping.kind.follows_policy() && mapping.is_in_several_processes())
    }

    /// The counted memory of these segments by node. One that is mapped twice is counted once.
    pub fn common_memory(&self) -> BTreeMap<NodeId, Bytes> {
        let mut largest: BTreeMap<(Option<FileId>, u64), &BTreeMap<NodeId, Bytes>> = BTreeMap::new();
        let sum = |pages: &BTreeMap<NodeId, Bytes>| pages.values().copied().sum::<Bytes>();
        for mapping in self.common_mappings() {
            let MappedPages::Counted(pages) = &mapping.pages else { continue };
            let key = (mapping.file, if mapping.file.is_some() { 0 } else { mapping.start });
            let known = largest.entry(key).or_insert(pages);
            if sum(known) < sum(pages) {
                *known = pages;
            }
        }
        let mut memory = BTreeMap::new();
        largest.into_values().for_each(|pages| add_pages(&mut memory, pages));
        memory
    }

    /// The growth of its own memory in the window; `None` where that is not known at both ends, or it shrank.
    ///
    /// Both ends are counted from samples of pages: mappings, which know of private pages of files, differ from those by
    /// megabytes. Where the kernel's count of resident pages grew less, that is the growth: of drawn pages the sums swing.
    pub fn growth(&self) -> Option<Growth> {
        let sum = |own: &BTreeMap<NodeId, Bytes>| own.values().copied().sum::<Bytes>().get();
        let (now, _) = own_memory(self.process.pages.as_ref(), None)?;
        let grown = sum(&now).checked_sub(sum(self.earlier.as_ref()?))?;
        let resident = self.process.resident.zip(self.before?.resident);
        let resident = resident.map(|(now, then)| now.get().saturating_sub(then.get()));
        if let Some(resident) = resident.filter(|resident| *resident < grown) {
            return Some(Growth { size: Bytes::new(resident), read_from: shown::STAT });
        }
        let read_from = match self.process.pages.as_ref()?.method {
            PageMethod::Exact => shown::NUMA_MAPS,
            PageMethod::Drawn(_) => shown::MOVE_PAGES,
        };
        Some(Growth { size: Bytes::new(grown), read_from })
    }

    /// Its CPU time in the window.
    pub fn cpu(&self) -> Option<&CpuTime> {
        self.change.as_ref()?.cpu.as_ref()
    }

    /// Its CPU time as a share of one CPU.
    pub fn cpu_share(&self) -> Option<f64> {
        let change = self.change.as_ref()?;
        change.window.share(Some(change.cpu.as_ref()?.used))
    }

    /// Whether the process is at work in the window.
    pub fn is_at_work(&self) -> bool {
        self.cpu_share().is_some_and(|share| share >= self.marks.at_work)
    }

    /// The most of its CPU time that it can have spent on a node, from 0 to 1; `None` where it was idle.
    pub fn most_on(&self, node: NodeId) -> Option<f64> {
        let cpu = self.cpu()?;
        cpu.share(cpu.bounds(node).1)
    }

    /// The least of it.
    pub fn least_on(&self, node: NodeId) -> Option<f64> {
        let cpu = self.cpu()?;
        cpu.share(cpu.bounds(node).0)
    }

    /// Whether the nodes of most of its CPU time are unknown.
    pub fn is_unsure(&self) -> bool {
        self.cpu().is_none_or(|cpu| cpu.unsure > cpu.used / 2)
    }

    /// Nodes where it certainly runs.
    pub fn runs_on(&self) -> NodeSet {
        self.runs_with(self.marks.runs)
    }

    /// Nodes with at least this part of its CPU time, for certain.
    pub fn runs_with(&self, least: f64) -> NodeSet {
        let cpu = self.cpu().into_iter().flat_map(|cpu| cpu.certain.keys().copied());
        cpu.filter(|node| self.least_on(*node).is_some_and(|share| share >= least)).collect()
    }

    /// Memory that is on other nodes at the end of the window than at its beginning; `None` where its pages were not
    /// looked at twice.
    pub fn shifted(&self) -> Option<Bytes> {
        let (then, now) = (self.before?.pages.as_ref()?, self.process.pages.as_ref()?);
        if now.seen.since_boot <= then.seen.since_boot {
            return None;
        }
        let ((then, _), (now, _)) = (own_memory(Some(then), None)?, own_memory(Some(now), None)?);
        let of =
            |memory: &BTreeMap<NodeId, Bytes>, node| memory.get(&node).copied().unwrap_or_default().get();
        let nodes: NodeSet = then.keys().chain(now.keys()).copied().collect();
        let changes = nodes.iter().map(|node| of(&now, node).abs_diff(of(&then, node)));
        Some(Bytes::new(changes.fold(0, u64::saturating_add) / 2))
    }

    /// The part of some memory that is on nodes with CPUs where it does not run, and those nodes.
    fn away(&self, memory: &BTreeMap<NodeId, Bytes>, with_cpus: &NodeSet) -> (Bytes, NodeSet) {
        let away = memory.iter().filter(|(node, size)| {
            size.get() > 0
                && with_cpus.contains(**node)
                && self.most_on(**node).is_some_and(|most| most < self.marks.runs)
        });
        away.fold((Bytes::default(), NodeSet::new()), |(sum, mut nodes), (node, size)| {
            nodes.insert(*node);
            (sum + *size, nodes)
        })
    }

    /// The part of some memory that is on nodes with CPUs where it does not run.
    pub fn elsewhere(&self, memory: &BTreeMap<NodeId, Bytes>, with_cpus: &NodeSet) -> Bytes {
        self.away(memory, with_cpus).0
    }

    /// Memory where it does not run, at the beginning of the window and at its end: the smaller of both, and the
    /// nodes that hold most of it at the end. `None` where it was idle, or was not looked at twice.
    pub fn stranded(&self, with_cpus: &NodeSet) -> Option<(Bytes, NodeSet)> {
        if !self.is_at_work() {
            return None;
        }
        let (then, _) = self.away(self.earlier.as_ref()?, with_cpus);
        let (now, nodes) = self.away(&self.memory, with_cpus);
        // A page of a stack is on every second node: the nodes that are named hold a part worth naming.
        let least = now.share(NAMED);
        let holds = |node: &NodeId| self.memory.get(node).is_some_and(|size| *size >= least);
        Some((now.min(then), nodes.iter().filter(holds).collect())).filter(|(size, _)| size.get() > 0)
    }

    /// A part of its memory, from 0 to 1.
    pub fn share(&self, part: Bytes) -> f64 {
        let size = self.size();
        if size.get() == 0 { 0.0 } else { part.get() as f64 / size.get() as f64 }
    }

    /// The node where it certainly runs most, of those with memory; `None` where none of them is known.
    pub fn busiest(&self, with_memory: &NodeSet) -> Option<NodeId> {
        let certain = &self.cpu()?.certain;
        let runs = self.runs_on();
        let candidates =
            certain.iter().filter(|(node, _)| runs.contains(**node) && with_memory.contains(**node));
        candidates.max_by_key(|(_, time)| **time).map(|(node, _)| *node)
    }

    /// Nodes that its memory may be on.
    pub fn allowed_nodes(&self) -> Option<&NodeSet> {
        self.process.allowed.as_ref()?.nodes.as_ref()
    }

    /// CPUs that it may use.
    pub fn allowed_cpus(&self) -> Option<&CpuSet> {
        self.process.allowed.as_ref()?.cpus.as_ref()
    }

    /// The policy other than the default over most of its memory, with the size of that memory; `None` without one, or
    /// where its mappings were not read. A buffer under a policy of its own says nothing about the rest.
    pub fn policy(&self) -> Option<(&MemPolicy, Bytes)> {
        self.known_policy()?
    }

    /// Whether no policies other than the default are over most of its memory. A policy that was not read is not none.
    pub fn has_no_policy(&self) -> bool {
        let placed = self.placed_mappings().filter_map(|(mapping, _)| mapping.resident()).sum();
        self.known_policy() == Some(None) && self.share(placed) < MOST
    }

    /// Whether the process runs a virtual machine, by the name of its program.
    pub fn is_virtual_machine(&self) -> bool {
        VIRTUAL_MACHINES.iter().any(|known| match known.ends_with('-') {
            true => self.process.name.starts_with(known),
            false => *self.process.name == **known,
        })
    }

    /// Nodes of cells: parts of its memory that are bound to different nodes, each on purpose. Empty where most of the
    /// memory is not in such parts; `None` where the policies of its mappings are not known.
    pub fn cells(&self) -> Option<NodeSet> {
        let mut cells: Vec<(&NodeSet, Bytes)> = Vec::new();
        let mut unknown = Bytes::default();
        for mapping in self.mappings?.mappings.iter().filter(|mapping| mapping.kind.follows_policy()) {
            let size = mapping.resident().unwrap_or_default();
            let Some(policy) = mapping.policy.as_ref().and_then(|policy| policy.policy.as_ref()) else {
                unknown += size;
                continue;
            };
            let binds =
                matches!(policy.mode, PolicyMode::Bind | PolicyMode::Preferred | PolicyMode::PreferredMany);
            match cells.iter_mut().find(|(nodes, _)| **nodes == policy.nodes) {
                _ if !binds || policy.nodes.is_empty() => {}
                Some((_, sum)) => *sum += size,
                None => cells.push((&policy.nodes, size)),
            }
        }
        if self.share(unknown) >= MOST {
            return None;
        }
        cells.retain(|(_, size)| self.share(*size) >= CELL);
        let all = cells.iter().fold(NodeSet::new(), |all, (nodes, _)| all.union(nodes));
        let are_apart = all.len() == cells.iter().map(|(nodes, _)| nodes.len()).sum::<usize>();
        let size = cells.iter().map(|(_, size)| *size).sum();
        let are_cells = cells.len() > 1 && are_apart && self.share(size) >= MOST;
        Some(if are_cells { all } else { NodeSet::new() })
    }

    /// The policy other than the default over most of its memory, or that there is none; `None` where that is not
    /// known.
    pub fn known_policy(&self) -> Option<Option<(&MemPolicy, Bytes)>> {
        let mut sizes: Vec<(&MemPolicy, Bytes)> = Vec::new();
        let mut unknown = Bytes::default();
        for mapping in self.mappings?.mappings.iter().filter(|mapping| mapping.kind.follows_policy()) {
            let size = mapping.resident().unwrap_or_default();
            let Some(policy) = self.policy_of(mapping) else {
                unknown += size;
                continue;
            };
            match sizes.iter_mut().find(|(known, _)| *known == policy) {
                Some((_, sum)) => *sum += size,
                None => sizes.push((policy, size)),
            }
        }
        sizes.retain(|(policy, _)| !matches!(policy.mode, PolicyMode::Default | PolicyMode::Local));
        let most = sizes.into_iter().max_by_key(|(_, size)| *size);
        let is_most = |size: Bytes| size.get() > 0 && self.share(size) >= MOST;
        match most.filter(|(_, size)| is_most(*size)) {
            Some(most) => Some(Some(most)),
            None if is_most(most.map_or(unknown, |(_, size)| size + unknown)) => None,
            None => Some(None),
        }
    }

    /// The policy of a mapping; `None` where it was not read.
    ///
    /// A mapping whose own policy was not read counts as under that of the first thread, unless that is the default: of
    /// a program that was started under a policy this is nearly always so, and a program that places its memory
    /// itself starts under the default.
    fn policy_of<'m>(&'m self, mapping: &'m Mapping) -> Option<&'m MemPolicy> {
        let thread = || {
            let policy = self.mappings?.thread_policy.as_ref()?.policy.as_ref()?;
            (policy.mode != PolicyMode::Default).then_some(policy)
        };
        match &mapping.policy {
            Some(read) => read.policy.as_ref(),
            None => thread(),
        }
    }

    /// The policy of its first thread, which its stack is under; `None` where that was not read.
    pub fn thread_policy(&self) -> Option<&MemPolicy> {
        let read = self.mappings?;
        let stack =
            || read.mappings.iter().find(|mapping| mapping.kind == MappingKind::Stack)?.policy.as_ref();
        read.thread_policy.as_ref().or_else(stack)?.policy.as_ref()
    }

    /// Whether the policy of some mappings is known from that of the first thread only.
    pub fn infers_policies(&self) -> bool {
        self.mappings.is_some_and(|read| {
            let infers = |mapping: &Mapping| mapping.kind.follows_policy() && mapping.policy.is_none();
            read.thread_policy.is_some() && read.mappings.iter().any(infers)
        })
    }

    /// Mappings under a policy that names nodes.
    pub fn placed_mappings(&self) -> impl Iterator<Item = (&Mapping, &MemPolicy)> {
        let mappings = self.mappings.into_iter().flat_map(|process| &process.mappings);
        mappings.filter(|mapping| mapping.kind.follows_policy()).filter_map(|mapping| {
            let policy = self.policy_of(mapping)?;
            let places = !matches!(policy.mode, PolicyMode::Default | PolicyMode::Local);
            places.then_some((mapping, policy))
        })
    }

    /// The part of its memory in pools of huge pages; `None` where its mappings were not read.
    pub fn in_pools(&self) -> Option<Bytes> {
        let pools = self.mappings?.mappings.iter().filter(|mapping| mapping.kind == MappingKind::HugePool);
        Some(pools.filter_map(Mapping::resident).sum())
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.process.identity.pid.number()
    }

    /// Who places it.
    pub fn owner(&self) -> Owner {
        Owner::from_process(self.process)
    }

    /// It as the subject of a finding.
    pub fn subject(&self) -> Subject {
        Subject::Process {
            identity: self.process.identity,
            name: self.process.name.as_ref().to_owned(),
            owner: self.owner(),
        }
    }
}
