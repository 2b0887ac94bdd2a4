//! `nodewise simulate`: scenarios that come with it, and scenarios of one's own.

use std::fs;

use serde_json::Value;

use crate::nodewise::{command, golden, output, run, wider};

const SHIPPED: [&str; 10] =
    ["database", "database-interleaved", "jvm", "hpc", "pi5", "cxl", "pods", "cache", "fork", "calls"];

fn json(arguments: &[&str]) -> Value {
    run(&[&["simulate", "--json"], arguments].concat()).ok_json()
}

/// Programs that were killed.
fn killed(document: &Value) -> Vec<String> {
    let steps = document["steps"].as_array().unwrap().iter();
    let killed = steps.filter_map(|step| step["killed"].as_array()).flatten();
    killed.map(|one| one["program"].as_str().unwrap().to_owned()).collect()
}

fn sum(pages: &Value) -> u64 {
    pages.as_array().into_iter().flatten().map(|one| one["pages"].as_u64().unwrap()).sum()
}

/// The pages that some field of the steps has, all together.
fn all(document: &Value, field: &str) -> u64 {
    document["steps"].as_array().unwrap().iter().map(|step| sum(&step[field])).sum()
}

/// A scenario of one's own as JSON.
fn own(text: &str) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scenario.toml");
    fs::write(&file, text).unwrap();
    json(&[file.to_str().unwrap()])
}

#[test]
fn text_is_what_a_person_accepted() {
    for columns in ["60", "120"] {
        let of = |name: &&str| output(command(["simulate", name]).env("COLUMNS", columns)).ok();
        golden(&format!("simulate-{columns}"), SHIPPED.iter().map(of).collect::<Vec<_>>().join("\n"));
    }
}

#[test]
fn csv_has_a_line_for_each_step_and_for_each_node_that_it_changed() {
    golden("simulate-csv", run(&["simulate", "cxl", "--csv"]).ok());
    for name in SHIPPED {
        let (document, text) = (json(&[name]), run(&["simulate", name, "--csv"]).ok());
        let columns: Vec<&str> = text.lines().next().unwrap().split(',').collect();
        let at = |name: &str| columns.iter().position(|column| *column == name).unwrap();
        // No field of these scenarios but the object has a comma, and that is behind the quotes.
        let rows: Vec<Vec<String>> = text.lines().skip(1).map(fields).collect();
        assert!(rows.iter().all(|row| row.len() == columns.len()), "{text}");
        let of_steps: Vec<&Vec<String>> = rows.iter().filter(|row| row[at("node")].is_empty()).collect();
        let steps = document["steps"].as_array().unwrap();
        assert_eq!(of_steps.len(), steps.len());
        for (row, step) in of_steps.iter().zip(steps) {
            assert_eq!(row[at("taken_pages")], sum(&step["taken"]).to_string(), "{step}");
            assert_eq!(row[at("refused")], step["refused"]["errno"].as_str().unwrap_or(""), "{step}");
        }
        for node in document["after"]["nodes"].as_array().unwrap() {
            let (id, left) = (node["node"].to_string(), node["free_pages"].to_string());
            let own = |row: &&Vec<String>| row[at("node")] == id;
            let last = rows.iter().rfind(own).map(|row| row[at("free_pages")].clone());
            assert!(last.is_none_or(|free| free == left), "{name}: {node}");
        }
    }
}

/// The fields of a line of CSV.
fn fields(line: &str) -> Vec<String> {
    let (mut all, mut quoted) = (vec![String::new()], false);
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => all.push(String::new()),
            c => all.last_mut().unwrap().push(c),
        }
    }
    all
}

