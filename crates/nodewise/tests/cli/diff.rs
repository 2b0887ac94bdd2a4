//! `nodewise diff`: captures before and after changes, what it prints, and how it ends.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::nodewise::{Ran, corpus, folder_of, run, wider};

const NODE: &str = "sys/devices/system/node";
const CPU: &str = "sys/devices/system/cpu";

/// A small server of two nodes with four CPUs, as a folder of the kernel's files.
fn server() -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    let mut file = |path: String, text: &str| files.insert(path, format!("{text}\n"));
    file(format!("{NODE}/online"), "0-1");
    file(format!("{NODE}/possible"), "0-1");
    for list in ["online", "possible", "present"] {
        file(format!("{CPU}/{list}"), "0-3");
    }
    for node in 0..2 {
        let folder = format!("{NODE}/node{node}");
        file(format!("{folder}/cpumap"), ["3", "c"][node]);
        file(format!("{folder}/cpulist"), ["0-1", "2-3"][node]);
        file(format!("{folder}/distance"), ["10 21", "21 10"][node]);
        file(
            format!("{folder}/meminfo"),
            &format!("Node {node} MemTotal: 8388608 kB\nNode {node} MemFree: {} kB", 100 + node),
        );
        let pool = format!("{folder}/hugepages/hugepages-2048kB");
        for name in ["nr_hugepages", "free_hugepages", "surplus_hugepages"] {
            file(format!("{pool}/{name}"), "0");
        }
    }
    for cpu in 0..4 {
        let folder = format!("{CPU}/cpu{cpu}");
        file(format!("{folder}/topology/core_id"), &cpu.to_string());
        file(format!("{folder}/topology/physical_package_id"), &(cpu / 2).to_string());
        file(format!("{folder}/topology/thread_siblings"), &format!("{:x}", 1 << cpu));
        file(format!("{folder}/cpufreq/scaling_governor"), "powersave");
        file(format!("{folder}/cpufreq/cpuinfo_max_freq"), "3000000");
        let cache = format!("{folder}/cache/index0");
        for (name, value) in
            [("level", "3"), ("type", "Unified"), ("size", "8192K"), ("coherency_line_size", "64")]
        {
            file(format!("{cache}/{name}"), value);
        }
        file(format!("{cache}/shared_cpu_map"), ["3", "3", "c", "c"][cpu]);
    }
    let block = |cpu: u32| format!("processor\t: {cpu}\nmodel name\t: Example\nmicrocode\t: 0x2b000461\n\n");
    file("proc/cpuinfo".to_owned(), (0..4).map(block).collect::<String>().trim_end());
    file("proc/version".to_owned(), "Linux version 6.12.1 x x");
    file("proc/cmdline".to_owned(), "quiet root=/dev/sda1");
    file("proc/sys/vm/zone_reclaim_mode".to_owned(), "0");
    file("proc/sys/vm/swappiness".to_owned(), "60");
    file("proc/sys/kernel/numa_balancing".to_owned(), "1");
    file("sys/kernel/mm/transparent_hugepage/enabled".to_owned(), "always [madvise] never");
    file("sys/class/dmi/id/bios_version".to_owned(), "2.10.2");
    file("sys/class/dmi/id/bios_date".to_owned(), "02/24/2021");
    for address in ["0000:21:00.0", "0000:22:00.0"] {
        let facts = [("class", "0x020000"), ("vendor", "0x15b3"), ("device", "0x1017"), ("numa_node", "0")];
        for (name, value) in facts {
            file(format!("sys/bus/pci/devices/{address}/{name}"), value);
        }
    }
    files
}

fn folder(files: &BTreeMap<String, String>) -> tempfile::TempDir {
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    folder_of(&files)
}

fn diff(a: &Path, b: &Path, more: &[&str]) -> Ran {
    run(&[&["diff", a.to_str().unwrap(), b.to_str().unwrap()], more].concat())
}

