//! A run of a study: its place, how it ended, and all that was measured of it.

use std::time::Duration;

use nodewise_experiment::study::{Plan, Record};
use serde::Serialize;

use super::also::{FidelityJson, values};
use super::evidence::EvidenceJson;
use super::{PagesJson, pages};

#[derive(Serialize)]
pub(super) struct SampleJson {
    /// 0 is the warm-up.
    round: u32,
    place: u32,
    arm: u32,
    replicate: u8,
    began_s: f64,
    ending: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wall_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    printed: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    also: Vec<Option<f64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<UsageJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pages: Option<Vec<PagesJson>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fidelity: Option<FidelityJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    steal_share: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    load: Option<f64>,
    /// Spoilt by others and made again: it does not count.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    set_aside: bool,
    #[serde(flatten)]
    evidence: EvidenceJson,
}

#[derive(Serialize)]
struct UsageJson {
    user_s: f64,
    system_s: f64,
    max_rss_bytes: u64,
    minor_faults: u64,
    major_faults: u64,
    voluntary_switches: u64,
    involuntary_switches: u64,
}

impl SampleJson {
    /// The JSON of a run, with the words of its plan.
    pub fn from_record(record: &Record, plan: &Plan) -> Self {
        let run = &record.run;
        Self {
            round: record.block.number(),
            place: record.place,
            arm: record.slot.arm.number(),
            replicate: record.slot.replicate,
            began_s: record.began.as_secs_f64(),
            ending: run.ending.to_string(),
            value: run.value(&plan.metric),
            wall_s: run.wall.as_ref().map(Duration::as_secs_f64),
            printed: run.printed,
            also: values(plan, run),
            usage: run.usage.as_ref().map(|usage| UsageJson {
                user_s: usage.user.as_secs_f64(),
                system_s: usage.system.as_secs_f64(),
                max_rss_bytes: usage.max_rss.get(),
                minor_faults: usage.minor_faults,
                major_faults: usage.major_faults,
                voluntary_switches: usage.voluntary_switches,
                involuntary_switches: usage.involuntary_switches,
            }),
            pages: run.residency.as_ref().map(pages),
            fidelity: FidelityJson::of_run(run),
            steal_share: run.surroundings.steal_share,
            load: run.surroundings.load,
            set_aside: record.set_aside,
            evidence: EvidenceJson::from_evidence(&run.evidence),
        }
    }
}
