//! The circumstances of a measurement, as they are in its document: written and read back.

use std::time::{Duration, UNIX_EPOCH};

use nodewise_machine::conditions::Conditions;
use nodewise_machine::{CpuSet, KernelRelease, NodeSet};
use serde::{Deserialize, Serialize};

/// The circumstances. What is not known is left out.
#[derive(Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct ConditionsJson {
    #[serde(default)]
    command: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    began_unix_s: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nodewise_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    architecture: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hypervisor: Option<String>,
    #[serde(default)]
    governors: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    transparent_hugepage: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    numa_balancing: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed_cpus: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed_nodes: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    load: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    steal_share: Option<f64>,
}

impl ConditionsJson {
    /// The circumstances as they are written.
    pub(super) fn from_conditions(conditions: &Conditions) -> Self {
        let began = conditions.began.and_then(|began| began.duration_since(UNIX_EPOCH).ok());
        Self {
            command: conditions.command.clone(),
            began_unix_s: began.map(|began| began.as_secs()),
            nodewise_version: conditions.nodewise_version.clone(),
            kernel: conditions.kernel.as_ref().map(|kernel| kernel.text().to_owned()),
            architecture: conditions.architecture.clone(),
            cpu_model: conditions.cpu_model.clone(),
            hypervisor: conditions.hypervisor.clone(),
            governors: conditions.governors.clone(),
            transparent_hugepage: conditions.transparent_hugepage.clone(),
            numa_balancing: conditions.numa_balancing,
            allowed_cpus: conditions.allowed_cpus.as_ref().map(ToString::to_string),
            allowed_nodes: conditions.allowed_nodes.as_ref().map(ToString::to_string),
            load: conditions.load,
            steal_share: conditions.steal_share,
        }
    }

    /// The circumstances that were written. A set that does not parse is taken as not known.
    pub(super) fn read(self) -> Conditions {
        let began =
            self.began_unix_s.and_then(|seconds| UNIX_EPOCH.checked_add(Duration::from_secs(seconds)));
        Conditions {
            command: self.command,
            began,
            nodewise_version: self.nodewise_version,
            kernel: self.kernel.as_deref().and_then(KernelRelease::new),
            architecture: self.architecture,
            cpu_model: self.cpu_model,
            hypervisor: self.hypervisor,
            governors: self.governors,
            transparent_hugepage: self.transparent_hugepage,
            numa_balancing: self.numa_balancing,
            allowed_cpus: self.allowed_cpus.and_then(|text| text.parse::<CpuSet>().ok()),
            allowed_nodes: self.allowed_nodes.and_then(|text| text.parse::<NodeSet>().ok()),
            load: self.load,
            steal_share: self.steal_share,
        }
    }
}
