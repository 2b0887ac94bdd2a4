//! Bandwidths of files in memory, a line per way.

use nodewise_measure::bandwidth::file::FileReport;
use nodewise_measure::cell::Placed;

use super::{known, names, quoted};

/// Writes bandwidths of files; a value that is not known is empty. Rates are in GB/s of the program.
pub fn file(report: &FileReport) -> String {
    let mut text = String::from(
        "operation,from_node,cpus,memory_node,pages,median_gb_per_s,interval_low_gb_per_s,interval_high_gb_per_s,\
         best_gb_per_s,rounds,samples,disturbed_samples,disturbed,placed_before_share,placed_after_share,refused\n",
    );
    for way in &report.ways {
        let cell = &way.cell;
        let (figure, interval) = (cell.figure.as_ref(), cell.figure.and_then(|figure| figure.interval));
        let mut fields = vec![way.operation.word().to_owned()];
        fields.extend(names(cell));
        fields.extend([
            known(figure.map(|figure| figure.median)),
            known(interval.map(|interval| interval.low)),
            known(interval.map(|interval| interval.high)),
            known(figure.map(|figure| figure.best)),
            known(figure.map(|figure| figure.rounds)),
            known(figure.map(|figure| figure.samples)),
            cell.marks.disturbed.to_string(),
            cell.disturbed.to_string(),
            known(cell.before.as_ref().and_then(Placed::share)),
            known(cell.after.as_ref().and_then(Placed::share)),
            cell.refused.as_deref().map(quoted).unwrap_or_default(),
        ]);
        text.push_str(&(fields.join(",") + "\n"));
    }
    text
}
