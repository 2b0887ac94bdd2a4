//! `nodewise maps`: a process that runs, one in a capture, and those that have nothing to show.

use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::nodewise::{command, folder_of, output, run, wider};

/// A process that waits for its input to end.
struct Waiting(Child);

impl Waiting {
    fn begin() -> Self {
        Self(Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap())
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

const STATUS: &str = "Name:\tdata\x1b[2Jbase\nState:\tS (sleeping)\nUid:\t0\t0\t0\t0\nVmRSS:\t   49160 kB\n";
const MAPS: &str = "\
1000-9000 rw-p 00000000 00:00 0                          [heap]
7f0000000000-7f0003000000 rw-p 00000000 00:00 0 
7f1000000000-7f1000002000 r--s 00000000 fe:00 12         /data/a\x1b[2J b (deleted)
";
const NUMA_MAPS: &str = "\
1000 default heap anon=1 dirty=1 N0=1 kernelpagesize_kB=4
7f0000000000 interleave:0-1 anon=12288 dirty=12288 N0=9000 N1=3288 kernelpagesize_kB=4
7f1000000000 default file=/data/a\x1b[2J\\040b\\040(deleted) mapped=1 mapmax=3 N1=1 kernelpagesize_kB=4
";

/// A capture with a process.
fn capture(more: &[(&str, &str)]) -> tempfile::TempDir {
    let files = [
        ("sys/devices/system/node/online", "0-1\n"),
        ("proc/7/status", STATUS),
        ("proc/7/maps", MAPS),
        ("proc/7/numa_maps", NUMA_MAPS),
        ("proc/7/comm", "database\n"),
        ("proc/9/maps", "5000-6000 r--s 00000000 fe:00 12 /other\n"),
        ("proc/9/comm", "reader\n"),
        ("proc/2/status", "Name:\tkthreadd\nState:\tS (sleeping)\n"),
        ("proc/2/maps", ""),
    ];
    folder_of(&files.iter().chain(more).copied().collect::<Vec<_>>())
}

fn document(folder: &tempfile::TempDir, words: &[&str]) -> Value {
    let machine = folder.path().to_str().unwrap();
    run(&[&["--machine", machine, "maps"], words].concat()).ok_json()
}

#[test]
fn a_running_process_is_counted_and_sampled() {
    let waiting = Waiting::begin();
    let pid = waiting.pid();
    let exact = run(&["maps", &pid, "--exact", "--json"]).ok_json();
    assert_eq!((exact["schema"].as_str(), exact["pid"].to_string()), (Some("nodewise.maps/1"), pid.clone()));
    assert!(exact["mappings"].as_array().unwrap().len() > 5, "{exact}");
    let sampled = run(&["maps", &pid, "--sample=10", "--seed=3", "--json"]).ok_json();
    assert_eq!(sampled["seed"], 3, "{sampled}");
    let again = run(&["maps", &pid, "--sample=10", "--seed=3", "--json"]).ok_json();
    assert_eq!(sampled["mappings"], again["mappings"]);
    let text = run(&["maps", &pid]).ok();
    assert!(text.contains("cat: ") && text.contains("Memory by kind and node"), "{text}");
}

#[test]
fn a_process_in_a_capture_is_shown_with_policies_and_findings() {
    let folder = capture(&[]);
    let found = document(&folder, &["7", "--json", "--who"]);
    assert_eq!(found["method"], "exact");
    let mapping = &found["mappings"][1];
    assert_eq!(
        (mapping["policy"].as_str(), mapping["kind"].as_str()),
        (Some("interleave:0-1"), Some("anonymous"))
    );
    assert_eq!(mapping["nodes"][0]["size_bytes"], 9000 * 4096);
    assert_eq!(found["mappings"][2]["also_in"][0]["pid"], 9, "{found}");
    assert_eq!(found["mappings"][2]["most_mapped"], 3);
    let finding = found["findings"][0].as_str().unwrap();
    assert!(
        finding.starts_with("interleave:0-1 covers 48 MiB, and 27 % of it are on node 1 where 50 %"),
        "{finding}"
    );
    let by_file = document(&folder, &["database", "--json", "--by=file"]);
    assert_eq!(by_file["grouped_by"], "file");
    assert_eq!(by_file["groups"].as_array().unwrap().len(), 3, "{by_file}");
}

#[test]
fn text_has_no_control_byte_and_fits_any_width() {
    let mut maps = MAPS.to_owned();
    let mut numa = NUMA_MAPS.to_owned();
    // A process with pages on 64 nodes.
    maps.push_str("7f2000000000-7f2000100000 rw-p 00000000 00:00 0 \n");
    numa.push_str("7f2000000000 bind:0-3 anon=64");
    (0..64).for_each(|node| numa.push_str(&format!(" N{node}=1")));
    numa.push_str(" kernelpagesize_kB=4\n");
    let folder = capture(&[("proc/7/maps", &maps), ("proc/7/numa_maps", &numa)]);
    let machine = folder.path().to_str().unwrap();
    for columns in ["60", "80", "120"] {
        for words in [&["--all", "--who"][..], &["--by=file"], &["--by=policy"], &[]] {
            let words = [&["--machine", machine, "maps", "7"], words].concat();
            let text = output(command(&words).env("COLUMNS", columns)).ok();
            assert_eq!(wider(&text, columns.parse().unwrap()), [""; 0], "{words:?}\n{text}");
            assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
            assert!(text.contains("others"), "the nodes without a column are summed: {text}");
        }
    }
}

#[test]
fn lines_for_spreadsheets_have_a_node_each() {
    let folder = capture(&[]);
    let machine = folder.path().to_str().unwrap();
    let text = run(&["--machine", machine, "maps", "7", "--csv"]).ok();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 5, "{text}");
    assert_eq!(lines[2], "7f0000000000,7f0003000000,anonymous,,interleave:0-1,4096,0,36864000,,");
}

#[test]
fn mappings_are_drawn_beside_every_form() {
    let folder = capture(&[]);
    let machine = folder.path().to_str().unwrap();
    let file = folder.path().join("maps.svg");
    let name = file.to_str().unwrap();
    for words in [&[][..], &["--json"], &["--csv"]] {
        let shown = run(&[&["--machine", machine, "maps", "7", "--svg", name], words].concat()).ok();
        assert_eq!(shown, run(&[&["--machine", machine, "maps", "7"], words].concat()).ok());
        let svg = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        assert!(svg.starts_with("<svg ") && svg.contains("node 1: 12.8 MiB, 26.8 %"), "{svg}");
        assert!(!svg.contains('\x1b'), "{svg}");
    }
    let ran = run(&["--machine", machine, "maps", "7", "--svg", "/no/such/folder/x.svg"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), ""), "before anything is read: {}", ran.stderr);
    let ran = run(&["maps", "7", "--from", "x", "--against", "y", "--svg", name]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
}

#[test]
fn what_has_no_mappings_says_why() {
    let folder = capture(&[]);
    let machine = folder.path().to_str().unwrap();
    let check = |words: &[&str], code: i32, message: &str| {
        let ran = run(&[&["--machine", machine, "maps"], words].concat());
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(code), ""), "{words:?}");
        assert!(ran.stderr.contains(message), "{words:?}: {}", ran.stderr);
    };
    check(&["99"], 3, "process 99 does not exist");
    check(&["99999999999"], 3, "process 99999999999 does not exist");
    check(&["2"], 3, "process 2 is a thread of the kernel: it has no mappings");
    check(&["nosuch"], 3, "no process is named \"nosuch\"");
    check(&["7", "--sample=10"], 3, "only a running process can be sampled");
    check(&["7", "--range=1000-2000"], 2, "a capture does not hold the nodes of single pages");
    check(&["7", "--range=2000-1000"], 2, "is not a range");
    let ran = run(&["--machine", "(1c 1G)", "maps", "7"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("has no processes"), "{}", ran.stderr);
}

#[test]
fn a_name_of_several_processes_is_refused_with_their_numbers() {
    let folder = capture(&[("proc/11/comm", "reader\n")]);
    let machine = folder.path().to_str().unwrap();
    let ran = run(&["--machine", machine, "maps", "reader"]);
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr.contains("2 processes are named \"reader\": expected one of the numbers 9, 11"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_kernel_without_numa_shows_sizes() {
    let folder = folder_of(&[
        ("sys/devices/system/cpu/online", "0\n"),
        ("proc/7/status", STATUS),
        ("proc/7/maps", MAPS),
        ("proc/7/smaps", "1000-9000 rw-p 00000000 00:00 0 [heap]\nRss: 32 kB\nSwap: 4 kB\n"),
    ]);
    let found = document(&folder, &["7", "--json"]);
    assert_eq!(
        (found["method"].as_str(), found["mappings"][0]["resident_bytes"].as_u64()),
        (Some("no_nodes"), Some(32768))
    );
    assert!(found["notes"][0].as_str().unwrap().contains("without NUMA"));
    assert_eq!(found["mappings"][0]["nodes"], Value::Null);
}
