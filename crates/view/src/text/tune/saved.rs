//! The placements of a study that was saved: the conclusion and the table.

use crate::digest::change::{change_words, range_words};
use crate::digest::placements::Placements;
use crate::digest::survey::caption;
use crate::style::{Ink, Style};
use crate::text::line::{Line, Page};

use super::results::{self, Row};

/// Writes them.
pub fn saved(study: &Placements, style: &Style) -> String {
    let mut page = Page::new(*style);
    page.line(5, &study.conclusion.as_str().into());
    page.line(2, &Line::new().with(Ink::Faint, study.words()));
    page.line(2, &Line::new().with(Ink::Faint, format!("program: {}", study.program())));
    page.line(2, &Line::new().with(Ink::Faint, caption(&study.conditions)));
    page.line(0, &Line::new());
    let rows = study.rows.iter().map(|row| Row {
        name: &row.name,
        median: row.median,
        change: row.change.map(|change| (change.ratio, change.interval)),
        kind: row.verdict,
        verdict: row.verdict_words(&study.metric),
    });
    results::table(rows, &study.metric).write(&mut page);
    if let Some((ratio, interval)) = study.noise {
        let noise =
            format!("  noise: default against itself {} ({})", change_words(ratio, 1), range_words(interval));
        page.line(4, &Line::new().with(Ink::Faint, noise));
    }
    page.finish()
}
