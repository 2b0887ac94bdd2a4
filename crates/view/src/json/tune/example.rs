//! The value of placements on a server with nodes: the example of the first look.

use nodewise_model::cost::Bottleneck;
use serde::Serialize;

use crate::digest::example::{CONTROLLER, FAR_NS, LINK, NEAR_NS, Predicted, THREADS_PER_NODE};

/// A server of two nodes, with its declared figures, and what the model predicts from them.
#[derive(Serialize)]
pub(super) struct ExampleJson {
    nodes: u32,
    threads_per_node: u32,
    near_ns: f64,
    far_ns: f64,
    memory_bytes_per_s: f64,
    link_bytes_per_s: f64,
    predicted: Vec<PredictedJson>,
}

#[derive(Serialize)]
struct PredictedJson {
    placement: &'static str,
    bytes_per_s: f64,
    latency_ns: f64,
    bound_by: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<u32>,
}

impl ExampleJson {
    pub(super) fn from_predicted(predicted: &[Predicted]) -> Self {
        let row = |one: &Predicted| {
            let (bound_by, node) = match one.bottleneck {
                Bottleneck::Threads(_) => ("threads", None),
                Bottleneck::Link(..) => ("link", None),
                Bottleneck::Controller(node) => ("memory", Some(node.number())),
            };
            PredictedJson {
                placement: one.placement,
                bytes_per_s: one.bandwidth.round(),
                latency_ns: one.latency_ns,
                bound_by,
                node,
            }
        };
        Self {
            nodes: 2,
            threads_per_node: THREADS_PER_NODE,
            near_ns: NEAR_NS,
            far_ns: FAR_NS,
            memory_bytes_per_s: CONTROLLER,
            link_bytes_per_s: LINK,
            predicted: predicted.iter().map(row).collect(),
        }
    }
}
