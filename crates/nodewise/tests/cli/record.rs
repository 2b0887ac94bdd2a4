//! `nodewise record`: what is in the file, whatever ends it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use nodewise_source::record::Recording;

use crate::nodewise::{command, live, run};

fn samples(file: &Path) -> usize {
    let (samples, gaps) = Recording::open(file).unwrap().samples().unwrap();
    assert!(gaps.is_empty(), "{gaps:?}");
    let me = samples.iter().all(|sample| !sample.processes.is_empty() && !sample.nodes.is_empty());
    assert!(me, "processes and nodes are in every sample");
    samples.len()
}

#[test]
fn a_recording_holds_this_machine_and_its_processes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.nwr");
    let name = file.to_str().unwrap();
    let ran = run(&["record", "-o", name, "--every", "100ms", "--for", "1s"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{}", ran.stderr);
    assert!(ran.stderr.starts_with("nodewise: wrote "), "{}", ran.stderr);
    assert!(samples(&file) >= 2);
    let machine = Recording::open(&file).unwrap().header().machine().unwrap().unwrap();
    assert_eq!(machine.online_cpus(), live().online_cpus());
    let text = String::from_utf8_lossy(&fs::read(&file).unwrap()).into_owned();
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    assert!(!text.contains(&format!("\"{}\"", host.trim())), "the host's name stays out");
}

#[test]
fn a_recording_of_interrupts_has_the_devices_of_this_machine() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.nwr");
    let name = file.to_str().unwrap();
    assert_eq!(run(&["record", "-o", name, "--irq", "--every", "100ms", "--for", "1s"]).code, Some(0));
    let devices = |words: &[&str]| {
        let shown = run(&[&["stat", "--json"], words].concat()).ok_json();
        let rows = shown["devices"].as_array().cloned().unwrap_or_default();
        rows.iter().map(|row| row["device"].to_string()).collect::<BTreeSet<_>>()
    };
    assert_eq!(devices(&["--from", name]), devices(&["--irq"]));
}

#[test]
fn a_file_that_exists_is_kept_unless_force_is_given() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.nwr");
    fs::write(&file, "mine").unwrap();
    let name = file.to_str().unwrap();
    let ran = run(&["record", "-o", name, "--for", "1ms"]);
    assert_eq!(ran.code, Some(3));
    assert!(ran.stderr.contains("exists: name another file, or overwrite it with --force"), "{}", ran.stderr);
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    assert_eq!(run(&["record", "-o", name, "--force", "--for", "1ms"]).code, Some(0));
    assert!(samples(&file) >= 1);
}

#[test]
fn a_program_ends_the_recording_and_its_code_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let name = |file: &str| folder.path().join(file).to_str().unwrap().to_owned();
    let code =
        |file: &str, program: &[&str]| run(&[&["record", "-o", &name(file), "--"], program].concat()).code;
    assert_eq!(code("a.nwr", &["sh", "-c", "exit 5"]), Some(5));
    assert_eq!(code("b.nwr", &["sh", "-c", "kill -9 $$"]), Some(137));
    assert_eq!(code("c.nwr", &["no-such-program"]), Some(127));
    assert_eq!(samples(&folder.path().join("a.nwr")), 2, "before and after");
}

