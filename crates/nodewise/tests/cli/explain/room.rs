//! Machines in use: free memory, page cache and swap, and whether a process is killed.

use serde_json::Value;

use super::{json, refused};
use crate::nodewise::{command, output, run, wider};

const BOUND: [&str; 3] = ["explain", "bind:1", "--cpu-node=0"];

/// The end of a request on node 1 of a machine.
fn end(machine: &str, options: &[&str]) -> Value {
    json(&[&BOUND[..], &["--machine", machine], options].concat())["out_of_memory"].clone()
}

fn check(machine: &str, options: &[&str], verdict: &str, words: &str) {
    let found = end(machine, options);
    assert_eq!(found["relief"]["verdict"], verdict, "{machine} {options:?}: {found}");
    let text = run(&[&BOUND[..], &["--machine", machine], options].concat()).ok();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains(words), "{words}\n{text}");
}

#[test]
fn clean_page_cache_is_dropped_before_a_process_is_killed() {
    let machine = "(2c 512M) (2c 512M free=36M cache=440M); swap=0";
    check(
        machine,
        &["--size=300M"],
        "survives",
        "find no free memory: the kernel drops 289.6 MiB of page cache and slab inside node 1 (of 408 MiB to 440 MiB \
         that can be); it ends no process",
    );
    check(
        machine,
        &["--size=500M"],
        "killed",
        "and ends a process that may use them, though node 0 has 512 MiB free:",
    );
    check(machine, &["--size=440M"], "open", "whether it ends a process is open, as up to");
    // Memory that programs have used instead is not given up.
    let used = "(2c 512M) (2c 512M free=36M); swap=0";
    check(used, &["--size=300M"], "killed", "the kernel finds nothing to drop inside node 1 and has no swap");
}

#[test]
fn swap_is_counted_where_the_machine_has_it() {
    let machine = "(2c 512M) (2c 512M free=36M); swap=1G";
    check(
        machine,
        &["--size=300M"],
        "survives",
        "the kernel swaps 289.6 MiB out inside node 1; it ends no process",
    );
    check(machine, &["--size=2G"], "killed", "the kernel swaps 1 GiB out inside node 1, and ends a process");
    let unknown = "(2c 512M) (2c 512M free=36M cache=100M)";
    check(unknown, &["--size=300M"], "open", "and swaps if there is swap");
}

#[test]
fn what_is_typed_takes_the_place_of_the_machines() {
    let spec = end("(2c 512M) (2c 512M free=36M cache=440M); swap=64M", &["--size=300M"]);
    let typed = ["--free=1=36M", "--cache=1=440M", "--swap=64M", "--size=300M"];
    assert_eq!(end("2x(2c 512M)", &typed), spec);
    assert_eq!(end("(2c 512M) (2c 512M free=100M cache=1M); swap=1G", &typed), spec);
    // A larger free part leaves the cache what is left.
    let document = json(&["explain", "--machine", "2x(2c 512M cache=500M)", "--free=100M", "--size=4K"]);
    let pages = |field: &str| [0, 1].map(|node| document["nodes"][node][field].as_u64());
    assert_eq!(pages("page_cache_pages"), [Some(412 << 8); 2], "{document}");
    assert_eq!(pages("free_before_pages"), [Some(100 << 8); 2], "{document}");
}

#[test]
fn sizes_that_a_node_does_not_have_are_refused() {
    let check = |option: &str, expected: &str| refused(&["bind:0", option], 2, expected);
    check("--free=2T", "--free: node 0 has ");
    check("--cache=7=1M", "--cache: node 7 not found: this machine has nodes 0-2");
    check("--free=much", "--free: \"much\" is not a size: expected one such as 64G or 0-1=64G");
}

#[test]
fn a_capture_brings_its_page_cache_and_swap() {
    let folder = tempfile::tempdir().unwrap();
    let file = |path: &str, text: &str| {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    file("sys/devices/system/node/online", "0-1\n");
    file("sys/devices/system/node/possible", "0-1\n");
    for name in ["online", "present", "possible"] {
        file(&format!("sys/devices/system/cpu/{name}"), "0-1\n");
    }
    file("proc/meminfo", "MemTotal: 1048576 kB\nSwapTotal: 65536 kB\nSwapFree: 32768 kB\n");
    file("proc/sys/kernel/arch", "x86_64\n");
    for node in 0..2 {
        let folder = format!("sys/devices/system/node/node{node}");
        file(&format!("{folder}/cpulist"), &format!("{node}\n"));
        file(&format!("{folder}/distance"), if node == 0 { "10 20\n" } else { "20 10\n" });
        // Half of what it has of files is in memory (tmpfs), which only swap takes.
        let of = |name: &str, mib: u64| format!("Node {node} {name}: {} kB\n", mib << 10);
        let meminfo = [
            of("MemTotal", 512),
            of("MemFree", 36),
            of("FilePages", 400),
            of("Shmem", 200),
            of("Active(file)", 0),
            of("Inactive(file)", 200),
            of("SReclaimable", 0),
        ];
        file(&format!("{folder}/meminfo"), &meminfo.concat());
    }
    let machine = folder.path().to_str().unwrap();
    let end = end(machine, &["--size=300M"]);
    assert_eq!(end["relief"]["caches_pages"]["most"], 200 << 8, "{end}");
    assert_eq!(
        (&end["relief"]["swap_free_pages"], &end["relief"]["verdict"]),
        (&(32 << 8).into(), &"killed".into())
    );
}

#[test]
fn text_about_caches_fits_any_width() {
    for options in [&["--size=300M"][..], &["--size=2G"], &[]] {
        for columns in [60, 80, 120] {
            let machine = ["--machine", "(2c 512M) (2c 512M free=36M cache=440M); swap=64M"];
            let words = [&BOUND[..], &machine[..], options].concat();
            let text = output(command(words).env("COLUMNS", columns.to_string())).ok();
            assert_eq!(wider(&text, columns), [""; 0], "{options:?}");
        }
    }
}
