//! A machine's site: programs and files that place others, zones and blocks of memory, hints of a board.
//!
//! Read once for a diagnosis. Files of `/etc` and `/var` belong to the running system only: captures do not hold them,
//! because they can name hosts and hold secrets. `site/pinning.rs` finds those that pin interrupts.

mod pinning;

use std::collections::BTreeMap;

use nodewise_machine::{Bytes, NodeId, NodeSet};

use crate::boot;
use crate::facts;
use crate::parse::choice::Choice;
use crate::parse::kubelet_config::{self, KubeletConfig};
use crate::parse::slurm_conf;
use crate::sysfs::number_behind;
use crate::tree::Tree;
use crate::{paths, system};

pub use pinning::PinningLine;

/// The kubelet's folder, unless its command line names another one.
const KUBELET: &str = "/var/lib/kubelet";
/// Slurm's file: as most sites have it, as older packages of Debian, and as a node without files of its own.
const SLURM: [&str; 3] =
    ["/etc/slurm/slurm.conf", "/etc/slurm-llnl/slurm.conf", "/run/slurm/conf/slurm.conf"];
/// The memory that balancing scans at a time, in MiB: since Linux 5.13, and before.
const SCAN_SIZE: [&str; 2] = [paths::shown::SCAN_SIZE, "/proc/sys/kernel/numa_balancing_scan_size_mb"];
const TUNED: &str = "/etc/tuned/active_profile";
/// Largest file of a site.
const MOST: usize = 1 << 20;
/// Most blocks of memory of a node that are looked at.
const MOST_BLOCKS: usize = 1 << 14;

/// A fact of a site.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum SiteFact<T> {
    /// It was not read, because the source cannot hold it.
    #[default]
    Unknown,
    /// There is no such program or file.
    Absent,
    Known(T),
    /// It is there, and only root may read it.
    Denied,
}

impl<T> SiteFact<T> {
    /// The fact, where it is known.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(fact) => Some(fact),
            Self::Unknown | Self::Absent | Self::Denied => None,
        }
    }

    fn map<U>(self, with: impl FnOnce(T) -> U) -> SiteFact<U> {
        match self {
            Self::Known(fact) => SiteFact::Known(with(fact)),
            Self::Unknown => SiteFact::Unknown,
            Self::Absent => SiteFact::Absent,
            Self::Denied => SiteFact::Denied,
        }
    }
}

/// A site. No text is fit for a terminal.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Site {
    pub kubelet: SiteFact<KubeletConfig>,
    /// The plugins that place tasks of Slurm; `None` inside: its file does not set them.
    pub task_plugins: SiteFact<Option<Vec<String>>>,
    /// The active profile of tuned.
    pub tuned: SiteFact<String>,
    /// Lines of files that pin interrupts when the host starts.
    pub pinning: SiteFact<Vec<PinningLine>>,
    /// Nodes whose zones are all movable: the kernel's own memory cannot be there.
    pub movable_only: SiteFact<NodeSet>,
    /// Memory in blocks that are offline, by node.
    pub offline: SiteFact<BTreeMap<NodeId, OfflineMemory>>,
    /// The hints of a board; absent on other machines.
    pub board: SiteFact<BoardHints>,
    /// The memory that automatic balancing scans of a process at a time. Since Linux 5.13 only root may read it.
    pub scan_size: SiteFact<Bytes>,
}

/// Blocks of a node's memory that are offline.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct OfflineMemory {
    pub size: Bytes,
    /// The numbers of the blocks, ascending.
    pub blocks: Vec<u64>,
}

/// Hints of a Raspberry Pi.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct BoardHints {
    pub model: String,
    /// How it can sleep; `None` where the kernel does not say.
    pub sleep: Option<Choice>,
    /// Whether the memory card has a command queue in use; `None` where nothing says so.
    pub card_queue: Option<bool>,
}

impl Site {
    /// Reads the site of a machine. Of a capture only what the kernel shows is read.
    ///
    /// # Source
    /// `/var/lib/kubelet/{config.yaml,cpu_manager_state,memory_manager_state}`, `slurm.conf`,
    /// `/etc/tuned/active_profile`, `/etc/rc.local`, `/etc/udev/rules.d`, `/etc/systemd/system`, `/proc/zoneinfo`,
    /// `/sys/devices/system/memory/memoryN/state`, `/sys/power/mem_sleep`,
    /// `/sys/kernel/debug/sched/numa_balancing/scan_size_mb` (before Linux 5.13 `/proc/sys/kernel/numa_balancing_scan_size_mb`).
    pub fn read(tree: &Tree) -> Self {
        Self::of(tree, tree.is_live())
    }

    fn of(tree: &Tree, is_live: bool) -> Self {
        let mut site = Self {
            movable_only: movable_only(tree),
            offline: offline(tree),
            board: board(tree, is_live),
            scan_size: scan_size(tree),
            ..Self::default()
        };
        if is_live {
            site.kubelet = kubelet(tree);
            let slurm = SLURM.iter().map(|path| text(tree, path)).find(|text| *text != SiteFact::Absent);
            site.task_plugins = slurm.unwrap_or(SiteFact::Absent).map(|text| slurm_conf::task_plugins(&text));
            site.tuned = text(tree, TUNED).map(|text| text.trim().to_owned());
            site.pinning = pinning::read(tree);
        }
        site
    }
}

