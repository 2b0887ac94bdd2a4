//! `nodewise explain --pid`: a process in a capture, and one that runs.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::nodewise::{command, folder_of, output, run, wider};

const MAPS: &str = "\
1000-9000 rw-p 00000000 00:00 0                          [heap]
7f0000000000-7f0003000000 rw-p 00000000 00:00 0 
7f1000000000-7f1000002000 r--p 00000000 fe:00 12         /data/a
";
pub(super) const NUMA_MAPS: &str = "\
1000 prefer:0 heap anon=2 dirty=2 N0=1 N1=1 kernelpagesize_kB=4
7f0000000000 bind:1 anon=12288 dirty=12288 N0=9000 N1=3288 kernelpagesize_kB=4
7f1000000000 prefer:0 file=/data/a mapped=1 N1=1 kernelpagesize_kB=4
";

/// Two nodes of 4 GiB, half of it free, and a process whose thread prefers node 0 and runs on node 1.
pub(super) fn capture(numa_maps: &str) -> tempfile::TempDir {
    let stat = format!("7 (data) S 1 {}100 1048576 50 0 0 {}1 0 0 0\n", "0 ".repeat(17), "0 ".repeat(12));
    let status = "Name:\tdata\x1b[2J\nState:\tS (sleeping)\nUid:\t0\t0\t0\t0\nVmRSS:\t49160 kB\n\
                  Cpus_allowed_list:\t1\nMems_allowed_list:\t0-1\n";
    let meminfo = |node: u32| {
        let of = |name: &str, kib: u32| format!("Node {node} {name}: {kib} kB\n");
        [
            of("MemTotal", 4 << 20),
            of("MemFree", 2 << 20),
            of("Active(file)", 0),
            of("Inactive(file)", 1 << 20),
            of("SReclaimable", 0),
        ]
        .concat()
    };
    let numastat = |miss: u32| {
        format!(
            "numa_hit 9\nnuma_miss {miss}\nnuma_foreign 0\ninterleave_hit 0\nlocal_node 9\nother_node 0\n"
        )
    };
    let files: &[(&str, &str)] = &[
        ("sys/devices/system/node/online", "0-1\n"),
        ("sys/devices/system/node/possible", "0-1\n"),
        ("sys/devices/system/cpu/online", "0-1\n"),
        ("sys/devices/system/cpu/present", "0-1\n"),
        ("sys/devices/system/cpu/possible", "0-1\n"),
        ("sys/devices/system/node/node0/cpulist", "0\n"),
        ("sys/devices/system/node/node1/cpulist", "1\n"),
        ("sys/devices/system/node/node0/distance", "10 20\n"),
        ("sys/devices/system/node/node1/distance", "20 10\n"),
        ("sys/devices/system/node/node0/meminfo", &meminfo(0)),
        ("sys/devices/system/node/node1/meminfo", &meminfo(1)),
        ("sys/devices/system/node/node0/numastat", &numastat(0)),
        ("sys/devices/system/node/node1/numastat", &numastat(5)),
        ("proc/meminfo", "MemTotal: 8388608 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n"),
        ("proc/sys/kernel/arch", "x86_64\n"),
        ("proc/sys/kernel/osrelease", "6.12.1\n"),
        ("proc/7/status", status),
        ("proc/7/stat", &stat),
        ("proc/7/maps", MAPS),
        ("proc/7/numa_maps", numa_maps),
        ("proc/7/comm", "data\n"),
        ("proc/7/task/7/stat", &stat),
        ("proc/7/task/7/status", status),
        ("proc/7/task/7/maps", MAPS),
        ("proc/7/task/7/numa_maps", numa_maps),
    ];
    folder_of(files)
}

fn explained(folder: &tempfile::TempDir, words: &[&str]) -> Value {
    let machine = folder.path().to_str().unwrap();
    run(&[&["--machine", machine, "explain", "--pid", "7", "--json"], words].concat()).ok_json()
}

