//! `nodewise bandwidth` and `nodewise c2c`: figures for what can be measured, a reason for what cannot.

use std::fs;

use serde_json::Value;

use crate::nodewise::{command, live, output, run, wider, wrong};

/// Small enough for any machine.
const SMALL: [&str; 4] = ["--quick", "--size=1M", "--huge=never", "--seed=1"];

#[test]
fn every_way_of_this_machine_is_measured_where_it_says_or_says_why_not() {
    let document = run(&[&["bandwidth", "--json"], &SMALL[..]].concat()).ok_json();
    assert_eq!(document["schema"], "nodewise.bandwidth/2");
    assert_eq!(document["size_bytes"], 1 << 20);
    for table in ["matrix", "kernels"] {
        let ways = document[table].as_array().unwrap();
        assert!(!ways.is_empty(), "{table}");
        for way in ways {
            let Some(median) = way["median_gb_per_s"].as_f64() else {
                let is_refused = way["refused"].as_str().is_some_and(|why| !why.is_empty());
                assert!(is_refused || document["left_out"].is_object(), "{way}");
                continue;
            };
            assert!(median > 0.0 && way["best_gb_per_s"].as_f64().unwrap() >= median, "{way}");
            assert!(way["bus_gb_per_s_at_most"].as_f64().unwrap() >= median, "{way}");
            assert!(way["variant"].is_string(), "{way}");
            // A machine that is too busy for six rounds in time says that some are left out.
            assert!(way["rounds"] == 6 || document["left_out"].is_object(), "{way}");
            for moment in ["placed_before", "placed_after"] {
                assert_eq!(way[moment]["pages_on_node"], way[moment]["pages"], "{way}");
            }
        }
    }
}

#[test]
fn the_peak_of_each_node_is_known_or_says_why_not() {
    let document = run(&[&["bandwidth", "--matrix", "--json"], &SMALL[..]].concat()).ok_json();
    let nodes = document["peak"]["nodes"].as_array().unwrap();
    assert_eq!(nodes.len(), live().memory_nodes().len());
    for peak in nodes.iter().chain([&document["peak"]["machine"]]) {
        match peak["peak_gb_per_s"].as_f64() {
            Some(rate) => assert!(rate > 0.0 && !peak["channels"].as_array().unwrap().is_empty(), "{peak}"),
            None => assert!(peak["unknown"].as_str().is_some_and(|why| !why.is_empty()), "{peak}"),
        }
    }
    assert!(document["published"].is_array());
}

#[test]
fn bandwidths_are_shown_in_every_form() {
    let folder = tempfile::tempdir().unwrap();
    let picture = folder.path().join("a.svg");
    let svg = format!("--svg={}", picture.display());
    let of = |more: &[&str]| run(&[&["bandwidth", "--matrix"], &SMALL[..], more].concat()).ok();
    let lines = of(&["--csv"]);
    assert!(lines.starts_with("table,kernel,threads,from_node,"), "{lines}");
    let fields = |line: &str| line.split('"').step_by(2).flat_map(|part| part.matches(',')).count();
    assert!(lines.lines().all(|line| fields(line) == fields(lines.lines().next().unwrap())), "{lines}");
    let text = of(&["--operation=TRIAD", &svg]);
    assert!(text.starts_with("Bandwidth  all threads of a node at once"), "{text}");
    assert!(text.contains("triad, small pages") && text.contains("seed 1;"), "{text}");
    assert!(fs::read_to_string(&picture).unwrap().starts_with("<svg "));
}

/// Saves a result and shows it again in every form: what JSON gives back is the same to the letter.
fn shown_again(verb: &str, words: &[&str], head: &str) {
    let ran = run(&[&[verb, "--json", "--seed=1"], words].concat());
    if ran.code == Some(3) && verb == "c2c" {
        // One CPU: there are no pairs.
        return;
    }
    let text = ran.ok();
    let folder = tempfile::tempdir().unwrap();
    let (result, picture) = (folder.path().join("a.json"), folder.path().join("a.svg"));
    fs::write(&result, &text).unwrap();
    let from = format!("--from={}", result.display());
    let again = |more: &[&str]| run(&[&[verb, &from], more].concat()).ok();
    assert_eq!(again(&["--json"]), text);
    assert!(again(&["--csv"]).lines().count() > 1);
    let shown = again(&["--svg", picture.to_str().unwrap()]);
    assert!(shown.starts_with(head) && shown.contains("seed 1;"), "{shown}");
    assert!(fs::read_to_string(&picture).unwrap().starts_with("<svg "));
    for columns in ["60", "80", "120"] {
        let text = output(command([verb, &from]).env("COLUMNS", columns)).ok();
        assert!(wider(&text, columns.parse().unwrap()).is_empty(), "{columns}: {text}");
    }
}

#[test]
fn results_are_shown_again_in_every_form() {
    shown_again("bandwidth", &["--quick", "--size=1M", "--huge=never", "--matrix"], "Bandwidth  all threads");
    shown_again("bandwidth", &["--quick", "--size=1M", "--file"], "Files in memory");
    shown_again("c2c", &["--quick", "--transfer=dirty"], "Core to core");
}

#[test]
fn texts_fit_sixty_columns() {
    let bandwidth = [&["bandwidth", "--matrix"], &SMALL[..]].concat();
    let cores = vec!["c2c", "--quick", "--seed=1", "--transfer=dirty"];
    for words in [bandwidth, cores] {
        let ran = output(command(&words).env("COLUMNS", "60"));
        assert!(wider(&ran.stdout, 60).is_empty(), "{words:?}: {}", ran.stdout);
        assert!(!ran.stdout.contains('\x1b'));
    }
}

