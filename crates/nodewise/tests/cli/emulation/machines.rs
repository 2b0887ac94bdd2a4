//! Reports on machines: two Raspberry Pis, as folders of their files, and machines that are none.

use std::path::Path;

use super::image;
use crate::nodewise::{Ran, golden, run, wider};

/// The log of a Raspberry Pi 5 with 8 GiB in the words of Linux 6.12, shortened; the ranges are those
/// that the kernel's rules give for RAM without holes.
fn log() -> String {
    let mut log = "[    0.000000] Linux version 6.12.25+rpt-rpi-2712\n\
                   [    0.000000] NUMA: Faking a node at [mem 0x0000000000000000-0x00000001ffffffff]\n"
        .to_owned();
    let range = |node: u64| format!("[mem {:#018x}-{:#018x}]", node << 30, ((node + 1) << 30) - 1);
    for node in 0..8 {
        log += &format!("[    0.000000] Faking node {node} at {} (1024MB)\n", range(node));
    }
    log += "[    0.000000] Early memory node ranges\n";
    for node in 0..8 {
        log += &format!("[    0.000000]   node   {node}: {}\n", range(node));
    }
    log + "[    0.000000] mempolicy: NUMA default policy overridden to 'interleave:0-7'\n\
           [    2.100000] mmc0: Command Queue Engine enabled, 31 tags\n"
}

/// A Raspberry Pi with this many nodes, started with these words; `log` is what its kernel wrote.
fn board(nodes: u32, words: &str, log: &str) -> tempfile::TempDir {
    let list = if nodes == 1 { "0\n".to_owned() } else { format!("0-{}\n", nodes - 1) };
    let mut files: Vec<(String, String)> = [
        ("sys/devices/system/node/online", list.as_str()),
        ("sys/devices/system/node/possible", &list),
        ("sys/devices/system/cpu/online", "0-3\n"),
        ("sys/devices/system/cpu/possible", "0-3\n"),
        ("sys/devices/system/cpu/present", "0-3\n"),
        ("sys/firmware/devicetree/base/model", "Raspberry Pi 5 Model B Rev 1.0\0"),
        ("sys/firmware/devicetree/base/chosen/bootargs", "cgroup_disable=memory numa_policy=interleave\0"),
        ("sys/firmware/devicetree/base/chosen/bootloader/build-timestamp", "gS\x60\x40"),
        ("sys/power/mem_sleep", "[s2idle]\n"),
        ("proc/cmdline", words),
        ("proc/sys/kernel/osrelease", "6.12.25+rpt-rpi-2712\n"),
        ("proc/sys/kernel/arch", "aarch64\n"),
        ("dev/kmsg", log),
        ("boot/config-6.12.25+rpt-rpi-2712", "CONFIG_NUMA=y\nCONFIG_NUMA_EMU=y\n"),
        ("boot/firmware/cmdline.txt", "root=a rootwait\n"),
        ("boot/firmware/config.txt", "[pi5]\ndtparam=audio=on,sd_cqe\n"),
        ("etc/sysctl.d/90-numa.conf", "kernel.numa_policy=interleave\n"),
    ]
    .into_iter()
    .map(|(path, text)| (path.to_owned(), text.to_owned()))
    .collect();
    for node in 0..nodes {
        let folder = format!("sys/devices/system/node/node{node}");
        let row = vec!["10"; nodes as usize].join(" ");
        let size = 8 * 1024 * 1024 / nodes;
        files.push((format!("{folder}/cpulist"), "0-3\n".to_owned()));
        files.push((format!("{folder}/cpumap"), "f\n".to_owned()));
        files.push((format!("{folder}/distance"), row + "\n"));
        files.push((format!("{folder}/meminfo"), format!("Node {node} MemTotal: {size} kB\n")));
    }
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    image(&files)
}

fn emulation(machine: &Path, words: &[&str]) -> Ran {
    run(&[&["emulation"], words, &["--machine", machine.to_str().unwrap()]].concat())
}

const ASKED: &str = "numa_policy=interleave numa=fake=8 root=a rootwait\n";

#[test]
fn the_state_of_a_board_is_shown() {
    let board = board(8, ASKED, &log());
    golden("emulation-status-pi", emulation(board.path(), &["status"]).ok());
    let json = emulation(board.path(), &["status", "--json"]).ok_json();
    assert_eq!(json["board"]["model"], "Raspberry Pi 5 Model B Rev 1.0");
    assert_eq!((&json["node_count"], &json["hardware_node_count"]), (&8.into(), &1.into()));
}

#[test]
fn a_board_that_works_is_verified() {
    let board = board(8, ASKED, &log());
    golden("emulation-verify-pi", emulation(board.path(), &["verify"]).ok());
}

#[test]
fn a_plan_has_the_ranges_of_the_boards_log() {
    let board = board(8, ASKED, &log());
    golden("emulation-plan-pi", emulation(board.path(), &["plan"]).ok());
}

