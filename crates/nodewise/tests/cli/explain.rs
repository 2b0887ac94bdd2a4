//! `nodewise explain`, `zonelist` and `zones`: what the kernel will do, as text and as JSON.

mod answers;
mod groups;
mod process;
mod room;
mod words;

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
    run(&[arguments, &["--json"]].concat()).ok_json()
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

#[test]
fn csv_has_a_line_for_each_share_place_and_zone() {
    let of = |words: &[&str]| run(&[words, &["--csv", "--machine", SERVER]].concat()).ok();
    let too_much = ["explain", "bind:1,3", "--cpu-node", "0", "--size", "70G"];
    let texts = [of(&too_much), of(&["zonelist"]), of(&["zones"])];
    golden("explain-csv", texts.join("\n"));
    let document = json(&[&too_much[..], &["--machine", SERVER]].concat());
    let steps = document["steps"].as_array().unwrap().iter();
    let shares: Vec<&Value> = steps.flat_map(|step| step["shares"].as_array().unwrap()).collect();
    let lines: Vec<Vec<&str>> = texts[0].lines().skip(1).map(|line| line.split(',').collect()).collect();
    assert_eq!(lines.len(), shares.len() + 1);
    for (line, share) in lines.iter().zip(shares) {
        assert_eq!(
            [line[1], line[2], line[4]],
            [&share["node"].to_string(), share["zone"].as_str().unwrap(), &share["pages"].to_string()]
        );
    }
    assert_eq!(lines.last().unwrap()[4], document["out_of_memory"]["missing_pages"].to_string());
    for verb in ["explain", "zonelist", "zones"] {
        let ran = run(&[verb, "--csv", "--json", "--machine", SERVER]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{verb}");
    }
}

#[test]
fn csv_of_a_kernels_own_orders_names_them() {
    let folder = capture(Some(
        "[    0.1] Fallback order for Node 0: 0 1 \n[    0.1] Fallback order for Node 1: 1 0 \n",
    ));
    let text = run(&["zonelist", "--csv", "--machine", folder.path().to_str().unwrap()]).ok();
    assert!(text.contains("\n1,kernel,0,1,\n1,kernel,1,0,\n"), "{text}");
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
    for path in corpus("captures") {
        let path = path.to_str().unwrap();
        let ran = run(&["explain", "--machine", path, "--json"]);
        if ran.code == Some(3) {
            // Nothing that is unknown is 0, and no architecture has the zones of another.
            let reasons = [
                "describes no nodes",
                "is not known: --node-memory",
                "the zones of \"ia64\" are not modelled",
            ];
            assert!(reasons.iter().any(|reason| ran.stderr.contains(reason)), "{path}: {}", ran.stderr);
            for verb in ["zones", "zonelist"] {
                let other = run(&[verb, "--machine", path]);
                assert_eq!((other.code, &other.stderr), (ran.code, &ran.stderr), "{path}");
            }
            continue;
        }
        let zones = json(&["zones", "--machine", path]);
        let lists = json(&["zonelist", "--machine", path]);
        let zones = zones["zones"].as_array().unwrap();
        assert_eq!(ran.code, Some(0), "{path}: {}", ran.stderr);
        for node in lists["nodes"].as_array().unwrap() {
            let zones_tried = node["fallback_zones"].as_array().unwrap().len();
            assert_eq!(zones_tried, zones.len(), "{path}: node {}", node["node"]);
        }
    }
}

/// Two sockets and CXL memory, with what the firmware says of the ways from node 0.
const TIERED: &str = "2x(8c 64G) (128G tier=22); dist=10,21,14/21,10,24/14,24,10; access=0>0:90ns/100G; \
                      access=0>1:140ns/40G; access=0>2:250ns/30G";

/// The cost of reading 8 GiB under a policy, in JSON.
fn cost(policy: &str, options: &[&str]) -> Value {
    let words = [&["explain", policy, "--size=8G", "--cost", "--machine", TIERED], options].concat();
    json(&words)["cost"].clone()
}

#[test]
fn a_cost_names_its_bottleneck() {
    let check = |policy: &str, options: &[&str], bottleneck: Value, seconds: f64| {
        let cost = cost(policy, options);
        assert_eq!(cost["bottleneck"], bottleneck, "{policy} {options:?}");
        let least = cost["least_s"].as_f64().unwrap();
        assert!((least / seconds - 1.0).abs() < 1e-9, "{policy} {options:?}: {least}");
    };
    let bytes = f64::from(1 << 30) * 8.0;
    let threads = serde_json::json!({"kind": "threads", "from_node": 0});
    check("bind:0", &["--threads=1"], threads.clone(), bytes * 90e-9 / 640.0);
    check("bind:0", &["--threads=1", "--access=chase"], threads.clone(), bytes * 90e-9 / 64.0);
    // Without a number of threads each CPU of node 0 has one.
    check("bind:0", &["--access=chase"], threads, bytes * 90e-9 / 64.0 / 8.0);
    let memory = |node: u32| serde_json::json!({"kind": "memory", "memory_node": node});
    check("bind:0", &["--threads=99"], memory(0), bytes / 100e9);
    check("interleave:0,2", &["--threads=99"], memory(2), bytes / 2.0 / 30e9);
}

#[test]
fn text_and_json_tell_the_same_cost() {
    for columns in ["60", "80", "120"] {
        let words = ["explain", "interleave:0,2", "--size=8G", "--cost", "--machine", TIERED];
        let text = output(command(words).env("COLUMNS", columns)).ok();
        assert_eq!(wider(&text, columns.parse().unwrap()), [""; 0]);
        let cost = cost("interleave:0,2", &[]);
        let rows: Vec<Vec<&str>> = text
            .lines()
            .skip_while(|line| !line.starts_with("Cost "))
            .skip_while(|line| !line.contains("memory "))
            .skip(1)
            .take(2)
            .map(|line| line.split_whitespace().collect())
            .collect();
        for (row, way) in rows.iter().zip(cost["ways"].as_array().unwrap()) {
            let node = way["memory_node"].to_string();
            let (latency, rate) = (&way["latency_ns"], &way["memory_gb_per_s"]);
            assert_eq!(*row, [&node, "4", "GiB", &latency.to_string(), "-", &rate.to_string()], "{text}");
        }
        assert!(text.contains(&format!("at least {:.4} s", cost["least_s"].as_f64().unwrap())), "{text}");
    }
}

#[track_caller]
fn refused(options: &[&str], code: i32, expected: &str) {
    let ran = run(&[&["explain", "--machine", TIERED], options].concat());
    assert_eq!(ran.code, Some(code), "{}", ran.stderr);
    assert!(ran.stderr.contains(expected), "{}", ran.stderr);
}

#[test]
fn a_cost_needs_to_know_every_way() {
    let unknown = "--cost: the latency from node 1 to node 2 is not known";
    refused(&["bind:2", "--cpu-node=1", "--cost"], 3, unknown);
    refused(&["bind:0", "--threads=2"], 2, "--cost");
    refused(&["bind:0", "--cost", "--threads=0"], 2, "--threads: 0 is out of range");
    refused(&["bind:0", "--cost", "--latency=/nowhere"], 2, "--latency: cannot read");
}

#[test]
fn a_cost_takes_what_was_measured() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bandwidth.json");
    let way = |from: u32, to: u32, rate: f64| serde_json::json!({"from_node": from, "memory_node": to, "median_gb_per_s": rate});
    let ways = [way(0, 0, 80.0), way(0, 2, 20.0), way(1, 2, 25.0)];
    let document = serde_json::json!({"schema": "nodewise.bandwidth/1", "matrix": ways});
    std::fs::write(&file, document.to_string()).unwrap();
    let option = format!("--bandwidth={}", file.display());
    let cost = cost("bind:2", &["--threads=99", &option]);
    assert_eq!(cost["bottleneck"], serde_json::json!({"kind": "link", "from_node": 0, "memory_node": 2}));
    assert_eq!(
        (&cost["ways"][0]["link_gb_per_s"], &cost["ways"][0]["memory_gb_per_s"]),
        (&20.0.into(), &25.0.into())
    );
    let wrong = option.replace("bandwidth=", "latency=");
    let expected = "is not a result of nodewise latency: its schema is \"nodewise.bandwidth/1\"";
    refused(&["bind:0", "--cost", &wrong], 2, expected);
}

