//! Calls of a program about nodes and CPUs of a hypothetical machine.

use std::process::Command;
use std::sync::mpsc::channel;
use std::thread;

use nodewise_conformance::probe;
use nodewise_machine::{Bytes, CpuId, CpuSet, MemPolicy, NodeId, NodeSet, PolicyMode};
use nodewise_syscall::{
    BindOptions, Errno, NodeBuffer, PageKind, PageLocation, PageScope, Task, affinity, mempolicy, pages,
};

use super::{SPEC, can_separate, inside, is_inside, on};
use crate::nodewise::{path, run};
use crate::sandbox::has;

fn bind(node: u32) -> MemPolicy {
    MemPolicy::new(PolicyMode::Bind, NodeSet::from([node]))
}

fn nodes_of(memory: &NodeBuffer) -> Vec<PageLocation> {
    let (start, length) = (memory.address(), memory.length().get() as usize);
    let mut found = Vec::new();
    pages::locate(Task::CURRENT, pages::addresses(start, length, 0), |_, place| found.push(place)).unwrap();
    found
}

fn on_node(node: u32) -> PageLocation {
    PageLocation::Node(NodeId::new(node))
}

#[test]
#[ignore = "runs in pretend, started by the test beside it"]
fn calls_inside() {
    if is_inside().is_none() {
        return;
    }
    let (page, four) = (pages::page_size(), Bytes::new(4 * pages::page_size() as u64));
    assert_eq!(mempolicy::allowed_nodes().unwrap(), NodeSet::from([0, 1, 2]));
    assert_eq!(affinity::cpus(Task::CURRENT).unwrap().to_string(), "0-7");
    // A node of its own for each mapping; what is mapped later at the same address has no policy.
    let mut memory = NodeBuffer::reserve(four, PageKind::Small, None).unwrap();
    let address = memory.address();
    mempolicy::bind_range(address, 4 * page, &bind(2), BindOptions::default()).unwrap();
    memory.as_mut_slice()[0] = 1;
    memory.as_mut_slice()[2 * page] = 1;
    let absent = PageLocation::NotPresent;
    assert_eq!(nodes_of(&memory), [on_node(2), absent, on_node(2), absent]);
    assert_eq!(mempolicy::policy_at(address).unwrap(), bind(2));
    assert_eq!(mempolicy::node_at(address).unwrap(), NodeId::new(2));
    // Misplaced pages are refused, moved, or left.
    let strict = BindOptions { moving: None, strict: true };
    let refused = mempolicy::bind_range(address, 4 * page, &bind(1), strict).unwrap_err();
    assert_eq!(refused.errno, Errno::EIO);
    let moving = BindOptions { moving: Some(PageScope::Own), strict: false };
    mempolicy::bind_range(address, 4 * page, &bind(1), moving).unwrap();
    assert_eq!(nodes_of(&memory), [on_node(1), absent, on_node(1), absent]);
    let wrong = mempolicy::bind_range(address, 4 * page, &bind(7), strict).unwrap_err();
    assert_eq!(wrong.errno, Errno::EINVAL);
    drop(memory);
    mempolicy::set_thread_policy(&bind(0)).unwrap();
    let mut memory = NodeBuffer::reserve(four, PageKind::Small, None).unwrap();
    memory.as_mut_slice()[0] = 1;
    assert_eq!(mempolicy::policy_at(memory.address()).unwrap(), MemPolicy::DEFAULT);
    // Pages that were there before the policy changed lie where the old one put them.
    mempolicy::set_thread_policy(&bind(1)).unwrap();
    memory.as_mut_slice()[page] = 1;
    assert_eq!(nodes_of(&memory), [on_node(0), on_node(1), absent, absent]);
}

#[test]
#[ignore = "runs in pretend, started by the test beside it"]
fn threads_inside() {
    if is_inside().is_none() {
        return;
    }
    // Each thread has what its starter had when it was started, whenever it asks.
    let threads: Vec<_> = [0, 1, 2]
        .into_iter()
        .map(|node| {
            mempolicy::set_thread_policy(&bind(node)).unwrap();
            affinity::set_cpus(Task::CURRENT, &CpuSet::from_iter([CpuId::new(node)])).unwrap();
            let (go, wait) = channel::<()>();
            let asks = move || {
                wait.recv().unwrap();
                (mempolicy::thread_policy().unwrap(), affinity::cpus(Task::CURRENT).unwrap().to_string())
            };
            (node, go, thread::spawn(asks))
        })
        .collect();
    for (node, go, thread) in threads.into_iter().rev() {
        go.send(()).unwrap();
        assert_eq!(thread.join().unwrap(), (bind(node), node.to_string()));
    }
    // A CPU that no computer for tests has: memory comes from its node.
    mempolicy::set_thread_policy(&MemPolicy::DEFAULT).unwrap();
    affinity::set_cpus(Task::CURRENT, &CpuSet::from_iter([CpuId::new(7)])).unwrap();
    assert_eq!(affinity::current_cpu().unwrap(), (CpuId::new(7), NodeId::new(1)));
    let size = Bytes::new(pages::page_size() as u64);
    let mut memory = NodeBuffer::reserve(size, PageKind::Small, None).unwrap();
    memory.as_mut_slice()[0] = 1;
    assert_eq!(nodes_of(&memory), [on_node(1)]);
    let none = affinity::set_cpus(Task::CURRENT, &CpuSet::from_iter([CpuId::new(8)])).unwrap_err();
    assert_eq!(none.errno, Errno::EINVAL);
}

