//! Limits of control groups: those of a process, of its groups above, and one that is typed.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::process::{NUMA_MAPS, capture};
use super::{json, number};
use crate::nodewise::{command, output, run, wider};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// The process of a capture in a group below a slice, whose node 1 has 2 GiB free and 1 GiB of page cache. Files of groups are
/// named below the hierarchy.
fn in_groups(files: &[(&str, String)]) -> tempfile::TempDir {
    let folder = capture(NUMA_MAPS);
    write(folder.path(), "proc/mounts", "none /sys/fs/cgroup cgroup2 rw 0 0\n");
    write(folder.path(), "proc/7/cgroup", "0::/web.slice/api\n");
    for (path, text) in files {
        write(folder.path(), &format!("sys/fs/cgroup/{path}"), text);
    }
    folder
}

fn write(folder: &Path, path: &str, text: &str) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// The slice has `max`. 2 GiB are charged to it: 256 MiB are files, 64 MiB of them mapped.
fn slice(max: u64) -> Vec<(&'static str, String)> {
    let stat = format!("inactive_file {}\nfile_mapped {}\n", 256 * MIB, 64 * MIB);
    vec![
        ("web.slice/memory.max", format!("{max}\n")),
        ("web.slice/memory.current", format!("{}\n", 2 * GIB)),
        ("web.slice/memory.stat", stat),
        ("web.slice/memory.swap.max", "max\n".to_owned()),
        ("web.slice/api/memory.max", "max\n".to_owned()),
        ("web.slice/api/memory.current", format!("{}\n", GIB)),
    ]
}

