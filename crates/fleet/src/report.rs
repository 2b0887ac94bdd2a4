//! The report on a fleet.

use std::collections::BTreeMap;

use nodewise_machine::Severity;
use nodewise_machine::order::Order as _;

use crate::changes::FleetChanges;
use crate::collection::Collection;
use crate::deviation::{HardwareKind, kinds};
use crate::group::{Group, groups};
use crate::suspect::{Suspect, suspects};

/// A rule of `doctor` with the hosts on which it found something.
#[derive(Clone, Debug, PartialEq)]
pub struct FindingCount {
    pub id: String,
    /// The worst of them.
    pub severity: Severity,
    /// Hosts, in order.
    pub hosts: Vec<String>,
}

/// A host in a line.
#[derive(Clone, Debug, PartialEq)]
pub struct HostLine {
    pub host: String,
    /// The name of its group.
    pub group: String,
    pub attempt: u32,
    pub began_unix_s: Option<u64>,
    /// Parts that are records: see [`crate::HostSurvey`].
    pub recorded: Vec<String>,
    /// Its slowness in the figures over all pairs of nodes.
    pub latency: Option<f64>,
    pub bandwidth: Option<f64>,
    pub outlier: bool,
    pub deviations: usize,
    pub findings: usize,
    pub lacking: Vec<crate::survey::LackingPart>,
}

/// The surveys of many machines together.
#[derive(Clone, Debug, PartialEq)]
pub struct FleetReport {
    pub run: String,
    pub hosts: Vec<HostLine>,
    pub kinds: Vec<HardwareKind>,
    pub groups: Vec<Group>,
    pub findings: Vec<FindingCount>,
    pub suspects: Vec<Suspect>,
    /// Hosts with a reason to be looked at, those among the suspects included.
    pub suspected: usize,
    pub changes: Option<FleetChanges>,
    /// Outliers that were outliers before, too.
    pub confirmed: Vec<String>,
    /// The surveys themselves have been taken out: their facts are in groups and kinds.
    pub collection: Collection,
}

impl FleetReport {
    /// The report on surveys, beside earlier ones where there are some.
    pub fn new(mut collection: Collection, before: Option<&Collection>) -> Self {
        let surveys = &collection.surveys;
        let (kinds, groups, findings) = (kinds(surveys), groups(surveys), findings(&collection));
        let (suspects, suspected) = suspects(&collection, &groups, &kinds, &findings);
        let changes = before.map(|before| FleetChanges::new(&before.surveys, surveys));
        let earlier = before.map(|before| self::groups(&before.surveys)).unwrap_or_default();
        let was_outlier =
            |host: &&str| earlier.iter().flat_map(Group::outliers).any(|one| one.host == **host);
        let mut confirmed: Vec<&str> =
            groups.iter().flat_map(Group::outliers).map(|outlier| outlier.host.as_str()).collect();
        confirmed.sort_unstable();
        confirmed.dedup();
        let confirmed =
            confirmed.iter().filter(|host| was_outlier(host)).map(|host| (*host).to_owned()).collect();
        let hosts = lines(&collection, &groups, &kinds);
        collection.surveys = Vec::new();
        Self {
            run: collection.run.clone(),
            hosts,
            kinds,
            groups,
            findings,
            suspects,
            suspected,
            changes,
            confirmed,
            collection,
        }
    }

    /// Outliers of all groups, the slowest first.
    pub fn outliers(&self) -> Vec<&crate::group::Outlier> {
        let mut outliers: Vec<_> = self.groups.iter().flat_map(Group::outliers).collect();
        outliers.order_by(|a, b| {
            b.slowness.total_cmp(&a.slowness).then(a.host.cmp(&b.host)).then(a.figure.cmp(&b.figure))
        });
        outliers
    }

    /// Hosts with an outlier.
    pub fn outlier_hosts(&self) -> usize {
        self.hosts.iter().filter(|host| host.outlier).count()
    }

    /// Deviating facts of all kinds, by host.
    pub fn deviations(&self) -> Vec<&crate::deviation::FactDeviation> {
        let mut deviations: Vec<_> = self.kinds.iter().flat_map(|kind| &kind.deviations).collect();
        deviations.order_by(|a, b| a.host.cmp(&b.host).then(a.fact.cmp(&b.fact)));
        deviations
    }

    /// Whether a reader has something to do: an outlier, a deviation, a host without a survey, a file that was refused, or a
    /// finding of a warning or above.
    pub fn has_findings(&self) -> bool {
        let is_bad = |finding: &FindingCount| finding.severity >= Severity::Warning;
        self.outlier_hosts() > 0
            || self.kinds.iter().any(|kind| !kind.deviations.is_empty())
            || !self.collection.missing.is_empty()
            || !self.collection.failed.is_empty()
            || !self.collection.refused.is_empty()
            || self.findings.iter().any(is_bad)
    }
}

