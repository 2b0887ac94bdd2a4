//! A diagnosis in the text format of Prometheus, for the textfile collector of its node exporter.
//!
//! # Source
//! Prometheus, "Exposition formats", text format 0.0.4: label values escape backslash, double quote and line feed, and
//! no two samples of a metric have the same labels.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use nodewise_diagnose::finding::{Severity, Subject};
use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::printable::printable;

use crate::digest::doctor::{DoctorReport, subject};

/// Writes the findings, and how many rules were examined: no finding means health only if rules were.
pub fn doctor(report: &DoctorReport<'_>) -> String {
    let mut text = String::from(
        "# HELP nodewise_finding A finding of nodewise doctor.\n# TYPE nodewise_finding gauge\n",
    );
    let findings = report.diagnosis.findings.iter();
    let labels: BTreeSet<(Severity, &str, String)> =
        findings.map(|finding| (finding.severity, finding.rule, name(&finding.subject))).collect_set();
    for (severity, id, subject) in labels.iter().rev() {
        let labels = [("id", *id), ("severity", severity.word()), ("subject", subject)];
        sample(&mut text, "nodewise_finding", &labels, 1);
    }
    text.push_str("# HELP nodewise_rules Rules of nodewise doctor for this kind of machine.\n# TYPE nodewise_rules gauge\n");
    let counts = [
        ("examined", report.diagnosis.examined.len()),
        ("not_examined", report.diagnosis.not_examined.len()),
    ];
    for (state, count) in counts {
        sample(&mut text, "nodewise_rules", &[("state", state)], count);
    }
    text
}

/// A subject without the quotes that set a name apart in a sentence.
fn name(of: &Subject) -> String {
    match of {
        Subject::Process { identity, name, .. } => format!("{} ({})", printable(name), identity.pid),
        other => printable(&subject(other)).into_owned(),
    }
}

fn sample(text: &mut String, metric: &str, labels: &[(&str, &str)], value: usize) {
    let labels: Vec<String> =
        labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{metric}{{{}}} {value}", labels.join(","));
}

pub(crate) fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_values_are_escaped() {
        assert_eq!(escaped("a\\b\"c\nd"), "a\\\\b\\\"c\\nd");
        let mut text = String::new();
        sample(&mut text, "m", &[("a", "x"), ("b", "say \"hi\"")], 2);
        assert_eq!(text, "m{a=\"x\",b=\"say \\\"hi\\\"\"} 2\n");
    }
}
