//! CPU caches.

use crate::set::CpuSet;
use crate::units::Bytes;

/// The contents of a cache: `cache/indexN/type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CacheKind {
    Data,
    Instruction,
    Unified,
}

impl CacheKind {
    /// The kernel's word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Data => "Data",
            Self::Instruction => "Instruction",
            Self::Unified => "Unified",
        }
    }
}

/// One cache and the CPUs that share it. `None`: the kernel does not say.
///
/// # Source
/// `/sys/devices/system/cpu/cpuN/cache/indexM/`. In a virtual machine these are what the
/// hypervisor claims, which can be far from what the guest gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    /// 1 is nearest to the core.
    pub level: u8,
    pub kind: CacheKind,
    pub size: Option<Bytes>,
    /// Bytes per line: `coherency_line_size`.
    pub line_size: Option<u32>,
    /// `ways_of_associativity`; 0 means fully associative.
    pub ways: Option<u32>,
    /// `number_of_sets`.
    pub sets: Option<u32>,
    /// The CPUs that share it. Empty when the kernel does not say: then it is for every cache of its
    /// level, kind and size whose sharing is unknown.
    pub cpus: CpuSet,
}

impl Cache {
    /// The short name people use: `L1d`, `L1i`, `L3`.
    pub fn name(&self) -> String {
        let letter = match self.kind {
            CacheKind::Data => "d",
            CacheKind::Instruction => "i",
            CacheKind::Unified => "",
        };
        format!("L{}{letter}", self.level)
    }
}