/// The node of the one page of a request.
fn first_share(arguments: &[&str]) -> Value {
    let words = [&["explain"], arguments, &["--size", "4K", "--machine", SERVER]].concat();
    json(&words)["steps"][0]["shares"][0]["node"].clone()
}

#[test]
fn static_and_relative_nodes_need_not_be_there() {
    let check = |policy: &str, options: &[&str], works_with: &str, asked: &str| {
        let words = [&["explain", policy, "--size=4K", "--machine", SERVER], options].concat();
        let document = json(&words);
        assert_eq!((&document["policy"], &document["asked_nodes"]), (&works_with.into(), &asked.into()));
    };
    check("bind=relative:5", &[], "bind=relative:1", "5");
    check("interleave=static:0-7", &[], "interleave=static:0-3", "0-7");
    check("bind=relative|balancing:1", &["--allowed=2-3"], "bind=relative|balancing:3", "1");
    let words = ["explain", "bind=relative:5", "--allowed=2-3", "--machine", SERVER];
    let text = run(&words).ok();
    assert!(
        text.contains("  counted in nodes 2-3, node 5 is node 3\n  the cpuset allows nodes 2-3\n"),
        "{text}"
    );
}

#[test]
fn what_says_whose_turn_a_page_is_depends_on_the_memory() {
    let of = |options: &[&str]| first_share(&[&["interleave:all"], options].concat());
    assert_eq!(of(&[]), 0);
    assert_eq!((of(&["--first-page=3"]), of(&["--memory=shared", "--first-page=6"])), (3.into(), 2.into()));
    // A task's cursor begins with the lowest node.
    assert_eq!(first_share(&["interleave:1,3", "--memory=cache"]), 1);
    let said = |memory: &str, expected: &str| {
        let words = ["explain", "interleave:all", "--size=4K", "--memory", memory, "--machine", SERVER];
        let text = run(&words).ok().split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(expected), "{text}");
        assert_eq!(json(&words)["memory"], memory);
    };
    said("private", "in turn, by their address: the order of touching does not matter");
    said(
        "shared",
        "in turn, by their number in the file and its inode: the order of touching does not matter",
    );
    said("cache", "in turn, one after the other as the task takes them, for whichever file");
}

