//! Made-up measurements of a machine, and its survey: the documents that `latency` and `bandwidth` write, with these figures.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::nodewise::run;

/// A machine of two nodes.
pub const TWO_NODES: &str = "2x(8c 64G); dist=21; kernel=6.12.1; arch=x86_64";

/// A machine that was measured, with the slowness of the memory of each of its nodes.
pub struct Recorded<'a> {
    pub machine: &'a str,
    pub host: &'a str,
    pub attempt: u32,
    pub slowness: &'a [f64],
}

/// A reproducible difference between healthy hosts: up to 0.6 % either way.
pub fn difference(at: usize) -> f64 {
    1.0 + 0.012 * ((at * 37 % 101) as f64 / 101.0 - 0.5)
}

/// The fields of every measurement.
fn account(schema: &str, more: Value) -> Value {
    let mut document = json!({
        "schema": schema, "conditions": { "command": [], "governors": [] }, "size_bytes": 1 << 28, "seed": 1,
        "clock": "CLOCK_MONOTONIC", "took_s": 9.0, "interrupted": false, "declared": [],
    });
    for (name, value) in more.as_object().unwrap() {
        document[name] = value.clone();
    }
    document
}

/// A cell from the CPUs of one node to the memory of another, with a figure in this unit.
fn cell(from: usize, memory: usize, unit: &str, value: f64) -> Value {
    let mut cell = json!({
        "from_node": from, "cpus": from.to_string(), "memory_node": memory, "pages": "small", "rounds": 6, "samples": 36,
        "disturbed": false, "measured_again": false,
        "disturbed_samples": { "stolen": 0, "switched": 0, "faulted": 0, "slower": 0, "any": 0, "of": 36 },
    });
    cell[format!("median_{unit}")] = value.into();
    cell[format!("best_{unit}")] = value.into();
    cell[format!("median_interval_95_{unit}")] = json!([value * 0.998, value * 1.002]);
    cell
}

impl Recorded<'_> {
    fn pairs(&self) -> impl Iterator<Item = (usize, usize, f64)> {
        let nodes = self.slowness.len();
        (0..nodes).flat_map(move |from| (0..nodes).map(move |memory| (from, memory, self.slowness[memory])))
    }

    pub fn latency(&self) -> Value {
        let cell =
            |(from, memory, slow)| cell(from, memory, "ns", slow * if from == memory { 90.0 } else { 140.0 });
        account("nodewise.latency/1", json!({ "cells": self.pairs().map(cell).collect::<Vec<_>>() }))
    }

    pub fn bandwidth(&self) -> Value {
        let way = |(from, memory, slow)| {
            let mut way = cell(from, memory, "gb_per_s", if from == memory { 100.0 } else { 60.0 } / slow);
            way["kernel"] = "read".into();
            way["threads"] = 8.into();
            way
        };
        let matrix: Vec<Value> = self.pairs().map(way).collect();
        account(
            "nodewise.bandwidth/2",
            json!({ "kernel": "read", "matrix": matrix, "kernels": [], "threads": [] }),
        )
    }

    /// The words after `survey` that make its survey, with the documents in this folder.
    pub fn words(&self, folder: &Path) -> Vec<String> {
        let mut words: Vec<String> =
            ["--machine", self.machine, "--host", self.host, "--attempt", &self.attempt.to_string()]
                .map(str::to_owned)
                .into();
        for (name, document) in [("latency", self.latency()), ("bandwidth", self.bandwidth())] {
            let path = folder.join(format!("{}.{name}", self.host));
            fs::write(&path, document.to_string()).unwrap();
            words.extend(["--from".to_owned(), path.display().to_string()]);
        }
        words
    }

    /// Its survey.
    pub fn survey(&self) -> String {
        let folder = tempfile::tempdir().unwrap();
        let words = self.words(folder.path());
        let words: Vec<&str> = ["survey"].into_iter().chain(words.iter().map(String::as_str)).collect();
        run(&words).ok()
    }
}

/// Another host with the same survey but for its figures, which are this much slower on both nodes. A new one takes a
/// start of nodewise each.
pub fn like(survey: &Value, host: &str, slow: f64) -> Value {
    let mut survey = survey.clone();
    survey["host"] = host.into();
    let mut scale = |part: &str, list: &str, unit: &str, factor: f64| {
        for cell in survey[part][list].as_array_mut().unwrap() {
            let scaled = |value: &Value| Value::from(value.as_f64().unwrap() * factor);
            for name in ["median", "best"] {
                let field = format!("{name}_{unit}");
                cell[&field] = scaled(&cell[&field]);
            }
            let field = format!("median_interval_95_{unit}");
            cell[&field] = cell[&field].as_array().unwrap().iter().map(scaled).collect();
        }
    };
    scale("latency", "cells", "ns", slow);
    scale("bandwidth", "matrix", "gb_per_s", 1.0 / slow);
    survey
}
