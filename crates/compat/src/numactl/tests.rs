//! Cases beyond the recorded outputs of the originals: captures, JSON, our own additions.

use super::*;
use crate::Tool;
use crate::kernel::Captured;
use crate::release::Settings;
use nodewise_source::tree::{Memory, Tree};

/// Two nodes with a CPU each; the process of the capture may use CPU 1 and both nodes.
fn tree() -> Tree {
    let node = |id: u32, cpus: &str| {
        let meminfo = format!("Node {id} MemTotal: 2048 kB\nNode {id} MemFree: 1024 kB\n");
        (format!("/sys/devices/system/node/node{id}"), cpus.to_owned(), meminfo)
    };
    let mut files = Memory::new()
        .file("/sys/devices/system/cpu/present", "0-1\n")
        .file("/proc/self/status", "Cpus_allowed:\t2\nMems_allowed:\t3\n");
    for (folder, cpus, meminfo) in [node(0, "1"), node(1, "2")] {
        files = files
            .file(&format!("{folder}/cpumap"), cpus)
            .file(&format!("{folder}/meminfo"), meminfo)
            .file(&format!("{folder}/distance"), "10 10\n");
    }
    Tree::memory(files)
}

fn run_on(tree: &Tree, words: &str) -> (u8, String, String) {
    let args = words.split_whitespace().map(OsString::from).collect();
    let call = Call { settings: Settings::default(), ..Call::new(Tool::Numactl, args, tree) };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let status = run(&call, &Captured(tree), &mut out, &mut err);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status, text(out), text(err))
}

fn check(words: &str, status: u8, stdout: &str, stderr: &str) {
    assert_eq!(run_on(&tree(), words), (status, stdout.to_owned(), stderr.to_owned()), "{words}");
}

#[test]
fn a_capture_shows_the_process_that_made_it() {
    check(
        "--show",
        0,
        "policy: default\npreferred node: current\nphyscpubind: 1 \ncpubind: 1 \nnodebind: 1 \n\
         membind: 0 1 \npreferred: \n",
        "",
    );
}

#[test]
fn nothing_can_be_set_in_a_capture() {
    check(
        "-m 0 true",
        1,
        "",
        "set_mempolicy: Operation not supported\nsetting membind: Operation not supported\n",
    );
    check("-C 1 true", 1, "", "sched_setaffinity: Operation not supported\n");
    check("true", 1, "", "numactl: execution of `true': unsupported\n\n");
    let shared = "numactl: shared memory: Operation not supported\n";
    check("-L 4k -f /nosuch/file -m 0", 1, "", shared);
    check("-L 4k -S /nosuch/file -m 0", 1, "", shared);
}

#[test]
fn json_says_what_the_text_says() {
    let (status, text, _) = run_on(&tree(), "--json --show");
    let shown: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(status, 0);
    assert_eq!(shown["policy"], "default");
    assert_eq!(shown["cpus"], serde_json::json!([1]));
    assert_eq!(shown["cpu_nodes"], serde_json::json!([1]));
    assert_eq!(shown["memory_nodes"], serde_json::json!([0, 1]));
    let (_, text, _) = run_on(&tree(), "--hardware --json");
    let shown: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(shown["nodes"][1]["free_bytes"], 1 << 20);
}

#[test]
fn every_option_is_in_the_usage_text_but_the_deprecated_one() {
    for release in [Release::V2_0_16, Release::V2_0_19] {
        let longs = options::longs(Settings { release, ..Settings::default() });
        let spec = options::spec(release, &longs);
        for long in spec.longs.iter().filter(|long| long.name != "cpubind") {
            assert!(USAGE.contains(&format!("--{}", long.name)), "{}", long.name);
            let letter = spec.shorts.iter().find(|short| short.letter == long.value);
            assert!(letter.is_none_or(|short| short.argument == long.argument), "{}", long.name);
        }
    }
}

#[test]
fn escape_sequences_in_arguments_do_not_reach_the_terminal() {
    for words in
        ["-m \u{1b}[2J true", "-C \u{1b}[2J true", "\u{1b}[2J", "--\u{1b}[2J", "-f /nosuch/\u{1b}[2J"]
    {
        let (_, out, err) = run_on(&tree(), words);
        assert!(!out.contains('\u{1b}') && !err.contains('\u{1b}'), "{words:?}: {out:?} {err:?}");
    }
}