fn reasons(document: &Value) -> Vec<(u64, u64, &str)> {
    let nodes = document["process"]["nodes"].as_array().unwrap().iter();
    let row = |own: &'static str, node: &Value| node[own].as_u64().unwrap();
    nodes
        .map(|node| (row("node", node), row("size_bytes", node) >> 12, node["reason"].as_str().unwrap()))
        .collect()
}

#[test]
fn the_largest_memory_of_a_process_is_explained_and_its_next() {
    let folder = capture(NUMA_MAPS);
    let document = explained(&folder, &[]);
    let process = &document["process"];
    assert_eq!(
        (&process["policy"], &process["policy_of"]),
        (&"bind:1".into(), &"mapping".into()),
        "{document}"
    );
    assert_eq!(process["other_policies"][0], "prefer:0");
    assert_eq!((&process["cpu_nodes"], &process["allowed_nodes"]), (&"1".into(), &"0-1".into()));
    assert_eq!(reasons(&document), [(0, 9000, "older_or_moved"), (1, 3288, "policy")]);
    // The next 10 GiB: the node has 2 GiB free and 1 GiB of page cache.
    assert_eq!((&document["policy"], &document["cpu_node"]), (&"bind:1".into(), &1.into()));
    assert_eq!(document["size_bytes"], 10u64 << 30);
    assert_eq!(document["out_of_memory"]["relief"]["verdict"], "killed");
    let small = explained(&folder, &["--size=2500M"]);
    assert_eq!(small["out_of_memory"]["relief"]["verdict"], "survives", "{small}");
}

#[test]
fn a_mapping_is_chosen_by_its_kind_or_an_address() {
    let folder = capture(NUMA_MAPS);
    for words in [&["--mapping", "heap"][..], &["--address", "2000"], &["--address=0x8fff"]] {
        let document = explained(&folder, words);
        assert_eq!(document["process"]["policy_of"], "thread", "{document}");
        // Node 1 helped out since boot, and node 0 comes first.
        assert_eq!(reasons(&document), [(0, 1, "policy"), (1, 1, "others_full_or_older")]);
    }
    let machine = folder.path().to_str().unwrap();
    let refused = |words: &[&str], expected: &str| {
        let ran = run(&[&["--machine", machine, "explain"], words].concat());
        assert_eq!(ran.code, Some(2), "{words:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    };
    refused(
        &["--pid=7", "--mapping=tape"],
        "--mapping: process 7 has no mapping \"tape\": expected a part of a name",
    );
    refused(&["--pid=7", "--address=1"], "--address: process 7 has nothing mapped at 1");
    refused(&["--pid=7", "--address=x"], "\"x\" is not an address");
    refused(&["--pid=7", "bind:0"], "--pid");
    refused(&["--mapping=heap"], "--mapping needs --pid");
}

#[test]
fn memory_without_a_policy_is_where_it_was_touched_first() {
    let folder = capture(&NUMA_MAPS.replace("bind:1", "default").replace("prefer:0", "default"));
    let document = explained(&folder, &[]);
    assert_eq!(document["process"]["policy_of"], "none");
    // It runs on node 1 only, and node 0 gave no page that was wanted elsewhere.
    let expected = [(0, 9001, "others_full_or_touched_before"), (1, 3289, "first_touch")];
    assert_eq!(reasons(&document), expected);
    let machine = folder.path().to_str().unwrap();
    for columns in [60, 80, 120] {
        let words = ["--machine", machine, "explain", "--pid=7"];
        let text = output(command(words).env("COLUMNS", columns.to_string())).ok();
        assert_eq!(wider(&text, columns), [""; 0], "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("not full at that time (this node gave no such page since boot)"), "{text}");
    }
}

#[test]
fn a_running_process_is_explained() {
    let mut waiting = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let ran = run(&["explain", "--pid", &waiting.id().to_string(), "--size=1M", "--json"]);
    drop(waiting.stdin.take());
    let _ = waiting.wait();
    // A kernel without NUMA shows no policies.
    let document = ran.ok_json();
    assert_eq!(document["process"]["policy"], "default", "{document}");
    assert_eq!(document["schema"], "nodewise.explain/1");
}
