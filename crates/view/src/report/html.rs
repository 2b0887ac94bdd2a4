//! The page as HTML.

use maud::{DOCTYPE, Markup, PreEscaped, html as markup};
use nodewise_machine::printable::printable;

use super::finding::{ShownFinding, ShownMend};
use super::{DataTable, HtmlReport, Page, Part, documents, picture};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The rights of the page: what is in it, and nothing from elsewhere.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; \
                      base-uri 'none'; form-action 'none'";

/// The place of the documents while the rest of the page is made; in names `<` is escaped.
const DOCUMENTS: &str = "<!-- documents -->";

/// Rows above which a table can be filtered.
const LONG: usize = 8;

/// Writes a report as one file.
pub fn html(report: &HtmlReport) -> String {
    let mut embedded = String::new();
    for page in &report.pages {
        if let Some(document) = &page.document {
            documents::write(&mut embedded, &page.name, document);
        }
    }
    let page = markup! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="generator" content="nodewise";
                title { (report.title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 { (report.title) }
                    dl {
                        @for (name, value) in &report.facts {
                            div { dt { (name) } dd { (value) } }
                        }
                    }
                    nav aria-label="Pages" {
                        @for page in &report.pages {
                            a href={ "#" (page.name) } { (page.heading) }
                        }
                    }
                    div #switches hidden {}
                }
                main {
                    @for (at, page) in report.pages.iter().enumerate() { (section(page, at)) }
                }
                @if !embedded.is_empty() {
                  footer {
                    p { "Figures of every page are in this file: " code { "nodewise report --extract FILE" } " writes them as JSON." }
                  }
                }
                (PreEscaped(DOCUMENTS))
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    let page = page.into_string();
    let (before, after) = page.split_once(DOCUMENTS).unwrap_or((&page, ""));
    format!("{}{embedded}{}\n", visible(before), visible(after))
}

/// Text whose lines hold nothing that would reorder or hide letters for a reader.
fn visible(text: &str) -> String {
    text.split('\n').map(printable).collect::<Vec<_>>().join("\n")
}

fn section(page: &Page, at: usize) -> Markup {
    markup! {
        section #(page.name) aria-labelledby={ (page.name) "-heading" } {
            h2 id={ (page.name) "-heading" } { (page.heading) }
            @if let Some(conclusion) = &page.conclusion { p.conclusion { (conclusion) } }
            @for (number, part) in page.parts.iter().enumerate() {
                (part_of(part, &format!("p{at}-{number}")))
            }
        }
    }
}

fn part_of(part: &Part, scope: &str) -> Markup {
    match part {
        Part::Findings(findings) => markup! {
            @for finding in findings { (finding_of(finding)) }
        },
        Part::Picture(svg) => markup! {
            div.picture tabindex="0" role="group" aria-label="Picture" { (PreEscaped(picture::within(svg, scope))) }
        },
        Part::Table(name, table) => table_of(name, table),
        Part::Text(text) => markup! { pre tabindex="0" { (text.trim_end()) } },
        Part::Note(sentence) => markup! { p.note { (sentence) } },
    }
}

fn finding_of(finding: &ShownFinding) -> Markup {
    markup! {
        article.finding data-severity=(finding.severity) {
            h3 { span.severity { (finding.severity) } " " (finding.summary) }
            @if let Some(cause) = &finding.cause { p { (cause) } }
            @if !finding.evidence.is_empty() {
                div.scroll tabindex="0" role="group" aria-label={ "Evidence: " (finding.summary) } {
                    table {
                        caption { "Evidence" }
                        thead { tr { th scope="col" { "fact" } th scope="col" { "value" } th scope="col" { "limit" } th scope="col" { "read from" } } }
                        tbody {
                            @for evidence in &finding.evidence {
                                tr {
                                    th scope="row" { (evidence.fact) }
                                    td.number { (evidence.value.words()) }
                                    td {
                                        @if let Some(threshold) = &evidence.threshold {
                                            (threshold.value.words()) " " small { (threshold.origin) }
                                        }
                                    }
                                    td { (evidence.read_from) }
                                }
                            }
                        }
                    }
                }
            }
            @for mend in &finding.mend { (mend_of(mend)) }
            @if let Some(experiment) = &finding.experiment { p { "Where this is not certain: " code { (experiment) } } }
            @if let Some(check) = &finding.check { p { "See whether it helped: " code { (check) } } }
            @if !finding.explains.is_empty() {
                details {
                    summary { "Findings that this one explains: " (finding.explains.len()) }
                    ul { @for explained in &finding.explains { li { (explained.summary) } } }
                }
            }
            p.sources {
                code { (finding.id) } ", " (finding.confidence)
                @for source in &finding.sources { " · " (source) }
            }
        }
    }
}