#[test]
fn distances_that_are_typed_stand_instead_of_those_of_the_command_line() {
    let board = board(2, "numa=fake=2:10,20,20,10,\n", "");
    // Without a usual number of nodes, the words of the command line are planned.
    std::fs::remove_file(board.path().join("sys/firmware/devicetree/base/model")).unwrap();
    let planned = |words: &[&str]| emulation(board.path(), &[&["plan"], words].concat()).ok();
    let own = planned(&[]);
    assert!(own.contains("numa=fake=2:10,20,20,10,") && own.contains("10 20\n"), "{own}");
    let typed = planned(&["--distances=10,40,40,10"]);
    assert!(typed.contains("numa=fake=2:10,40,40,10,") && typed.contains("10 40\n"), "{typed}");
    assert!(!typed.contains("10 20\n"), "{typed}");
}

#[test]
fn a_kernel_that_does_not_know_the_words_fails_with_that_reason() {
    let log = "[    0.000000] Linux version 6.6.31+rpt-rpi-2712\n\
               [    0.000000] NUMA: Faking a node at [mem 0x0000000000000000-0x00000001ffffffff]\n\
               [    0.000000]   node   0: [mem 0x0000000000000000-0x00000001ffffffff]\n\
               [    0.000000] Unknown kernel command line parameters \"numa_policy=interleave numa=fake=8\", will be passed to user space.\n";
    let board = board(1, ASKED, log);
    let ran = emulation(board.path(), &["verify"]);
    assert_eq!(ran.code, Some(1));
    let text = ran.stdout.replace("\n        ", " ");
    for expected in [
        "FAIL  the kernel knows these words: its log calls unknown: numa_policy=interleave numa=fake=8",
        "FAIL  the nodes are there: node 0 instead of nodes 0-7",
    ] {
        assert!(text.contains(expected), "{text}");
    }
    let status = emulation(board.path(), &["status"]).ok().replace("\n                ", " ");
    assert!(status.contains("numa_policy=interleave numa=fake=8: this kernel does not know"), "{status}");
}

#[test]
fn what_an_emulation_brought_is_told() {
    let (before, after) = (board(1, "root=a\n", ""), board(8, ASKED, &log()));
    let machine = run(&["show", "--json", "--machine", before.path().to_str().unwrap()]).ok();
    let file = before.path().join("before.json");
    std::fs::write(&file, machine).unwrap();
    let text = emulation(after.path(), &["verify", "--against", file.to_str().unwrap()]).ok();
    assert!(text.contains("  nodes         1 before, 8 now\n"), "{text}");
    assert!(text.contains("  memory        8 GiB before, 8 GiB now\n"), "{text}");
    assert!(text.contains("  new processes default before, interleave:0-7 now\n"), "{text}");
    assert!(text.contains("  figures       not saved then: nodewise compare --suite board --save"), "{text}");
    // What the kernel of that time was asked for is reported as it took it.
    for (kernel, policy) in [("6.12.25+rpt-rpi-2712", "interleave:0-1"), ("6.12.38+deb13-arm64", "default")] {
        let before = board(2, "numa_policy=interleave numa=fake=2\n", "");
        std::fs::write(before.path().join("proc/sys/kernel/osrelease"), kernel).unwrap();
        let text = emulation(after.path(), &["verify", "--against", before.path().to_str().unwrap()]).ok();
        let expected = format!("  new processes {policy} before, interleave:0-7 now\n");
        assert!(text.contains(&expected), "{text}");
    }
    // Figures of the time before say less of the machine, and with which command they are compared.
    let figures = concat!(env!("CARGO_MANIFEST_DIR"), "/../../suites/recorded/pi5-without.json");
    let text = emulation(after.path(), &["verify", "--against", figures]).ok();
    assert!(text.contains("  nodes         1 before, 8 now\n") && !text.contains("\n  memory    "), "{text}");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(&format!("nodewise compare --suite board --against {figures} ")), "{text}");
}

#[test]
fn machines_that_are_not_there_can_be_planned() {
    for (machine, words, expected) in [
        ("(4c 8G); arch=aarch64; kernel=6.6.31+rpt-rpi-2712", "--nodes=8", "20 20 20 20 20 20 20 10"),
        ("2x(2c 4G); dist=21", "--per-node=2", "10 10 21 21"),
        ("(2c 16G)", "--nodes=64", "63 0 1 2 3 4 5 6 and 56 more"),
        ("2x(2c 16G); dist=21", "--nodes=64", "0-63: 10 to itself; 10 inside 0,2,4"),
        ("(1c 1G)", "--nodes=100", "not enough memory for this number of nodes"),
        (
            "(1c 1G); arch=aarch64; kernel=6.1.0",
            "--nodes=2",
            "Linux before 6.12 emulates nodes on x86-64 only",
        ),
    ] {
        let ran = run(&["emulation", "plan", words, "--machine", machine]);
        assert!(ran.stdout.contains(expected), "{machine}: {}{}", ran.stdout, ran.stderr);
    }
    let ran = run(&["emulation", "plan", "--machine", "(1c 1G)"]);
    assert_eq!(ran.code, Some(2));
}

#[test]
fn the_texts_fit_a_narrow_terminal() {
    let board = board(8, ASKED, &log());
    for words in [&["status"][..], &["verify"], &["plan"]] {
        let mut command = crate::nodewise::command([&["emulation"], words].concat());
        command.args(["--machine", board.path().to_str().unwrap()]).env("COLUMNS", "60");
        let text = crate::nodewise::output(&mut command).ok();
        assert_eq!(wider(&text, 60), [""; 0], "{text}");
    }
}
