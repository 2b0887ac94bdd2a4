//! `nodewise acpi`, and machines of firmware tables: `--machine acpi:DIR` and `--machine dtb:FILE`.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::nodewise::{Ran, command, corpus, golden, output, run, wider};

/// A folder with the tables of a machine with CXL, each in a file of its own. They are those that the
/// decoder's fuzz target starts from.
fn tables() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let seed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/acpi/cxl");
    let mut rest = &fs::read(seed).unwrap()[..];
    while let [a, b, c, d, _, _, _, _, ..] = rest {
        let length = u32::from_le_bytes(rest[4..8].try_into().unwrap()) as usize;
        let name = String::from_utf8([*a, *b, *c, *d].to_vec()).unwrap();
        fs::write(folder.path().join(name), &rest[..length]).unwrap();
        rest = &rest[length..];
    }
    folder
}

/// Runs nodewise in a folder.
fn within(folder: &TempDir, arguments: &[&str], columns: &str) -> Ran {
    output(command(arguments).current_dir(folder.path()).env("COLUMNS", columns))
}

#[test]
fn text_is_what_a_person_accepted() {
    let folder = tables();
    golden("acpi-80", within(&folder, &["acpi", "."], "80").ok());
}

#[test]
fn text_fits_any_width_and_json_names_every_table() {
    let folder = tables();
    for columns in [40, 60, 120] {
        let text = within(&folder, &["acpi", "."], &columns.to_string()).ok();
        assert_eq!(wider(&text, columns), [""; 0]);
    }
    let json = within(&folder, &["acpi", ".", "--json"], "80").ok_json();
    assert_eq!(json["schema"], "nodewise.acpi/1");
    let text = within(&folder, &["acpi", "--machine", "acpi:."], "120").ok();
    for table in json["tables"].as_array().unwrap() {
        let row = format!("  {}", table["signature"].as_str().unwrap());
        assert!(text.lines().any(|line| line.starts_with(&row)), "{row}\n{text}");
    }
    for note in json["kernel"]["notes"].as_array().unwrap() {
        let told = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(told.contains(note["text"].as_str().unwrap()), "{note}\n{text}");
    }
}

#[test]
fn every_verb_takes_the_machine_of_the_tables() {
    let folder = tables();
    let machine = ["--machine", "acpi:."];
    let json = within(&folder, &[&["show", "--json"], &machine[..]].concat(), "80").ok_json();
    assert_eq!((json["nodes"].as_array().unwrap().len(), &json["possible_nodes"]), (4, &"0-4".into()));
    let zonelist = within(&folder, &[&["zonelist"], &machine[..]].concat(), "80").ok();
    assert!(zonelist.contains("Fallback orders"), "{zonelist}");
    let hardware = within(&folder, &[&machine[..], &["numactl", "--hardware"]].concat(), "80").ok();
    assert!(hardware.contains("available: 4 nodes (0-3)"), "{hardware}");
}

#[test]
fn what_is_wrong_with_a_table_is_told_and_is_no_success() {
    let folder = tables();
    let path = folder.path().join("SRAT");
    let mut bytes = fs::read(&path).unwrap();
    // The checksum and an escape sequence in the maker's name.
    bytes[9] = bytes[9].wrapping_add(1);
    bytes[10] = 0x1b;
    fs::write(&path, bytes).unwrap();
    for arguments in [&["acpi", "."][..], &["acpi", ".", "--json"]] {
        let ran = within(&folder, arguments, "80");
        assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
        assert!(ran.stdout.contains("the checksum is "), "{}", ran.stdout);
        assert!(!ran.stdout.contains('\u{1b}'));
    }
    let shown = within(&folder, &["show", "--machine", "acpi:."], "80").ok();
    assert!(shown.contains("SRAT at 0x9: the checksum is "), "{shown}");
}

#[test]
fn wrong_usage_is_told_what_would_be_right() {
    let folder = tables();
    let check = |arguments: &[&str], code, message: &str| {
        let ran = within(&folder, arguments, "80");
        assert_eq!((ran.stderr, ran.code), (format!("nodewise: {message}\n"), Some(code)), "{arguments:?}");
    };
    check(&["acpi", "nosuch"], 2, "nosuch does not exist: expected ACPI tables (files, or a folder of them)");
    check(
        &["show", "--machine", "acpi:nosuch"],
        2,
        "--machine: nosuch does not exist: expected ACPI tables (files, or a folder of them)",
    );
    check(&["acpi", ".", "--machine", "acpi:."], 2, "name files or --machine, not both");
    check(
        &["acpi", "--machine", "2x(1c 1G)"],
        2,
        "--machine: 2x(1c 1G) has no ACPI tables: expected a capture, acpi:DIR or live",
    );
    check(
        &["show", "--machine", "dtb:SRAT"],
        2,
        "--machine: SRAT: device tree at 0x0: the first bytes are not d0 0d fe ed",
    );
}

#[test]
fn a_device_tree_is_a_machine_too() {
    let seed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/devicetree/two-nodes");
    let machine = format!("dtb:{}", seed.display());
    let json = run(&["show", "--json", "--machine", &machine]).ok_json();
    assert_eq!(json["distances"]["rows"], serde_json::json!([[10, 20], [30, 10]]));
    assert_eq!((&json["nodes"][0]["cpus"], &json["architecture"]), (&"0".into(), &"aarch64".into()));
}

#[test]
fn tables_of_real_machines_give_their_nodes() {
    for path in corpus("acpi") {
        let text = path.to_str().unwrap();
        let json = run(&["acpi", text, "--json"]).ok_json();
        let online =
            json["kernel"]["nodes"].as_array().unwrap().iter().filter(|node| node["online"] == true).count();
        let expected = if text.contains("R820") || text.contains("H8DGU") { 4 } else { 2 };
        assert_eq!((online, &json["kernel"]["accepted"]), (expected, &true.into()), "{text}");
        assert_eq!(json["findings"], serde_json::json!([]), "{text}");
    }
}
