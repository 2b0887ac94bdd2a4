//! A comparison, a line per benchmark and number of threads, the geometric means at the end.

use nodewise_experiment::compare::{Comparison, Mean, Row, Table};
use nodewise_experiment::suite::session::Session;

use super::{known, quoted};
use crate::digest::compare::verdict_name;

/// Writes a comparison; a value that is not known is empty. Ratios are of speed: above 1 is faster.
pub fn compare(comparison: &Comparison) -> String {
    let mut text = String::from(
        "subject,reference,benchmark,threads,unit,before_median,after_median,speed_ratio,interval_low,\
         interval_high,adjusted_p,noise_share,smallest_detectable_share,verdict\n",
    );
    for table in &comparison.tables {
        table.rows.iter().for_each(|row| text.push_str(&line(table, row)));
        table.means.iter().for_each(|mean| text.push_str(&mean_line(table, mean)));
    }
    text
}

/// Writes every sample of a session.
pub fn suite(session: &Session) -> String {
    let mut text = String::from("benchmark,threads,unit,placement,round,replicate,value,steal_share\n");
    for case in &session.cases {
        for (arm, placement) in case.arms.iter().zip(&session.placements) {
            for sample in &arm.samples {
                let fields = [
                    quoted(&case.benchmark),
                    case.threads.to_string(),
                    quoted(&case.unit),
                    quoted(placement),
                    sample.round.to_string(),
                    sample.replicate.to_string(),
                    sample.value.to_string(),
                    known(sample.steal_share),
                ];
                text.push_str(&(fields.join(",") + "\n"));
            }
        }
    }
    text
}

fn line(table: &Table, row: &Row) -> String {
    let interval = row.change.and_then(|change| change.interval);
    let fields = [
        quoted(&table.subject),
        quoted(&table.reference),
        quoted(&row.benchmark),
        row.threads.to_string(),
        quoted(&row.unit),
        known(row.before),
        known(row.after),
        known(row.change.map(|change| change.ratio)),
        known(interval.map(|interval| interval.low)),
        known(interval.map(|interval| interval.high)),
        known(row.change.and_then(|change| change.adjusted_p)),
        known(row.change.map(|change| change.noise)),
        known(row.change.and_then(|change| change.smallest_detectable)),
        verdict_name(&row.verdict).to_owned(),
    ];
    fields.join(",") + "\n"
}

fn mean_line(table: &Table, mean: &Mean) -> String {
    let fields = [
        quoted(&table.subject),
        quoted(&table.reference),
        "geometric mean".to_owned(),
        mean.threads.to_string(),
        String::new(),
        String::new(),
        String::new(),
        mean.ratio.to_string(),
        known(mean.interval.map(|interval| interval.low)),
        known(mean.interval.map(|interval| interval.high)),
        String::new(),
        String::new(),
        String::new(),
        String::new(),
    ];
    fields.join(",") + "\n"
}
