//! Nodes, their memory and their distances.

use nodewise_machine::{Bytes, CpuSet, Machine, NodeSet, OddityKind as Kind};
use nodewise_source::tree::{Memory, ReadCause};

use super::machines::{NODE, plain};
use super::{DIFFERS, check, load, n};

#[test]
fn the_cpus_of_a_node_come_from_mask_list_or_links() {
    let cpus = |files: Memory| load(files).nodes[&n(1)].cpus.clone();
    let expected = CpuSet::from([2, 3]);
    let path = |file: &str| format!("{NODE}/node1/{file}");
    assert_eq!(cpus(plain().without(&path("cpulist"))), expected);
    assert_eq!(cpus(plain().without(&path("cpumap"))), expected);
    let links = plain().without(&path("cpulist")).without(&path("cpumap"));
    let links = links.link_to(&path("cpu2"), "../../cpu/cpu2").link_to(&path("cpu3"), "../../cpu/cpu3");
    assert_eq!(cpus(links), expected);
    let machine = check(
        |files| files.file(&path("cpulist"), "1-3\n"),
        &[(
            DIFFERS,
            "/sys/devices/system/node/node1/cpulist: it names CPUs 1-3, but cpumap names CPUs 2-3: cpumap is believed, as by libnuma",
        )],
    );
    assert_eq!(machine.nodes[&n(1)].cpus, expected);
}

#[test]
fn a_row_of_distances_is_matched_with_the_nodes_it_was_made_for() {
    let only = |files: Memory, row: &str| {
        let files = files.without("/sys/devices/system/node/node0").file(&format!("{NODE}/online"), "1\n");
        files
            .file(&format!("{NODE}/node1/distance"), row)
            .file("/sys/devices/system/node/has_memory", "1\n")
            .file("/sys/devices/system/node/has_cpu", "1\n")
    };
    let machine = load(only(plain(), "21 10\n"));
    assert_eq!(machine.distance(n(1), n(1)), Some(10));
    let told = |machine: &Machine| {
        machine.oddities.iter().find(|oddity| oddity.kind == DIFFERS).map(ToString::to_string)
    };
    assert_eq!(
        told(&machine).as_deref(),
        Some(
            "/sys/devices/system/node/node1/distance: it has 2 numbers, expected 1 (one per online node): read as one per possible node"
        )
    );
    let machine = load(only(plain(), "21 10 30\n"));
    assert_eq!(machine.distance(n(1), n(1)), None);
    assert_eq!(
        told(&machine).as_deref(),
        Some(
            "/sys/devices/system/node/node1/distance: it has 3 numbers, expected 1 (one per online node): the row is left out"
        )
    );
}

#[test]
fn distances_that_are_missing_or_broken_are_told() {
    check(
        |files| files.without(&format!("{NODE}/node0/distance")),
        &[
            (
                Kind::Disagreement,
                "/sys/devices/system/node/node0/distance: it is missing, though others of its kind are there",
            ),
            (Kind::DistanceMissing, "the distance from node 0 to node 0 is missing; so is one other pair"),
        ],
    );
    check(
        |files| files.file(&format!("{NODE}/node0/distance"), "10 x\n"),
        &[
            (
                Kind::Unparseable,
                "/sys/devices/system/node/node0/distance:1: expected a distance as number 2 of the row, found \"x\"",
            ),
            (Kind::DistanceMissing, "the distance from node 0 to node 0 is missing; so is one other pair"),
        ],
    );
}

#[test]
fn broken_memory_information_costs_its_own_line() {
    let path = format!("{NODE}/node1/meminfo");
    let machine = check(
        |files| files.file(&path, "Node 1 MemTotal: 8192 kB\nNode 1 MemFree: lots\n\0\0"),
        &[
            (
                Kind::Unparseable,
                "/sys/devices/system/node/node1/meminfo:2: expected a number below 2^64, found \"Node 1 MemFree: lots\"",
            ),
            (
                Kind::StrayBytes,
                "/sys/devices/system/node/node1/meminfo: it has NUL bytes behind its text, which were ignored",
            ),
        ],
    );
    assert_eq!(machine.nodes[&n(1)].memory_total().map(|size| size.get()), Some(8 << 20));
    assert_eq!(machine.nodes[&n(1)].memory_free(), None, "not 0");
    check(
        |files| files.without(&path),
        &[
            (
                Kind::Disagreement,
                "/sys/devices/system/node/node1/meminfo: it is missing, though others of its kind are there",
            ),
            (Kind::MemoryUnknown, "the memory size of node 1 is not known"),
        ],
    );
}

#[test]
fn what_cannot_be_read_is_told_with_the_reason() {
    let path = format!("{NODE}/node1/meminfo");
    for (cause, reason) in [
        (ReadCause::System(13), "permission denied"),
        (ReadCause::NotAFile("a FIFO"), "it is a FIFO, not a file"),
        (ReadCause::TooLarge(16 << 20), "it is larger than 16 MiB"),
    ] {
        let machine = check(
            |files| files.unreadable(&path, cause),
            &[
                (
                    Kind::Unreadable,
                    &format!("/sys/devices/system/node/node1/meminfo: cannot be read: {reason}"),
                ),
                (Kind::MemoryUnknown, "the memory size of node 1 is not known"),
            ],
        );
        assert_eq!(machine.nodes.len(), 2);
    }
}

