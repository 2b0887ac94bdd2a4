//! The four questions, answered in the first lines: does it fall back or die, what becomes of the page cache, who is killed,
//! when does swapping start.

use serde_json::{Value, json};

use super::process::{NUMA_MAPS, capture};
use super::{json, number};
use crate::nodewise::{command, output, run, wider};

/// A database server full of page cache.
const SERVER: &str = "2x(32c 384G free=6G cache=300G); swap=16G";

/// The words and the figures of the answers, which text and JSON have first.
fn check(machine: &str, words: &[&str], summary: &str, expected: Value) {
    let words = [&["explain", "--machine", machine, "--cpu-node=0"][..], words].concat();
    let document = json(&words);
    let answers = &document["answers"];
    assert_eq!(answers["summary"], summary, "{words:?}");
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(answers[field], *value, "{field} of {words:?}: {answers}");
    }
    let text = run(&words).ok();
    let head: Vec<&str> = text.split("\n\n").next().unwrap().split_whitespace().collect();
    assert_eq!(head.join(" "), summary);
    for columns in [60, 80, 120] {
        let text = output(command(words.clone()).env("COLUMNS", columns.to_string())).ok();
        assert_eq!(wider(&text, columns), [""; 0], "{words:?}");
    }
}

#[test]
fn a_request_that_fits_changes_nothing() {
    check(
        SERVER,
        &["bind:1", "--size=4G"],
        "No fallback, and no process is killed: node 1 gives all 4 GiB. Page cache stays, and nothing is swapped.",
        json!({ "verdict": "survives", "page_cache": "kept", "swapping": "no", "falls_back_to_nodes": null }),
    );
    check(
        "2x(2x(12c 32G)); dist=11,20",
        &["preferred:2", "--size=80G"],
        "Falls back to nodes 0,3 after 31.9 GiB; no process is killed. Page cache stays, and nothing is swapped.",
        json!({ "verdict": "survives", "falls_back_to_nodes": "0,3", "falls_back_after_pages": 8_371_772 }),
    );
}

#[test]
fn turns_fall_back_where_a_node_is_full() {
    check(
        "(4c 4G) (4c 8G); swap=0",
        &["interleave:all", "--size=10G"],
        "Falls back to node 1 after 7.9 GiB; no process is killed. Page cache stays, and nothing is swapped.",
        json!({ "falls_back_to_nodes": "1", "swapping": "no" }),
    );
}

#[test]
fn page_cache_and_swap_have_their_moments() {
    check(
        SERVER,
        &["bind:1", "--size=20G"],
        "No fallback, and no process is killed: node 1 gives all 20 GiB. The kernel drops up to 14.1 GiB of page cache and \
         slab; swapping may start after 5.6 GiB.",
        json!({ "verdict": "survives", "page_cache": "dropped", "swapping": "possible" }),
    );
    check(
        SERVER,
        &["bind:1", "--size=310G"],
        "No fallback, and no process is killed: node 1 gives all 310 GiB. The kernel drops 288.1 GiB to 300 GiB of page \
         cache and slab; swapping starts after 5.6 GiB at the earliest and after 305.9 GiB at the latest.",
        json!({ "verdict": "survives", "swapping": "certain" }),
    );
    check(
        "2x(32c 384G free=6G cache=300G)",
        &["bind:1", "--size=5800M"],
        "No fallback, and no process is killed: node 1 gives all 5.7 GiB. Some page cache may be dropped; swapping, if \
         there is swap, may start after 5.6 GiB.",
        json!({ "page_cache": "may_be_dropped", "swapping": "unknown" }),
    );
}

#[test]
fn a_process_that_is_killed_is_the_first_word() {
    check(
        "2x(32c 384G free=6G); swap=0",
        &["bind:1", "--size=20G"],
        "A process is killed: 14.1 GiB find no room, and the policy allows node 1 alone. Which one depends on the sizes and \
         oom_score_adj of the processes, which this machine does not name; the program itself has 6 GiB then. There is no \
         page cache to drop; there is no swap.",
        json!({ "verdict": "killed", "page_cache": "none", "swapping": "no_swap" }),
    );
    check(
        "3x(4c 8G)",
        &["default", "--allowed=0-1", "--size=20G"],
        "Falls back to node 1 after 7.9 GiB; whether a process is killed is open: up to 4.1 GiB may find no room, and the \
         cpuset allows nodes 0-1 alone. If so, which one depends on the sizes and oom_score_adj of the processes, which this \
         machine does not name; the program itself has 15.9 GiB to 20 GiB then. There is no page cache to drop; swapping, if there is swap, may start after 15.9 \
         GiB.",
        json!({ "verdict": "open", "falls_back_to_nodes": "1" }),
    );
}

/// Whoever takes all there is dies in the end, at the moment at which each size begins to be too large.
#[test]
fn without_a_size_the_moments_are_those_of_the_sizes() {
    check(
        SERVER,
        &["bind:1"],
        "No fallback; a process is killed after 321.5 GiB to 321.9 GiB, as the policy allows node 1 alone. Which one \
         depends on the sizes and oom_score_adj of the processes, which this machine does not name; the program itself has \
         322.1 GiB to 322.6 GiB then. The kernel drops \
         299.6 GiB to 300 GiB of page cache and slab; swapping starts after 5.6 GiB at the earliest and after 305.9 GiB at \
         the latest.",
        json!({ "verdict": "killed", "swapping": "certain" }),
    );
    let of = |size: &str| json(&["explain", "--machine", SERVER, "--cpu-node=0", "bind:1", size]);
    let verdict = |size: &str| of(size)["answers"]["verdict"].clone();
    assert_eq!([verdict("--size=321G"), verdict("--size=322G")], ["survives", "killed"]);
    let start = |size: &str| number(&of(size)["answers"]["swapping_after_pages"], "least");
    assert_eq!(start("--size=20G"), start("--size=400G"));
}

