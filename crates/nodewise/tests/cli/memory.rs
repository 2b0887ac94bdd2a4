//! How much memory a machine has, and in pages of which size: sizes that the kernel does not give, sizes that lag,
//! and other architectures, in every verb that plans with them.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::nodewise::{command, folder_of, output, run};

/// Two nodes of four CPUs, as lscpu's dumps have them: no meminfo, no kernel.
const BARE: [(&str, &str); 9] = [
    ("sys/devices/system/node/online", "0-1\n"),
    ("sys/devices/system/node/possible", "0-1\n"),
    ("sys/devices/system/node/node0/cpulist", "0-3\n"),
    ("sys/devices/system/node/node1/cpulist", "\n"),
    ("sys/devices/system/node/node0/distance", "10 20\n"),
    ("sys/devices/system/node/node1/distance", "20 10\n"),
    ("sys/devices/system/cpu/online", "0-3\n"),
    ("sys/devices/system/cpu/present", "0-3\n"),
    ("sys/devices/system/cpu/possible", "0-3\n"),
];

/// The same with a POWER9 that counts in pages of 64 KiB.
fn power() -> TempDir {
    let more = [
        ("proc/cpuinfo", "processor\t: 0\ncpu\t\t: POWER9, altivec supported\n"),
        ("proc/version", "Linux version 6.1.0-9-powerpc64le (x@y) #1 SMP\n"),
        (
            "sys/devices/system/node/node0/meminfo",
            "Node 0 MemTotal:  8388608 kB\nNode 0 MemFree:  4194304 kB\n",
        ),
        (
            "sys/devices/system/node/node1/meminfo",
            "Node 1 MemTotal:  4194304 kB\nNode 1 MemFree:  4194304 kB\n",
        ),
    ];
    folder_of(&[&BARE[..], &more].concat())
}

fn on(folder: &Path, arguments: &[&str]) -> crate::nodewise::Ran {
    output(command(arguments).args(["--machine", folder.to_str().unwrap()]).env("COLUMNS", "200"))
}

#[test]
fn memory_that_is_not_known_is_not_0() {
    let folder = folder_of(&BARE);
    let verbs: [&[&str]; 6] = [
        &["explain", "local"],
        &["explain", "bind:1", "--json"],
        &["zones"],
        &["zonelist"],
        &["simulate", "jvm"],
        &["emulation", "plan", "--nodes=4"],
    ];
    for verb in verbs {
        let ran = on(folder.path(), verb);
        let expected = "the memory size of nodes 0-1 is not known: --node-memory=SIZE supplies it";
        assert!(ran.stderr.contains(expected), "{verb:?}: {}", ran.stderr);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), ""), "{verb:?}");
    }
    let text = on(folder.path(), &["show"]).ok();
    assert!(!text.contains("memory only") && !text.contains("no memory"), "{text}");
    assert!(text.contains("no CPUs"), "{text}");
}

#[test]
fn sizes_that_are_typed_take_the_place_of_those_that_are_missing() {
    let folder = folder_of(&BARE);
    let text = on(folder.path(), &["explain", "bind:1", "--size=1G", "--node-memory=4G"]).ok();
    assert!(text.contains("1:Normal"), "{text}");
    let json = on(folder.path(), &["zones", "--json", "--node-memory=0=4G", "--node-memory=1=2G"]).ok_json();
    let pages = |node: u64| -> u64 {
        let own = json["zones"].as_array().unwrap().iter().filter(|zone| zone["node"] == node);
        own.map(|zone| zone["managed_pages"].as_u64().unwrap()).sum()
    };
    assert_eq!([pages(0), pages(1)], [1 << 20, 1 << 19]);
    for verb in [&["zonelist"][..], &["simulate", "database"], &["emulation", "plan", "--nodes=4"]] {
        on(folder.path(), &[verb, &["--node-memory=4G"]].concat()).ok();
    }
    let wrong = run(&["zones", "--machine=(1c 1G)", "--node-memory=2G"]);
    assert_eq!(wrong.code, Some(2));
    assert!(
        wrong.stderr.contains("--node-memory: the machine gives the size of all its nodes"),
        "{}",
        wrong.stderr
    );
}

#[test]
fn another_architecture_has_its_own_pages_and_zones() {
    let folder = power();
    let json = on(folder.path(), &["zones", "--json"]).ok_json();
    assert_eq!(json["page_bytes"], 65536);
    let zones: Vec<(u64, &str, u64)> = json["zones"]
        .as_array()
        .unwrap()
        .iter()
        .map(|zone| {
            let of = |field: &str| zone[field].as_u64().unwrap();
            (of("node"), zone["zone"].as_str().unwrap(), of("managed_pages"))
        })
        .collect();
    assert_eq!(zones, [(0, "Normal", 131_072), (1, "Normal", 65_536)]);
    let text = on(folder.path(), &["explain", "bind:1", "--size=1G"]).ok();
    assert!(text.contains("pages of 64 KiB") && text.contains("16384  1 GiB"), "{text}");
    let huge = on(folder.path(), &["explain", "bind:1", "--size=1G", "--huge"]);
    assert_eq!(huge.code, Some(3));
    assert!(
        huge.stderr
            .contains("huge pages of ppc64le with pages of 64 KiB is not known: --huge-page-size=SIZE"),
        "{}",
        huge.stderr
    );
    let huge = ["explain", "bind:1", "--size=1G", "--huge", "--huge-page-size=16M", "--json"];
    let json = on(folder.path(), &huge).ok_json();
    assert_eq!(
        (&json["steps"][0]["page_bytes"], json["steps"].as_array().unwrap().len()),
        (&(16 << 20).into(), 1)
    );
}