#[test]
fn every_scenario_fits_any_width_and_can_be_written_out_and_played_again() {
    let folder = tempfile::tempdir().unwrap();
    for name in SHIPPED {
        for columns in [60, 80, 120] {
            let text = output(command(["simulate", name]).env("COLUMNS", columns.to_string())).ok();
            assert_eq!(wider(&text, columns), [""; 0], "{name} at {columns} columns");
        }
        let file = folder.path().join("scenario.toml");
        fs::write(&file, run(&["simulate", name, "--source"]).ok()).unwrap();
        let again = run(&["simulate", file.to_str().unwrap()]).ok();
        assert_eq!(again, run(&["simulate", name]).ok(), "{name}");
    }
}

#[test]
fn interleaving_leaves_room_where_the_default_does_not() {
    let trapped = json(&["database"]);
    // 4 GiB were asked for, and node 0 was full.
    assert!(all(&trapped, "swapped_out") > 3 << 18, "{trapped}");
    assert_eq!(killed(&trapped), [""; 0]);
    assert_eq!(all(&json(&["database-interleaved"]), "swapped_out"), 0);
}

#[test]
fn a_bound_program_that_is_too_large_is_killed_and_the_text_says_why() {
    assert_eq!(killed(&json(&["hpc"])), ["rank 3"]);
    let text = run(&["simulate", "hpc"]).ok();
    let unfolded = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in ["the OOM killer ends rank 3", "though nodes 0-2 have", "rank 3 takes 36 GiB heap"] {
        assert!(unfolded.contains(words), "{words}: {text}");
    }
    let json = json(&["hpc"]);
    assert!(json["after"]["programs"].as_array().unwrap().iter().all(|one| one["name"] != "rank 3"));
}

#[test]
fn a_call_that_the_kernel_refuses_is_told_and_the_rest_is_played() {
    let document = own("machine = \"2x(1c 1G)\"
[[program]]
name = \"a\"
[[event]]
at = 1
program = \"a\"
set-policy = \"interleave=balancing:0-1\"
[[event]]
at = 2
program = \"a\"
allocate = \"64M\"
[[program]]
name = \"b\"
start = 3
policy = \"bind:0\"
nodes = \"1\"
[[event]]
at = 4
program = \"b\"
allocate = \"64M\"
");
    let steps = document["steps"].as_array().unwrap();
    assert_eq!(steps[1]["refused"]["errno"], "EINVAL");
    assert_eq!(steps[1]["refused"]["number"], 22);
    assert_eq!(sum(&steps[2]["taken"]), 64 << 8);
    assert_eq!(
        (&steps[3]["refused"]["errno"], &steps[4]["skipped"]),
        (&"EINVAL".into(), &"not_started".into())
    );
}

#[test]
fn demotion_makes_room_for_a_bound_program() {
    let document = json(&["cxl"]);
    assert_eq!(killed(&document), [""; 0]);
    let demoted = document["steps"].as_array().unwrap().iter().filter_map(|step| step["demoted"].as_array());
    let demoted: Vec<&Value> = demoted.flatten().collect();
    assert!(
        demoted.iter().all(|one| one["node"] == 0 && one["to_node"] == 2) && !demoted.is_empty(),
        "{demoted:?}"
    );
}

#[test]
fn who_writes_after_a_fork_has_pages_of_its_own() {
    let document = json(&["fork"]);
    let steps = document["steps"].as_array().unwrap();
    let worker = |at: f64| {
        let step = steps.iter().find(|step| step["at_s"] == at).unwrap();
        step["programs"].as_array().unwrap().iter().find(|one| one["name"] == "worker").unwrap().clone()
    };
    assert_eq!(worker(10.0)["common_pages"], 16 << 18);
    // Of the tables 2 GiB were written; of the file 4 GiB are the server's too.
    assert_eq!(worker(20.0)["common_pages"], (14 + 4) << 18);
}

#[test]
fn zones_and_counters_are_told_for_each_step_where_that_is_asked_for() {
    let text = run(&["simulate", "calls", "--zones"]).ok();
    for heading in ["Zones  after each step", "Counters  what each step added", "Zones  at the end"] {
        assert!(text.contains(heading), "{heading}");
    }
    let document = json(&["calls"]);
    let zone = &document["zones"].as_array().unwrap()[0];
    for field in ["managed_pages", "free_pages", "min_pages", "low_pages", "high_pages"] {
        assert!(zone[field].is_u64(), "{field}");
    }
    let steps = document["steps"].as_array().unwrap();
    for step in steps {
        let takes = !step["taken"].is_null();
        assert!(!takes || (step["zones"].is_array() || step["pool"].is_array()), "{step}");
        assert!(!takes || step["counters"].is_array() || step["pool"].is_array(), "{step}");
    }
}

#[test]
fn another_machine_and_another_kernel_can_be_named() {
    let large = "2x(16c 128G); dist=21";
    assert_eq!(all(&json(&["database", "--machine", large]), "swapped_out"), 0);
    let hits = |kernel: &str| {
        let document = json(&["cxl", "--kernel", kernel]);
        let nodes = document["after"]["nodes"].as_array().unwrap().iter();
        nodes.map(|node| node["interleave_hit"].as_u64().unwrap()).sum::<u64>()
    };
    assert!(hits("6.12") == 0 && hits("6.16") > 0);
}

#[test]
fn every_page_is_with_a_program_or_free() {
    for name in SHIPPED {
        let document = json(&[name]);
        let free = |zones: &Value| -> u64 {
            zones.as_array().unwrap().iter().map(|zone| zone["free_pages"].as_u64().unwrap()).sum()
        };
        let held = |all: &Value| -> u64 {
            let own = |one: &Value| sum(&one["memory"]) - one["common_pages"].as_u64().unwrap_or(0);
            all.as_array().into_iter().flatten().map(own).sum()
        };
        let after = &document["after"];
        let all = free(&after["zones"])
            + held(&after["programs"])
            + held(&after["files"])
            + held(&after["caches"])
            + sum(&after["pool"]);
        assert_eq!(all, free(&document["zones"]), "{name}");
    }
}

#[test]
fn the_picture_goes_to_the_file_that_was_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("timeline.svg");
    let ran = run(&["simulate", "cxl", "--svg", file.to_str().unwrap()]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{}", ran.stderr);
    let svg = fs::read_to_string(&file).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("analytics") && svg.contains("demotion"), "{svg}");
}

