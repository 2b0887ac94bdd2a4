//! `nodewise.survey/1`: what one machine says about itself, made of the documents of other verbs.

use nodewise_fleet::structure::Structure;
use nodewise_fleet::survey::{
    Cell, CellKey, HostSurvey, LackingPart, Pages, Quantity, SurveyFinding, SurveyKey,
};
use nodewise_machine::conditions::Conditions;
use nodewise_machine::fnv::fnv_1a;
use nodewise_machine::printable::{printable, quote};
use nodewise_machine::{Machine, Severity};
use nodewise_measure::cell::PageKind;
use nodewise_measure::survey::CellReport;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::conditions::ConditionsJson;
use super::reading::{fault, other_schema};
use super::{bandwidth, compact, doctor, latency, rounded};
use crate::digest::counts::headline;

/// The schema of the document.
pub const SCHEMA: &str = "nodewise.survey/1";
/// The largest survey that is read.
pub const MOST_BYTES: u64 = 16 << 20;
/// More findings than any machine has.
const MOST_FINDINGS: usize = 10_000;
/// More parts than a survey has.
const MOST_PARTS: usize = 64;
/// Letters of a foreign text that are kept.
const MOST_LETTERS: usize = 300;
/// Standard errors from the middle of an interval of 95 % to its end.
const ENDS: f64 = 1.96;

/// A survey to be written.
pub struct SurveyDraft<'a> {
    pub key: &'a SurveyKey,
    pub began_unix_s: Option<u64>,
    pub took_s: f64,
    pub recorded: &'a [String],
    pub lacking: &'a [LackingPart],
    pub conditions: &'a Conditions,
    /// Documents of other verbs by the name of their part.
    pub parts: &'a [(&'static str, String)],
}

/// Fields before the documents of other verbs.
#[derive(Serialize)]
struct HeadJson<'a> {
    schema: &'static str,
    run: &'a str,
    host: &'a str,
    attempt: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    began_unix_s: Option<u64>,
    took_s: f64,
    recorded: &'a [String],
    lacking: Vec<LackingJson>,
    conditions: ConditionsJson,
}

#[derive(Serialize, Deserialize)]
pub(super) struct LackingJson {
    pub(super) part: String,
    pub(super) reason: String,
}

/// Writes a survey in one line: it is made for programs, and there may be thousands.
pub fn survey(draft: &SurveyDraft<'_>) -> String {
    let lacking =
        draft.lacking.iter().map(|lack| LackingJson { part: lack.part.clone(), reason: lack.reason.clone() });
    let head = HeadJson {
        schema: SCHEMA,
        run: &draft.key.run,
        host: &draft.key.host,
        attempt: draft.key.attempt,
        began_unix_s: draft.began_unix_s,
        took_s: rounded(draft.took_s),
        recorded: draft.recorded,
        lacking: lacking.collect(),
        conditions: ConditionsJson::from_conditions(draft.conditions),
    };
    let mut text = serde_json::to_string(&head).expect("the document holds no map with foreign keys");
    // The last letter is the brace behind the fields.
    text.pop();
    for (part, document) in draft.parts {
        text.push_str(&format!(",\"{part}\":{}", compact(document)));
    }
    text.push_str("}\n");
    text
}

/// The document as it is read. Another crate reads the part of the machine.
#[derive(Deserialize)]
struct Document<'a> {
    schema: String,
    #[serde(default)]
    run: String,
    host: String,
    #[serde(default)]
    attempt: u32,
    #[serde(default)]
    began_unix_s: Option<u64>,
    #[serde(default)]
    recorded: Vec<String>,
    #[serde(default)]
    lacking: Vec<LackingJson>,
    #[serde(borrow)]
    machine: &'a RawValue,
    #[serde(default)]
    doctor: Option<DoctorPart>,
    #[serde(default)]
    latency: Option<latency::Document>,
    #[serde(default)]
    bandwidth: Option<bandwidth::Document>,
}

/// The part of a diagnosis that is compared.
#[derive(Deserialize)]
struct DoctorPart {
    schema: String,
    findings: Vec<FindingPart>,
}