#[test]
fn programs_are_played_in_pages_of_the_machines_size() {
    let folder = power();
    let json = on(folder.path(), &["simulate", "jvm", "--huge-page-size=2M", "--json"]).ok_json();
    assert_eq!(json["page_bytes"], 65536);
    let all: u64 =
        json["zones"].as_array().unwrap().iter().map(|zone| zone["managed_pages"].as_u64().unwrap()).sum();
    assert_eq!(all, (12 << 30) / 65536);
    let scenario = folder.path().join("pool.toml");
    fs::write(&scenario, "[[event]]\nat = 0\nhugepages = 8\n").unwrap();
    let pool = ["simulate", scenario.to_str().unwrap()];
    let refused = on(folder.path(), &pool);
    assert!(refused.stderr.contains("--huge-page-size=SIZE supplies it"), "{}", refused.stderr);
    let played = on(folder.path(), &[&pool[..], &["--huge-page-size=16M"]].concat()).ok();
    assert!(played.contains("pool of huge pages  128 MiB"), "{played}");
}

#[test]
fn an_architecture_that_is_assumed_is_named() {
    let folder = folder_of(&BARE);
    let sized =
        |verb: &[&str], more: &[&str]| on(folder.path(), &[verb, &["--node-memory=4G"], more].concat());
    let verbs = [
        &["zones"][..],
        &["zonelist"],
        &["explain", "local", "--size=1G"],
        &["simulate", "jvm"],
        &["emulation", "plan", "--nodes=4"],
    ];
    for verb in verbs {
        let text = sized(verb, &[]).ok();
        assert!(text.contains("x86-64") && text.contains("--architecture"), "{verb:?}: {text}");
        assert_eq!(sized(verb, &["--json"]).ok_json()["assumed_architecture"], "x86_64", "{verb:?}");
        let named = sized(verb, &["--architecture=aarch64"]).ok();
        assert!(!named.contains("--architecture"), "{verb:?}: {named}");
        assert!(
            sized(verb, &["--json", "--architecture=aarch64"]).ok_json()["assumed_architecture"].is_null()
        );
    }
}

#[test]
fn facts_can_be_supplied_to_the_verbs_that_need_them_and_their_help_says_so() {
    for verb in [
        &["show"][..],
        &["zones"],
        &["zonelist"],
        &["explain"],
        &["simulate"],
        &["lab"],
        &["emulation", "plan"],
    ] {
        let help = run(&[verb, &["--help"]].concat()).ok();
        for option in ["--node-memory", "--architecture", "--page-size", "--huge-page-size"] {
            assert!(help.contains(option), "{verb:?} {option}");
        }
    }
    assert!(!run(&["run", "--help"]).ok().contains("--node-memory"));
}

#[test]
fn zones_that_are_not_modelled_are_not_those_of_x86() {
    for verb in [&["zones"][..], &["zonelist"], &["explain", "local"], &["simulate", "jvm"]] {
        let ran = run(&[verb, &["--machine=2x(4c 8G); arch=ia64"]].concat());
        assert_eq!(ran.code, Some(3), "{verb:?}");
        assert!(ran.stderr.contains("the zones of \"ia64\" are not modelled"), "{verb:?}: {}", ran.stderr);
    }
}

/// A kernel that has initialised 1 of 4 GiB: zones say what is present.
fn lagging() -> TempDir {
    let zoneinfo = "Node 0, zone   Normal\n  pages free     131072\n        min      4096\n        low      5120\n        high     6144\n        spanned  1048576\n        present  1048576\n        managed  262144\n        protection: (0, 0)\n  start_pfn:           1048576\n";
    folder_of(&[
        ("sys/devices/system/node/online", "0\n"),
        ("sys/devices/system/node/possible", "0\n"),
        ("sys/devices/system/node/node0/cpulist", "0-3\n"),
        ("sys/devices/system/node/node0/distance", "10\n"),
        (
            "sys/devices/system/node/node0/meminfo",
            "Node 0 MemTotal:  1048576 kB\nNode 0 MemFree:  524288 kB\n",
        ),
        ("sys/devices/system/cpu/online", "0-3\n"),
        ("sys/devices/system/cpu/present", "0-3\n"),
        ("proc/cpuinfo", "vendor_id\t: GenuineIntel\nflags\t\t: fpu lm\n"),
        ("proc/meminfo", "MemTotal:        4128768 kB\nMemFree:         3604480 kB\n"),
        ("proc/zoneinfo", zoneinfo),
    ])
}

