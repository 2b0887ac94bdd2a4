//! The text of `nodewise doctor rules`: the catalogue, or a rule.

use nodewise_diagnose::Rule;

use crate::digest::counts::plural;
use crate::digest::doctor::{classes, threshold};
use crate::style::{Ink, Style};
use crate::text::line::{Line, Page};
use crate::text::table::{Align, Column, Keep, Table};

/// Writes the catalogue.
pub fn rules(rules: &[&Rule], style: &Style) -> String {
    let mut page = Page::new(*style);
    page.line(2, &Line::new().with(Ink::Strong, plural(rules.len(), "rule")));
    let column = |head, align| Column { head, align, keep: Keep::Always };
    let mut table = Table::new(vec![
        column("rule", Align::Left),
        column("severity", Align::Left),
        column("finds", Align::Left),
    ]);
    for rule in rules {
        let id = Line::from(rule.id);
        table.row(vec![id, Line::from(rule.severity.word()), Line::from(rule.title)]);
    }
    table.write(&mut page);
    page.finish()
}

/// Writes a rule.
pub fn rule(rule: &Rule, style: &Style) -> String {
    let mut page = Page::new(*style);
    let head = Line::new().with(Ink::Strong, rule.id).with(Ink::Plain, format!(": {}", rule.title));
    page.line(2, &head);
    for (label, words) in parts(rule) {
        let line = Line::from("  ").with(Ink::Faint, format!("{label}: ")).with(Ink::Plain, words);
        page.line(4, &line);
    }
    page.finish()
}

/// The parts of a rule, each with its label.
pub fn parts(rule: &Rule) -> Vec<(&'static str, String)> {
    let on = classes(rule).map_or_else(|| "every machine".to_owned(), |on| on.join(", "));
    let needs: Vec<&str> = rule.needs.iter().map(|fact| fact.words()).collect();
    let head =
        [("severity", rule.severity.word().to_owned()), ("machines", on), ("sign", rule.sign.to_owned())];
    let thresholds = rule.thresholds.iter().map(|of| ("threshold", threshold(of)));
    let rest = [
        ("traps", rule.traps.to_owned()),
        ("needs", needs.join(", ")),
        ("explains", rule.explains.join(", ")),
        ("sources", rule.sources.join("; ")),
    ];
    head.into_iter().chain(thresholds).chain(rest).filter(|(_, words)| !words.is_empty()).collect()
}
