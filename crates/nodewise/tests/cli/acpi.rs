//! `nodewise acpi`, and machines of firmware tables: `--machine acpi:DIR` and `--machine dtb:FILE`.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::nodewise::{Ran, command, corpus, golden, output, run, wider};
use crate::sandbox::has;

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
fn csv_has_a_line_for_each_field() {
    let folder = tables();
    let text = within(&folder, &["acpi", ".", "--csv"], "80").ok();
    golden("acpi-csv", text.clone());
    let json = within(&folder, &["acpi", ".", "--json"], "80").ok_json();
    let mut fields = 0;
    for table in json["tables"].as_array().unwrap() {
        let structures = table["structures"].as_array().unwrap().iter();
        let of = |one: &serde_json::Value| one["fields"].as_array().unwrap().len();
        fields += of(table) + structures.map(of).sum::<usize>();
    }
    assert_eq!(text.lines().count(), 1 + fields);
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

#[test]
fn what_is_odd_about_real_tables_is_said() {
    let odd = [
        (
            "PowerEdge_R820",
            &[
                "SLIT: 5 localities, but no enabled structure of the SRAT names 1: 0",
                "SRAT: 16 CPUs are not enabled: room of domain 0",
                "SRAT: 6 ranges without a byte are not enabled: room of domain 0",
            ][..],
        ),
        (
            "ProLiant_DL360_G7",
            &[
                "SRAT: 48 CPUs are not enabled: room of domain 0",
                "SRAT: 4 ranges without a byte are not enabled: room of domain 0",
                "SRAT: 0xe0000000-0xffffffff of domain 0 is not enabled: no memory, as far as Linux goes",
            ],
        ),
        ("H8DGU", &["SRAT: nodes 1-2 have CPUs and no memory"]),
        (
            "X10DAi",
            &[
                "SRAT: 152 CPUs are not enabled, all with APIC id 255: room of domains 0, 1, 2 and 3",
                "SRAT: 28 ranges without a byte are not enabled: room of domain 0",
                "MSCT: 4 domains are announced, and 2 have something enabled",
                "MSCT: 3 structures say that a domain can hold nothing",
            ],
        ),
    ];
    for path in corpus("acpi") {
        let path = path.to_str().unwrap();
        let (_, expected) = odd.iter().find(|(name, _)| path.contains(name)).unwrap();
        let text = output(command(["acpi", path]).env("COLUMNS", "160")).ok();
        let said: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("  unusual: ")).collect();
        assert_eq!(said, *expected, "{path}");
    }
}

#[test]
fn where_ram_is_decides_whether_tables_boot() {
    let folder = tables();
    let map = |end: &str| {
        let text = format!("00000000-7fffffff : System RAM\n100000000-{end} : System RAM\n");
        fs::write(folder.path().join("ram.txt"), text).unwrap();
        within(&folder, &["acpi", "SRAT", "SLIT", "--ram", "ram.txt"], "160")
    };
    let fine = map("13fffffff");
    assert_eq!(fine.code, Some(0), "{}", fine.stdout);
    assert!(!fine.stdout.contains("do not say where RAM is"), "{}", fine.stdout);
    // Up to 1 MiB at the end is forgiven, and kills the kernel.
    let dies = map("1400fffff");
    let expected = "  does not boot: SRAT: 1 MiB of RAM at 0x140000000 belongs to no node";
    assert_eq!((dies.code, dies.stdout.contains(expected)), (Some(1), true), "{}", dies.stdout);
    let rejected = map("1401fffff");
    let expected = "  rejected: SRAT: 2 MiB of RAM at 0x140000000 belongs to no node";
    assert_eq!((rejected.code, rejected.stdout.contains(expected)), (Some(1), true), "{}", rejected.stdout);
    // A folder may have the map beside its tables: then every verb knows it.
    fs::remove_file(folder.path().join("HMAT")).unwrap();
    fs::rename(folder.path().join("ram.txt"), folder.path().join("iomem")).unwrap();
    let shown = within(&folder, &["show", "--json", "--machine", "acpi:."], "80").ok_json();
    assert_eq!(shown["nodes"].as_array().unwrap().len(), 1, "{shown}");
    assert_eq!(within(&folder, &["acpi", "."], "160").code, Some(1));
    // One that is named is instead of it, whatever it holds.
    let fine = tempfile::NamedTempFile::new().unwrap();
    fs::write(&fine, "00000000-7fffffff : System RAM\n").unwrap();
    fs::write(folder.path().join("iomem"), "no map\n").unwrap();
    assert_eq!(within(&folder, &["acpi", "."], "80").code, Some(2));
    for machine in [&["."][..], &["--machine", "acpi:."]] {
        let ram = ["acpi", "--ram", fine.path().to_str().unwrap()];
        let named = within(&folder, &[&ram, machine].concat(), "80");
        assert_eq!((named.code, named.stderr.as_str()), (Some(0), ""), "{}", named.stdout);
    }
    let wrong = within(&folder, &["acpi", "SRAT", "--ram", "SLIT"], "80");
    assert!(wrong.stderr.starts_with("nodewise: --ram: SLIT: line 1: expected lines as"), "{}", wrong.stderr);
    assert_eq!(wrong.code, Some(2));
}

