//! Logical CPUs and how they are grouped.

use crate::id::{BookId, ClusterId, CoreId, CpuId, DieId, DrawerId, NodeId, PackageId};
use crate::set::CpuSet;

/// A logical CPU. `None`: the kernel does not say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// Its number: `cpuN`.
    pub id: CpuId,
    /// Whether the CPU is in `/sys/devices/system/cpu/online`.
    pub online: bool,
    /// The node it belongs to. Where several nodes claim it (an oddity), the lowest of them.
    pub node: Option<NodeId>,
    /// `topology/core_id`; unique only inside its package.
    pub core: Option<CoreId>,
    /// `topology/cluster_id`. Linux 5.16.
    pub cluster: Option<ClusterId>,
    /// `topology/die_id`. Linux 5.2.
    pub die: Option<DieId>,
    /// `topology/physical_package_id`. Where the kernel gives no usable number (-1 on ppc and riscv guests,
    /// numbers that repeat in each book on s390), packages are numbered from 0 in order of their first CPU.
    pub package: Option<PackageId>,
    /// `topology/book_id`, s390 only.
    pub book: Option<BookId>,
    /// `topology/drawer_id`, s390 only.
    pub drawer: Option<DrawerId>,
    /// CPUs of the same core, itself included: `topology/thread_siblings_list`. Empty when the
    /// kernel does not say (an offline CPU has no topology).
    pub siblings: CpuSet,
    /// Relative speed where cores differ, 1024 = the fastest: `cpu_capacity`.
    pub capacity: Option<u32>,
    /// The type of core on hybrid x86 processors: which of `/sys/devices/cpu_core/cpus`, `cpu_atom/cpus`
    /// and `cpu_lowpower/cpus` names it.
    pub core_type: Option<CoreType>,
    /// The highest frequency of the hardware, in kHz: `cpufreq/cpuinfo_max_freq`.
    pub max_frequency_khz: Option<u32>,
    /// The revision of its microcode: `microcode` in `/proc/cpuinfo`, x86 only. Linux 3.3.
    pub microcode: Option<u32>,
}

/// The types of core that Linux gives counters of their own on hybrid x86 processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CoreType {
    /// `/sys/devices/cpu_core`. Linux 5.13.
    Performance,
    /// `/sys/devices/cpu_atom`. Linux 5.13.
    Efficiency,
    /// `/sys/devices/cpu_lowpower`. Linux 6.13.
    LowPower,
}

impl CoreType {
    /// Every type, fastest first.
    pub const ALL: [Self; 3] = [Self::Performance, Self::Efficiency, Self::LowPower];

    /// The word for text and JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Performance => "performance",
            Self::Efficiency => "efficiency",
            Self::LowPower => "low-power",
        }
    }

    /// The type with this word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|core_type| core_type.word() == word)
    }
}

/// A model of processor, and the CPUs that are of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuModel {
    /// The model as the processor or its part number names it, fit for a terminal.
    pub name: String,
    /// The CPUs of this model.
    pub cpus: CpuSet,
}

impl Cpu {
    /// An online CPU, with nothing else known.
    pub const fn new(id: CpuId) -> Self {
        Self {
            id,
            online: true,
            node: None,
            core: None,
            cluster: None,
            die: None,
            package: None,
            book: None,
            drawer: None,
            siblings: CpuSet::new(),
            capacity: None,
            core_type: None,
            max_frequency_khz: None,
            microcode: None,
        }
    }
}