#[test]
fn a_node_that_lags_behind_the_machine_is_planned_with_as_it_is() {
    let folder = lagging();
    let text = on(folder.path(), &["show"]).ok();
    for expected in
        ["3.9 GiB in 1 node", "present", "4 GiB", "node 0 manages 1 GiB of 4 GiB", "not initialised yet"]
    {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    let json = on(folder.path(), &["show", "--json"]).ok_json();
    assert_eq!(json["nodes"][0]["present_bytes"], 4u64 << 30);
    assert_eq!(json["system_memory_bytes"], 4_128_768u64 << 10);
    // 2 GiB are there, though the node has half a GiB free.
    let text = on(folder.path(), &["explain", "local", "--size=2G"]).ok();
    assert!(!text.contains("missing"), "{text}");
    let json = on(folder.path(), &["zones", "--json"]).ok_json();
    assert_eq!(json["zones"][0]["managed_pages"], 1_032_192);
    let plan = on(folder.path(), &["emulation", "plan", "--nodes=4", "--json"]).ok_json();
    assert_eq!(plan["nodes"].as_array().map(Vec::len), Some(4), "{plan}");
    let machine = folder.path().to_str().unwrap();
    let lab = run(&["lab", "--machine", machine, "--memory=8G", "--dry-run", "--", "true"]).ok();
    assert!(lab.contains("4 GiB"), "{lab}");
    // The machine file keeps all of it.
    let path = folder.path().join("machine.json");
    fs::write(&path, on(folder.path(), &["show", "--json"]).ok()).unwrap();
    let again = run(&["zones", "--json", "--machine", path.to_str().unwrap()]).ok_json();
    let zones = again["zones"].as_array().unwrap();
    let sum = |field: &str| zones.iter().map(|zone| zone[field].as_u64().unwrap()).sum::<u64>();
    assert_eq!((sum("present_pages"), sum("managed_pages")), (1 << 20, 1_032_192));
}

/// An SRAT of one node, whose RAM is below 2 GiB with a hole, in the bytes of the firmware.
fn one_node() -> TempDir {
    let mut table = b"SRAT\0\0\0\0\x03\0OEMID1OEMTABLEx\0\0\0CREA\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0".to_vec();
    table.truncate(48);
    let mut cpu = vec![0, 16];
    cpu.resize(16, 0);
    cpu[4] = 1;
    table.extend(&cpu);
    for (start, end) in [(0u64, 0xa_0000u64), (0x10_0000, 0x8000_0000)] {
        let mut memory = vec![1, 40];
        memory.resize(40, 0);
        memory[8..16].copy_from_slice(&start.to_le_bytes());
        memory[16..24].copy_from_slice(&(end - start).to_le_bytes());
        memory[28] = 1;
        table.extend(&memory);
    }
    let length = u32::try_from(table.len()).unwrap();
    table[4..8].copy_from_slice(&length.to_le_bytes());
    table[9] = 0;
    table[9] = table.iter().fold(0u8, |sum, byte| sum.wrapping_sub(*byte));
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("SRAT"), table).unwrap();
    let iomem = "00001000-0009efff : System RAM\n00100000-7ffdffff : System RAM\n";
    fs::write(folder.path().join("iomem"), iomem).unwrap();
    folder
}

#[test]
fn ranges_of_the_firmware_are_kept() {
    let folder = one_node();
    let machine = format!("acpi:{}", folder.path().display());
    let json = run(&["zones", "--json", "--machine", &machine]).ok_json();
    let zones: Vec<(&str, u64, u64)> = json["zones"]
        .as_array()
        .unwrap()
        .iter()
        .map(|zone| {
            let of = |field: &str| zone[field].as_u64().unwrap();
            (zone["zone"].as_str().unwrap(), of("first_page"), of("present_pages"))
        })
        .collect();
    assert_eq!(zones, [("DMA", 1, 3998), ("DMA32", 4096, 0x7ffe0 - 4096)]);
    assert_eq!(json["zones_from"], "firmware");
    // A kernel makes two nodes of these ranges where three are asked for, as from its log.
    let plan = run(&["emulation", "plan", "--nodes=3", "--json", "--machine", &machine]).ok_json();
    assert_eq!(plan["nodes"].as_array().map(Vec::len), Some(2), "{plan}");
    let text = run(&["explain", "local", "--size=1G", "--machine", &machine]).ok();
    assert!(text.contains("firmware's ranges"), "{text}");
    // A machine file keeps them too.
    let path = folder.path().join("machine.json");
    fs::write(&path, run(&["show", "--json", "--machine", &machine]).ok()).unwrap();
    let again = run(&["zones", "--json", "--machine", path.to_str().unwrap()]).ok_json();
    assert_eq!(again["zones"], json["zones"]);
}