fn text(tree: &Tree, path: &str) -> SiteFact<String> {
    let mut bytes = Vec::new();
    match tree.read_start(path, MOST, &mut bytes) {
        Ok(true) => SiteFact::Known(String::from_utf8_lossy(&bytes).into_owned()),
        Ok(false) => SiteFact::Absent,
        Err(error) if error.cause.is_permission() => SiteFact::Denied,
        Err(_) => SiteFact::Unknown,
    }
}

fn scan_size(tree: &Tree) -> SiteFact<Bytes> {
    let fact = SCAN_SIZE.iter().map(|path| text(tree, path)).find(|text| *text != SiteFact::Absent);
    let Some(SiteFact::Known(text)) = fact else {
        return fact.map_or(SiteFact::Absent, |fact| fact.map(|_| Bytes::default()));
    };
    let mebibytes = text.trim().parse::<u32>();
    mebibytes.map_or(SiteFact::Unknown, |count| SiteFact::Known(Bytes::from_mib(count.into())))
}

/// Its file; what the checkpoints of its managers say is in force, and comes first.
fn kubelet(tree: &Tree) -> SiteFact<KubeletConfig> {
    let state = |name: &str| {
        let text = text(tree, &format!("{KUBELET}/{name}_manager_state"));
        text.map(|text| kubelet_config::policy_of_state(&text))
    };
    let (cpu, memory) = (state("cpu"), state("memory"));
    let config = text(tree, &format!("{KUBELET}/config.yaml")).map(|text| kubelet_config::parse(&text));
    let denied = SiteFact::Denied == config || cpu == SiteFact::Denied;
    let of = |state: &SiteFact<Option<String>>| state.known().cloned().flatten();
    match (config, of(&cpu), of(&memory)) {
        (SiteFact::Known(config), cpu, memory) => SiteFact::Known(KubeletConfig {
            cpu_manager: cpu.or(config.cpu_manager),
            memory_manager: memory.or(config.memory_manager),
            ..config
        }),
        (_, Some(cpu), memory) => SiteFact::Known(KubeletConfig {
            cpu_manager: Some(cpu),
            memory_manager: memory,
            ..KubeletConfig::default()
        }),
        _ if denied => SiteFact::Denied,
        (other, ..) => other,
    }
}

fn movable_only(tree: &Tree) -> SiteFact<NodeSet> {
    let Ok(Some(parsed)) = system::zones(tree) else { return SiteFact::Unknown };
    let zones = parsed.value.zones;
    let managed = |node: NodeId, is_movable: bool| {
        let zones = zones.iter().filter(|zone| zone.node == node && (zone.name == "Movable") == is_movable);
        zones.filter_map(|zone| zone.managed).fold(0u64, u64::saturating_add)
    };
    let nodes: NodeSet = zones.iter().map(|zone| zone.node).collect();
    SiteFact::Known(
        nodes.iter().filter(|node| managed(*node, false) == 0 && managed(*node, true) > 0).collect(),
    )
}

fn offline(tree: &Tree) -> SiteFact<BTreeMap<NodeId, OfflineMemory>> {
    let Ok(Some(size)) = tree.read_text("/sys/devices/system/memory/block_size_bytes") else {
        return SiteFact::Unknown;
    };
    let Ok(size) = u64::from_str_radix(size.trim(), 16) else { return SiteFact::Unknown };
    let (mut offline, mut known) = (BTreeMap::new(), false);
    for node in &facts::nodes(tree).unwrap_or_default() {
        let names = tree.list(&paths::node(node)).ok().flatten().unwrap_or_default();
        let mut blocks = Vec::new();
        for block in names.iter().filter_map(|name| number_behind(name, "memory")).take(MOST_BLOCKS) {
            let state = tree.read_text(&format!("/sys/devices/system/memory/memory{block}/state"));
            // A capture has the size of blocks, and not their states.
            let Ok(Some(state)) = state else { return SiteFact::Unknown };
            known = true;
            if state.trim() == "offline" {
                blocks.push(u64::from(block));
            }
        }
        if !blocks.is_empty() {
            blocks.sort_unstable();
            let size = Bytes::new(size.saturating_mul(blocks.len() as u64));
            offline.insert(node, OfflineMemory { size, blocks });
        }
    }
    if known { SiteFact::Known(offline) } else { SiteFact::Unknown }
}

fn board(tree: &Tree, is_live: bool) -> SiteFact<BoardHints> {
    let model = boot::board(tree).ok().flatten().filter(|model| model.contains("Raspberry Pi"));
    // A saved machine may lack the file.
    let Some(model) = model else { return if is_live { SiteFact::Absent } else { SiteFact::Unknown } };
    let log = boot::log(tree).ok().flatten().filter(|log| log.whole || log.card_queue);
    let sleep = boot::sleep(tree).ok().flatten();
    SiteFact::Known(BoardHints { model, sleep, card_queue: log.map(|log| log.card_queue) })
}

#[cfg(test)]
mod tests;
