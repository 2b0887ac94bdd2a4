//! `nodewise show`: text, its JSON twin, and the picture.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use nodewise_machine::Bytes;
use serde_json::Value;

use crate::nodewise::{command, corpus, golden, output, run, wider};

/// Machines that lie in no corpus: one of each kind of thing that a section is about.
const SPECS: [&str; 6] = [
    "(4c2t 16G)",
    "2x(10c2t 64G l3=25M/10c); dist=21; dev=net:eth0@0",
    "2x(2x(24c 126G l3=32M/6c)); dist=11,20",
    "(4c 1G) 7x(1G)",
    "2x(8c 64G) 2x(128G tier=22); dev=gpu:0@1; dev=ib:mlx5_0@0",
    "64x(4c 32G)",
];

/// A machine with a word in every kind of place.
const HOSTILE: &str = "2x(2c2t 64G l1d=32K l3=25M/2c); dist=21; dev=net:eth0@0; dev=gpu:0@1; dev=block:sda@0; arch=x86_64; kernel=6.12.5";

fn show(machine: &str, columns: &str) -> String {
    output(command(["show", "--machine", machine]).env("COLUMNS", columns)).ok()
}

/// A machine as text and JSON.
struct Shown {
    machine: String,
    texts: [(usize, String); 3],
    json: String,
}

/// Every machine that there is to show: specs, and captures of real machines. To read them all takes
/// a while, so that the tests share the result.
fn shown() -> &'static [Shown] {
    static SHOWN: OnceLock<Vec<Shown>> = OnceLock::new();
    SHOWN.get_or_init(|| {
        let captures =
            corpus("captures").into_iter().map(|path| path.to_str().expect("paths are text").to_owned());
        let machines = SPECS.into_iter().map(str::to_owned).chain(captures);
        machines
            .map(|machine| Shown {
                texts: [60, 80, 120].map(|columns| (columns, show(&machine, &columns.to_string()))),
                json: run(&["show", "--json", "--machine", &machine]).ok(),
                machine,
            })
            .collect()
    })
}

#[test]
fn text_is_what_a_person_accepted() {
    for columns in ["60", "80", "120"] {
        golden(&format!("show-{columns}"), show(SPECS[4], columns));
    }
}

#[test]
fn text_fits_any_width() {
    for Shown { machine, texts, .. } in shown() {
        for (columns, text) in texts {
            assert_eq!(wider(text, *columns), [""; 0], "{machine} at {columns} columns");
        }
    }
}

#[test]
fn a_machine_file_shows_the_same_as_what_it_was_made_from() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("machine.json");
    let file = file.to_str().unwrap();
    for Shown { machine, texts, json } in shown() {
        fs::write(file, json).unwrap();
        assert_eq!(run(&["show", "--json", "--machine", file]).ok(), *json, "{machine}");
        assert_eq!(without_origin(&show(file, "80")), without_origin(&texts[1].1), "{machine}");
    }
}

/// The text without the line that names the file; it may go on in the next.
fn without_origin(text: &str) -> Vec<&str> {
    let (head, rest) = text.split_once("\n\n").expect("sections are separated by blank lines");
    head.lines().take_while(|line| !line.contains("from ")).chain(rest.lines()).collect()
}

#[test]
fn text_and_json_name_the_same_nodes_and_sizes() {
    for Shown { machine, texts, json } in shown() {
        let json: Value = serde_json::from_str(json).unwrap();
        let text = &texts[2].1;
        let table = text.split("\n\n").find(|section| section.starts_with("Nodes")).unwrap_or_default();
        let mut rows = table.lines().skip(2).map(|row| row.split_whitespace().collect::<Vec<_>>());
        for node in json["nodes"].as_array().expect("a machine file has nodes") {
            let id = node["id"].as_u64().expect("ids are numbers").to_string();
            let row = rows.find(|row| row.first() == Some(&id.as_str()));
            let row = row.unwrap_or_else(|| panic!("{machine}: node {id} is not in\n{table}"));
            if let Some(bytes) = memory_total(node) {
                let size = Bytes::new(bytes).to_string();
                assert!(row.join(" ").contains(&size), "{machine}: node {id} has {size}, not {row:?}");
            }
        }
        assert_eq!(json["schema"], "nodewise.machine/1");
    }
}