/// Pages that the programs of the last step have, by node: of a scenario with one program.
fn last_taken(document: &Value) -> Vec<(u64, u64)> {
    let step = document["steps"].as_array().unwrap().last().unwrap();
    let each = step["taken"].as_array().into_iter().flatten();
    each.map(|one| (one["node"].as_u64().unwrap(), one["pages"].as_u64().unwrap())).collect()
}

#[test]
fn all_private_memory_has_huge_pages_where_the_machine_gives_them() {
    let on = |machine: &str, setting: &str, more: &str| {
        let text = format!(
            "machine = \"{machine}\"\n{setting}[[program]]\nname = \"a\"\npolicy = \"interleave:all\"\n\
             [[event]]\nat = 1\nprogram = \"a\"\n{more}"
        );
        last_taken(&own(&text))
    };
    const SIZE: &str = "allocate = \"5M\"\n";
    let three = |setting: &str, more: &str| on("3x(1c 1G)", setting, &format!("{SIZE}{more}"));
    // Two huge pages are 1,024 small ones, so the next small one falls to node 1.
    let huge = vec![(0, 512 + 85), (1, 512 + 86), (2, 85)];
    let small = vec![(0, 427), (1, 427), (2, 426)];
    assert_eq!(three("transparent-hugepage = \"always\"\n", ""), huge);
    assert_eq!((on("3x(1c 1G); thp=always", "", SIZE), three("", "")), (huge, small.clone()));
    assert_eq!(three("transparent-hugepage = \"madvise\"\n", ""), small);
    assert_eq!(three("transparent-hugepage = \"always\"\n", "huge = false\n"), small);
    let private = "private-file = \"data\"\n";
    assert_eq!(three("transparent-hugepage = \"always\"\n", private), small);
    // Advised memory is whole huge pages, four here, unless there are none.
    let advised = |setting: &str| on("3x(1c 1G)", setting, "allocate = \"7M\"\nhuge = true\n");
    assert_eq!(advised("transparent-hugepage = \"madvise\"\n"), [(0, 1024), (1, 512), (2, 512)]);
    assert_eq!(advised("transparent-hugepage = \"never\"\n"), [(0, 683), (1, 683), (2, 682)]);
    // explain says the same of the same memory.
    let words = ["explain", "interleave:all", "--size=5M", "--machine", "3x(1c 1G); thp=always", "--json"];
    let explained = run(&words).ok_json();
    let nodes = explained["nodes"].as_array().unwrap().iter();
    let taken = nodes
        .map(|node| node["free_before_pages"].as_u64().unwrap() - node["free_after_pages"].as_u64().unwrap());
    assert_eq!(taken.collect::<Vec<_>>(), [597, 598, 85]);
}

