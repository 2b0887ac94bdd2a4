//! `nodewise io` and `nodewise bandwidth --file`: devices and files by node, and what perftest printed.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::nodewise::{command, output, path, run, wider};
use crate::sandbox::{Public, is_root};

/// Small enough for any machine.
const SMALL: [&str; 3] = ["--quick", "--size=256K", "--seed=1"];

fn io(words: &[&str]) -> crate::nodewise::Ran {
    run(&[&["io"], &SMALL[..], words].concat())
}

/// Output of perftest, with a kink of the latency at 16 KiB and a line that is none.
const FAR: &str = "\
---------------------------------------------------------------------------------------
                    Send Latency Test
---------------------------------------------------------------------------------------
 #bytes #iterations    t_min[usec]    t_typical[usec]    99% percentile[usec]
 8192       1000          7.20             7.37            7.68
 16384      1000         11.08            11.42           12.50
Conflicting CPU frequency values detected: 2400.000000 != 3600.000000
 32768      1000          6.41             6.63           19.04
---------------------------------------------------------------------------------------
";
const NEAR: &str = "\
 #bytes #iterations    t_min[usec]    t_typical[usec]    99% percentile[usec]
 8192       1000          2.72             2.87            3.07
 16384      1000          3.29             3.43            3.61
 32768      1000          4.23             4.36            4.63
";

fn written(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn a_file_is_read_into_the_memory_of_each_node_or_it_is_said_why_not() {
    let ran = io(&["--json", path()]);
    let document = ran.json();
    assert_eq!(
        (&document["schema"], &document["buffer_bytes"]),
        (&"nodewise.io/2".into(), &(256 << 10).into())
    );
    let device = &document["devices"][0];
    assert_eq!((&device["name"], &device["kind"]), (&path().into(), &"file".into()));
    assert!(device["node"].is_number() || device["node_unknown"].is_string(), "{device}");
    if let Some(why) = device["refused"].as_str() {
        // The build may lie where there is no direct I/O.
        assert!(why.contains("without direct I/O") && ran.code == Some(3), "{why}");
        return;
    }
    assert_eq!(device["size_bytes"], fs::metadata(path()).unwrap().len());
    let reads = device["reads"].as_array().unwrap();
    let of = |access: &str| reads.iter().filter(|read| read["access"] == access).count();
    assert!(of("sequential") > 0 && of("sequential") == of("random"), "{device}");
    for read in reads {
        let median = if read["access"] == "random" { &read["median_us"] } else { &read["median_gb_per_s"] };
        let Some(median) = median.as_f64() else {
            assert!(read["refused"].as_str().is_some_and(|why| !why.is_empty()), "{read}");
            continue;
        };
        assert!(median > 0.0 && (read["rounds"] == 6 || document["left_out"].is_object()), "{read}");
        for moment in ["placed_before", "placed_after"] {
            assert_eq!(read[moment]["pages_on_node"], read[moment]["pages"], "{read}");
        }
    }
}

#[test]
fn what_cannot_be_read_has_a_line_each_and_the_rest_comes() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (empty, name) = (written(folder.path(), "empty", ""), folder.path().display().to_string());
    let wrong = ["nosuch", "/no/such", "block:none", "net:none", "gpu:0", &empty, &name, "/dev/null"];
    let ran = io(&[&[path()], &wrong[..]].concat());
    let expected = [
        "\"nosuch\" is neither a file nor a device: this machine has ",
        "/no/such cannot be opened: no such file or directory",
        "block:none does not exist: ",
        "net:none does not exist: ",
        "\"gpu:0\" has no blocks: expected block:, net:, ib: or a path",
        "empty has 0 B: expected 4 KiB or more",
        "is a directory: expected a block device or a file",
        "/dev/null is neither a block device nor a file",
    ];
    // Without line ends, for paths are long.
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let shown = flat(&ran.stdout);
    for line in expected {
        let refused =
            shown.contains(&flat(line)) || (line.contains("0 B") && shown.contains("without direct I/O"));
        assert!(refused, "{line}: {}", ran.stdout);
    }
    let read = shown.contains("read by CPU");
    assert_eq!(ran.code, Some(if read { 0 } else { 3 }), "{}", ran.stdout);
    let alone = io(&wrong);
    assert_eq!(alone.code, Some(3), "{}", alone.stdout);
    assert!(alone.stderr.starts_with("nodewise: nothing was measured: "), "{}", alone.stderr);
    let small = io(&[&empty]);
    let (why, is_refused) =
        ("empty has 0 B: expected 4 KiB or more\n", small.stdout.contains("without direct I/O"));
    assert!(small.stderr.ends_with(why) || is_refused, "{}", small.stderr);
}

