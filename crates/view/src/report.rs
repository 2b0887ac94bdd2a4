//! Reports: the results of several verbs as pages of one HTML file.
//!
//! Each page is made from the JSON document that a verb writes with `--json`, and the document goes into the report as
//! it is. So a page of a result that was just measured and one of a file from elsewhere are the same, and all figures can be
//! taken out again.
//!
//! The file needs nothing beside it: pictures are SVG within the page, tables are tables, and a policy in its head forbids
//! the browser to load anything at all. Scripts only sort, filter and switch; without them all is readable.

mod against;
mod documents;
mod finding;
mod fleet;
mod html;
mod picture;

use nodewise_machine::Machine;
use nodewise_machine::printable::{printable, quote};

use crate::digest::counts::{headline, platform, processors, product};
use crate::digest::provenance::source;
use crate::json::{self, Saved};
use crate::style::Style;
use crate::svg::{self, Theme};
use crate::{csv, text};

pub use against::changes;
pub use documents::documents;
pub use finding::{ShownEvidence, ShownFinding, ShownMend};
pub use fleet::fleet;
pub use html::html;

/// Columns of texts in a report.
const WIDTH: usize = 110;

/// A report.
#[derive(Clone, Debug, PartialEq)]
pub struct HtmlReport {
    /// The machine in a few words.
    pub title: String,
    /// Facts that a reader wants first: name, value.
    pub facts: Vec<(String, String)>,
    pub pages: Vec<Page>,
}

/// The result of one verb.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// Its name among those of the report: small letters, digits and `-`.
    pub name: String,
    pub heading: String,
    pub conclusion: Option<String>,
    pub parts: Vec<Part>,
    /// The document that it was made from.
    pub document: Option<String>,
}

/// A part of a page.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    Findings(Vec<ShownFinding>),
    /// A picture, as SVG.
    Picture(String),
    /// A table under its name.
    Table(String, DataTable),
    /// The text of the verb for people.
    Text(String),
    /// A sentence on what is missing.
    Note(String),
}

/// Rows of fields under their names.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct DataTable {
    pub head: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

impl DataTable {
    /// Reads lines with commas (RFC 4180); the first has the names.
    pub fn from_csv(text: &str) -> Self {
        let mut records = records(text).into_iter();
        let head = records.next().unwrap_or_default();
        Self { head, rows: records.collect() }
    }
}

/// The fields of each line; a line end in quotes is part of its field.
fn records(text: &str) -> Vec<Vec<String>> {
    let (mut records, mut record, mut field) = (Vec::new(), Vec::new(), String::new());
    let mut is_quoted = false;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if is_quoted && letters.peek() == Some(&'"') => {
                field.push('"');
                letters.next();
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => record.push(std::mem::take(&mut field)),
            '\n' if !is_quoted => {
                record.push(std::mem::take(&mut field));
                records.push(std::mem::take(&mut record));
            }
            '\r' if !is_quoted => {}
            letter => field.push(letter),
        }
    }
    if !field.is_empty() || !record.is_empty() {
        record.push(field);
        records.push(record);
    }
    records
}

/// Forms of one result.
struct Forms {
    heading: &'static str,
    picture: String,
    csv: String,
    text: String,
}

/// The machine in a line, as the title of its report.
pub fn title(machine: &Machine) -> String {
    headline(machine)
}

/// Facts about a machine that a reader wants first: name, value.
pub fn facts(machine: &Machine) -> Vec<(String, String)> {
    let facts = [
        ("Processor", processors(machine)),
        ("Machine", product(machine)),
        ("Platform", platform(machine)),
        ("Source", source(machine)),
    ];
    let known = facts.into_iter().filter(|(_, value)| !value.is_empty());
    known.map(|(name, value)| (name.to_owned(), printable(&value).into_owned())).collect()
}

/// The page of a machine, with its document.
pub fn machine_page(machine: &Machine, document: String) -> Page {
    let parts = vec![
        Part::Picture(svg::machine_svg(machine, svg::Caches::LastLevel, Theme::Auto)),
        Part::Text(text::show(machine, &Style::plain(WIDTH))),
    ];
    Page {
        name: "machine".to_owned(),
        heading: "Machine".to_owned(),
        conclusion: None,
        parts,
        document: Some(document),
    }
}

