//! `nodewise.doctor/1`: a diagnosis. `nodewise.rules/1`: the catalogue.

mod rules;

use nodewise_diagnose::finding::{Evidence, Mend, RuleFinding, Subject, Value};
use nodewise_diagnose::thresholds::{ReplacedThreshold, RuleThreshold};
use nodewise_machine::{Bytes, NodeId};
use serde::Serialize;

use super::{pretty, rounded};
use crate::digest::doctor::{DoctorReport, LackingRules, check_of, rule_of};

pub use rules::rules;

/// The schema of a diagnosis.
pub const SCHEMA: &str = "nodewise.doctor/1";

/// Writes the report.
pub fn doctor(report: &DoctorReport<'_>) -> String {
    pretty(&DoctorJson::from_report(report))
}

#[derive(Serialize)]
struct DoctorJson<'a> {
    schema: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    taken_at_s: Option<f64>,
    /// Missing: one moment.
    #[serde(skip_serializing_if = "Option::is_none")]
    window_s: Option<f64>,
    /// Missing: the running system.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'a str>,
    machine: MachineJson,
    conclusion: String,
    findings: Vec<FindingJson<'a>>,
    nodes: Vec<NodeJson>,
    examined: ExaminedJson,
    not_examined: Vec<NotExaminedJson<'a>>,
    /// Processes about which rules lack a fact, though those were examined.
    not_examined_processes: Vec<NotExaminedProcessesJson<'a>>,
    /// Rules about other kinds of machines.
    rules_elsewhere: usize,
    findings_of_other_processes: usize,
    ignored: Vec<IgnoredJson<'a>>,
    unread: Vec<UnreadJson<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    replaced_thresholds: Vec<ReplacedJson>,
}

/// A threshold that a file replaced.
#[derive(Serialize)]
struct ReplacedJson {
    table: &'static str,
    key: &'static str,
    unit: &'static str,
    value: f64,
    default: f64,
}

#[derive(Serialize)]
struct MachineJson {
    class: &'static str,
    nodes: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    packages: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel: Option<String>,
}

#[derive(Serialize)]
struct FindingJson<'a> {
    id: &'static str,
    severity: &'static str,
    confidence: &'static str,
    subject: SubjectJson<'a>,
    summary: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    concerns_bytes: Option<u64>,
    nodes: String,
    evidence: Vec<EvidenceJson<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    replaced_thresholds: Vec<ReplacedJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'a str>,
    mend: Vec<MendJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    experiment: Option<&'a str>,
    check: String,
    sources: &'static [&'static str],
    explains: Vec<FindingJson<'a>>,
}

#[derive(Serialize)]
pub(super) struct SubjectJson<'a> {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    nodes: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at_ticks: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<OwnerJson<'a>>,
}

#[derive(Serialize)]
struct OwnerJson<'a> {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
}

#[derive(Serialize)]
struct EvidenceJson<'a> {
    fact: &'a str,
    value: ValueJson<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    threshold: Option<ThresholdJson<'a>>,
    read_from: &'static str,
}

#[derive(Serialize)]
struct ThresholdJson<'a> {
    #[serde(flatten)]
    value: ValueJson<'a>,
    origin: &'static str,
}

/// One of the numbers, or words.
#[derive(Serialize, Default)]
pub(super) struct ValueJson<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    size_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    share: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    /// The unit of a rate or a count.
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
}

#[derive(Serialize)]
pub(super) struct MendJson<'a> {
    what: &'a str,
    commands: &'a [String],
    scope: &'static str,
    needs_root: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    moves_bytes: Option<u64>,
    undo: &'a [String],
}

#[derive(Serialize)]
struct NodeJson {
    id: u32,
    size_bytes: u64,
    free_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    available_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    high_watermark_bytes: Option<u64>,
}

#[derive(Serialize)]
struct ExaminedJson {
    rules: Vec<&'static str>,
    processes: usize,
    processes_with_known_memory: usize,
    significant_processes: usize,
    devices_with_interrupts: usize,
    devices: usize,
}

#[derive(Serialize)]
struct NotExaminedJson<'a> {
    fact: &'static str,
    reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<&'a str>,
    rules: Vec<&'static str>,
}

#[derive(Serialize)]
struct NotExaminedProcessesJson<'a> {
    #[serde(flatten)]
    lack: NotExaminedJson<'a>,
    processes: Vec<SubjectJson<'a>>,
}

#[derive(Serialize)]
struct IgnoredJson<'a> {
    id: &'static str,
    severity: &'static str,
    subject: SubjectJson<'a>,
}

#[derive(Serialize)]
struct UnreadJson<'a> {
    fact: &'a str,
    reason: &'a str,
    objects: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