#[test]
fn memory_that_mremap_moves_has_the_turns_of_its_touched_pages() {
    let of = |events: &str| {
        let text = format!(
            "machine = \"3x(1c 1G)\"\n[[program]]\nname = \"a\"\npolicy = \"interleave:all\"\n{events}\
             [[event]]\nat = 9\nprogram = \"a\"\ntouch = \"heap\"\n"
        );
        last_taken(&own(&text))
    };
    let event = |what: &str| format!("[[event]]\nat = 1\nprogram = \"a\"\n{what}\n");
    let mapped = event("map = \"4K\"\nfirst-page = 0");
    let touched = event("touch = \"heap\"");
    let moved = event("mremap = \"heap\"\nfirst-page = 1\nsize = \"8K\"");
    assert_eq!(of(&mapped), [(0, 1)]);
    // Untouched, its pages are 1 and 2; touched, they are 0 and 1.
    assert_eq!(of(&format!("{mapped}{moved}")), [(1, 1), (2, 1)]);
    assert_eq!(of(&format!("{mapped}{touched}{moved}")), [(1, 1)]);
    // The turns of a private file are those of the file, wherever it goes.
    let private = event("map = \"4K\"\nprivate-file = \"data\"");
    assert_eq!(of(&format!("{private}{moved}")), [(0, 1), (1, 1)]);
    let from = event("map = \"4K\"\nprivate-file = \"data\"\nfirst-page = 5");
    assert_eq!(of(&from), [(2, 1)]);
}

#[test]
fn oom_score_adj_decides_who_is_killed() {
    let of = |first: &str, second: &str| {
        let program = |name: &str, more: &str| format!("[[program]]\nname = \"{name}\"\n{more}");
        let event =
            |at: u32, name: &str, what: &str| format!("[[event]]\nat = {at}\nprogram = \"{name}\"\n{what}\n");
        let text = format!(
            "machine = \"2x(1c 8G)\"\n{}{}{}{}{}",
            program("small", first),
            program("large", second),
            event(1, "small", "allocate = \"4G\""),
            event(2, "large", "allocate = \"10G\""),
            event(3, "large", "allocate = \"4G\"\nregion = \"more\""),
        );
        let document = own(&text);
        let steps = document["steps"].as_array().unwrap().iter();
        let one = steps.filter_map(|step| step["killed"].as_array()).flatten().next().unwrap().clone();
        (
            one["program"].as_str().unwrap().to_owned(),
            one["next"].as_str().map(str::to_owned),
            one["oom_score_adj"].as_i64(),
        )
    };
    let (small, large) = (|| "small".to_owned(), || "large".to_owned());
    assert_eq!(of("", ""), (large(), Some(small()), None));
    // A unit is 16 MiB here, and 8 GiB lie between them.
    assert_eq!(of("oom-score-adj = 520\n", ""), (small(), Some(large()), Some(520)));
    assert_eq!(of("oom-score-adj = 400\n", ""), (large(), Some(small()), None));
    assert_eq!(of("", "oom-score-adj = -1000\n"), (small(), None, None));
}

