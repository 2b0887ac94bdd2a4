//! `nodewise latency`: figures for what can be measured, a reason for what cannot, and an end on Ctrl-C.

use std::fs;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::nodewise::{Ran, a_memory_node, command, missing, output, run, wider};
use crate::sandbox::{ENOSYS, EPERM, can_contain, filtered, without_move_pages};

/// Small enough for any machine, and so quick that nothing has to be waited for.
const SMALL: [&str; 4] = ["--quick", "--size=1M", "--huge=never", "--seed=1"];

fn measured(more: &[&str]) -> Value {
    run(&[&["latency", "--json"], &SMALL[..], more].concat()).ok_json()
}

fn cells(document: &Value) -> &Vec<Value> {
    document["cells"].as_array().expect("a document has cells")
}

#[test]
fn every_cell_of_this_machine_is_measured_where_it_says_or_says_why_not() {
    let document = measured(&[]);
    assert_eq!(document["schema"], "nodewise.latency/1");
    assert_eq!(document["size_bytes"], 1 << 20);
    assert!(!cells(&document).is_empty());
    for cell in cells(&document) {
        let Some(median) = cell["median_ns"].as_f64() else {
            let is_refused = cell["refused"].as_str().is_some_and(|why| !why.is_empty());
            assert!(is_refused || document["left_out"].is_object(), "{cell}");
            continue;
        };
        assert!(median > 0.0 && cell["best_ns"].as_f64().unwrap() <= median, "{cell}");
        // A machine that is too busy for six rounds in time says that some are left out.
        assert!(cell["rounds"] == 6 || document["left_out"].is_object(), "{cell}");
        for moment in ["placed_before", "placed_after"] {
            assert_eq!(cell[moment]["pages_on_node"], cell[moment]["pages"], "{cell}");
        }
    }
}

#[test]
fn a_result_is_shown_again_in_every_form() {
    let folder = tempfile::tempdir().unwrap();
    let (result, picture) = (folder.path().join("a.json"), folder.path().join("a.svg"));
    let ran = run(&[&["latency", "--json"], &SMALL[..]].concat());
    let document = ran.json();
    let text = ran.ok();
    fs::write(&result, &text).unwrap();
    let from = format!("--from={}", result.display());
    let again = |more: &[&str]| run(&[&["latency", &from], more].concat()).ok();
    assert_eq!(again(&["--json"]), text);
    let lines = again(&["--csv"]);
    assert_eq!(lines.lines().count(), 1 + cells(&document).len());
    assert!(lines.starts_with("from_node,cpus,memory_node,pages,median_ns,"), "{lines}");
    let shown = again(&["--svg", picture.to_str().unwrap()]);
    assert!(shown.starts_with("Latency  idle") && shown.contains("seed 1;"), "{shown}");
    assert!(fs::read_to_string(&picture).unwrap().starts_with("<svg "));
    for columns in ["60", "80", "120"] {
        let text = output(command(["latency", &from]).env("COLUMNS", columns)).ok();
        assert!(wider(&text, columns.parse().unwrap()).is_empty(), "{columns}: {text}");
        assert!(!text.contains('\x1b'));
    }
}

#[test]
fn what_cannot_be_given_is_refused_with_its_figure() {
    // More than any node has, of a machine that runs tests: nothing of it is taken.
    let ran = run(&["latency", "--quick", "--size=250G", "--huge=never"]);
    if ran.code != Some(3) {
        return missing("a node without 250 GiB to spare");
    }
    let text = ran.stdout.replace("\n    ", " ");
    assert!(text.contains("to spare") || text.contains("control group"), "{text}");
    assert!(text.contains("Not measured") && text.contains("are needed: try a smaller --size"), "{text}");
}

#[test]
fn huge_pages_that_are_not_reserved_cost_their_cells_alone() {
    // Of this size no machine keeps a pool that no one has asked for.
    let document = run(&["latency", "--json", "--quick", "--size=1M", "--huge=1G"]).ok_json();
    let (huge, small): (Vec<&Value>, Vec<&Value>) =
        cells(&document).iter().partition(|cell| cell["pages"] == "hugetlb");
    assert_eq!(huge.len(), small.len());
    assert!(small.iter().any(|cell| cell["median_ns"].is_number()));
    for cell in huge {
        assert_eq!(cell["huge_page_bytes"], 1 << 30);
        if cell["median_ns"].is_null() {
            let why = cell["refused"].as_str().unwrap();
            assert!(why.contains("huge page") || why.contains("mmap("), "{why}");
        }
    }
}

