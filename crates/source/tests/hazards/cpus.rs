//! CPUs and caches.

use nodewise_machine::{CpuId, OddityKind as Kind};
use nodewise_source::tree::Memory;

use super::machines::{NODE, plain};
use super::{DIFFERS, check, load};

#[test]
fn an_offline_cpu_is_known_from_the_list_or_from_its_own_switch() {
    let switch = "/sys/devices/system/cpu/cpu3/online";
    let offline =
        [(Kind::CpuNotOnline, "CPU 3 is in a node but not online"), (Kind::CpuOffline, "CPU 3 is offline")];
    check(|files| files.file("/sys/devices/system/cpu/online", "0-2\n").file(switch, "0\n"), &offline);
    check(|files| files.without("/sys/devices/system/cpu/online").file(switch, "0\n"), &offline);
    check(
        |files| files.file(switch, "0\n"),
        &[(DIFFERS, "/sys/devices/system/cpu/online: it names CPU 3, switched off in the CPU's own folder")],
    );
}

#[test]
fn a_cpu_can_be_in_no_node_or_in_several() {
    check(
        |files| {
            files.file(&format!("{NODE}/node1/cpumap"), "6\n").file(&format!("{NODE}/node1/cpulist"), "1-2\n")
        },
        &[
            (Kind::CpuInSeveralNodes, "CPU 1 is listed by nodes 0-1"),
            (Kind::CpuInNoNode, "CPU 3 is in no node"),
        ],
    );
}

#[test]
fn ids_that_mean_unknown_are_none() {
    let topology = |file: &str| format!("/sys/devices/system/cpu/cpu0/topology/{file}");
    let machine = check(
        |files| {
            files
                .file(&topology("physical_package_id"), "-1\n")
                .file(&topology("die_id"), "-1\n")
                .file(&topology("cluster_id"), "65535\n")
                .file(&topology("core_id"), "-1\n")
        },
        &[],
    );
    let cpu = &machine.cpus[&CpuId::new(0)];
    assert_eq!((cpu.package, cpu.die, cpu.cluster, cpu.core), (None, None, None, None));
    assert_eq!(machine.cpus[&CpuId::new(1)].die.map(|die| die.number()), Some(0));
}

#[test]
fn siblings_come_from_old_names_and_new_ones_masks_and_lists() {
    let siblings = |file: &str, text: &str| {
        let root = "/sys/devices/system/cpu/cpu0/topology";
        let files =
            plain().without(&format!("{root}/thread_siblings_list")).file(&format!("{root}/{file}"), text);
        load(files).cpus[&CpuId::new(0)].siblings.to_string()
    };
    assert_eq!(siblings("thread_siblings", "3\n"), "0-1");
    assert_eq!(siblings("core_cpus_list", "0-1\n"), "0-1");
    assert_eq!(siblings("core_cpus", "00000003\n"), "0-1");
    assert_eq!(siblings("core_cpus", "0000000c\n"), "0", "a CPU is at least its own sibling");
    assert_eq!(siblings("other", ""), "", "not known");
}

#[test]
fn caches_with_parts_missing_are_kept_with_what_is_known() {
    let cache = |file: &str| format!("/sys/devices/system/cpu/cpu0/cache/index0/{file}");
    let first = |files: Memory| {
        let machine = load(files);
        let cache = machine.caches.iter().find(|cache| cache.level == 1).unwrap().clone();
        (cache.size.map(|size| size.get()), cache.ways, cache.cpus.to_string())
    };
    assert_eq!(first(plain()), (Some(32 << 10), Some(8), "0".to_owned()));
    assert_eq!(first(plain().file(&cache("size"), "0K\n")).0, None);
    assert_eq!(first(plain().without(&cache("size"))).0, None);
    assert_eq!(first(plain().file(&cache("ways_of_associativity"), "0\n")).1, Some(0), "fully associative");
    assert_eq!(first(plain().without(&cache("shared_cpu_list"))).2, "0");
    check(
        |files| files.file(&cache("type"), "Magic\n"),
        &[(
            Kind::Unparseable,
            "/sys/devices/system/cpu/cpu0/cache/index0/type:1: expected Data, Instruction or Unified, found \"Magic\"",
        )],
    );
    check(
        |files| files.file(&cache("shared_cpu_list"), "\n"),
        &[(
            DIFFERS,
            "/sys/devices/system/cpu/cpu0/cache/index0/shared_cpu_map: it does not name the cache's own CPU: taken as not shared",
        )],
    );
}

#[test]
fn files_that_contradict_each_other_are_told() {
    check(
        |files| files.file("/sys/devices/system/cpu/cpu1/cache/index1/size", "512K\n"),
        &[(
            DIFFERS,
            "/sys/devices/system/cpu/cpu1/cache/index1: it is the L2 of CPUs 0-1, of which another CPU says otherwise",
        )],
    );
    check(
        |files| files.file("/sys/devices/system/cpu/cpu0/cache/index1/level", "99\n"),
        &[(
            Kind::Unparseable,
            "/sys/devices/system/cpu/cpu0/cache/index1/level:1: expected a level from 1 to 7, found \"99\"",
        )],
    );
    let siblings = |files: Memory, cpu: u32| {
        files.file(&format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"), "0-1\n")
    };
    check(
        |files| siblings(siblings(files, 0), 1),
        &[(
            DIFFERS,
            "/sys/devices/system/cpu/cpu1/topology: CPUs 0 and 1 are threads of one core, but their core or package differs",
        )],
    );
    check(
        |files| files.file(&format!("{NODE}/node0/hugepages/hugepages-2048kB/free_hugepages"), "9\n"),
        &[(
            DIFFERS,
            "/sys/devices/system/node/node0/hugepages: of its pools that of 2 MiB has more free or surplus pages than pages",
        )],
    );
    check(
        |files| files.file("/proc/mounts", "none /cg cgroup2 rw 0 0\n").file("/proc/self/cpuset", "?\n"),
        &[(Kind::Unparseable, "/proc/self/cpuset:1: expected a path, found \"?\"")],
    );
}
