//! How large a machine may be.
//!
//! Files are hostile: a list of 20 bytes can name a quarter of a million CPUs, and a set of them
//! costs 32 KiB. These bounds keep what a small file can cost in proportion, and no kernel reaches
//! them.

use nodewise_machine::CpuId;
use nodewise_machine::set::CpuSet;

/// Most nodes: the kernel's own limit (`NODES_SHIFT` of 10).
pub const MOST_NODES: usize = nodewise_machine::spec::MOST_NODES as usize;
/// CPU numbers are below this: twice the largest `NR_CPUS` that any distribution builds.
pub const MOST_CPUS: u32 = 1 << 14;

/// Takes out of a set what is beyond [`MOST_CPUS`]; says whether there was anything.
pub(crate) fn bound_cpus(cpus: &mut CpuSet) -> bool {
    let beyond = cpus.last().is_some_and(|last| last.number() >= MOST_CPUS);
    if beyond {
        *cpus = cpus.intersection(&CpuSet::range(CpuId::new(0), CpuId::new(MOST_CPUS - 1)));
    }
    beyond
}
