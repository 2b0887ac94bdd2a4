//! CPUs and caches.

use nodewise_machine::{Bytes, CpuId, OddityKind as Kind};
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
                .file("/sys/devices/system/cpu/cpu1/topology/cluster_id", "65535\n")
                .file("/sys/devices/system/cpu/cpu2/topology/cluster_id", "65535\n")
                .file("/sys/devices/system/cpu/cpu3/topology/cluster_id", "65535\n")
                .file(&topology("core_id"), "-1\n")
        },
        &[],
    );
    let cpu = &machine.cpus[&CpuId::new(0)];
    assert_eq!((cpu.package, cpu.die, cpu.cluster, cpu.core), (None, None, None, None));
    assert_eq!(machine.cpus[&CpuId::new(1)].die.map(|die| die.number()), Some(0));
}

#[test]
fn packages_without_a_number_are_counted_from_their_siblings() {
    let topology = |cpu: u32, file: &str| format!("/sys/devices/system/cpu/cpu{cpu}/topology/{file}");
    let packages = |files: Memory| {
        let machine = load(files);
        assert!(machine.oddities.is_empty(), "{:?}", machine.oddities);
        machine.packages().into_iter().map(|(id, cpus)| format!("{id}: {cpus}")).collect::<Vec<_>>()
    };
    let unknown = |files: Memory| {
        (0..4).fold(files, |files, cpu| files.file(&topology(cpu, "physical_package_id"), "-1\n"))
    };
    let siblings = |files: Memory| {
        (0..4).fold(files, |files, cpu| {
            files.file(&topology(cpu, "core_siblings"), if cpu < 2 { "3\n" } else { "c\n" })
        })
    };
    assert_eq!(packages(unknown(plain())), [""; 0], "nothing to count from");
    assert_eq!(packages(siblings(unknown(plain()))), ["0: 0-1", "1: 2-3"]);
    // s390 numbers packages again in each book, and books in each drawer.
    let books = (0..4).fold(siblings(plain()), |files, cpu| {
        let (book, drawer) = (format!("{}\n", cpu / 2), "0\n");
        let files = files.file(&topology(cpu, "book_id"), book).file(&topology(cpu, "drawer_id"), drawer);
        files.file(&topology(cpu, "physical_package_id"), "7\n")
    });
    assert_eq!(packages(books.clone()), ["0: 0-1", "1: 2-3"]);
    let machine = load(books);
    assert_eq!(machine.cpus[&CpuId::new(3)].book.map(|book| book.number()), Some(1));
    assert_eq!(machine.cpus[&CpuId::new(3)].drawer.map(|drawer| drawer.number()), Some(0));
}

#[test]
fn kinds_of_cpus_come_from_their_counters_frequencies_and_models() {
    let frequency = |cpu: u32| format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/cpuinfo_max_freq");
    let kinds = |files: Memory| {
        let machine = load(files);
        assert!(machine.oddities.is_empty(), "{:?}", machine.oddities);
        let word = |kind: &nodewise_machine::CpuKind| format!("{} {}", kind.name, kind.cpus);
        machine.cpu_kinds().iter().map(word).collect::<Vec<_>>()
    };
    assert_eq!(kinds(plain()), ["CPUs 0-3"]);
    let counters =
        plain().file("/sys/devices/cpu_core/cpus", "0-1\n").file("/sys/devices/cpu_atom/cpus", "2-3\n");
    assert_eq!(kinds(counters), ["performance cores 0-1", "efficiency cores 2-3"]);
    let frequencies = (0..4).fold(plain(), |files, cpu| {
        files.file(&frequency(cpu), if cpu < 2 { "5000000\n" } else { "3900000\n" })
    });
    assert_eq!(kinds(frequencies), ["fast CPUs 0-1", "slow CPUs 2-3"]);
    let models = plain().file(
        "/proc/cpuinfo",
        "processor : 0\nmodel name : A\n\nprocessor : 1\nmodel name : B\n\nprocessor : 2\nmodel name : B\n\nprocessor : 3\nmodel name : B\n\nprocessor : 9\nmodel name : C\n",
    );
    assert_eq!(kinds(models), ["A 0", "B 1-3"]);
}