#[test]
fn a_file_of_somebody_else_is_no_permission() {
    if !is_root() {
        return;
    }
    let public = Public::new();
    let file = public.nodewise().with_file_name("secret");
    fs::write(&file, vec![1; 8192]).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let ran = output(&mut public.as_nobody(&["io", "--quick", file.to_str().unwrap()]));
    let flat = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("cannot be read: permission denied"), "{}{}", ran.stdout, ran.stderr);
    assert_eq!(ran.code, Some(3));
}

#[test]
fn devices_of_another_machine_are_listed_with_their_nodes() {
    let machine = "--machine=2x(2c 4G); dist=21; dev=net:eth0@1";
    let document = run(&["io", "--json", machine]).ok_json();
    let device = &document["devices"][0];
    assert_eq!((&device["name"], &device["kind"]), (&"net:eth0".into(), &"network".into()));
    assert_eq!(device["node"], 1);
    assert!(run(&["io", machine]).ok().contains("net:eth0  network interface, on node 1"));
    let ran = run(&["io", machine, "eth0"]);
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr.contains("io is measured on this machine: --machine has no meaning with it"),
        "{}",
        ran.stderr
    );
}

#[test]
fn tables_of_perftest_stand_side_by_side_in_every_form() {
    let folder = tempfile::tempdir().unwrap();
    let near = format!("near={}", written(folder.path(), "a.txt", NEAR));
    let far = written(folder.path(), "far.txt", FAR);
    let of = |more: &[&str]| run(&[&["io"], more, &["--from", &near, &far]].concat()).ok();
    let text = of(&[]);
    let expected = [
        "  bytes  near    far",
        "    16K  3.43  11.4*  x3.33",
        "  far: latency from 1.52 (at 32K bytes) to 3.33 (at 16K) times that of near",
        "  far: kink at 16K bytes: 7.37, 11.4, 6.63 us at 8K, 16K, 32K: a larger message",
        "  far: line 7: expected a size in bytes, found \"Conflicting\"",
    ];
    for line in expected {
        assert!(text.lines().any(|of| of == line), "{line}: {text}");
    }
    let narrow = output(command(["io", "--from", &near, &far]).env("COLUMNS", "60"));
    assert!(wider(&narrow.stdout, 60).is_empty(), "{}", narrow.stdout);
    let document = run(&["io", "--json", "--from", &near, &far]).ok_json();
    assert_eq!(document["schema"], "nodewise.perftest/1");
    assert_eq!(document["tables"][0]["sides"][1]["rows"][1]["typical_us"], 11.42);
    let lines = of(&["--csv"]);
    assert!(lines.starts_with("table,side,memory_node,size_bytes,iterations,min_us,"), "{lines}");
    assert!(lines.contains("latency,far,,16384,1000,11.08,,11.42,"), "{lines}");
    let picture = folder.path().join("a.svg");
    of(&["--svg", picture.to_str().unwrap()]);
    assert!(fs::read_to_string(&picture).unwrap().contains("polyline"));
}