#[test]
fn nodes_and_cpus_that_are_not_there_are_wrong_usage() {
    let check = |words: &[&str], expected: &str| {
        let ran = run(&[&["latency"], words].concat());
        assert_eq!(ran.code, Some(2), "{words:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{words:?}: {}", ran.stderr);
    };
    check(&["--nodes=9999"], "--nodes: node 9999 does not exist: this machine has node");
    check(&["--nodes=0-x"], "--nodes: \"0-x\"");
    check(&["--cpus=99999"], "--cpus: CPU 99999 does not exist");
    check(&["--size=0"], "--size: 0 B is not a buffer size: expected 4 KiB to 255 GiB");
    check(&["--size=lots"], "\"lots\"");
    check(
        &["--huge=3M"],
        "\"3M\" is not a kind of huge page: expected never, thp, or a size such as 2M or 1G",
    );
    check(&["--quick", "--thorough"], "--thorough");
    check(&["--json", "--csv"], "--csv");
    check(&["--from=/no/such.json"], "--from: cannot read \"/no/such.json\": no such file or directory");
    check(&["--from=/etc/hostname"], "is not a result of nodewise latency");
    check(&["--from=/etc/hostname", "--quick"], "--quick");
    check(&["--machine", "2x(8c 64G)"], "--machine has no meaning with nodewise latency");
}

#[test]
fn named_nodes_and_cpus_are_the_ones_that_are_used() {
    let node = a_memory_node().to_string();
    let cpu = crate::nodewise::a_cpu().to_string();
    let document = measured(&["--cpus", &cpu]);
    assert!(cells(&document).iter().all(|cell| cell["cpus"] == cpu), "{document}");
    let document = measured(&["--nodes", &node]);
    assert!(
        cells(&document).iter().all(|cell| cell["memory_node"].as_u64() == node.parse().ok()),
        "{document}"
    );
}

#[test]
fn a_filter_on_memory_policies_is_named_in_every_cell() {
    if !can_contain() {
        return;
    }
    for errno in [EPERM, ENOSYS] {
        let ran = output(&mut filtered(errno, &[&["latency"], &SMALL[..]].concat()));
        assert_eq!(ran.code, Some(3), "{}{}", ran.stdout, ran.stderr);
        let text = ran.stdout.replace("\n    ", " ");
        assert!(text.contains("Not measured") && text.contains("a seccomp filter answers mbind"), "{text}");
    }
}

#[test]
fn memory_that_nobody_can_ask_about_is_not_measured_as_if_it_were_proven() {
    if !can_contain() {
        return;
    }
    for errno in [EPERM, ENOSYS] {
        let words = [&["latency", "--json"], &SMALL[..]].concat();
        let ran = output(&mut without_move_pages(errno, &words));
        assert_eq!(ran.code, Some(3), "{}{}", ran.stdout, ran.stderr);
        for cell in cells(&ran.json()) {
            let why = cell["refused"].as_str().unwrap_or_default();
            assert!(why.contains("a seccomp filter answers move_pages"), "{cell}");
            assert!(cell["median_ns"].is_null() && cell["placed_before"].is_null(), "{cell}");
        }
    }
}