/// The heading of a page by its name, for one that has no document.
pub fn heading(name: &str) -> &'static str {
    match name {
        "doctor" => FINDINGS,
        "latency" => LATENCY,
        "loaded" => LOADED,
        "bandwidth" => BANDWIDTH,
        "c2c" => CORES,
        "io" => DEVICES,
        _ => "",
    }
}

const FINDINGS: &str = "Findings";
const LATENCY: &str = "Memory latency";
const LOADED: &str = "Latency under load";
const SIZES: &str = "Latency by size of memory";
const BANDWIDTH: &str = "Memory bandwidth";
const CORES: &str = "Core to core";
const DEVICES: &str = "Devices";
const FIGURES: &str = "Figures of another tool";

/// Makes the page of a document that a verb has written with `--json`.
///
/// # Errors
/// A text that is not such a document, or one that has no page; the sentence is fit to be shown.
pub fn page(name: &str, document: &str) -> Result<Page, String> {
    let saved = Saved::from_json(document)?;
    if saved.schema() == json::doctor::SCHEMA {
        return finding::page(name, document);
    }
    let style = Style::plain(WIDTH);
    let forms = |heading, picture, csv, text| Forms { heading, picture, csv, text };
    let forms = match saved.schema() {
        json::latency::SCHEMA => json::latency::read(&saved).map(|report| {
            let picture = svg::latency_svg(&report, Theme::Auto);
            forms(LATENCY, picture, csv::latency(&report), text::latency(&report, &style))
        }),
        json::loaded::SCHEMA => json::loaded::read(&saved).map(|report| {
            let picture = svg::loaded_svg(&report, Theme::Auto);
            forms(LOADED, picture, csv::loaded(&report), text::loaded(&report, &style))
        }),
        schema @ (json::sweep::SWEEP_SCHEMA | json::sweep::TABLE_SCHEMA) => {
            let words =
                if schema == json::sweep::TABLE_SCHEMA { text::sweep::table } else { text::sweep::sweep };
            json::sweep::read(&saved).map(|report| {
                let picture = svg::sweep_svg(&report, Theme::Auto);
                forms(SIZES, picture, csv::sweep(&report), words(&report, &style))
            })
        }
        json::bandwidth::SCHEMA => json::bandwidth::read(&saved).map(|report| {
            let picture = svg::bandwidth_svg(&report, Theme::Auto);
            forms(BANDWIDTH, picture, csv::bandwidth(&report), text::bandwidth(&report, &style))
        }),
        json::c2c::SCHEMA => json::c2c::read(&saved).map(|report| {
            let picture = svg::c2c_svg(&report, Theme::Auto);
            forms(CORES, picture, csv::c2c(&report), text::c2c(&report, &style))
        }),
        json::figures::SCHEMA => json::figures::read(&saved).map(|report| {
            let picture = svg::figures_svg(&report, Theme::Auto);
            forms(FIGURES, picture, csv::tool_figures(&report), text::tool_figures(&report, &style))
        }),
        json::io::SCHEMA => json::io::read(&saved).map(|report| {
            let picture = svg::io_svg(&report, Theme::Auto);
            forms(DEVICES, picture, csv::io(&report), text::io(&report, &style))
        }),
        other => Err(format!("a report has no page for {}", quote(other))),
    }?;
    let table = Part::Table(format!("{}: all figures", forms.heading), DataTable::from_csv(&forms.csv));
    let parts = vec![Part::Picture(forms.picture), Part::Text(forms.text), table];
    Ok(Page {
        name: name.to_owned(),
        heading: forms.heading.to_owned(),
        conclusion: None,
        parts,
        document: Some(document.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_commas_become_rows() {
        let table = DataTable::from_csv("a,\"b,c\"\n1,\"two \"\"and\"\"\nmore\"\n3,\n");
        assert_eq!(table.head, ["a", "b,c"]);
        assert_eq!(table.rows, [["1", "two \"and\"\nmore"], ["3", ""]]);
        assert_eq!(DataTable::from_csv(""), DataTable::default());
        assert_eq!(DataTable::from_csv("a,b\n1,2").rows, [["1", "2"]]);
    }

    #[test]
    fn a_document_without_a_page_is_named() {
        assert!(page("x", "[]").is_err());
        let message = page("x", r#"{"schema":"nodewise.zones/1"}"#).unwrap_err();
        assert!(message.contains("nodewise.zones/1"), "{message}");
    }
}