#[test]
fn results_are_shown_again_in_every_form() {
    let folder = tempfile::tempdir().unwrap();
    let near = format!("near={}", written(folder.path(), "a.txt", NEAR));
    let far = written(folder.path(), "far.txt", FAR);
    let machine = "--machine=2x(2c 4G); dist=21; dev=net:eth0@1";
    // The file may lie where there is no direct I/O; then its result is that.
    let file = [&["io"], &SMALL[..], &[path()]].concat();
    let checks = [(file, "Devices"), (vec!["io", machine], "Devices")];
    let tables = vec!["io", "--from", &near, &far];
    for (words, head) in checks.into_iter().chain([(tables, "Latency by size")]) {
        let measured = run(&[&["io", "--json"], &words[1..]].concat());
        let saved = written(folder.path(), "a.json", &measured.stdout);
        let from = format!("--from={saved}");
        let again = |more: &[&str]| {
            let ran = run(&[&["io", &from], more].concat());
            assert_eq!(ran.code, measured.code, "{words:?}: {}", ran.stderr);
            ran.stdout
        };
        assert_eq!(again(&["--json"]), measured.stdout);
        assert!(again(&["--csv"]).lines().count() > 1);
        let picture = folder.path().join("a.svg");
        let text = again(&["--svg", picture.to_str().unwrap()]);
        assert!(text.starts_with(head), "{text}");
        if !words.contains(&path()) {
            // Nothing is measured: both say the same.
            assert_eq!(text, run(&words).ok());
        }
        assert!(fs::read_to_string(&picture).unwrap().starts_with("<svg "));
        let narrow = output(command(["io", &from]).env("COLUMNS", "60"));
        assert!(wider(&narrow.stdout, 60).is_empty(), "{}", narrow.stdout);
    }
}

#[test]
fn files_that_are_no_result_or_do_not_go_together_are_wrong_usage() {
    let folder = tempfile::tempdir().unwrap();
    let whole = run(&["io", "--json", "--machine=2x(2c 4G); dist=21; dev=net:eth0@1"]).ok();
    let of = |name: &str, text: &str| written(folder.path(), name, text);
    let result = of("a.json", &whole);
    let check = |files: &[&str], expected: &str| {
        let ran = run(&[&["io", "--from"], files].concat());
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{files:?}");
        assert!(ran.stderr.contains(expected), "{files:?}: {}", ran.stderr);
    };
    let print_out = of("b.txt", NEAR);
    let mixed = "b.txt\" is not: expected one result alone, or only output of perftest";
    check(&[&result, &print_out], mixed);
    check(&[&print_out, &result], mixed);
    check(&[&result, &of("c.json", &whole)], "c.json\" are two results of nodewise io: expected one");
    check(&[&format!("near={result}")], "a result of nodewise io, which takes no label: leave out \"near=\"");
    let no_result = "is not a result of nodewise io: ";
    check(&[&of("d.json", &whole[..whole.len() / 2])], &format!("d.json\" {no_result}EOF while parsing"));
    let other = whole.replace("nodewise.io/", "nodewise.c2c/");
    check(&[&of("e.json", &other)], &format!("e.json\" {no_result}its schema is \"nodewise.c2c/2\""));
    let hostile = whole.replace("\"node\": 1", "\"node\": 4294967295");
    check(&[&of("f.json", &hostile)], &format!("f.json\" {no_result}devices[0]: node 4294967295 is beyond"));
    let deep = "{\"schema\":".to_owned() + &"[".repeat(1 << 20);
    check(&[&of("g.json", &deep)], &format!("g.json\" {no_result}"));
    let binary = folder.path().join("h.json");
    fs::write(&binary, [b'{', 0xff, 0xfe]).unwrap();
    check(&[binary.to_str().unwrap()], "--from: cannot read ");
    // The contents decide, not the name.
    let renamed = of("k.txt", &whole);
    assert!(run(&["io", "--from", &renamed]).ok().starts_with("Devices"));
    assert!(run(&["io", "--from", &of("k.json", NEAR)]).ok().starts_with("Latency"));
}