#[test]
fn wrong_words_are_refused_with_what_would_be_right() {
    let refused = |words: &[&str], message: &str, code: i32| {
        let ran = run(&[&["record"], words].concat());
        assert_eq!(ran.code, Some(code), "{words:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(message), "{words:?}: {}", ran.stderr);
    };
    refused(&[], "--output", 2);
    refused(&["-o", "x", "--every", "10ms"], "expected at least 100ms", 2);
    refused(&["-o", "x", "--max-size", "1K"], "expected at least 64K", 2);
    refused(&["-o", "/no/such/folder/x"], "cannot write /no/such/folder/x: ", 3);
}

#[test]
fn what_kill_leaves_is_a_recording() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.nwr");
    let words = ["record", "-o", file.to_str().unwrap(), "--every", "100ms"];
    let mut child = command(words).stderr(Stdio::null()).spawn().unwrap();
    // A block is written every ten seconds. A kill in the middle of it would cut the only one.
    let began = Instant::now();
    let has_block = || Recording::open(&file).is_ok_and(|recording| recording.samples().is_ok());
    while !has_block() {
        assert!(began.elapsed() < Duration::from_secs(120), "no block within two minutes");
        thread::sleep(Duration::from_millis(50));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(samples(&file) >= 2);
}

#[test]
fn stat_shows_a_recording_and_a_moment_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.nwr");
    let name = file.to_str().unwrap();
    assert_eq!(run(&["record", "-o", name, "--every", "200ms", "--", "sleep", "1"]).code, Some(0));
    let all = run(&["stat", "--from", name, "--json"]).ok();
    assert!(all.contains("\"schema\": \"nodewise.stat/1\""), "{all}");
    let text = run(&["stat", "--from", name, "--at", "1s"]).ok();
    assert!(text.contains("Nodes  in "), "{text}");
    // The longest time that can be typed is later than any recording.
    let longest = ["--at", "18446744073709549568"];
    for verb in [&["stat"][..], &["top"], &["stat", "--against", "@18446744073709549568"]] {
        run(&[verb, &["--from", name], &longest].concat()).ok();
    }
    let text = run(&["stat", "--from", name, &std::process::id().to_string()]).ok();
    assert!(text.contains(&std::process::id().to_string()), "a process by its number: {text}");
    let refused = |words: &[&str], code: i32, message: &str| {
        let ran = run(&[&["stat", "--from", name], words].concat());
        assert_eq!(ran.code, Some(code), "{words:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(message), "{words:?}: {}", ran.stderr);
    };
    refused(&["no-such-name"], 3, "no process is named");
    refused(&["1"], 2, "--from shows a recording");
    let ran = run(&["stat", "--from", "Cargo.toml"]);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert!(ran.stderr.contains("it is not a recording"), "{}", ran.stderr);
    // Cut within its last block: the rest is shown, the end is named.
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, [&bytes[..], &bytes[bytes.len() - 30..]].concat()).unwrap();
    let ran = run(&["stat", "--from", name]);
    assert!(ran.stderr.contains("its end is missing: the file ends within a block"), "{}", ran.stderr);
}

#[test]
fn a_program_that_does_not_start_costs_no_recording() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.nwr");
    let name = file.to_str().unwrap();
    assert_eq!(run(&["record", "-o", name, "--", "no-such-program"]).code, Some(127));
    assert!(!file.exists(), "nothing is left in the way of another try");
    fs::write(&file, "old").unwrap();
    assert_eq!(run(&["record", "-o", name, "--force", "--", "no-such-program"]).code, Some(127));
    assert_eq!(fs::read_to_string(&file).unwrap(), "old");
}

#[test]
fn two_moments_and_two_recordings_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    let name = |file: &str| folder.path().join(file).to_str().unwrap().to_owned();
    let (one, other) = (name("a.nwr"), name("b@1.nwr"));
    assert_eq!(run(&["record", "-o", &one, "--every", "200ms", "--", "sleep", "1"]).code, Some(0));
    assert_eq!(run(&["record", "-o", &other, "--every", "200ms", "--", "sleep", "1"]).code, Some(0));
    let me = std::process::id();
    let document = run(&["stat", "--from", &one, "--against", "@0", "--json"]).ok_json();
    assert_eq!(document["schema"], "nodewise.stat-comparison/1");
    assert_eq!((&document["relation"], &document["backwards"]), (&"same_boot".into(), &false.into()));
    let at = |side: &str| document[side]["at_s"].as_f64().unwrap();
    // A slow machine may have taken the first two samples only.
    assert!(at("before") <= at("after") && at("after") > 0.5, "{document}");
    assert_eq!(document["before"]["recording"], document["after"]["recording"]);
    assert!(!document["facts"].as_array().unwrap().is_empty());
    let both = run(&["stat", "--from", &other, "--against", &one, "--json", &me.to_string()]).ok_json();
    let mine = &both["processes"][0];
    assert_eq!((&mine["matched_by"], &mine["pids_after"]), (&"identity".into(), &vec![me].into()), "{both}");
    // The sleep of each recording is in neither of the last samples; a process of one side alone is found.
    let text =
        run(&["stat", "--from", &one, "--against", &format!("{other}@500ms"), "--pid", &me.to_string()]).ok();
    assert!(text.contains("the moment compared with (--against) is the later one"), "{text}");
    let table = run(&["stat", "--from", &one, "--against", &other, "--csv"]).ok();
    assert!(
        table.starts_with("pid,process,node,name,before,after,change,change_low,change_high,unit\n"),
        "{table}"
    );
    let refused = |words: &[&str], code: i32, message: &str| {
        let ran = run(&[&["stat"], words].concat());
        assert_eq!(ran.code, Some(code), "{words:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(message), "{words:?}: {}", ran.stderr);
    };
    refused(&["--against", &one], 2, "--from");
    refused(&["--from", &one, "--against", "@noon"], 2, "is not a time");
    refused(&["--from", &one, "--against", "/no/such"], 3, "/no/such: ");
    refused(&["--from", &one, "--against", &other, "--raw"], 2, "--raw");
    refused(&["--from", &one, "--against", &other, "--services"], 2, "--services");
    refused(&["--from", &one, "--against", &other, "--mbm"], 2, "--mbm");
    // An option for a part that no one recorded is not silently without effect.
    refused(&["--from", &one, "--irq"], 3, "holds no interrupts of devices: nodewise record --irq adds them");
    refused(&["--from", &one, "--against", &other, "no-such-name"], 3, "no process is named");
}