#[test]
#[ignore = "runs in pretend, started by the test beside it"]
fn never_touched_pages_inside() {
    let Some(machine) = is_inside() else { return };
    let page = pages::page_size();
    let mut own = NodeBuffer::reserve(Bytes::new(2 * page as u64), PageKind::Small, None).unwrap();
    own.as_mut_slice()[0] = 1;
    let never =
        if machine.contains("before-6.12") { PageLocation::ZeroOrUnmapped } else { PageLocation::NotPresent };
    assert_eq!(nodes_of(&own), [on_node(0), never]);
}

#[test]
fn calls_are_answered_as_on_the_machine() {
    if can_separate() {
        inside(SPEC, "pretend::calls::calls_inside");
        inside(SPEC, "pretend::calls::threads_inside");
    }
}

#[test]
fn never_touched_pages_have_the_answer_of_the_machine_s_release() {
    if !can_separate() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (name, kernel) in [("before-6.12.json", "6.11.10"), ("since.json", "6.12.1")] {
        let mut machine = run(&["show", "--json", "--machine", SPEC]).ok_json();
        machine["kernel"] = kernel.into();
        let file = folder.path().join(name);
        std::fs::write(&file, machine.to_string()).unwrap();
        inside(file.to_str().unwrap(), "pretend::calls::never_touched_pages_inside");
    }
}

