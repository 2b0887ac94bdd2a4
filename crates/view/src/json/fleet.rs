//! `nodewise.fleet/1`: what the surveys of many machines say together. Written whole; of it groups and kinds are read back,
//! as the reference of `fleet check`.

mod reference;

use nodewise_fleet::FleetReport;
use nodewise_fleet::changes::{Change, FleetChanges};
use nodewise_fleet::deviation::{HardwareKind, UsualFact};
use nodewise_fleet::group::{
    Distribution, FALSE_ALARMS, FigureName, Group, GroupFigure, GroupPopulation, Outlier, OutlierPair,
};
use nodewise_fleet::outlier::{FEWEST, LEAST_DEVIATION, LEAST_DIFFERENCE};
use nodewise_fleet::report::HostLine;
use nodewise_fleet::structure::FactValue;
use nodewise_fleet::survey::{CellKey, Pages, Quantity};
use serde::{Deserialize, Serialize};

use super::{pretty, rounded};
use crate::digest::fleet::conclusion;

pub use reference::read;

/// The schema of the document.
pub const SCHEMA: &str = "nodewise.fleet/1";

/// Writes a report.
pub fn fleet(report: &FleetReport) -> String {
    pretty(&Document::from_report(report))
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    run: &'a str,
    conclusion: String,
    hosts_surveyed: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    hosts_expected: Option<usize>,
    rule: RuleJson,
    hosts_suspected: usize,
    suspects: Vec<SuspectJson<'a>>,
    groups: Vec<GroupJson>,
    outliers: Vec<OutlierJson<'a>>,
    kinds: Vec<KindJson>,
    deviations: Vec<DeviationJson<'a>>,
    findings: Vec<FindingJson<'a>>,
    missing: &'a [String],
    failed: Vec<FailedJson<'a>>,
    refused: Vec<RefusedJson<'a>>,
    repeated: Vec<RepeatedJson<'a>>,
    other_runs: Vec<OtherRunJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<ChangesJson<'a>>,
    hosts: Vec<HostJson<'a>>,
}

/// The rule for outliers.
#[derive(Serialize)]
struct RuleJson {
    false_alarm_share_per_group: f64,
    fewest_hosts: usize,
    least_difference_share: f64,
    least_deviation_share: f64,
}

#[derive(Serialize)]
struct SuspectJson<'a> {
    host: &'a str,
    reasons: &'a [String],
}

#[derive(Serialize, Deserialize)]
struct GroupJson {
    group: String,
    kind: String,
    layout: String,
    layout_key: String,
    hosts: Vec<String>,
    distributions: Vec<DistributionJson>,
    figures: Vec<FigureJson>,
}

/// From the CPUs of one node to the memory of another.
#[derive(Serialize, Deserialize)]
struct CellJson {
    from_node: u32,
    memory_node: u32,
    pages: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    huge_page_bytes: Option<u64>,
}

/// One of the two, by the quantity.
#[derive(Serialize, Deserialize)]
struct DistributionJson {
    #[serde(flatten)]
    cell: CellJson,
    hosts: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    latency_ns: Option<QuartilesJson>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bandwidth_gb_per_s: Option<QuartilesJson>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
struct QuartilesJson {
    least: f64,
    quarter: f64,
    median: f64,
    three_quarters: f64,
    most: f64,
}

#[derive(Serialize, Deserialize)]
struct FigureJson {
    figure: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    memory_node: Option<u32>,
    populations: Vec<PopulationJson>,
}

#[derive(Serialize, Deserialize)]
struct PopulationJson {
    hosts: usize,
    median_ratio: f64,
    deviation_ratio: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    threshold_deviations: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    limit_ratio: Option<f64>,
    /// Only where there are two populations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    members: Vec<String>,
}

#[derive(Serialize)]
struct OutlierJson<'a> {
    host: &'a str,
    figure: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_node: Option<u32>,
    slowness_ratio: f64,
    deviations: f64,
    confirmed: bool,
    pairs: Vec<PairJson>,
}

#[derive(Serialize)]
struct PairJson {
    #[serde(flatten)]
    cell: CellJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    latency_ns: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usual_latency_ns: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bandwidth_gb_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usual_bandwidth_gb_per_s: Option<f64>,
}

#[derive(Serialize, Deserialize)]
struct KindJson {
    kind: String,
    hosts: usize,
    usual: Vec<UsualJson>,
    #[serde(default)]
    mixed: Vec<MixedJson>,
}

#[derive(Serialize, Deserialize)]
struct UsualJson {
    fact: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size_bytes: Option<u64>,
    agreed: usize,
    of: usize,
}

#[derive(Serialize, Deserialize)]
struct MixedJson {
    fact: String,
    different: usize,
    values: Vec<MixedValueJson>,
}

#[derive(Serialize, Deserialize)]
struct MixedValueJson {
    value: String,
    hosts: usize,
}

#[derive(Serialize)]
struct DeviationJson<'a> {
    host: &'a str,
    fact: &'a str,
    value: &'a str,
    usual: &'a str,
    agreed: usize,
    of: usize,
}

