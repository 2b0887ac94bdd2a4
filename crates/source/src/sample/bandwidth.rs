//! Bandwidth that hardware counts for each last-level cache.

use std::collections::BTreeMap;
use std::time::Duration;

use nodewise_machine::{CpuId, CpuSet};

use super::reading::Reading;
use super::{BandwidthSample, Moment, Sample};
use crate::file;
use crate::limits::bound_cpus;
use crate::parse::{mounts, number, resctrl, set};
use crate::tree::{Kept, Tree};

/// Groups and domains are looked for this often.
const FIND_EVERY: Duration = Duration::from_secs(10);
/// The fact, in a missing one's line.
const FACT: &str = "bandwidth";

/// Whether to read what hardware counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum BandwidthScope {
    #[default]
    None,
    /// Where there are counters; their absence is not worth a word.
    IfCounted,
    All,
}

/// The counters that are known.
#[derive(Debug, Default)]
pub(super) struct BandwidthTable {
    domains: BTreeMap<u32, Domain>,
    found: Option<Moment>,
    mounted: bool,
}

/// The counters of a domain: one of each kind for each group, since a task is counted by its group alone.
#[derive(Debug)]
struct Domain {
    /// Whether the number is that of a node, not of a cache.
    node: bool,
    cpus: CpuSet,
    total: Vec<Kept>,
    local: Vec<Kept>,
}

impl BandwidthTable {
    /// Reads the counters; the nodes of the sample are there already.
    pub(super) fn read(
        &mut self,
        reading: &mut Reading<'_>,
        sample: &Sample,
        scope: BandwidthScope,
    ) -> Vec<BandwidthSample> {
        let age = self.found.map(|found| reading.now.since(found));
        if age.is_none_or(|age| age.is_none_or(|age| age >= FIND_EVERY)) {
            self.find(reading.tree, sample);
            self.found = Some(reading.now);
        }
        if scope == BandwidthScope::IfCounted && self.domains.is_empty() {
            return Vec::new();
        }
        if !self.mounted {
            let remedy = "mount -t resctrl resctrl /sys/fs/resctrl, as root";
            reading.missing.add(FACT, "resctrl is not mounted", Some(remedy.into()));
        } else if self.domains.is_empty() {
            reading.missing.add(FACT, "these CPUs do not count it", None);
        }
        let mut samples = Vec::new();
        for (number, domain) in &mut self.domains {
            samples.push(BandwidthSample {
                domain: *number,
                cpus: domain.cpus.clone(),
                total_bytes: sum(reading, &mut domain.total),
                local_bytes: sum(reading, &mut domain.local),
            });
        }
        samples
    }

    fn find(&mut self, tree: &Tree, sample: &Sample) {
        self.domains.clear();
        let mounts = mounts::parse(&tree.read_text("/proc/mounts").ok().flatten().unwrap_or_default()).value;
        let root = mounts.iter().find(|mount| mount.kind == "resctrl").map(|mount| &mount.folder);
        self.mounted = root.is_some();
        let Some(root) = root else { return };
        // A group's counters include those of the monitoring groups in it, not those of other control groups.
        let names = tree.list(root).ok().flatten().unwrap_or_default();
        let others = names.iter().filter(|name| !["info", "mon_groups", "mon_data"].contains(&name.as_str()));
        let groups = std::iter::once(root.clone()).chain(others.map(|name| format!("{root}/{name}")));
        for data in groups.map(|group| format!("{group}/mon_data")) {
            for name in tree.list(&data).ok().flatten().unwrap_or_default() {
                let Some(cache) = resctrl::domain(&name) else { continue };
                let folder = format!("{data}/{name}");
                let parts = tree.list(&folder).ok().flatten().unwrap_or_default();
                let parts: Vec<_> =
                    parts.iter().filter_map(|part| Some((resctrl::part(part)?, part))).collect();
                if parts.is_empty() {
                    self.add(tree, cache, false, &folder);
                }
                for (node, part) in parts {
                    self.add(tree, node, true, &format!("{folder}/{part}"));
                }
            }
        }
        let by_cache = caches(tree, sample);
        for (number, domain) in &mut self.domains {
            let of_node = || sample.nodes.iter().find(|node| node.node.number() == *number);
            domain.cpus = if domain.node {
                of_node().map(|node| node.cpus.clone()).unwrap_or_default()
            } else {
                by_cache.get(number).cloned().unwrap_or_default()
            };
        }
    }

    fn add(&mut self, tree: &Tree, number: u32, node: bool, folder: &str) {
        let domain = self.domains.entry(number).or_insert_with(|| Domain {
            node,
            cpus: CpuSet::default(),
            total: Vec::new(),
            local: Vec::new(),
        });
        for (kept, name) in [(&mut domain.total, "mbm_total_bytes"), (&mut domain.local, "mbm_local_bytes")] {
            kept.push(tree.keep(&format!("{folder}/{name}")));
        }
    }
}

/// The sum over groups; `None` where one of them does not say, since a part is not the sum.
fn sum(reading: &mut Reading<'_>, counters: &mut [Kept]) -> Option<u64> {
    let mut sum = 0u64;
    for counter in counters {
        sum = sum.checked_add(reading.value(counter, FACT, resctrl::count)??)?;
    }
    Some(sum)
}

/// The CPUs of each last-level cache that has a number.
fn caches(tree: &Tree, sample: &Sample) -> BTreeMap<u32, CpuSet> {
    let mut caches: BTreeMap<u32, CpuSet> = BTreeMap::new();
    let known = |caches: &BTreeMap<u32, CpuSet>, cpu| caches.values().any(|cpus| cpus.contains(cpu));
    for (cpu, _) in &sample.cpus {
        if known(&caches, *cpu) {
            continue;
        }
        let folder = format!("/sys/devices/system/cpu/cpu{cpu}/cache/index3");
        let id = file::value(tree, &format!("{folder}/id"), number::number::<u32>).ok().flatten();
        let cpus = file::value(tree, &format!("{folder}/shared_cpu_list"), set::list::<CpuId>).ok().flatten();
        if let (Some(id), Some(mut cpus)) = (id, cpus) {
            bound_cpus(&mut cpus);
            caches.insert(id, cpus);
        }
    }
    caches
}
