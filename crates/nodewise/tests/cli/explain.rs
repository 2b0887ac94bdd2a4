//! `nodewise explain`, `zonelist` and `zones`: what the kernel will do, as text and as JSON.

use serde_json::Value;

use crate::nodewise::{command, corpus, golden, output, run, wider};

/// The server of the articles on the kernel's allocator: two packages with two nodes each.
const SERVER: &str = "2x(2x(12c 32G)); dist=11,20";

/// Machines that differ in what the model has to know of them.
const MACHINES: [&str; 6] = [
    SERVER,
    "(4c 1G) 7x(1G)",
    "(1c 1G) (1c) (1G); dist=10,20,30/20,10,15/30,15,10",
    "2x(8c 64G) 2x(128G tier=22); weights=0:3,1:3,2:1,3:1",
    "64x(4c 32G)",
    "16x(4c 32G); arch=aarch64",
];

const POLICIES: [&str; 7] = [
    "default",
    "local",
    "bind:all",
    "preferred:0",
    "preferred-many=static:all",
    "interleave:all",
    "weighted-interleave=relative:all",
];

fn json(arguments: &[&str]) -> Value {
    let text = run(&[arguments, &["--json"]].concat()).ok();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {text}"))
}

/// A number of pages in a document.
fn number(value: &Value, name: &str) -> u64 {
    value[name].as_u64().unwrap_or_else(|| panic!("{name} of {value}"))
}

#[test]
fn text_is_what_a_person_accepted() {
    for columns in ["60", "120"] {
        let of =
            |words: &[&str]| output(command(words).args(["--machine", SERVER]).env("COLUMNS", columns)).ok();
        let texts = [
            of(&["explain", "bind:1,3", "--cpu-node", "0", "--trace"]),
            of(&["explain", "interleave:all", "--size", "200G"]),
            of(&["zonelist"]),
            of(&["zones"]),
        ];
        golden(&format!("explain-{columns}"), texts.join("\n"));
    }
}

#[test]
fn text_fits_any_width_and_has_no_colour_in_a_pipe() {
    for machine in MACHINES {
        let of_policies = POLICIES.map(|policy| vec!["explain", policy, "--trace"]);
        for words in of_policies.into_iter().chain([vec!["zonelist"], vec!["zones"]]) {
            for columns in [60, 80, 120] {
                let words = words.iter().copied().chain(["--machine", machine]);
                let text = output(command(words.clone()).env("COLUMNS", columns.to_string())).ok();
                let words: Vec<&str> = words.collect();
                assert_eq!(wider(&text, columns), [""; 0], "{words:?} at {columns} columns");
                assert!(!text.contains('\u{1b}'), "{words:?}");
            }
        }
    }
}

/// The zones that give pages, in the order in which they are first used.
fn used(policy: &str, options: &[&str]) -> String {
    let document = json(&[&["explain", policy, "--machine", SERVER], options].concat());
    let mut seen: Vec<String> = Vec::new();
    for step in document["steps"].as_array().unwrap() {
        for share in step["shares"].as_array().unwrap() {
            let name = format!("{}:{}", share["node"], share["zone"].as_str().unwrap());
            if !seen.contains(&name) {
                seen.push(name);
            }
        }
    }
    seen.join(" ")
}

#[test]
fn the_four_examples_of_the_articles_come_out_as_a_kernel_plays_them() {
    let on_node_0 = |policy| used(policy, &["--cpu-node", "0"]);
    // The articles have "then 0 or 1": it is node 2's own order, to the end.
    assert_eq!(on_node_0("preferred:2"), "2:Normal 3:Normal 0:Normal 0:DMA32 1:Normal");
    // "Then 2 or 3": the near node comes first.
    assert_eq!(on_node_0("local"), "0:Normal 0:DMA32 1:Normal 2:Normal 3:Normal");
    // "Uses 1 and 3": one after the other, the nearest to the CPU first.
    assert_eq!(on_node_0("bind:1,3"), "1:Normal 3:Normal");
    assert_eq!(used("bind:1,3", &["--cpu-node", "2"]), "3:Normal 1:Normal");
    let document = json(&["explain", "interleave:all", "--machine", SERVER, "--size", "64G"]);
    let shares = document["steps"][0]["shares"].as_array().unwrap();
    let pages: Vec<u64> = shares.iter().map(|share| number(share, "pages")).collect();
    assert_eq!(pages, [4 << 20; 4], "{document}");
}

#[test]
fn every_page_is_accounted_for() {
    for machine in MACHINES {
        for policy in POLICIES {
            let document = json(&["explain", policy, "--machine", machine, "--size", "1T"]);
            let nodes = document["nodes"].as_array().unwrap();
            let sum = |name: &str| nodes.iter().map(|node| number(node, name)).sum::<u64>();
            let shares = document["steps"].as_array().unwrap().iter().flat_map(|step| {
                let size = number(step, "page_bytes") / 4096;
                step["shares"].as_array().unwrap().iter().map(move |share| number(share, "pages") * size)
            });
            let given: u64 = shares.sum();
            let what = format!("{policy} on {machine}");
            assert_eq!(sum("free_before_pages") - sum("free_after_pages"), given, "{what}");
            assert_eq!((sum("numa_hit") + sum("numa_miss"), sum("numa_miss")), (given, sum("numa_foreign")));
            assert_eq!(sum("local_node") + sum("other_node"), given, "{what}");
            let missing = document["out_of_memory"]["missing_pages"].as_u64().unwrap_or(0);
            assert_eq!(given + missing, 1 << 28, "{what}");
        }
    }
}

#[test]
fn releases_differ_where_kernels_do() {
    let interleave_hits = |kernel: &str| {
        let words = ["explain", "weighted-interleave:all", "--machine", SERVER, "--size", "1G"];
        let document = json(&[&words[..], &["--kernel", kernel]].concat());
        document["nodes"].as_array().unwrap().iter().map(|node| number(node, "interleave_hit")).sum::<u64>()
    };
    assert_eq!((interleave_hits("6.12"), interleave_hits("6.16")), (0, 1 << 18));
}

#[test]
fn orders_built_anew_prefer_nodes_without_cpus() {
    let order = |options: &[&str]| {
        let words = ["zonelist", "--machine", "2x(12c 32G) 2x(32G)"];
        json(&[&words[..], options].concat())["nodes"][0]["fallback_nodes"].to_string()
    };
    assert_eq!((order(&[]), order(&["--rebuilt"])), ("[0,1,2,3]".to_owned(), "[0,2,3,1]".to_owned()));
}

#[test]
fn every_capture_has_zones_and_orders_or_says_why_not() {
    for path in corpus() {
        let path = path.to_str().unwrap();
        let zones = json(&["zones", "--machine", path]);
        let lists = json(&["zonelist", "--machine", path]);
        let ran = run(&["explain", "--machine", path, "--json"]);
        let zones = zones["zones"].as_array().unwrap();
        if zones.is_empty() {
            assert_eq!((ran.code, ran.stderr.contains("has memory")), (Some(3), true), "{path}");
            continue;
        }
        assert_eq!(ran.code, Some(0), "{path}: {}", ran.stderr);
        for node in lists["nodes"].as_array().unwrap() {
            let zones_tried = node["fallback_zones"].as_array().unwrap().len();
            assert_eq!(zones_tried, zones.len(), "{path}: node {}", node["node"]);
        }
    }
}
