//! What curves of loaded latency show, and how far they can be believed.

use nodewise_machine::{CpuId, NodeId};

use super::report::Report;
use crate::survey::Noise;

/// Something that the curves show.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// The CPU that chases shares its core with one that moves data: what it waits for is not memory
    /// alone.
    SharedCore {
        /// The CPU that chases.
        cpu: CpuId,
        /// The node whose CPUs move data.
        node: NodeId,
    },
    /// How far all of it can be believed.
    Noise(Noise),
}

impl Finding {
    /// Whether it says that figures may not repeat, here and now.
    pub fn is_noise(&self) -> bool {
        matches!(self, Self::Noise(noise) if noise.is_disturbance())
    }
}

/// What a report shows, apart from its knees.
pub fn findings(report: &Report) -> Vec<Finding> {
    let mut findings = Vec::new();
    for path in report.paths.iter().filter(|path| path.shares_core) {
        let shared = path.idle.cpus.first().map(|cpu| Finding::SharedCore { cpu, node: path.traffic_from });
        findings.extend(shared.filter(|shared| !findings.contains(shared)));
    }
    findings.extend(report.account.noise(report.cells()).into_iter().map(Finding::Noise));
    findings
}
