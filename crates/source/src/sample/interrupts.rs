//! Interrupts of devices: whose lines they are, and which CPUs take them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::{CpuId, CpuSet, NodeId};

use super::queues::QueueTable;
use super::reading::Reading;
use super::{InterruptSample, InterruptScope, Moment};
use crate::file;
use crate::parse::{interrupts, number, set};
use crate::tree::{Kept, Tree};

/// Devices and their lines are looked for this often.
const FIND_EVERY: Duration = Duration::from_secs(60);
/// Classes of devices, with the words before their names.
const CLASSES: [(&str, &str); 2] = [("/sys/class/net", "net"), ("/sys/class/block", "block")];
/// Lines whose CPUs are read: some 10 us each.
const MOST_ALLOWED: usize = 4096;
/// Where no device is any more.
const TOP: &str = "/sys/devices";
/// The fact, in a missing one's line.
const FACT: &str = "interrupts";

/// The devices that are known.
#[derive(Debug)]
pub(super) struct InterruptTable {
    file: Kept,
    devices: Vec<InterruptSample>,
    found: Option<Moment>,
    queues: QueueTable,
}

impl InterruptTable {
    pub(super) fn new(tree: &Tree) -> Self {
        Self {
            file: tree.keep("/proc/interrupts"),
            devices: Vec::new(),
            found: None,
            queues: QueueTable::default(),
        }
    }

    pub(super) fn read(&mut self, reading: &mut Reading<'_>, scope: InterruptScope) -> Vec<InterruptSample> {
        let age = self.found.map(|found| reading.now.since(found));
        if age.is_none_or(|age| age.is_none_or(|age| age >= FIND_EVERY)) {
            self.devices = find(reading.tree);
            self.found = Some(reading.now);
        }
        let wanted: BTreeSet<String> =
            self.devices.iter().flat_map(|device| &device.lines).map(u32::to_string).collect_set();
        let parse = |text: &str| interrupts::parse(text, |name| wanted.contains(name));
        let Some(read) = reading.parsed(&mut self.file, FACT, parse) else { return Vec::new() };
        let lines: BTreeMap<&str, &[u64]> =
            read.lines.iter().map(|line| (line.name.as_str(), line.counts.as_slice())).collect_map();
        let mut devices = self.devices.clone();
        for device in &mut devices {
            let mut sums: BTreeMap<CpuId, u64> = BTreeMap::new();
            for counts in device.lines.iter().filter_map(|line| lines.get(line.to_string().as_str())) {
                for (cpu, count) in read.cpus.iter().zip(*counts) {
                    let sum = sums.entry(*cpu).or_default();
                    *sum = sum.saturating_add(*count);
                }
            }
            device.by_cpu = sums.into_iter().collect();
        }
        if scope >= InterruptScope::Queues {
            self.queues.add(reading.tree, reading.now, &mut devices);
        }
        if scope == InterruptScope::All {
            let mut room = MOST_ALLOWED;
            for device in &mut devices {
                let count = device.lines.len().min(room);
                device.allowed = allowed(reading.tree, &device.lines[..count]);
                room -= count;
            }
        }
        devices
    }
}

/// The CPUs that may serve each of these lines, as far as the kernel says so.
///
/// # Source
/// `/proc/irq/N/smp_affinity_list`, Linux 3.0.
fn allowed(tree: &Tree, lines: &[u32]) -> Vec<(u32, CpuSet)> {
    let cpus = |line: &u32| {
        let path = format!("/proc/irq/{line}/smp_affinity_list");
        Some((*line, file::value(tree, &path, set::list::<CpuId>).ok().flatten()?))
    };
    lines.iter().filter_map(cpus).collect()
}

/// Finds devices with lines of their own (MSI). Two names of one device, such as two name spaces of an NVMe
/// controller, share its lines: the first has them.
///
/// # Source
/// `msi_irqs` of the device or of the one that it is a part of, Linux 3.2; of virtio it is the PCI function's.
fn find(tree: &Tree) -> Vec<InterruptSample> {
    let mut seen = BTreeSet::new();
    let mut devices = Vec::new();
    for (class, word) in CLASSES {
        for name in tree.list(class).ok().flatten().unwrap_or_default() {
            let Some((folder, lines)) = lines_of(tree, &format!("{class}/{name}")) else { continue };
            if !seen.insert(folder.clone()) {
                continue;
            }
            let node = file::value(tree, &format!("{folder}/numa_node"), number::number::<u32>);
            // -1 is refused as a number: the firmware does not say.
            let node = node.ok().flatten().filter(|node| *node < <NodeId as nodewise_machine::id::Id>::LIMIT);
            devices.push(InterruptSample {
                device: format!("{word}:{name}"),
                node: node.map(NodeId::new),
                lines,
                ..InterruptSample::default()
            });
        }
    }
    devices
}

/// The nearest folder at or above a device that has lines, and the lines.
fn lines_of(tree: &Tree, link: &str) -> Option<(String, Vec<u32>)> {
    let mut folder = tree.target(link).ok().flatten()?;
    while folder.starts_with(TOP) && folder.len() > TOP.len() {
        let names = tree.list(&format!("{folder}/msi_irqs")).ok().flatten().unwrap_or_default();
        let mut lines: Vec<u32> = names.iter().filter_map(|name| name.parse().ok()).collect();
        if !lines.is_empty() {
            lines.sort_unstable();
            return Some((folder, lines));
        }
        folder.truncate(folder.rfind('/')?);
    }
    None
}