/// Compares the server with a changed one: the facts that are named, with what they are about.
#[track_caller]
fn check(change: impl FnOnce(&mut BTreeMap<String, String>), expected: &[(&str, Value, Value)]) {
    let before = server();
    let mut after = before.clone();
    change(&mut after);
    let (before, after) = (folder(&before), folder(&after));
    let ran = diff(before.path(), after.path(), &["--json"]);
    let json = ran.json();
    let found: Vec<(String, Value, Value)> = json["differences"]
        .as_array()
        .unwrap()
        .iter()
        .map(|difference| {
            (
                difference["fact"].as_str().unwrap().to_owned(),
                difference["a"].clone(),
                difference["b"].clone(),
            )
        })
        .collect();
    let expected: Vec<(String, Value, Value)> =
        expected.iter().map(|(fact, a, b)| ((*fact).to_owned(), a.clone(), b.clone())).collect();
    assert_eq!(found, expected, "{json:#}");
    assert_eq!(ran.code, Some(u8::from(!expected.is_empty()).into()));
    assert_eq!(json["unknown"], Value::Array(Vec::new()));
}

/// Puts a text in the place of a file's.
fn set(files: &mut BTreeMap<String, String>, path: &str, text: &str) {
    let file = files.get_mut(path).unwrap_or_else(|| panic!("{path}"));
    *file = format!("{text}\n");
}

#[test]
fn each_of_ten_changes_of_a_capture_is_named_and_nothing_else() {
    let one = |path: &'static str, text: &'static str, fact: &'static str, a: Value, b: Value| {
        check(|files| set(files, path, text), &[(fact, a, b)]);
    };
    check(|_| {}, &[]);
    one("sys/class/dmi/id/bios_version", "2.11.0", "firmware_version", "2.10.2".into(), "2.11.0".into());
    one("proc/version", "Linux version 6.18.0 x x", "kernel_release", "6.12.1".into(), "6.18.0".into());
    one("proc/cmdline", "root=/dev/sda1 quiet nosmt", "boot_parameter", false.into(), "nosmt".into());
    one("proc/sys/vm/zone_reclaim_mode", "1", "zone_reclaim_mode", 0.into(), 1.into());
    one("proc/sys/kernel/numa_balancing", "0", "numa_balancing", 1.into(), 0.into());
    let thp = "sys/kernel/mm/transparent_hugepage/enabled";
    one(thp, "[always] madvise never", "transparent_hugepage", "madvise".into(), "always".into());
    one("sys/bus/pci/devices/0000:21:00.0/numa_node", "1", "node", 0.into(), 1.into());
    let pool = "sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages";
    one(pool, "512", "huge_pages_2097152", 0.into(), 512.into());
    let meminfo = "sys/devices/system/node/node1/meminfo";
    let (a, b) = ((8_u64 << 30).into(), (4_u64 << 30).into());
    one(meminfo, "Node 1 MemTotal: 4194304 kB\nNode 1 MemFree: 7 kB", "memory_bytes", a, b);
    let each = |change: fn(usize) -> (String, &'static str), fact: &'static str, a: Value, b: Value| {
        let all = |files: &mut BTreeMap<String, String>| {
            for at in 0..4 {
                let (path, text) = change(at);
                if files.contains_key(&path) {
                    set(files, &path, text);
                }
            }
        };
        check(all, &[(fact, a, b)]);
    };
    each(
        |cpu| (format!("{CPU}/cpu{cpu}/cpufreq/scaling_governor"), "performance"),
        "governor",
        "powersave".into(),
        "performance".into(),
    );
    each(
        |cpu| (format!("{CPU}/cpu{cpu}/cache/index0/size"), "16384K"),
        "l3_bytes",
        (8 << 20).into(),
        (16 << 20).into(),
    );
    each(
        |node| (format!("{NODE}/node{node}/distance"), ["10 31", "31 10", "", ""][node]),
        "distance",
        21.into(),
        31.into(),
    );
    check(
        |files| {
            let text = files["proc/cpuinfo"].replace("0x2b000461", "0x2b000661");
            set(files, "proc/cpuinfo", text.trim_end());
        },
        &[("microcode", "0x2b000461".into(), "0x2b000661".into())],
    );
    check(
        |files| files.retain(|path, _| !path.contains("0000:22:00.0")),
        &[("device", true.into(), false.into())],
    );
}

