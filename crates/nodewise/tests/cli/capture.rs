//! `nodewise capture`: every form reads back, nothing is overwritten, nothing identifies.

use std::fs;
use std::path::Path;

use nodewise_machine::Machine;

use crate::nodewise::{command, live, output, run, shell};

/// Extracts what stays the same while a machine runs.
fn lasting(machine: &Machine) -> impl PartialEq + std::fmt::Debug + use<> {
    let nodes: Vec<_> =
        machine.nodes.values().map(|node| (node.id, node.cpus.clone(), node.memory_total())).collect();
    let devices: Vec<_> = machine.devices.iter().map(|device| (device.pci, device.node)).collect();
    (nodes, machine.online_cpus(), machine.kernel.clone(), machine.page_size, devices)
}

fn machine_in(file: &Path) -> Machine {
    let json = run(&["show", "--json", "--machine", file.to_str().unwrap()]).ok();
    nodewise_source::machine_file::from_json(&json).expect("show --json prints a machine file")
}

#[test]
fn every_form_reads_back_as_this_machine() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["folder", "a.tar", "a.tar.gz", "a.tar.bz2", "a.json"] {
        let file = folder.path().join(name);
        let ran = run(&["capture", "-o", file.to_str().unwrap()]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{name}: {}", ran.stderr);
        assert!(ran.stderr.starts_with("nodewise: wrote "), "{name}: {}", ran.stderr);
        assert_eq!(lasting(&machine_in(&file)), lasting(&live()), "{name}");
        let text = run(&["show", "--machine", file.to_str().unwrap()]).ok();
        assert!(text.contains("\nNodes\n"), "{name}: {text}");
    }
}

#[test]
fn this_machine_and_its_capture_show_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.tar");
    let file = file.to_str().unwrap();
    run(&["capture", "-o", file]).ok();
    let text = |machine: &[&str]| {
        let shown = output(command([&["show"], machine].concat()).env("COLUMNS", "100")).ok();
        without_sizes(&shown)
    };
    assert_eq!(text(&[]), text(&["--machine", file]));
    // The sizes, but for those that move.
    let [live, captured] = [&[][..], &["--machine", file]].map(|machine| {
        let json = run(&[&["show", "--json"], machine].concat()).ok();
        let mut machine = nodewise_source::machine_file::from_json(&json).expect("a machine file");
        assert!(machine.read_at.is_some(), "{json}");
        (machine.origin, machine.read_at) = (nodewise_machine::Origin::Live, None);
        for node in machine.nodes.values_mut() {
            node.meminfo.retain(|field| field.name == "MemTotal");
        }
        machine
    });
    assert_eq!(live, captured);
}

/// A text line by line, with a mark for each size and share, whatever its width, and without where it is from.
fn without_sizes(text: &str) -> Vec<String> {
    let is_unit = |word: &str| ["B", "KiB", "MiB", "GiB", "TiB"].contains(&word.trim_end_matches(','));
    let line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let kept = words.iter().enumerate().filter_map(|(at, word)| {
            let is_size = words.get(at + 1).is_some_and(|next| is_unit(next));
            let is_share =
                *word == "-" || word.trim_end_matches('%').parse::<u64>().is_ok() && word.ends_with('%');
            if is_size || is_share { None } else { Some(*word) }
        });
        kept.collect::<Vec<_>>().join(" ")
    };
    text.lines().filter(|line| !line.starts_with("from ")).map(line).collect()
}