/// nodewise latency, with more to do than any test waits for.
fn endless() -> Child {
    let mut endless: Command = command(["latency", "--thorough", "--size=64M", "--json", "--seed=1"]);
    endless.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits until a program has memory of its own under a policy, as only measuring makes it.
fn wait_for_memory(child: &mut Child) {
    let maps = format!("/proc/{}/numa_maps", child.id());
    loop {
        let text = fs::read_to_string(&maps).unwrap_or_default();
        if text.lines().any(|line| line.split(' ').nth(1).is_some_and(|policy| policy.starts_with("bind"))) {
            return;
        }
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::yield_now();
    }
}

#[test]
fn ctrl_c_ends_it_with_what_was_measured() {
    if !fs::exists("/proc/self/numa_maps").unwrap() {
        return missing("a kernel with NUMA");
    }
    let mut child = endless();
    wait_for_memory(&mut child);
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let document = Ran::from(child.wait_with_output().unwrap()).ok_json();
    assert_eq!(document["interrupted"], true);
    let findings = document["findings"].as_array().unwrap();
    assert!(findings.iter().any(|finding| finding.as_str().unwrap().starts_with("ended early")));
}

#[test]
fn a_sweep_has_its_sizes_and_names_the_caches_that_are_claimed() {
    let words = ["latency", "--sweep", "--quick", "--sizes=32K", "--huge=never", "--seed=1"];
    let document = run(&[&words[..], &["--json"]].concat()).ok_json();
    assert_eq!(document["schema"], "nodewise.latency_sweep/1");
    let sizes: Vec<u64> = document["chases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|chase| chase["size_bytes"].as_u64().unwrap() >> 10)
        .collect();
    assert_eq!(sizes, [4, 6, 8, 12, 16, 24, 32]);
    assert!(document["chases"].as_array().unwrap().iter().all(|chase| chase["median_ns"].is_number()));
    let folder = tempfile::tempdir().unwrap();
    let picture = folder.path().join("a.svg");
    let svg = format!("--svg={}", picture.display());
    let text = run(&[&words[..], &[&svg]].concat()).ok();
    assert!(text.starts_with("Latency to node "), "{text}");
    assert!(fs::read_to_string(&picture).unwrap().starts_with("<svg "));
}

#[test]
fn a_table_has_a_row_for_each_way() {
    let words = ["latency", "--table", "--quick", "--sizes=2K,64K", "--huge=never", "--seed=1"];
    let text = run(&words).ok();
    for row in
        ["stride 1 (access)", "stride 32 (access)", "stride 64 (access)", "random (latency)", "local; ns"]
    {
        assert!(text.contains(row), "{row}: {text}");
    }
    let lines = run(&[&words[..], &["--csv"]].concat()).ok();
    // A header, and four ways in two sizes for each of one or two nodes.
    assert!([9, 17].contains(&lines.lines().count()), "{lines}");
}

#[test]
fn options_of_one_form_are_refused_with_another() {
    let check = |words: &[&str], expected: &str| {
        let ran = run(&[&["latency"], words].concat());
        assert_eq!(ran.code, Some(2), "{words:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{words:?}: {}", ran.stderr);
    };
    check(&["--sweep", "--table"], "--table");
    check(&["--sizes=2K"], "--sizes has no meaning without --table or --sweep");
    check(&["--sweep", "--sizes=2K,4K"], "--sizes: a sweep takes one, its largest");
    check(&["--table", "--sizes=1B"], "--sizes: 1 B is not a column size: expected 64 B to 16 GiB");
    check(&["--sweep", "--machine", "2x(8c 64G)"], "--machine has no meaning with nodewise latency");
}

#[test]
#[ignore = "takes half a minute of a machine that nothing else runs on: cargo test --test cli -- --ignored two_quick"]
fn two_quick_runs_agree_or_one_says_that_the_machine_is_too_noisy() {
    let documents = [0, 1].map(|_| run(&["latency", "--quick", "--json"]).ok_json());
    let noisy = |document: &Value| {
        let findings = document["findings"].as_array().unwrap();
        findings.iter().any(|finding| finding.as_str().unwrap().starts_with("too noisy"))
    };
    let interval = |cell: &Value| {
        let ends = cell["median_interval_95_ns"].as_array()?;
        Some((ends[0].as_f64()?, ends[1].as_f64()?))
    };
    for (one, other) in cells(&documents[0]).iter().zip(cells(&documents[1])) {
        let (Some((low, high)), Some((other_low, other_high))) = (interval(one), interval(other)) else {
            continue;
        };
        eprintln!(
            "node {} to {}, {}: {low}-{high} and {other_low}-{other_high} ns",
            one["from_node"], one["memory_node"], one["pages"]
        );
        let overlap = low <= other_high && other_low <= high;
        assert!(overlap || documents.iter().any(noisy), "{one} {other}");
    }
    documents.iter().for_each(|document| eprintln!("{}", document["findings"]));
}
