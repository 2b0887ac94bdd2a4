//! `nodewise.c2c/1`: core-to-core latencies, with how each pair was measured. Written, and read back to
//! be drawn.

use std::collections::BTreeSet;

use nodewise_machine::order::CollectOrdered as _;
use nodewise_measure::c2c::report::{Group, Home};
use nodewise_measure::c2c::{C2cReport, Pair, PairReport, Relation, Transfer};
use nodewise_measure::cell::Placed;
use nodewise_measure::survey::figure::rounded;
use serde::{Deserialize, Serialize};

use super::cells::{AccountJson, PlacedJson};
use super::conditions::ConditionsJson;
use super::pretty;
use super::reading::{Fields, Saved, cpu, items, named, node};
use crate::digest::c2c::remarks;

/// The schema of the document.
pub const SCHEMA: &str = "nodewise.c2c/1";

/// More than anybody measures, for documents that are read: every pair is timed in several ways, and pairs
/// grow with the square of the CPUs.
const MOST_PAIRS: usize = 4 * 1024 * 1024;
const MOST_CPUS: usize = 1024;

/// Writes a report as JSON, indented, with a line end.
pub fn c2c(report: &C2cReport) -> String {
    pretty(&Document::from_report(report))
}

/// Reads a report that [`c2c`] has written.
///
/// # Errors
/// What is wrong and where, fit to be shown.
pub fn read(saved: &Saved<'_>) -> Result<C2cReport, String> {
    saved.contents::<Document>(SCHEMA)?.read()
}

/// The document. Values derived of the pairs are written for readers and not read.
#[derive(Serialize, Deserialize)]
struct Document {
    schema: String,
    conditions: ConditionsJson,
    #[serde(flatten)]
    account: AccountJson,
    candidate_cpus: usize,
    #[serde(skip_deserializing)]
    groups: Vec<GroupJson>,
    pairs: Vec<PairJson>,
    #[serde(skip_deserializing)]
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

#[derive(Serialize, Deserialize)]
struct PairJson {
    to_cpu: u32,
    from_cpu: u32,
    transfer: String,
    home_node: u32,
    home: String,
    relation: String,
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
    placed_before: Option<PlacedJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    placed_after: Option<PlacedJson>,
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    placed_before_share: Option<f64>,
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    placed_after_share: Option<f64>,
    disturbed: bool,
}

impl Document {
    fn from_report(report: &C2cReport) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            conditions: ConditionsJson::from_conditions(&report.account.conditions),
            account: AccountJson::from_account(&report.account),
            candidate_cpus: report.candidates,
            groups: report.groups().iter().map(GroupJson::from_group).collect(),
            pairs: report.pairs.iter().map(PairJson::from_pair).collect(),
            findings: remarks(report).into_iter().map(|told| told.sentence).collect(),
        }
    }

    fn read(self) -> Result<C2cReport, String> {
        let cpus: BTreeSet<u32> =
            self.pairs.iter().flat_map(|pair| [pair.to_cpu, pair.from_cpu]).collect_set();
        if cpus.len() > MOST_CPUS {
            return Err(format!("pairs have {} CPUs: expected at most {MOST_CPUS}", cpus.len()));
        }
        Ok(C2cReport {
            account: self.account.read(self.conditions.read())?,
            candidates: self.candidate_cpus,
            pairs: items("pairs", self.pairs, MOST_PAIRS, PairJson::read)?,
        })
    }
}

impl GroupJson {
    fn from_group(group: &Group) -> Self {
        let Group { relation, transfer, home, pairs, median_ns, least_ns, most_ns } = *group;
        Self {
            relation: relation.name(),
            transfer: transfer.name(),
            home: home.name(),
            pairs,
            median_ns: rounded(median_ns),
            least_ns: rounded(least_ns),
            most_ns: rounded(most_ns),
        }
    }
}

impl PairJson {
    fn from_pair(of: &PairReport) -> Self {
        let figure = of.figure.as_ref();
        let interval = figure.and_then(|figure| figure.interval);
        Self {
            to_cpu: of.pair.to.number(),
            from_cpu: of.pair.from.number(),
            transfer: of.pair.transfer.name().to_owned(),
            home_node: of.pair.home.number(),
            home: of.home.name().to_owned(),
            relation: of.relation.name().to_owned(),
            median_ns: figure.map(|figure| rounded(figure.median)),
            median_interval_95_ns: interval.map(|interval| [rounded(interval.low), rounded(interval.high)]),
            best_ns: figure.map(|figure| rounded(figure.best)),
            rounds: figure.map_or(0, |figure| figure.rounds),
            samples: figure.map_or(0, |figure| figure.samples),
            refused: of.refused.clone(),
            placed_before: of.before.as_ref().map(PlacedJson::from_placed),
            placed_after: of.after.as_ref().map(PlacedJson::from_placed),
            placed_before_share: of.before.as_ref().and_then(Placed::share),
            placed_after_share: of.after.as_ref().and_then(Placed::share),
            disturbed: of.disturbed,
        }
    }

    fn read(self) -> Result<PairReport, String> {
        let figure = Fields {
            unit: "ns",
            median: self.median_ns,
            interval: self.median_interval_95_ns,
            best: self.best_ns,
            rounds: self.rounds,
            samples: self.samples,
        };
        Ok(PairReport {
            pair: Pair {
                to: cpu("to_cpu", self.to_cpu)?,
                from: cpu("from_cpu", self.from_cpu)?,
                home: node(self.home_node)?,
                transfer: named("transfer", &self.transfer, &Transfer::ALL, Transfer::name)?,
            },
            relation: named("relation", &self.relation, &Relation::ALL, Relation::name)?,
            home: named("home", &self.home, &Home::ALL, Home::name)?,
            figure: figure.read()?,
            refused: self.refused,
            before: self.placed_before.map(PlacedJson::read).transpose()?,
            after: self.placed_after.map(PlacedJson::read).transpose()?,
            disturbed: self.disturbed,
        })
    }
}
