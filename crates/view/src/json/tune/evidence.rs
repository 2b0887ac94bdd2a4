//! The kernel's counts during one run, as they are in a sample.

use nodewise_experiment::evidence::Evidence;
use nodewise_machine::{NodeCounters, NodeId};
use serde::Serialize;

/// Counters of one run. What the kernel does not say is left out.
#[derive(Serialize)]
pub(super) struct EvidenceJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    others_share: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stolen_share: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    local_share: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    allocations: Vec<AllocationsJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pgmigrate_success: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pgmigrate_fail: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    numa_pages_migrated: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    numa_hint_faults: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    events: Vec<EventJson>,
}

#[derive(Serialize)]
struct EventJson {
    event: &'static str,
    count: u64,
}

#[derive(Serialize)]
struct AllocationsJson {
    node: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    numa_hit: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    numa_miss: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    numa_foreign: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    interleave_hit: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    local_node: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    other_node: Option<u64>,
}

impl EvidenceJson {
    pub(super) fn from_evidence(evidence: &Evidence) -> Self {
        let disturbance = evidence.disturbance();
        let allocations = |(node, counted): (&NodeId, &NodeCounters<Option<u64>>)| AllocationsJson {
            node: node.number(),
            numa_hit: counted.hit,
            numa_miss: counted.miss,
            numa_foreign: counted.foreign,
            interleave_hit: counted.interleave_hit,
            local_node: counted.local,
            other_node: counted.other,
        };
        Self {
            others_share: disturbance.map(|disturbance| disturbance.others),
            stolen_share: disturbance.and_then(|disturbance| disturbance.stolen),
            local_share: evidence.local_share(),
            allocations: evidence.allocations.iter().map(allocations).collect(),
            pgmigrate_success: evidence.moves.migrated,
            pgmigrate_fail: evidence.moves.failed,
            numa_pages_migrated: evidence.moves.balanced,
            numa_hint_faults: evidence.moves.hints,
            events: evidence
                .events
                .iter()
                .map(|(event, count)| EventJson { event: event.name(), count: *count })
                .collect(),
        }
    }
}