#[test]
fn the_recorded_tables_are_shown_whole() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/perftest");
    let names = ["near=lat-local", "far=lat-membind1", "near=bw-local", "far=bw-membind1"];
    let words = names.map(|name| {
        let (label, file) = name.split_once('=').unwrap();
        format!("{label}={}", folder.join(file).with_extension("tsv").display())
    });
    let words: Vec<&str> = ["io", "--from"].into_iter().chain(words.iter().map(String::as_str)).collect();
    let text = run(&words).ok();
    assert_eq!(text.lines().filter(|line| line.contains('x') && line.contains('.')).count(), 46, "{text}");
    for kink in
        ["near: kink at 256 bytes", "far: kink at 16K bytes: 7.37, 11.4, 6.63 us", "far: kink at 8K bytes"]
    {
        assert!(text.contains(kink), "{kink}: {text}");
    }
}

#[test]
fn wrong_words_and_files_without_tables_are_wrong_usage() {
    let folder = tempfile::tempdir().unwrap();
    let none = written(folder.path(), "none.txt", "Couldn't connect to far:18515\n");
    let check = |words: &[&str], expected: &str| {
        let ran = run(&[&["io"], words].concat());
        assert_eq!(ran.code, Some(2), "{words:?}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains(expected), "{words:?}: {}", ran.stderr);
    };
    check(
        &["--from", &none],
        "none.txt\": it is not JSON of nodewise io, and it holds no table of perftest: expected a line that \
         begins with #bytes",
    );
    check(&["--from", "/no/such"], "--from: cannot read \"/no/such\": no such file or directory");
    check(&["--size=1K", path()], "--size: 1 KiB is not a buffer size: expected 4 KiB to 64 GiB");
    check(&["--rdma-port=7000"], "--rdma-peer");
    check(&["--rdma-peer=x", "--from", &none], "--from");
    check(&["--nodes=9999", path()], "--nodes: node 9999 does not exist");
    let ran = io(&["ib:none", "--rdma-peer=far"]);
    assert_eq!(ran.code, Some(3));
    assert!(ran.stdout.contains("ib:none does not exist"), "{}", ran.stdout);
}

#[test]
fn files_in_memory_are_on_the_nodes_that_are_named_and_leave_nothing() {
    let words = ["bandwidth", "--file", "--quick", "--size=1M", "--seed=1"];
    let document = run(&[&words[..], &["--json"]].concat()).ok_json();
    assert_eq!(document["schema"], "nodewise.file_bandwidth/2");
    let files = document["files"].as_array().unwrap();
    assert!(!files.is_empty() && files.len() % 3 == 0, "{document}");
    for file in files {
        let Some(median) = file["median_gb_per_s"].as_f64() else {
            assert!(file["refused"].as_str().is_some_and(|why| !why.is_empty()), "{file}");
            continue;
        };
        assert!(median > 0.0 && file["rounds"] == 6, "{file}");
        for moment in ["placed_before", "placed_after"] {
            assert_eq!(file[moment]["pages_on_node"], file[moment]["pages"], "{file}");
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let (own, picture) = (format!("--file={}", folder.path().display()), folder.path().join("a.svg"));
    // Folders for temporary files are on a disk, or on tmpfs.
    let ran = run(&["bandwidth", &own, "--quick", "--size=1M", "--csv"]);
    let flat = ran.stdout.replace('\n', " ");
    assert!(ran.code == Some(0) || ran.code == Some(3) && flat.contains("is on no tmpfs"), "{}", ran.stdout);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    let svg = format!("--svg={}", picture.display());
    let ran = output(command([&words[..], &[svg.as_str()]].concat()).env("COLUMNS", "60"));
    assert!(wider(&ran.stdout, 60).is_empty() && ran.code == Some(0), "{}{}", ran.stdout, ran.stderr);
    assert!(
        ran.stdout.starts_with("Files in memory") && ran.stdout.contains("memfd_create"),
        "{}",
        ran.stdout
    );
    assert!(fs::read_to_string(&picture).unwrap().starts_with("<svg "));
    for (words, expected) in [
        (["--file", "--operation=copy"], "--operation"),
        (["--file", "--matrix"], "--matrix"),
        (["--file", "--size=1K"], "--size: 1 KiB is not a size to measure with"),
    ] {
        let ran = run(&[&["bandwidth"], &words[..]].concat());
        assert!(ran.code == Some(2) && ran.stderr.contains(expected), "{words:?}: {}", ran.stderr);
    }
}
