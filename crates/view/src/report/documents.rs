//! Documents within a report: written so that no text can end them, and taken out again.

use std::fmt::Write as _;

use nodewise_machine::printable::json;

use crate::json::compact;

const BEGIN: &str = "<script type=\"application/json\" data-document=\"";
const END: &str = "</script>";

/// Writes a document into the page, without blanks between its parts: a third of an indented one are blanks. In JSON `<` and
/// letters that reorder others appear in texts only, where an escape means the same.
pub(super) fn write(page: &mut String, name: &str, document: &str) {
    let text = json(&compact(document)).replace('<', "\\u003c");
    let _ = writeln!(page, "{BEGIN}{name}\">{text}{END}");
}

/// The documents of a report: names, and JSON that says the same as when it was written.
///
/// # Errors
/// A page without any, and one that ends within a document.
pub fn documents(page: &str) -> Result<Vec<(String, String)>, String> {
    let mut found = Vec::new();
    let mut rest = page;
    while let Some((_, from)) = rest.split_once(BEGIN) {
        let (name, from) = from.split_once("\">").ok_or("it ends within the name of a document")?;
        if !is_name(name) {
            return Err(format!(
                "{} is not a name of a document: expected small letters, digits and -",
                nodewise_machine::printable::quote(name)
            ));
        }
        let (document, after) =
            from.split_once(END).ok_or_else(|| format!("it ends within the document {name}"))?;
        found.push((name.to_owned(), format!("{document}\n")));
        rest = after;
    }
    if found.is_empty() {
        Err("it is not a report of nodewise: no document is in it".to_owned())
    } else {
        Ok(found)
    }
}

/// Whether a name can be one of a file, an anchor and an attribute as it is.
pub(super) fn is_name(name: &str) -> bool {
    let fits = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    (1..=64).contains(&name.len()) && name.chars().all(fits)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_page_that_is_no_report_is_refused() {
        assert!(documents("<html></html>").unwrap_err().contains("no document"));
        assert!(documents(&format!("{BEGIN}a\">{{")).unwrap_err().contains("document a"));
        assert!(documents(&format!("{BEGIN}../a\">{{}}{END}")).unwrap_err().contains("../a"));
    }

    proptest! {
        #[test]
        fn documents_come_out_as_they_went_in(texts in prop::collection::vec(".*|</script>.*|<!--.*", 1..5)) {
            let mut page = String::from("<html>");
            for (at, text) in texts.iter().enumerate() {
                let document = serde_json::json!({ "text": text, "list": [at, { "name \\\" ": null }] });
                let document = if at % 2 == 0 {
                    document.to_string()
                } else {
                    serde_json::to_string_pretty(&document).unwrap()
                };
                write(&mut page, &format!("d{at}"), &document);
            }
            let read = documents(&page).unwrap();
            prop_assert_eq!(read.len(), texts.len());
            for (at, (name, document)) in read.iter().enumerate() {
                prop_assert_eq!(name, &format!("d{at}"));
                let value: serde_json::Value = serde_json::from_str(document).unwrap();
                prop_assert_eq!(value["text"].as_str(), Some(texts[at].as_str()));
                let shortest = json(&value.to_string()).replace('<', "\\u003c");
                prop_assert_eq!(document.trim_end(), shortest);
            }
        }

        #[test]
        fn any_text_is_survived(text in ".*") {
            let _ = documents(&text);
            let _ = documents(&format!("{BEGIN}{text}"));
        }
    }
}