impl<'a> DoctorJson<'a> {
    fn from_report(report: &DoctorReport<'a>) -> Self {
        let (diagnosis, machine) = (report.diagnosis, report.machine);
        let [processes, processes_with_known_memory, significant_processes] = diagnosis.processes;
        let node = |(id, state): (&NodeId, &nodewise_diagnose::situation::NodeState)| NodeJson {
            id: id.number(),
            size_bytes: state.size.get(),
            free_bytes: state.free.get(),
            available_bytes: state.available.map(Bytes::get),
            high_watermark_bytes: state.high.map(Bytes::get),
        };
        let not_examined = report.lacking().into_iter().map(NotExaminedJson::from_lacking);
        let in_part = report.lacking_about_processes().into_iter().map(|lacking| NotExaminedProcessesJson {
            processes: lacking.processes.into_iter().map(SubjectJson::from_subject).collect(),
            lack: NotExaminedJson::from_lacking(lacking.lacking),
        });
        let ignored = report.ignored.iter().map(|finding| IgnoredJson {
            id: finding.rule,
            severity: finding.severity.word(),
            subject: SubjectJson::from_subject(&finding.subject),
        });
        let unread = report.unread.iter().map(|unread| UnreadJson {
            fact: &unread.fact,
            reason: &unread.reason,
            objects: unread.objects,
            remedy: unread.remedy.as_ref().map(ToString::to_string),
        });
        Self {
            schema: SCHEMA,
            taken_at_s: report.taken_at.map(|taken| rounded(taken.as_secs_f64())),
            window_s: diagnosis.window.map(|window| rounded(window.as_secs_f64())),
            source: report.source,
            machine: MachineJson {
                class: diagnosis.class.word(),
                nodes: machine.node_ids().to_string(),
                packages: Some(machine.packages().len()).filter(|packages| *packages > 0),
                kernel: machine.kernel.as_ref().map(ToString::to_string),
            },
            conclusion: report.conclusion(),
            findings: diagnosis
                .findings
                .iter()
                .map(|finding| FindingJson::from_finding(finding, report.thresholds))
                .collect(),
            nodes: diagnosis.nodes.iter().map(node).collect(),
            examined: ExaminedJson {
                rules: diagnosis.examined.iter().map(|rule| rule.id).collect(),
                processes,
                processes_with_known_memory,
                significant_processes,
                devices_with_interrupts: diagnosis.interrupts,
                devices: diagnosis.devices,
            },
            not_examined: not_examined.collect(),
            not_examined_processes: in_part.collect(),
            rules_elsewhere: diagnosis.elsewhere,
            findings_of_other_processes: report.others,
            ignored: ignored.collect(),
            unread: unread.collect(),
            replaced_thresholds: diagnosis.replaced.iter().map(ReplacedJson::from_replaced).collect(),
        }
    }
}

impl ReplacedJson {
    fn from_replaced(of: &ReplacedThreshold) -> Self {
        let RuleThreshold { table, key, unit, default, .. } = *of.threshold;
        Self { table, key, unit: unit.word(), value: of.value, default }
    }
}

impl<'a> NotExaminedJson<'a> {
    fn from_lacking(lacking: LackingRules<'a>) -> Self {
        let LackingRules { lack, rules } = lacking;
        Self { fact: lack.fact, reason: &lack.reason, remedy: lack.remedy.as_deref(), rules }
    }
}

impl<'a> FindingJson<'a> {
    fn from_finding(finding: &'a RuleFinding, thresholds: Option<&str>) -> Self {
        Self {
            id: finding.rule,
            severity: finding.severity.word(),
            confidence: finding.confidence.word(),
            subject: SubjectJson::from_subject(&finding.subject),
            summary: &finding.summary,
            concerns_bytes: finding.concerns.map(Bytes::get),
            nodes: finding.nodes.to_string(),
            evidence: finding.evidence.iter().map(EvidenceJson::from_evidence).collect(),
            replaced_thresholds: finding.replaced.iter().map(ReplacedJson::from_replaced).collect(),
            cause: finding.cause.as_deref(),
            mend: finding.mends.iter().map(MendJson::from_mend).collect(),
            experiment: finding.experiment.as_deref(),
            check: check_of(finding, thresholds),
            sources: rule_of(finding).map_or(&[], |rule| rule.sources),
            explains: finding
                .explains
                .iter()
                .map(|finding| Self::from_finding(finding, thresholds))
                .collect(),
        }
    }
}

impl<'a> SubjectJson<'a> {
    pub(super) fn from_subject(subject: &'a Subject) -> Self {
        let mut json = Self {
            kind: subject.kind(),
            nodes: None,
            pid: None,
            started_at_ticks: None,
            name: None,
            owner: None,
        };
        match subject {
            Subject::Machine => {}
            Subject::Nodes(nodes) => json.nodes = Some(nodes.to_string()),
            Subject::Process { identity, name, owner } => {
                json.pid = Some(identity.pid.number());
                json.started_at_ticks = Some(identity.started_ticks);
                json.name = Some(name);
                json.owner = Some(OwnerJson { kind: owner.kind(), name: owner.name() });
            }
            Subject::Device(name) => json.name = Some(name),
        }
        json
    }
}

impl<'a> EvidenceJson<'a> {
    fn from_evidence(evidence: &'a Evidence) -> Self {
        let threshold = evidence.threshold.as_ref().map(|threshold| ThresholdJson {
            value: ValueJson::from_value(&threshold.value),
            origin: threshold.origin,
        });
        Self {
            fact: &evidence.fact,
            value: ValueJson::from_value(&evidence.value),
            threshold,
            read_from: evidence.read_from,
        }
    }
}

impl<'a> ValueJson<'a> {
    pub(super) fn from_value(value: &'a Value) -> Self {
        let unit = |unit: &'static str| Some(unit).filter(|unit| !unit.is_empty());
        let none = Self::default();
        match value {
            Value::Size(size) => Self { size_bytes: Some(size.get()), ..none },
            Value::Share(share) => Self { share: Some(rounded(*share)), ..none },
            Value::Rate(rate, of) => Self { per_s: Some(rounded(*rate)), unit: unit(of), ..none },
            Value::Count(count, of) => Self { count: Some(*count), unit: unit(of), ..none },
            Value::Text(words) => Self { text: Some(words), ..none },
        }
    }
}

impl<'a> MendJson<'a> {
    pub(super) fn from_mend(mend: &'a Mend) -> Self {
        Self {
            what: &mend.what,
            commands: &mend.commands,
            scope: mend.scope.word(),
            needs_root: mend.needs_root,
            moves_bytes: mend.moves.map(Bytes::get),
            undo: &mend.undo,
        }
    }
}
