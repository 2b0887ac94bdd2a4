//! Machines made by hand, each with one thing wrong: it must be survived, reported, and cost nothing else.

mod cpus;
mod devices;
mod machines;
mod nodes;

use machines::{NODE, PCI, plain, with_pci};
use nodewise_machine::{CpuId, CpuSet, Machine, NodeId, NodeSet, OddityKind as Kind, Origin};
use nodewise_source::tree::{Memory, Tree};
use nodewise_source::{Detail, machine_file, sysfs};
use proptest::prelude::{any, prop, prop_assert_eq, proptest};

fn load(files: Memory) -> Machine {
    sysfs::load(&Tree::memory(files), Origin::Capture("test".to_owned()), Detail::Full)
}

/// Loads a changed machine and compares what is reported.
fn check(change: impl FnOnce(Memory) -> Memory, expected: &[(Kind, &str)]) -> Machine {
    let machine = load(change(plain()));
    let told: Vec<(Kind, String)> =
        machine.oddities.iter().map(|oddity| (oddity.kind, oddity.to_string())).collect();
    let expected: Vec<(Kind, String)> =
        expected.iter().map(|(kind, text)| (*kind, (*text).to_owned())).collect();
    assert_eq!(told, expected);
    machine
}

fn n(number: u32) -> NodeId {
    NodeId::new(number)
}

/// The only oddity of a disagreement.
const DIFFERS: Kind = Kind::Disagreement;

#[test]
fn a_plain_machine_has_no_oddities() {
    let machine = check(|files| files, &[]);
    assert_eq!(machine.node_ids(), NodeSet::from([0, 1]));
    assert_eq!(machine.cpus_of(n(1)), CpuSet::from([2, 3]));
    assert_eq!(machine.distance(n(0), n(1)), Some(21));
    assert_eq!((machine.packages().len(), machine.cores().len()), (2, 4));
    assert_eq!(machine.caches.len(), 6);
    assert_eq!(machine.kernel.as_ref().map(|release| release.version()), Some((6, 12)));
    assert_eq!(machine.nodes[&n(0)].huge_pools[0].free, Some(2));
}

#[test]
fn lists_that_old_kernels_lack_are_not_needed() {
    let machine = check(
        |files| {
            [
                "/sys/devices/system/node/online",
                "/sys/devices/system/node/possible",
                "/sys/devices/system/cpu/online",
            ]
            .into_iter()
            .chain(["/sys/devices/system/cpu/present", "/sys/devices/system/cpu/possible"])
            .fold(files, |files, path| files.without(path))
        },
        &[],
    );
    assert_eq!((machine.nodes.len(), machine.online_cpus().len()), (2, 4));
}

#[test]
fn lists_that_would_exhaust_memory_are_cut_and_told() {
    let machine = load(
        plain()
            .file(&format!("{NODE}/node1/cpumap"), "c\n")
            .file(&format!("{NODE}/node1/cpulist"), "2-3,200000\n")
            .file("/sys/devices/system/cpu/possible", "0-262143\n")
            .file("/sys/devices/system/cpu/present", "0-4294967295\n")
            .directory("/sys/devices/system/cpu/cpu4294967295")
            .directory("/sys/devices/system/node/node4294967295"),
    );
    assert_eq!(machine.cpus.len(), 4);
    assert_eq!(machine.possible_cpus.last(), Some(CpuId::new(16383)));
    let many = (0..1500).fold(Memory::new(), |files, node| files.directory(&format!("{NODE}/node{node}")));
    let machine = load(many);
    assert_eq!(machine.nodes.len(), 1024);
    assert_eq!(
        machine.oddities[0].to_string(),
        "/sys/devices/system/node: it has more than 1024 nodes: the rest is left out"
    );
}

#[test]
fn the_same_damage_a_hundred_times_is_kept_a_hundred_times() {
    let files = (0..100).fold(Memory::new(), |files, cpu| {
        files.file(&format!("/sys/devices/system/cpu/cpu{cpu}/topology/core_id"), "x\n")
    });
    let machine = load(files);
    let told: Vec<_> = machine.oddities.iter().filter(|oddity| oddity.kind == Kind::Unparseable).collect();
    assert_eq!(told.len(), 100, "views group what is alike");
}

#[test]
fn words_of_a_hostile_capture_are_fit_for_a_terminal() {
    let evil = "\u{1b}[2J\u{202e}";
    let machine = load(
        plain()
            .file("/proc/version", format!("Linux version {evil}"))
            .file(&format!("{NODE}/node1/distance"), evil)
            .file(&format!("{PCI}/{evil}/class"), "x"),
    );
    for oddity in &machine.oddities {
        assert!(!oddity.to_string().chars().any(char::is_control), "{oddity:?}");
    }
    assert!(machine.oddities.len() > 1);
}

