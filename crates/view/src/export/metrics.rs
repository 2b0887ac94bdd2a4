//! The state of nodes for Prometheus: its text format 0.0.4, or OpenMetrics 1.0.
//!
//! # Source
//! Prometheus, "Exposition formats" and "Metric and label naming"; OpenMetrics 1.0: samples of a metric lie together
//! behind its `HELP` and `TYPE`, a counter's samples end in `_total`, base units (bytes, seconds) end the names.
//!
//! Values are those of `stat --json` by the same names, counted since boot. A family without a sample is left out. What
//! node exporter has of the whole system (pressure, memory) is not repeated; its `meminfo_numa` has the kernel's raw
//! fields, here are the sizes that [`sizes`] and [`MemoryUse`] work out.

mod families;

use std::fmt::Write as _;

use nodewise_diagnose::locality::sizes;
use nodewise_diagnose::sample::Sample;
use nodewise_machine::Machine;

use crate::metrics::escaped;

/// How metrics are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposition {
    /// The text format 0.0.4: what the textfile collector of node exporter reads.
    Text,
    /// OpenMetrics 1.0: counters are families without `_total`, and the end is marked.
    OpenMetrics,
}

/// Writes the state of a machine's nodes.
pub fn metrics(machine: &Machine, sample: &Sample, exposition: Exposition) -> String {
    let mut text = String::new();
    for family in families::all(machine, sample, &sizes(sample)) {
        family.write(exposition, &mut text);
    }
    if exposition == Exposition::OpenMetrics {
        text.push_str("# EOF\n");
    }
    text
}

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Gauge,
    /// Its samples end in `_total`.
    Counter,
}

/// A value as it is written.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Value {
    Whole(u64),
    /// Never infinite, nor not a number.
    Real(f64),
}

/// A sample: its labels, and its value.
type Point = (Vec<(&'static str, String)>, Value);

/// A metric with its samples.
struct Family {
    /// Without `_total`.
    name: &'static str,
    kind: Kind,
    help: &'static str,
    points: Vec<Point>,
}

impl Family {
    fn write(&self, exposition: Exposition, text: &mut String) {
        if self.points.is_empty() {
            return;
        }
        let total = if self.kind == Kind::Counter { "_total" } else { "" };
        let of_family = if exposition == Exposition::OpenMetrics { "" } else { total };
        let kind = match self.kind {
            Kind::Gauge => "gauge",
            Kind::Counter => "counter",
        };
        let Self { name, help, .. } = self;
        // Writing to a String cannot fail.
        let _ = writeln!(text, "# HELP {name}{of_family} {help}\n# TYPE {name}{of_family} {kind}");
        for (labels, value) in &self.points {
            let labels: Vec<String> =
                labels.iter().map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect();
            let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
            let _ = match value {
                Value::Whole(value) => writeln!(text, "{name}{total}{labels} {value}"),
                Value::Real(value) => writeln!(text, "{name}{total}{labels} {value}"),
            };
        }
    }
}

#[cfg(test)]
mod tests;
