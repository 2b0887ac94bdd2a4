//! A queue of a network device.

use serde::Serialize;

use crate::digest::running::SteeredQueue;

#[derive(Serialize)]
pub(super) struct QueueJson {
    queue: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpus: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flows: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    other_nodes_only: Option<bool>,
}

impl From<&SteeredQueue> for QueueJson {
    fn from(steered: &SteeredQueue) -> Self {
        Self {
            queue: steered.queue.name.clone(),
            cpus: steered.queue.cpus.as_ref().map(ToString::to_string),
            flows: steered.queue.flows,
            other_nodes_only: steered.is_remote,
        }
    }
}