#[test]
fn mappings_in_a_recording_are_shown_and_compared() {
    let folder = tempfile::tempdir().unwrap();
    let name = |file: &str| folder.path().join(file).to_str().unwrap().to_owned();
    let (first, second, without) = (name("a.nwr"), name("b.nwr"), name("c.nwr"));
    let me = std::process::id().to_string();
    let record = |file: &str, words: &[&str]| {
        let ran = run(&[&["record", "-o", file, "--for", "1ms"], words].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    };
    record(&first, &["--maps", &me, "--maps", &me]);
    let grown = std::hint::black_box(vec![1_u8; 48 << 20]);
    record(&second, &["--maps", &me]);
    record(&without, &[]);
    drop(grown);
    let shown = run(&["maps", "--from", &second, &me, "--json"]).ok_json();
    assert_eq!((&shown["schema"], &shown["pid"].to_string()), (&"nodewise.maps/1".into(), &me));
    assert!(shown["mappings"].as_array().unwrap().len() > 5, "{shown}");
    let changed = run(&["maps", "--from", &second, "--against", &first, &me, "--json"]).ok_json();
    assert_eq!(changed["schema"], "nodewise.maps-comparison/1");
    assert_eq!((&changed["relation"], &changed["same_process"]), (&"same_boot".into(), &true.into()));
    let largest = &changed["mappings"][0];
    assert!(largest["change_bytes"].as_i64().unwrap() >= 40 << 20, "{largest}");
    assert_eq!(largest["kind"], "anonymous");
    let text = run(&["maps", "--from", &second, "--against", &format!("{first}@0"), &me, "--all"]).ok();
    for words in ["Change by kind and node", "Added mappings", "Removed mappings", " resident"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let table = run(&["maps", "--from", &second, "--against", &first, &me, "--csv"]).ok();
    assert!(table.lines().all(|line| line.split(',').count() == 11), "{table}");
    let refused = |words: &[&str], code: i32, message: &str| {
        let ran = run(&[&["maps"], words].concat());
        assert_eq!(ran.code, Some(code), "{words:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(message), "{words:?}: {}", ran.stderr);
    };
    refused(
        &["--from", &without, &me],
        3,
        "holds no mappings at this moment: nodewise record --maps PID|NAME",
    );
    refused(&["--from", &first, "1"], 3, "holds no mappings of process 1 at this moment: expected one of");
    refused(&["--from", &first, "no\x1b[2Jname"], 3, "holds no mappings of \"no\\x1b[2Jname\"");
    refused(&["--from", &first, &me, "--who"], 2, "--who");
    refused(&["--from", &first, &me, "--machine", "(1c 1G)"], 2, "--machine does not go with it");
    let ran = run(&["record", "-o", &name("d.nwr"), "--maps", "no-such-name"]);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert!(!folder.path().join("d.nwr").exists(), "nothing is left in the way of another try");
}
