//! One machine against the group that it belongs to.

use std::collections::BTreeMap;

use nodewise_machine::Severity;
use nodewise_machine::order::Order as _;

use crate::deviation::{HardwareKind, UsualFact};
use crate::group::{FigureName, OutlierPair, UsualFigures, pairs, slowness};
use crate::outlier::Yardstick;
use crate::survey::HostSurvey;

/// A group as it is kept for later checks.
#[derive(Clone, Debug, PartialEq)]
pub struct ReferenceGroup {
    pub name: String,
    pub kind: String,
    pub layout_key: u64,
    pub hosts: usize,
    pub usual: UsualFigures,
    /// Yardsticks by figure: of each population one.
    pub yardsticks: BTreeMap<FigureName, Vec<Yardstick>>,
}

/// A kind as it is kept for later checks.
#[derive(Clone, Debug, PartialEq)]
pub struct ReferenceKind {
    pub kind: String,
    pub usual: BTreeMap<String, UsualFact>,
}

impl From<&HardwareKind> for ReferenceKind {
    fn from(kind: &HardwareKind) -> Self {
        Self { kind: kind.words.clone(), usual: kind.usual.clone() }
    }
}

/// The usual facts and figures of a site's machines.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Reference {
    pub groups: Vec<ReferenceGroup>,
    pub kinds: Vec<ReferenceKind>,
}

/// Something wrong with a machine. All texts are foreign.
#[derive(Clone, Debug, PartialEq)]
pub enum CheckFinding {
    Slow {
        figure: FigureName,
        slowness: f64,
        deviations: f64,
        pairs: Vec<OutlierPair>,
    },
    Fact {
        fact: String,
        value: String,
        usual: String,
    },
    Finding {
        id: String,
        severity: Severity,
        summary: String,
    },
    /// No machine of this kind is in the reference.
    UnknownKind {
        kind: String,
    },
    /// Machines of this kind are, but none is divided into nodes like this one.
    UnknownLayout {
        layout: String,
    },
}

impl CheckFinding {
    /// Whether the machine should not get work until an administrator has looked at it.
    pub fn is_critical(&self) -> bool {
        match self {
            Self::Slow { .. } | Self::UnknownLayout { .. } => true,
            Self::Finding { severity, .. } => *severity == Severity::Critical,
            Self::Fact { .. } | Self::UnknownKind { .. } => false,
        }
    }
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq)]
pub struct HostCheck {
    pub host: String,
    /// The group that it belongs to, and the hosts in it; `None` without a reference, or where it has none.
    pub group: Option<(String, usize)>,
    /// The worst first.
    pub findings: Vec<CheckFinding>,
    pub facts_compared: usize,
    /// How many times slower than usual it is, by figure; empty where nothing was measured.
    pub figures: Vec<(FigureName, f64)>,
}

impl HostCheck {
    /// Holds a machine against a reference. Findings below a warning do not count.
    pub fn new(survey: &HostSurvey, reference: Option<&Reference>) -> Self {
        let mut check = Self {
            host: survey.key.host.clone(),
            group: None,
            findings: Vec::new(),
            facts_compared: 0,
            figures: Vec::new(),
        };
        if let Some(reference) = reference {
            check.facts(survey, reference);
            check.speed(survey, reference);
        }
        let bad = survey.findings.iter().filter(|finding| finding.severity >= Severity::Warning);
        check.findings.extend(bad.map(|finding| CheckFinding::Finding {
            id: finding.id.clone(),
            severity: finding.severity,
            summary: finding.summary.clone(),
        }));
        let order = |finding: &CheckFinding| match finding {
            CheckFinding::Slow { slowness, .. } => -slowness,
            _ => 0.0,
        };
        check
            .findings
            .order_by(|a, b| b.is_critical().cmp(&a.is_critical()).then(order(a).total_cmp(&order(b))));
        check
    }

    fn facts(&mut self, survey: &HostSurvey, reference: &Reference) {
        let structure = &survey.structure;
        let Some(kind) = reference.kinds.iter().find(|kind| kind.kind == structure.kind) else {
            self.findings.push(CheckFinding::UnknownKind { kind: structure.kind.clone() });
            return;
        };
        for (fact, usual) in &kind.usual {
            let Some(value) = structure.facts.get(fact) else { continue };
            self.facts_compared += 1;
            if !usual.fits(value) {
                let (value, usual) = (value.to_string(), usual.value.to_string());
                self.findings.push(CheckFinding::Fact { fact: fact.clone(), value, usual });
            }
        }
    }

