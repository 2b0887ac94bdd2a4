//! `nodewise tune` with programs that take no time: the table, the JSON, and everything that can go
//! wrong with a program.

use std::fs;
use std::thread;

use serde_json::Value;

mod cooling;
mod fidelity;
mod journal;
mod prepare;
mod serve;
mod space;

use crate::nodewise::{KNOW_NODEWISE, Ran, a_memory_node, command, output, run, shell, wider};

/// Tunes a shell script under one placement beside the default.
fn tune(options: &[&str], script: &str) -> Ran {
    let placement = format!("--placement=membind={}", a_memory_node());
    run(&[&["tune", &placement, "--seed=1", "--repeats=0"], options, &["--", "sh", "-c", script]].concat())
}

fn json(options: &[&str], script: &str) -> Value {
    let ran = tune(&[&["--json"], options].concat(), script);
    assert_eq!(ran.stderr, "", "with --json nothing else is said");
    ran.json()
}

/// A program that counts its runs in a file, and does something in one of them.
fn counting(folder: &tempfile::TempDir, number: u32, script: &str) -> String {
    let count = folder.path().join("count");
    fs::write(&count, "0\n").unwrap();
    format!("n=$(($(cat {0}) + 1)); echo $n > {0}; if [ $n = {number} ]; then {script}; fi", count.display())
}

#[test]
fn a_study_ends_in_a_table_and_a_sentence() {
    for columns in ["60", "80", "120"] {
        let node = a_memory_node();
        let placement = format!("membind={node}");
        let words = ["tune", "--placement", &placement, "--runs=2", "--seed=7", "true"];
        let ran = output(command(words).env("COLUMNS", columns));
        assert_eq!(wider(&ran.stdout, columns.parse().unwrap()), [""; 0]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        for words in [
            "2 placements, 2 rounds in ",
            ", seed 7: ",
            "placement",
            "default ",
            "baseline",
            &format!("memory of node {node} "),
            "too few",
            "--runs=7",
        ] {
            assert!(ran.stdout.contains(words), "{words} is not in\n{}", ran.stdout);
        }
        // A pipe gets no progress: one line that says what begins.
        assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
        assert!(ran.stderr.starts_with("nodewise: tuning the program under 2 placements"), "{}", ran.stderr);
        assert!(!ran.stderr.contains(['\r', '\u{1b}']));
    }
}

#[test]
fn json_holds_every_sample_and_the_conditions() {
    let study = json(&["--runs=3"], "exit 0");
    assert_eq!(study["schema"], "nodewise.tune/2");
    assert_eq!(
        (&study["end"], &study["seed"], &study["rounds"]),
        (&"completed".into(), &1.into(), &3.into())
    );
    assert_eq!(study["conditions"]["command"][0], "sh");
    assert!(study["conditions"]["kernel"].is_string());
    assert_eq!(study["metric"]["kind"], "wall");
    let samples = study["samples"].as_array().unwrap();
    // A warm-up round and three others, each with the default twice and the placement once.
    assert_eq!(samples.len(), 4 * 3);
    for sample in samples {
        assert_eq!(sample["ending"], "done", "{sample}");
        assert!(sample["wall_s"].as_f64().unwrap() > 0.0, "{sample}");
        assert_eq!(sample["value"], sample["wall_s"], "{sample}");
    }
    for (arm, runs) in [(0, 6), (1, 3)] {
        assert_eq!(study["arms"][arm]["summary"]["runs"], runs);
        let of_arm: Vec<f64> = samples
            .iter()
            .filter(|sample| sample["arm"] == arm && sample["round"] != 0)
            .map(|sample| sample["wall_s"].as_f64().unwrap())
            .collect();
        let least = of_arm.iter().copied().fold(f64::INFINITY, f64::min);
        assert_eq!(study["arms"][arm]["summary"]["least"].as_f64(), Some(least));
    }
}

#[test]
fn csv_has_a_header_and_a_line_per_placement_and_nothing_beside_it() {
    let slower = "if grep -q ' bind' /proc/self/numa_maps; then echo score: 20; else echo score: 10; fi";
    let ran = tune(&["--csv", "--metric=score: ([0-9.]+)"], slower);
    assert_eq!(ran.stderr, "", "with --csv nothing else is said");
    let text = ran.ok();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(lines[0].starts_with("placement,run_options,threads,metric,unit,runs,"), "{text}");
    assert!(lines[1].starts_with("default,,,score: ([0-9.]+),,"), "{text}");
    assert!(lines[1].ends_with(",10,,,,,,baseline"), "{text}");
    let node = a_memory_node();
    assert!(lines[2].starts_with(&format!("memory of node {node},--membind={node},,score: ")), "{text}");
    assert!(lines[2].contains(",20,100,100,100,") && lines[2].ends_with(",worse"), "{text}");
}

#[test]
fn the_picture_has_a_row_per_placement_and_where_nothing_ran_there_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let picture = folder.path().join("study.svg");
    let option = format!("--svg={}", picture.display());
    let study = json(&[&option, "--runs=2"], "exit 0");
    let svg = fs::read_to_string(&picture).unwrap();
    for words in ["Change of wall time by placement: sh -c", "2 placements, 2 rounds in", "too few rounds: 2"]
    {
        assert!(svg.contains(words), "{words} is not in {svg}");
    }
    for arm in study["arms"].as_array().unwrap() {
        assert!(svg.contains(&format!(">{}<", arm["name"].as_str().unwrap())), "{svg}");
    }
    fs::remove_file(&picture).unwrap();
    let ran = tune(&[&option], "exit 3");
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert!(ran.stderr.contains("nothing was measured, so there is no picture"), "{}", ran.stderr);
    assert!(!picture.exists());
    let ran = tune(&["--svg=/nonexistent/study.svg"], "exit 0");
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(3), ""),
        "it is found out before the study: {}",
        ran.stderr
    );
}