#[derive(Deserialize)]
struct FindingPart {
    id: String,
    severity: String,
    #[serde(default)]
    summary: String,
}

/// Only the name of the schema, for a document that is not as it should be.
#[derive(Deserialize)]
struct Named {
    #[serde(default)]
    schema: Option<String>,
}

/// Reads a survey. `machine` reads the part that is a machine file.
///
/// # Errors
/// What is wrong, fit to be shown: a text that ends in the middle, another schema, a field that is not as the schema says.
pub fn read(text: &str, machine: impl FnOnce(&str) -> Result<Machine, String>) -> Result<HostSurvey, String> {
    let document: Document<'_> = serde_json::from_str(text).map_err(|error| wrong(text, &error))?;
    if document.schema != SCHEMA {
        return Err(other_schema(&document.schema, &[SCHEMA]));
    }
    let key = SurveyKey { run: document.run, host: document.host, attempt: document.attempt };
    check_key(&key)?;
    if document.lacking.len().max(document.recorded.len()) > MOST_PARTS {
        return Err(format!("it names more than {MOST_PARTS} parts"));
    }
    let machine = machine(document.machine.get()).map_err(|error| format!("machine: {error}"))?;
    let mut survey = HostSurvey {
        key,
        began_unix_s: document.began_unix_s,
        recorded: document.recorded.iter().map(|part| short(part)).collect(),
        description: headline(&machine),
        structure: Structure::new(&machine),
        cells: std::collections::BTreeMap::new(),
        findings: Vec::new(),
        lacking: document.lacking.iter().map(LackingJson::read).collect(),
        contents: fnv_1a(text.as_bytes()),
    };
    if let Some(part) = document.doctor {
        survey.findings = part.read().map_err(|error| format!("doctor: {error}"))?;
    }
    if let Some(part) = document.latency {
        let report = part.embedded().map_err(|error| format!("latency: {error}"))?;
        survey.cells.extend(report.cells.iter().filter_map(|cell| cell_of(Quantity::Latency, cell)));
    }
    if let Some(part) = document.bandwidth {
        let report = part.embedded().map_err(|error| format!("bandwidth: {error}"))?;
        let cells = report.matrix.iter().map(|way| &way.cell);
        survey.cells.extend(cells.filter_map(|cell| cell_of(Quantity::Bandwidth, cell)));
    }
    Ok(survey)
}

/// The fault of a text that is not a survey: of another document its schema says more than the first missing field.
fn wrong(text: &str, error: &serde_json::Error) -> String {
    match serde_json::from_str::<Named>(text) {
        Ok(Named { schema: None }) => format!("it has no schema: expected {SCHEMA}"),
        Ok(Named { schema: Some(schema) }) if schema != SCHEMA => other_schema(&schema, &[SCHEMA]),
        Err(error) if error.is_eof() => "it is torn: it ends in the middle".to_owned(),
        _ => fault(error),
    }
}

fn check_key(key: &SurveyKey) -> Result<(), String> {
    if !SurveyKey::is_host(&key.host) {
        return Err(format!("{} is not a host name", quote(&short(&key.host))));
    }
    if !SurveyKey::is_run(&key.run) {
        return Err(format!("{} is not the name of a run", quote(&short(&key.run))));
    }
    Ok(())
}

/// The beginning of a foreign text, fit for a terminal.
pub(super) fn short(text: &str) -> String {
    let end = text.char_indices().nth(MOST_LETTERS).map_or(text.len(), |(at, _)| at);
    printable(&text[..end]).into_owned()
}

impl LackingJson {
    fn read(&self) -> LackingPart {
        LackingPart { part: short(&self.part), reason: short(&self.reason) }
    }
}

impl DoctorPart {
    fn read(self) -> Result<Vec<SurveyFinding>, String> {
        if self.schema != doctor::SCHEMA {
            return Err(other_schema(&self.schema, &[doctor::SCHEMA]));
        }
        if self.findings.len() > MOST_FINDINGS {
            return Err(format!(
                "findings has {} items: expected at most {MOST_FINDINGS}",
                self.findings.len()
            ));
        }
        let finding = |finding: FindingPart| {
            let severity = Severity::from_word(&finding.severity)
                .ok_or_else(|| format!("{} is not a severity", quote(&short(&finding.severity))))?;
            Ok(SurveyFinding { id: short(&finding.id), severity, summary: short(&finding.summary) })
        };
        self.findings.into_iter().map(finding).collect()
    }
}

