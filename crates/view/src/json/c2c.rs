//! The JSON of `nodewise c2c`.

use nodewise_measure::c2c::report::Group;
use nodewise_measure::c2c::{PairReport, Report};
use nodewise_measure::cell::Placed;
use serde::Serialize;

use super::cells::AccountJson;
use super::conditions::ConditionsJson;
use super::pretty;
use crate::digest::c2c::remarks;

/// The schema of the document.
pub const SCHEMA: &str = "nodewise.c2c/1";

/// Writes a report as JSON, indented, with a line end.
pub fn c2c(report: &Report) -> String {
    pretty(&Document::of(report))
}

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    conditions: ConditionsJson,
    #[serde(flatten)]
    account: AccountJson,
    candidate_cpus: usize,
    groups: Vec<GroupJson>,
    pairs: Vec<PairJson>,
    findings: Vec<String>,
}

#[derive(Serialize)]
struct GroupJson {
    relation: &'static str,
    transfer: &'static str,
    home: &'static str,
    pairs: usize,
    median_ns: f64,
    least_ns: f64,
    most_ns: f64,
}

#[derive(Serialize)]
struct PairJson {
    to_cpu: u32,
    from_cpu: u32,
    transfer: &'static str,
    home_node: u32,
    home: &'static str,
    relation: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    median_ns: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    median_interval_95_ns: Option<[f64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    best_ns: Option<f64>,
    rounds: usize,
    samples: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    placed_before_share: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    placed_after_share: Option<f64>,
    disturbed: bool,
}

impl Document {
    fn of(report: &Report) -> Self {
        Self {
            schema: SCHEMA,
            conditions: ConditionsJson::of(&report.account.conditions),
            account: AccountJson::of(&report.account),
            candidate_cpus: report.candidates,
            groups: report.groups().iter().map(GroupJson::of).collect(),
            pairs: report.pairs.iter().map(PairJson::of).collect(),
            findings: remarks(report),
        }
    }
}

impl GroupJson {
    const fn of(group: &Group) -> Self {
        let Group { relation, transfer, home, pairs, median_ns, least_ns, most_ns } = *group;
        Self {
            relation: relation.name(),
            transfer: transfer.name(),
            home: home.name(),
            pairs,
            median_ns,
            least_ns,
            most_ns,
        }
    }
}

impl PairJson {
    fn of(of: &PairReport) -> Self {
        let figure = of.figure.as_ref();
        let interval = figure.and_then(|figure| figure.interval);
        Self {
            to_cpu: of.pair.to.number(),
            from_cpu: of.pair.from.number(),
            transfer: of.pair.transfer.name(),
            home_node: of.pair.home.number(),
            home: of.home.name(),
            relation: of.relation.name(),
            median_ns: figure.map(|figure| figure.median),
            median_interval_95_ns: interval.map(|interval| [interval.low, interval.high]),
            best_ns: figure.map(|figure| figure.best),
            rounds: figure.map_or(0, |figure| figure.rounds),
            samples: figure.map_or(0, |figure| figure.samples),
            refused: of.refused.clone(),
            placed_before_share: of.before.as_ref().and_then(Placed::share),
            placed_after_share: of.after.as_ref().and_then(Placed::share),
            disturbed: of.disturbed,
        }
    }
}
