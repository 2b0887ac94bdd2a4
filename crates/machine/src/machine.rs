//! A machine: everything nodewise knows about where its memory is.

use std::collections::BTreeMap;
use std::fmt;
use std::time::SystemTime;

use crate::cache::Cache;
use crate::cpu::{Cpu, CpuModel};
use crate::device::Device;
use crate::id::{CpuId, NodeId};
use crate::matrix::NodeMatrix;
use crate::memory_map::MemoryMap;
use crate::memory_slot::MemorySlots;
use crate::node::{Access, Node, Tier};
use crate::oddity::Oddity;
use crate::product::Product;
use crate::set::{CpuSet, NodeSet};
use crate::settings::{KernelRelease, Settings};
use crate::units::Bytes;

/// Where a machine's data came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    Live,
    /// A capture: a directory or archive of raw files. Holds its path as the user gave it.
    Capture(String),
    /// Firmware tables. Holds their path.
    Firmware(String),
    /// A synthetic spec. Holds its text.
    Spec(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Live => f.write_str("live"),
            Self::Capture(path) => write!(f, "capture {path}"),
            Self::Firmware(path) => write!(f, "firmware tables {path}"),
            Self::Spec(text) => write!(f, "spec {text}"),
        }
    }
}

/// A machine. Plain data: made by a source or by hand, compared with `==`, written to JSON and
/// read back equal.
///
/// `None` and empty collections mean that the source does not say; nothing is ever made up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Where the data came from.
    pub origin: Origin,
    /// When the data were read on the machine, in whole seconds, where the source says so.
    pub read_at: Option<SystemTime>,
    /// The architecture as `uname -m` names it.
    pub architecture: Option<String>,
    pub kernel: Option<KernelRelease>,
    /// Its model, and its firmware.
    pub product: Product,
    /// The size of an ordinary page.
    pub page_size: Option<Bytes>,
    /// Memory of the whole machine: `MemTotal` of `/proc/meminfo`, which also exists where no node does.
    pub system_memory: Option<Bytes>,
    /// Space for swapping that is free: `SwapFree` of `/proc/meminfo`; 0 where there is no swap.
    pub swap_free: Option<Bytes>,
    /// Where memory lies, as tables of the firmware say.
    pub memory_map: MemoryMap,
    /// Slots for memory modules, as the firmware lists them.
    pub memory_slots: MemorySlots,
    /// Nodes that could appear: `/sys/devices/system/node/possible`.
    pub possible_nodes: NodeSet,
    /// The nodes that are there, by id.
    pub nodes: BTreeMap<NodeId, Node>,
    /// CPUs that could appear: `/sys/devices/system/cpu/possible`.
    pub possible_cpus: CpuSet,
    /// The CPUs that are there, online or not, by id.
    pub cpus: BTreeMap<CpuId, Cpu>,
    /// Models of processor, by first CPU.
    pub cpu_models: Vec<CpuModel>,
    /// Caches, by level, then kind, then first CPU.
    pub caches: Vec<Cache>,
    /// The SLIT as the kernel shows it: `distances.get(from, to)`.
    pub distances: NodeMatrix<u32>,
    /// The firmware's facts about latency and bandwidth, by target and class.
    pub accesses: Vec<Access>,
    /// Memory tiers, fastest first.
    pub tiers: Vec<Tier>,
    /// Devices, those on PCI first and in order of address.
    pub devices: Vec<Device>,
    pub settings: Settings,
    /// CPUs that the process which looked may use; `None` when that is not known.
    pub allowed_cpus: Option<CpuSet>,
    /// Memory nodes that the process which looked may use; `None` when that is not known.
    pub allowed_nodes: Option<NodeSet>,
    /// Wrong or unusual facts: findings of the source first, then those of [`Machine::check`].
    pub oddities: Vec<Oddity>,
}

impl Machine {
    /// A machine with nothing known yet.
    pub fn new(origin: Origin) -> Self {
        Self {
            origin,
            read_at: None,
            architecture: None,
            kernel: None,
            product: Product::default(),
            page_size: None,
            system_memory: None,
            swap_free: None,
            memory_map: MemoryMap::default(),
            memory_slots: MemorySlots::default(),
            possible_nodes: NodeSet::new(),
            nodes: BTreeMap::new(),
            possible_cpus: CpuSet::new(),
            cpus: BTreeMap::new(),
            cpu_models: Vec::new(),
            caches: Vec::new(),
            distances: NodeMatrix::default(),
            accesses: Vec::new(),
            tiers: Vec::new(),
            devices: Vec::new(),
            settings: Settings::default(),
            allowed_cpus: None,
            allowed_nodes: None,
            oddities: Vec::new(),
        }
    }
}
