//! `nodewise.compare/1`: what two sessions of a suite show, or the placements of one.

use std::collections::BTreeMap;

use nodewise_experiment::compare::{Mean, Row, Table, Verdict};
use nodewise_experiment::suite::session::Session;
use serde::Serialize;

use super::conditions::ConditionsJson;
use super::suite::ProgramJson;
use super::{ends, pretty};
use crate::digest::change::direction_name;
use crate::digest::compare::{Shown, end_name, verdict_name};

/// The schema of the document.
pub const SCHEMA: &str = "nodewise.compare/1";

/// Writes a comparison as JSON, indented, with a line end.
pub fn compare(shown: &Shown<'_>) -> String {
    pretty(&Document {
        schema: SCHEMA,
        suite: &shown.before.suite,
        before: SideJson::from_session(shown.before),
        after: shown.after.map(SideJson::from_session),
        differences: shown
            .differences()
            .into_iter()
            .map(|one| DifferenceJson { what: one.what, before: one.before, after: one.after })
            .collect(),
        tables: shown.comparison.tables.iter().map(TableJson::from_table).collect(),
        lost: shown.comparison.is_lost(),
    })
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    suite: &'a str,
    before: SideJson<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<SideJson<'a>>,
    differences: Vec<DifferenceJson>,
    tables: Vec<TableJson<'a>>,
    lost: bool,
}

#[derive(Serialize)]
struct SideJson<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<&'a str>,
    conditions: ConditionsJson,
    settings: &'a BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    programs: Vec<ProgramJson>,
    seed: u64,
    rounds: u32,
    end: &'static str,
    took_s: f64,
    placements: &'a [String],
}

impl<'a> SideJson<'a> {
    fn from_session(session: &'a Session) -> Self {
        Self {
            origin: session.origin.as_deref(),
            conditions: ConditionsJson::from_conditions(&session.conditions),
            settings: &session.settings,
            programs: ProgramJson::all(session),
            seed: session.seed,
            rounds: session.rounds,
            end: end_name(session.end),
            took_s: session.took.as_secs_f64(),
            placements: &session.placements,
        }
    }
}

#[derive(Serialize)]
struct DifferenceJson {
    what: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<String>,
}

#[derive(Serialize)]
struct TableJson<'a> {
    subject: &'a str,
    reference: &'a str,
    paired: bool,
    rows: Vec<RowJson<'a>>,
    geometric_means: Vec<MeanJson<'a>>,
}

impl<'a> TableJson<'a> {
    fn from_table(table: &'a Table) -> Self {
        Self {
            subject: &table.subject,
            reference: &table.reference,
            paired: table.paired,
            rows: table.rows.iter().map(RowJson::from_row).collect(),
            geometric_means: table.means.iter().map(MeanJson::from_mean).collect(),
        }
    }
}

#[derive(Serialize)]
struct RowJson<'a> {
    name: &'a str,
    threads: u32,
    #[serde(skip_serializing_if = "str::is_empty")]
    unit: &'a str,
    better: &'static str,
    memory_traffic: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    before_median: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after_median: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<ChangeJson>,
    verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    rounds_needed: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'a str>,
}

#[derive(Serialize)]
struct ChangeJson {
    speed_ratio: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    speed_ratio_interval_95: Option<[f64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    adjusted_p: Option<f64>,
    noise_share: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    smallest_detectable_share: Option<f64>,
}

impl<'a> RowJson<'a> {
    fn from_row(row: &'a Row) -> Self {
        Self {
            name: &row.benchmark,
            threads: row.threads,
            unit: &row.unit,
            better: direction_name(row.direction),
            memory_traffic: row.memory_traffic,
            before_median: row.before,
            after_median: row.after,
            change: row.change.map(|change| ChangeJson {
                speed_ratio: change.ratio,
                speed_ratio_interval_95: change.interval.map(ends),
                adjusted_p: change.adjusted_p,
                noise_share: change.noise,
                smallest_detectable_share: change.smallest_detectable,
            }),
            verdict: verdict_name(&row.verdict),
            rounds_needed: match row.verdict {
                Verdict::TooFewRounds { needed, .. } => Some(needed),
                _ => None,
            },
            why: match &row.verdict {
                Verdict::Missing(why) | Verdict::Changed(why) => Some(why),
                _ => None,
            },
        }
    }
}

#[derive(Serialize)]
struct MeanJson<'a> {
    threads: u32,
    rows: usize,
    speed_ratio: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    speed_ratio_interval_95: Option<[f64; 2]>,
    smallest: ExtremeJson<'a>,
    largest: ExtremeJson<'a>,
}

#[derive(Serialize)]
struct ExtremeJson<'a> {
    name: &'a str,
    speed_ratio: f64,
}

impl<'a> MeanJson<'a> {
    fn from_mean(mean: &'a Mean) -> Self {
        let extreme = |(name, ratio): &'a (String, f64)| ExtremeJson { name, speed_ratio: *ratio };
        Self {
            threads: mean.threads,
            rows: mean.rows,
            speed_ratio: mean.ratio,
            speed_ratio_interval_95: mean.interval.map(ends),
            smallest: extreme(&mean.least),
            largest: extreme(&mean.most),
        }
    }
}