/// Machines whose tables can be written: of several kinds, and every capture with sizes.
fn writable() -> Vec<String> {
    let specs = [
        "2x(4c2t 6G); dist=21",
        "(2c 1G) (1c) (1G); dist=10,20,17/20,10,28/17,28,10; access=0>2:250ns,300ns/30G",
        "64x(4c 32G)",
        "300x(1c 1G); dist=30",
    ];
    let captures = corpus("captures").into_iter().map(|path| path.to_str().unwrap().to_owned());
    specs.into_iter().map(str::to_owned).chain(captures).collect()
}

#[test]
fn tables_of_any_machine_are_compiled_by_iasl_to_the_same_bytes() {
    let has_iasl = has("iasl", "acpica-tools");
    let (mut written, mut compiled) = (0, 0);
    for machine in writable() {
        let folder = tempfile::tempdir().unwrap();
        let ran = within(
            &folder,
            &["acpi", "--write", "t", "--initrd", "i", "--machine", &machine, "--json"],
            "80",
        );
        if ran.code == Some(3) {
            let lacks = ["is not known", "no node has", "more than a kernel takes"];
            assert!(lacks.iter().any(|words| ran.stderr.contains(words)), "{machine}: {}", ran.stderr);
            continue;
        }
        assert_eq!(ran.code, Some(0), "{machine}: {}{}", ran.stdout, ran.stderr);
        written += 1;
        // What a kernel makes of them has the distances of the machine, node by node.
        let json = |machine: &str| within(&folder, &["show", "--json", "--machine", machine], "80").ok_json();
        let (back, own) = (json("acpi:t"), json(&machine));
        if !ran.stderr.contains("is node ")
            && !ran.stderr.contains("distances of ")
            && !ran.stderr.contains("left out")
        {
            assert_eq!(back["distances"], own["distances"], "{machine}");
        }
        let archive = fs::read(folder.path().join("i")).unwrap();
        for table in
            ["SRAT", "SLIT", "HMAT"].iter().filter(|table| folder.path().join("t").join(table).exists())
        {
            let bytes = fs::read(folder.path().join("t").join(table)).unwrap();
            let named = format!("kernel/firmware/acpi/{table}.aml\0");
            for part in [named.as_bytes(), &bytes] {
                assert!(archive.windows(part.len()).any(|window| window == part), "{machine}: {table}");
            }
            if has_iasl {
                let again = without_compiler(recompiled(&folder, &bytes));
                assert_eq!(again, without_compiler(bytes), "{machine}: {table}");
                compiled += 1;
            }
        }
    }
    assert!(written >= 15 && (compiled > 2 * written || !has_iasl), "{written} machines, {compiled} tables");
}

/// A table without its checksum and the compiler that wrote it.
fn without_compiler(mut bytes: Vec<u8>) -> Vec<u8> {
    for at in std::iter::once(9).chain(28..36) {
        bytes[at] = 0;
    }
    bytes
}

/// A table that iasl has taken apart and made again; it puts its own name and version into the header.
fn recompiled(folder: &TempDir, bytes: &[u8]) -> Vec<u8> {
    fs::write(folder.path().join("table.dat"), bytes).unwrap();
    for words in [&["-d", "table.dat"][..], &["-p", "again", "table.dsl"]] {
        let ran = Command::new("iasl").args(words).current_dir(folder.path()).output().unwrap();
        assert!(ran.status.success(), "{words:?}: {}", String::from_utf8_lossy(&ran.stderr));
    }
    fs::read(folder.path().join("again.aml")).unwrap()
}

#[test]
fn tables_are_written_for_the_hardware_that_is_named() {
    let folder = tables();
    fs::write(
        folder.path().join("iomem"),
        "00000000-7fffffff : System RAM\n100000000-13fffffff : System RAM\n",
    )
    .unwrap();
    let write = |more: &[&str]| {
        let words = ["acpi", "--machine", "2x(8c 64G); dist=31", "--write", "new"];
        within(&folder, &[&words, more].concat(), "160")
    };
    let ran = write(&["--target", "acpi:."]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("each node has a share"), "{}", ran.stderr);
    let [old, new] = ["SRAT", "new/SRAT"].map(|name| fs::read(folder.path().join(name)).unwrap());
    assert_eq!(old[10..24], new[10..24], "makers of the tables");
    let revision = |bytes: &[u8]| u32::from_le_bytes(bytes[24..28].try_into().unwrap());
    assert_eq!(revision(&new), revision(&old) + 1);
    let shown = within(&folder, &["show", "--json", "--machine", "acpi:new"], "80").ok_json();
    assert_eq!(shown["distances"]["rows"], serde_json::json!([[10, 31], [31, 10]]));
    // Nothing is replaced.
    let ran = write(&[]);
    assert!(ran.code == Some(3) && ran.stderr.contains("SRAT"), "{}", ran.stderr);
    let wrong = write(&["--target", "2x(1c 1G)"]);
    assert!(
        wrong.code == Some(2) && wrong.stderr.contains("--target: 2x(1c 1G) has no ACPI tables"),
        "{}",
        wrong.stderr
    );
    let wrong = within(&folder, &["acpi", ".", "--initrd", "x"], "80");
    assert_eq!(wrong.code, Some(2), "{}", wrong.stderr);
    fs::remove_file(folder.path().join("iomem")).unwrap();
    let lacking = write(&["--target", "acpi:."]);
    assert!(lacking.code == Some(3) && lacking.stderr.contains("--ram FILE"), "{}", lacking.stderr);
}
