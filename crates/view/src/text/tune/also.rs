//! The metrics of a study that decide nothing: a table for each, without verdicts.

use nodewise_experiment::metric::Metric;
use nodewise_experiment::study::Study;
use nodewise_experiment::verdict::Analysis;

use crate::digest::change::{change_words, range_words};
use crate::digest::study::{metric_name, metric_value};
use crate::text::line::{Line, Page};
use crate::text::table::{Align, Column, Keep, Table};

/// Writes them; of one of which no run gave a value there is a line.
pub(super) fn also(study: &Study, analysis: &Analysis, page: &mut Page) {
    for (at, metric) in study.plan.also.iter().enumerate() {
        let name = metric_name(metric);
        page.heading("Shown too", &name);
        let arms = analysis.arms.iter().map(|result| (result.arm, result.also.get(at).copied().flatten()));
        if arms.clone().all(|(_, also)| also.is_none()) {
            let refused = match metric {
                Metric::Counted(counter) => study.not_counted.get(counter),
                _ => None,
            };
            let why = refused.map_or("no run gave a value", String::as_str);
            page.line(4, &format!("  not known: {why}").as_str().into());
            continue;
        }
        let column = |head, align| Column { head, align, keep: Keep::Always };
        let mut table = Table::new(vec![
            column("placement", Align::Left),
            column("median", Align::Right),
            column("change", Align::Right),
            column("95 % interval", Align::Left),
        ]);
        for (arm, also) in arms {
            let ratio = also.and_then(|also| also.ratio);
            let words = |words: Option<String>| Line::from(words.unwrap_or_default());
            table.row(vec![
                study.plan.arm(arm).name.as_str().into(),
                words(also.map(|also| metric_value(also.summary.median, metric))),
                words(ratio.map(|(ratio, _)| change_words(ratio, 1))),
                words(ratio.and_then(|(_, interval)| interval.map(range_words))),
            ]);
        }
        table.write(page);
    }
}
