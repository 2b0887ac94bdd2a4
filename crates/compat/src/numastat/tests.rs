use nodewise_source::tree::{Memory, ReadCause, Tree};
use proptest::prelude::{any, prop, prop_assert, proptest};

use super::*;
use crate::{Settings, Tool};

/// Runs numastat with these words; gives status, standard output and standard error.
fn answer(files: Memory, line: &str, settings: Settings) -> (u8, Vec<u8>, Vec<u8>) {
    let tree = Tree::memory(files);
    let args = line.split(' ').filter(|word| !word.is_empty()).map(Into::into).collect();
    let call = Call { settings, terminal: || None, ..Call::new(Tool::Numastat, args, &tree) };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let status = run(&call, &mut out, &mut err);
    (status, out, err)
}

fn check(files: Memory, line: &str, expected: (u8, &str, &str)) {
    let (status, out, err) = answer(files, line, Settings::default());
    let texts = (String::from_utf8_lossy(&out).into_owned(), String::from_utf8_lossy(&err).into_owned());
    assert_eq!((status, texts.0.as_str(), texts.1.as_str()), expected, "numastat {line}");
}

const NODES: &str = "/sys/devices/system/node";

fn node(files: Memory, node: u32) -> Memory {
    files.file(&format!("{NODES}/node{node}/numastat"), "numa_hit 256\nnuma_miss 0\n").file(
        &format!("{NODES}/node{node}/meminfo"),
        format!("Node {node} MemTotal: 2048 kB\nNode {node} HugePages_Total: 0\n"),
    )
}

fn process(files: Memory, pid: u32, name: &[u8], maps: &str) -> Memory {
    files
        .file(&format!("/proc/{pid}/comm"), [name, b"\n"].concat())
        .file(&format!("/proc/{pid}/cmdline"), [b"/bin/", name, b"\0--x\0"].concat())
        .file(&format!("/proc/{pid}/numa_maps"), maps)
}

const MAPS: &str = "7f default heap anon=256 N0=256 kernelpagesize_kB=4\n";

#[test]
fn who_cannot_be_read_is_named_and_the_others_are_shown() {
    let files = process(node(Memory::new(), 0), 7, b"seven", MAPS);
    let files = process(files, 9, b"nine", MAPS).unreadable("/proc/8/numa_maps", ReadCause::System(13));
    check(
        files,
        "-c 7 8 9 10",
        (
            1,
            "\nPer-node process memory usage (in MBs)\n\
             PID        Node 0 Total\n\
             ---------  ------ -----\n\
             7 (seven)       1     1\n\
             9 (nine)        1     1\n\
             ---------  ------ -----\n\
             Total           2     2\n",
            "Can't read /proc/8/numa_maps: Permission denied\n\
             Can't read /proc/10/numa_maps: No such file or directory\n",
        ),
    );
}

#[test]
fn a_process_that_is_gone_has_no_table_and_no_name() {
    let error = "Can't read /proc/10/numa_maps: No such file or directory\n";
    let title = "\nPer-node process memory usage (in MBs) for PID 10\n";
    check(node(Memory::new(), 0), "10", (1, title, error));
    let huge = "Can't read /proc/99999999999999999999/numa_maps: No such file or directory\n";
    check(node(Memory::new(), 0), "99999999999999999999", (1, "", huge));
}

#[test]
fn a_node_whose_file_is_missing_costs_one_column() {
    let files = node(node(Memory::new(), 0), 2).directory(&format!("{NODES}/node1"));
    let table = "                           node0           node2\n\
                 numa_hit                     256             256\n\
                 numa_miss                      0               0\n";
    let error = "cannot open /sys/devices/system/node/node1/numastat: No such file or directory\n";
    check(files, "", (1, table, error));
}

#[test]
fn a_line_that_does_not_parse_is_blank_and_told() {
    let files = node(Memory::new(), 0)
        .file(&format!("{NODES}/node1/numastat"), "numa_hit 99999999999999999999\nnuma_miss 3\n");
    let table = "                           node0           node1\n\
                 numa_hit                     256                \n\
                 numa_miss                      0               3\n";
    let error = "numastat: /sys/devices/system/node/node1/numastat:1: \
                 expected a name and a number, found \"numa_hit 99999999999999999999\"\n";
    check(files, "", (1, table, error));
}

#[test]
fn a_first_node_other_than_0_will_do() {
    let table = "                           node8\n\
                 numa_hit                     256\n\
                 numa_miss                      0\n";
    check(node(Memory::new(), 8), "", (0, table, ""));
}

#[test]
fn maps_that_were_cut_are_counted_as_far_as_they_go() {
    let files = process(node(Memory::new(), 0), 7, b"x", &format!("{MAPS}80 default huge N0=9 kernelpa"));
    let (status, out, err) = answer(files, "-c 7", Settings::default());
    assert_eq!(status, 1);
    assert!(String::from_utf8(out).unwrap().contains("Heap          1     1\n"));
    assert_eq!(
        String::from_utf8(err).unwrap(),
        "numastat: /proc/7/numa_maps:2: expected a whole line, found \"80 default huge N0=9 kernelpa\"\n"
    );
}

#[test]
fn pages_on_a_node_that_came_up_later_have_a_column() {
    let files = process(node(Memory::new(), 0), 7, b"x", "7f default N5=256 kernelpagesize_kB=4\n");
    let (_, out, _) = answer(files, "-c -z 7", Settings::default());
    assert!(String::from_utf8(out).unwrap().contains("         Node 5 Total\n"));
}

