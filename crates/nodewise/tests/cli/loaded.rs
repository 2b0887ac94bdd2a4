//! `nodewise latency --loaded`: a latency for each point of its curves, and the traffic beside it.

use std::fs;
use std::sync::OnceLock;

use serde_json::Value;

use crate::nodewise::{a_memory_node, command, missing, output, run, wider};
use crate::sandbox::{EPERM, can_contain, filtered};

/// Small enough for any machine, and so quick that nothing has to be waited for.
const SMALL: [&str; 8] = [
    "latency",
    "--loaded",
    "--quick",
    "--size=4M",
    "--huge=never",
    "--seed=1",
    "--mix=read,1:1",
    "--pauses=0,700",
];

/// Whether this process may use two CPUs; where it may not, that is what it says.
fn has_two_cpus() -> bool {
    let two = std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1);
    if !two {
        let ran = run(&SMALL);
        assert_eq!(ran.code, Some(3), "{}", ran.stderr);
        assert!(ran.stderr.contains("latency under load needs two CPUs"), "{}", ran.stderr);
        missing("two CPUs");
    }
    two
}

/// The document of one measurement, for all that ask about it.
fn measured() -> &'static str {
    static DOCUMENT: OnceLock<String> = OnceLock::new();
    DOCUMENT.get_or_init(|| run(&[&SMALL[..], &["--json"]].concat()).ok())
}

fn curves(document: &Value) -> impl Iterator<Item = &Value> {
    document["paths"].as_array().unwrap().iter().flat_map(|path| path["curves"].as_array().unwrap())
}

#[test]
fn every_point_has_a_latency_and_traffic_on_pages_that_are_proven() {
    if !has_two_cpus() {
        return;
    }
    let document: Value = serde_json::from_str(measured()).unwrap();
    assert_eq!(document["schema"], "nodewise.latency_loaded/1");
    assert_eq!(
        (&document["size_bytes"], &document["traffic_size_bytes"]),
        (&(4 << 20).into(), &(4 << 20).into())
    );
    let kernels: Vec<&Value> = curves(&document).map(|curve| &curve["kernel"]).collect();
    assert!(kernels.starts_with(&[&"read".into(), &"1:1".into()]), "{kernels:?}");
    for path in document["paths"].as_array().unwrap() {
        let (chaser, traffic) = (&path["idle"]["cpus"], &path["traffic_cpus"]);
        assert!(chaser.is_string() && traffic.is_string() && chaser != traffic, "{path}");
    }
    for curve in curves(&document) {
        assert!(curve["variant"].is_string() && curve["knee"]["gb_per_s"].is_number(), "{curve}");
        let points = curve["points"].as_array().unwrap();
        let pauses: Vec<u64> = points.iter().map(|point| point["pause_ns"].as_u64().unwrap()).collect();
        assert_eq!(pauses, [700, 0]);
        for point in points {
            for figure in ["median_ns", "p90_ns", "median_gb_per_s", "bus_gb_per_s_at_most"] {
                assert!(point[figure].as_f64().is_some_and(|value| value > 0.0), "{figure}: {point}");
            }
            assert_eq!(point["rounds"], 6, "{point}");
            for moment in ["placed_before", "placed_after"] {
                assert_eq!(point[moment]["pages_on_node"], point[moment]["pages"], "{point}");
            }
        }
    }
}

#[test]
fn a_result_is_shown_again_in_every_form() {
    if !has_two_cpus() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (result, picture) = (folder.path().join("a.json"), folder.path().join("a.svg"));
    let text = measured();
    let paths = serde_json::from_str::<Value>(text).unwrap()["paths"].as_array().unwrap().len();
    fs::write(&result, text).unwrap();
    let from = format!("--from={}", result.display());
    let again = |more: &[&str]| run(&[&["latency", &from], more].concat()).ok();
    assert_eq!(again(&["--json"]), text);
    assert_eq!(again(&["--csv"]).lines().count(), 1 + paths * (1 + 2 * 2));
    let shown = again(&["--svg", picture.to_str().unwrap()]);
    assert!(shown.starts_with("Loaded latency") && shown.contains("seed 1;"), "{shown}");
    assert!(fs::read_to_string(&picture).unwrap().contains("<polyline "));
    for columns in ["60", "80", "120"] {
        let text = output(command(["latency", &from]).env("COLUMNS", columns)).ok();
        assert!(wider(&text, columns.parse().unwrap()).is_empty(), "{columns}: {text}");
        assert!(!text.contains('\x1b'));
    }
}

#[test]
fn a_process_of_one_cpu_is_told_that_it_needs_two() {
    let cpu = crate::nodewise::a_cpu().to_string();
    let ran = run(&[&SMALL[..], &["--cpus", &cpu]].concat());
    assert_eq!(ran.code, Some(3), "{}{}", ran.stdout, ran.stderr);
    let expected = format!(
        "latency under load needs two CPUs, one that chases and one that moves data: beside CPU {cpu} none of node "
    );
    assert!(ran.stderr.contains(&expected), "{}", ran.stderr);
}

#[test]
fn nodes_kernels_and_pauses_that_are_not_there_are_wrong_usage() {
    let check = |words: &[&str], expected: &str| {
        let ran = run(&[&["latency"], words].concat());
        assert_eq!(ran.code, Some(2), "{words:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{words:?}: {}", ran.stderr);
    };
    check(&["--loaded", "--chase=0"], "\"0\" is not a pair of nodes: expected CPUs:memory, such as 0:1");
    check(&["--loaded", "--traffic=0:x"], "\"0:x\" is not a pair of nodes");
    check(&["--loaded", "--mix=fast"], "\"fast\" is not an operation: expected one of read, write,");
    check(&["--loaded", "--pauses=-1"], "--pauses");
    check(&["--loaded", "--pauses=1000001"], "1000001");
    check(&["--loaded", "--sweep"], "--sweep");
    check(&["--loaded", "--from=a.json"], "--from");
    check(&["--loaded", "--size=1K"], "--size: 1 KiB is not a buffer size");
    check(&["--loaded", "--machine", "2x(8c 64G)"], "--machine has no meaning with nodewise latency");
    check(&["--mix=read"], "--loaded");
    check(&["--traffic=0:0"], "--loaded");
    if has_two_cpus() {
        check(&["--loaded", "--chase=0:999"], "--chase: node 999 has no memory: expected one of nodes");
        let memory = a_memory_node();
        check(
            &["--loaded", &format!("--traffic=999:{memory}")],
            "--traffic: node 999 has no CPUs: expected one of nodes",
        );
    }
}

#[test]
fn a_filter_on_memory_policies_is_named_at_every_point() {
    if !can_contain() || !has_two_cpus() {
        return;
    }
    let ran = output(&mut filtered(EPERM, &SMALL));
    assert_eq!(ran.code, Some(3), "{}{}", ran.stdout, ran.stderr);
    let text = ran.stdout.replace("\n    ", " ");
    assert!(text.contains("Not measured") && text.contains("a seccomp filter answers mbind"), "{text}");
}