#[test]
fn a_saved_study_is_shown_in_every_form_without_running_anything() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (saved, first, second) = (path("study.json"), path("first.svg"), path("second.svg"));
    let score = "--metric=score: ([0-9.]+)";
    let written = tune(&["--json", "--svg", &first, score], "echo score: 10").ok();
    fs::write(&saved, &written).unwrap();
    let from = |options: &[&str]| run(&[&["tune", "--from", &saved], options].concat());
    let text = from(&[]).ok();
    assert!(text.starts_with("no placement helps\n2 placements, 6 rounds in "), "{text}");
    assert!(text.contains("baseline") && text.contains("score: "), "{text}");
    let drawn = from(&["--json", "--svg", &second]);
    assert_eq!(drawn.stderr, "");
    assert_eq!(drawn.ok(), written, "all of the document");
    assert_eq!(fs::read(&first).unwrap(), fs::read(&second).unwrap());
    let csv = from(&["--csv"]).ok();
    assert!(csv.lines().nth(1).unwrap().ends_with(",10,,,,,,baseline"), "{csv}");
    for options in [&["--runs=2"][..], &["--repeats=0"], &["--all"], &["true"]] {
        assert_eq!(from(options).code, Some(2), "{options:?} has no meaning with --from");
    }
    fs::write(&saved, "{\"schema\": \"nodewise.latency/1\"}").unwrap();
    let wrong = from(&[]);
    assert_eq!(wrong.code, Some(2));
    assert!(
        wrong.stderr.contains("is not a result of nodewise tune --json: its schema is"),
        "{}",
        wrong.stderr
    );
}

