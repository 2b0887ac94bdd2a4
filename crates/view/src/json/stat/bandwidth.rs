//! The memory bandwidth of last-level caches, and the traffic of memory controllers.

use serde::Serialize;

use super::rounded;
use crate::digest::running::{BandwidthRow, ControllerRow, Running};

#[derive(Serialize)]
pub(super) struct BandwidthJson {
    domain: u32,
    cpus: String,
    nodes: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_bytes_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    own_node_bytes_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    other_nodes_bytes_per_s: Option<f64>,
}

impl BandwidthJson {
    pub(super) fn from_row(row: &BandwidthRow, running: &Running) -> Self {
        let rate = |bytes| running.rate(bytes).map(rounded);
        Self {
            domain: row.domain,
            cpus: row.cpus.to_string(),
            nodes: row.nodes.to_string(),
            total_bytes_per_s: rate(row.total_bytes),
            own_node_bytes_per_s: rate(row.local_bytes),
            other_nodes_bytes_per_s: rate(row.other_bytes()),
        }
    }
}

#[derive(Serialize)]
pub(super) struct ControllerJson {
    cpus: String,
    nodes: String,
    controllers: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    read_bytes_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    written_bytes_per_s: Option<f64>,
}

impl ControllerJson {
    pub(super) fn from_row(row: &ControllerRow, running: &Running) -> Self {
        let rate = |bytes| running.rate(bytes).map(rounded);
        Self {
            cpus: row.cpus.to_string(),
            nodes: row.nodes.to_string(),
            controllers: row.controllers,
            read_bytes_per_s: rate(row.read_bytes),
            written_bytes_per_s: rate(row.written_bytes),
        }
    }
}
