//! Facts of an arm besides the metric that decides: how far it ran as asked, and other metrics.

use nodewise_experiment::executor::{Arm, Run};
use nodewise_experiment::fidelity::Fidelity;
use nodewise_experiment::study::Plan;
use nodewise_experiment::verdict::ArmResult;
use serde::Serialize;

use super::super::ends;

/// How far an arm, or one run of it, ran as asked. What was not asked for, or not seen, is left out.
#[derive(Serialize)]
pub(super) struct FidelityJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    cpus_share: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy_share: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pages_share: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    other_cpus: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    other_policy: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    held: Option<bool>,
}

impl FidelityJson {
    /// Of all runs of an arm.
    pub fn of_arm(arm: &Arm, result: &ArmResult) -> Option<Self> {
        let fidelity = result.fidelity.as_ref()?;
        Some(Self { held: Some(fidelity.held(&arm.placement)), ..Self::from_fidelity(fidelity) })
    }

    /// Of one run.
    pub fn of_run(run: &Run) -> Option<Self> {
        run.fidelity.as_ref().map(Self::from_fidelity)
    }

    fn from_fidelity(fidelity: &Fidelity) -> Self {
        Self {
            cpus_share: fidelity.cpus,
            policy_share: fidelity.policy,
            pages_share: fidelity.nodes,
            other_cpus: fidelity.other_cpus.as_ref().map(ToString::to_string),
            other_policy: fidelity.other_policy.as_ref().map(ToString::to_string),
            held: None,
        }
    }
}

/// A metric of an arm that decides nothing.
#[derive(Serialize)]
pub(super) struct AlsoJson {
    runs: usize,
    median: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio_interval_95: Option<[f64; 2]>,
}

impl AlsoJson {
    /// Those of an arm, in the order of the plan; null where no run gave a value.
    pub fn from_arm_result(result: &ArmResult) -> Vec<Option<Self>> {
        let one = |also: &nodewise_experiment::verdict::Also| Self {
            runs: also.summary.runs,
            median: also.summary.median,
            ratio: also.ratio.map(|(ratio, _)| ratio),
            ratio_interval_95: also.ratio.and_then(|(_, interval)| interval.map(ends)),
        };
        result.also.iter().map(|also| also.as_ref().map(one)).collect()
    }
}

/// The values of a run, in the order of the plan.
pub(super) fn values(plan: &Plan, run: &Run) -> Vec<Option<f64>> {
    plan.also.iter().map(|metric| run.also(metric)).collect()
}
