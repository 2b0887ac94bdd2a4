//! One survey for each host, out of everything that has arrived.
//!
//! A scheduler may run a task twice, a file may be copied, and a host may answer late. So each result is known by its run,
//! its host and its attempt, and what is chosen depends on the contents alone: not on the order of arrival, and not on
//! how often the same result arrived.

use std::collections::{BTreeMap, BTreeSet};

use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::order::Order as _;

use crate::survey::HostSurvey;

/// Something that has arrived from a host.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrival {
    Survey(Box<HostSurvey>),
    /// A host on which no survey could be made.
    Failed(FailedHost),
    /// A file that is not a survey.
    Refused(RefusedFile),
}

/// A host on which no survey could be made.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FailedHost {
    pub host: String,
    /// Foreign text.
    pub reason: String,
}

/// A file that was not read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RefusedFile {
    /// Foreign text.
    pub file: String,
    pub reason: String,
}

/// A host with several results in one run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RepeatedHost {
    pub host: String,
    /// Different results.
    pub results: usize,
    /// The attempt that counts.
    pub attempt: u32,
}

/// One survey for each host, and what is missing.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Collection {
    /// The run that counts.
    pub run: String,
    /// By host.
    pub surveys: Vec<HostSurvey>,
    pub repeated: Vec<RepeatedHost>,
    /// Hosts that failed and have no survey.
    pub failed: Vec<FailedHost>,
    /// Hosts that were expected, and neither have a survey nor failed.
    pub missing: Vec<String>,
    pub refused: Vec<RefusedFile>,
    /// Other runs, with the number of their hosts.
    pub other_runs: BTreeMap<String, usize>,
    /// How many hosts were expected, where a list says so.
    pub expected: Option<usize>,
}

impl Collection {
    /// Chooses from what has arrived. Without `run` the run that began last counts.
    pub fn new(
        arrivals: impl IntoIterator<Item = Arrival>,
        expected: Option<&BTreeSet<String>>,
        run: Option<&str>,
    ) -> Self {
        let mut runs: BTreeMap<String, BTreeMap<String, Vec<HostSurvey>>> = BTreeMap::new();
        let (mut failed, mut refused) = (BTreeSet::new(), BTreeSet::new());
        for arrival in arrivals {
            match arrival {
                Arrival::Survey(survey) => {
                    let hosts = runs.entry(survey.key.run.clone()).or_default();
                    hosts.entry(survey.key.host.clone()).or_default().push(*survey);
                }
                Arrival::Failed(host) => {
                    failed.insert(host);
                }
                Arrival::Refused(file) => {
                    refused.insert(file);
                }
            }
        }
        let run = run.map(str::to_owned).or_else(|| last(&runs)).unwrap_or_default();
        let hosts = runs.remove(&run).unwrap_or_default();
        let (mut surveys, mut repeated) = (Vec::with_capacity(hosts.len()), Vec::new());
        for (host, results) in hosts {
            let (survey, results) = choose(results);
            if results > 1 {
                repeated.push(RepeatedHost { host, results, attempt: survey.key.attempt });
            }
            surveys.push(survey);
        }
        let known: BTreeSet<&str> = surveys.iter().map(|survey| survey.key.host.as_str()).collect_set();
        // Of several reasons the first in order stands for all.
        let mut reasons: BTreeMap<String, String> = BTreeMap::new();
        for host in failed.into_iter().filter(|failed| !known.contains(failed.host.as_str())) {
            reasons.entry(host.host).or_insert(host.reason);
        }
        let is_missing = |host: &&String| !known.contains(host.as_str()) && !reasons.contains_key(*host);
        let missing = expected.into_iter().flatten().filter(is_missing).cloned().collect();
        Self {
            missing,
            run,
            failed: reasons.into_iter().map(|(host, reason)| FailedHost { host, reason }).collect(),
            surveys,
            repeated,
            refused: refused.into_iter().collect(),
            other_runs: runs.into_iter().map(|(run, hosts)| (run, hosts.len())).collect_map(),
            expected: expected.map(BTreeSet::len),
        }
    }
}

