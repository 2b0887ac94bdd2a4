//! Services, containers and other control groups: the memory that they are charged for, by node.

use std::collections::BTreeMap;
use std::sync::Arc;

use nodewise_diagnose::change::GroupChange;
use nodewise_diagnose::sample::{GroupKind, GroupSample, Sample, group_name};
use nodewise_diagnose::{Delta, Window};
use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::order::Order as _;
use nodewise_machine::printable::printable;
use nodewise_machine::{Bytes, CpuSet, NodeId, NodeSet};

/// Kinds of `memory.numa_stat` that are not parts of one another. Version 1 counts anonymous memory and files only.
///
/// # Source
/// `Documentation/admin-guide/cgroup-v2.rst`, `memory.stat`.
const PARTS: [&str; 8] = [
    "anon",
    "file",
    "unevictable",
    "kernel_stack",
    "pagetables",
    "sec_pagetables",
    "slab_reclaimable",
    "slab_unreclaimable",
];
/// The part of version 1 that version 2 counts in others.
const ONLY_IN_THE_FIRST: &str = "unevictable";
/// A kind that only version 2 has.
const ONLY_IN_THE_SECOND: &str = "kernel_stack";

/// A control group as its users see it.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceRow {
    pub kind: GroupKind,
    /// Its name, fit for a terminal.
    pub name: String,
    pub path: Arc<str>,
    pub window: Window,
    /// CPU time as a share of one CPU.
    pub cpu_share: Option<f64>,
    /// Memory that it is charged for, groups below it included; `None` where the kernel does not count it.
    pub memory: Option<BTreeMap<NodeId, Bytes>>,
    pub anonymous: Option<Bytes>,
    pub files: Option<Bytes>,
    /// CPUs and nodes that it may use.
    pub cpus: Option<CpuSet>,
    pub nodes: Option<NodeSet>,
}

impl ServiceRow {
    fn new(group: &GroupSample, change: Option<&GroupChange>) -> Self {
        let named = group_name(&group.path);
        let window = change.map_or(Window::SinceBoot(None), |change| change.window);
        let sum = |kind: &str| Some(group.memory.get(kind)?.values().copied().sum());
        Self {
            kind: named.kind,
            name: printable(&named.name).into_owned(),
            path: Arc::clone(&group.path),
            window,
            cpu_share: change.and_then(|change| change.window.share(change.cpu)),
            memory: charged(&group.memory),
            anonymous: sum("anon"),
            files: sum("file"),
            cpus: group.allowed.cpus.clone(),
            nodes: group.allowed.nodes.clone(),
        }
    }

    /// All of its memory.
    pub fn size(&self) -> Option<Bytes> {
        self.memory.as_ref().map(|nodes| nodes.values().copied().sum())
    }

    /// The kind in a word.
    pub const fn kind_word(&self) -> &'static str {
        match self.kind {
            GroupKind::Root => "root",
            GroupKind::Service => "service",
            GroupKind::Scope => "scope",
            GroupKind::Slice => "slice",
            GroupKind::Session => "session",
            GroupKind::User => "user",
            GroupKind::Docker => "docker",
            GroupKind::Podman => "podman",
            GroupKind::Crio => "cri-o",
            GroupKind::Containerd => "containerd",
            GroupKind::Pod => "pod",
            GroupKind::Lxc => "lxc",
            GroupKind::VirtualMachine => "vm",
            GroupKind::Other => "group",
        }
    }
}

/// The groups to list: services, containers and their like, and groups of other names that hold no listed one. Largest
/// first.
pub(super) fn rows(sample: &Sample, delta: &Delta) -> Vec<ServiceRow> {
    let changes: BTreeMap<&str, &GroupChange> =
        delta.groups.iter().map(|change| (&*change.path, change)).collect_map();
    let parents: std::collections::BTreeSet<&str> =
        sample.groups.iter().filter_map(|group| Some(group.path.rsplit_once('/')?.0)).collect();
    let is_listed = |group: &&GroupSample| match group_name(&group.path).kind {
        GroupKind::Root => false,
        GroupKind::Slice | GroupKind::User | GroupKind::Other | GroupKind::Pod => {
            !parents.contains(&*group.path)
        }
        _ => true,
    };
    let row = |group: &GroupSample| ServiceRow::new(group, changes.get(&*group.path).copied());
    let mut rows: Vec<ServiceRow> = sample.groups.iter().filter(is_listed).map(row).collect();
    rows.order_by(|one, other| other.size().cmp(&one.size()).then_with(|| one.path.cmp(&other.path)));
    rows
}

/// The sum of the kinds; `None` where no kind is known.
fn charged(memory: &BTreeMap<String, BTreeMap<NodeId, Bytes>>) -> Option<BTreeMap<NodeId, Bytes>> {
    let is_second = memory.contains_key(ONLY_IN_THE_SECOND);
    let counts = |kind: &&str| !(is_second && *kind == ONLY_IN_THE_FIRST);
    let parts: Vec<_> = PARTS.iter().copied().filter(counts).filter_map(|kind| memory.get(kind)).collect();
    if parts.is_empty() {
        return None;
    }
    let mut sum = BTreeMap::new();
    for (node, size) in parts.into_iter().flatten() {
        *sum.entry(*node).or_insert(Bytes::new(0)) += *size;
    }
    Some(sum)
}
