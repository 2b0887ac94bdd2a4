//! Arguments may hold anything: escape sequences, bytes that are not UTF-8, absurd numbers. Each tool
//! refuses them, in words that drive no terminal.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

use nodewise_compat::{Call, Settings, Tool, run};
use nodewise_source::tree::{Memory, Tree};

/// Two nodes, and a process with a hostile name whose mappings cannot be read any more.
fn tree() -> Tree {
    let mut files = Memory::new()
        .file("/sys/devices/system/cpu/present", "0-1\n")
        .file("/proc/self/status", "Cpus_allowed:\t3\nMems_allowed:\t3\n")
        .file("/proc/7/comm", b"seven\x1b[31m\xff\n")
        .file("/proc/7/cmdline", b"/bin/\x1b]0;title\x07\0");
    for (node, cpu) in [(0, 1), (1, 2)] {
        let folder = format!("/sys/devices/system/node/node{node}");
        files = files
            .file(&format!("{folder}/cpumap"), format!("{cpu}\n"))
            .file(&format!("{folder}/meminfo"), format!("Node {node} MemTotal: 2048 kB\n"))
            .file(&format!("{folder}/numastat"), "numa_hit 1\n")
            .file(&format!("{folder}/distance"), "10 10\n");
    }
    Tree::memory(files)
}

/// Runs a tool with words that it must refuse.
fn check(tool: Tool, words: &[&[u8]]) {
    let tree = tree();
    for strict in [false, true] {
        // numastat's strict answer to a pattern is the original's, with its bytes.
        if strict && tool == Tool::Numastat {
            continue;
        }
        let args = words.iter().map(|word| OsString::from_vec(word.to_vec())).collect();
        let settings = Settings { strict, ..Settings::default() };
        let program = OsString::from_vec(b"tool\x1b[2J\xff".to_vec());
        let call = Call { settings, program, explains: || true, ..Call::new(tool, args, &tree) };
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let status = run(&call, &mut out, &mut err);
        let shown: Vec<_> = words.iter().map(|word| String::from_utf8_lossy(word)).collect();
        assert_ne!(status, 0, "{tool:?} {shown:?} (strict: {strict})");
        for bytes in [&out, &err] {
            let text = std::str::from_utf8(bytes).expect("what is written is text");
            let is_raw = |c: char| c.is_control() && c != '\n' && c != '\t';
            assert!(!text.chars().any(is_raw), "{tool:?} {shown:?} (strict: {strict}): {text:?}");
        }
        assert!(!out.is_empty() || !err.is_empty(), "{tool:?} {shown:?} (strict: {strict}) says nothing");
    }
}

/// Words that no tool has a use for.
const HOSTILE: [&[u8]; 6] =
    [b"\x1b[2J", b"\xff\xfe\x1b", b"\x07\r\x08", b"\xc2\x9b31m", "\u{202e}7\u{85}".as_bytes(), b"\x7f"];

#[test]
fn numactl_refuses_hostile_words_in_every_place() {
    for word in HOSTILE {
        for option in ["-m", "-N", "-C", "-i", "-p", "-P", "-w", "-L", "-o", "-M"] {
            check(Tool::Numactl, &[option.as_bytes(), word, b"true"]);
        }
        for option in ["-S", "-f"] {
            check(Tool::Numactl, &[option.as_bytes(), &[b"/nosuch/", word].concat()]);
        }
        for kind in ["netdev:", "block:", "file:/nosuch/", "pci:", "0,", "0-", "!", "+", "same"] {
            check(Tool::Numactl, &[b"-m", &[kind.as_bytes(), word].concat(), b"true"]);
        }
        check(Tool::Numactl, &[&[b"-", word].concat()]);
        check(Tool::Numactl, &[&[b"--", word].concat()]);
    }
    for number in ["99999999999999999999", "0-18446744073709551615", "4294967296", "-1"] {
        check(Tool::Numactl, &[b"-m", number.as_bytes(), b"true"]);
        check(Tool::Numactl, &[b"-C", number.as_bytes(), b"true"]);
    }
}

#[test]
fn numastat_refuses_hostile_words_and_names_who_has_gone() {
    for word in HOSTILE {
        check(Tool::Numastat, &[&[b"-", word].concat()]);
        check(Tool::Numastat, &[&[b"--", word].concat()]);
        check(Tool::Numastat, &[b"-p", b"99999999999999999999", word]);
    }
    // The process ends between the look at its name and that at its mappings.
    check(Tool::Numastat, &[b"-p", b"seven"]);
    check(Tool::Numastat, &[b"-p", b"7"]);
}

#[test]
fn the_others_refuse_hostile_words_before_they_do_anything() {
    for word in HOSTILE {
        check(Tool::Migratepages, &[word, b"0", b"1"]);
        check(Tool::Migratepages, &[b"1", word, b"1"]);
        check(Tool::Migratepages, &[b"1", b"0", word]);
        check(Tool::Migratepages, &[&[b"-", word].concat()]);
        check(Tool::Migspeed, &[word, b"0"]);
        check(Tool::Migspeed, &[b"0", word]);
        check(Tool::Migspeed, &[&[b"-", word].concat(), b"0", b"0"]);
        check(Tool::Memhog, &[word]);
        check(Tool::Memhog, &[b"1k", word]);
        check(Tool::Memhog, &[b"1k", b"membind", word]);
        check(Tool::Memhog, &[&[b"-f/nosuch/", word].concat(), b"1k"]);
    }
    check(Tool::Migratepages, &[b"99999999999999999999", b"0", b"1"]);
}