/// MemTotal of a node in a machine file, in bytes.
fn memory_total(node: &Value) -> Option<u64> {
    let fields = node["meminfo"].as_array()?;
    fields.iter().find(|field| field["name"] == "MemTotal")?["size_bytes"].as_u64()
}

#[test]
fn no_word_of_a_machine_file_drives_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("machine.json");
    let json = run(&["show", "--json", "--machine", HOSTILE]).ok();
    let words: Vec<(usize, &str)> = json.match_indices("\": \"").collect();
    assert!(words.len() > 20, "there is something to change in {json}");
    for (at, colon) in words {
        let value = at + colon.len();
        let end = value + json[value..].find('"').expect("strings end");
        let changed = format!("{}\\u001b[2J\\u202e\\n{}", &json[..end], &json[end..]);
        fs::write(&file, &changed).unwrap();
        for verb in [&["show"][..], &[], &["show", "--json"], &["run", "--explain"], &["lab", "--dry-run"]] {
            let ran = run(&[verb, &["--machine", file.to_str().unwrap()]].concat());
            let all = ran.stdout + &ran.stderr;
            assert!(!all.contains(['\u{1b}', '\u{202e}']), "{verb:?} of {changed}\n{all}");
            assert!([Some(0), Some(2), Some(125)].contains(&ran.code), "{verb:?} of {changed}\n{all}");
        }
    }
}

#[test]
fn the_picture_is_one_xml_document_and_names_every_node() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("machine.svg");
    for machine in SPECS {
        let ran = run(&["show", "--machine", machine, "--svg", file.to_str().unwrap()]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{machine}");
        let picture = fs::read_to_string(&file).unwrap();
        assert!(picture.starts_with("<svg ") && picture.trim_end().ends_with("</svg>"), "{machine}");
    }
    assert_eq!(entries(folder.path()), ["machine.svg"], "nothing else is left behind");
}

#[test]
fn a_picture_is_written_into_a_device_and_through_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let (file, link) = (folder.path().join("machine.svg"), folder.path().join("link.svg"));
    fs::write(&file, "old").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    run(&["show", "--machine", SPECS[0], "--svg", link.to_str().unwrap()]).ok();
    assert!(fs::read_to_string(&file).unwrap().starts_with("<svg "));
    assert!(link.is_symlink());
    // As the shell's own redirection does; a rename would put a file in the device's place.
    let piped = run(&["show", "--machine", SPECS[0], "--svg", "/dev/stdout"]).ok();
    assert_eq!(piped, fs::read_to_string(&file).unwrap());
    assert!(Path::new("/dev/stdout").is_symlink());
}

fn entries(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    names.map(|name| name.into_string().unwrap()).collect()
}

#[test]
fn csv_has_a_line_for_each_fact_of_each_capture() {
    for capture in corpus("captures") {
        let machine = capture.to_str().unwrap();
        let text = run(&["show", "--csv", "--machine", machine]).ok();
        let json = run(&["show", "--json", "--machine", machine]).ok_json();
        let lines = |start: &str| text.lines().filter(|line| line.starts_with(start)).count();
        for (start, part) in
            [("nodes,node,node,", "nodes"), ("cpus,cpu,cpu,", "cpus"), ("devices,device,name,", "devices")]
        {
            assert_eq!(lines(start), json[part].as_array().map_or(0, Vec::len), "{machine}: {start}");
        }
        assert!(!text.contains('\u{1b}'), "{machine}");
        // Compared with itself a machine has no difference, in the same columns.
        let same = run(&["diff", machine, machine, "--csv"]).ok();
        assert_eq!(same, "group,fact,subject_kind,subject,a,b,known_of\n", "{machine}");
    }
    let differ = run(&["diff", SPECS[0], "(1c 1G)", "--csv"]);
    assert_eq!(differ.code, Some(1), "{}", differ.stderr);
    assert!(differ.stdout.contains("\nnodes,"), "{}", differ.stdout);
}
