//! Metrics, put before promtool and beside `stat`.

use std::process::Stdio;

use serde_json::Value;

use crate::nodewise::{command, corpus, run, without_variables};
use crate::sandbox::has;

use super::{FULL, exported, fed, machines};

/// The value of a metric whose labels have these words.
fn value(metrics: &str, name: &str, labels: &str) -> Option<f64> {
    let line =
        metrics.lines().find(|line| line.starts_with(&format!("{name}{{")) && line.contains(labels))?;
    line.rsplit(' ').next()?.parse().ok()
}

#[test]
fn promtool_finds_nothing_to_say() {
    if !has("promtool", "prometheus") {
        return;
    }
    let check = |text: &str| fed(without_variables("promtool").args(["check", "metrics"]), text);
    for machine in machines().into_iter().chain(["live".to_owned()]) {
        let checked = check(&exported("metrics", &machine));
        assert_eq!((checked.code, checked.stderr.as_str()), (Some(0), ""), "{machine}: {}", checked.stdout);
    }
    assert_eq!(check("x{a=\"b} 1\n").code, Some(1), "a check that finds nothing is none");
}

#[test]
fn metrics_are_what_stat_says() {
    let mut nodes = 0;
    for capture in corpus("captures") {
        let machine = capture.to_str().unwrap();
        let ran = run(&["stat", "--machine", machine, "--json"]);
        if ran.code != Some(0) {
            continue;
        }
        let metrics = exported("metrics", machine);
        for node in ran.json()["nodes"].as_array().unwrap() {
            let label = format!("node=\"{}\"", node["id"]);
            let check = |name: &str, labels: &str, expected: &Value| {
                assert_eq!(value(&metrics, name, labels), expected.as_f64(), "{machine}: {name} of {label}");
            };
            check("nodewise_node_memory_bytes", &label, &node["size_bytes"]);
            check("nodewise_node_memory_free_bytes", &label, &node["free_bytes"]);
            check("nodewise_node_allocation_hit_total", &label, &node["allocations"]["hit"]);
            check("nodewise_node_allocation_other_total", &label, &node["allocations"]["other"]);
            for (kind, size) in node["used_by"].as_object().unwrap() {
                let labels = format!("{label},kind=\"{}\"", kind.trim_end_matches("_bytes"));
                check("nodewise_node_memory_used_bytes", &labels, size);
            }
            nodes += 1;
        }
    }
    assert!(nodes > 20, "{nodes}");
}

#[test]
fn open_metrics_end_with_their_mark_and_name_counters_without_total() {
    let text = exported("openmetrics", "live");
    assert!(text.ends_with("\n# EOF\n"), "{text}");
    assert!(
        text.contains("# TYPE nodewise_node_cpu_seconds counter\nnodewise_node_cpu_seconds_total{node="),
        "{text}"
    );
    let text = exported("metrics", "live");
    assert!(text.contains("# TYPE nodewise_node_cpu_seconds_total counter\n"), "{text}");
}

#[test]
fn an_endpoint_answers_on_loopback_until_it_is_ended() {
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    let mut server = command(["export", "metrics", "--machine", FULL, "--listen", "127.0.0.1:0"]);
    let mut server = server.stderr(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    BufReader::new(server.stderr.take().unwrap()).read_line(&mut said).unwrap();
    let address = said.split_once("http://").and_then(|(_, rest)| rest.split('/').next()).unwrap().to_owned();
    let ask = |head: &str| {
        let mut stream = std::net::TcpStream::connect(&address).unwrap();
        stream.write_all(format!("{head} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let answer = ask("GET /metrics");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"), "{answer}");
    assert_eq!(answer.split_once("\r\n\r\n").unwrap().1, exported("metrics", FULL));
    assert!(ask("GET /").starts_with("HTTP/1.1 404 "));
    assert!(ask("nonsense").starts_with("HTTP/1.1 4"));
    let pid = rustix::process::Pid::from_child(&server);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(server.wait().unwrap().code(), Some(0));
    let wrong = run(&["export", "hwloc", "--listen", "127.0.0.1:0"]);
    assert!(
        wrong.code == Some(2) && wrong.stderr.contains("--listen answers with metrics"),
        "{}",
        wrong.stderr
    );
}
