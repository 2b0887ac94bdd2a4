//! Where the memory of the program lay under each placement, and how far it ran as that asks.

use nodewise_experiment::study::Study;
use nodewise_experiment::verdict::{Analysis, ArmResult};

use super::Extent;
use crate::digest::study::{fidelity_words, pages_words, seen_words};
use crate::style::Ink;
use crate::text::line::{Line, Page};
use crate::text::table::{Align, Column, Keep, Table};

/// Writes a table; a line where all is on one node under every placement and ran as asked.
pub(super) fn write(study: &Study, analysis: &Analysis, extent: Extent, page: &mut Page) {
    let words: Vec<String> = analysis.arms.iter().map(|result| words(study, result)).collect();
    let mut known = words.iter().filter(|words| !words.is_empty());
    let Some(first) = known.next() else { return };
    let asked = analysis.arms.iter().any(|result| result.fidelity.is_some());
    let is_alike = known.all(|words| words == first);
    if is_alike && !asked && extent == Extent::Brief {
        let text = match first.strip_suffix(": 100 %") {
            Some(node) => format!("  the program's own memory was on node {node} under every placement"),
            None => format!("  the program's own memory by node, under every placement: {first}"),
        };
        page.line(4, &Line::new().with(Ink::Faint, text));
        return;
    }
    page.heading("Pages", "the program's own memory by node, when it had most of it");
    let column = |head, align| Column { head, align, keep: Keep::Always };
    let mut columns = vec![column("placement", Align::Left)];
    columns.extend(asked.then(|| column("as asked", Align::Right)));
    columns.push(Column { keep: Keep::Unless(1), ..column("seen", Align::Right) });
    columns.push(column("pages on node", Align::Left));
    let mut table = Table::new(columns).naming_omitted();
    for (result, words) in analysis.arms.iter().zip(words) {
        let mut row: Vec<Line> = vec![study.plan.arm(result.arm).name.as_str().into()];
        row.extend(asked.then(|| Line::from(fidelity_words(result))));
        row.push(seen_words(study, result.arm).unwrap_or_default().into());
        row.push(words.into());
        table.row(row);
    }
    table.write(page);
}

fn words(study: &Study, result: &ArmResult) -> String {
    study.residency(result.arm).as_ref().map_or(String::new(), pages_words)
}