#[test]
fn kernels_sizes_and_files_that_are_none_are_wrong_usage() {
    let check = |words: &[&str], expected: &str| wrong("bandwidth", words, expected);
    check(
        &["--operation=memset"],
        "\"memset\" is not an operation: expected one of read, write, write-NT, copy,",
    );
    check(&["--size=1K"], "--size: 1 KiB is not a size to measure with: expected 256 KiB to 16 TiB");
    check(&["--nodes=9999"], "--nodes: node 9999 does not exist");
    check(&["--machine", "2x(8c 64G)"], "--machine has no meaning with nodewise bandwidth");
    check(&["--dry-run"], "--dry-run goes with --apply-weights or --undo-weights");
    check(
        &["--undo-weights=/no/such"],
        "--undo-weights: cannot read \"/no/such\": no such file or directory",
    );
    check(&["--undo-weights=/etc/hostname"], "holds no weights: line 1 is ");
    check(&["--undo-weights=x", "--quick"], "--quick");
    check(&["--from=/no/such"], "--from: cannot read \"/no/such\": no such file or directory");
    check(&["--from=/etc/hostname"], "--from: \"/etc/hostname\" is not a result of nodewise bandwidth: ");
    check(&["--from=a.json", "--operation=copy"], "--operation");
    check(&["--from=a.json", "--apply-weights=b"], "--apply-weights");
    let cores = |words: &[&str], expected: &str| wrong("c2c", words, expected);
    cores(&["--transfer=ping"], "\"ping\" is not a transfer: expected hand-over, dirty, clean");
    cores(&["--huge-pages=thp"], "--huge-pages");
    assert!(!run(&["c2c", "--help"]).ok().contains("--huge-pages"));
    cores(&["--from=/etc/hostname"], "--from: \"/etc/hostname\" is not a result of nodewise c2c: ");
    cores(&["--from=a.json", "--quick"], "--quick");
    cores(&["--machine", "2x(8c 64G)"], "--machine has no meaning with nodewise c2c");
}

#[test]
fn weights_that_cannot_be_set_are_refused_before_anything_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("old.weights");
    let apply = |more: &[&str]| {
        let option = format!("--apply-weights={}", path.display());
        run(&[&["bandwidth", "--matrix", &option], &SMALL[..], more].concat())
    };
    let machine = live();
    let cannot = match (machine.settings.interleave_weights.is_empty(), machine.memory_nodes().len()) {
        (true, _) => {
            Some("there are no weights to set: weighted interleave needs Linux 6.9 or newer, this is ")
        }
        (false, 0 | 1) => Some("one node with memory has nothing to interleave with: expected two or more"),
        (false, _) => None,
    };
    let Some(why) = cannot else {
        // Nothing is set: the machine is somebody's.
        let ran = apply(&["--dry-run"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stderr.contains("node ") && ran.stdout.contains("weights for"), "{}", ran.stderr);
        assert!(!path.exists());
        fs::write(&path, "x").unwrap();
        let ran = apply(&[]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{}", ran.stderr);
        assert!(ran.stderr.contains("is there already"), "{}", ran.stderr);
        return;
    };
    for more in [&[][..], &["--dry-run"]] {
        let ran = apply(more);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), ""), "{}", ran.stderr);
        assert!(ran.stderr.starts_with(&format!("nodewise: {why}")), "{}", ran.stderr);
        assert!(!path.exists());
    }
    wrong(
        "bandwidth",
        &["--file", "--apply-weights=x"],
        "--file and --apply-weights cannot be used together",
    );
}

#[test]
fn weights_of_a_file_are_shown_before_they_are_set() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("old.weights");
    fs::write(&path, "nodewise.weights/1\nauto 0\nnode0 3\nnode7 200\n").unwrap();
    let before = live().settings.interleave_weights;
    let ran = run(&["bandwidth", "--dry-run", &format!("--undo-weights={}", path.display())]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{}", ran.stderr);
    let lines: Vec<&str> = ran.stderr.lines().collect();
    assert!(lines[0].starts_with("node 0: weight ") && lines[1].starts_with("node 7: weight "), "{lines:?}");
    assert!(lines[1].ends_with("would become 200"), "{lines:?}");
    assert_eq!(live().settings.interleave_weights, before, "nothing is set");
}

#[test]
fn every_pair_of_cpus_is_measured_both_ways_or_says_why_not() {
    let ran = run(&["c2c", "--quick", "--json", "--seed=1"]);
    if ran.code == Some(3) {
        // One CPU: there are no pairs.
        assert!(ran.stderr.contains("one CPU has no other to get a line from") || !ran.stdout.is_empty());
        return;
    }
    let document = ran.ok_json();
    assert_eq!(document["schema"], "nodewise.c2c/1");
    let pairs = document["pairs"].as_array().unwrap();
    for pair in pairs {
        let back = |other: &&Value| {
            (&other["to_cpu"], &other["from_cpu"], &other["transfer"])
                == (&pair["from_cpu"], &pair["to_cpu"], &pair["transfer"])
        };
        assert!(pairs.iter().any(|other| back(&other)), "no way back: {pair}");
        match pair["median_ns"].as_f64() {
            Some(median) => assert!(median > 0.0 && pair["best_ns"].as_f64().unwrap() <= median, "{pair}"),
            None => assert!(pair["refused"].as_str().is_some_and(|why| !why.is_empty()), "{pair}"),
        }
        assert_eq!(pair["placed_before_share"], 1.0, "{pair}");
    }
}