fn explained(folder: &tempfile::TempDir, words: &[&str]) -> Value {
    let machine = folder.path().to_str().unwrap();
    let words = [&["--machine", machine, "explain", "--pid", "7"], words].concat();
    for columns in [60, 120] {
        let text = output(command(words.clone()).env("COLUMNS", columns.to_string())).ok();
        assert_eq!(wider(&text, columns), [""; 0], "{words:?}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }
    json(&words)
}

/// Pages of a program that may be charged so much: a page table for 512 of them is charged, too.
fn below(charged: u64) -> u64 {
    let pages = charged >> 12;
    pages - pages.div_ceil(513)
}

fn summary(document: &Value) -> &str {
    document["answers"]["summary"].as_str().unwrap()
}

#[test]
fn a_group_above_the_own_one_ends_the_process_while_nodes_have_memory() {
    let folder = in_groups(&slice(3 * GIB));
    let document = explained(&folder, &["--size=2G"]);
    assert_eq!(
        summary(&document),
        "No fallback; a process of group /web.slice is killed after 1.2 GiB, by its memory.max of 3 GiB, while nodes 0-1 have \
         3 GiB free. Which one depends on the sizes and oom_score_adj of the processes, which this machine does not name; \
         the program itself has 1.2 GiB to 1.3 GiB then. The kernel drops 192 MiB to 256 MiB of page cache and slab inside group \
         /web.slice; nothing can be swapped."
    );
    let group = &document["answers"]["group"];
    assert_eq!((&group["verdict"], &group["max"]["group"]), (&"killed".into(), &"/web.slice".into()));
    // 1 GiB less its page tables needs no reclaim, and only that comes from the nodes.
    let free = below(GIB);
    assert_eq!(number(group, "reclaims_after_pages"), free);
    let room = &group["max"]["room_pages"];
    assert_eq!(
        (number(room, "least"), number(room, "most")),
        (below(GIB + 192 * MIB), below(GIB + 256 * MIB))
    );
    let taken: u64 = document["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| number(node, "free_before_pages") - number(node, "free_after_pages"))
        .sum();
    assert_eq!(taken, free);
    assert!(document["out_of_memory"].is_null());
    assert_eq!(document["control_groups"].as_array().unwrap().len(), 1, "{document}");
}

#[test]
fn a_request_below_the_limits_says_how_much_is_left() {
    let folder = in_groups(&slice(3 * GIB));
    let document = explained(&folder, &["--size=1000M"]);
    assert_eq!(
        summary(&document),
        "No fallback, and no process is killed: node 1 gives all 1000 MiB. Page cache stays, and nothing is swapped. \
         Group /web.slice may have 1.2 GiB more (memory.max of 3 GiB)."
    );
    assert!(document["answers"]["group"].is_null());
    // Between what is free and what can be reclaimed.
    let reclaimed = explained(&folder, &["--size=1100M"]);
    assert!(
        summary(&reclaimed).starts_with(
            "No fallback, and no process is killed: group /web.slice meets its memory.max of 3 GiB after 1022 MiB. The kernel \
             drops 78 MiB of page cache"
        ),
        "{reclaimed}"
    );
    let open = explained(&folder, &["--size=1250M"]);
    assert_eq!(open["answers"]["verdict"], "open");
    assert!(summary(&open).contains("whether a process of group /web.slice is killed is open"), "{open}");
}

#[test]
fn the_node_ends_the_request_where_it_has_less_than_the_group() {
    let folder = in_groups(&slice(8 * GIB));
    let document = explained(&folder, &["--size=4G"]);
    let words = summary(&document);
    assert!(words.starts_with("A process is killed: 1 GiB"), "{words}");
    assert!(words.ends_with("Group /web.slice may have 6.2 GiB more (memory.max of 8 GiB)."), "{words}");
    assert!(document["answers"]["group"].is_null());
    // What the node drops makes room until the group has its limit.
    let folder = in_groups(&slice(4800 * MIB));
    let both = explained(&folder, &["--size=4G"]);
    assert_eq!(
        (&both["answers"]["verdict"], &both["answers"]["group"]["verdict"]),
        (&"killed".into(), &"killed".into())
    );
    assert_eq!(both["out_of_memory"]["relief"]["verdict"], "survives", "{both}");
}

#[test]
fn a_soft_limit_slows_down_and_kills_none() {
    let mut files = slice(5 * GIB);
    files.push(("web.slice/api/memory.high", format!("{}\n", 1536 * MIB)));
    let document = explained(&in_groups(&files), &["--size=1900M"]);
    let answers = &document["answers"];
    assert_eq!((&answers["verdict"], &answers["group"]["verdict"]), (&"survives".into(), &"survives".into()));
    assert_eq!(
        summary(&document),
        "No fallback, and no process is killed: group /web.slice/api meets its memory.high of 1.5 GiB after 511 MiB. Inside \
         group /web.slice/api the kernel has no page cache to drop; nothing can be swapped. The memory.high of 1.5 GiB of \
         group /web.slice/api slows its programs down after 511 MiB, and kills none."
    );
    assert_eq!(answers["group"]["slowed_by"]["file"], "memory.high");
}

#[test]
fn swap_makes_room_as_far_as_the_group_may_swap() {
    let with = |swap_max: &str| {
        let mut files = slice(3 * GIB);
        files.retain(|(path, _)| *path != "web.slice/memory.swap.max");
        files.push(("web.slice/memory.swap.max", format!("{swap_max}\n")));
        let folder = in_groups(&files);
        write(
            folder.path(),
            "proc/meminfo",
            "MemTotal: 8388608 kB\nSwapTotal: 4194304 kB\nSwapFree: 4194304 kB\n",
        );
        explained(&folder, &["--size=2G"])["answers"].clone()
    };
    assert_eq!(with("0")["verdict"], "killed");
    assert_eq!(with("max")["verdict"], "survives");
    let small = with(&(128 * MIB).to_string());
    assert_eq!(number(&small["group"]["max"]["room_pages"], "least"), below(GIB + 320 * MIB));
}

#[test]
fn the_process_of_the_group_that_is_killed_is_named() {
    let process = |folder: &tempfile::TempDir, pid: u32, name: &str, mebibytes: u64, group: &str| {
        let status = format!("Name:\t{name}\nVmRSS:\t{} kB\nVmSwap:\t0 kB\nVmPTE:\t0 kB\n", mebibytes << 10);
        write(folder.path(), &format!("proc/{pid}/status"), &status);
        write(folder.path(), &format!("proc/{pid}/oom_score_adj"), "0\n");
        write(folder.path(), &format!("proc/{pid}/cgroup"), &format!("0::{group}\n"));
    };
    let mut files = slice(3 * GIB);
    files.push(("web.slice/memory.oom.group", "1\n".to_owned()));
    let folder = in_groups(&files);
    process(&folder, 20, "outside", 3000, "/other.slice");
    process(&folder, 21, "beside", 2000, "/web.slice/other");
    process(&folder, 22, "above", 500, "/web.slice");
    let killed = |document: &Value| {
        let killed = &document["answers"]["killed"];
        (
            killed["worst"][0]["pid"].as_u64(),
            killed["next"]["pid"].as_u64(),
            killed["worst"][0]["badness_per_mille"].clone(),
        )
    };
    let document = explained(&folder, &["--size=2G"]);
    let (worst, next, badness) = killed(&document);
    // Of the group's 3 GiB, with no swap.
    assert_eq!((worst, next), (Some(21), None), "{document}");
    assert!((600..=700).contains(&number(&badness, "least")), "{badness}");
    assert!(
        summary(&document).contains("With it all others of group /web.slice are killed (memory.oom.group).")
    );
}

#[test]
fn files_of_groups_that_are_wrong_are_errors_and_missing_ones_are_named() {
    let folder = in_groups(&[("web.slice/memory.max", "lots\u{1b}[2J\n".to_owned())]);
    let words = ["--machine", folder.path().to_str().unwrap(), "explain", "--pid=7"];
    let ran = run(&words);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), ""));
    assert!(
        ran.stderr.contains("/sys/fs/cgroup/web.slice/memory.max:1: ") && !ran.stderr.contains('\u{1b}'),
        "{}",
        ran.stderr
    );
    let outside = in_groups(&[]);
    write(outside.path(), "proc/7/cgroup", "0::/../other\n");
    let document = explained(&outside, &[]);
    assert_eq!(document["control_groups_unknown"], "the groups of the process cannot be seen from here");
    // A group without a limit is another thing than one that cannot be seen.
    let free = in_groups(&[("web.slice/memory.max", "max\n".to_owned())]);
    let text = run(&["--machine", free.path().to_str().unwrap(), "explain", "--pid=7"]).ok();
    assert!(text.contains("Control groups  none limits its memory"), "{text}");
    assert!(explained(&free, &[])["control_groups_unknown"].is_null());
    // Without the size of the group its room is open.
    let mut files = slice(3 * GIB);
    files.retain(|(path, _)| *path != "web.slice/memory.current");
    let document = explained(&in_groups(&files), &["--size=2G"]);
    assert_eq!(document["answers"]["group"]["verdict"], "open", "{document}");
    assert_eq!(document["answers"]["group"]["reclaims_after_pages"], 0);
}

