//! The placements of a study that was saved: the conclusion and the table.

use crate::digest::change::{change_words, range_words};
use crate::digest::placements::{PlacementRow, Placements, VerdictKind};
use crate::digest::study::metric_value;
use crate::digest::survey::caption;
use crate::style::{Ink, Style};
use crate::text::line::{Line, Page};
use crate::text::table::{Align, Column, Keep, Table};

/// Writes them.
pub fn saved(study: &Placements, style: &Style) -> String {
    let mut page = Page::new(*style);
    page.line(5, &study.conclusion.as_str().into());
    page.line(2, &Line::new().with(Ink::Faint, study.words()));
    page.line(2, &Line::new().with(Ink::Faint, format!("program: {}", study.program())));
    page.line(2, &Line::new().with(Ink::Faint, caption(&study.conditions)));
    page.line(0, &Line::new());
    let column = |head, align, keep| Column { head, align, keep };
    let mut table = Table::new(vec![
        column("placement", Align::Left, Keep::Always),
        column("median", Align::Right, Keep::Unless(2)),
        column("change", Align::Right, Keep::Always),
        column("95 % interval", Align::Right, Keep::Unless(1)),
        column("verdict", Align::Left, Keep::Always),
    ])
    .naming_omitted();
    for row in &study.rows {
        let change = row.change;
        let interval = change.and_then(|change| change.interval);
        table.row(vec![
            row.name.as_str().into(),
            row.median.map_or(String::new(), |median| metric_value(median, &study.metric)).as_str().into(),
            change.map_or(String::new(), |change| change_words(change.ratio, 1)).as_str().into(),
            interval.map_or(String::new(), range_words).as_str().into(),
            verdict(row, study),
        ]);
    }
    table.write(&mut page);
    if let Some((ratio, interval)) = study.noise {
        let noise =
            format!("  noise: default against itself {} ({})", change_words(ratio, 1), range_words(interval));
        page.line(4, &Line::new().with(Ink::Faint, noise));
    }
    page.finish()
}

fn verdict(row: &PlacementRow, study: &Placements) -> Line {
    let words = row.verdict_words(&study.metric);
    match row.verdict {
        VerdictKind::Baseline | VerdictKind::Out => Line::new().with(Ink::Faint, words),
        VerdictKind::Better => Line::new().with(Ink::Accent, words),
        VerdictKind::Worse | VerdictKind::NotAsAsked | VerdictKind::Failed => {
            Line::new().with(Ink::Notable, words)
        }
        VerdictKind::NoDifference | VerdictKind::TooFewRounds => words.as_str().into(),
    }
}