#[test]
fn model_firmware_microcode_and_governors_are_facts_where_they_are_known() {
    let dmi = "/sys/class/dmi/id";
    let governor = |cpu: u32| format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
    let files = (0..4).fold(plain(), |files, cpu| files.file(&governor(cpu), "powersave\n"));
    let machine = check(
        |_| {
            files
                .file(&format!("{dmi}/sys_vendor"), "Example\n")
                .file(&format!("{dmi}/product_name"), "Not Specified\n")
                .file(&format!("{dmi}/bios_version"), "1.2\r\u{1b}\n")
                .file(&governor(2), "performance\n")
                .file(&governor(3), "no word\n")
                .file("/proc/cpuinfo", "processor\t: 1\nmicrocode\t: 0x2b\n")
        },
        &[(
            Kind::Unparseable,
            "/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor:1: expected a word such as performance, found \"no word\"",
        )],
    );
    let product = &machine.product;
    assert_eq!((product.vendor.as_deref(), product.name.as_deref()), (Some("Example"), None));
    assert_eq!(product.firmware_version.as_deref(), Some("1.2\\r\\x1b"));
    assert_eq!(machine.cpus[&CpuId::new(1)].microcode, Some(0x2b));
    let governors: Vec<(&str, String)> =
        machine.settings.governors.iter().map(|(name, cpus)| (name.as_str(), cpus.to_string())).collect();
    assert_eq!(governors, [("performance", "2".to_owned()), ("powersave", "0-1".to_owned())]);
    assert_eq!(machine_file::from_json(&machine_file::to_json(&machine)).unwrap(), machine);
}

#[test]
fn the_release_comes_from_the_first_file_that_has_it() {
    let release = |files: Memory| load(files).kernel.map(|release| release.text().to_owned());
    let info = "/proc/hwloc-nofile-info";
    assert_eq!(release(plain()).as_deref(), Some("6.12.1"));
    assert_eq!(release(plain().file("/proc/sys/kernel/osrelease", "6.9.0\n")).as_deref(), Some("6.9.0"));
    let named = plain()
        .without("/proc/version")
        .file(info, "OSRelease: 5.4.0\nArchitecture: riscv64\nPageSize: 65536\n");
    assert_eq!(release(named.clone()).as_deref(), Some("5.4.0"));
    let machine = load(named);
    assert_eq!(machine.architecture.as_deref(), Some("riscv64"));
    assert_eq!(machine.page_size.map(|size| size.get()), Some(65536));
    check(
        |files| files.file("/proc/sys/kernel/osrelease", "6.9.0\n"),
        &[(DIFFERS, "/proc/version: it says \"6.12.1\", but other files say \"6.9.0\"")],
    );
    check(
        |files| files.file("/proc/version", "Linux dummy\n"),
        &[(
            Kind::Unparseable,
            "/proc/version: expected a kernel release as in 6.12.1, found \"Linux dummy\"",
        )],
    );
}

#[test]
fn what_the_process_may_use_comes_from_its_status_or_from_its_cpuset() {
    let allowed = |files: Memory| {
        let machine = load(files);
        (
            machine.allowed_cpus.map(|cpus| cpus.to_string()),
            machine.allowed_nodes.map(|nodes| nodes.to_string()),
        )
    };
    let some = |cpus: &str, nodes: &str| (Some(cpus.to_owned()), Some(nodes.to_owned()));
    assert_eq!(allowed(plain()), (None, None));
    let status = plain().file("/proc/self/status", "Cpus_allowed_list:\t0-1\nMems_allowed_list:\t1\n");
    assert_eq!(allowed(status), some("0-1", "1"));
    check(
        |files| files.file("/proc/self/status", "Cpus_allowed:\t7\nCpus_allowed_list:\t0-1\n"),
        &[
            (
                Kind::Unparseable,
                "/proc/self/status:2: expected the CPUs of the mask above it, found \"Cpus_allowed_list:\\t0-1\"",
            ),
            (Kind::Restricted, "this process may run on CPUs 0-2 of 0-3"),
        ],
    );
    let group = |mount: &str, cpuset: &str, files: &[(&str, &str)]| {
        let tree = plain()
            .file("/proc/mounts", format!("none {mount} 0 0\n"))
            .file("/proc/self/cpuset", format!("{cpuset}\n"));
        files.iter().fold(tree, |tree, (path, text)| tree.file(path, text))
    };
    let old = group(
        "/dev/cpuset cpuset rw",
        "/jobs/7",
        &[("/dev/cpuset/jobs/7/cpus", "2\n"), ("/dev/cpuset/jobs/7/mems", "0\n")],
    );
    assert_eq!(allowed(old), some("2", "0"));
    let first = group(
        "/sys/fs/cgroup/cpuset cgroup rw,cpuset",
        "/a",
        &[
            ("/sys/fs/cgroup/cpuset/a/cpuset.cpus", "0-3\n"),
            ("/sys/fs/cgroup/cpuset/a/cpuset.effective_cpus", "3\n"),
            ("/sys/fs/cgroup/cpuset/a/cpuset.mems", "\n"),
        ],
    );
    assert_eq!(allowed(first), (Some("3".to_owned()), None), "an empty list is that of the parent");
    let second = |controllers: &str| {
        let files = [
            ("/cg/cgroup.controllers", controllers),
            ("/cg/x/cpuset.cpus.effective", "1\n"),
            ("/cg/x/cpuset.mems.effective", "1\n"),
        ];
        group("/cg cgroup2 rw", "/x", &files)
            .without("/proc/self/cpuset")
            .file("/proc/self/cgroup", "0::/x\n")
    };
    assert_eq!(allowed(second("cpu cpuset memory\n")), some("1", "1"));
    assert_eq!(
        allowed(second("cpu memory\n")),
        (None, None),
        "a hierarchy without the controller says nothing"
    );
    let upwards = group("/cg cpuset rw", "/../..", &[("/cpus", "1\n")]);
    assert_eq!(allowed(upwards), (None, None));
}

