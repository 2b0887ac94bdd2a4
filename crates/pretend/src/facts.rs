//! Which facts a program sees of the machine, and which of this one.

/// A fact that a program can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fact {
    /// Where the program gets it.
    pub name: &'static str,
    /// Values or files that the program finds.
    pub shown: &'static str,
}

const fn fact(name: &'static str, shown: &'static str) -> Fact {
    Fact { name, shown }
}

/// Facts of the machine.
pub const FAKED: &[Fact] = &[
    fact("CPUs, caches, nodes, distances", "files below /sys/devices/system/cpu and node"),
    fact("memory tiers", "files below /sys/devices/virtual/memory_tiering"),
    fact("lists of devices", "/sys/bus/cpu/devices and /sys/bus/node/devices, where this kernel has them"),
    fact(
        "caches in hwloc",
        "HWLOC_COMPONENTS=-x86 keeps hwloc from asking the real CPUs, unless the variable is set",
    ),
    fact("models of CPUs, memory", "/proc/cpuinfo and /proc/meminfo"),
    fact(
        "memory policies",
        "set_mempolicy, get_mempolicy, mbind, set_mempolicy_home_node: answers and errors of the machine's kernel",
    ),
    fact(
        "nodes of pages",
        "move_pages, migrate_pages, get_mempolicy, by policy and CPU when the page was touched",
    ),
    fact("affinity", "sched_setaffinity, sched_getaffinity, so nproc too"),
    fact("processes", "numa_maps, allowed CPUs and nodes in status, the CPU in stat"),
];

/// Facts of this kernel and this machine.
pub const REAL: &[Fact] = &[
    fact(
        "the CPU that runs a thread",
        "getcpu in the vDSO and cpu_id of rseq give real CPUs; they agree where the affinity allows CPUs that are here, too",
    ),
    fact("instructions", "CPUID and the flags in /proc/cpuinfo are those of the real CPUs"),
    fact("CPU times", "/proc/stat has those of the real CPUs"),
    fact(
        "zones, memory blocks, control groups",
        "/proc/zoneinfo is empty unless a capture has it, /sys/devices/system/memory is missing, /sys/fs/cgroup is empty",
    ),
    fact("devices", "they are real, and near no node: numa_node is -1, local_cpus has all CPUs"),
    fact("huge pages, settings", "all other files of /sys and /proc are those of the real kernel"),
    fact(
        "memory and time",
        "size, latency, bandwidth and speed are real: nodewise lab has as many nodes as the machine",
    ),
];