#[test]
fn a_limit_that_is_typed_is_that_of_a_container() {
    let of =
        |words: &[&str]| json(&[&["explain", "--machine", "2x(12c 64G)", "--cpu-node=0"], words].concat());
    let document = of(&["--size=10G", "--limit=8G", "--swap=0"]);
    assert_eq!(
        summary(&document),
        "No fallback; a process of the container is killed after 8 GiB, by its memory.max of 8 GiB, while nodes 0-1 have \
         120 GiB free. The kernel kills the program itself (8 GiB, badness 1000 of 1000). Inside the container the \
         kernel has no page cache to drop; nothing can be swapped."
    );
    let open = of(&["--size=10G", "--limit=8G"]);
    assert_eq!(open["answers"]["verdict"], "open");
    assert!(summary(&open).contains("leaves room for 8 GiB (with swap later)"), "{open}");
    assert!(open["answers"]["group"]["max"]["room_pages"]["most"].is_null());
    let all = of(&["--limit=8G", "--swap=2G"]);
    assert!(
        summary(&all).starts_with("No fallback; a process of the container is killed after 10 GiB, by its"),
        "{all}"
    );
    let csv =
        run(&["explain", "--machine=2x(12c 64G)", "--cpu-node=0", "--size=10G", "--limit=8G", "--csv"]).ok();
    let pages = |line: &str| line.split(',').nth(4).and_then(|pages| pages.parse::<u64>().ok());
    assert!(csv.lines().last().unwrap().starts_with(",,,group,"), "{csv}");
    assert_eq!(csv.lines().filter_map(pages).sum::<u64>(), 10 << 18, "{csv}");
    // A bound program may come to the end of its node before.
    let bound = of(&["bind:1", "--size=90G", "--limit=80G", "--swap=0"]);
    assert_eq!((&bound["answers"]["verdict"], &bound["answers"]["group"]), (&"killed".into(), &Value::Null));
    let cache = of(&["--kind=cache", "--size=10G", "--limit=8G", "--swap=0"]);
    assert_eq!(cache["answers"]["verdict"], "survives", "{cache}");
    let refused = |words: &[&str], expected: &str| {
        let ran = run(&[&["explain"], words].concat());
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    };
    refused(&["--limit=0"], "--limit: 0 B leaves no room");
    refused(&["--limit=many"], "--limit");
    refused(&["--limit=8G", "--pid=1"], "--limit");
}