#[derive(Serialize)]
struct FindingJson<'a> {
    id: &'a str,
    severity: &'static str,
    hosts: &'a [String],
}

#[derive(Serialize)]
struct FailedJson<'a> {
    host: &'a str,
    reason: &'a str,
}

#[derive(Serialize)]
struct RefusedJson<'a> {
    file: &'a str,
    reason: &'a str,
}

#[derive(Serialize)]
struct RepeatedJson<'a> {
    host: &'a str,
    results: usize,
    attempt: u32,
}

#[derive(Serialize)]
struct OtherRunJson<'a> {
    run: &'a str,
    hosts: usize,
}

#[derive(Serialize)]
struct ChangesJson<'a> {
    compared: usize,
    appeared: &'a [String],
    gone: &'a [String],
    changes: Vec<ChangeJson<'a>>,
}

/// A change: of a fact, a figure, or a finding.
#[derive(Default, Serialize)]
struct ChangeJson<'a> {
    host: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    fact: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    now: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    figure: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_node: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    slowness_ratio: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finding: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    appeared: Option<bool>,
}

#[derive(Serialize)]
struct HostJson<'a> {
    host: &'a str,
    group: &'a str,
    attempt: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    began_unix_s: Option<u64>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    recorded: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    latency_slowness_ratio: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bandwidth_slowness_ratio: Option<f64>,
    outlier: bool,
    deviations: usize,
    findings: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    lacking: Vec<super::survey::LackingJson>,
}

impl<'a> Document<'a> {
    fn from_report(report: &'a FleetReport) -> Self {
        let collection = &report.collection;
        let confirmed = |outlier: &Outlier| report.confirmed.contains(&outlier.host);
        let outliers = report.outliers();
        Self {
            schema: SCHEMA,
            run: &report.run,
            conclusion: conclusion(report),
            hosts_surveyed: report.hosts.len(),
            hosts_expected: collection.expected,
            rule: RuleJson {
                false_alarm_share_per_group: FALSE_ALARMS,
                fewest_hosts: FEWEST,
                least_difference_share: LEAST_DIFFERENCE,
                least_deviation_share: LEAST_DEVIATION,
            },
            hosts_suspected: report.suspected,
            suspects: report
                .suspects
                .iter()
                .map(|suspect| SuspectJson { host: &suspect.host, reasons: &suspect.reasons })
                .collect(),
            groups: report.groups.iter().map(GroupJson::from_group).collect(),
            outliers: outliers.iter().map(|one| OutlierJson::from_outlier(one, confirmed(one))).collect(),
            kinds: report.kinds.iter().map(KindJson::from_kind).collect(),
            deviations: report
                .deviations()
                .into_iter()
                .map(|one| DeviationJson {
                    host: &one.host,
                    fact: &one.fact,
                    value: &one.value,
                    usual: &one.usual,
                    agreed: one.agreed,
                    of: one.of,
                })
                .collect(),
            findings: report
                .findings
                .iter()
                .map(|one| FindingJson { id: &one.id, severity: one.severity.word(), hosts: &one.hosts })
                .collect(),
            missing: &collection.missing,
            failed: collection
                .failed
                .iter()
                .map(|one| FailedJson { host: &one.host, reason: &one.reason })
                .collect(),
            refused: collection
                .refused
                .iter()
                .map(|one| RefusedJson { file: &one.file, reason: &one.reason })
                .collect(),
            repeated: collection
                .repeated
                .iter()
                .map(|one| RepeatedJson { host: &one.host, results: one.results, attempt: one.attempt })
                .collect(),
            other_runs: collection
                .other_runs
                .iter()
                .map(|(run, hosts)| OtherRunJson { run, hosts: *hosts })
                .collect(),
            changes: report.changes.as_ref().map(ChangesJson::from_changes),
            hosts: report.hosts.iter().map(HostJson::from_line).collect(),
        }
    }
}

impl GroupJson {
    fn from_group(group: &Group) -> Self {
        Self {
            group: group.name.clone(),
            kind: group.kind.clone(),
            layout: group.layout.clone(),
            layout_key: format!("{:016x}", group.layout_key),
            hosts: group.hosts.clone(),
            distributions: group.distributions.iter().map(DistributionJson::from_distribution).collect(),
            figures: group.figures.iter().map(FigureJson::from_figure).collect(),
        }
    }
}

impl CellJson {
    fn from_key(key: CellKey) -> Self {
        let (pages, huge_page_bytes) = match key.pages {
            Pages::Small => ("small", None),
            Pages::TransparentHuge => ("transparent_huge", None),
            Pages::Pool(size) => ("hugetlb", Some(size)),
        };
        Self {
            from_node: key.from.number(),
            memory_node: key.memory.number(),
            pages: pages.to_owned(),
            huge_page_bytes,
        }
    }
}

impl DistributionJson {
    fn from_distribution(of: &Distribution) -> Self {
        let quartiles = QuartilesJson {
            least: rounded(of.least),
            quarter: rounded(of.quarter),
            median: rounded(of.median),
            three_quarters: rounded(of.three_quarters),
            most: rounded(of.most),
        };
        let is_latency = of.cell.quantity == Quantity::Latency;
        Self {
            cell: CellJson::from_key(of.cell),
            hosts: of.count,
            latency_ns: is_latency.then_some(quartiles),
            bandwidth_gb_per_s: (!is_latency).then_some(quartiles),
        }
    }
}

