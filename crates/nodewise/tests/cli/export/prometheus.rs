//! A real Prometheus scrapes the endpoint; its answers to queries are what `stat --json` prints.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::nodewise::{command, corpus, path, run, without_variables};
use crate::sandbox::has;

/// Whatever takes longer has stopped: Prometheus answers and has scraped within seconds.
const PATIENCE: Duration = Duration::from_secs(120);
/// Time between two looks.
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);
/// Ports that are tried: another program may take one that was free.
const ATTEMPTS: usize = 5;

/// A program that ends with this value, and with this process however that ends.
struct Server(Child);

impl Server {
    fn start(program: &str, words: &[&str], prepare: impl FnOnce(&mut Command)) -> Self {
        let mut command = without_variables("setpriv");
        command.args(["--pdeathsig", "KILL", program]).args(words);
        prepare(&mut command);
        Self(command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}")))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The endpoint of a machine, and its address.
fn endpoint(machine: &str) -> (Server, String) {
    let words = ["export", "metrics", "--machine", machine, "--listen", "127.0.0.1:0"];
    let mut server = Server::start(path(), &words, |command| {
        command.stderr(Stdio::piped());
    });
    let mut line = String::new();
    BufReader::new(server.0.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.split_once("http://").and_then(|(_, rest)| rest.split('/').next());
    let address = address.unwrap_or_else(|| panic!("{machine}: {line}")).to_owned();
    (server, address)
}

/// Prometheus with one target for each machine, and its port.
fn prometheus(folder: &Path, targets: &[(&str, &str)]) -> (Server, u16) {
    let mut config = "global:\n  scrape_interval: 1s\nscrape_configs:\n".to_owned();
    for (job, address) in targets {
        config += &format!("  - job_name: {job}\n    static_configs:\n      - targets: ['{address}']\n");
    }
    fs::write(folder.join("prometheus.yml"), config).unwrap();
    for _ in 0..ATTEMPTS {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let address = format!("--web.listen-address=127.0.0.1:{port}");
        let words = ["--config.file=prometheus.yml", "--storage.tsdb.path=data", &address];
        let log = fs::File::create(folder.join("log")).unwrap();
        let mut server = Server::start("prometheus", &words, |command| {
            command.current_dir(folder).stdout(Stdio::null()).stderr(log);
        });
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE && server.0.try_wait().unwrap().is_none() {
            if get(port, "/-/ready").is_some() {
                return (server, port);
            }
            std::thread::sleep(BETWEEN_LOOKS);
        }
    }
    panic!("Prometheus does not start:\n{}", fs::read_to_string(folder.join("log")).unwrap());
}

/// The content of a page; `None` where the server does not answer with success.
fn get(port: u16, page: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    // Version 1.0 has answers in one piece.
    stream.write_all(format!("GET {page} HTTP/1.0\r\nHost: localhost\r\n\r\n").as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, content) = answer.split_once("\r\n\r\n")?;
    head.split(' ').nth(1).filter(|code| *code == "200").map(|_| content.to_owned())
}

/// The result of a query: a list of samples.
fn query(port: u16, text: &str) -> Vec<Value> {
    let encoded: String = text.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let answer = get(port, &format!("/api/v1/query?query={encoded}")).unwrap_or_else(|| panic!("{text}"));
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["status"], "success", "{text}: {answer}");
    answer["data"]["result"].as_array().unwrap().clone()
}

/// The single value of a query.
fn value(port: u16, text: &str) -> f64 {
    let samples = query(port, text);
    assert_eq!(samples.len(), 1, "{text}: {samples:?}");
    samples[0]["value"][1].as_str().unwrap().parse().unwrap()
}

/// Waits until each target has been scraped with success.
fn scraped(port: u16, targets: usize) {
    let begin = Instant::now();
    while query(port, "up == 1").len() < targets {
        let state = get(port, "/api/v1/targets").unwrap_or_default();
        assert!(begin.elapsed() < PATIENCE, "targets were not scraped: {state}");
        std::thread::sleep(BETWEEN_LOOKS);
    }
    let state: Value = serde_json::from_str(&get(port, "/api/v1/targets").unwrap()).unwrap();
    for target in state["data"]["activeTargets"].as_array().unwrap() {
        assert_eq!((&target["health"], &target["lastError"]), (&"up".into(), &"".into()), "{target}");
    }
}

#[test]
fn a_query_of_prometheus_gives_the_values_of_stat() {
    if !has("prometheus", "prometheus") {
        return;
    }
    let capture = corpus("captures").into_iter().find(|path| {
        let ran = run(&["stat", "--json", "--machine", path.to_str().unwrap()]);
        ran.code == Some(0) && ran.json()["nodes"].as_array().is_some_and(|nodes| nodes.len() > 1)
    });
    let capture = capture.expect("a capture has counters of several nodes");
    let capture = capture.to_str().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let [(_live, live), (_saved, saved)] = ["live", capture].map(endpoint);
    let (_prometheus, port) = prometheus(folder.path(), &[("live", &live), ("saved", &saved)]);
    scraped(port, 2);
    let stat = run(&["stat", "--json", "--machine", capture]).ok_json();
    let mut compared = 0;
    for node in stat["nodes"].as_array().unwrap() {
        let mut check = |metric: &str, labels: &str, expected: &Value| {
            let text = format!("{metric}{{job=\"saved\",node=\"{}\"{labels}}}", node["id"]);
            assert_eq!(Some(value(port, &text)), expected.as_f64(), "{text}");
            compared += 1;
        };
        check("nodewise_node_memory_bytes", "", &node["size_bytes"]);
        check("nodewise_node_memory_free_bytes", "", &node["free_bytes"]);
        for kind in ["hit", "miss", "foreign", "local", "other"] {
            check(&format!("nodewise_node_allocation_{kind}_total"), "", &node["allocations"][kind]);
        }
        for (kind, size) in node["used_by"].as_object().unwrap() {
            let labels = format!(",kind=\"{}\"", kind.trim_end_matches("_bytes"));
            check("nodewise_node_memory_used_bytes", &labels, size);
        }
    }
    assert!(compared > 16, "{compared}");
    // This machine, where counters go on and the size stays.
    let now = command(["stat", "--json"]).output().unwrap();
    let now: Value = serde_json::from_slice(&now.stdout).unwrap();
    for node in now["nodes"].as_array().unwrap() {
        let text = format!("nodewise_node_memory_bytes{{job=\"live\",node=\"{}\"}}", node["id"]);
        assert_eq!(Some(value(port, &text)), node["size_bytes"].as_f64(), "{text}");
    }
    let counted = value(port, "sum(nodewise_node_allocation_hit_total{job=\"live\"})");
    assert!(counted > 0.0, "{counted}");
}
