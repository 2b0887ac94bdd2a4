//! The machines to look at first.

use std::collections::BTreeMap;

use nodewise_machine::Severity;
use nodewise_machine::order::Order as _;

use crate::collection::Collection;
use crate::deviation::HardwareKind;
use crate::group::Group;
use crate::report::FindingCount;
use crate::structure::LAYOUT;

/// How many machines are named.
pub const MOST: usize = 10;
/// A finding on more than this part of the hosts is one about the site, and singles out none of them.
const RARE: f64 = 0.2;
/// Hosts that a finding may always be on.
const FEW: usize = 2;

/// A reason to look at a machine, the strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SuspectReason {
    Critical,
    Outlier,
    Failed,
    Layout,
    Fact,
    Warning,
    Lacking,
    Missing,
}

/// A machine to look at.
#[derive(Clone, Debug, PartialEq)]
pub struct Suspect {
    pub host: String,
    /// Reasons in words, the strongest first. Foreign text.
    pub reasons: Vec<String>,
}

/// A reason with what orders equal ones: more is worse.
struct Found {
    reason: SuspectReason,
    weight: f64,
    words: String,
}

/// The machines to look at first, and how many have a reason at all.
pub fn suspects(
    collection: &Collection,
    groups: &[Group],
    kinds: &[HardwareKind],
    findings: &[FindingCount],
) -> (Vec<Suspect>, usize) {
    let mut found: BTreeMap<&str, Vec<Found>> = BTreeMap::new();
    let mut add = |host, reason, weight, words| {
        found.entry(host).or_default().push(Found { reason, weight, words });
    };
    for outlier in groups.iter().flat_map(Group::outliers) {
        let words = format!(
            "{} {:.2} times that of its group",
            outlier.figure,
            inverse(outlier.figure, outlier.slowness)
        );
        add(&outlier.host, SuspectReason::Outlier, outlier.slowness, words);
    }
    for deviation in kinds.iter().flat_map(|kind| &kind.deviations) {
        let reason = if deviation.fact == LAYOUT { SuspectReason::Layout } else { SuspectReason::Fact };
        let words = format!("{}: {}, usually {}", deviation.fact, deviation.value, deviation.usual);
        add(&deviation.host, reason, deviation.agreed as f64 / deviation.of as f64, words);
    }
    let surveyed = collection.surveys.len();
    let is_rare = |hosts: usize| hosts <= FEW || hosts as f64 <= RARE * surveyed as f64;
    for finding in findings.iter().filter(|finding| is_rare(finding.hosts.len())) {
        let reason = match finding.severity {
            Severity::Critical => SuspectReason::Critical,
            Severity::Warning => SuspectReason::Warning,
            Severity::Note | Severity::Info => continue,
        };
        for host in &finding.hosts {
            add(host, reason, 0.0, format!("{} ({})", finding.id, finding.severity.word()));
        }
    }
    for failed in &collection.failed {
        add(&failed.host, SuspectReason::Failed, 0.0, format!("the survey failed: {}", failed.reason));
    }
    for survey in &collection.surveys {
        for part in &survey.lacking {
            let words = format!("no {}: {}", part.part, part.reason);
            add(&survey.key.host, SuspectReason::Lacking, 0.0, words);
        }
    }
    for host in &collection.missing {
        add(host, SuspectReason::Missing, 0.0, "no answer".to_owned());
    }
    let all = found.len();
    let mut hosts: Vec<(&str, Vec<Found>)> = found.into_iter().collect();
    for (_, reasons) in &mut hosts {
        reasons.order_by(|a, b| a.reason.cmp(&b.reason).then(b.weight.total_cmp(&a.weight)));
    }
    hosts.order_by(|(_, a), (_, b)| {
        let order = a[0].reason.cmp(&b[0].reason).then(b[0].weight.total_cmp(&a[0].weight));
        order.then(b.len().cmp(&a.len()))
    });
    hosts.truncate(MOST);
    let suspect = |(host, reasons): (&str, Vec<Found>)| Suspect {
        host: host.to_owned(),
        reasons: reasons.into_iter().map(|found| found.words).collect(),
    };
    (hosts.into_iter().map(suspect).collect(), all)
}

/// The ratio of the figure itself: a bandwidth of an outlier is below 1.
pub fn inverse(figure: crate::group::FigureName, slowness: f64) -> f64 {
    figure.quantity.slowness(slowness, 1.0)
}