#[test]
fn settings_are_read_whatever_the_release_calls_them() {
    let weights = "/sys/kernel/mm/mempolicy/weighted_interleave";
    let settings = |name: &str| {
        load(
            plain()
                .file("/proc/sys/kernel/numa_balancing", "2\n")
                .file("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n")
                .file("/sys/kernel/mm/numa/demotion_enabled", "true\n")
                .file("/sys/kernel/mm/lru_gen/enabled", "0x0007\n")
                .file(&format!("{weights}/node1"), "3\n")
                .file(&format!("{weights}/{name}"), "false\n")
                .file("/proc/cmdline", "ro numa=fake=2\n"),
        )
    };
    for name in ["auto", "__auto_type"] {
        let machine = settings(name);
        assert_eq!(machine.settings.numa_balancing, Some(2));
        assert_eq!(machine.settings.transparent_hugepage.as_deref(), Some("madvise"));
        assert_eq!(machine.settings.demotion_enabled, Some(true));
        assert_eq!(machine.settings.lru_gen_enabled, Some(true));
        assert_eq!(machine.settings.interleave_weights_auto, Some(false));
        assert_eq!(machine.settings.interleave_weights.get(&n(1)), Some(&3));
        assert_eq!(machine.settings.swappiness, None);
        assert!(machine.oddities.iter().any(|oddity| oddity.kind == Kind::Nominal));
    }
}

#[test]
fn an_overview_of_a_capture_is_all_of_it() {
    let tree = Tree::memory(with_pci(plain()));
    let full = sysfs::load(&tree, Origin::Live, Detail::Full);
    assert_eq!(sysfs::load(&tree, Origin::Live, Detail::Overview), full);
}

#[test]
fn an_overview_of_this_machine_agrees_with_all_of_it() {
    let tree = Tree::live();
    let full = sysfs::load(&tree, Origin::Live, Detail::Full);
    let overview = sysfs::load(&tree, Origin::Live, Detail::Overview);
    assert_eq!(overview.node_ids(), full.node_ids());
    assert_eq!(overview.distances, full.distances);
    for (id, cpu) in &full.cpus {
        let seen = &overview.cpus[id];
        assert_eq!((seen.online, seen.node, seen.package), (cpu.online, cpu.node, cpu.package));
        assert_eq!(seen.siblings, cpu.siblings);
    }
    assert_eq!(overview.accesses, full.accesses);
    if full.nodes.len() > 1 {
        assert_eq!(overview.tiers, full.tiers);
        assert_eq!(overview.settings.interleave_weights, full.settings.interleave_weights);
    }
    let last_level = |machine: &Machine| -> Vec<_> {
        machine
            .last_level_caches()
            .map(|cache| (cache.level, cache.kind, cache.size, cache.cpus.clone()))
            .collect()
    };
    assert_eq!(last_level(&overview), last_level(&full));
    let named = |machine: &Machine| -> Vec<_> {
        let named = machine.devices.iter().filter(|device| !device.names.is_empty());
        named.map(|device| (device.pci, device.names.clone(), device.node)).collect()
    };
    assert_eq!(named(&overview), named(&full));
    assert_eq!((overview.allowed_cpus, overview.allowed_nodes), (full.allowed_cpus, full.allowed_nodes));
}

proptest! {
    #[test]
    fn any_damage_to_any_file_is_survived(
        which in any::<prop::sample::Index>(),
        how in 0u8..6,
        at in any::<prop::sample::Index>(),
        bytes in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let files = with_pci(plain());
        let (path, contents) = machines::files()[which.index(machines::files().len())].clone();
        let mut cut = contents.clone().into_bytes();
        cut.truncate(at.index(cut.len() + 1));
        let damaged = match how {
            0 => files.without(&path),
            1 => files.file(&path, cut),
            2 => files.file(&path, &bytes),
            3 => files.file(&path, [contents.as_bytes(), &bytes].concat()),
            4 => files.without(&path).directory(&path),
            _ => files.without(&path).link_to(&path, &path),
        };
        let machine = load(damaged);
        prop_assert_eq!(machine.nodes.len() <= 2, true);
        prop_assert_eq!(machine_file::from_json(&machine_file::to_json(&machine)).unwrap(), machine);
    }
}
