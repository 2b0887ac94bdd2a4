//! Differences between two surveys of the same hosts.

use std::collections::{BTreeMap, BTreeSet};

use nodewise_machine::order::CollectOrdered as _;

use crate::group::figure_names;
use crate::group::{FigureName, UsualFigures, slowness};
use crate::outlier::LEAST_DIFFERENCE;
use crate::survey::HostSurvey;

/// Standard errors that a change must exceed.
const ERRORS: f64 = 3.0;

/// A change on one host.
#[derive(Clone, Debug, PartialEq)]
pub struct HostChange {
    pub host: String,
    pub change: Change,
}

/// The thing that changed.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// A fact; `None` where it was or is not known, which alone is not a change. Foreign text.
    Fact {
        fact: String,
        before: String,
        now: String,
    },
    /// A figure: how many times slower it is than before.
    Figure {
        figure: FigureName,
        slowness: f64,
    },
    FindingAppeared {
        id: String,
        summary: String,
    },
    FindingGone {
        id: String,
    },
}

/// Everything that is different since an earlier survey.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct FleetChanges {
    /// Hosts that both surveys have.
    pub compared: usize,
    pub appeared: Vec<String>,
    pub gone: Vec<String>,
    /// By host.
    pub changes: Vec<HostChange>,
}

impl FleetChanges {
    /// The differences between surveys, both in order of hosts.
    pub fn new(before: &[HostSurvey], now: &[HostSurvey]) -> Self {
        let old: BTreeMap<&str, &HostSurvey> =
            before.iter().map(|survey| (survey.key.host.as_str(), survey)).collect_map();
        let new: BTreeSet<&str> = now.iter().map(|survey| survey.key.host.as_str()).collect_set();
        let mut found = Self::default();
        for survey in now {
            match old.get(survey.key.host.as_str()) {
                Some(before) => {
                    found.compared += 1;
                    let host = &survey.key.host;
                    let changes = of_host(before, survey);
                    found
                        .changes
                        .extend(changes.into_iter().map(|change| HostChange { host: host.clone(), change }));
                }
                None => found.appeared.push(survey.key.host.clone()),
            }
        }
        found.gone = old.keys().filter(|host| !new.contains(**host)).map(|host| (*host).to_owned()).collect();
        found
    }
}

fn of_host(before: &HostSurvey, now: &HostSurvey) -> Vec<Change> {
    let mut changes = Vec::new();
    for (fact, value) in &now.structure.facts {
        let old = before.structure.facts.get(fact).filter(|old| *old != value);
        changes.extend(
            old.map(|old| (old.to_string(), value.to_string()))
                .filter(|(old, new)| old != new)
                .map(|(before, now)| Change::Fact { fact: fact.clone(), before, now }),
        );
    }
    let usual: UsualFigures = before.cells.iter().map(|(key, cell)| (*key, cell.value)).collect_map();
    for figure in figure_names(&usual) {
        let (Some(new), Some(old)) = (slowness(figure, now, &usual), slowness(figure, before, &usual)) else {
            continue;
        };
        let error = ERRORS * new.error.hypot(old.error);
        if (new.value - 1.0).abs() > error.max(LEAST_DIFFERENCE) {
            changes.push(Change::Figure { figure, slowness: new.value });
        }
    }
    let ids = |survey: &HostSurvey| -> BTreeMap<String, String> {
        survey.findings.iter().map(|finding| (finding.id.clone(), finding.summary.clone())).collect_map()
    };
    let (old, new) = (ids(before), ids(now));
    let appeared = new.iter().filter(|(id, _)| !old.contains_key(*id));
    changes.extend(
        appeared.map(|(id, summary)| Change::FindingAppeared { id: id.clone(), summary: summary.clone() }),
    );
    let gone = old.into_keys().filter(|id| !new.contains_key(id));
    changes.extend(gone.map(|id| Change::FindingGone { id }));
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::structure::FactValue;
    use crate::survey::SurveyFinding;
    use crate::survey::tests::measured;
    use nodewise_machine::Severity;

    #[test]
    fn facts_figures_findings_and_hosts_are_compared() {
        let before = vec![measured("a", [1.0, 1.0]), measured("b", [1.0, 1.0])];
        let mut slow = measured("a", [1.0, 1.2]);
        slow.structure.facts.insert("numa_balancing".to_owned(), FactValue::Text("0".to_owned()));
        slow.findings.push(SurveyFinding {
            id: "x".to_owned(),
            severity: Severity::Note,
            summary: "y".to_owned(),
        });
        let mut earlier = before.clone();
        earlier[0].structure.facts.insert("numa_balancing".to_owned(), FactValue::Text("1".to_owned()));
        let found = FleetChanges::new(&earlier, &[slow, measured("c", [1.0, 1.0])]);
        assert_eq!(
            (found.compared, &found.appeared[..], &found.gone[..]),
            (1, &["c".to_owned()][..], &["b".to_owned()][..])
        );
        let facts = found.changes.iter().filter(|one| matches!(one.change, Change::Fact { .. })).count();
        let figures = found.changes.iter().filter(|one| matches!(one.change, Change::Figure { .. })).count();
        assert_eq!((facts, figures), (1, 4), "{found:?}");
        assert!(
            found
                .changes
                .iter()
                .any(|one| matches!(&one.change, Change::FindingAppeared { id, .. } if id == "x"))
        );
        assert!(FleetChanges::new(&before, &before).changes.is_empty());
    }
}
