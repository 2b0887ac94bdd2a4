use super::*;
use crate::tree::{Memory, ReadCause};

fn site(files: Memory) -> Site {
    Site::of(&Tree::memory(files), true)
}

fn kubelet_files() -> Memory {
    Memory::new()
        .file("/var/lib/kubelet/config.yaml", "cpuManagerPolicy: none\ntopologyManagerPolicy: restricted\n")
        .file("/var/lib/kubelet/cpu_manager_state", r#"{"policyName":"static"}"#)
        .file("/var/lib/kubelet/memory_manager_state", r#"{"policyName":"None"}"#)
}

#[test]
fn checkpoints_say_which_policies_are_in_force() {
    let found = site(kubelet_files()).kubelet;
    let config = found.known().unwrap();
    assert_eq!(config.cpu_manager.as_deref(), Some("static"));
    assert_eq!(config.memory_manager.as_deref(), Some("None"));
    assert_eq!(config.topology_manager.as_deref(), Some("restricted"));
    let without = kubelet_files().without("/var/lib/kubelet/config.yaml");
    assert_eq!(site(without).kubelet.known().unwrap().cpu_manager.as_deref(), Some("static"));
}

#[test]
fn a_file_for_root_only_is_not_an_absent_one() {
    let denied = ReadCause::System(13);
    let closed = Memory::new()
        .unreadable("/var/lib/kubelet/config.yaml", denied)
        .unreadable("/var/lib/kubelet/cpu_manager_state", denied)
        .unreadable("/etc/slurm/slurm.conf", denied);
    let found = site(closed);
    assert_eq!((found.kubelet, found.task_plugins), (SiteFact::Denied, SiteFact::Denied));
    let none = site(Memory::new());
    assert_eq!(
        (none.kubelet, none.tuned, none.board),
        (SiteFact::Absent, SiteFact::Absent, SiteFact::Absent)
    );
    assert_eq!((none.movable_only, none.offline), (SiteFact::Unknown, SiteFact::Unknown));
}

#[test]
fn files_of_the_host_are_not_looked_for_in_a_capture() {
    let found = Site::read(&Tree::memory(kubelet_files().file(TUNED, "oracle\n")));
    assert_eq!((found.kubelet, found.tuned), (SiteFact::Unknown, SiteFact::Unknown));
    assert_eq!(found.board, SiteFact::Unknown);
}

#[test]
fn the_first_file_of_slurm_counts_and_a_profile_is_one_line() {
    let files = Memory::new()
        .file("/etc/slurm-llnl/slurm.conf", "TaskPlugin=task/cgroup\n")
        .file(TUNED, "hpc-compute\n");
    let found = site(files);
    assert_eq!(found.task_plugins, SiteFact::Known(Some(vec!["task/cgroup".to_owned()])));
    assert_eq!(found.tuned, SiteFact::Known("hpc-compute".to_owned()));
}

#[test]
fn lines_that_pin_interrupts_are_found_and_comments_are_not() {
    let pinned = |files: Memory| {
        let found = site(files).pinning;
        let lines: Option<Vec<String>> =
            found.known().map(|lines| lines.iter().map(|at| format!("{}:{}", at.path, at.line)).collect());
        (lines.unwrap_or_default(), found)
    };
    assert_eq!(pinned(Memory::new()).1, SiteFact::Absent);
    let healthy = Memory::new()
        .file("/etc/rc.local", "#!/bin/sh\n # echo 1 > /proc/irq/40/smp_affinity\nexit 0\n")
        .file("/etc/udev/rules.d/70-x.rules.bak", "smp_affinity\n")
        .file("/etc/systemd/system/x.service", "[Service]\n;ExecStart=/usr/sbin/set_irq_affinity.sh eth0\n");
    assert_eq!(pinned(healthy.clone()).1, SiteFact::Absent);
    let files = healthy
        .file(
            "/etc/rc.d/rc.local",
            "\u{fffd}\n\nfor i in 40 41; do echo 0-3 > /proc/irq/$i/smp_affinity_list; done\n",
        )
        .file(
            "/etc/udev/rules.d/80-\u{1b}.rules",
            "RUN+=\"/bin/sh -c 'echo 3 > /proc/irq/40/smp_affinity'\"\n",
        )
        .file(
            "/etc/systemd/system/pin.service",
            "[Service]\nExecStart=/usr/sbin/set_irq_affinity_bynode.sh 0 eth0\n",
        );
    let expected =
        ["/etc/rc.d/rc.local:3", "/etc/udev/rules.d/80-\u{1b}.rules:1", "/etc/systemd/system/pin.service:2"];
    assert_eq!(pinned(files.clone()).0, expected);
    // One that is closed hides no other, and does not prove that there is none.
    let closed = |files: Memory| files.unreadable("/etc/rc.local", ReadCause::System(13));
    assert_eq!(pinned(closed(files)).0, expected);
    assert_eq!(pinned(closed(Memory::new())).1, SiteFact::Denied);
}

#[test]
fn a_node_of_movable_zones_only_is_known_by_its_managed_pages() {
    let zone = |node: u32, name: &str, managed: u64| {
        format!("Node {node}, zone {name:>8}\n  pages free     1\n        managed  {managed}\n")
    };
    let text =
        [zone(0, "Normal", 900), zone(0, "Movable", 100), zone(1, "Normal", 0), zone(1, "Movable", 500)];
    let with = |text: &str| site(Memory::new().file("/proc/zoneinfo", text)).movable_only;
    assert_eq!(with(&text.concat()), SiteFact::Known(NodeSet::from([1])));
    assert_eq!(with(&zone(0, "Normal", 900)), SiteFact::Known(NodeSet::new()));
    assert_eq!(with("\u{1b}[2J"), SiteFact::Known(NodeSet::new()));
}

#[test]
fn blocks_that_are_offline_count_for_their_node() {
    let block = |files: Memory, node: u32, block: u32, state: &str| {
        files
            .file(&format!("/sys/devices/system/node/node{node}/memory{block}/phys_device"), "0\n")
            .file(&format!("/sys/devices/system/memory/memory{block}/state"), state)
    };
    let files = Memory::new().file("/sys/devices/system/memory/block_size_bytes", "8000000\n");
    let files = block(block(block(files, 0, 0, "online\n"), 1, 32, "offline\n"), 1, 33, "offline\n");
    let offline = site(files).offline;
    let expected = OfflineMemory { size: Bytes::from_mib(256), blocks: vec![32, 33] };
    assert_eq!(offline, SiteFact::Known(BTreeMap::from([(NodeId::new(1), expected)])));
    let stateless = Memory::new()
        .file("/sys/devices/system/memory/block_size_bytes", "8000000\n")
        .file("/sys/devices/system/node/node0/memory0/phys_device", "0\n");
    assert_eq!(site(stateless).offline, SiteFact::Unknown, "a capture");
    let broken = Memory::new().file("/sys/devices/system/memory/block_size_bytes", "x\n");
    assert_eq!(site(broken).offline, SiteFact::Unknown);
}

#[test]
fn a_raspberry_pi_has_hints_and_other_boards_have_none() {
    let board = |model: &str| {
        let files = Memory::new()
            .file("/sys/firmware/devicetree/base/model", format!("{model}\0"))
            .file("/sys/power/mem_sleep", "[s2idle]\n");
        site(files).board
    };
    let hints = board("Raspberry Pi 5 Model B Rev 1.0");
    let hints = hints.known().unwrap();
    assert_eq!(hints.sleep.as_ref().unwrap().chosen, "s2idle");
    assert_eq!(hints.card_queue, None, "no log");
    assert_eq!(board("Radxa ROCK 5B"), SiteFact::Absent);
}

#[test]
fn this_site_is_read() {
    let found = Site::read(&Tree::live());
    assert_ne!(found.kubelet, SiteFact::Unknown);
    assert_ne!(found.board, SiteFact::Unknown);
}

#[test]
fn the_scan_size_is_read_where_a_kernel_has_it() {
    let file = "/sys/kernel/debug/sched/numa_balancing/scan_size_mb";
    let check = |files: Memory, expected: SiteFact<Bytes>| assert_eq!(site(files).scan_size, expected);
    check(Memory::new().file(file, "256\n"), SiteFact::Known(Bytes::from_mib(256)));
    let older = "/proc/sys/kernel/numa_balancing_scan_size_mb";
    check(Memory::new().file(older, "512\n"), SiteFact::Known(Bytes::from_mib(512)));
    check(Memory::new().file(file, "-1\n"), SiteFact::Unknown);
    check(Memory::new().unreadable(file, ReadCause::System(13)), SiteFact::Denied);
    check(Memory::new(), SiteFact::Absent);
}