#[test]
fn memory_does_not_shrink_and_scores_have_bounds() {
    let refused = |text: &str, expected: &str| {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("scenario.toml");
        fs::write(&file, format!("machine = \"2x(1c 1G)\"\n{text}")).unwrap();
        let ran = run(&["simulate", file.to_str().unwrap()]);
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    };
    let program = "[[program]]\nname = \"a\"\n";
    let event = |what: &str| format!("[[event]]\nat = 1\nprogram = \"a\"\n{what}\n");
    let mapped = event("map = \"8K\"");
    let smaller = event("mremap = \"heap\"\nsize = \"4K\"");
    refused(
        &format!("{program}{mapped}{smaller}"),
        "mremap: \"heap\" of \"a\" is larger: memory only grows here",
    );
    refused(&format!("{program}{}", event("mremap = \"heap\"")), "mremap needs a size");
    refused(&format!("{program}oom-score-adj = 1001\n"), "oom-score-adj is 1001: expected -1000 to 1000");
    refused(&format!("{program}{}", event("oom-score-adj = -1001")), "oom-score-adj is -1001");
    refused(
        "transparent-hugepage = \"some\"\n[[program]]\nname = \"a\"\n",
        "transparent-hugepage is \"some\": expected",
    );
    refused(&format!("swap = \"17T\"\n{program}"), "swap is 17 TiB: expected at most 16 TiB");
    refused(
        &format!("{program}{}", event("map = \"8K\"\nhuge = false\nfile = \"x\"")),
        "memory is one of huge, pool",
    );
}

#[test]
fn limits_of_groups_are_met_in_text_and_json() {
    let document = json(&["pods"]);
    let steps = document["steps"].as_array().unwrap().iter();
    let limits = steps.filter_map(|step| step["limits"].as_array()).flatten();
    let word = |met: &Value, field: &str| met[field].as_str().unwrap().to_owned();
    let met: Vec<String> =
        limits.map(|met| ["group", "limit", "outcome"].map(|field| word(met, field)).join(" ")).collect();
    assert_eq!(met, ["db max swapped", "web high throttled", "job max killed", "db max killed"]);
    assert_eq!(killed(&document), ["worker", "leader", "database"]);
    let groups = document["after"]["groups"].as_array().unwrap().iter();
    let kills: Vec<u64> = groups.map(|group| group["oom_kill"].as_u64().unwrap()).collect();
    assert_eq!(kills, [1, 2, 0]);
    let text = run(&["simulate", "pods"]).ok();
    assert!(text.contains("the group job reached its memory.max of 6 GiB (1 GiB missing)"), "{text}");
}