#[test]
fn the_memory_of_a_machine_without_nodes_is_that_of_meminfo() {
    let machine =
        load(plain().without(NODE).file("/proc/meminfo", "MemTotal:       16384 kB\nMemFree: 1 kB\n"));
    assert_eq!(
        (machine.memory_total(), machine.system_memory),
        (Some(Bytes::from_mib(16)), Some(Bytes::from_mib(16)))
    );
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
            "/sys/devices/system/cpu/cpu0/cache/index0/shared_cpu_map: it does not name CPU 0, whose cache it is: taken as its core's",
        )],
    );
}

#[test]
fn files_that_contradict_each_other_are_told() {
    check(
        |files| files.file("/sys/devices/system/cpu/cpu1/cache/index1/size", "512K\n"),
        &[(
            DIFFERS,
            "/sys/devices/system/cpu/cpu1/cache/index1: it is the L2 of CPUs 0-1, and another of these CPUs contradicts it",
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

/// Overlapping maps: CPUs 0 and 1 share an L2, and CPU 1 says that it shares one with CPU 2.
#[test]
fn caches_do_not_overlap() {
    let list = |cpu: u32| format!("/sys/devices/system/cpu/cpu{cpu}/cache/index1/shared_cpu_list");
    let l2 = |machine: &nodewise_machine::Machine| -> Vec<String> {
        let caches = machine.caches.iter().filter(|cache| cache.level == 2);
        caches.map(|cache| cache.cpus.to_string()).collect()
    };
    let machine = check(
        |files| files.file(&list(1), "1-2\n"),
        &[(
            DIFFERS,
            "/sys/devices/system/cpu/cpu1/cache/index1: it is an L2 of CPUs 1-2, but that of CPUs 2-3 overlaps with it: left out",
        )],
    );
    assert_eq!(l2(&machine), ["0-1", "2-3"]);
    let machine = check(
        |files| files.file(&list(1), "1\n"),
        &[(
            DIFFERS,
            "/sys/devices/system/cpu/cpu1/cache/index1: it is an L2 of CPU 1, but that of CPUs 0-1 overlaps with it: left out",
        )],
    );
    assert_eq!(l2(&machine), ["0-1", "2-3"]);
    check(
        |files| files.file("/sys/devices/system/cpu/cpu1/cache/index1/shared_cpu_map", "2\n"),
        &[
            (
                DIFFERS,
                "/sys/devices/system/cpu/cpu1/cache/index1/shared_cpu_list: it names CPUs 0-1, but shared_cpu_map names CPU 1: shared_cpu_map is believed",
            ),
            (
                DIFFERS,
                "/sys/devices/system/cpu/cpu1/cache/index1: it is an L2 of CPU 1, but that of CPUs 0-1 overlaps with it: left out",
            ),
        ],
    );
}

/// Who shares a cache without a map is what another CPU says, and otherwise not known.
#[test]
fn a_cache_without_a_map_is_not_private() {
    let list =
        |cpu: u32, index: u32| format!("/sys/devices/system/cpu/cpu{cpu}/cache/index{index}/shared_cpu_list");
    let sharing = |machine: &nodewise_machine::Machine, level: u8| -> Vec<String> {
        let caches = machine.caches.iter().filter(|cache| cache.level == level);
        caches.map(|cache| cache.cpus.to_string()).collect()
    };
    let missing = |path: String| {
        let map = path.replace("list", "map");
        format!("{map}: it is missing: which CPUs share the cache is known from other CPUs or not at all")
    };
    let machine = check(|files| files.without(&list(1, 1)), &[(DIFFERS, &missing(list(1, 1)))]);
    assert_eq!(sharing(&machine, 2), ["0-1", "2-3"]);
    let machine = check(|files| files.without(&list(0, 0)), &[(DIFFERS, &missing(list(0, 0)))]);
    assert_eq!(sharing(&machine, 1), ["", "1", "2", "3"], "its own map was all there was");
    let none = (0..4).fold(plain(), |files, cpu| files.without(&list(cpu, 0)));
    let machine = load(none);
    assert_eq!(sharing(&machine, 1), [""]);
    assert!(machine.oddities[0].text.ends_with("; so are those of 3 other caches"));
}

/// Firmware of Itanium leaves maps empty: the threads of a core share its caches.
#[test]
fn a_cache_whose_map_names_no_cpu_is_its_cores() {
    let file = |cpu: u32, path: &str| format!("/sys/devices/system/cpu/cpu{cpu}/{path}");
    let machine = load((0..4).fold(plain(), |files, cpu| {
        let threads = if cpu < 2 { "0-1\n" } else { "2-3\n" };
        files
            .file(&file(cpu, "topology/core_id"), "0\n")
            .file(&file(cpu, "topology/thread_siblings_list"), threads)
            .file(&file(cpu, "cache/index1/shared_cpu_list"), "\n")
    }));
    let caches = machine.caches.iter().filter(|cache| cache.level == 2);
    assert_eq!(caches.map(|cache| cache.cpus.to_string()).collect::<Vec<_>>(), ["0-1", "2-3"]);
    let text = "it does not name CPU 0, whose cache it is: taken as its core's; nor do 3 others";
    assert_eq!(machine.oddities.iter().map(|oddity| oddity.text.as_str()).collect::<Vec<_>>(), [text]);
}

#[test]
fn a_mask_that_lost_a_digit_is_not_read() {
    let path = "/sys/devices/system/cpu/cpu0/topology/core_siblings";
    let whole = |files: Memory| {
        (0..4).fold(files, |files, cpu| {
            let mask = if cpu < 2 { "00000000,00000003\n" } else { "00000000,0000000c\n" };
            files.file(&path.replace("cpu0", &format!("cpu{cpu}")), mask)
        })
    };
    check(whole, &[]);
    let cut = format!(
        "{path}:1: expected groups of 8 hexadecimal digits behind the first comma, found \"00000000,003\""
    );
    check(|files| whole(files).file(path, "00000000,003\n"), &[(Kind::Unparseable, &cut)]);
}

/// The list of online CPUs is damaged, so that CPU 0 is the only one whose topology is read.
#[test]
fn a_file_that_only_cpus_out_of_the_list_have_is_missing() {
    let machine = load(
        plain()
            .file("/sys/devices/system/cpu/online", "0\n")
            .without("/sys/devices/system/cpu/cpu0/topology/core_id"),
    );
    let path = "/sys/devices/system/cpu/cpu0/topology/core_id";
    let text = "it is missing, though others of its kind are there";
    let told: Vec<String> = machine.oddities.iter().map(ToString::to_string).collect();
    assert!(told.contains(&format!("{path}: {text}")), "{told:#?}");
}

#[test]
fn a_cache_is_as_large_as_its_ways_and_sets() {
    let file = |name: &str| format!("/sys/devices/system/cpu/cpu2/cache/index0/{name}");
    let size = "/sys/devices/system/cpu/cpu2/cache/index0/size: it is 32 KiB, but 9 ways of 64 sets with lines of 64 bytes make 36 KiB";
    check(|files| files.file(&file("ways_of_associativity"), "9\n"), &[(DIFFERS, size)]);
    check(|files| files.file(&file("ways_of_associativity"), "0\n"), &[]);
    let halves = |files: Memory| {
        files.file(&file("ways_of_associativity"), "4\n").file(&file("physical_line_partition"), "2\n")
    };
    check(halves, &[]);
}

#[test]
fn a_cpu_has_one_cache_of_a_level_and_kind_and_no_gap_between_levels() {
    let file = |index: u32, name: &str| format!("/sys/devices/system/cpu/cpu3/cache/index{index}/{name}");
    check(
        |files| files.file(&file(1, "level"), "6\n"),
        &[(DIFFERS, "/sys/devices/system/cpu/cpu3/cache: it has a cache of level 6, but none of level 2")],
    );
    let second = |files: Memory| {
        [("level", "1"), ("type", "Data"), ("size", "32K"), ("shared_cpu_list", "3")]
            .into_iter()
            .fold(files, |files, (name, text)| files.file(&file(2, name), format!("{text}\n")))
    };
    let machine = load(second(plain()));
    assert_eq!(
        machine.oddities[0].to_string(),
        "/sys/devices/system/cpu/cpu3/cache/index2: CPU 3 has an L1d already, of the same CPUs"
    );
}

#[test]
fn threads_and_packages_agree_with_one_another() {
    let topology = |cpu: u32, file: &str| format!("/sys/devices/system/cpu/cpu{cpu}/topology/{file}");
    check(
        |files| files.file(&topology(2, "thread_siblings_list"), "2-3\n"),
        &[(
            DIFFERS,
            "/sys/devices/system/cpu/cpu2/topology/thread_siblings_list: it names CPUs 2-3, but /sys/devices/system/cpu/cpu3/topology/thread_siblings_list names CPU 3",
        )],
    );
    check(
        |files| files.file(&topology(0, "thread_siblings"), "3\n"),
        &[
            (
                DIFFERS,
                "/sys/devices/system/cpu/cpu0/topology/thread_siblings: it names CPUs 0-1, but thread_siblings_list names CPU 0: thread_siblings_list is believed",
            ),
            (
                DIFFERS,
                "/sys/devices/system/cpu/cpu1/topology/thread_siblings: it is missing, as are 2 others of its kind, though some are there",
            ),
        ],
    );
    let packages = |files: Memory| {
        (0..4).fold(files, |files, cpu| {
            files.file(&topology(cpu, "core_siblings_list"), if cpu < 2 { "0-1\n" } else { "2-3\n" })
        })
    };
    check(packages, &[]);
    check(
        |files| packages(files).file(&topology(3, "physical_package_id"), "-1\n"),
        &[(
            DIFFERS,
            "/sys/devices/system/cpu/cpu3/topology/physical_package_id: it says that the number is not known, but CPU 2 of the same group has one",
        )],
    );
    check(
        |files| packages(files).file(&topology(3, "physical_package_id"), "0\n"),
        &[
            (
                DIFFERS,
                "/sys/devices/system/cpu/cpu0/topology/physical_package_id: CPUs 0-1,3 by this number are not those that /sys/devices/system/cpu/cpu0/topology/core_siblings_list names: they differ by CPU 3",
            ),
            (
                DIFFERS,
                "/sys/devices/system/cpu/cpu3/topology/physical_package_id: CPUs 0-1,3 by this number are not those that /sys/devices/system/cpu/cpu3/topology/core_siblings_list names: they differ by CPUs 0-2",
            ),
        ],
    );
}

#[test]
fn cpus_that_are_online_exist_and_are_possible() {
    let list = |file: &str| format!("/sys/devices/system/cpu/{file}");
    check(
        |files| files.file(&list("possible"), "0-2\n"),
        &[(DIFFERS, "/sys/devices/system/cpu/possible: it does not name CPU 3, though present does")],
    );
    check(
        |files| files.file(&list("present"), "0-2\n"),
        &[
            (DIFFERS, "/sys/devices/system/cpu/present: it does not name CPU 3, though there is a folder"),
            (DIFFERS, "/sys/devices/system/cpu/present: it does not name CPU 3, though online does"),
        ],
    );
}

#[test]
fn a_file_without_its_last_line_feed_is_cut() {
    let id = "/sys/devices/system/cpu/cpu1/topology/core_id";
    check(
        |files| files.file(id, "1"),
        &[(
            Kind::Unparseable,
            "/sys/devices/system/cpu/cpu1/topology/core_id: its last line has no end: the file may be cut",
        )],
    );
    check(
        |files| files.file("/proc/self/status", ""),
        &[(Kind::Unparseable, "/proc/self/status: it is empty")],
    );
    check(
        |files| files.file("/proc/cmdline", "ro qu\0et\n"),
        &[(Kind::StrayBytes, "/proc/cmdline: it has bytes that are not text")],
    );
    check(
        |files| files.file("/proc/cmdline", "ro quiet\nro\n"),
        &[(Kind::Unparseable, "/proc/cmdline:2: expected one line only, found \"ro\"")],
    );
    check(
        |files| files.file("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvase] never\n"),
        &[(
            Kind::Unparseable,
            "/sys/kernel/mm/transparent_hugepage/enabled:1: expected only the words always, madvise, never, defer, defer+madvise, found \"madvase\"",
        )],
    );
}
