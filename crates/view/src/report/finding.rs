//! The page of findings, from the document of `nodewise doctor`.

use nodewise_machine::Bytes;
use nodewise_machine::printable::printable;
use serde::Deserialize;

use super::{DataTable, Page, Part};
use crate::digest::running::words::{grouped, percent};

/// Findings that a document may have.
const MOST: usize = 10_000;

/// A finding as its document has it. Fields that a report does not show are not read.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ShownFinding {
    pub id: String,
    /// `info`, `note`, `warning` or `critical`.
    pub severity: String,
    pub confidence: String,
    pub summary: String,
    #[serde(default)]
    pub cause: Option<String>,
    #[serde(default)]
    pub evidence: Vec<ShownEvidence>,
    #[serde(default)]
    pub mend: Vec<ShownMend>,
    #[serde(default)]
    pub experiment: Option<String>,
    #[serde(default)]
    pub check: Option<String>,
    #[serde(default)]
    pub sources: Vec<String>,
    #[serde(default)]
    pub explains: Vec<ShownFinding>,
}

/// A fact behind a finding.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ShownEvidence {
    pub fact: String,
    pub value: ShownValue,
    #[serde(default)]
    pub threshold: Option<ShownThreshold>,
    #[serde(default)]
    pub read_from: String,
}

/// The limit that a value is held against, and who says so.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ShownThreshold {
    #[serde(flatten)]
    pub value: ShownValue,
    #[serde(default)]
    pub origin: String,
}

/// One of the numbers, or words.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct ShownValue {
    #[serde(default)]
    size_bytes: Option<u64>,
    #[serde(default)]
    share: Option<f64>,
    #[serde(default)]
    per_s: Option<f64>,
    #[serde(default)]
    count: Option<u64>,
    #[serde(default)]
    unit: Option<String>,
    #[serde(default)]
    text: Option<String>,
}

impl ShownValue {
    /// The value with its unit.
    pub fn words(&self) -> String {
        let unit = self.unit.as_deref().map(|unit| format!(" {unit}")).unwrap_or_default();
        if let Some(size) = self.size_bytes {
            Bytes::new(size).to_string()
        } else if let Some(share) = self.share {
            percent(share)
        } else if let Some(rate) = self.per_s {
            format!("{}{unit}/s", grouped(rate))
        } else if let Some(count) = self.count {
            format!("{count}{unit}")
        } else {
            self.text.clone().unwrap_or_default()
        }
    }
}

/// A remedy.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ShownMend {
    pub what: String,
    #[serde(default)]
    pub commands: Vec<String>,
    #[serde(default)]
    pub needs_root: bool,
    #[serde(default)]
    pub undo: Vec<String>,
}

/// The part of the document that a report shows.
#[derive(Deserialize)]
struct Document {
    conclusion: String,
    findings: Vec<ShownFinding>,
    #[serde(default)]
    not_examined: Vec<NotExamined>,
}

#[derive(Deserialize)]
struct NotExamined {
    fact: String,
    reason: String,
    #[serde(default)]
    remedy: Option<String>,
    #[serde(default)]
    rules: Vec<String>,
}

/// Makes the page.
pub(super) fn page(name: &str, document: &str) -> Result<Page, String> {
    let read: Document =
        serde_json::from_str(document).map_err(|error| printable(&error.to_string()).into_owned())?;
    if read.findings.len() > MOST {
        return Err(format!("findings has {} items: expected at most {MOST}", read.findings.len()));
    }
    let mut parts = Vec::new();
    if !read.findings.is_empty() {
        parts.push(Part::Findings(read.findings));
    }
    if !read.not_examined.is_empty() {
        let row =
            |of: NotExamined| vec![of.fact, of.reason, of.remedy.unwrap_or_default(), of.rules.join(" ")];
        let table = DataTable {
            head: ["fact", "why it is unknown", "remedy", "rules"].map(str::to_owned).to_vec(),
            rows: read.not_examined.into_iter().map(row).collect(),
        };
        parts.push(Part::Table("Rules that were not examined".to_owned(), table));
    }
    Ok(Page {
        name: name.to_owned(),
        heading: super::FINDINGS.to_owned(),
        conclusion: Some(read.conclusion),
        parts,
        document: Some(document.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_read_with_their_remedies() {
        let document = r#"{"schema":"nodewise.doctor/1","conclusion":"1 warning","findings":[
            {"id":"swap-while-free","severity":"warning","confidence":"certain","summary":"node 0 swaps",
             "evidence":[{"fact":"pages swapped out","value":{"per_s":3.0,"unit":"pages"},"read_from":"vmstat",
             "threshold":{"count":0,"origin":"ours"}}],
             "mend":[{"what":"take the binding away","commands":["x"],"scope":"at_once","needs_root":true,"undo":[]}],
             "check":"nodewise doctor --rule swap-while-free","sources":["a page"],"explains":[]}],
            "not_examined":[{"fact":"cgroups","reason":"none is mounted","rules":["a","b"]}]}"#;
        let page = page("doctor", document).unwrap();
        assert_eq!(page.conclusion.as_deref(), Some("1 warning"));
        let [Part::Findings(findings), Part::Table(_, lacking)] = &page.parts[..] else { panic!("{page:?}") };
        assert_eq!((findings[0].id.as_str(), findings[0].mend[0].needs_root), ("swap-while-free", true));
        assert_eq!(findings[0].evidence[0].value.words(), "3.0 pages/s");
        assert_eq!(lacking.rows, [["cgroups", "none is mounted", "", "a b"]]);
    }
}