fn mend_of(mend: &ShownMend) -> Markup {
    markup! {
        div.mend {
            p { (mend.what) @if mend.needs_root { " (as root)" } }
            @if !mend.commands.is_empty() { pre tabindex="0" { (mend.commands.join("\n")) } }
            @if !mend.undo.is_empty() { p { "Undo: " code { (mend.undo.join("; ")) } } }
        }
    }
}

fn table_of(name: &str, table: &DataTable) -> Markup {
    let is_number: Vec<bool> = (0..table.head.len())
        .map(|column| {
            let mut fields =
                table.rows.iter().filter_map(|row| row.get(column)).filter(|field| !field.is_empty());
            table.rows.iter().any(|row| row.get(column).is_some_and(|field| !field.is_empty()))
                && fields.all(|field| field.parse::<f64>().is_ok())
        })
        .collect();
    let rows = table.rows.len();
    let count = format!("{rows} row{}", if rows == 1 { "" } else { "s" });
    markup! {
        details {
            summary { (name) ", " (count) }
            div.scroll tabindex="0" role="group" aria-label=(name) {
                table.data data-long[rows >= LONG] {
                    caption { (name) }
                    thead { tr { @for head in &table.head { th scope="col" { (head.replace('_', " ")) } } } }
                    tbody {
                        @for row in &table.rows {
                            tr {
                                @for (field, is_number) in row.iter().zip(&is_number) {
                                    td.number[*is_number] { (field) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn report_with(text: &str) -> HtmlReport {
        let table = DataTable {
            head: vec![text.to_owned(), "b".to_owned()],
            rows: vec![vec![text.to_owned(), "1.5".to_owned()]],
        };
        let finding = ShownFinding {
            id: text.to_owned(),
            severity: text.to_owned(),
            confidence: text.to_owned(),
            summary: text.to_owned(),
            cause: Some(text.to_owned()),
            evidence: Vec::new(),
            mend: vec![ShownMend {
                what: text.to_owned(),
                commands: vec![text.to_owned()],
                needs_root: true,
                undo: vec![text.to_owned()],
            }],
            experiment: None,
            check: None,
            sources: vec![text.to_owned()],
            explains: Vec::new(),
        };
        let parts = vec![
            Part::Findings(vec![finding]),
            Part::Table(text.to_owned(), table),
            Part::Text(text.to_owned()),
            Part::Note(text.to_owned()),
        ];
        let page = Page {
            name: "a".to_owned(),
            heading: text.to_owned(),
            conclusion: Some(text.to_owned()),
            parts,
            document: Some(serde_json::json!({ "text": text }).to_string()),
        };
        HtmlReport {
            title: text.to_owned(),
            facts: vec![(text.to_owned(), text.to_owned())],
            pages: vec![page],
        }
    }

    /// Tags of a page by name, with how often each is there.
    fn tags(page: &str) -> std::collections::BTreeMap<String, usize> {
        let mut tags = std::collections::BTreeMap::new();
        for part in page.split('<').skip(1) {
            let name: String = part.chars().take_while(|letter| !" >\n".contains(*letter)).collect();
            *tags.entry(name).or_insert(0) += 1;
        }
        tags
    }

    #[test]
    fn a_name_that_looks_like_a_tag_is_a_text() {
        let expected = tags(&html(&report_with("plain")));
        for text in [
            "<script>alert(1)</script>",
            "</style><img src=x onerror=y>",
            "\" onload=\"z",
            "]]><!--",
            "</script>",
        ] {
            assert_eq!(tags(&html(&report_with(text))), expected, "{text}");
        }
    }

    #[test]
    fn letters_that_reorder_others_are_visible_and_documents_keep_them() {
        let text = "a\u{202e}b\u{1b}[2J\u{feff}";
        let page = html(&report_with(text));
        let is_hazard =
            |letter: char| letter.is_control() && letter != '\n' || "\u{202e}\u{feff}".contains(letter);
        assert!(!page.contains(is_hazard), "{page}");
        assert!(page.contains("a\\u{202e}b\\x1b[2J"), "{page}");
        let documents = documents(&page).unwrap();
        let document: serde_json::Value = serde_json::from_str(&documents[0].1).unwrap();
        assert_eq!(document["text"], text);
    }

    #[test]
    fn nothing_is_loaded_from_elsewhere() {
        let page = html(&report_with("plain"));
        assert!(page.contains("default-src 'none'"));
        for word in ["http:", "https:", "@import", "url(", "eval(", "innerHTML"] {
            assert!(!page.contains(word), "{word}");
        }
        assert!(SCRIPT.lines().count() <= 200);
    }

    proptest! {
        #[test]
        fn any_text_stays_a_text(text in ".*") {
            prop_assert_eq!(tags(&html(&report_with(&text))), tags(&html(&report_with("plain"))));
        }
    }
}
