//! A diagnosis, a line per finding.

use nodewise_diagnose::finding::{RuleFinding, Subject};

use super::{known, quoted};
use crate::digest::doctor::DoctorReport;

/// Writes all findings, the worst first. A finding that another one explains follows it and names its rule; evidence and
/// remedies are in JSON.
pub fn doctor(report: &DoctorReport<'_>) -> String {
    let mut text = String::from(
        "severity,rule,confidence,subject_kind,nodes,pid,name,owner,concerns_bytes,concerns_nodes,summary,explained_by\n",
    );
    report.diagnosis.findings.iter().for_each(|finding| lines(&mut text, finding, ""));
    text
}

fn lines(text: &mut String, finding: &RuleFinding, explained_by: &str) {
    let (mut nodes, mut pid, mut name, mut owner) = (String::new(), None, "", "");
    match &finding.subject {
        Subject::Machine => {}
        Subject::Nodes(of) => nodes = of.to_string(),
        Subject::Process { identity, name: own, owner: of } => {
            (pid, name, owner) = (Some(identity.pid), own, of.name().unwrap_or_default());
        }
        Subject::Device(device) => name = device,
    }
    let fields = [
        finding.severity.word().to_owned(),
        finding.rule.to_owned(),
        finding.confidence.word().to_owned(),
        finding.subject.kind().to_owned(),
        quoted(&nodes),
        known(pid),
        quoted(name),
        quoted(owner),
        known(finding.concerns.map(|size| size.get())),
        quoted(&finding.nodes.to_string()),
        quoted(&finding.summary),
        explained_by.to_owned(),
    ];
    text.push_str(&(fields.join(",") + "\n"));
    finding.explains.iter().for_each(|other| lines(text, other, finding.rule));
}
