//! `nodewise workload`: what it says of itself. How fast this machine is, is no one's expectation.

use serde_json::Value;

use crate::nodewise::run;

fn json(arguments: &[&str]) -> Value {
    run(&[&["workload"], arguments, &["--json"]].concat()).ok_json()
}

#[test]
fn stream_reports_every_pass() {
    let result = json(&["stream", "--size=24M", "--threads=2", "--passes=3"]);
    assert_eq!(result["schema"], "nodewise.workload/1");
    assert_eq!(result["threads"], 2);
    assert_eq!(result["size_bytes"], 24 << 20);
    assert_eq!(result["gb_per_s"].as_array().map(Vec::len), Some(3));
    let text = run(&["workload", "stream", "--size=24M", "--threads=2", "--passes=3"]).ok();
    assert!(text.starts_with("triad over 24 MiB (as asked) with 2 threads, 3 passes\nmedian "), "{text}");
    assert!(text.ends_with(" GB/s, program bytes\n"), "{text}");
}

#[test]
fn chase_reports_every_sample() {
    let result = json(&["chase", "--size=1M", "--samples=4"]);
    assert_eq!(result["schema"], "nodewise.workload/1");
    assert_eq!(result["size_bytes"], 1 << 20);
    assert_eq!(result["latency_ns"].as_array().map(Vec::len), Some(4));
    let text = run(&["workload", "chase", "--size=1M", "--samples=4"]).ok();
    assert!(
        text.starts_with("random chain over 1 MiB (as asked), 4 samples of 65536 loads\nmedian "),
        "{text}"
    );
    assert!(text.ends_with(" ns\n"), "{text}");
}

#[test]
fn both_report_what_each_does() {
    let result = json(&["both", "--seed=3"]);
    assert_eq!(result["schema"], "nodewise.workload-both/1");
    for (name, samples) in [("chase", "latency_ns"), ("stream", "gb_per_s")] {
        let own = &result[name];
        assert_eq!((&own["workload"], &own["schema"]), (&name.into(), &"nodewise.workload/1".into()));
        assert_eq!(own[samples].as_array().map(Vec::len), Some(3), "{own}");
        assert!(own["size_bytes"].as_u64().is_some_and(|size| size > 1 << 20), "{own}");
    }
}

#[test]
fn a_workload_is_a_metric_for_tune() {
    let words = ["tune", "--placement=localalloc", "--runs=1", "--json", "--higher-is-better"];
    let program = ["--metric=median ([0-9.]+) GB/s", "--", crate::nodewise::path(), "workload", "stream"];
    let study = run(&[&words[..], &program, &["--size=24M", "--passes=3"]].concat()).ok_json();
    assert_eq!(study["end"], "completed");
    assert!(study["arms"][1]["summary"]["median"].as_f64().is_some_and(|rate| rate > 0.0), "{study}");
}