#[test]
fn a_seed_fixes_the_order() {
    let order = |seed: &str| {
        let words = [
            "tune",
            "--placement=huge=never",
            "--placement=localalloc",
            "--runs=8",
            "--no-race",
            "--repeats=0",
            "--json",
            seed,
            "true",
        ];
        let study = run(&words).ok_json();
        let samples = study["samples"].as_array().unwrap().clone();
        samples
            .iter()
            .map(|sample| (sample["round"].clone(), sample["arm"].clone(), sample["replicate"].clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(order("--seed=1"), order("--seed=1"));
    assert_ne!(order("--seed=1"), order("--seed=2"));
}

#[test]
fn a_race_ends_when_the_best_is_known_and_says_who_dropped_out() {
    let same = json(&["--metric=score: ([0-9.]+)"], "echo score: 10");
    assert_eq!(
        (&same["end"], &same["rounds"], &same["race"]["settled"]),
        (&"settled".into(), &6.into(), &0.into())
    );
    assert_eq!(same["race"]["out"], Value::Array(Vec::new()));
    assert_eq!(same["advice"]["kind"], "keep");
    // The program asks which policy it got, and is twice as slow under the placement.
    let slower = "if grep -q ' bind' /proc/self/numa_maps; then echo score: 20; else echo score: 10; fi";
    let study = json(&["--metric=score: ([0-9.]+)"], slower);
    assert_eq!((&study["end"], &study["race"]["settled"]), (&"settled".into(), &0.into()));
    assert_eq!(study["race"]["out"][0]["arm"], 1);
    assert_eq!(study["arms"][1]["verdict"], "worse");
    let text = tune(&["--metric=score: ([0-9.]+)", "--higher-is-better"], slower).ok();
    assert!(text.contains("settled: memory of node"), "{text}");
    assert!(text.contains("use: nodewise run --membind="), "{text}");
}

#[test]
fn without_a_race_every_placement_runs_in_every_round() {
    let study = json(&["--no-race", "--runs=7", "--metric=score: ([0-9.]+)"], "echo score: 10");
    assert_eq!((&study["end"], &study["rounds"]), (&"completed".into(), &7.into()));
    assert!(study["race"].is_null());
}

#[test]
fn time_limits_the_rounds() {
    assert_eq!(json(&["--time=1h", "--runs=2"], "exit 0")["rounds"], 2);
    // The first run shows that four of it do not fit, and one that outlives the time is ended.
    for (time, script, why) in [
        // One run has 2.7 s to spare on a machine that is busy.
        ("4s", "sleep 1.3", "one round of this command takes "),
        ("300ms", "exec sleep 100", "one run of this command takes longer\n"),
    ] {
        let option = format!("--time={time}");
        let ran = tune(&[&option], script);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{}", ran.stderr);
        let said = format!("nodewise: --time {time} is too short: {why}");
        assert!(ran.stderr.contains(&said), "{}", ran.stderr);
        let ran = tune(&[&option, "--json"], script);
        let study: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(
            (ran.code, &study["end"], &study["rounds"]),
            (Some(2), &"budget_too_short".into(), &0.into())
        );
        assert!(ran.stderr.contains(&said), "{}", ran.stderr);
    }
}

#[test]
fn a_list_of_what_was_not_tried_is_folded_unless_all_is_shown() {
    // As many rounds as it takes to get to the results.
    let text = |options: &[&str]| run(&[&["tune", "--runs=1", "--seed=1"], options, &["true"]].concat()).ok();
    let (brief, all) = (text(&[]), text(&["--all"]));
    let words = brief.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(" not tried: ") && words.ends_with("(--all says why)"), "{brief}");
    assert!(!all.contains("--all") && all.contains("\nNot tried\n  "), "{all}");
    assert!(all.lines().count() > brief.lines().count() + 4, "{all}");
    // The conclusion is the first line.
    assert!(
        brief.starts_with("too few rounds to say which is best") || brief.starts_with("nothing to compare")
    );
}

#[test]
fn without_a_program_a_machine_of_one_node_gets_a_first_look() {
    if crate::nodewise::memory_nodes() > 1 {
        eprintln!("not tried: this machine has several nodes");
        return;
    }
    for columns in ["60", "80"] {
        let ran = output(command(["tune", "--runs=1", "--seed=7"]).env("COLUMNS", columns));
        assert_eq!(wider(&ran.stdout, columns.parse().unwrap()), [""; 0]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let words = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.starts_with("one node: where memory lies cannot make a difference on this machine "));
        for part in [
            " ns ",
            " GB/s ",
            "Example a server with two nodes: predicted from declared figures, not measured",
            "interleave all 160 GB/s +100 %",
            "nodewise tune -- PROGRAM",
            "nodewise lab --machine",
        ] {
            assert!(words.contains(part), "{part} is not in {}", ran.stdout);
        }
    }
    let study = run(&["tune", "--runs=1", "--json"]).ok_json();
    assert_eq!(study["metric"]["pattern"], "latency ([0-9.]+) ns");
    assert!(study["arms"][0]["also"][0]["median"].as_f64().unwrap() > 0.0, "{study}");
}

#[test]
fn a_metric_is_the_last_match_of_what_the_program_prints() {
    let study = json(
        &["--runs=2", "--metric=score: ([0-9.]+)", "--higher-is-better"],
        "echo score: 1; echo score: 2.5",
    );
    assert_eq!(study["arms"][1]["summary"]["median"], 2.5);
    assert_eq!(study["metric"]["better"], "higher");
    let study = json(&["--runs=1", "--metric=took ([0-9]+)"], "echo took 7 >&2");
    assert_eq!(study["arms"][0]["summary"]["median"], 7.0);
    assert_eq!(study["metric"]["better"], "lower");
}

#[test]
fn what_a_program_uses_can_be_what_is_compared() {
    for (metric, unit) in [("cpu", "s"), ("rss", "bytes")] {
        let study = json(
            &["--runs=1", &format!("--metric={metric}")],
            "i=0; while [ $i -lt 9999 ]; do i=$((i+1)); done",
        );
        assert_eq!((&study["metric"]["kind"], &study["metric"]["unit"]), (&metric.into(), &unit.into()));
        let arm = &study["arms"][0];
        let shown = if metric == "cpu" { &arm["counted"]["cpu_s"] } else { &arm["counted"]["max_rss_bytes"] };
        assert_eq!(&arm["summary"]["median"], shown, "{arm}");
        assert!(shown.as_f64().unwrap() > 0.0);
    }
    let wrong = run(&["tune", "--metric=rss", "--higher-is-better", "true"]);
    let expected = "nodewise: --higher-is-better contradicts --metric=rss: less memory is better\n";
    assert_eq!((wrong.code, wrong.stderr.as_str()), (Some(2), expected));
}

#[test]
fn the_first_metric_decides_and_the_others_are_shown_beside_it() {
    let metrics =
        ["--metric=tps ([0-9.]+)", "--metric=latency ([0-9.]+)", "--metric=cpu", "--metric=node-loads"];
    let script =
        "if grep -q ' bind' /proc/self/numa_maps; then echo tps 20 latency 4; else echo tps 10 latency 2; fi";
    let study = json(&[&["--higher-is-better"], &metrics[..]].concat(), script);
    assert_eq!(
        (&study["metric"]["pattern"], &study["arms"][1]["verdict"]),
        (&"tps ([0-9.]+)".into(), &"better".into())
    );
    let also = study["also"].as_array().unwrap();
    let kinds: Vec<&str> = also.iter().map(|metric| metric["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["printed", "cpu", "node-loads"]);
    let latency = &study["arms"][1]["also"][0];
    assert_eq!((&latency["median"], &latency["ratio"]), (&4.0.into(), &2.0.into()));
    assert_eq!(study["samples"][0]["also"].as_array().unwrap().len(), 3);
    // What the CPU does not count is named with the reason.
    let counted = study["arms"][0]["also"][2].is_object();
    let named = study["not_counted"].as_array().into_iter().flatten().any(|one| one["event"] == "node-loads");
    assert!(counted != named, "{study}");
}

#[test]
fn a_counter_that_is_not_there_cannot_decide_and_a_metric_is_named_once() {
    let ran = run(&["tune", "--metric=dTLB-misses", "--runs=1", "--placement=localalloc", "true"]);
    if ran.code == Some(3) {
        let expected = "nodewise: --metric: dTLB-load-misses cannot be compared here: ";
        assert!(ran.stderr.starts_with(expected), "{}", ran.stderr);
    } else {
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    }
    let twice = run(&["tune", "--metric=cpu", "--metric=cpu", "true"]);
    assert_eq!(
        (twice.code, twice.stderr.as_str()),
        (Some(2), "nodewise: --metric: \"cpu\" is named twice\n")
    );
    let one = run(&["tune", "--metric=dTLB-misses", "--metric=wall", "--metric=dTLB-load-misses", "true"]);
    let expected = "nodewise: --metric: \"dTLB-misses\" and \"dTLB-load-misses\" are one counter\n";
    assert_eq!((one.code, one.stderr.as_str()), (Some(2), expected));
}

#[test]
fn megabytes_of_output_and_a_reading_program_disturb_nothing() {
    let study = json(
        &["--runs=1", "--metric=score: ([0-9]+)"],
        "head -c 8000000 /dev/zero; head -c 8000000 /dev/zero >&2; echo score: 5",
    );
    assert_eq!(study["arms"][1]["summary"]["median"], 5.0);
    // The program's input is empty, whatever ours is.
    let ran =
        shell("yes | $nodewise tune --runs=1 --placement=localalloc --json -- sh -c '[ -z \"$(cat)\" ]'");
    let study = ran.ok_json();
    assert_eq!(study["end"], "completed");
}

#[test]
fn a_program_has_no_more_open_files_than_by_itself() {
    let script = "echo files: $(ls /proc/self/fd | wc -l)";
    let bare = shell(script).ok();
    let study = json(&["--runs=1", "--metric=files: ([0-9]+)"], script);
    for arm in [0, 1] {
        let most = study["arms"][arm]["summary"]["most"].as_f64().unwrap();
        assert_eq!(format!("files: {most}\n"), bare);
    }
}

#[test]
fn a_program_that_never_works_is_said_to() {
    let check = |options: &[&str], script: &str, why: &str| {
        let ran = tune(options, script);
        assert_eq!(ran.code, Some(3), "{}", ran.stdout);
        let text = ran.stdout.replace("\n  ", " ");
        let (first, head) = text.split_once('\n').unwrap();
        assert_eq!(first, format!("the program fails without any placement too: {why}"));
        assert!(head.starts_with("2 placements, 0 rounds in "), "{head}");
        let twin = tune(&[&["--json"], options].concat(), script);
        assert_eq!(twin.json()["end"], "baseline_failed");
        assert_eq!(twin.stderr, format!("nodewise: the program fails without any placement too: {why}\n"));
    };
    check(&[], "echo before; echo oops >&2; exit 3", "ended with exit code 3: oops");
    check(&[], "kill -9 $$", "ended by signal 9 (SIGKILL, as the kernel sends when memory runs out)");
    check(&["--metric=x=([0-9]+)"], "echo y=1", "nothing in the output matches \"x=([0-9]+)\"");
    check(&["--metric=x=(.*)"], "echo x=fast", "\"fast\" in the output is not a number");
    check(&["--run-limit=100ms"], "exec sleep 100", "did not end within 100ms");
}

// Without a limit of time it would never end.
#[test]
fn a_program_that_a_signal_stops_is_ended_in_its_first_run() {
    let stopped = |script| {
        let ran = tune(&["--runs=1"], script);
        let why = "was stopped by a signal (as SIGSTOP does) and did not continue within 5s";
        assert_eq!(ran.code, Some(3), "{}{}", ran.stdout, ran.stderr);
        let last = format!("nodewise: the program fails without any placement too: {why}");
        assert_eq!(ran.stderr.lines().last(), Some(last.as_str()), "{}", ran.stderr);
    };
    thread::scope(|scope| {
        scope.spawn(|| stopped("kill -STOP $$"));
        scope.spawn(|| stopped("sh -c 'kill -STOP $$'; true"));
    });
}

#[test]
fn what_a_program_says_does_not_drive_the_terminal() {
    for (options, script) in [
        (&[][..], "printf '\\033[2J' >&2; exit 3"),
        (&["--metric=x=(.*)"], "printf 'x=\\033[2J\\n'"),
        (&["--metric=\u{1b}(.*)"], "true"),
    ] {
        let ran = tune(options, script);
        assert_eq!(ran.code, Some(3), "{script}");
        assert!(ran.stdout.contains("\\x1b"), "{}", ran.stdout);
        assert!(!ran.stdout.contains('\u{1b}') && !ran.stderr.contains('\u{1b}'), "{}", ran.stdout);
    }
}

#[test]
fn a_program_that_cannot_be_started_is_said_to() {
    for (program, why) in
        [("no-such-program", "no-such-program: no such file or directory"), ("/", "/: permission denied")]
    {
        let ran = run(&["tune", "--placement=localalloc", "--", program]);
        assert_eq!(ran.code, Some(3));
        let text = ran.stdout.replace("\n  ", " ");
        let expected = format!("the program fails without any placement too: could not be started: {why}\n");
        assert!(text.starts_with(&expected), "{text}");
    }
}

#[test]
fn a_failure_under_one_placement_is_a_result() {
    if !shell("grep THP_enabled /proc/self/status").stdout.ends_with("1\n") {
        eprintln!("a failing placement skipped: this kernel does not say that this process has huge pages");
        return;
    }
    let script = "grep -q 'THP_enabled:.*1' /proc/self/status || { echo needs huge pages >&2; exit 7; }";
    let arguments =
        ["tune", "--placement=huge=never", "--placement=localalloc", "--runs=3", "sh", "-c", script];
    let ran = run(&arguments);
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
    // The sentence goes on below in its column.
    let words = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("failed: ended with exit code 7: needs huge pages"), "{}", ran.stdout);
    let study = run(&[&arguments[..1], &["--json"], &arguments[1..]].concat()).ok_json();
    assert_eq!(study["arms"][1]["verdict"], "failed", "{}", study["arms"][1]);
    assert_eq!(study["arms"][2]["summary"]["runs"], 3);
}

#[test]
fn placements_that_are_the_same_are_tried_once() {
    let node = a_memory_node();
    let (once, again) = (format!("--placement=membind={node}"), format!("--placement=membind=+0,{node}"));
    let dashed = format!("--placement=--membind={node}");
    let words = [
        "tune",
        &once,
        &once,
        &dashed,
        &again,
        "--placement=default",
        "--placement=",
        "--runs=1",
        "--json",
        "true",
    ];
    let study = run(&words).ok_json();
    let names: Vec<&str> =
        study["arms"].as_array().unwrap().iter().map(|arm| arm["name"].as_str().unwrap()).collect();
    let named = format!("memory of node {node}");
    assert_eq!(names[..2], ["default", &named]);
    assert!(names.len() == 2 || names.len() == 3 && names[2] != named, "{names:?}");
}

#[test]
fn an_interrupt_ends_a_study_with_the_results_so_far() {
    for signal in ["INT", "TERM"] {
        let folder = tempfile::tempdir().unwrap();
        // Round 0 is the warm-up; the first two rounds of three runs each are whole.
        let interrupting = format!("{KNOW_NODEWISE}; kill -{signal} $nodewise; exec sleep 100");
        let script = counting(&folder, 11, &interrupting);
        let ran = tune(&["--runs=5"], &script);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stdout.contains("ended before its time: these are the results so far"), "{}", ran.stdout);
        assert!(ran.stdout.contains("too few rounds: 2/7"), "{}", ran.stdout);
        let study = json(&["--runs=5"], &counting(&folder, 5, &interrupting));
        assert_eq!(study["end"], "interrupted");
        let endings: Vec<&str> = study["samples"]
            .as_array()
            .unwrap()
            .iter()
            .map(|sample| sample["ending"].as_str().unwrap())
            .collect();
        assert_eq!(endings, ["done", "done", "done", "done", "interrupted"]);
    }
}

#[test]
fn the_default_is_tried_even_where_no_placement_can_be() {
    if !crate::sandbox::is_root() {
        return;
    }
    let public = crate::sandbox::Public::new();
    // A process that may have no second thread cannot try a placement beforehand.
    let limited = "prlimit --nproc=1 setpriv --reuid=65534 --clear-groups";
    let ran = shell(&format!("{limited} {} tune --runs=1 true", public.nodewise().display()));
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert!(ran.stdout.contains("the program fails without any placement too: "), "{}", ran.stdout);
}

#[test]
fn nothing_outlives_nodewise_however_it_ends() {
    for signal in ["INT", "TERM", "KILL"] {
        let folder = tempfile::tempdir().unwrap();
        let pids = folder.path().join("pids");
        // A child, one in a session of its own, and the program itself.
        let file = pids.display();
        let script = format!(
            "sleep 1000 & echo $! > {file}; setsid sh -c 'echo $$ >> {file}; exec sleep 1000' & \
             while [ $(wc -l < {file}) -lt 2 ]; do :; done; echo $$ >> {file}; \
             {KNOW_NODEWISE}; trap '' TERM; kill -{signal} $nodewise; wait"
        );
        let expected = (signal != "KILL").then_some(0);
        assert_eq!(tune(&["--runs=1"], &script).code, expected);
        serve::gone(&pids, 3);
    }
}
