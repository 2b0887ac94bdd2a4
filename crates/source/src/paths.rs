//! Paths of files that other crates read through a [`Tree`](crate::tree::Tree) and name in messages.

use std::fmt::Display;

use nodewise_machine::{Bytes, NodeId};

/// The folder of a process.
pub fn process(process: impl Display) -> String {
    format!("{PROCESSES}/{process}")
}

/// Which pages of a process are present, and the file for requests about them.
pub fn pagemap(process: impl Display) -> String {
    format!("{PROCESSES}/{process}/pagemap")
}

/// The folder of the nodes.
pub const NODES: &str = "/sys/devices/system/node";
/// The folder of the processes.
pub const PROCESSES: &str = "/proc";
/// Where the pages of the calling process are.
pub const OWN_NUMA_MAPS: &str = "/proc/self/numa_maps";
/// The memory of the whole machine.
pub const MEMINFO: &str = "/proc/meminfo";

/// Mounts of this process.
pub const OWN_MOUNTS: &str = "/proc/self/mountinfo";

/// Users of the own namespace; its groups; whether `setgroups(2)` is allowed in it.
pub const OWN_UID_MAP: &str = "/proc/self/uid_map";
pub const OWN_GID_MAP: &str = "/proc/self/gid_map";
pub const OWN_SETGROUPS: &str = "/proc/self/setgroups";

/// The boot that the system is in, a number drawn at its start.
pub const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Whether the kernel sets the weights of weighted interleaving itself: `1`. Linux 6.16; in 6.18 under the
/// second name.
pub const INTERLEAVE_WEIGHTS_AUTO: [&str; 2] = [
    "/sys/kernel/mm/mempolicy/weighted_interleave/auto",
    "/sys/kernel/mm/mempolicy/weighted_interleave/__auto_type",
];

/// The weight of a node in weighted interleaving. Linux 6.9.
pub fn interleave_weight(node: NodeId) -> String {
    format!("/sys/kernel/mm/mempolicy/weighted_interleave/node{node}")
}

/// The folder of a node.
pub fn node(node: NodeId) -> String {
    format!("{NODES}/node{node}")
}

/// A file or folder of a node: `numastat`, `meminfo`, `hugepages`.
pub fn of_node(node: NodeId, name: &str) -> String {
    format!("{NODES}/node{node}/{name}")
}

/// Where the pages of a process are. The process is what a user typed, or its number.
pub fn numa_maps(process: impl Display) -> String {
    format!("{PROCESSES}/{process}/numa_maps")
}

/// A file of a node's pool of huge pages: `nr_hugepages`.
pub fn huge_pool(node: NodeId, size: Bytes, name: &str) -> String {
    of_node(node, &format!("hugepages/hugepages-{}kB/{name}", size.get() >> 10))
}

/// A file of the pools of huge pages of one size on all nodes: `resv_hugepages`.
pub fn huge_pool_of_all(size: Bytes, name: &str) -> String {
    format!("/sys/kernel/mm/hugepages/hugepages-{}kB/{name}", size.get() >> 10)
}

/// Where the mappings of a process begin and end, and how much of each is in huge pages.
pub fn smaps(process: impl Display) -> String {
    format!("{PROCESSES}/{process}/smaps")
}

/// Names of files for evidence: `N` is a node, `PID` a process.
pub mod shown {
    use nodewise_machine::CpuSet;

    pub const NODE_MEMINFO: &str = "/sys/devices/system/node/nodeN/meminfo";
    pub const NODE_NUMASTAT: &str = "/sys/devices/system/node/nodeN/numastat";
    pub const NODE_DISTANCE: &str = "/sys/devices/system/node/nodeN/distance";
    pub const ACPI_SLIT: &str = "/sys/firmware/acpi/tables/SLIT";
    pub const NODE_POOL: &str = "/sys/devices/system/node/nodeN/hugepages";
    pub const NODE_CPUS: &str = "/sys/devices/system/node/nodeN/cpulist";
    pub const ZONEINFO: &str = "/proc/zoneinfo";
    pub const VMSTAT: &str = "/proc/vmstat";
    pub const INTERRUPTS: &str = "/proc/interrupts";
    pub const AFFINITY: &str = "/proc/irq/N/smp_affinity_list";
    pub const BOOT_FILES: &str = "/etc/rc.local, /etc/udev/rules.d, /etc/systemd/system";
    pub const QUEUES: &str = "/sys/class/net/*/queues";
    pub const COMMAND_LINE: &str = "/proc/cmdline";
    pub const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";
    pub const MIN_FREE: &str = "/proc/sys/vm/min_free_kbytes";
    pub const BALANCING: &str = "/proc/sys/kernel/numa_balancing";
    pub const DEMOTION: &str = "/sys/kernel/mm/numa/demotion_enabled";
    pub const TIERS: &str = "/sys/devices/virtual/memory_tiering";
    pub const WEIGHTS: &str = "/sys/kernel/mm/mempolicy/weighted_interleave";
    pub const THP_ENABLED: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
    pub const THP_DEFRAG: &str = "/sys/kernel/mm/transparent_hugepage/defrag";
    pub const DEVICE_NODE: &str = "/sys/bus/pci/devices/*/numa_node";
    pub const PACKAGES: &str = "/sys/devices/system/cpu/cpuN/topology/physical_package_id";
    pub const CACHES: &str = "/sys/devices/system/cpu/cpuN/cache";
    pub const SCAN_SIZE: &str = "/sys/kernel/debug/sched/numa_balancing/scan_size_mb";
    pub const SLOTS: &str = "/sys/firmware/dmi/tables/DMI";
    pub const NUMA_MAPS: &str = "/proc/PID/numa_maps";
    pub const MOVE_PAGES: &str = "move_pages(2)";
    pub const STATUS: &str = "/proc/PID/status";
    pub const MAPS: &str = "/proc/PID/maps";
    pub const SMAPS_ROLLUP: &str = "/proc/PID/smaps_rollup";
    pub const PROCESS_COMMAND: &str = "/proc/PID/cmdline";
    pub const VARIABLES: &str = "/proc/PID/environ";
    pub const OPEN_FILES: &str = "/proc/PID/fd";
    pub const EXECUTABLE: &str = "/proc/PID/exe";
    pub const CPU_MAX: &str = "/sys/fs/cgroup/*/cpu.max";
    pub const BLOCKS: &str = "/sys/devices/system/memory/memoryN/state";
    pub const KUBELET: &str = "/var/lib/kubelet/config.yaml";
    pub const SLURM: &str = "slurm.conf";
    pub const TUNED: &str = "/etc/tuned/active_profile";
    pub const BOARD: &str = "/sys/firmware/devicetree/base/model";
    pub const BOOT_LOG: &str = "/dev/kmsg";
    pub const SLEEP: &str = "/sys/power/mem_sleep";
    pub const STAT: &str = "/proc/PID/stat";
    pub const TASK_SCHED: &str = "/proc/PID/task/TID/sched";

    /// The command that lets these CPUs serve an interrupt.
    pub fn affinity_command(line: u32, cpus: &CpuSet) -> String {
        format!("echo {cpus} > /proc/irq/{line}/smp_affinity_list")
    }

    /// The command that writes these CPUs to a file of a queue of a network device.
    pub fn queue_command(device: &str, queue: &str, file: &str, cpus: &CpuSet) -> String {
        format!("echo {} > /sys/class/net/{device}/queues/{queue}/{file}", cpus.to_mask())
    }
}