    fn speed(&mut self, survey: &HostSurvey, reference: &Reference) {
        let structure = &survey.structure;
        let of_kind = || reference.groups.iter().filter(|group| group.kind == structure.kind);
        let Some(group) = of_kind().find(|group| group.layout_key == structure.layout_key) else {
            if of_kind().next().is_some() {
                self.findings.push(CheckFinding::UnknownLayout { layout: structure.layout.clone() });
            }
            return;
        };
        self.group = Some((group.name.clone(), group.hosts));
        for (figure, yardsticks) in &group.yardsticks {
            let Some(slow) = slowness(*figure, survey, &group.usual) else { continue };
            self.figures.push((*figure, slow.value));
            // A machine fits when it fits one of the populations; it is as slow as the nearest says.
            let nearest = yardsticks.iter().min_by(|a, b| a.deviations(slow).total_cmp(&b.deviations(slow)));
            let Some(yardstick) = nearest.filter(|yardstick| yardstick.is_outlier(slow)) else { continue };
            self.findings.push(CheckFinding::Slow {
                figure: *figure,
                slowness: slow.value / yardstick.median,
                deviations: yardstick.deviations(slow),
                pairs: pairs(*figure, survey, &group.usual),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deviation::kinds;
    use crate::group::groups;
    use crate::structure::FactValue;
    use crate::survey::SurveyFinding;
    use crate::survey::tests::{measured, survey};

    fn reference() -> Reference {
        let mut fleet: Vec<HostSurvey> =
            (0..16).map(|at| measured(&format!("n{at:02}"), [1.0 + 0.001 * f64::from(at); 2])).collect();
        for survey in &mut fleet {
            survey.structure.facts.insert("kernel".to_owned(), FactValue::Text("6.1".to_owned()));
        }
        let kept = |group: &crate::group::Group| ReferenceGroup {
            name: group.name.clone(),
            kind: group.kind.clone(),
            layout_key: group.layout_key,
            hosts: group.hosts.len(),
            usual: group.distributions.iter().map(|one| (one.cell, one.median)).collect(),
            yardsticks: group
                .figures
                .iter()
                .map(|figure| (figure.name, figure.populations.iter().map(|one| one.yardstick).collect()))
                .collect(),
        };
        Reference {
            groups: groups(&fleet).iter().map(kept).collect(),
            kinds: kinds(&fleet).iter().map(ReferenceKind::from).collect(),
        }
    }

    #[test]
    fn a_machine_is_held_against_its_group() {
        let check = |survey: &HostSurvey| HostCheck::new(survey, Some(&reference()));
        let healthy = check(&measured("new", [1.01, 1.0]));
        assert_eq!(healthy.findings, []);
        assert_eq!(healthy.group, Some(("A".to_owned(), 16)));
        assert_eq!(healthy.figures.len(), 6);
        let slow = check(&measured("new", [1.0, 1.3]));
        assert!(slow.findings.iter().any(CheckFinding::is_critical), "{slow:?}");
        let mut other = measured("new", [1.0, 1.0]);
        other.structure.facts.insert("kernel".to_owned(), FactValue::Text("6.2".to_owned()));
        assert!(matches!(&check(&other).findings[..], [CheckFinding::Fact { .. }]));
        let mut divided = survey("new");
        divided.structure.layout_key = 1;
        assert!(matches!(&check(&divided).findings[..], [CheckFinding::UnknownLayout { .. }]));
        let mut foreign = survey("new");
        foreign.structure.kind = "x".to_owned();
        assert!(matches!(&check(&foreign).findings[..], [CheckFinding::UnknownKind { .. }]));
    }

    #[test]
    fn without_a_reference_its_own_findings_count_from_a_warning_on() {
        let mut sick = survey("a");
        for severity in [Severity::Note, Severity::Critical, Severity::Warning] {
            sick.findings.push(SurveyFinding { id: "x".to_owned(), severity, summary: "y".to_owned() });
        }
        let check = HostCheck::new(&sick, None);
        assert_eq!(check.findings.len(), 2);
        assert!(check.findings[0].is_critical() && !check.findings[1].is_critical());
    }
}