#[test]
fn replaced_moved_and_returned_memory_has_the_kernel_s_policies_and_nodes() {
    if !can_separate() || !has("cc", "gcc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("probe.c"), folder.path().join("probe"));
    let lines = folder.path().join("scripts");
    std::fs::write(&source, probe::source()).unwrap();
    std::fs::write(&lines, probe::REPLACED).unwrap();
    let compiled = Command::new("cc").args(["-O1", "-pthread", "-o"]).args([&program, &source]).status();
    assert!(compiled.unwrap().success());
    let shown = on(SPEC, &[program.to_str().unwrap(), lines.to_str().unwrap()]).ok();
    // `cargo xtask pretend-lab --changes` compares all lines with those of a kernel.
    for expected in [
        "5 policy m0: 0-1 mode 0x2 1, 2-4 mode 0, 5-7 mode 0x2 1",
        "5 pages m0: 0-1 on node 1, 5-7 on node 1",
        // Mappings of their own, which no call moves together before Linux 6.17.
        "7 answer remap 0 12 there: Bad address",
        "13 pages m1: 0 on node 0, 1 on node 1",
        "17 policy m2: 0-7 mode 0x2 1",
        "18 pages m2: 0 on node 1, 6 on node 1",
        "19 policy m2: 0-11 mode 0x2 1",
        "20 pages m2: 0 on node 1, 6 on node 1, 11 on node 1",
        "21 policy m2: 0-13 mode 0x2 1",
        "22 pages m2: 0 on node 1, 6 on node 1, 11 on node 1, 13 on node 1",
        "26 policy m3: 0-8 mode 0x3 0 1",
        "27 pages m3: 0 on node 1, 1 on node 0, 2 on node 1, 3 on node 0, 4 on node 1, 7 on node 0, 8 on node 1",
        "28 answer of each page: 1 -16 0 -16",
        "29 answer bind 0 6 1 0x2 0 1: Input/output error",
        "34 pages m4: 0 on node 0, 1 on node 1",
    ] {
        assert!(shown.lines().any(|line| line == format!("replaced {expected}")), "{expected}: {shown}");
    }
}

#[test]
fn numactl_binds_to_nodes_that_are_not_there() {
    if !can_separate() || !has("numactl", "numactl") {
        return;
    }
    let shown = |words: &[&str]| on(SPEC, words).ok();
    let plain = shown(&["numactl", "--show"]);
    assert!(plain.contains("\nphyscpubind: 0 1 2 3 4 5 6 7 \n"), "{plain}");
    assert!(plain.contains("\nmembind: 0 1 2 \n"), "{plain}");
    let bound = shown(&["numactl", "--cpunodebind=1", "--membind=2", "numactl", "--show"]);
    assert!(bound.starts_with("policy: bind\n"), "{bound}");
    assert!(bound.contains("\nphyscpubind: 2 3 6 7 \n") && bound.contains("\nmembind: 2 \n"), "{bound}");
    let wrong = on(SPEC, &["numactl", "--membind=5", "true"]);
    assert_eq!(wrong.code, Some(1), "{}", wrong.stderr);
}

#[test]
fn processes_outside_stay_on_their_cpus() {
    if !can_separate() || !has("taskset", "util-linux") {
        return;
    }
    let own = affinity::cpus(Task::CURRENT).unwrap();
    let pid = std::process::id().to_string();
    // Twice: it is known the second time.
    let script = format!("taskset -p {pid}; taskset -pc 0 {pid}; taskset -pc 0 {pid}");
    let ran = on(SPEC, &["sh", "-c", &script]).ok();
    assert!(ran.contains("new affinity list: 0"), "{ran}");
    assert_eq!(affinity::cpus(Task::CURRENT).unwrap(), own);
}

#[test]
fn children_have_the_policy_of_a_parent_that_has_ended() {
    if !can_separate() || !has("numactl", "numactl") {
        return;
    }
    let later = "(sleep 0.3; exec numactl --show) & exit 0";
    let shown = on(SPEC, &["numactl", "--membind=1", "sh", "-c", later]).ok();
    assert!(shown.starts_with("policy: bind\n") && shown.contains("\nmembind: 1 \n"), "{shown}");
}

#[test]
fn files_of_processes_show_the_machine() {
    if !can_separate() || !has("numactl", "numactl") {
        return;
    }
    let status = on(SPEC, &["numactl", "--physcpubind=6", "grep", "_allowed_list", "/proc/self/status"]).ok();
    assert_eq!(status, "Cpus_allowed_list:\t6\nMems_allowed_list:\t0-2\n");
    let stat = on(SPEC, &["numactl", "--physcpubind=6", "cat", "/proc/self/stat"]).ok();
    assert_eq!(stat.split_ascii_whitespace().nth(38), Some("6"), "{stat}");
    let maps = on(SPEC, &["numactl", "--membind=2", "cat", "/proc/self/numa_maps"]).ok();
    let heap = maps.lines().find(|line| line.contains(" heap ")).unwrap();
    assert!(heap.contains(" bind:2 ") && heap.contains(" N2="), "{heap}");
}

#[test]
fn open_mpi_binds_ranks_to_the_nodes_of_the_machine() {
    if !can_separate() || !has("mpirun", "openmpi-bin") {
        return;
    }
    let words = [
        "mpirun",
        "--allow-run-as-root",
        "--oversubscribe",
        "-n",
        "2",
        "--bind-to",
        "numa",
        "--map-by",
        "numa",
    ];
    let rank = ["grep", "-h", "Cpus_allowed_list", "/proc/self/status"];
    let shown = on("2x(4c 2G); dist=21", &[&words[..], &rank].concat()).ok();
    let mut ranks: Vec<&str> = shown.lines().collect();
    ranks.sort_unstable();
    assert_eq!(ranks, ["Cpus_allowed_list:\t0-3", "Cpus_allowed_list:\t4-7"]);
}

#[test]
fn counters_and_free_memory_of_nodes_follow_programs() {
    /// 100 MiB in pages of 4 KiB, and MiB.
    const PAGES: u64 = 25_600;
    const MIB: u64 = 100;
    if !can_separate() || !has("numactl", "numactl") || !has("dd", "coreutils") {
        return;
    }
    let held = "numactl --membind=2 dd if=/dev/zero bs=100M count=1 status=none";
    let files =
        "cat /sys/devices/system/node/node2/numastat; grep MemFree /sys/devices/system/node/node2/meminfo";
    let script = format!("{files}; {held} > /dev/null; {files}");
    let shown = on(SPEC, &["sh", "-c", &script]).ok();
    let values = |name: &str| -> Vec<u64> {
        let lines = shown.lines().filter(|line| line.contains(name));
        lines.filter_map(|line| line.trim_end_matches(" kB").rsplit(' ').next()?.parse().ok()).collect()
    };
    let (hits, free) = (values("numa_hit"), values("MemFree"));
    let grown = hits[1] - hits[0];
    assert!((PAGES..PAGES + PAGES / 2).contains(&grown), "{shown}");
    // The program has ended.
    assert!(free[0] - free[1] < MIB * 1024 / 10, "{shown}");
    let during = format!("{held} | (sleep 1; {files}; cat > /dev/null)");
    let shown = on(SPEC, &["sh", "-c", &during]).ok();
    let left: u64 = shown
        .lines()
        .find(|line| line.contains("MemFree"))
        .and_then(|line| line.trim_end_matches(" kB").rsplit(' ').next()?.parse().ok())
        .unwrap();
    assert!((3900 * 1024..(4096 - MIB) * 1024 + 1).contains(&left), "{shown}");
}

#[test]
fn without_answers_the_real_kernel_refuses() {
    if !can_separate() || !has("numactl", "numactl") {
        return;
    }
    let nodes = on("4x(1c 1G)", &["numactl", "--membind=3", "true"]);
    assert_eq!(nodes.code, Some(0), "{}", nodes.stderr);
    let words = ["pretend", "--files-only", "--machine", "(1c 1G) (1c 1G) (1c 1G) (1c 1G)", "--"];
    let real = run(&[&words[..], &["nproc"]].concat()).ok();
    let own = thread::available_parallelism().unwrap().to_string();
    assert_eq!(real.trim(), own);
    let twice = on(SPEC, &[path(), "pretend", "--machine", SPEC, "--", "true"]);
    assert_eq!(twice.code, Some(3), "{}", twice.stderr);
    assert!(twice.stderr.contains("in a pretended machine already"), "{}", twice.stderr);
}