/// A capture with processes: numbers, names, MiB in memory, `oom_score_adj`, the policy of the thread.
fn with_processes(processes: &[(u32, &str, u64, i32, &str)], settings: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = capture(NUMA_MAPS);
    let file = |path: &str, text: &str| {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    for (pid, name, mebibytes, adjustment, policy) in processes {
        let stat = format!("{pid} (x) S {}100 0 0 {}3 0 0 0\n", "1 ".repeat(18), "0 ".repeat(14));
        let status = format!(
            "Name:\t{name}\nVmRSS:\t{} kB\nVmSwap:\t0 kB\nVmPTE:\t0 kB\nMems_allowed_list:\t0-1\n",
            mebibytes << 10
        );
        file(&format!("proc/{pid}/status"), &status);
        file(&format!("proc/{pid}/oom_score_adj"), &format!("{adjustment}\n"));
        file(&format!("proc/{pid}/task/{pid}/stat"), &stat);
        file(&format!("proc/{pid}/task/{pid}/maps"), "5000-9000 r--p 00000000 fe:00 1 /bin/x\n");
        file(
            &format!("proc/{pid}/task/{pid}/numa_maps"),
            &format!("5000 {policy} file=/bin/x mapped=1 N0=1\n"),
        );
    }
    settings.iter().for_each(|(path, text)| file(path, text));
    folder
}

/// The processes that may be killed, by number, 0 for the program itself, and the next.
fn killed(folder: &tempfile::TempDir, words: &[&str]) -> (Value, Vec<u64>, Option<u64>) {
    let words = [&["explain", "--machine", folder.path().to_str().unwrap()][..], words].concat();
    let answers = json(&words)["answers"].clone();
    let killed = &answers["killed"];
    let pid = |victim: &Value| if victim["asks"] == true { 0 } else { number(victim, "pid") };
    let worst = killed["worst"].as_array().into_iter().flatten().map(pid).collect();
    let next = Some(&killed["next"]).filter(|next| !next.is_null()).map(pid);
    for columns in [60, 120] {
        let text = output(command(words.clone()).env("COLUMNS", columns.to_string())).ok();
        assert_eq!(wider(&text, columns), [""; 0], "{words:?}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }
    (answers, worst, next)
}

#[test]
fn the_process_that_is_killed_is_named() {
    let all = |large: &'static str, adjustment| {
        [
            (20, "small", 100, 0, "default"),
            (21, "large\u{1b}[2J", 3600, 0, large),
            (22, "third", 1000, adjustment, "default"),
        ]
    };
    let bound = ["bind:1", "--size=4G"];
    // 2 GiB are free and 1 GiB is page cache; the large one is bound to the other node.
    let (answers, worst, next) = killed(&with_processes(&all("bind:0", 0), &[]), &bound);
    assert_eq!((worst, next), (vec![0], Some(22)), "{answers}");
    let summary = answers["summary"].as_str().unwrap();
    assert!(
        summary.contains("The kernel kills the program itself (")
            && summary.contains("next is process 22 third")
    );
    let share = &answers["killed"]["worst"][0]["badness_per_mille"];
    // All of the node counts, to which it is bound.
    assert!((740..760).contains(&number(share, "most")), "{share}");
    // Of a node's 4 GiB six tenths are 2.4 GiB.
    let (answers, worst, next) = killed(&with_processes(&all("bind:0", 600), &[]), &bound);
    assert_eq!((worst, next), (vec![22], Some(0)), "{answers}");
    let (answers, worst, _) = killed(&with_processes(&all("default", 0), &[]), &bound);
    assert_eq!(worst, [21], "{answers}");
    // Without a policy no policy protects, and all memory of the machine counts.
    let (answers, worst, _) = killed(&with_processes(&all("bind:0", 0), &[]), &["default", "--size=9G"]);
    assert_eq!(worst, [0], "{answers}");
}

#[test]
fn processes_that_are_about_as_large_are_all_named() {
    let folder = with_processes(&[(20, "a", 3000, 0, "default"), (21, "b", 2000, 0, "default")], &[]);
    let (answers, worst, next) = killed(&folder, &["bind:1", "--size=4G"]);
    assert_eq!((worst, next), (vec![0, 20], None), "{answers}");
    assert!(answers["summary"].as_str().unwrap().contains("which are too close to say"), "{answers}");
}

#[test]
fn settings_of_the_oom_killer_count() {
    let processes = [(20, "a", 3900, 0, "default"), (21, "b", 2000, -1000, "default")];
    let with = |name: &str, value: &str, words: &[&str]| {
        let path = format!("proc/sys/vm/{name}");
        killed(&with_processes(&processes, &[(&path, value)]), words)
    };
    let bound = ["bind:1", "--size=4G"];
    assert_eq!(with("panic_on_oom", "2\n", &bound).0["killed"]["kind"], "panic");
    assert_eq!(with("panic_on_oom", "1\n", &bound).1, [20]);
    assert_eq!(with("panic_on_oom", "1\n", &["default", "--size=9G"]).0["killed"]["kind"], "panic");
    assert_eq!(with("oom_kill_allocating_task", "1\n", &bound).1, [0]);
}

#[test]
fn on_a_running_machine_some_process_is_named() {
    let answers = json(&["explain", "--size=1000T"])["answers"].clone();
    let killed = &answers["killed"];
    assert!(
        killed["kind"] == "process" && killed["worst"][0]["size_pages"]["most"].as_u64() > Some(0),
        "{answers}"
    );
}