/// The word for a figure, and its node.
fn figure_of(name: FigureName) -> (&'static str, Option<u32>) {
    (name.quantity.word(), name.memory.map(|node| node.number()))
}

impl FigureJson {
    fn from_figure(figure: &GroupFigure) -> Self {
        let (word, memory_node) = figure_of(figure.name);
        let are_named = figure.populations.len() > 1;
        let population = |one: &GroupPopulation| PopulationJson {
            hosts: one.yardstick.count,
            median_ratio: rounded(one.yardstick.median),
            deviation_ratio: rounded(one.yardstick.deviation),
            threshold_deviations: one.yardstick.threshold.map(rounded),
            limit_ratio: one.yardstick.limit().map(rounded),
            members: if are_named { one.hosts.clone() } else { Vec::new() },
        };
        Self {
            figure: word.to_owned(),
            memory_node,
            populations: figure.populations.iter().map(population).collect(),
        }
    }
}

impl<'a> OutlierJson<'a> {
    fn from_outlier(outlier: &'a Outlier, confirmed: bool) -> Self {
        let (figure, memory_node) = figure_of(outlier.figure);
        Self {
            host: &outlier.host,
            figure,
            memory_node,
            slowness_ratio: rounded(outlier.slowness),
            deviations: rounded(outlier.deviations),
            confirmed,
            pairs: outlier.pairs.iter().map(PairJson::from_pair).collect(),
        }
    }
}

impl PairJson {
    fn from_pair(pair: &OutlierPair) -> Self {
        let is_latency = pair.cell.quantity == Quantity::Latency;
        let [value, usual] = [pair.value, pair.usual].map(rounded);
        Self {
            cell: CellJson::from_key(pair.cell),
            latency_ns: is_latency.then_some(value),
            usual_latency_ns: is_latency.then_some(usual),
            bandwidth_gb_per_s: (!is_latency).then_some(value),
            usual_bandwidth_gb_per_s: (!is_latency).then_some(usual),
        }
    }
}

impl KindJson {
    fn from_kind(kind: &HardwareKind) -> Self {
        let mixed = kind.mixed.iter().map(|mixed| MixedJson {
            fact: mixed.fact.clone(),
            different: mixed.different,
            values: mixed
                .values
                .iter()
                .map(|(value, hosts)| MixedValueJson { value: value.clone(), hosts: *hosts })
                .collect(),
        });
        let usual = kind.usual.iter().map(|(fact, usual)| UsualJson::from_usual(fact, usual));
        Self { kind: kind.words.clone(), hosts: kind.hosts, usual: usual.collect(), mixed: mixed.collect() }
    }
}

impl UsualJson {
    fn from_usual(fact: &str, usual: &UsualFact) -> Self {
        let (text, size_bytes) = match &usual.value {
            FactValue::Text(text) => (Some(text.clone()), None),
            FactValue::Size(size) => (None, Some(size.get())),
        };
        Self { fact: fact.to_owned(), text, size_bytes, agreed: usual.agreed, of: usual.of }
    }
}

impl<'a> ChangesJson<'a> {
    fn from_changes(changes: &'a FleetChanges) -> Self {
        let change = |one: &'a nodewise_fleet::changes::HostChange| {
            let mut json = ChangeJson { host: &one.host, ..ChangeJson::default() };
            match &one.change {
                Change::Fact { fact, before, now } => {
                    json.fact = Some(fact.as_str());
                    (json.before, json.now) = (Some(before.as_str()), Some(now.as_str()));
                }
                Change::Figure { figure, slowness } => {
                    let (word, node) = figure_of(*figure);
                    (json.figure, json.memory_node) = (Some(word), node);
                    json.slowness_ratio = Some(rounded(*slowness));
                }
                Change::FindingAppeared { id, .. } => {
                    (json.finding, json.appeared) = (Some(id.as_str()), Some(true))
                }
                Change::FindingGone { id } => {
                    (json.finding, json.appeared) = (Some(id.as_str()), Some(false))
                }
            }
            json
        };
        Self {
            compared: changes.compared,
            appeared: &changes.appeared,
            gone: &changes.gone,
            changes: changes.changes.iter().map(change).collect(),
        }
    }
}

impl<'a> HostJson<'a> {
    fn from_line(line: &'a HostLine) -> Self {
        let lacking = line
            .lacking
            .iter()
            .map(|lack| super::survey::LackingJson { part: lack.part.clone(), reason: lack.reason.clone() });
        Self {
            host: &line.host,
            group: &line.group,
            attempt: line.attempt,
            began_unix_s: line.began_unix_s,
            recorded: &line.recorded,
            latency_slowness_ratio: line.latency.map(rounded),
            bandwidth_slowness_ratio: line.bandwidth.map(rounded),
            outlier: line.outlier,
            deviations: line.deviations,
            findings: line.findings,
            lacking: lacking.collect(),
        }
    }
}