#[test]
fn the_json_hides_what_a_capture_hides_of_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    for (path, text) in [
        ("proc/cmdline", "root=UUID=b77565b5 numa_balancing=disable secret=hunter2 -- --token x\n"),
        ("proc/version", "Linux version 6.12.1 (a@b) (gcc) #1 SMP\n"),
        ("sys/devices/system/cpu/present", "0\n"),
        ("sys/devices/system/cpu/online", "0\n"),
        ("sys/devices/system/node/online", "0\n"),
        ("sys/devices/system/node/node0/cpumap", "1\n"),
        ("sys/devices/system/node/node0/distance", "10\n"),
        ("sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: 8192 kB\n"),
    ] {
        let file = root.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    let line = |words: &[&str]| {
        let json = run(&[&["show", "--json", "--machine", root.to_str().unwrap()], words].concat()).ok();
        let machine = nodewise_source::machine_file::from_json(&json).unwrap();
        machine.settings.command_line.unwrap()
    };
    assert_eq!(line(&[]), "root=… numa_balancing=disable secret=…");
    assert_eq!(
        line(&["--with-identity"]),
        "root=UUID=b77565b5 numa_balancing=disable secret=hunter2 -- --token x"
    );
}

#[test]
fn what_is_there_stays_unless_forced() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.tar.gz", "a.json"] {
        let file = folder.path().join(name);
        let file = file.to_str().unwrap();
        fs::write(file, "mine").unwrap();
        let ran = run(&["capture", "-o", file]);
        assert_eq!(ran.code, Some(2));
        let expected =
            format!("nodewise: {file} exists already: nothing was written: --force overwrites it\n");
        assert_eq!(ran.stderr, expected);
        assert_eq!(fs::read_to_string(file).unwrap(), "mine");
        assert_eq!(run(&["capture", "--force", "-o", file]).code, Some(0));
        run(&["show", "--machine", file]).ok();
    }
    let full = folder.path().join("full");
    fs::create_dir(&full).unwrap();
    fs::write(full.join("mine"), "").unwrap();
    for force in [&[][..], &["--force"]] {
        let ran = run(&[&["capture", "-o", full.to_str().unwrap()], force].concat());
        assert!(ran.code != Some(0) && ran.stderr.contains("never replaced"), "{}", ran.stderr);
        assert_eq!(fs::read_dir(&full).unwrap().count(), 1);
    }
}

#[test]
fn captures_do_not_identify_the_machine() {
    let folder = tempfile::tempdir().unwrap();
    let secrets = secrets();
    assert!(!secrets.is_empty(), "a machine has a name at least");
    for name in ["a.tar", "a.json"] {
        let file = folder.path().join(name);
        run(&["capture", "-o", file.to_str().unwrap()]).ok();
        let bytes = fs::read(&file).unwrap();
        for secret in &secrets {
            let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!found, "{name} holds {secret}");
        }
    }
}

/// Collects what would identify the machine that runs the tests, as far as this user can read it.
fn secrets() -> Vec<String> {
    let mut files = vec!["/etc/machine-id".into(), "/proc/sys/kernel/random/boot_id".into()];
    files.extend(
        ["product_uuid", "product_serial", "board_serial"].map(|name| format!("/sys/class/dmi/id/{name}")),
    );
    let interfaces = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    files.extend(
        interfaces.map(|entry| format!("/sys/class/net/{}/address", entry.file_name().to_string_lossy())),
    );
    let texts = files.iter().filter_map(|file| fs::read_to_string(file).ok());
    // Firmware has many words for "none"; what identifies has digits and no blanks.
    let identifies = |text: &String| {
        text.len() > 8
            && text.contains(|c: char| c.is_ascii_digit() && c != '0')
            && !text.contains(char::is_whitespace)
    };
    texts.map(|text| text.trim().to_owned()).filter(identifies).collect()
}

#[test]
fn a_dash_writes_the_archive_to_standard_output() {
    let folder = tempfile::tempdir().unwrap();
    let ran = shell(&format!(
        "cd {} && $nodewise capture -o - > piped.tar && $nodewise capture -o named.tar && ls",
        folder.path().display()
    ));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "named.tar\npiped.tar\n"), "{}", ran.stderr);
    assert!(ran.stderr.contains("files to standard output"), "{}", ran.stderr);
    let piped = folder.path().join("piped.tar");
    let text = run(&["show", "--machine", piped.to_str().unwrap()]).ok();
    assert!(text.contains("Nodes"), "{text}");
}