/// The run that began last.
fn last(runs: &BTreeMap<String, BTreeMap<String, Vec<HostSurvey>>>) -> Option<String> {
    let began = |hosts: &BTreeMap<String, Vec<HostSurvey>>| {
        hosts.values().flatten().filter_map(|survey| survey.began_unix_s).max()
    };
    runs.iter().max_by_key(|(run, hosts)| (began(hosts), *run)).map(|(run, _)| run.clone())
}

/// The survey that counts among the results of one host, and how many different ones there are. The latest attempt counts,
/// of one attempt the most complete; what still is a tie is broken by the contents.
fn choose(mut results: Vec<HostSurvey>) -> (HostSurvey, usize) {
    let order = |survey: &HostSurvey| {
        let lacking = std::cmp::Reverse(survey.lacking.len());
        (survey.key.attempt, lacking, survey.began_unix_s, survey.contents)
    };
    results.order_by_key(order);
    results.dedup_by_key(|survey| (survey.key.attempt, survey.contents));
    let count = results.len();
    (results.pop().expect("a host is in the map because of a result"), count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::survey::tests::survey;
    use crate::survey::{LackingPart, SurveyKey};

    fn arrived(host: &str, attempt: u32, contents: u64) -> HostSurvey {
        let key = SurveyKey { run: "r1".to_owned(), host: host.to_owned(), attempt };
        HostSurvey { key, contents, ..survey(host) }
    }

    fn collect(surveys: impl IntoIterator<Item = HostSurvey>, expected: &[&str]) -> Collection {
        let expected: BTreeSet<String> = expected.iter().map(|host| (*host).to_owned()).collect();
        let arrivals = surveys.into_iter().map(|survey| Arrival::Survey(Box::new(survey)));
        Collection::new(arrivals, Some(&expected), None)
    }

    #[test]
    fn a_copy_is_not_a_second_result_and_a_second_attempt_is() {
        let once = collect([arrived("a", 0, 1), arrived("a", 0, 1)], &["a"]);
        assert!(once.repeated.is_empty(), "{:?}", once.repeated);
        let twice = collect([arrived("a", 1, 2), arrived("a", 0, 1), arrived("a", 1, 2)], &["a"]);
        assert_eq!(twice.repeated, [RepeatedHost { host: "a".to_owned(), results: 2, attempt: 1 }]);
        assert_eq!(twice.surveys[0].contents, 2);
    }

    #[test]
    fn the_more_complete_result_of_one_attempt_counts() {
        let lacking = vec![LackingPart { part: "latency".to_owned(), reason: "x".to_owned() }];
        let cut = HostSurvey { lacking, ..arrived("a", 0, 9) };
        assert_eq!(collect([cut, arrived("a", 0, 1)], &[]).surveys[0].contents, 1);
    }

    #[test]
    fn hosts_without_an_answer_are_missing_and_those_that_failed_are_not() {
        let expected: BTreeSet<String> = ["a", "b", "c"].map(str::to_owned).into();
        let failed = |host: &str| FailedHost { host: host.to_owned(), reason: "255".to_owned() };
        let arrivals = [
            Arrival::Survey(Box::new(arrived("a", 0, 1))),
            Arrival::Failed(failed("a")),
            Arrival::Failed(failed("b")),
        ];
        let collection = Collection::new(arrivals, Some(&expected), None);
        assert_eq!(collection.missing, ["c"]);
        assert_eq!(collection.failed, [failed("b")]);
    }

    #[test]
    fn the_run_that_began_last_counts_unless_one_is_named() {
        let of_run = |run: &str, began: u64| {
            let mut survey = arrived("a", 0, began);
            survey.key.run = run.to_owned();
            survey.began_unix_s = Some(began);
            Arrival::Survey(Box::new(survey))
        };
        let arrivals = || [of_run("old", 5), of_run("new", 9), of_run("older", 1)];
        let collection = Collection::new(arrivals(), None, None);
        assert_eq!(collection.run, "new");
        assert_eq!(collection.other_runs, [("old".to_owned(), 1), ("older".to_owned(), 1)].into());
        assert_eq!(Collection::new(arrivals(), None, Some("old")).surveys[0].began_unix_s, Some(5));
    }
}
