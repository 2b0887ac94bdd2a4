//! Findings from curves of loaded latency, and how far they can be believed.

use nodewise_machine::{CpuId, NodeId};

use super::report::LoadedReport;
use crate::survey::SurveyFinding;

/// Something that the curves show.
#[derive(Clone, Debug, PartialEq)]
pub enum LoadedFinding {
    /// The CPU that chases shares its core with one that moves data: what it waits for is not memory
    /// alone.
    SharedCore {
        cpu: CpuId,
        /// The node whose CPUs move data.
        node: NodeId,
    },
}

/// Returns the findings of a report, apart from its knees.
pub fn findings(report: &LoadedReport) -> Vec<SurveyFinding<LoadedFinding>> {
    let mut findings: Vec<SurveyFinding<LoadedFinding>> = Vec::new();
    for path in report.paths.iter().filter(|path| path.shares_core) {
        let shared = path
            .idle
            .cpus
            .first()
            .map(|cpu| SurveyFinding::Shown(LoadedFinding::SharedCore { cpu, node: path.traffic_from }));
        findings.extend(shared.filter(|shared| !findings.contains(shared)));
    }
    findings.extend(report.account.noise(report.cells()).into_iter().map(SurveyFinding::Noise));
    findings
}