#[test]
fn a_first_page_counts_pages_of_the_machine_s_own_size() {
    let first = |page: &str, size: &str, options: &[&str]| {
        let machine = "2x(1c 8G); arch=aarch64";
        let own =
            ["explain", "interleave:0-1", "--machine", machine, "--page-size=64K", "--first-page", page];
        json(&[&own[..], &["--size", size], options].concat())["steps"][0]["shares"][0]["node"].clone()
    };
    // By the address in bytes, page 1 would be the sixteenth of 4 KiB, and on node 0.
    for (page, node) in [("0", 0), ("1", 1), ("2", 0), ("7", 1)] {
        assert_eq!(first(page, "64K", &[]), node, "page {page}");
    }
    // A huge page of 512 MiB is 8,192 of them.
    for (page, node) in [("0", 0), ("8192", 1), ("16384", 0)] {
        assert_eq!(first(page, "512M", &["--huge"]), node, "page {page}");
    }
}

#[test]
fn a_home_node_chooses_whose_order_is_walked() {
    let of = |options: &[&str]| first_share(&[&["bind:1,3", "--cpu-node=0"], options].concat());
    assert_eq!((of(&[]), of(&["--home=2"])), (1.into(), 3.into()));
    let text = run(&["explain", "bind:1,3", "--home=2", "--size=4K", "--machine", SERVER]).ok();
    assert!(text.contains("from nodes 1,3, from the nearest to node 2, its home\n"), "{text}");
    refused(&["interleave:0", "--home=1"], 2, "--home: interleave has none: Linux 6.12 answers EOPNOTSUPP");
    refused(&["bind:0", "--home=7"], 2, "--home: node 7 does not exist: this machine has nodes 0-2");
    refused(&["bind:0", "--home=1", "--kernel=5.16"], 2, "--home: home nodes need Linux 5.17 or newer");
    refused(&["bind:0", "--home=1", "--memory=cache"], 2, "--home: a home node is a mapping's");
}

#[test]
fn a_cpuset_bounds_what_can_be_had() {
    let words = ["explain", "default", "--allowed=0-1", "--size=80G", "--machine", SERVER];
    let document = json(&words);
    assert_eq!(document["out_of_memory"]["constraint"], "cpuset", "{document}");
    refused(&["default", "--allowed=9"], 2, "--allowed: node 9 does not exist");
    refused(&["default", "--size=0"], 2, "--size: 0 B is empty: expected at least 1 B");
}

#[test]
fn many_nodes_are_told_in_few_lines() {
    for columns in [60, 80, 120] {
        let words = ["explain", "interleave:all", "--machine", "64x(1c 1G)"];
        let text = output(command(words).env("COLUMNS", columns.to_string())).ok();
        assert_eq!(wider(&text, columns), [""; 0]);
        // Each node yields in a step of its own.
        assert!(text.lines().count() < 64 * 7, "{}", text.lines().count());
        assert!(text.contains("2-63:Normal=250"), "{text}");
        // One after the other, with as many pages each: these are one step.
        let words = ["explain", "default", "--machine", "1024x(1c 1G)"];
        let text = output(command(words).env("COLUMNS", columns.to_string())).ok();
        assert_eq!(wider(&text, columns), [""; 0]);
        assert!(text.lines().count() < 64, "{text}");
        for nodes in [64, 1024] {
            let machine = format!("{nodes}x(1c 1G)");
            let words = ["zonelist", "--machine", &machine];
            let text = output(command(words).env("COLUMNS", columns.to_string())).ok();
            assert!(text.lines().count() < 20, "{text}");
            assert_eq!(wider(&text, columns), [""; 0]);
        }
    }
}

