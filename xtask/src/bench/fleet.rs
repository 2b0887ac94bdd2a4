//! `bench fleet`: the time and the memory of a report on 10 to 10,000 hosts.
//!
//! Surveys are those of a machine with two nodes and 128 CPUs: nodewise writes one, and the others differ from it in host
//! and figures.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nodewise_stats::random::Random;
use serde_json::{Value, json};

use crate::{dist, program};

/// Numbers of hosts.
const HOSTS: [usize; 4] = [10, 100, 1000, 10_000];
/// Limits for the largest report.
const MOST_SECONDS: f64 = 10.0;
const MOST_BYTES: u64 = 1_000_000_000;
/// The largest HTML report of 1,000 hosts.
const MOST_HTML: u64 = 5_000_000;
/// The machine.
const MACHINE: &str = "2x(32c2t 256G l3=32M/8c); dist=32; kernel=6.12.1; arch=x86_64";
/// The difference between hosts, and the slow one.
const SPREAD: f64 = 0.005;
const SLOW: (usize, f64) = (7, 1.3);
/// How often memory is looked at.
const LOOK: Duration = Duration::from_millis(1);

/// Runs it, and prints a table.
pub fn run(root: &Path) -> Result<()> {
    let nodewise = dist::build(root)?;
    let folder = root.join("target/fleet");
    println!(
        "| hosts | surveys, MB | report, s | peak memory, MB | HTML, MB | HTML, s |\n|--:|--:|--:|--:|--:|--:|"
    );
    for hosts in HOSTS {
        let results = folder.join(hosts.to_string());
        let bytes = make(&nodewise, &results, hosts)?;
        let place = results.display().to_string();
        let text = measured(&nodewise, &["fleet", "report", &place, "--json"])?;
        let html = folder.join(format!("{hosts}.html"));
        let page = measured(&nodewise, &["fleet", "report", &place, "--html", &html.display().to_string()])?;
        let size = fs::metadata(&html)?.len();
        println!(
            "| {hosts} | {:.1} | {:.2} | {:.0} | {:.2} | {:.2} |",
            bytes as f64 / 1e6,
            text.seconds,
            text.peak_bytes.max(page.peak_bytes) as f64 / 1e6,
            size as f64 / 1e6,
            page.seconds
        );
        ensure!(text.seconds <= MOST_SECONDS && text.peak_bytes <= MOST_BYTES, "{hosts} hosts take too much");
        ensure!(hosts != 1000 || size <= MOST_HTML, "the HTML report of {hosts} hosts has {size} bytes");
        // Ten thousand surveys are a gigabyte.
        fs::remove_dir_all(&results)?;
    }
    Ok(())
}

/// Writes surveys, and returns their size.
pub fn make(nodewise: &Path, results: &Path, hosts: usize) -> Result<u64> {
    if results.exists() {
        fs::remove_dir_all(results)?;
    }
    fs::create_dir_all(results)?;
    let mut random = Random::new(hosts as u64);
    let template = template(nodewise, results)?;
    let mut bytes = 0;
    for at in 0..hosts {
        let slow = if at == SLOW.0 { SLOW.1 } else { 1.0 };
        let mut survey = template.clone();
        survey["host"] = format!("n{at:05}").into();
        for (part, list, unit) in [("latency", "cells", "ns"), ("bandwidth", "matrix", "gb_per_s")] {
            let factor = slow * (1.0 + SPREAD * random.normal());
            let factor = if part == "latency" { factor } else { 1.0 / factor };
            for cell in survey[part][list].as_array_mut().context("no cells")? {
                for name in ["median", "best"] {
                    let field = &mut cell[format!("{name}_{unit}")];
                    *field = (field.as_f64().context("no figure")? * factor).into();
                }
            }
        }
        let text = survey.to_string();
        bytes += text.len() as u64;
        fs::write(results.join(format!("n{at:05}.0.json")), text)?;
    }
    Ok(bytes)
}

/// A survey of the machine with made-up figures.
fn template(nodewise: &Path, folder: &Path) -> Result<Value> {
    let mut words: Vec<String> = ["survey", "--machine", MACHINE, "--host", "n"].map(str::to_owned).into();
    for (name, document) in [("latency", figures("ns")), ("bandwidth", figures("gb_per_s"))] {
        let file = folder.join(name);
        fs::write(&file, document.to_string())?;
        words.extend(["--from".to_owned(), file.display().to_string()]);
    }
    Ok(serde_json::from_str(&program::read(Command::new(nodewise).args(words))?)?)
}

/// The document of a measurement of two nodes in this unit.
fn figures(unit: &str) -> Value {
    let pairs = [(0, 0), (0, 1), (1, 0), (1, 1)];
    let cells: Vec<Value> = pairs
        .into_iter()
        .map(|(from, memory): (u32, u32)| {
            let mut cell = json!({
                "from_node": from, "cpus": "0-31", "memory_node": memory, "pages": "small", "rounds": 6, "samples": 36,
                "disturbed": false, "measured_again": false, "kernel": "read", "threads": 32,
                "disturbed_samples": { "stolen": 0, "switched": 0, "faulted": 0, "slower": 0, "any": 0, "of": 36 },
            });
            let value = if from == memory { 100.0 } else { 150.0 };
            cell[format!("median_{unit}")] = value.into();
            cell[format!("best_{unit}")] = value.into();
            cell
        })
        .collect();
    let mut document = json!({
        "conditions": { "command": [], "governors": [] }, "size_bytes": 1 << 28, "seed": 1, "clock": "CLOCK_MONOTONIC",
        "took_s": 9.0, "interrupted": false, "declared": [],
    });
    if unit == "ns" {
        document["schema"] = "nodewise.latency/1".into();
        document["cells"] = cells.into();
    } else {
        document["schema"] = "nodewise.bandwidth/2".into();
        document["kernel"] = "read".into();
        document["matrix"] = cells.into();
        document["kernels"] = json!([]);
        document["threads"] = json!([]);
    }
    document
}

/// The cost of a command.
struct Cost {
    seconds: f64,
    peak_bytes: u64,
}

/// Runs a command that finds something.
fn measured(nodewise: &Path, words: &[&str]) -> Result<Cost> {
    let began = Instant::now();
    let mut child = Command::new(nodewise).args(words).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let mut peak_bytes = 0;
    let status = loop {
        peak_bytes = peak(&child).unwrap_or(peak_bytes).max(peak_bytes);
        if let Some(status) = child.try_wait()? {
            break status;
        }
        thread::sleep(LOOK);
    };
    ensure!(matches!(status.code(), Some(0 | 1)), "{}: {status}", words.join(" "));
    Ok(Cost { seconds: began.elapsed().as_secs_f64(), peak_bytes })
}

/// The most memory that a process has had resident so far.
fn peak(child: &Child) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}
