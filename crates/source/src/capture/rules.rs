//! The contents of a capture. The table is the whole policy: a file that no rule names is not saved.
//!
//! In a pattern `*` stands for any name and `#` for a number; links on the way are not followed, so
//! that each file is saved once.

use super::filter::Filter;

/// One line of the policy.
pub struct Rule {
    pub pattern: &'static str,
    pub kind: CaptureKind,
    /// Why it is wanted, or why it may be let in.
    pub why: &'static str,
}

/// How something is saved.
#[derive(Clone, Copy)]
pub enum CaptureKind {
    File,
    Reduced(Filter),
    /// A file that says whose machine it is.
    Private,
    /// A folder, whose being there says something.
    Folder,
    /// A link, without what it leads to.
    Link,
    /// A link to a device, with the folder it leads to, these attributes in it, the node of every
    /// bridge above it, and what it is stacked upon.
    Device(&'static [&'static str]),
}

const fn file(pattern: &'static str, why: &'static str) -> Rule {
    Rule { pattern, kind: CaptureKind::File, why }
}

const fn reduced(pattern: &'static str, filter: Filter, why: &'static str) -> Rule {
    Rule { pattern, kind: CaptureKind::Reduced(filter), why }
}

const fn private(pattern: &'static str, why: &'static str) -> Rule {
    Rule { pattern, kind: CaptureKind::Private, why }
}

const fn link(pattern: &'static str, why: &'static str) -> Rule {
    Rule { pattern, kind: CaptureKind::Link, why }
}

const fn folder(pattern: &'static str, why: &'static str) -> Rule {
    Rule { pattern, kind: CaptureKind::Folder, why }
}

