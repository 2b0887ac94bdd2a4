//! The catalogue of rules as text and JSON.

use nodewise_diagnose::rules::ALL;
use nodewise_view::{Style, json, text};
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

#[test]
fn the_catalogue_fits_and_its_forms_say_the_same() {
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let document: Value = serde_json::from_str(&json::doctor::rules(ALL)).unwrap();
    assert_eq!(document["schema"], "nodewise.rules/1");
    let wide = flat(&text::rules::rules(ALL, &Style::plain(400)));
    assert_eq!(document["rules"].as_array().unwrap().len(), ALL.len());
    for (row, rule) in document["rules"].as_array().unwrap().iter().zip(ALL) {
        let row_of = |name: &str| row[name].as_str().unwrap_or_else(|| panic!("{name} of {row}"));
        let line = format!("{} {} {}", row_of("id"), row_of("severity"), row_of("title"));
        assert!(wide.contains(&flat(&line)), "{line}");
        let whole = flat(&text::rules::rule(rule, &Style::plain(80)));
        for part in ["id", "title", "severity", "sign", "traps"] {
            assert!(whole.contains(&flat(row_of(part))), "{part} of {}", rule.id);
        }
        let lists =
            ["needs", "explains", "sources"].into_iter().flat_map(|name| row[name].as_array().unwrap());
        let thresholds = row["thresholds"].as_array().unwrap();
        assert_eq!(thresholds.len(), rule.thresholds.len(), "{}", rule.id);
        for threshold in thresholds {
            let (key, default) = (threshold["key"].as_str().unwrap(), threshold["default"].as_f64().unwrap());
            let (unit, least, most) = (&threshold["unit"], &threshold["least"], &threshold["most"]);
            let number = |value: &Value| value.as_f64().unwrap();
            let unit = unit.as_str().unwrap();
            let says = format!("{key} = {default} ({unit}, {} to {}): ", number(least), number(most));
            assert!(whole.contains(&says), "{says} of {}", rule.id);
            for words in ["about", "origin"] {
                assert!(whole.contains(threshold[words].as_str().unwrap()), "{key} of {}", rule.id);
            }
        }
        for word in lists.chain(row["machines"].as_array().into_iter().flatten()) {
            assert!(whole.contains(&flat(word.as_str().unwrap())), "{word} of {}", rule.id);
        }
    }
    for width in [60, 80] {
        let texts = ALL.iter().map(|rule| text::rules::rule(rule, &Style::plain(width)));
        for text in texts.chain([text::rules::rules(ALL, &Style::plain(width))]) {
            assert!(text.lines().all(|line| line.width() <= width), "{width}:\n{text}");
        }
    }
}
