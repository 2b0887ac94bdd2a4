//! Services and containers.

use nodewise_machine::printable::printable;
use nodewise_machine::{Bytes, NodeId};
use serde::Serialize;

use super::{rounded, seconds};
use crate::digest::running::ServiceRow;

#[derive(Serialize)]
pub(super) struct ServiceJson {
    kind: &'static str,
    name: String,
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    window_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_share: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    charged_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    anon_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by_node: Option<Vec<ChargedJson>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    may_use_cpus: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    may_use_nodes: Option<String>,
}

#[derive(Serialize)]
struct ChargedJson {
    node: u32,
    size_bytes: u64,
}

impl ServiceJson {
    pub(super) fn from_row(row: &ServiceRow) -> Self {
        let bytes = |size: Option<Bytes>| size.map(Bytes::get);
        let on =
            |(node, size): (&NodeId, &Bytes)| ChargedJson { node: node.number(), size_bytes: size.get() };
        Self {
            kind: row.kind_word(),
            name: row.name.clone(),
            path: printable(&row.path).into_owned(),
            window_s: row.cpu_share.and(row.window.length()).map(seconds),
            cpu_share: row.cpu_share.map(rounded),
            charged_bytes: bytes(row.size()),
            anon_bytes: bytes(row.anonymous),
            file_bytes: bytes(row.files),
            by_node: row.memory.as_ref().map(|nodes| nodes.iter().map(on).collect()),
            may_use_cpus: row.cpus.as_ref().map(ToString::to_string),
            may_use_nodes: row.nodes.as_ref().map(ToString::to_string),
        }
    }
}