/// Findings over hosts: the worst first, of equal ones the most frequent.
fn findings(collection: &Collection) -> Vec<FindingCount> {
    let mut counts: BTreeMap<&str, FindingCount> = BTreeMap::new();
    for survey in &collection.surveys {
        for finding in &survey.findings {
            let count = counts.entry(&finding.id).or_insert_with(|| FindingCount {
                id: finding.id.clone(),
                severity: finding.severity,
                hosts: Vec::new(),
            });
            count.severity = count.severity.max(finding.severity);
            if count.hosts.last() != Some(&survey.key.host) {
                count.hosts.push(survey.key.host.clone());
            }
        }
    }
    let mut counts: Vec<FindingCount> = counts.into_values().collect();
    counts.order_by(|a, b| b.severity.cmp(&a.severity).then(b.hosts.len().cmp(&a.hosts.len())));
    counts
}

fn lines(collection: &Collection, groups: &[Group], kinds: &[HardwareKind]) -> Vec<HostLine> {
    let mut of_group: BTreeMap<&str, &Group> = BTreeMap::new();
    let mut outliers: BTreeMap<&str, bool> = BTreeMap::new();
    for group in groups {
        of_group.extend(group.hosts.iter().map(|host| (host.as_str(), group)));
        outliers.extend(group.outliers().map(|outlier| (outlier.host.as_str(), true)));
    }
    let mut deviations: BTreeMap<&str, usize> = BTreeMap::new();
    for deviation in kinds.iter().flat_map(|kind| &kind.deviations) {
        *deviations.entry(&deviation.host).or_default() += 1;
    }
    let line = |survey: &crate::HostSurvey| {
        let host = survey.key.host.as_str();
        let group = of_group.get(host);
        let slowness = |quantity| {
            let is_it = |figure: &&crate::group::GroupFigure| {
                figure.name.quantity == quantity && figure.name.memory.is_none()
            };
            group?.figures.iter().find(is_it)?.slowness.get(host).copied()
        };
        HostLine {
            host: host.to_owned(),
            group: group.map(|group| group.name.clone()).unwrap_or_default(),
            attempt: survey.key.attempt,
            began_unix_s: survey.began_unix_s,
            recorded: survey.recorded.clone(),
            latency: slowness(crate::survey::Quantity::Latency),
            bandwidth: slowness(crate::survey::Quantity::Bandwidth),
            outlier: outliers.contains_key(host),
            deviations: deviations.get(host).copied().unwrap_or_default(),
            findings: survey.findings.len(),
            lacking: survey.lacking.clone(),
        }
    };
    collection.surveys.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::collection::{Arrival, FailedHost, RefusedFile};
    use crate::structure::FactValue;
    use crate::survey::tests::measured;

    fn arrivals(count: usize) -> Vec<Arrival> {
        let mut arrivals = Vec::new();
        for at in 0..count {
            let part = 1.0 + 0.004 * (at as f64 / count as f64 - 0.5);
            let mut survey = measured(&format!("n{at:03}"), [part, part]);
            survey.contents = at as u64;
            let balancing = if at == 5 { "1" } else { "0" };
            survey.structure.facts.insert("numa_balancing".to_owned(), FactValue::Text(balancing.to_owned()));
            if at == 7 {
                survey.cells = measured("x", [1.3, 1.3]).cells;
            }
            arrivals.push(Arrival::Survey(Box::new(survey)));
        }
        arrivals.push(Arrival::Failed(FailedHost { host: "n998".to_owned(), reason: "255".to_owned() }));
        arrivals.push(Arrival::Refused(RefusedFile { file: "x.json".to_owned(), reason: "torn".to_owned() }));
        arrivals
    }

    fn report(arrivals: Vec<Arrival>) -> FleetReport {
        let expected: BTreeSet<String> = ["n001", "n998", "n999"].map(str::to_owned).into();
        FleetReport::new(Collection::new(arrivals, Some(&expected), None), None)
    }

    #[test]
    fn the_outlier_the_odd_one_and_those_without_an_answer_are_looked_at_first() {
        let report = report(arrivals(24));
        let hosts: Vec<&str> = report.suspects.iter().map(|suspect| suspect.host.as_str()).collect();
        assert_eq!(hosts, ["n007", "n998", "n005", "n999"]);
        assert_eq!(report.suspected, 4);
        assert_eq!(report.outlier_hosts(), 1);
        assert!(report.has_findings());
        assert!(report.hosts[7].latency.is_some_and(|slowness| (slowness - 1.3).abs() < 0.01));
    }

    #[test]
    fn an_outlier_of_both_surveys_is_confirmed() {
        let collection = || Collection::new(arrivals(24), None, None);
        assert_eq!(FleetReport::new(collection(), Some(&collection())).confirmed, ["n007"]);
    }

    proptest! {
        #[test]
        fn neither_order_nor_copies_change_the_report(seed in any::<u64>(), copies in prop::collection::vec(0usize..26, 0..20)) {
            let mut shuffled = arrivals(24);
            let more: Vec<Arrival> = copies.iter().map(|at| shuffled[*at].clone()).collect();
            shuffled.extend(more);
            nodewise_stats::random::Random::new(seed).shuffle(&mut shuffled);
            prop_assert_eq!(report(shuffled), report(arrivals(24)));
        }
    }
}