/// A capture of two nodes, with a kernel log or without.
fn capture(log: Option<&str>) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let nodes = "sys/devices/system/node";
    for name in ["possible", "online", "has_memory", "has_cpu"] {
        write(&format!("{nodes}/{name}"), "0-1\n");
    }
    for node in [0, 1] {
        let own = format!("{nodes}/node{node}");
        write(&format!("{own}/cpulist"), &format!("{node}\n"));
        write(&format!("{own}/distance"), ["10 20\n", "20 10\n"][node]);
        write(&format!("{own}/meminfo"), &format!("Node {node} MemTotal:  1048576 kB\n"));
    }
    write("proc/sys/kernel/osrelease", "6.12.1\n");
    if let Some(log) = log {
        write("var/log/dmesg", log);
    }
    folder
}

#[test]
fn the_kernels_own_orders_stand_beside_the_models() {
    let begin = "[    0.000000] Linux version 6.12.1\n";
    let told = |log: Option<&str>, options: &[&str]| {
        let folder = capture(log);
        let words = [&["zonelist", "--machine", folder.path().to_str().unwrap()], options].concat();
        let text = run(&words).ok();
        text.split("The kernel's own orders").nth(1).unwrap_or("not there").to_owned()
    };
    let orders = |order: &str| {
        format!("{begin}Fallback order for Node 0: 0 1 \n[    0.1] Fallback order for Node 1: {order} \n")
    };
    assert_eq!(told(Some(&orders("1 0")), &[]), "  the same, by its log\n");
    let other = told(Some(&orders("0 1")), &[]);
    assert_eq!(other, "  where its log says otherwise\n  node  nodes tried\n     1  0 1\n");
    assert_eq!(told(Some(&orders("0 1")), &["--kernel=6.18"]), "not there");
    let unknown = told(Some(begin), &[]);
    assert!(unknown.contains("not known: its log does not have them"), "{unknown}");
    assert!(told(Some("late\n"), &[]).contains("does not reach back to the start"));
    assert!(told(None, &[]).contains("not known: its log is missing"));
}

#[test]
fn zonelist_and_zones_take_a_kernel() {
    let of = |verb: &str, kernel: &str| json(&[verb, "--machine", SERVER, "--kernel", kernel]);
    assert_eq!(
        (&of("zonelist", "6.18")["kernel"], &of("zones", "6.18")["kernel"]),
        (&"6.18".into(), &"6.18".into())
    );
    assert_eq!(of("zonelist", "5.16").get("remark"), None);
    assert!(of("zonelist", "5.10")["remark"].as_str().unwrap().starts_with("before Linux 5.16"));
    let text = run(&["zonelist", "--machine", SERVER, "--kernel", "5.10"]).ok();
    assert!(text.contains("before Linux 5.16 nodes were loaded otherwise"), "{text}");
}

#[test]
fn a_program_without_policy_follows_that_of_a_raspberry_pis_kernel() {
    let folder = capture(None);
    let machine = folder.path().to_str().unwrap();
    std::fs::write(folder.path().join("proc/cmdline"), "numa_policy=interleave numa=fake=2\n").unwrap();
    let explained = |release: &str, policy: &str| {
        std::fs::write(folder.path().join("proc/sys/kernel/osrelease"), release).unwrap();
        let words = ["explain", policy, "--size=64M", "--machine", machine];
        let text = run(&words).ok().split_whitespace().collect::<Vec<_>>().join(" ");
        (json(&words)["policy"].as_str().unwrap().to_owned(), text)
    };
    let (policy, text) = explained("6.12.25+rpt-rpi-2712\n", "default");
    assert_eq!(policy, "interleave:0-1");
    assert!(text.contains("numa_policy= on this kernel's command line"), "{text}");
    assert_eq!(explained("6.12.25+rpt-rpi-2712\n", "local").0, "local");
    let (policy, text) = explained("6.12.107+deb13-arm64\n", "default");
    assert_eq!(policy, "default");
    assert!(!text.contains("numa_policy"), "{text}");
}
