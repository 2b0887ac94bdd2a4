//! `nodewise.rules/1`: the catalogue of rules.

use nodewise_diagnose::Rule;
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
    traps: &'static str,
    needs: Vec<&'static str>,
    explains: &'static [&'static str],
    sources: &'static [&'static str],
}

/// Writes rules.
pub fn rules(rules: &[&Rule]) -> String {
    let rule = |rule: &&Rule| RuleJson {
        id: rule.id,
        title: rule.title,
        severity: rule.severity.word(),
        machines: classes(rule),
        sign: rule.sign,
        traps: rule.traps,
        needs: rule.needs.iter().map(|fact| fact.words()).collect(),
        explains: rule.explains,
        sources: rule.sources,
    };
    pretty(&RulesJson { schema: "nodewise.rules/1", rules: rules.iter().map(rule).collect() })
}