#[test]
fn nodes_that_come_and_go_are_told() {
    check(
        |files| {
            files
                .file(&format!("{NODE}/online"), "0-2\n")
                .file(&format!("{NODE}/node0/distance"), "10 21 30\n")
                .file(&format!("{NODE}/node1/distance"), "21 10 30\n")
        },
        &[(Kind::NodeMissing, "/sys/devices/system/node/online: it names node 2 without a folder")],
    );
    check(
        |files| files.file(&format!("{NODE}/online"), "0\n"),
        &[(DIFFERS, "/sys/devices/system/node/online: it does not name node 1, though there is a folder")],
    );
    check(
        |files| files.file(&format!("{NODE}/has_memory"), "0,7\n").file(&format!("{NODE}/has_cpu"), "\n"),
        &[
            (DIFFERS, "/sys/devices/system/node/has_cpu: it names no node, but nodes 0-1 have CPUs"),
            (DIFFERS, "/sys/devices/system/node/has_memory: it names node 7, not online"),
            (DIFFERS, "/sys/devices/system/node/has_memory: it does not name node 1, though there is memory"),
        ],
    );
}

#[test]
fn memory_without_cpus_and_cpus_without_memory_are_nodes() {
    let machine = load(
        plain()
            .file(&format!("{NODE}/node2/cpumap"), "0\n")
            .file(&format!("{NODE}/node2/cpulist"), "\n")
            .file(&format!("{NODE}/node2/meminfo"), "Node 2 MemTotal: 4096 kB\n")
            .file(&format!("{NODE}/node1/meminfo"), "Node 1 MemTotal: 0 kB\n"),
    );
    assert_eq!(machine.nodes_with_cpus(), NodeSet::from([0, 1]));
    assert_eq!(machine.nodes_with_memory(), NodeSet::from([0, 2]));
}

#[test]
fn memory_that_contradicts_itself_is_told() {
    let path = format!("{NODE}/node1/meminfo");
    let text = |total: u32, free: u32, used: u32| {
        format!("Node 1 MemTotal: {total} kB\nNode 1 MemFree: {free} kB\nNode 1 MemUsed: {used} kB\n")
    };
    let node0 = format!("{NODE}/node0/meminfo");
    let both = |files: Memory, node1: String| {
        let node0_text = text(8192, 4096, 4096).replace("Node 1", "Node 0");
        files.file(&node0, node0_text).file(&path, node1)
    };
    let differs = |sentence: &str| format!("/sys/devices/system/node/node1/meminfo: {sentence}");
    check(|files| both(files, text(8192, 4096, 4096)), &[]);
    check(
        |files| both(files, text(8193, 4096, 4096)),
        &[(
            Kind::Disagreement,
            &differs(
                "MemTotal, 8193 kB, less MemFree, 4096 kB, is not MemUsed, 4096 kB: one of them is wrong",
            ),
        )],
    );
    check(
        |files| both(files, text(4096, 8192, 4096)),
        &[(Kind::Disagreement, &differs("MemFree is 8192 kB, more than MemTotal, 4096 kB"))],
    );
    check(
        |files| both(files, "Node 1 MemTotal: 8192 kB\n".to_owned()),
        &[(Kind::Disagreement, &differs("it lacks MemFree and one other field, which node 0 has"))],
    );
}

#[test]
fn what_is_present_on_a_node_comes_from_its_zones() {
    let zones = "Node 0, zone Normal\n  pages free 9\n        present  3072\n        managed  2048\nNode 1, zone Normal\n  pages free 9\n        present  4096\n        managed  2048\n";
    let with = |files: Memory| files.file("/proc/zoneinfo", zones);
    // 8 MiB in 2048 pages are pages of 4 KiB.
    let machine = load(with(plain()));
    assert_eq!(machine.page_size, Some(Bytes::from_kib(4)));
    let present = |machine: &Machine, node| machine.nodes[&n(node)].present;
    assert_eq!(
        [0, 1].map(|node| present(&machine, node)),
        [Some(Bytes::from_mib(12)), Some(Bytes::from_mib(16))]
    );
    // Nodes that disagree show no page size, and without it nothing is known of what is present.
    let torn = with(plain()).file(&format!("{NODE}/node1/meminfo"), "Node 1 MemTotal: 8196 kB\n");
    let machine = load(torn);
    assert_eq!((machine.page_size, present(&machine, 0)), (None, None));
    // Cut in a line, a zone has nothing present.
    let cut =
        load(plain().file("/proc/zoneinfo", "Node 0, zone Normal\n  pages free 9\n        present  x\n"));
    assert_eq!(present(&cut, 0), None);
    assert!(cut.oddities.iter().any(|oddity| oddity.kind == Kind::Unparseable));
}

#[test]
fn memory_that_no_node_counts_is_named() {
    let files = |files: Memory| files.file("/proc/meminfo", "MemTotal:  24576 kB\n");
    let text = "/proc/meminfo counts 8 MiB more than the nodes: not initialised yet, and which node has them is not known";
    check(files, &[(Kind::MemoryHeldBack, text)]);
    let zones = "Node 0, zone Normal\n  pages free 9\n        present  2048\n        managed  2048\nNode 1, zone Normal\n  pages free 9\n        present  4096\n        managed  2048\n";
    let text = "node 1 manages 8 MiB of 16 MiB: 8 MiB are not initialised yet, so /proc/meminfo counts them and the node does not";
    let machine = check(|all| files(all).file("/proc/zoneinfo", zones), &[(Kind::MemoryHeldBack, text)]);
    assert_eq!(machine.memory_of(n(1)), Some(Bytes::from_mib(16)));
}
