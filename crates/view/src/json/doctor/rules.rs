//! `nodewise.rules/1`: the catalogue of rules.

use nodewise_diagnose::Rule;
use nodewise_diagnose::thresholds::RuleThreshold;
use serde::Serialize;

use crate::digest::doctor::classes;
use crate::json::pretty;

#[derive(Serialize)]
struct RulesJson {
    schema: &'static str,
    rules: Vec<RuleJson>,
}

#[derive(Serialize)]
struct RuleJson {
    id: &'static str,
    title: &'static str,
    severity: &'static str,
    /// Missing: every machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    machines: Option<Vec<&'static str>>,
    sign: &'static str,
    thresholds: Vec<ThresholdJson>,
    traps: &'static str,
    needs: Vec<&'static str>,
    explains: &'static [&'static str],
    sources: &'static [&'static str],
}

#[derive(Serialize)]
struct ThresholdJson {
    table: &'static str,
    key: &'static str,
    unit: &'static str,
    default: f64,
    least: f64,
    most: f64,
    about: &'static str,
    origin: &'static str,
}

impl ThresholdJson {
    fn from_threshold(of: &RuleThreshold) -> Self {
        let RuleThreshold { table, key, unit, default, least, most, about, origin } = *of;
        Self { table, key, unit: unit.word(), default, least, most, about, origin }
    }
}

/// Writes rules.
pub fn rules(rules: &[&Rule]) -> String {
    let rule = |rule: &&Rule| RuleJson {
        id: rule.id,
        title: rule.title,
        severity: rule.severity.word(),
        machines: classes(rule),
        sign: rule.sign,
        thresholds: rule.thresholds.iter().map(|of| ThresholdJson::from_threshold(of)).collect(),
        traps: rule.traps,
        needs: rule.needs.iter().map(|fact| fact.words()).collect(),
        explains: rule.explains,
        sources: rule.sources,
    };
    pretty(&RulesJson { schema: "nodewise.rules/1", rules: rules.iter().map(rule).collect() })
}
