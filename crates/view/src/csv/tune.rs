//! A study, a line per placement.

use super::{known, optional, quoted};
use crate::digest::placements::{PlacementRow, Placements};
use crate::digest::study::{metric_name, metric_unit};

/// Writes a study; a value that is not known is empty. Changes are against the default, in percent: below 0 is
/// less of the metric. `unit` is that of the median, empty for counts and for numbers that the program prints.
pub fn tune(study: &Placements) -> String {
    let mut text = String::from(
        "placement,run_options,threads,metric,unit,runs,failures,median,change_percent,interval_low_percent,\
         interval_high_percent,adjusted_p,smallest_detectable_percent,verdict\n",
    );
    study.rows.iter().for_each(|row| text.push_str(&line(study, row)));
    text
}

fn line(study: &Placements, row: &PlacementRow) -> String {
    let change = row.change;
    let interval = change.and_then(|change| change.interval);
    let fields = [
        quoted(&row.name),
        optional(row.options.as_deref()),
        known(row.threads),
        quoted(&metric_name(&study.metric)),
        optional(metric_unit(&study.metric)),
        row.runs.to_string(),
        row.failures.to_string(),
        known(row.median),
        known(change.map(|change| percent(change.ratio - 1.0))),
        known(interval.map(|interval| percent(interval.low - 1.0))),
        known(interval.map(|interval| percent(interval.high - 1.0))),
        known(change.map(|change| change.adjusted_p)),
        known(change.and_then(|change| change.smallest_detectable).map(percent)),
        row.verdict.name().to_owned(),
    ];
    fields.join(",") + "\n"
}

/// A share in percent, to a ten-thousandth of one: the digits behind that are those of the subtraction.
fn percent(share: f64) -> f64 {
    let percent = (share * 1e6).round() / 1e4;
    // What rounds to nothing has no sign.
    if percent == 0.0 { 0.0 } else { percent }
}