/// The figure of a cell that was measured.
fn cell_of(quantity: Quantity, cell: &CellReport) -> Option<(CellKey, Cell)> {
    let figure = cell.figure?;
    let pages = match cell.pages {
        PageKind::Small => Pages::Small,
        PageKind::TransparentHuge => Pages::TransparentHuge,
        PageKind::Hugetlb(size) => Pages::Pool(size.bytes().get()),
    };
    let width = figure.interval.map_or(0.0, |interval| interval.high - interval.low);
    let key = CellKey { quantity, from: cell.from, memory: cell.memory, pages };
    Some((key, Cell { value: figure.median, error_share: width / 2.0 / ENDS / figure.median }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read_text(text: &str) -> Result<HostSurvey, String> {
        read(text, |_| nodewise_machine::spec::machine("2x(2c 1G)").map_err(|error| error.to_string()))
    }

    fn draft(host: &str) -> String {
        let key = SurveyKey { run: "r".to_owned(), host: host.to_owned(), attempt: 2 };
        let doctor = r#"{ "schema": "nodewise.doctor/1",
            "findings": [ { "id": "a", "severity": "warning", "summary": "a  \"b\" \\" } ] }"#;
        survey(&SurveyDraft {
            key: &key,
            began_unix_s: Some(7),
            took_s: 1.5,
            recorded: &["machine".to_owned()],
            lacking: &[LackingPart { part: "latency".to_owned(), reason: "x".to_owned() }],
            conditions: &Conditions::default(),
            parts: &[("machine", "{ }".to_owned()), ("doctor", doctor.to_owned())],
        })
    }

    #[test]
    fn a_survey_is_read_as_it_was_written_and_takes_one_line() {
        let text = draft("n1");
        assert_eq!(text.lines().count(), 1);
        assert!(text.contains(r#""machine":{},"doctor":{"schema":"#), "{text}");
        let survey = read_text(&text).unwrap();
        assert_eq!(survey.key, SurveyKey { run: "r".to_owned(), host: "n1".to_owned(), attempt: 2 });
        assert_eq!((survey.began_unix_s, &survey.recorded[..]), (Some(7), &["machine".to_owned()][..]));
        assert_eq!(survey.findings[0].summary, "a  \"b\" \\");
        assert_eq!(survey.lacking[0].part, "latency");
    }

    #[test]
    fn what_is_not_a_survey_is_refused_with_the_reason() {
        let text = draft("n1");
        let torn = read_text(&text[..text.len() / 2]).unwrap_err();
        assert!(torn.contains("torn"), "{torn}");
        for (text, expected) in [
            ("{}", "no schema"),
            (r#"{"schema":"nodewise.latency/1"}"#, "nodewise.latency/1"),
            (r#"{"schema":"nodewise.survey/2","host":"a","machine":{}}"#, "nodewise.survey/2"),
            (r#"{"schema":"nodewise.survey/1","machine":{}}"#, "host"),
            ("x", "expected value"),
            ("", "torn"),
        ] {
            let error = read_text(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
        let evil = draft("n1").replace("\"n1\"", "\"../n1\\u001b[2J\"");
        let error = read_text(&evil).unwrap_err();
        assert!(error.contains("is not a host name") && !error.contains('\u{1b}'), "{error}");
    }

    proptest! {
        #[test]
        fn any_text_is_survived_and_errors_can_be_shown(text in ".*") {
            for text in [text.clone(), format!("{{\"schema\":\"{SCHEMA}\",{text}"), draft("a").replace("\"a\"", &format!("\"{text}\""))] {
                if let Err(error) = read_text(&text) {
                    prop_assert!(!error.contains(|letter: char| letter.is_control()), "{error:?}");
                }
            }
        }
    }
}
