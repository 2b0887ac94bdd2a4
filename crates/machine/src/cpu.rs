//! Logical CPUs and how they are grouped.

use crate::id::{ClusterId, CoreId, CpuId, DieId, NodeId, PackageId};
use crate::set::CpuSet;

/// A logical CPU. `None`: the kernel does not say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// Its number: `cpuN`.
    pub id: CpuId,
    /// Whether it is in `/sys/devices/system/cpu/online`.
    pub online: bool,
    /// The node it belongs to. Where several nodes claim it (an oddity), the lowest of them.
    pub node: Option<NodeId>,
    /// `topology/core_id`; unique only inside its package.
    pub core: Option<CoreId>,
    /// `topology/cluster_id`. Linux 5.16.
    pub cluster: Option<ClusterId>,
    /// `topology/die_id`. Linux 5.2.
    pub die: Option<DieId>,
    /// `topology/physical_package_id`.
    pub package: Option<PackageId>,
    /// CPUs of the same core, itself included: `topology/thread_siblings_list`. Empty when the
    /// kernel does not say (an offline CPU has no topology).
    pub siblings: CpuSet,
    /// Relative speed where cores differ, 1024 = the fastest: `cpu_capacity`.
    pub capacity: Option<u32>,
}

impl Cpu {
    /// An online CPU of which nothing else is known.
    pub const fn new(id: CpuId) -> Self {
        Self {
            id,
            online: true,
            node: None,
            core: None,
            cluster: None,
            die: None,
            package: None,
            siblings: CpuSet::new(),
            capacity: None,
        }
    }
}