#[test]
fn two_captures_alike_have_no_difference() {
    let (a, b) = (folder(&server()), folder(&server()));
    let text = diff(a.path(), b.path(), &[]).ok();
    assert!(text.starts_with("no difference ("), "{text}");
    assert!(diff(a.path(), b.path(), &["--all"]).ok().starts_with("no difference ("));
}

#[test]
fn free_memory_counts_only_with_all() {
    let mut after = server();
    set(
        &mut after,
        "sys/devices/system/node/node0/meminfo",
        "Node 0 MemTotal: 8388608 kB\nNode 0 MemFree: 7 kB",
    );
    let (a, b) = (folder(&server()), folder(&after));
    diff(a.path(), b.path(), &[]).ok();
    let ran = diff(a.path(), b.path(), &["--all"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stdout.contains("MemFree  100 KiB  7 KiB  node 0"), "{}", ran.stdout);
}

#[test]
fn machines_of_every_kind_are_compared_and_a_page_has_all_of_it() {
    let mut sides: Vec<String> =
        corpus("captures").iter().map(|path| path.to_str().unwrap().to_owned()).collect();
    sides.push("2x(8c 64G)".to_owned());
    for pair in sides.windows(2) {
        let [a, b] = pair else { panic!() };
        let ran = run(&["diff", a, b]);
        assert_eq!(ran.code, Some(1), "{a} {b}: {}", ran.stderr);
        assert!(ran.stdout.lines().count() < 160, "{a} {b}: {}", ran.stdout.lines().count());
        assert_eq!(wider(&ran.stdout, 80), [""; 0], "{a} {b}");
        run(&["diff", b, b]).ok();
    }
}

#[test]
fn hostile_names_are_escaped() {
    let mut after = server();
    set(&mut after, "sys/class/dmi/id/bios_version", "\u{1b}]0;x\u{7}");
    let (a, b) = (folder(&server()), folder(&after));
    for form in [&[][..], &["--json"]] {
        let ran = diff(a.path(), b.path(), form);
        assert_eq!(ran.code, Some(1));
        assert!(!ran.stdout.chars().any(|c| c.is_control() && c != '\n'), "{:?}", ran.stdout);
    }
}

#[test]
fn without_a_second_machine_the_first_is_compared_with_that_of_the_option() {
    let json = run(&["diff", "2x(2c 1G)", "--machine", "2x(2c 2G)", "--json"]).json();
    assert_eq!(json["b"]["name"], "2x(2c 2G)");
    assert_eq!(json["differences"][0]["fact"], "memory_bytes");
    assert_eq!(json["differences"][0]["nodes"], "0-1");
    run(&["diff", "live", "live"]).ok();
}

#[test]
fn a_side_that_cannot_be_read_is_wrong_usage() {
    let check = |words: &[&str], start: &str| {
        let ran = run(words);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
        assert!(ran.stderr.starts_with(&format!("nodewise: {start}")), "{}", ran.stderr);
    };
    check(&["diff", "none.json", "live"], "none.json does not exist: expected live, ");
    check(&["diff", "live", "acpi:none"], "none");
    check(&["diff", "live", "--machine", "none.json"], "--machine: none.json does not exist");
    let empty = tempfile::tempdir().unwrap();
    fs::write(empty.path().join("x"), "").unwrap();
    let path = empty.path().join("x");
    check(&["diff", path.to_str().unwrap()], &format!("{} is empty: ", path.display()));
}