#[test]
fn threads_place_what_they_touch_by_their_own_policy_and_cpu() {
    let document = own(r#"
        machine = "2x(4c 8G)"
        [[program]]
        name = "server"
        [[event]]
        at = 1
        program = "server"
        map = "4G"
        [[event]]
        at = 2
        program = "server"
        thread = "worker"
        [[event]]
        at = 3
        program = "worker"
        run-on = 1
        [[event]]
        at = 4
        program = "worker"
        touch = "heap"
        length = "1G"
        [[event]]
        at = 5
        program = "server"
        touch = "heap"
        [[event]]
        at = 6
        program = "worker"
        end = true
        "#);
    let steps = document["steps"].as_array().unwrap();
    let taken = |at: f64| {
        let step = steps.iter().find(|step| step["at_s"] == at).unwrap();
        let taken = step["taken"].as_array().unwrap().iter();
        taken.map(|one| (one["node"].as_u64().unwrap(), one["pages"].as_u64().unwrap())).collect::<Vec<_>>()
    };
    assert_eq!((taken(4.0), taken(5.0)), (vec![(1, 1 << 18)], vec![(0, 3 << 18)]));
    let programs = document["after"]["programs"].as_array().unwrap();
    assert_eq!(programs.iter().map(|one| one["name"].as_str().unwrap()).collect::<Vec<_>>(), ["server"]);
}

#[test]
fn simulate_and_explain_begin_at_the_same_node() {
    for (nodes, machine) in [("0,1,3", "4x(1c 1G)"), ("0-2", "3x(1c 1G)"), ("1-5", "6x(1c 1G)")] {
        let policy = format!("interleave:{nodes}");
        let words = ["explain", &policy, "--size=4K", "--machine", machine, "--json"];
        let explained = run(&words).ok_json();
        let node = explained["steps"][0]["shares"][0]["node"].clone();
        assert!(node.is_u64(), "{explained}");
        let document = own(&format!(
            "machine = \"{machine}\"\n[[program]]\nname = \"a\"\npolicy = \"{policy}\"\n[[event]]\nat = 1\n\
             program = \"a\"\nallocate = \"4K\"\n"
        ));
        let steps = document["steps"].as_array().unwrap();
        assert_eq!(steps[1]["taken"][0]["node"], node, "{machine}, {policy}");
    }
}

#[test]
fn the_text_says_which_node_was_full_and_who_gave_the_pages_instead() {
    let played = |machine: &str, policy: &str, size: &str| {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("scenario.toml");
        let text = format!(
            "machine = \"{machine}\"\n[[program]]\nname = \"a\"\npolicy = \"{policy}\"\n[[event]]\nat = 1\n\
             program = \"a\"\nallocate = \"{size}\"\n"
        );
        fs::write(&file, text).unwrap();
        let text = run(&["simulate", file.to_str().unwrap()]).ok();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let turns = "2x(2c 8G) (2c 1G) (2c 8G)";
    let text = played(turns, "interleave:1-3", "6G");
    assert!(text.contains("At 1 s node 2 was full for a: 1 GiB come from node 3 instead"), "{text}");
    assert!(!played(turns, "interleave:1-3", "1G").contains("full for"));
    // A bound program is given nothing by others.
    assert!(!played(turns, "bind:2", "2G").contains("full for"));
    // Huge pages are counted as one, so no size is stated.
    let huge = played("2x(2c 4G); thp=always", "default", "6G");
    assert!(huge.contains("node 0 was full for a: pages come from node 1 instead"), "{huge}");
    let small = played("2x(2c 4G)", "default", "6G");
    assert!(small.contains("GiB come from node 1 instead"), "{small}");
}

/// 6 GiB of a program that goes to the other node.
fn goes(balance: &str) -> String {
    let event = |at: u32, act: &str| format!("[[event]]\nat = {at}\nprogram = \"app\"\n{act}\n");
    let acts = ["allocate = \"6G\"", "run-on = 1", &format!("balance = true\n{balance}")];
    let events: String = (1..).zip(acts).map(|(at, act)| event(at, act)).collect();
    format!(
        "machine = \"2x(4c 16G); dist=21; kernel=6.12\"\nnuma-balancing = 1\n[[program]]\nname = \"app\"\n{events}"
    )
}

#[test]
fn time_that_passes_has_a_forecast_of_what_is_local_by_then() {
    let step = |balance: &str| own(&goes(balance))["steps"].as_array().unwrap().last().unwrap().clone();
    let after = &step("for = 10\ntouches = \"5000000-6000000\"\nsweep = true")["local_after"];
    let [time, low, high] = ["cpu_time_s", "low_share", "high_share"].map(|key| after[key].as_f64().unwrap());
    assert!(time == 10.0 && 0.0 < low && low < high && high <= 1.0, "{after}");
    assert_eq!(step("")["local_after"], Value::Null);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scenario.toml");
    let text = |balance: &str| {
        fs::write(&file, goes(balance)).unwrap();
        run(&["simulate", file.to_str().unwrap()])
    };
    let shown = text("for = 60\ntouches = \"5000000\"").ok();
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("runs on 5000000 touches/s at random: 6 GiB moved, 100 % of it after 60 s"),
        "{shown}"
    );
    for (wrong, expected) in [
        ("for = 60", "a forecast needs for and touches"),
        ("for = 60\ntouches = \"many\"", "touches: \"many\" is not a rate"),
        ("for = 1e6\ntouches = \"1\"", "expected 0 to 86400 seconds"),
    ] {
        let ran = text(wrong);
        assert_eq!(ran.code, Some(2), "{wrong}: {}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{wrong}: {}", ran.stderr);
    }
}

#[test]
fn page_cache_is_nobodys_and_goes_when_it_is_dropped_unless_it_is_not_on_the_disk() {
    let event = |at: u32, rest: &str| format!("[[event]]\nat = {at}\n{rest}\n");
    let text = [
        "machine = \"2x(1c 8G); dist=20\"\n[[program]]\nname = \"a\"\npolicy = \"bind:1\"\n".to_owned(),
        event(1, "program = \"a\"\nread = \"1G\""),
        event(2, "program = \"a\"\nwrite = \"100M\"\nfile = \"log\"\noffset = \"1G\""),
        event(3, "drop-caches = true"),
        event(36, "drop-caches = true"),
        event(37, "drop-caches = true"),
        event(38, "program = \"a\"\nread = \"1G\""),
        event(39, "program = \"a\"\nread = \"512M\""),
        event(40, "program = \"a\"\nend = true"),
    ];
    let document = own(&text.concat());
    let steps = document["steps"].as_array().unwrap();
    let dropped = |at: usize| {
        (sum(&steps[at]["dropped"]) >> 8, steps[at]["unwritten_pages"].as_u64().unwrap_or(0) >> 8)
    };
    // The last write is 35 s ago at 37 s.
    assert_eq!([3, 4, 5].map(dropped), [(1024, 100), (0, 100), (100, 0)], "{document}");
    assert_eq!((sum(&steps[6]["taken"]) >> 8, &steps[7]["taken"]), (1024, &Value::Null));
    let caches = document["after"]["caches"].as_array().unwrap();
    assert_eq!((caches.len(), &caches[0]["name"], sum(&caches[0]["memory"]) >> 8), (1, &"data".into(), 1024));
    assert_eq!(caches[0]["memory"][0]["node"], 1);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scenario.toml");
    fs::write(&file, text.concat()).unwrap();
    let text = run(&["simulate", file.to_str().unwrap()]).ok();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "39 s a reads 512 MiB file data: in the page cache already",
        "At 3 s 100 MiB of page cache stay, as they are not on the disk yet",
        "writes 100 MiB file log, from 1 GiB on: 1=100MiB",
        "page cache of data 1 GiB 1=1GiB",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn files_that_do_not_fit_on_a_node_may_replace_older_page_cache_there() {
    let text = "machine = \"2x(1c 8G); dist=20\"\n[[program]]\nname = \"a\"\n\
                [[event]]\nat = 1\nprogram = \"a\"\nread = \"7G\"\nfile = \"old\"\n\
                [[event]]\nat = 2\nprogram = \"a\"\nread = \"3G\"\nfile = \"new\"\n";
    let document = own(text);
    let elsewhere = document["steps"][2]["taken"][1]["pages"].as_u64().unwrap();
    assert!((2 << 18..3 << 18).contains(&elsewhere), "{document}");
    assert_eq!(
        document["steps"][2]["from_fragmented"],
        serde_json::json!([{ "node": 0, "pages": elsewhere }])
    );
    let findings = document["steps"][2]["findings"].as_array().unwrap();
    let findings: Vec<&str> = findings.iter().filter_map(Value::as_str).collect();
    let [full, raised] = findings[..] else { panic!("{findings:?}") };
    assert_eq!(full, "At 2 s node 0 was full for a: 2.1 GiB come from node 1 instead");
    assert_eq!(
        raised,
        "At 2 s up to 2.1 GiB of the page cache may be on node 0 instead: if its memory is fragmented, raised watermarks \
         (vm.watermark_boost_factor) make kswapd drop older page cache there"
    );
}
