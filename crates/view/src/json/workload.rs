//! `nodewise.workload/1` and `nodewise.workload-both/1`: the speed of built-in workloads.

use nodewise_measure::workload::chase::ChaseResult;
use nodewise_measure::workload::stream::StreamResult;
use serde::Serialize;

use super::pretty;

/// The schema of the document.
pub const SCHEMA: &str = "nodewise.workload/1";
/// The schema of the document of both workloads.
pub const BOTH_SCHEMA: &str = "nodewise.workload-both/1";

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    workload: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    operation: Option<&'static str>,
    size_bytes: u64,
    setup_s: f64,
    timed_s: f64,
    samples: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    threads: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    median_gb_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    most_gb_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    median_latency_ns: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    least_latency_ns: Option<f64>,
    /// Every sample, in the order in which they were taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    gb_per_s: Option<&'a [f64]>,
    /// Every sample, in the order in which they were taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    latency_ns: Option<&'a [f64]>,
}

#[derive(Serialize)]
struct Both<'a> {
    schema: &'static str,
    chase: Document<'a>,
    stream: Document<'a>,
}

/// Writes the result of `nodewise workload stream` as JSON.
pub fn stream(result: &StreamResult) -> String {
    pretty(&stream_document(result))
}

/// Writes the result of `nodewise workload chase` as JSON.
pub fn chase(result: &ChaseResult) -> String {
    pretty(&chase_document(result))
}

/// Writes the results of `nodewise workload both` as JSON.
pub fn both(chase: &ChaseResult, stream: &StreamResult) -> String {
    pretty(&Both { schema: BOTH_SCHEMA, chase: chase_document(chase), stream: stream_document(stream) })
}

fn stream_document(result: &StreamResult) -> Document<'_> {
    Document {
        schema: SCHEMA,
        workload: "stream",
        operation: Some(result.operation.name()),
        size_bytes: result.size.get(),
        setup_s: result.setup.as_secs_f64(),
        timed_s: result.timed.as_secs_f64(),
        samples: result.gb_per_s.len(),
        threads: Some(result.threads),
        median_gb_per_s: Some(result.median_gb_per_s()),
        most_gb_per_s: Some(result.most_gb_per_s()),
        median_latency_ns: None,
        least_latency_ns: None,
        gb_per_s: Some(&result.gb_per_s),
        latency_ns: None,
    }
}

fn chase_document(result: &ChaseResult) -> Document<'_> {
    Document {
        schema: SCHEMA,
        workload: "chase",
        operation: None,
        size_bytes: result.size.get(),
        setup_s: result.setup.as_secs_f64(),
        timed_s: result.timed.as_secs_f64(),
        samples: result.ns_per_load.len(),
        threads: None,
        median_gb_per_s: None,
        most_gb_per_s: None,
        median_latency_ns: Some(result.median_ns()),
        least_latency_ns: Some(result.least_ns()),
        gb_per_s: None,
        latency_ns: Some(&result.ns_per_load),
    }
}
