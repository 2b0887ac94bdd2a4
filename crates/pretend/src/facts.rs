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
];

/// Facts of this kernel and this machine.
pub const REAL: &[Fact] = &[
    fact(
        "memory policies",
        "set_mempolicy, get_mempolicy, mbind, move_pages and migrate_pages know the real nodes only",
    ),
    fact("affinity", "sched_getaffinity and sched_setaffinity know the real CPUs only, and so does nproc"),
    fact("the CPU that runs a thread", "getcpu, also in the vDSO, and cpu_id of rseq give real CPUs"),
    fact("instructions", "CPUID and the flags in /proc/cpuinfo are those of the real CPUs"),
    fact(
        "processes",
        "numa_maps, status and stat in /proc have real nodes and CPUs, /proc/stat real CPU times",
    ),
    fact(
        "zones, memory blocks, control groups",
        "/proc/zoneinfo is empty unless a capture has it, /sys/devices/system/memory is missing, /sys/fs/cgroup is empty",
    ),
    fact("devices, huge pages, settings", "all other files of /sys and /proc are those of the real kernel"),
    fact(
        "memory and time",
        "size, latency, bandwidth and speed are real: nodewise lab has as many nodes as the machine",
    ),
];