#[test]
fn names_and_patterns_are_written_without_their_escape_sequences() {
    let files = process(node(Memory::new(), 0), 7, b"a\x1b[31m\xff", MAPS);
    let (_, out, _) = answer(files.clone(), "7", Settings::default());
    assert!(String::from_utf8(out).unwrap().contains("for PID 7 (a\\x1b[31m\u{fffd})\n"));
    let (_, out, _) = answer(files.clone(), "\u{1b}[2J", Settings::default());
    assert!(
        String::from_utf8(out).unwrap().starts_with("Found no processes containing pattern: \"\\x1b[2J\"\n")
    );
    let strict = Settings { strict: true, ..Settings::default() };
    let (_, out, _) = answer(files, "7", strict);
    assert!(out.windows(13).any(|window| window == b"(a\x1b[31m\xff)\n   "), "strict is raw");
}

#[test]
fn a_pattern_is_a_piece_of_name_and_command_line() {
    let files = process(node(Memory::new(), 0), 7, b"seven", MAPS);
    let files = process(files, 9, b"nine", MAPS);
    let found = |pattern: &str| {
        let tree = Tree::memory(files.clone());
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let settings = Settings::default();
        let mut session = Session { tree: &tree, settings, out: &mut out, err: &mut err, incomplete: false };
        let chosen = process::choose(&mut session, &[pattern.into()]);
        chosen.pids.iter().map(|pid| pid.number()).collect::<Vec<_>>()
    };
    assert_eq!(found("ine"), [9]);
    assert_eq!(found("seven /bin/sev"), [7]);
    assert_eq!(found("--x"), [7, 9]);
    assert!(found("eleven").is_empty());
}

#[test]
fn pools_of_every_size_are_counted() {
    let pool = |files: Memory, kib: u32, count: u32| {
        files.file(&format!("{NODES}/node0/hugepages/hugepages-{kib}kB/nr_hugepages"), format!("{count}\n"))
    };
    let files = node(Memory::new(), 0)
        .file(&format!("{NODES}/node0/meminfo"), "Node 0 HugePages_Total: 4\n")
        .file("/proc/meminfo", "HugePages_Total: 4\nHugepagesize: 2048 kB\nHugetlb: 1056768 kB\n");
    let files = pool(pool(files, 2048, 4), 1_048_576, 1);
    let row = |settings| String::from_utf8(answer(files.clone(), "-mc", settings).1).unwrap();
    assert!(row(Settings::default()).contains("HugePages_Total    1032  1032\n"));
    let old = Settings { release: Release::V2_0_16, ..Settings::default() };
    assert!(row(old).contains("HugePages_Total       8     8\n"));
}

#[test]
fn json_says_what_the_tables_say() {
    let files = process(
        node(node(Memory::new(), 0), 1),
        7,
        b"a\x1b",
        "7f default stack N1=512 kernelpagesize_kB=4\n",
    );
    let files = files.unreadable("/proc/8/numa_maps", ReadCause::System(13));
    let json = |line: &str| -> serde_json::Value {
        serde_json::from_slice(&answer(files.clone(), line, Settings::default()).1).unwrap()
    };
    let whole = json("--json -m -n 7 8");
    assert_eq!(whole["schema"], "nodewise.numastat/1");
    assert_eq!(whole["nodes"], serde_json::json!([0, 1]));
    assert_eq!(
        whole["processes"],
        serde_json::json!([{"pid": 7, "name": "a\\x1b", "nodes": [
            {"node": 1, "huge_bytes": 0, "heap_bytes": 0, "stack_bytes": 2_097_152, "private_bytes": 0}
        ]}])
    );
    assert_eq!(whole["unreadable_pids"], serde_json::json!([8]));
    assert_eq!(whole["meminfo"][1]["MemTotal_bytes"], 2_097_152);
    assert_eq!(whole["counters"][0], serde_json::json!({"node": 0, "numa_hit": 256, "numa_miss": 0}));
    let text = String::from_utf8(answer(files.clone(), "-m -n -v 7", Settings::default()).1).unwrap();
    for row in [
        "Stack                        0.00            2.00",
        "MemTotal                    2.00            2.00",
        "Numa_Hit                    1.00            1.00",
    ] {
        assert!(text.contains(row), "{text}");
    }
    assert_eq!(
        json("--json").as_object().unwrap().keys().collect::<Vec<_>>(),
        ["counters", "nodes", "schema"]
    );
    assert_eq!(json("--json nobody")["processes"], serde_json::json!([]));
}

proptest! {
    #[test]
    fn any_files_are_shown_or_told_without_a_panic_and_never_raw(
        numastat in any::<Vec<u8>>(),
        meminfo in r"(Node [01] [A-Za-z_()]{1,9}: {1,4}[0-9]{0,21}( kB)?\n){0,5}",
        maps in r"([0-9a-f]{1,5} default( (heap|stack|huge|N[0-9]{1,5}=[0-9]{1,21}|kernelpagesize_kB=[0-9]{1,21})){0,4}\n?){0,5}",
        name in prop::collection::vec(1u8.., 1..16),
        line in r"(-[cmnsvz]{1,3} )?(-s[0-9]{1,3} )?(7|8|a)?( 9)?( --json)?",
    ) {
        let files = process(node(Memory::new(), 0), 7, &name, &maps)
            .file(&format!("{NODES}/node1/numastat"), numastat)
            .file(&format!("{NODES}/node1/meminfo"), meminfo);
        let (_, out, err) = answer(files, &line, Settings::default());
        for text in [out, err] {
            let text = String::from_utf8(text).unwrap();
            prop_assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
        }
    }
}
