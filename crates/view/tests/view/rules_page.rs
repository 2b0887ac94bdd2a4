//! `docs/rules.md`: the catalogue of rules, from its own data.

use std::path::Path;

use nodewise_diagnose::rules::ALL;
use nodewise_view::text::rules::parts;

/// The page: a table of all rules, and a section for each.
fn page() -> String {
    let cell = |text: &str| text.replace('|', "\\|").replace('<', "&lt;");
    let mut page = "# Rules\n\nAll rules of [`nodewise doctor`](doctor.md), generated from the catalogue. `nodewise doctor rules RULE` \
                    prints one of them. A rule's identifier never changes its meaning.\n\n\
                    | rule | severity | finds |\n|---|---|---|\n"
        .to_owned();
    for rule in ALL {
        page += &format!("| [`{0}`](#{0}) | {1} | {2} |\n", rule.id, rule.severity.word(), cell(rule.title));
    }
    for rule in ALL {
        page += &format!("\n## {}\n\n{}.\n\n", rule.id, cell(rule.title));
        for (label, words) in parts(rule) {
            page += &format!("- {label}: {}\n", cell(&words));
        }
    }
    page
}

#[test]
fn the_page_of_rules_is_the_catalogue() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/rules.md");
    if std::env::var_os("SNAPSHOTS").is_some_and(|value| value == "overwrite") {
        std::fs::write(&path, page()).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    let wrong =
        page().lines().zip(written.lines()).find(|(now, then)| now != then).map(|(now, _)| now.to_owned());
    assert!(page() == written, "docs/rules.md differs (SNAPSHOTS=overwrite writes it): {wrong:?}");
}