const fn device(pattern: &'static str, attributes: &'static [&'static str], why: &'static str) -> Rule {
    Rule { pattern, kind: CaptureKind::Device(attributes), why }
}

const FUNCTION: &[&str] = &[
    "class",
    "vendor",
    "device",
    "revision",
    "numa_node",
    "local_cpulist",
    "local_cpus",
    "current_link_speed",
    "current_link_width",
    "max_link_speed",
    "max_link_width",
];
const DAX: &[&str] = &["target_node", "numa_node", "size", "align", "devtype"];

/// The policy.
pub const RULES: &[Rule] = &[
    file("/sys/devices/system/node/possible", "nodes that could appear"),
    file("/sys/devices/system/node/online", "nodes that are there"),
    file("/sys/devices/system/node/has_*", "which nodes have CPUs, memory, other initiators"),
    folder("/sys/devices/system/node/node#", "that there is a node"),
    file("/sys/devices/system/node/node#/cpumap", "CPUs of a node"),
    file("/sys/devices/system/node/node#/cpulist", "CPUs of a node, to compare"),
    file("/sys/devices/system/node/node#/distance", "the SLIT as the kernel took it"),
    file("/sys/devices/system/node/node#/meminfo", "memory of a node"),
    file("/sys/devices/system/node/node#/numastat", "allocation counters"),
    file("/sys/devices/system/node/node#/vmstat", "counters of a node"),
    file("/sys/devices/system/node/node#/hugepages/hugepages-#kB/*_hugepages", "huge page pools of a node"),
    file("/sys/devices/system/node/node#/access#/initiators/*", "latency and bandwidth from the HMAT"),
    link("/sys/devices/system/node/node#/access#/initiators/node#", "the initiators those hold for"),
    link("/sys/devices/system/node/node#/access#/targets/node#", "the same seen from the initiator"),
    file("/sys/devices/system/node/node#/memory_side_cache/index#/*", "caches in front of memory"),
    link("/sys/devices/system/node/node#/cpu#", "CPUs of a node, as other tools look for them"),
    link("/sys/bus/node/devices/node#", "as other tools look for nodes"),
    file("/sys/devices/system/memory/block_size_bytes", "size of a block that can go offline"),
    file("/sys/devices/virtual/memory_tiering/memory_tier#/nodelist", "memory tiers"),
    file("/sys/kernel/mm/mempolicy/weighted_interleave/*", "weights of weighted interleave"),
    file("/sys/kernel/mm/numa/demotion_enabled", "whether reclaim moves pages to slower nodes"),
    file("/sys/kernel/mm/transparent_hugepage/*", "transparent huge pages"),
    file("/sys/kernel/mm/transparent_hugepage/khugepaged/*", "their background collector"),
    file("/sys/kernel/mm/transparent_hugepage/hugepages-#kB/*", "their sizes since Linux 6.8"),
    file("/sys/kernel/mm/hugepages/hugepages-#kB/*_hugepages*", "huge page pools of the whole machine"),
    file("/sys/kernel/mm/lru_gen/enabled", "which reclaim: it decides what zone_reclaim_mode does"),
    file("/sys/kernel/mm/ksm/run", "page merging moves pages"),
    file("/sys/kernel/debug/sched/numa_balancing/*", "pace of automatic balancing; open to root"),
    file("/sys/devices/system/cpu/possible", "CPUs that could appear"),
    file("/sys/devices/system/cpu/present", "CPUs that exist"),
    file("/sys/devices/system/cpu/online", "CPUs that are online"),
    file("/sys/devices/system/cpu/offline", "CPUs that are not"),
    file("/sys/devices/system/cpu/kernel_max", "the highest number the kernel was built for"),
    file("/sys/devices/system/cpu/isolated", "CPUs without scheduling"),
    file("/sys/devices/system/cpu/nohz_full", "CPUs without a tick"),
    file("/sys/devices/system/cpu/smt/*", "whether threads are switched off"),
    folder("/sys/devices/system/cpu/cpu#", "that there is a CPU"),
    file("/sys/devices/system/cpu/cpu#/online", "the switch of a CPU"),
    file("/sys/devices/system/cpu/cpu#/cpu_capacity", "relative speed of a CPU"),
    file("/sys/devices/system/cpu/cpu#/topology/*", "core, cluster, die, package"),
    file("/sys/devices/system/cpu/cpu#/cache/index#/*", "caches"),
    file("/sys/devices/system/cpu/cpu#/acpi_cppc/*", "relative speed of a CPU on x86"),
    link("/sys/devices/system/cpu/cpu#/node#", "node of a CPU"),
    link("/sys/devices/system/cpu/cpu#/cpufreq", "which clock policy a CPU follows"),
    file("/sys/devices/system/cpu/cpu#/cpufreq/*", "clock of a CPU before Linux 4.3"),
    file("/sys/devices/system/cpu/cpufreq/policy#/*", "clock policies"),
    file("/sys/devices/system/cpu/intel_pstate/*", "turbo"),
    file("/sys/devices/system/cpu/cpufreq/boost", "turbo"),
    link("/sys/bus/cpu/devices/cpu#", "as other tools look for CPUs"),
    file("/sys/devices/cpu_core/cpus", "performance cores of hybrid CPUs"),
    file("/sys/devices/cpu_atom/cpus", "efficiency cores of hybrid CPUs"),
    file("/sys/devices/cpu_lowpower/cpus", "low-power cores of hybrid CPUs"),
    device(
        "/sys/bus/pci/devices/*",
        FUNCTION,
        "PCI functions and their node; not `config`, which can hold a serial number",
    ),
    device("/sys/bus/dax/devices/*", DAX, "persistent and CXL memory used as devices"),
    device("/sys/class/net/*", &[], "names of network interfaces; not `address`, the MAC address"),
    device("/sys/class/block/*", &[], "names of disks; not `wwid` and `serial`"),
    device("/sys/class/nvme/*", &[], "names of NVMe controllers; not `serial` and `subsysnqn`"),
    device("/sys/class/infiniband/*", &[], "names of RDMA devices; not `node_guid`"),
    device("/sys/class/drm/card#", &[], "names of graphics cards"),
    device("/sys/class/accel/accel#", &[], "names of accelerators"),
    device("/sys/class/mic/mic#", &[], "names of Xeon Phi coprocessors"),
    file("/proc/driver/nvidia/gpus/*/numa_status", "nodes of the memory of GPUs on POWER"),
    file("/sys/firmware/acpi/tables/APIC", "the order in which the kernel numbers CPUs"),
    file("/sys/firmware/acpi/tables/SRAT", "nodes as the firmware gives them; open to root"),
    file("/sys/firmware/acpi/tables/SLIT", "distances as the firmware gives them"),
    file("/sys/firmware/acpi/tables/HMAT", "latency and bandwidth as the firmware gives them"),
    file("/sys/firmware/acpi/tables/CEDT", "windows of CXL memory"),
    file("/sys/firmware/acpi/tables/MSCT", "how far the machine can grow"),
    file("/sys/firmware/acpi/tables/PPTT", "cores and caches as the firmware gives them"),
    file("/sys/firmware/memmap/#/*", "where RAM is, which the tables do not say"),
    file("/sys/firmware/devicetree/base/distance-map/*", "distances without ACPI"),
    file("/sys/firmware/devicetree/base/cpus/*/numa-node-id", "nodes of CPUs without ACPI"),
    file("/sys/firmware/devicetree/base/*/numa-node-id", "nodes of memory without ACPI"),
    link("/sys/class/dmi/id", "as other tools look for the model"),
    file("/sys/devices/virtual/dmi/id/sys_vendor", "maker of the machine, not which one it is"),
    file("/sys/devices/virtual/dmi/id/product_name", "model of the machine"),
    file("/sys/devices/virtual/dmi/id/product_version", "model of the machine"),
    file("/sys/devices/virtual/dmi/id/product_family", "model of the machine"),
    file("/sys/devices/virtual/dmi/id/board_vendor", "maker of the board"),
    file("/sys/devices/virtual/dmi/id/board_name", "model of the board"),
    file("/sys/devices/virtual/dmi/id/board_version", "model of the board"),
    file("/sys/devices/virtual/dmi/id/bios_*", "firmware, which decides about nodes"),
    file("/sys/devices/virtual/dmi/id/chassis_type", "whether it is a server"),
    file("/sys/class/dmi/id/sys_vendor", "maker of the machine, in captures of hwloc, which follow the link"),
    file("/sys/class/dmi/id/product_name", "model of the machine, in captures of hwloc"),
    file("/sys/class/dmi/id/bios_*", "firmware, in captures of hwloc"),
    private("/sys/devices/virtual/dmi/id/*_serial", "serial numbers"),
    private("/sys/devices/virtual/dmi/id/*_asset_tag", "what the owner calls it"),
    private("/sys/devices/virtual/dmi/id/product_uuid", "the machine's UUID"),
    file("/sys/firmware/dmi/tables/smbios_entry_point", "the version of the table of memory slots"),
    reduced(
        "/sys/firmware/dmi/tables/DMI",
        Filter::Dmi,
        "memory slots and modules; not serial numbers, asset tags and other structures; open to root",
    ),
    reduced("/sys/firmware/dmi/entries/4-#/raw", Filter::Dmi, "sockets, in captures of hwloc"),
    reduced(
        "/sys/firmware/dmi/entries/16-#/raw",
        Filter::Dmi,
        "arrays of memory slots, in captures of hwloc",
    ),
    reduced("/sys/firmware/dmi/entries/17-#/raw", Filter::Dmi, "memory slots, in captures of hwloc"),
    reduced("/sys/firmware/dmi/entries/19-#/raw", Filter::Dmi, "addresses of arrays, in captures of hwloc"),
    reduced("/sys/firmware/dmi/entries/20-#/raw", Filter::Dmi, "addresses of modules, in captures of hwloc"),
    private("/sys/firmware/dmi/entries/#-#/raw", "all other structures, with serial numbers"),
    file("/proc/zoneinfo", "zones, watermarks and reserves: what the allocator model needs"),
    file("/proc/vmstat", "counters of the whole machine"),
    file("/proc/buddyinfo", "free blocks by size"),
    file("/proc/pagetypeinfo", "free blocks by mobility; open to root"),
    file("/proc/meminfo", "memory of the whole machine"),
    file("/proc/loadavg", "how busy the machine was"),
    file("/proc/pressure/*", "what it waited for"),
    reduced("/proc/stat", Filter::CpuTimes, "what the CPUs did; not interrupts and the time of boot"),
    reduced("/proc/cpuinfo", Filter::CpuInfo, "models of the CPUs; not serial numbers"),
    reduced("/proc/version", Filter::Version, "the release; not who built it where"),
    reduced("/proc/cmdline", Filter::CommandLine, "parameters that decide about memory and CPUs"),
    reduced("/proc/mounts", Filter::Mounts, "where control groups are; not disks and shares"),
    reduced("/proc/self/status", Filter::Status, "what the process that looked may use"),
    reduced("/proc/hwloc-nofile-info", Filter::NoFileInfo, "what only uname(2) says; not the host's name"),
    private("/proc/self/cgroup", "control groups, which are named after users and jobs"),
    private("/proc/self/cpuset", "the cpuset, which is named after users and jobs"),
    file("/proc/sys/kernel/arch", "the architecture"),
    file("/proc/sys/kernel/osrelease", "the release"),
    file("/proc/sys/kernel/version", "the build of the kernel"),
    file("/proc/sys/kernel/numa_balancing", "automatic balancing"),
    file("/proc/sys/kernel/numa_balancing_*", "its pace before Linux 5.13"),
    file("/proc/sys/kernel/sched_*", "scheduler settings"),
    file("/proc/sys/kernel/perf_event_paranoid", "what counters a user may read"),
    file("/proc/sys/vm/*_ratio", "reserves and when reclaim starts"),
    file("/proc/sys/vm/*_kbytes", "watermarks"),
    file("/proc/sys/vm/watermark_*", "watermarks"),
    file("/proc/sys/vm/*hugepages*", "huge page pools"),
    file("/proc/sys/vm/numa_*", "whether counters of nodes count"),
    file("/proc/sys/vm/overcommit_memory", "how much may be promised"),
    file("/proc/sys/vm/zone_reclaim_mode", "whether nodes reclaim before others are used"),
    file("/proc/sys/vm/swappiness", "what reclaim takes first"),
    file("/proc/sys/vm/compaction_proactiveness", "huge pages in the background"),
    file("/proc/sys/vm/defrag_mode", "whether blocks are kept whole, Linux 6.15"),
    file("/proc/sys/vm/max_map_count", "mappings that a process may have"),
    file("/proc/sys/vm/percpu_pagelist_*", "pages that CPUs keep for themselves"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_says_what_and_why() {
        for rule in RULES {
            assert!(
                rule.pattern.starts_with("/sys/") || rule.pattern.starts_with("/proc/"),
                "{}",
                rule.pattern
            );
            assert!(!rule.pattern.contains("..") && !rule.why.is_empty(), "{}", rule.pattern);
        }
    }

    #[test]
    fn no_pattern_stands_twice() {
        let mut patterns: Vec<&str> = RULES.iter().map(|rule| rule.pattern).collect();
        patterns.sort_unstable();
        let count = patterns.len();
        patterns.dedup();
        assert_eq!(patterns.len(), count);
    }

    #[test]
    fn licences_and_serial_numbers_in_acpi_tables_stay_behind() {
        let tables: Vec<&str> =
            RULES.iter().filter_map(|rule| rule.pattern.strip_prefix("/sys/firmware/acpi/tables/")).collect();
        assert_eq!(tables, ["APIC", "SRAT", "SLIT", "HMAT", "CEDT", "MSCT", "PPTT"]);
    }
}
